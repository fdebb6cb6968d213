"""A simulated run as a recording: what Flink and the operators of the recorded job would have written down of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.lab import Recording, read
from sim.jobs.evidence.prediction import scenario_of
from sim.model.scenario import Overheads
from sim.runtime.simulate import simulate

RECORDINGS = Path(__file__).parents[3] / "data" / "recordings"
STARTUP_MS = 1000
BEGUN_MS = 1_700_000_000_000
_CHECKPOINT = (
    "id",
    "status",
    "trigger_timestamp",
    "latest_ack_timestamp",
    "end_to_end_duration",
    "checkpointed_size",
    "state_size",
    "num_subtasks",
    "num_acknowledged_subtasks",
)


def recorded(name: str, overheads: Overheads, *, seconds: float = 30, flink: dict[str, Any] | None = None) -> Recording:
    """The job of a recording, simulated with these constants, its times cut to whole milliseconds; `flink`: options that are other."""
    given = read(RECORDINGS / f"{name}.json.gz")
    config = given.config.model_copy(update={"flink": {**given.config.flink, **(flink or {})}})
    given = given.model_copy(update={"config": config})
    scenario = scenario_of(given, overheads)
    result = simulate(replace(scenario, run=replace(scenario.run, duration_ns=round(seconds * 1e9))), check=False)
    checkpoints = [
        {key: _integers(row[key]) for key in _CHECKPOINT}
        | {
            "trigger_timestamp": _epoch(row["trigger_timestamp"]),
            "latest_ack_timestamp": _epoch(row["latest_ack_timestamp"]),
        }
        | {"tasks": _tasks(result.subtasks, row["id"])}
        for row in result.checkpoints.to_dict("records")
    ]
    commits = result.commits.to_dict("records")
    heard = [
        [
            _epoch(row["commit_timestamp"]),
            row["vertex"],
            row["index"],
            row["checkpoint"],
            _epoch(row["commit_timestamp"]),
        ]
        for row in commits
    ]
    events = {
        "submit": {"cols": ["t", "node", "sub"], "rows": [[BEGUN_MS, "job", -1]]},
        "open": {"cols": ["t", "node", "sub"], "rows": [[BEGUN_MS + STARTUP_MS, "src", 0]]},
        "complete": {"cols": ["t", "node", "sub", "chk", "start"], "rows": heard},
    }
    return Recording.model_validate(
        {
            "format": "flink-lab/1",
            "name": name,
            "family": given.family,
            "flink_version": "2.3.0",
            "events": events,
            "config": given.config.model_dump(by_alias=True),
            "started_ms": BEGUN_MS,
            "ended_ms": BEGUN_MS,
            # the trigger when the first task runs is refused
            "checkpoints": {"counts": {"failed": 1}, "list": checkpoints},
        }
    )


def _epoch(simulated_ms: float) -> int:
    return BEGUN_MS + STARTUP_MS + int(simulated_ms)


def _integers(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def _tasks(subtasks: Any, checkpoint: int) -> dict[str, Any]:
    of = subtasks[subtasks["id"] == checkpoint]
    return {
        str(vertex): {"subtasks": [_subtask(row) for row in rows.to_dict("records")]}
        for vertex, rows in of.groupby("vertex")
    }


def _subtask(row: dict[Any, Any]) -> dict[str, Any]:
    return {
        "index": row["index"],
        "status": row["status"],
        "ack_timestamp": _epoch(row["ack_timestamp"]),
        "end_to_end_duration": int(row["end_to_end_duration"]),
        "start_delay": int(row["start_delay"]),
        "alignment": {"duration": int(row["alignment_duration"]), "persisted": int(row["alignment_persisted"])},
        "unaligned_checkpoint": row["unaligned_checkpoint"],
        "checkpoint": {"sync": int(row["sync_duration"]), "async": int(row["async_duration"])},
        "checkpointed_size": row["checkpointed_size"],
        "state_size": row["state_size"],
    }

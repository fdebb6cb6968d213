"""A simulated run as the history that Flink would have reported of it: nothing of its journal is in it.

So what is told from statistics can be held to the path that a journal has.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from sim.history.history import MS, History
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.recordings.source.rest.answers import CheckpointConfig
from sim.recordings.source.rest.job import RestInput, RestVertex
from sim.runtime.setup.lowering import hosts

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.runtime.run.result import Result


def reported(result: Result) -> History:
    """The first job instance of a run: a restored one counts its checkpoints on."""
    scenario = result.scenario
    barriers = scenario.checkpoint.barriers
    config = CheckpointConfig(unaligned_checkpoints=barriers.record.overtakes, aligned_checkpoint_timeout=barriers.timeout_ns // MS)
    names = [(vertex.name, index) for vertex in scenario.job.vertices for index in range(vertex.parallelism)]
    places = {name: f"task manager {host}" for name, host in zip(names, hosts(scenario), strict=True)}
    return History("simulated", "", _vertices(scenario), tuple(_checkpoints(result)), config, places)


def _vertices(scenario: Scenario) -> tuple[RestVertex, ...]:
    return tuple(
        RestVertex(
            vertex.name, vertex.name, (vertex.name,), vertex.parallelism, -1,
            tuple(RestInput(edge.upstream, edge.ship.upper()) for edge in vertex.inputs),
        )
        for vertex in scenario.job.vertices
    )  # fmt: skip


def _checkpoints(result: Result) -> list[RecordedCheckpoint]:
    tasks: dict[int, dict[str, list[RecordedSubtask]]] = {}
    subtasks, points = result.subtasks, result.checkpoints
    if "x_job" in points:
        subtasks, points = subtasks[subtasks["x_job"] == 0], points[points["x_job"] == 0]
    for row in subtasks.to_dict("records"):
        tasks.setdefault(int(row["id"]), {}).setdefault(str(row["vertex"]), []).append(_subtask(row))
    return [_checkpoint(row, tasks.get(int(row["id"]), {})) for row in points.to_dict("records")]


def _checkpoint(row: Mapping[Hashable, Any], tasks: dict[str, list[RecordedSubtask]]) -> RecordedCheckpoint:
    values = {
        name: round(row[name]) if isinstance(row[name], float) else row[name] for name in RecordedCheckpoint.model_fields if name in row
    }
    built = {name: RecordedTask(subtasks=tuple(rows)) for name, rows in tasks.items()}
    return RecordedCheckpoint.model_validate(values | {"is_savepoint": bool(row["savepointFormat"]), "tasks": built})


def _subtask(row: Mapping[Hashable, Any]) -> RecordedSubtask:
    values = {name: round(value) if isinstance(value, float) else value for name, value in row.items()}
    alignment = {name: values[f"alignment_{name}"] for name in ("duration", "processed", "persisted")}
    phases = {"sync": values["sync_duration"], "async": values["async_duration"]}
    return RecordedSubtask.model_validate(values | {"alignment": alignment, "checkpoint": phases})

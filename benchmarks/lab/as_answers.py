"""A recording of our own recorder as the answers of a REST API: what a stranger would see of the job, without its configuration.

An import then has to infer what the recording says of itself (time per record, rates, storage), as it has to of any
other job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.jobs.source.recorded_job import parse
from sim.jobs.source.rest_answers import RestSnapshot

_SHUFFLE = ("Input.Buffers.", "Output.Buffers.")
"""Metrics that Flink's REST API has below ``Shuffle.Netty``."""


def as_answers(path: Path) -> RestSnapshot:
    """The answers and samples of the recorded job.  RecordingError: the file cannot be read."""
    recorded: Mapping[str, Any] = parse(path)
    job, vertices = recorded["job"]["jid"], _vertices(recorded)
    answers = {
        "/config": {"flink-version": recorded["flink_version"]},
        "/jobmanager/config": [{"key": key, "value": str(value)} for key, value in recorded["config"]["flink"].items()],
        f"/jobs/{job}": {**recorded["job"], "plan": recorded["plan"]},
        f"/jobs/{job}/plan": {"plan": recorded["plan"]},
        f"/jobs/{job}/checkpoints": {"counts": recorded["checkpoints"]["counts"]},
        f"/jobs/{job}/checkpoints/config": recorded["checkpoint_config"],
    }
    answers |= {f"/jobs/{job}/vertices/{vertex}": _places(recorded, name, vertex) for name, vertex in vertices.items()}
    for checkpoint in recorded["checkpoints"]["list"]:
        details = f"/jobs/{job}/checkpoints/details/{checkpoint['id']}"
        tasks = {vertices[name]: task for name, task in checkpoint["tasks"].items()}
        answers[details] = {**checkpoint, "tasks": tasks}
        answers |= {f"{details}/subtasks/{vertex}": task for vertex, task in tasks.items()}
    samples: dict[int, dict[str, Any]] = {}
    for name, metrics in recorded["metrics"].items():
        for i, time_ms in enumerate(metrics["t"]):
            samples.setdefault(time_ms, {})[f"/jobs/{job}/vertices/{vertices[name]}/metrics"] = list(
                _sample(metrics, i)
            )
    return RestSnapshot(str(path), job, answers, dict(sorted(samples.items())))


def _vertices(recorded: Mapping[str, Any]) -> dict[str, str]:
    """Name of a vertex in the recording -> its id."""
    return {vertex["name"].rpartition(": ")[2]: vertex["id"] for vertex in recorded["job"]["vertices"]}


def _places(recorded: Mapping[str, Any], name: str, vertex: str) -> dict[str, Any]:
    """Which task manager has which subtask: the recorder has one of each per subtask, per subtask index, or for all."""
    parallelism = next(node["parallelism"] for node in recorded["config"]["nodes"] if node["id"] == name)
    places = {"isolated": f"{name}-{{}}", "spread": "{}", "single": "all"}
    place = places[recorded["config"].get("placement", "isolated")]
    subtasks = [{"subtask": k, "status": "RUNNING", "taskmanager-id": place.format(k)} for k in range(parallelism)]
    return {"id": vertex, "name": name, "parallelism": parallelism, "subtasks": subtasks}


def _sample(metrics: Mapping[str, Any], i: int) -> Iterator[dict[str, str]]:
    for name, series in metrics.items():
        if name != "t" and series[i] is not None:
            long = f"Shuffle.Netty.{name}" if name.startswith(_SHUFFLE) else name
            yield from (
                {"id": f"{k}.{long}", "value": str(value)} for k, value in enumerate(series[i]) if value is not None
            )

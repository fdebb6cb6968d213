"""A snapshot of a real job as a recorded job: the same tables of checkpoints, subtasks and metrics.

Its configuration is unknown except for the graph, and its operators log no events.
"""

from __future__ import annotations

from typing import Any

from sim.recordings.infer.flows import series
from sim.recordings.infer.scenario import infer_job
from sim.recordings.observe.measured import Measured
from sim.recordings.source.rest.answers import parsed
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.recordings.source.rest.snapshot import RestSnapshot


def to_recording(snapshot: RestSnapshot, name: str = "") -> Measured:
    """The recorded job of a snapshot; `name` defaults to that of the job.  RecordingError: the answers contradict each other."""
    job = RestJob(snapshot)
    begun_ms, ended_ms = _window(job)
    seen = {
        "name": (name or job.job.name or job.job.jid)[:200], "flink_version": job.flink_version,
        "started_ms": begun_ms, "ended_ms": ended_ms, "duration_s": max((ended_ms - begun_ms) / 1000, 1), "final_state": job.job.state,
        "graph": [_vertex(vertex) for vertex in job.vertices],
        "checkpoints": {"counts": dict(job.counts), "list": job.checkpoints},
        "metrics": {vertex.name: _metrics(job, vertex) for vertex in job.vertices}, "inference": infer_job(job),
    }  # fmt: skip
    return parsed(Measured, seen, snapshot.source, "the job")


def _vertex(vertex: RestVertex) -> dict[str, Any]:
    inputs = [{"upstream": edge.upstream, "exchange": edge.ship.lower() or "rebalance"} for edge in vertex.inputs]
    commits = any("Committer" in operator for operator in vertex.chain)
    return {"id": vertex.name, "parallelism": vertex.parallelism, "inputs": inputs, "commits": commits}


def _window(job: RestJob) -> tuple[int, int]:
    """The observed time: from the first checkpoint or sample to the last."""
    points = [point for point in job.checkpoints if point.end_to_end_duration >= 0]
    times = [*job.snapshot.samples, *(point.trigger_timestamp for point in points)]
    times += [point.trigger_timestamp + point.end_to_end_duration for point in points]
    return (min(times), max(times)) if times else (job.job.start_time, job.job.start_time + max(job.job.duration, 0))


def _metrics(job: RestJob, vertex: RestVertex) -> dict[str, list[Any]]:
    """Metrics in the recorder's layout: times, and for each metric the values of the subtasks at each time."""
    samples_of = series(job, vertex)
    times = sorted({time_ms for samples in samples_of.values() for time_ms, _ in samples})
    table: dict[str, list[Any]] = {"t": times}
    for name, samples in samples_of.items():
        values = dict(samples)
        short = name.removeprefix("Shuffle.Netty.")
        table[short] = [[None if value != value else value for value in values[t]] if t in values else None for t in times]  # noqa: PLR0124 -- NaN
    return table

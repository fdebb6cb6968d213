"""A snapshot of a real job as a recording: the same tables of checkpoints, subtasks and metrics, for whoever compares.

Its configuration is the graph alone; what was measured inside the operators (events) does not exist.
"""

from __future__ import annotations

from typing import Any

from sim.recordings.infer.flows import series
from sim.recordings.infer.scenario import infer_job
from sim.recordings.observe.measured import Measured
from sim.recordings.source.recording import FORMAT
from sim.recordings.source.rest.answers import parsed
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.recordings.source.rest.snapshot import Snapshot

__all__ = ["to_recording"]

SHIPS = {"HASH": "keyby", "REBALANCE": "rebalance", "RESCALE": "rescale", "BROADCAST": "broadcast", "FORWARD": "forward"}


def to_recording(snapshot: Snapshot, name: str = "") -> Measured:
    """RecordingError: the answers make no sense.  `name`: default is that of the job."""
    job = RestJob(snapshot)
    begun_ms, ended_ms = _window(job)
    config = {
        "name": (name or job.job.name or job.job.jid)[:200],
        "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "nodes": [_node(vertex) for vertex in job.vertices],
    }
    return parsed(Measured, _told(job, config, begun_ms, ended_ms), snapshot.source, "the job")


def _told(job: RestJob, config: dict[str, Any], begun_ms: int, ended_ms: int) -> dict[str, Any]:
    return {
        "format": FORMAT, "name": config["name"], "flink_version": job.flink_version, "config": config,
        "started_ms": begun_ms, "ended_ms": ended_ms, "final_state": job.job.state,
        "checkpoints": {"counts": dict(job.counts), "list": job.checkpoints},
        "metrics": {vertex.name: _metrics(job, vertex) for vertex in job.vertices}, "inference": infer_job(job),
    }  # fmt: skip


def _node(vertex: RestVertex) -> dict[str, Any]:
    inputs = [{"from": edge.upstream, "exchange": SHIPS.get(edge.ship, "rebalance")} for edge in vertex.inputs]
    kind = "source" if not inputs else "join" if len(inputs) > 1 else "op"
    commits = any("Committer" in operator for operator in vertex.chain)
    return {
        "id": vertex.name, "kind": kind, "parallelism": vertex.parallelism, "inputs": inputs,
        "commit": "independent" if commits else "none",
    }  # fmt: skip


def _window(job: RestJob) -> tuple[int, int]:
    """What was watched: from the first checkpoint or sample there is to the last."""
    points = [point for point in job.checkpoints if point.end_to_end_duration >= 0]
    times = [*job.snapshot.samples, *(point.trigger_timestamp for point in points)]
    times += [point.trigger_timestamp + point.end_to_end_duration for point in points]
    return (min(times), max(times)) if times else (job.job.start_time, job.job.start_time + max(job.job.duration, 0))


def _metrics(job: RestJob, vertex: RestVertex) -> dict[str, list[Any]]:
    """As the recorder lays them out: times, and for each metric the values of the subtasks at each of them."""
    told = series(job, vertex)
    times = sorted({time_ms for samples in told.values() for time_ms, _ in samples})
    table: dict[str, list[Any]] = {"t": times}
    for name, samples in told.items():
        values = dict(samples)
        short = name.removeprefix("Shuffle.Netty.")
        table[short] = [[None if value != value else value for value in values[t]] if t in values else None for t in times]  # noqa: PLR0124 -- NaN
    return table

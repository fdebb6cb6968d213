"""A job that was measured but not configured by us, of REST answers or of a log: its observations, and the scenario inferred from them.

That scenario knows the measurements, the observed checkpoints included.  Comparing it with the same measurements only shows whether
the model reproduces the job that it was made from.  Of its configuration the graph alone is known, and its operators log no events.
A log has no subtasks and no metrics, either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from sim.recordings.infer.draft import Inference
from sim.recordings.infer.flows import series
from sim.recordings.infer.log import infer_log
from sim.recordings.infer.scenario import infer_job
from sim.recordings.source.graph import check_graph
from sim.recordings.source.job_log import JobLog, LogCheckpoint
from sim.recordings.source.recorded_job import RecordedJob
from sim.recordings.source.rest.answers import parsed
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.recordings.source.rest.snapshot import RestSnapshot
from sim.scenario.job.document import upstream_of

COMPARED_TIMEOUT = "1 s"


Name = Annotated[str, Field(min_length=1, max_length=200)]


class MeasuredInput(BaseModel):
    """An input of a measured vertex."""

    model_config = ConfigDict(frozen=True)

    upstream: Name
    exchange: str = "hash"


class MeasuredVertex(BaseModel):
    """A vertex of a measured job."""

    model_config = ConfigDict(frozen=True)

    id: Name
    parallelism: Annotated[int, Field(ge=1, le=32768)]
    inputs: tuple[MeasuredInput, ...] = ()
    commits: bool = False

    @property
    def is_even(self) -> bool:
        """True: no source tells of weights."""
        return True


class Measured(RecordedJob):
    """A job that was measured and not configured by the recorder."""

    name: Name
    duration_s: Annotated[float, Field(gt=0, le=1e7)]  # as long as the job was watched
    graph: Annotated[tuple[MeasuredVertex, ...], Field(min_length=1)]
    inference: InstanceOf[Inference]

    @model_validator(mode="after")
    def _is_a_graph(self) -> Self:
        check_graph(self.graph)
        return self

    @property
    def vertices(self) -> Sequence[MeasuredVertex]:
        return self.graph


def compared(inference: Inference) -> Inference:
    """The scenario of the job with three kinds of barriers, its own first."""
    checkpoint = dict(inference.document["checkpoint"])
    own = checkpoint.get("barriers")
    timeout = own["aligned-timeout"] if isinstance(own, dict) else COMPARED_TIMEOUT
    kinds: list[Any] = ["aligned", "unaligned", {"aligned-timeout": timeout}]
    checkpoint["barriers"] = sorted(kinds, key=lambda kind: kind != own)
    lost = list(inference.not_modelled)
    if checkpoint.pop("max-concurrent", None):
        lost.append("several checkpoints at once: Flink runs unaligned ones one by one, so all are compared that way")
    comments = {key: text for key, text in inference.comments.items() if key not in ("checkpoint.barriers", "checkpoint.max-concurrent")}
    return replace(inference, document=inference.document | {"checkpoint": checkpoint}, comments=comments, not_modelled=tuple(lost))


def to_log_recording(log: JobLog, name: str = "") -> Measured:
    """The recorded job of a log.  Its durations include the writing of metadata: a log has no others."""
    inference = infer_log(log)
    points = [point for _, point in sorted(log.checkpoints.items()) if point.triggered_ms >= 0]
    ends = [point.triggered_ms + max(point.duration_ms, 0) for point in points] or [0]
    begun_ms, ended_ms = min((point.triggered_ms for point in points), default=0), max(ends)
    counts = {status.lower(): sum(point.status == status for point in points) for status in ("COMPLETED", "FAILED", "IN_PROGRESS")}
    seen = {
        "name": (name or log.job)[:200], "flink_version": log.version,
        "started_ms": begun_ms, "ended_ms": ended_ms, "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "failures": log.failures, "ran_ms": max(log.ended_ms - log.running_ms, 0) if log.running_ms >= 0 else 0,
        "graph": [_vertex(vertex, details) for vertex, details in inference.document["job"].items()], "inference": inference,
        "checkpoints": {"counts": counts, "list": [_checkpoint(point) for point in points]},
    }  # fmt: skip
    return parsed(Measured, seen, log.source, "the checkpoints of the log")


def _vertex(name: str, details: dict[str, Any]) -> dict[str, Any]:
    upstreams = [upstream_of(key, given) for key, given in details.get("input", {}).items()]
    return {"id": name, "parallelism": details["parallelism"], "inputs": [{"upstream": upstream} for upstream in upstreams]}


def _checkpoint(point: LogCheckpoint) -> dict[str, Any]:
    acknowledged = point.triggered_ms + point.duration_ms if point.status == "COMPLETED" else -1
    return {
        "id": point.id, "status": point.status, "is_savepoint": point.is_savepoint, "trigger_timestamp": point.triggered_ms,
        "latest_ack_timestamp": acknowledged, "end_to_end_duration": point.duration_ms, "state_size": point.size_bytes,
        "failure_message": point.reason,
    }  # fmt: skip


def to_recording(snapshot: RestSnapshot, name: str = "") -> Measured:
    """The recorded job of a snapshot; `name` defaults to that of the job.  RecordingError: the answers contradict each other."""
    job = RestJob(snapshot)
    begun_ms, ended_ms = _window(job)
    seen = {
        "name": (name or job.job.name or job.job.jid)[:200], "flink_version": job.flink_version,
        "started_ms": begun_ms, "ended_ms": ended_ms, "duration_s": max((ended_ms - begun_ms) / 1000, 1), "final_state": job.job.state,
        "failures": len(job.failures_ms), "ran_ms": max(job.job.now - _begun_ms(job), 0),
        "graph": [_measured_vertex(vertex) for vertex in job.vertices],
        "checkpoints": {"counts": dict(job.counts), "list": job.checkpoints},
        "metrics": {vertex.name: _metrics(job, vertex) for vertex in job.vertices}, "inference": infer_job(job),
    }  # fmt: skip
    return parsed(Measured, seen, snapshot.source, "the job")


def _measured_vertex(vertex: RestVertex) -> dict[str, Any]:
    inputs = [{"upstream": edge.upstream, "exchange": edge.ship.lower() or "rebalance"} for edge in vertex.inputs]
    commits = any("Committer" in operator for operator in vertex.chain)
    return {"id": vertex.name, "parallelism": vertex.parallelism, "inputs": inputs, "commits": commits}


KEPT_EXCEPTIONS = 16
"""web.exception-history-size, by default: of more failures the first are not known."""


def _begun_ms(job: RestJob) -> int:
    """Since when all failures of the job are known."""
    failures = job.failures_ms
    return failures[0] if len(failures) >= KEPT_EXCEPTIONS else max(job.job.start_time, 0)


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

"""The checkpoints of a log as a recorded job: the same table of checkpoints, without subtasks and metrics."""

from __future__ import annotations

from typing import Any

from sim.recordings.infer.log import infer_log
from sim.recordings.observe.measured import Measured
from sim.recordings.source.job_log import JobLog, LogCheckpoint
from sim.recordings.source.rest.answers import parsed
from sim.scenario.job.document import upstream_of


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

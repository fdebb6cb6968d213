"""A source of any kind that `import` reads -> the history of its checkpoints.  What a source lacks is left empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict

from sim.history.equal_sizes import sharing_of_job
from sim.history.garbage import garbage_of
from sim.history.history import History, SubtaskId, ThreadShares
from sim.model.randomness.contention import slowdown
from sim.recordings import ConfiguredJob, JobLog, RestSnapshot
from sim.recordings.infer.cores import cores_used_by, threads_block
from sim.recordings.infer.options import NEVER_MS
from sim.recordings.infer.storage import inline_bytes
from sim.recordings.infer.windows.plan import planned_window
from sim.recordings.reading import RecordingSource
from sim.recordings.source.job_log import LogCheckpoint
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.answers import Totals, parsed, with_tasks
from sim.recordings.source.rest.job import RestJob
from sim.recordings.source.silence import Silence, log_remarks, silence_of_job, silence_of_log

_KEPT = "web.checkpoints.history"
_SCARCE = 1.2
"""Records that take so many times as long as on idle cores are spoken about."""


def history_of(source: RecordingSource) -> History:
    """RecordingError: the answers contradict each other, or the job is missing."""
    match source:
        case RestSnapshot():
            return _of_answers(source)
        case ConfiguredJob():
            return source.history()  # type: ignore[no-any-return]
        case JobLog():
            return _of_log(source)


# ------------------------------------------------------------------------------------------------------- Flink's REST API


class _Listed(BaseModel):
    """The answer to /jobs/:id/checkpoints."""

    model_config = ConfigDict(extra="ignore")

    history: tuple[RecordedCheckpoint, ...] = ()


def _of_answers(snapshot: RestSnapshot) -> History:
    job = RestJob(snapshot)
    known = {point.id: point for point in job.checkpoints}
    listed = {point.id: point for point in _listed(snapshot) if point.id not in known}
    places = [(vertex, place) for vertex, details in job.details.items() for place in details.subtasks]
    kept = job.options.get(_KEPT, "")
    points = tuple(point for _, point in sorted((listed | known).items()))
    return History(
        job.job.name or job.job.jid, job.flink_version, job.vertices, points,
        job.checkpoint_config,
        {(vertex, place.subtask): name for vertex, place in places if (name := place.taskmanager_id or place.endpoint or place.host)},
        {(vertex, place.subtask): read for vertex, place in places if (read := place.metrics.read_records) is not None},
        {(vertex, place.subtask): thread for vertex, place in places if (thread := _thread(place.metrics)) is not None},
        {vertex.name: window for vertex in job.vertices if (window := planned_window(vertex.description)) is not None},
        job.failures_ms, int(kept) if kept.isdecimal() else None, job.counts.get("restored", 0),
        job.counts.get("total", 0), {name: garbage_of(collectors) for name, collectors in job.collectors.items()},
        max(0, job.job.now - job.job.start_time) if job.job.start_time > 0 else 0,
        _silence(job, points), job.slowest_ms, (), tuple(filter(None, [sharing_of_job(job, points, inline_bytes(job))])),
        _contention(job, {(vertex, place.subtask): place.taskmanager_id for vertex, place in places}),
    )  # fmt: skip


def _silence(job: RestJob, points: tuple[RecordedCheckpoint, ...]) -> Silence | None:
    if job.job.state != "RUNNING":
        return None
    interval_ms = 0 if job.checkpoint_config is None else job.checkpoint_config.interval
    return silence_of_job(points, job.job.now, interval_ms if 0 < interval_ms < NEVER_MS else 0)


def _contention(job: RestJob, places: Mapping[SubtaskId, str | None]) -> str:
    """A sentence about the host whose task threads wait longest for its cores; empty: none does."""
    managers = {manager.id: manager for manager in job.task_managers}
    busy: dict[str, list[float]] = {}
    cores: dict[str, int] = {}
    for vertex, details in job.details.items():
        for place in details.subtasks:
            manager, thread = managers.get(places[vertex, place.subtask] or ""), _thread(place.metrics)
            if manager is not None and thread is not None and manager.hardware.cpu_cores > 0:
                busy.setdefault(manager.address, []).append(thread.busy)
                cores[manager.address] = min(manager.hardware.cpu_cores, cores.get(manager.address, manager.hardware.cpu_cores))
    slower = {host: slowdown(shares, cores[host]) for host, shares in busy.items()}
    worst = max(slower, key=lambda host: slower[host], default=None)
    if worst is None or slower[worst] < _SCARCE:
        return ""
    where = f"{cores[worst]} core{'s' if cores[worst] > 1 else ''}{'' if len(busy) == 1 else ' of one host'}"
    used = cores_used_by(job, {name for name in places.values() if name in managers and managers[name].address == worst})
    if used is not None and threads_block(used, sum(busy[worst]), slower[worst]):
        return ""
    doubt = " It is not so if tasks block or sleep: Flink counts that as busy, too."
    return (
        f"Cores are scarce: {sum(busy[worst]):.2g} threads of tasks are busy at once on the {where}, so records take "
        f"{slower[worst]:.2g} times as long as on idle ones, "
        f"and other work of the host waits as well.{doubt if used is None else ''}"
    )


def _thread(totals: Totals) -> ThreadShares | None:
    """The times of a thread.  None: Flink did not say, as before 1.16."""
    times = totals.busy_ms, totals.idle_ms, totals.backpressured_ms
    if any(time is None for time in times) or not (spent := sum(time or 0 for time in times)):
        return None
    return ThreadShares((totals.busy_ms or 0) / spent, (totals.backpressured_ms or 0) / spent, totals.busy_ms or 0)


def _listed(snapshot: RestSnapshot) -> Iterator[RecordedCheckpoint]:
    """What the overview says of checkpoints; their subtasks are not in it."""
    answer = snapshot.of_job("/checkpoints")
    if not isinstance(answer, dict):
        return
    path = f"/jobs/{snapshot.job}/checkpoints"
    rows = answer.get("history", ())
    bare = [with_tasks(row, {}) for row in rows] if isinstance(rows, list) else rows
    yield from parsed(_Listed, answer | {"history": bare}, snapshot.source, path).history


# ------------------------------------------------------------------------------------------------------- other sources


def _of_log(log: JobLog) -> History:
    points = tuple(_of_line(point) for _, point in sorted(log.checkpoints.items()) if point.triggered_ms >= 0)
    return History(
        log.name or log.job, log.version, (), points, restored=log.restored, counted=len(points), silence=silence_of_log(log),
        remarks=tuple(log_remarks(log)),
    )  # fmt: skip


def _of_line(point: LogCheckpoint) -> RecordedCheckpoint:
    fields = {
        "id": point.id, "status": point.status, "is_savepoint": point.is_savepoint, "trigger_timestamp": point.triggered_ms,
        "end_to_end_duration": point.duration_ms, "state_size": point.size_bytes, "failure_message": point.reason,
    }  # fmt: skip
    return parsed(RecordedCheckpoint, fields, "log", f"checkpoint {point.id}")

"""One look at a job: what the answers of its JobManager say, as plain values.  Times are epoch milliseconds by the JobManager's clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from sim.foreign import one_line
from sim.history.profile import spent
from sim.history.reading import history_of
from sim.recordings.source.files import RecordingError
from sim.recordings.source.rest.job import RestJob
from sim.units import MS

if TYPE_CHECKING:
    from sim.history.history import History
    from sim.recordings import RestSnapshot
    from sim.recordings.source.recorded_job import RecordedCheckpoint

N = TypeVar("N", int, float)

LAST_TIME_MS = 253_402_300_799_000
"""The end of the year 9999: later times are no times, whatever sent them."""
_MAX_ID = 2**63 - 1

MOST_NEW = 100
"""Checkpoints of one look, the newest: Flink keeps ten (web.checkpoints.history)."""
MOST_NAMED = 20
"""Parts and vertices that are kept of a checkpoint: the largest."""
_LONGEST_REASON = 160
"""Characters of a failure that are kept."""


@dataclass(frozen=True, slots=True)
class SeenCheckpoint:
    """A checkpoint that has ended."""

    job: str
    number: int
    status: str  # COMPLETED or FAILED
    trigger_ms: int
    duration_ms: float
    is_savepoint: bool = False
    checkpointed_bytes: float = -1
    full_bytes: float = -1
    failure: str = ""
    state: Mapping[str, float] = field(default_factory=dict)  # vertex -> bytes of the full state
    parts_ms: Mapping[str, float] = field(default_factory=dict)  # part of the critical path -> its time

    @property
    def ended_ms(self) -> float:
        return self.trigger_ms + max(self.duration_ms, 0)


@dataclass(frozen=True, slots=True)
class VertexTotals:
    """What a vertex has counted since its start; None: Flink does not say."""

    read: float | None
    written: float | None
    busy_ms: float | None
    idle_ms: float | None
    pressed_ms: float | None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a job."""

    time_ms: int
    job: str
    name: str
    state: str  # of the job, in Flink's word
    started_ms: int
    version: str
    parallelism: Mapping[str, int]  # vertex -> subtasks
    sources: tuple[str, ...]
    settings: Mapping[str, Mapping[str, str]]  # of checkpoints, and of the cluster; without those that had no answer
    task_managers: int  # 0: not known
    restored: int | None  # how often the job began again from a checkpoint
    failures_ms: tuple[int, ...] | None
    totals: Mapping[str, VertexTotals]
    checkpoints: tuple[SeenCheckpoint, ...]  # that ended and were not seen before, oldest first
    implausible: tuple[str, ...] = ()  # why other checkpoints are left out
    listed: tuple[int, int] = (0, 0)  # how many checkpoints Flink lists, also those under way, and the number of the oldest

    def after(self, before: Look) -> Look:
        """What had no answer is as it was."""
        if before.job != self.job:
            return self
        return replace(
            self, version=self.version or before.version, settings={**before.settings, **self.settings},
            task_managers=self.task_managers or before.task_managers, restored=before.restored if self.restored is None else self.restored,
            failures_ms=before.failures_ms if self.failures_ms is None else self.failures_ms,
        )  # fmt: skip


def look_of(snapshot: RestSnapshot, now_ms: int, seen: Collection[int] = ()) -> Look:
    """`now_ms`: our clock, where the JobManager does not say.  RecordingError: the answers make no sense."""
    job, history = RestJob(snapshot), history_of(snapshot)
    about = job.job
    if not all(0 <= at_ms <= LAST_TIME_MS for at_ms in (max(about.now, 0), max(about.start_time, 0), *(history.failures_ms or ()))):
        raise RecordingError(f"job {snapshot.job[:8]}: a time is outside of the years 1970 to 9999")
    ended = [point for point in history.checkpoints if point.status != "IN_PROGRESS" and point.id not in seen]
    wrong = [point for point in ended if _implausible(point)]
    ended = [point for point in ended if not _implausible(point)]
    rows = [row for row in (snapshot.of_job("/checkpoints") or {}).get("history") or () if isinstance(row, dict)]
    numbers = [number for row in rows if isinstance(number := row.get("id"), int) and 0 < number <= _MAX_ID]
    vertices = {vertex.id: vertex for vertex in job.vertices}
    settings = {"cluster": {one_line(key): one_line(value) for key, value in job.options.items()}}
    if job.checkpoint_config is not None:
        settings["checkpoints"] = {key: one_line(value) for key, value in job.checkpoint_config.model_dump().items() if value is not None}
    return Look(
        about.now if about.now >= 0 else now_ms, snapshot.job, one_line(about.name), one_line(about.state, 20), about.start_time,
        one_line(job.flink_version, 20), {vertex.name: vertex.parallelism for vertex in job.vertices},
        tuple(vertex.name for vertex in job.vertices if not vertex.inputs),
        {name: group for name, group in settings.items() if group}, len(job.task_managers),
        None if snapshot.of_job("/checkpoints") is None else history.restored,
        None if snapshot.of_job("/exceptions") is None else history.failures_ms,
        {
            vertices[row.id].name: VertexTotals(
                row.metrics.read_records, row.metrics.write_records, row.metrics.busy_ms, row.metrics.idle_ms, row.metrics.backpressured_ms
            )
            for row in about.vertices
        },
        tuple(_seen(history, point, snapshot.job) for point in ended[-MOST_NEW:]),
        tuple(_implausible(point) for point in wrong[:3]), (len(numbers), min(numbers, default=0)),
    )  # fmt: skip


def _implausible(point: RecordedCheckpoint) -> str:
    """Why its number or time cannot be kept; empty: they can.  A server may send anything."""
    if not 0 < point.id <= _MAX_ID:
        return f"checkpoint {point.id}: no checkpoint has this number"
    if not 0 <= point.trigger_timestamp <= LAST_TIME_MS:
        return f"checkpoint {point.id}: trigger {point.trigger_timestamp} is outside of the years 1970 to 9999"
    return ""


def since(snapshot: RestSnapshot, trigger_ms: int) -> RestSnapshot:
    """Without the details of checkpoints that were triggered earlier: they are of a job with other settings."""
    start = f"/jobs/{snapshot.job}/checkpoints/details/"
    earlier = {
        path.removeprefix(start)
        for path, answer in snapshot.answers.items()
        if path.startswith(start)
        and isinstance(answer, dict)
        and isinstance(at := answer.get("trigger_timestamp"), int)
        and at < trigger_ms
    }
    kept = {path: answer for path, answer in snapshot.answers.items() if path.removeprefix(start).partition("/")[0] not in earlier}
    return replace(snapshot, answers=kept)


def _seen(history: History, point: RecordedCheckpoint, job: str) -> SeenCheckpoint:
    state = {
        one_line(vertex): float(sum(max(subtask.state_size, 0) for subtask in task.subtasks)) for vertex, task in point.tasks.items()
    }  # fmt: skip
    return SeenCheckpoint(
        job, point.id, point.status, point.trigger_timestamp, float(point.end_to_end_duration), point.is_savepoint,
        float(point.checkpointed_size), float(point.state_size), one_line(point.failure_message, _LONGEST_REASON), _largest(state),
        _largest(_parts_ms(history, point)) if point.tasks and point.status == "COMPLETED" else {},
    )  # fmt: skip


def _parts_ms(history: History, point: RecordedCheckpoint) -> dict[str, float]:
    """``{"alignment of count": 120.0}``"""
    return {
        f"{kind.value} of {one_line(vertex, 40)}" if vertex else kind.value: ns / MS for (kind, vertex), ns in spent(history, point).items()
    }


def _largest(values: Mapping[str, N]) -> dict[str, N]:
    """The largest values, largest first."""
    return dict(sorted(values.items(), key=lambda pair: -pair[1])[:MOST_NAMED])

"""One look at a running job: circumstances, and what changed since the last one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from sim.jobs.history.in_common import spent
from sim.jobs.history.reading import history_of
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_job import RestJob
from sim.jobs.watch.forecast import Circumstances
from sim.model.text import one_line
from sim.model.units import MS
from sim.results.formats import bytes_text, ms_text, per_second_text, share_text

if TYPE_CHECKING:
    from sim.jobs.history.history import History
    from sim.jobs.source.recorded_job import RecordedCheckpoint
    from sim.jobs.source.rest_answers import RestSnapshot


# One look at a job: what the answers of its JobManager say, as plain values.  Times are epoch milliseconds by the JobManager's clock.

N = TypeVar("N", int, float)

LAST_TIME_MS = 253_402_300_799_000
"""The end of the year 9999: later times are no times, whatever sent them."""
_MAX_ID = 2**63 - 1

MAX_NEW = 100
"""Checkpoints of one look, the newest: Flink keeps ten (web.checkpoints.history)."""
MAX_NAMED = 20
"""Parts and vertices that are kept of a checkpoint: the largest."""
_MAX_REASON = 160
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
class JobObservation:
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
    # how many checkpoints Flink lists, also those under way, and the number of the oldest
    listed: tuple[int, int] = (0, 0)

    def after(self, before: JobObservation) -> JobObservation:
        """What had no answer is as it was."""
        if before.job != self.job:
            return self
        return replace(
            self,
            version=self.version or before.version,
            settings={**before.settings, **self.settings},
            task_managers=self.task_managers or before.task_managers,
            restored=before.restored if self.restored is None else self.restored,
            failures_ms=before.failures_ms if self.failures_ms is None else self.failures_ms,
        )


def look_of(snapshot: RestSnapshot, now_ms: int, seen: Collection[int] = ()) -> JobObservation:
    """`now_ms`: our clock, where the JobManager does not say.  RecordingError: the answers make no sense."""
    job, history = RestJob(snapshot), history_of(snapshot)
    about = job.job
    if not all(
        0 <= at_ms <= LAST_TIME_MS
        for at_ms in (max(about.now, 0), max(about.start_time, 0), *(history.failures_ms or ()))
    ):
        raise RecordingError(f"job {snapshot.job[:8]}: a time is outside of the years 1970 to 9999")
    ended = [point for point in history.checkpoints if point.status != "IN_PROGRESS" and point.id not in seen]
    wrong = [point for point in ended if _implausible(point)]
    ended = [point for point in ended if not _implausible(point)]
    rows = [row for row in (snapshot.of_job("/checkpoints") or {}).get("history") or () if isinstance(row, dict)]
    numbers = [number for row in rows if isinstance(number := row.get("id"), int) and 0 < number <= _MAX_ID]
    vertices = {vertex.id: vertex for vertex in job.vertices}
    settings = {"cluster": {one_line(key): one_line(value) for key, value in job.options.items()}}
    if job.checkpoint_config is not None:
        settings["checkpoints"] = {
            key: one_line(value) for key, value in job.checkpoint_config.model_dump().items() if value is not None
        }
    return JobObservation(
        about.now if about.now >= 0 else now_ms,
        snapshot.job,
        one_line(about.name),
        one_line(about.state, 20),
        about.start_time,
        one_line(job.flink_version, 20),
        {vertex.name: vertex.parallelism for vertex in job.vertices},
        tuple(vertex.name for vertex in job.vertices if not vertex.inputs),
        {name: group for name, group in settings.items() if group},
        len(job.task_managers),
        None if snapshot.of_job("/checkpoints") is None else history.restored,
        None if snapshot.of_job("/exceptions") is None else history.failures_ms,
        {
            vertices[row.id].name: VertexTotals(
                row.metrics.read_records,
                row.metrics.write_records,
                row.metrics.busy_ms,
                row.metrics.idle_ms,
                row.metrics.backpressured_ms,
            )
            for row in about.vertices
        },
        tuple(_seen(history, point, snapshot.job) for point in ended[-MAX_NEW:]),
        tuple(_implausible(point) for point in wrong[:3]),
        (len(numbers), min(numbers, default=0)),
    )


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
    kept = {
        path: answer
        for path, answer in snapshot.answers.items()
        if path.removeprefix(start).partition("/")[0] not in earlier
    }
    return replace(snapshot, answers=kept)


def _seen(history: History, point: RecordedCheckpoint, job: str) -> SeenCheckpoint:
    state = {
        one_line(vertex): float(sum(max(subtask.state_size, 0) for subtask in task.subtasks))
        for vertex, task in point.tasks.items()
    }
    return SeenCheckpoint(
        job,
        point.id,
        point.status,
        point.trigger_timestamp,
        float(point.end_to_end_duration),
        point.is_savepoint,
        float(point.checkpointed_size),
        float(point.state_size),
        one_line(point.failure_message, _MAX_REASON),
        _largest(state),
        _largest(_parts_ms(history, point)) if point.tasks and point.status == "COMPLETED" else {},
    )


def _parts_ms(history: History, point: RecordedCheckpoint) -> dict[str, float]:
    """``{"alignment of count": 120.0}``"""
    return {
        f"{kind.value} of {one_line(vertex, 40)}" if vertex else kind.value: ns / MS
        for (kind, vertex), ns in spent(history, point).items()
    }


def _largest(values: Mapping[str, N]) -> dict[str, N]:
    """The largest values, largest first."""
    return dict(sorted(values.items(), key=lambda pair: -pair[1])[:MAX_NAMED])


# ---- What changed about a job between two looks: that is said, and no forecast is held to it.

MAX_SETTINGS = 5
"""Changed settings that are named; of more their number is said."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change, in words.  `is_other_job`: forecasts of the job as it was do not speak of it."""

    text: str
    kind: str  # one of job, settings, rescale, restart, cluster
    is_other_job: bool = False


def changes(before: JobObservation, now: JobObservation) -> list[JobChange]:
    return list(_changes(before, now))


def _changes(before: JobObservation, now: JobObservation) -> Iterator[JobChange]:
    if before.job != now.job:
        yield JobChange(
            f"job {before.job[:8]} is gone; '{now.name}' runs as job {now.job[:8]}, which is watched from now on",
            "job",
            True,
        )
    if before.version != now.version and before.version and now.version:
        yield JobChange(f"Flink {before.version} became {now.version}", "settings", True)
    if set(before.parallelism) != set(now.parallelism):
        yield JobChange(f"the job has other vertices: {', '.join(now.parallelism)}", "job", True)
    elif rescaled := _differing(
        {k: str(v) for k, v in before.parallelism.items()}, {k: str(v) for k, v in now.parallelism.items()}
    ):
        yield JobChange(f"rescaled: {', '.join(rescaled)}", "rescale", True)
    groups = [
        _differing(before.settings[name], group) for name, group in now.settings.items() if name in before.settings
    ]
    if settings := [line for lines in groups for line in lines]:
        rest = f" and {len(settings) - MAX_SETTINGS} more" if len(settings) > MAX_SETTINGS else ""
        yield JobChange(f"settings changed: {', '.join(settings[:MAX_SETTINGS])}{rest}", "settings", True)
    if before.job == now.job:
        yield from _restarts(before, now)
    if before.task_managers != now.task_managers and before.task_managers and now.task_managers:
        yield JobChange(f"TaskManagers: {before.task_managers} -> {now.task_managers}", "cluster")


def begun_again(before: JobObservation, now: JobObservation) -> int:
    """How often the job failed or was restored between two looks."""
    earlier = max(before.failures_ms or (), default=before.started_ms)
    failures = 0 if before.failures_ms is None else sum(at > earlier for at in now.failures_ms or ())
    restored = 0 if before.restored is None else (now.restored or 0) - before.restored
    return max(failures, restored, int(before.started_ms != now.started_ms), 0)


def _restarts(before: JobObservation, now: JobObservation) -> Iterator[JobChange]:
    if count := begun_again(before, now):
        rescaled = "its rescaling, " if before.parallelism != now.parallelism else ""
        often = "" if count == 1 else f", {count} times"
        yield JobChange(f"the job began again{often}: {rescaled}a failure, or a restart of the JobManager", "restart")
    if before.state != now.state:
        yield JobChange(f"the job is {now.state} (before: {before.state})", "job")


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """``interval 10000 -> 30000`` of each that differs."""
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} {before.get(name, 'unset')} -> {now.get(name, 'unset')}"
        for name in names
        if before.get(name) != now.get(name)
    ]


# ---- What a job does between two looks, what it did over many of them, and in which of that two times differ.

EQUAL_LOAD_FACTOR = 1.3
"""Flink's counters are up to 10 s old: loads of a minute that differ by a smaller factor are alike."""
_GROWN = 1.2
"""State that differs by a smaller factor is alike."""
_FULL = 0.2
"""A thread is busier if it is by so much of its time."""
_NOTABLE_MS = 20.0
"""Parts that grow by less are noise of a machine."""
MAX_CAUSES = 3


@dataclass(frozen=True, slots=True)
class MeasuredLook:
    """What a job did between two looks."""

    time_ms: int
    seconds: float  # between the two
    load: Mapping[str, float]
    busy: Mapping[str, float]
    pressed: Mapping[str, float]


def has_new_counters(before: JobObservation, now: JobObservation) -> bool:
    """Whether Flink has fetched counters of the job's tasks in between.  A running thread's times grow also where no record comes.

    Flink:  MetricFetcherImpl.  It asks its TaskManagers at a look, and shows what they answer at the next one.  What
    they do not answer in time is as it was.
    """
    return before.job != now.job or before.totals != now.totals


def measured(before: JobObservation, now: JobObservation) -> MeasuredLook | None:
    """What was counted in between.  None: no time has passed by the JobManager's clock, or the job has begun again in between."""
    passed_s = (now.time_ms - before.time_ms) / 1e3
    if passed_s <= 0 or before.job != now.job or begun_again(before, now) or before.parallelism != now.parallelism:
        return None
    load: dict[str, float] = {}
    busy: dict[str, float] = {}
    pressed: dict[str, float] = {}
    for vertex, totals in now.totals.items():
        earlier = before.totals.get(vertex)
        if earlier is None:
            continue
        written = _grown(earlier.written, totals.written)
        if vertex in now.sources and written is not None:
            load[vertex] = written / passed_s
        spent = [
            _grown(earlier.busy_ms, totals.busy_ms),
            _grown(earlier.idle_ms, totals.idle_ms),
            _grown(earlier.pressed_ms, totals.pressed_ms),
        ]
        times = [time for time in spent if time is not None]
        if len(times) == len(spent) and sum(times) > 0:
            busy[vertex], pressed[vertex] = times[0] / sum(times), times[2] / sum(times)
    return MeasuredLook(now.time_ms, passed_s, load, busy, pressed)


def over(rows: Sequence[MeasuredLook], checkpoints: Sequence[SeenCheckpoint]) -> Circumstances:
    """The means of several looks, as long as each lasts, for a counter that comes late is caught up; the medians of checkpoints."""
    done = [point for point in checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return Circumstances(
        _means([(row.seconds, row.load) for row in rows]),
        _means([(row.seconds, row.busy) for row in rows]),
        _means([(row.seconds, row.pressed) for row in rows]),
        _medians(point.state for point in done),
        _medians((point.parts_ms for point in done if point.parts_ms), fill=True),
    )


@dataclass(frozen=True, slots=True)
class Cause:
    """What is different, in words."""

    text: str
    factor: float  # of load or state; 1: neither
    vertex: str = ""
    kind: str = ""  # load, state, thread, part


def causes(usual: Circumstances, now: Circumstances, sign: int = 1) -> list[Cause]:
    """What was changed from outside first, then what follows from it: threads, and the part of a checkpoint that grew most.

    `sign`: -1 for checkpoints that are shorter, so threads that work less, and the part that shrank most.
    """
    found = [
        Cause(
            f"load of '{name}' {times_text(factor)} ({per_second_text(was)} -> {per_second_text(is_)})",
            factor,
            name,
            "load",
        )
        for name, was, is_, factor in _ratios(usual.load, now.load, EQUAL_LOAD_FACTOR)
    ]
    found += [
        Cause(f"state of '{name}' {times_text(factor)} ({bytes_text(was)} -> {bytes_text(is_)})", factor, name, "state")
        for name, was, is_, factor in _ratios(usual.state, now.state, _GROWN)
    ]
    found = found[:MAX_CAUSES]
    busier = _largest_difference(usual.busy, now.busy, _FULL, sign, usual.busy.keys() & now.busy.keys())
    found += [
        Cause(
            f"threads of '{name}' work {share_text(is_)} of the time (before: {share_text(was)})", 1.0, name, "thread"
        )
        for name, was, is_ in busier
    ]
    parts = (usual.parts_ms.keys() | now.parts_ms.keys()) if usual.parts_ms and now.parts_ms else ()
    longer = _largest_difference(usual.parts_ms, now.parts_ms, _NOTABLE_MS, sign, parts)
    what = "grew" if sign > 0 else "shrank"
    found += [
        Cause(f"of a checkpoint, {name} {what} most: {ms_text(is_)} (before: {ms_text(was)})", 1.0, "", "part")
        for name, was, is_ in longer
    ]
    return found


def unknown(usual: Circumstances, now: Circumstances) -> list[str]:
    """What cannot be compared: one of the two has none of it."""
    kinds = {"load": "load", "state": "state", "threads": "busy", "the parts of checkpoints": "parts_ms"}
    return [name for name, kind in kinds.items() if not (getattr(usual, kind) and getattr(now, kind))]


def times_text(factor: float) -> str:
    """``doubled``, ``is 1.4 times what it was``, ``halved``; ``fell to nothing``."""
    if factor in (0, inf):
        return "grew from nothing" if factor else "fell to nothing"
    if 1.8 <= factor <= 2.2:
        return "doubled"
    if 1 / 2.2 <= factor <= 1 / 1.8:
        return "halved"
    return f"is {factor:.2g} times what it was" if factor < 99.5 else f"is {factor:.0f} times what it was"


def _grown(before: float | None, now: float | None) -> float | None:
    """How much a counter has grown.  None: not known, or it was set back."""
    return now - before if before is not None and now is not None and now >= before >= 0 else None


def _means(rows: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The mean of each name over the rows that have it, by their weights."""
    names = dict.fromkeys(name for _, row in rows for name in row)
    return {
        name: sum(weight * row[name] for weight, row in rows if name in row)
        / sum(weight for weight, row in rows if name in row)
        for name in names
    }


def _medians(rows: Iterable[Mapping[str, float]], *, fill: bool = False) -> dict[str, float]:
    """The median of each name.  `fill`: a row without a name has 0 of it."""
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: float(median(row.get(name, 0.0) for row in listed if fill or name in row)) for name in names}


def _ratios(
    usual: Mapping[str, float], now: Mapping[str, float], alike: float
) -> list[tuple[str, float, float, float]]:
    """(name, before, now, factor) of what differs, by the largest factor first."""
    both = [(name, usual[name], value) for name, value in now.items() if name in usual and usual[name] != value]
    rows = [(name, was, value, value / was if was else inf) for name, was, value in both]
    return sorted(
        (row for row in rows if not 1 / alike < row[3] < alike),
        key=lambda row: -max(row[3], 1 / row[3] if row[3] else inf),
    )


def _largest_difference(
    usual: Mapping[str, float], now: Mapping[str, float], least: float, sign: int, names: Iterable[str]
) -> list[tuple[str, float, float]]:
    """(name, before, now) of what has grown most, or with a negative `sign` shrunk most; empty: none by so much."""
    rows = [(name, usual.get(name, 0.0), now.get(name, 0.0)) for name in sorted(names)]
    return sorted((row for row in rows if sign * (row[2] - row[1]) >= least), key=lambda row: sign * (row[1] - row[2]))[
        :1
    ]

"""Observe a running job, and compare the observation with the one before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, TypeVar

from sim.jobs.history.in_common import time_by_part
from sim.jobs.history.reading import history_of
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import Totals, list_names, rows_of
from sim.jobs.source.rest_job import RestJob
from sim.jobs.watch.forecast import Circumstances
from sim.model.text import one_line
from sim.model.units import MS

if TYPE_CHECKING:
    from sim.jobs.history.history import History
    from sim.jobs.source.recorded_job import RecordedCheckpoint
    from sim.jobs.source.rest_answers import RestSnapshot


# ---- An observation of a job, one per poll: values from the answers of its JobManager, with times of its clock [epoch ms].

N = TypeVar("N", int, float)

MAX_TIME_MS = 253_402_300_799_000
"""The end of the year 9999.  Later times are rejected as invalid."""
_MAX_ID = 2**63 - 1
"""The largest value of a Java long."""

MAX_NEW_CHECKPOINTS = 100
"""Maximum checkpoints of one observation; the newest are used.  By default Flink keeps ten (web.checkpoints.history)."""
MAX_NAMED_PARTS = 20
"""Maximum parts, and maximum vertices, that are stored of a checkpoint; the largest are used."""
_MAX_FAILURE_CHARS = 160


@dataclass(frozen=True, slots=True)
class SeenCheckpoint:
    """A checkpoint that has completed or failed.  Unknown numbers are -1."""

    job: str
    checkpoint: int
    status: str  # COMPLETED or FAILED
    trigger_ms: int
    duration_ms: float
    is_savepoint: bool = False
    checkpointed_bytes: float = -1
    full_bytes: float = -1
    failure: str = ""
    state_bytes: Mapping[str, float] = field(default_factory=dict)  # vertex -> its full state
    parts_ms: Mapping[str, float] = field(default_factory=dict)  # part of the critical path -> its time


@dataclass(frozen=True, slots=True)
class JobObservation:
    """One observation of a job."""

    time_ms: int
    job: str
    name: str
    state: str  # Flink's job status
    started_ms: int
    version: str
    parallelism: Mapping[str, int]  # by vertex
    sources: tuple[str, ...]
    settings: Mapping[str, Mapping[str, str]]  # "checkpoints" and "cluster"; a group is missing if its request failed
    task_managers: int  # their number; 0 if unknown
    restored: int | None  # number of restores; None if the request failed
    failures_ms: tuple[int, ...] | None  # times of task failures; None if the request failed
    totals: Mapping[str, Totals]  # counters of each vertex since its start
    checkpoints: tuple[SeenCheckpoint, ...]  # those that have ended since earlier observations, oldest first
    # Number of checkpoints that Flink lists, including those in progress, and the id of the oldest.
    listed: tuple[int, int] = (0, 0)

    def after(self, before: JobObservation) -> JobObservation:
        """Return this observation.  Values whose request failed are taken from the observation before."""
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


def observe_job(snapshot: RestSnapshot, now_ms: int, seen: Collection[int] = ()) -> JobObservation:
    """Return the observation that a snapshot contains.

    Args:
        snapshot: Answers of the JobManager.
        now_ms: Time of the local clock, used if the JobManager does not report its own.
        seen: Ids of checkpoints of earlier observations.

    Raises:
        RecordingError: An answer is invalid, for example a time after the year 9999.
    """
    job, history = RestJob(snapshot), history_of(snapshot)
    details = job.job
    if max(details.now, details.start_time, *history.failures_ms) > MAX_TIME_MS:
        raise RecordingError(f"job {snapshot.job[:8]}: a time is outside of the years 1970 to 9999")
    ended = [
        point
        for point in history.checkpoints
        if point.status != "IN_PROGRESS" and point.id not in seen
        if 0 < point.id <= _MAX_ID and 0 <= point.trigger_timestamp <= MAX_TIME_MS  # any server may answer
    ]
    ids = [row.get("id") for row in rows_of(snapshot.of_job("/checkpoints"), "history")]
    numbers = [number for number in ids if isinstance(number, int) and 0 < number <= _MAX_ID]
    names = {vertex.id: vertex.name for vertex in job.vertices}
    config = job.checkpoint_config
    checkpoint_config = config.model_dump(exclude_none=True) if config.is_known else {}
    settings = {"cluster": job.options, "checkpoints": checkpoint_config}
    return JobObservation(
        details.now if details.now >= 0 else now_ms,
        snapshot.job,
        one_line(details.name),
        one_line(details.state, 20),
        details.start_time,
        one_line(job.flink_version, 20),
        {vertex.name: vertex.parallelism for vertex in job.vertices},
        tuple(vertex.name for vertex in job.vertices if not vertex.inputs),
        {name: {one_line(k): one_line(v) for k, v in group.items()} for name, group in settings.items() if group},
        len(job.task_managers),
        None if snapshot.of_job("/checkpoints") is None else history.restored,
        None if snapshot.of_job("/exceptions") is None else history.failures_ms,
        {names[row.id]: row.metrics for row in details.vertices},
        tuple(_checkpoint_of(history, point, snapshot.job) for point in ended[-MAX_NEW_CHECKPOINTS:]),
        (len(numbers), min(numbers, default=0)),
    )


def with_checkpoints(snapshot: RestSnapshot, keeps: Callable[[Mapping[str, Any]], bool]) -> RestSnapshot:
    """Return the snapshot with only those checkpoints whose details (or rows in the history) `keeps` returns True for."""
    statistics = f"/jobs/{snapshot.job}/checkpoints"
    start = f"{statistics}/details/"
    left_out = {
        path.removeprefix(start)
        for path, answer in snapshot.answers.items()
        if path.startswith(start)
        and isinstance(answer, dict)
        and "/" not in path.removeprefix(start)
        and not keeps(answer)
    }
    answers = {
        path: answer
        for path, answer in snapshot.answers.items()
        if path.removeprefix(start).partition("/")[0] not in left_out
    }
    if isinstance(answer := answers.get(statistics), dict):
        answers[statistics] = {**answer, "history": [row for row in rows_of(answer, "history") if keeps(row)]}
    return replace(snapshot, answers=answers)


def without_earlier_checkpoints(snapshot: RestSnapshot, trigger_ms: int) -> RestSnapshot:
    """Return the snapshot without checkpoints triggered before `trigger_ms`, when the job had other settings."""
    return with_checkpoints(
        snapshot, lambda row: not (isinstance(at := row.get("trigger_timestamp"), int) and at < trigger_ms)
    )


def _checkpoint_of(history: History, point: RecordedCheckpoint, job: str) -> SeenCheckpoint:
    """Return the values of a checkpoint that a watch stores."""
    state = {
        one_line(vertex): float(sum(max(subtask.state_size, 0) for subtask in task.subtasks))
        for vertex, task in point.tasks.items()
    }
    parts_ms = {
        f"{kind.value} of {one_line(vertex, 40)}" if vertex else kind.value: ns / MS
        for (kind, vertex), ns in (time_by_part(history, point) if point.status == "COMPLETED" else {}).items()
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
        one_line(point.failure_message, _MAX_FAILURE_CHARS),
        _largest(state),
        _largest(parts_ms),
    )


def _largest(values: Mapping[str, N]) -> dict[str, N]:
    """Return the `MAX_NAMED_PARTS` largest values, in descending order."""
    return dict(sorted(values.items(), key=lambda pair: -pair[1])[:MAX_NAMED_PARTS])


# ---- Changes of a job between two observations: settings, parallelism, restarts.

MAX_NAMED_SETTINGS = 5


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of a job between two observations."""

    text: str
    kind: str  # one of job, settings, rescale, restart, cluster
    is_other_job: bool = False  # whether earlier forecasts no longer apply


def changes(before: JobObservation, now: JobObservation) -> Iterator[JobChange]:
    """Yield the changes of a job between two observations."""
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
    elif rescaled := _differing(before.parallelism, now.parallelism):
        yield JobChange(f"rescaled: {', '.join(rescaled)}", "rescale", True)
    groups = now.settings.keys() & before.settings.keys()
    if settings := [line for name in sorted(groups) for line in _differing(before.settings[name], now.settings[name])]:
        yield JobChange(f"settings changed: {list_names(settings, MAX_NAMED_SETTINGS)}", "settings", True)
    if before.job == now.job:
        yield from _restarts(before, now)
    if before.task_managers != now.task_managers and before.task_managers and now.task_managers:
        yield JobChange(f"TaskManagers: {before.task_managers} -> {now.task_managers}", "cluster")


def count_restarts(before: JobObservation, now: JobObservation) -> int:
    """Return how often the job restarted between two observations: the largest of its failures, its restores, and its new starts."""
    earlier = max(before.failures_ms or (), default=before.started_ms)
    failures = 0 if before.failures_ms is None else sum(at > earlier for at in now.failures_ms or ())
    restored = 0 if before.restored is None else (now.restored or 0) - before.restored
    return max(failures, restored, int(before.started_ms != now.started_ms), 0)


def _restarts(before: JobObservation, now: JobObservation) -> Iterator[JobChange]:
    """Yield the restarts of a job, and a change of its status."""
    if count := count_restarts(before, now):
        rescaled = "its rescaling, " if before.parallelism != now.parallelism else ""
        often = "" if count == 1 else f", {count} times"
        yield JobChange(f"the job began again{often}: {rescaled}a failure, or a restart of the JobManager", "restart")
    if before.state != now.state:
        yield JobChange(f"the job is {now.state} (before: {before.state})", "job")


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return a text such as ``interval 10000 -> 30000`` for each value that differs."""
    return [
        f"{name} {before.get(name, 'unset')} -> {now.get(name, 'unset')}"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]


# ---- Activity of a job between two observations and over several.


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of a job between two observations."""

    time_ms: int
    seconds: float  # time between the two observations
    load: Mapping[str, float]  # source -> records per second
    busy: Mapping[str, float]  # vertex -> busy share of time


def has_new_counters(before: JobObservation, now: JobObservation) -> bool:
    """Return whether the JobManager has fetched new counters of the tasks since the observation before.

    A request makes Flink's MetricFetcherImpl query the TaskManagers, but only later requests return the result.  Busy and
    idle times always grow, so new counters differ even if no record arrived.
    """
    return before.job != now.job or before.totals != now.totals


def measure(before: JobObservation, now: JobObservation) -> Activity | None:
    """Return the activity between two observations, or None if the JobManager's clock has not advanced, or the job was restarted."""
    passed_s = (now.time_ms - before.time_ms) / 1e3
    if passed_s <= 0 or before.job != now.job or count_restarts(before, now) or before.parallelism != now.parallelism:
        return None
    load, busy = dict[str, float](), dict[str, float]()
    for vertex, totals in now.totals.items():
        earlier = before.totals.get(vertex)
        if earlier is None:
            continue
        written = _increase(earlier.records_out, totals.records_out)
        if vertex in now.sources and written is not None:
            load[vertex] = written / passed_s
        spent = [
            _increase(getattr(earlier, name), getattr(totals, name))
            for name in ("busy_ms", "idle_ms", "backpressured_ms")
        ]
        times = [time for time in spent if time is not None]
        if len(times) == len(spent) and sum(times) > 0:
            busy[vertex] = times[0] / sum(times)
    return Activity(now.time_ms, passed_s, load, busy)


def mean_circumstances(activities: Sequence[Activity], checkpoints: Sequence[SeenCheckpoint]) -> Circumstances:
    """Return the mean of several activities, weighted by their length, and the medians over checkpoints.

    Because of the weights, the next one compensates for a counter that was not up to date.
    """
    completed = [point for point in checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return Circumstances(
        _means([(activity.seconds, activity.load) for activity in activities]),
        _means([(activity.seconds, activity.busy) for activity in activities]),
        _medians(point.state_bytes for point in completed),
        _medians((point.parts_ms for point in completed if point.parts_ms), fill=True),
    )


def _increase(before: float | None, now: float | None) -> float | None:
    """Return the increase of a counter, or None if it is unknown or was reset."""
    return now - before if before is not None and now is not None and now >= before >= 0 else None


def _means(rows: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Return the weighted mean of each name over the rows that have it."""
    weighted = {name: [(row[name], weight) for weight, row in rows if name in row] for _, row in rows for name in row}
    return {name: fmean(*zip(*values, strict=True)) for name, values in weighted.items()}


def _medians(rows: Iterable[Mapping[str, float]], *, fill: bool = False) -> dict[str, float]:
    """Return the median of each name over the rows that have it.  With `fill`, rows without the name count as 0."""
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: float(median(row.get(name, 0.0) for row in listed if fill or name in row)) for name in names}

"""Compare slow checkpoints of a recorded job with the others.

* the profile: how much time they spend on each kind of step at each vertex
* the circumstances of a single checkpoint: earlier failures, restarts, savepoints, delayed triggers
* features that are associated with slow checkpoints, by statistical tests
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb, factorial, prod
from statistics import fmean, median

from scipy.stats import fisher_exact, mannwhitneyu, spearmanr

from sim.jobs.history.causes import name_of, p_value_of, periodic_events
from sim.jobs.history.history import History, is_acknowledged, slow_subtasks, subtasks_of
from sim.jobs.history.path import PathStep, steps
from sim.jobs.source.job_log import LAST_MS, clock
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_answers import list_names
from sim.model.text import one_line
from sim.results.critical_path import PathKind
from sim.results.formats import bytes_text, ms_text

# ---- Profile: the time spent on each kind of step at each vertex, in slow checkpoints and in the others.

PartAndVertex = tuple[PathKind, str]
"""(kind of step, vertex or "" for the coordinator)."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The time spent on one kind of step at one vertex, in slow checkpoints and in the others [ns]."""

    where: PartAndVertex
    slow_ns: float  # mean
    others_ns: float  # median


def time_by_part(history: History, point: RecordedCheckpoint) -> Counter[PartAndVertex]:
    """Return the time [ns] that the critical path of a checkpoint spends on each kind of step at each vertex."""
    times_ns: Counter[PartAndVertex] = Counter()
    for step in steps(history, point):
        times_ns[_part_and_vertex(step)] += step.duration_ns
    return times_ns


def _part_and_vertex(step: PathStep) -> PartAndVertex:
    return step.kind, "" if step.subtask is None else step.subtask[0]


def profile(
    history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]
) -> list[ProfileRow]:
    """Return the profile, the longest time in slow checkpoints first.  If none is slow, sort by the time in the others.

    If a step is not on the critical path of a checkpoint, it counts as 0 there.
    """
    times = [[time_by_part(history, point) for point in points if point.tasks] for points in (slow, others)]
    rows = []
    for where in dict.fromkeys(where for points in times for row in points for where in row):
        slow_ns, others_ns = ([row[where] for row in points] or [0] for points in times)
        rows.append(ProfileRow(where, fmean(slow_ns), float(median(others_ns))))
    return sorted(rows, key=lambda row: (-row.slow_ns, -row.others_ns))


# ---- Circumstances of one checkpoint: earlier failures, restarts, other checkpoints in progress, delayed triggers.

_LATE_TRIGGER_FACTOR = 1.5
"""Minimum time between two triggers / median time between triggers for a late trigger."""
_MIN_TRIGGERS = 3
"""Minimum number of times between triggers for a median."""


def circumstances(history: History, point: RecordedCheckpoint) -> Iterator[str]:
    """Yield sentences about the circumstances of one checkpoint."""
    before = previous(history, point)
    if point.id == 1:
        yield "It is the job's first: code is not compiled yet, files and connections are new, and no earlier file can be used again."
    if point.is_savepoint:
        yield (
            "It is a savepoint: its barriers overtake no data, whatever is set for checkpoints, and all state is written anew, to a folder "
            "and often in a format of its own, which may be slower."
        )
    if before is not None and before.status == "FAILED":
        yield f"Checkpoint {before.id} before it did not complete."
    if failures := _failures_since(history, point, before):
        yield f"Tasks of the job had failed {ms_text(point.trigger_timestamp - max(failures))} before it was triggered."
    elif (
        before is not None
        and before.is_savepoint
        and 0 < _typical_distance_ms(history) < _ended_ms(before) - before.trigger_timestamp
    ):
        passed = ms_text(max(0, point.trigger_timestamp - _ended_ms(before)))
        took = ms_text(before.end_to_end_duration)
        yield f"Savepoint {before.id} had taken {took} until {passed} before it was triggered: periodic checkpoints wait for savepoints."
    elif before is not None and is_after_gap(history, point):
        distance, usual = (
            ms_text(ms) for ms in (point.trigger_timestamp - before.trigger_timestamp, _typical_distance_ms(history))
        )
        is_known = any(before.trigger_timestamp < at_ms <= point.trigger_timestamp for at_ms in history.restarts_ms)
        restarted = "was restarted" if is_known else "may have been restarted"
        yield f"It was triggered {distance} after the one before, usually {usual} pass: the job {restarted} in between."
    ended = next((step for step in steps(history, point) if step.kind is PathKind.END_OF_INPUT), None)
    if ended is not None:
        upstream = [channel.upstream for channel in history.vertex(ended.at[0]).inputs]
        if missing := [name for name in upstream if name not in point.tasks or not point.tasks[name].subtasks]:
            yield (
                f"Nothing tells of the subtasks of {list_names([one_line(name, 40) for name in missing])}: they had ended, or "
                f"/jobs/JOB/checkpoints/details/{point.id}/subtasks/VERTEX of it is not in the answers. Then the path may go on there."
            )
    set_back = _steps_back(history)
    for other in history.checkpoints:
        is_comparable = not any(min(point.id, other.id) < number <= max(point.id, other.id) for number in set_back)
        if is_comparable and overlaps(point, other):
            yield f"{'Savepoint' if other.is_savepoint else 'Checkpoint'} {other.id} was under way at the same time."


def _steps_back(history: History) -> list[int]:
    """Return the ids of the checkpoints that were triggered before their predecessors by the clock, which was set back."""
    return [
        after.id
        for before, after in pairwise(history.checkpoints)
        if after.trigger_timestamp < before.trigger_timestamp
    ]


def delayed_triggers(history: History) -> Iterator[str]:
    """Yield sentences on triggers: a clock that was set back, and savepoints that delayed them."""
    if steps := _steps_back(history):
        yield f"The clock goes back before checkpoint {list_names(list(map(str, steps)))}: times before and after do not compare."
    typical_ms = _typical_distance_ms(history)
    triggers = [point.trigger_timestamp for point in history.checkpoints]
    delaying = [
        f"{point.id} ({ms_text(point.end_to_end_duration)})"
        for point in history.checkpoints
        if point.is_savepoint
        and point.end_to_end_duration > _LATE_TRIGGER_FACTOR * typical_ms > 0
        and not any(point.trigger_timestamp < trigger < _ended_ms(point) for trigger in triggers)
    ]
    if delaying:
        yield (
            f"No checkpoint was triggered during savepoint{'s' if len(delaying) > 1 else ''} {list_names(delaying)}: periodic ones wait for "
            "savepoints unless max-concurrent-checkpoints is above 1."
        )


def previous(history: History, point: RecordedCheckpoint) -> RecordedCheckpoint | None:
    """Return the latest checkpoint of the history with a smaller id, or None if there is none."""
    return next((other for other in reversed(history.checkpoints) if other.id < point.id), None)


def is_after_gap(history: History, point: RecordedCheckpoint) -> bool:
    """Return whether a checkpoint was triggered late although the one before was short, as after a restart."""
    before, typical_ms = previous(history, point), _typical_distance_ms(history)
    if before is None or before.id != point.id - 1 or not typical_ms or before.is_savepoint or point.is_savepoint:
        return False
    return (
        point.trigger_timestamp - before.trigger_timestamp > _LATE_TRIGGER_FACTOR * typical_ms
        and before.end_to_end_duration < typical_ms
    )


def overlaps(point: RecordedCheckpoint, other: RecordedCheckpoint) -> bool:
    """Return whether two different checkpoints were in progress at the same time."""
    end = point.trigger_timestamp + point.end_to_end_duration
    return other.id != point.id and other.trigger_timestamp < end and _ended_ms(other) > point.trigger_timestamp


def _ended_ms(point: RecordedCheckpoint) -> int:
    """Return the time at which a checkpoint ended [epoch ms], or its trigger time if the duration is unknown."""
    return point.trigger_timestamp + max(point.end_to_end_duration, 0)


def _failures_since(history: History, point: RecordedCheckpoint, before: RecordedCheckpoint | None) -> list[int]:
    """Return the times of task failures [epoch ms] from the trigger of `before` to the trigger of `point`."""
    since_ms = 0 if before is None else before.trigger_timestamp
    return [failure for failure in history.failures_ms if since_ms <= failure <= point.trigger_timestamp]


def _typical_distance_ms(history: History) -> float:
    """Return the median time between consecutive triggers [ms], or 0 if there are too few.

    Triggers that a savepoint delayed are left out: the first one after it, and those that catch up after that.
    """
    distances, is_delayed = [], False
    for before, after in pairwise(history.checkpoints):
        is_delayed = before.is_savepoint or (
            is_delayed and after.trigger_timestamp < before.trigger_timestamp + 2 * max(before.end_to_end_duration, 0)
        )
        if after.id == before.id + 1 and not (is_delayed or after.is_savepoint):
            distances.append(after.trigger_timestamp - before.trigger_timestamp)
    return float(median(distances)) if len(distances) >= _MIN_TRIGGERS else 0.0


# ---- Features that slow checkpoints have in common and the others do not, with p-values.
#
# Each feature is tested separately and one-sided: presence by Fisher's exact test, amounts by the exact Mann-Whitney
# test.  Many features are tested on few checkpoints, so p-values are corrected for multiple tests (Holm 1979).  Periodic
# events of the job's plan are expected to matter, so they are corrected as a separate family of tests.  A significant
# feature is associated with slow checkpoints; it is not necessarily their cause.

SURE_P_VALUE, LIKELY_P_VALUE = 0.01, 0.05
"""Upper limits of the corrected p-value for a "clear" and a "likely" feature."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A tested feature, with how often it occurs among slow checkpoints and among the others, or with their medians."""

    text: str  # "upload of count takes longest: 2 of 2 slow ones, 0 of 22 others"
    p: float  # p-value
    corrected: float  # p-value corrected for the number of tests

    @property
    def how_sure(self) -> str:
        """The significance in words, from the corrected p-value."""
        if self.corrected < SURE_P_VALUE:
            return "clear"
        return "likely" if self.corrected < LIKELY_P_VALUE else "a hint, may be chance"


@dataclass(frozen=True, slots=True)
class InCommon:
    """The result of the tests for features that distinguish slow checkpoints from the others."""

    slow: int  # number of slow checkpoints
    others: int  # number of other checkpoints
    tried: int  # number of tests; features that are the same for all checkpoints are not tested
    findings: tuple[Finding, ...]  # with an uncorrected p-value below LIKELY_P_VALUE, the smallest corrected one first

    @property
    def least_p(self) -> float:
        """The smallest possible p-value: of a feature that all slow checkpoints have, and none of the others."""
        return 1 / comb(self.slow + self.others, self.slow)

    @property
    def is_too_few(self) -> bool:
        """Whether there are too few checkpoints for a significant difference."""
        return self.least_p > LIKELY_P_VALUE


def in_common(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> InCommon:
    """Test which features distinguish slow checkpoints.  Checkpoints without statistics of subtasks are left out.

    If there are then no slow checkpoints, or no others, test whether durations grow with sizes or with time, or differ between
    restarts, instead.
    """
    points = [*slow, *others]
    slow, others = [point for point in slow if point.tasks], [point for point in others if point.tasks]
    if not slow or not others:
        tested = tuple(_significant([*_with_size(points), *_later(points), *_between_restarts(history, points)]))
        return InCommon(0, len(points), len(tested), tested)
    explored = [*_presences(history, slow, others), *_amounts(history, slow, others), *_with_size([*slow, *others])]
    # The job's plan names these events, so they are a separate family of tests.
    expected = [
        Finding(
            f"the longer a checkpoint, the more it {event.text} ({len(slow) + len(others)} checkpoints)",
            p_value_of(event, [*slow, *others]),
            1.0,
        )
        for event in periodic_events(history)
    ]
    findings = sorted([*_significant(explored), *_significant(expected)], key=lambda finding: finding.corrected)
    return InCommon(len(slow), len(others), len(explored) + len(expected), tuple(findings))


def _significant(tested: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings with p < `LIKELY_P_VALUE`, with p-values corrected by Holm's step-down method."""
    worst = 0.0
    for rank, finding in enumerate(sorted(tested, key=lambda finding: finding.p)):
        worst = max(worst, min(1.0, finding.p * (len(tested) - rank)))
        if finding.p < LIKELY_P_VALUE:
            yield replace(finding, corrected=worst)


# ------------------------------------------------------------------------------------------ presence of features


def _presences(
    history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]
) -> Iterator[Finding]:
    """Yield a finding per feature that some of the checkpoints have and others do not (Fisher's exact test)."""
    slow_ids, other_ids = ({point.id for point in points} for points in (slow, others))
    for text, ids in _features(history, [*slow, *others]).items():
        if 0 < len(ids) < len(slow) + len(others):
            table = [[len(of & ids), len(of - ids)] for of in (slow_ids, other_ids)]
            p = float(fisher_exact(table, alternative="greater").pvalue)
            number = "one" if len(slow) == 1 else "ones"
            counts = f"{table[0][0]} of {len(slow)} slow {number}, {table[1][0]} of {len(others)} others"
            yield Finding(f"{text}: {counts}", p, 1.0)


def _features(history: History, points: Sequence[RecordedCheckpoint]) -> Mapping[str, set[int]]:
    """Return the features to test: description -> ids of the checkpoints that have it."""
    features: dict[str, set[int]] = defaultdict(set)
    managers: dict[str, set[int]] = defaultdict(set)
    for point in points:
        path, before = steps(history, point), previous(history, point)
        for longest in sorted(path, key=lambda step: -step.duration_ns)[:1]:
            kind, vertex = _part_and_vertex(longest)
            features[f"{kind.value}{f' of {vertex}' if vertex else ''} takes longest"].add(point.id)
        features[f"{_last(point)} acknowledges last"].add(point.id)
        managers[_main_task_manager(history, path)].add(point.id)
        circumstances_of = {
            "it is the first after one that did not complete": before is not None and before.status == "FAILED",
            "tasks of the job had failed since the checkpoint before": _failures_since(history, point, before),
            "triggers had paused before it, as in a restart": is_after_gap(history, point),
            "another checkpoint or savepoint was under way": any(
                overlaps(point, other) for other in history.checkpoints
            ),
        }
        for text, is_so in circumstances_of.items():
            features[text] |= {point.id} if is_so else set()
    distinguishing = {manager: ids for manager, ids in managers.items() if manager and len(managers) > 1}
    return features | {f"most of the path is in task manager {manager}": ids for manager, ids in distinguishing.items()}


def _last(point: RecordedCheckpoint) -> str:
    """Return the name of the subtask that acknowledged last, or "" if none did."""
    rows = [(row.end_to_end_duration, subtask) for subtask, row in subtasks_of(point).items() if is_acknowledged(row)]
    return name_of(max(rows)[1]) if rows else ""


def _main_task_manager(history: History, path: Sequence[PathStep]) -> str:
    """Return the TaskManager in which a path spent the most time, or "" if it is unknown, or that time is in the coordinator."""
    time_ns: Counter[str] = Counter()
    for step in path:
        time_ns["" if step.subtask is None else history.task_managers.get(step.subtask, "")] += step.duration_ns
    return max(time_ns, key=time_ns.__getitem__, default="")


# ------------------------------------------------------------------------------------------ amounts

_AMOUNTS: dict[str, Callable[[RecordedCheckpoint], float]] = {
    "bytes written": lambda point: point.checkpointed_size,
    "size of all state": lambda point: point.state_bytes,
    "in-flight data stored": lambda point: point.persisted_data,
}
_WARM_UP_CHECKPOINTS = 3
"""Up to this checkpoint id, slow checkpoints may be slow because the job has just started."""
_MIN_RANKS = 7
"""Minimum number of checkpoints for a rank correlation."""
_MIN_RANK_CORRELATION = 0.5
"""A weaker rank correlation explains little, even if it is significant."""
_MIN_FACTOR = 1.2
"""A smaller ratio of two medians (or of largest and smallest size) explains nothing, even if it is significant."""


def _amounts(
    history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]
) -> Iterator[Finding]:
    """Yield findings on sizes, on the pause before a checkpoint, and on its position in the history (Mann-Whitney test)."""
    for name, amount in _AMOUNTS.items():
        yield from _larger_amount(
            name, [amount(point) for point in slow], [amount(point) for point in others], bytes_text
        )
    slow_pauses, other_pauses = (
        [ms for point in points if (ms := _pause_ms(history, point)) >= 0] for points in (slow, others)
    )
    yield from _larger_amount("pause since the checkpoint before", slow_pauses, other_pauses, ms_text)
    ids = [[point.id for point in points] for points in (slow, others)]
    for word, alternative in (("earlier", "less"), ("later", "greater")):
        p = float(mannwhitneyu(*ids, alternative=alternative).pvalue)
        where = f"{median(ids[0]):.0f} in {len(slow)} slow ones, {median(ids[1]):.0f} in {len(others)} others"
        is_cold = word == "earlier" and min(ids[0]) <= _WARM_UP_CHECKPOINTS and not slow_subtasks(history)
        cold = ": code may not be compiled yet, and files and connections are new" if is_cold else ""
        yield Finding(f"they are {word} in the history: ids {where} (medians){cold}", p, 1.0)


def _with_size(points: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    """Yield findings that longer checkpoints write more, have more state, or read more meanwhile (Spearman's rank correlation)."""
    durations = [point.end_to_end_duration for point in points]
    written, state = ([_AMOUNTS[name](point) for point in points] for name in ("bytes written", "size of all state"))
    larger = f"the larger the state{_in_flight_clause(points)}"
    is_full = state == [point.checkpointed_size - max(point.persisted_data, 0) for point in points]
    # statistics of subtasks say more of this
    read = [0 if point.tasks else max(point.processed_data, point.alignment_buffered) for point in points]
    waits = "the more data its tasks read between their first barrier and their last, so barriers wait, and not storage"
    for text, amounts in (("the more it writes", written), (larger, [] if is_full else state), (waits, read)):
        is_known = len(amounts) >= _MIN_RANKS and min(amounts) >= 0
        if not is_known or max(amounts) <= _MIN_FACTOR * min(amounts) or len({*durations}) == 1:
            continue
        trend = spearmanr(amounts, durations, alternative="greater")
        if trend.statistic >= _MIN_RANK_CORRELATION:
            spread = f"{bytes_text(min(amounts))} to {bytes_text(max(amounts))}"
            sample = f"rank correlation {trend.statistic:.2g}, {len(points)} checkpoints"
            p = max(float(trend.pvalue), _least_p_value(amounts, durations))
            yield Finding(f"the longer a checkpoint, {text}: {spread} ({sample})", p, 1.0)


def _later(points: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    """Yield the finding that checkpoints become longer in the course of the history (Spearman's rank correlation)."""
    durations = [point.end_to_end_duration for point in sorted(points, key=lambda point: point.id)]
    if len(points) < _MIN_RANKS or len({*durations}) == 1:
        return
    third = len(points) // 3
    before, after = median(durations[:third]), median(durations[-third:])
    trend = spearmanr(range(len(points)), durations, alternative="greater")
    if trend.statistic >= _MIN_RANK_CORRELATION and after > _MIN_FACTOR * before:
        text = f"{ms_text(before)} in the first {third}, {ms_text(after)} in the last {third} (medians)"
        p = max(float(trend.pvalue), _least_p_value(durations))
        yield Finding(f"they are longer later in the history: {text}", p, 1.0)


def _between_restarts(history: History, points: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    """Yield a finding per run of the job, between two restarts: whether checkpoints are longer in it (Mann-Whitney test)."""
    starts = [0, *history.restarts_ms]
    for number, (begin_ms, end_ms) in enumerate(pairwise([*starts, LAST_MS])):
        inside, outside = (
            [
                point.end_to_end_duration
                for point in sorted(points, key=lambda point: point.id)
                if (begin_ms <= point.trigger_timestamp < end_ms) == is_inside
            ]
            for is_inside in (True, False)
        )
        # if the first ones after a restart are as short as others, something later made the rest longer
        if (
            not inside
            or not outside
            or min(median(inside), median(inside[:_WARM_UP_CHECKPOINTS])) <= _MIN_FACTOR * median(outside)
        ):
            continue
        p = float(mannwhitneyu(inside, outside, alternative="greater").pvalue)
        begin, end = (clock(at_ms)[-8:] for at_ms in (begin_ms, end_ms))
        is_first, is_last = number == 0, number == len(starts) - 1
        when = f"before the restart at {end}" if is_first else f"after the restart at {begin}" if is_last else ""
        when = when or f"between the restarts at {begin} and {end}"
        text = (
            f"{ms_text(median(inside))} in {len(inside)}, {ms_text(median(outside))} in {len(outside)} others (medians)"
        )
        yield Finding(f"they are longer {when} UTC: {text}", p, 1.0)


def _in_flight_clause(points: Sequence[RecordedCheckpoint]) -> str:
    """Return a clause if it is unknown how much of the size of a checkpoint is in-flight data, as in a log, or ""."""
    is_known = all(point.persisted_data >= 0 for point in points)
    return "" if is_known else " (with in-flight data, if barriers are unaligned)"


def _least_p_value(*columns: Sequence[float]) -> float:
    """Return the smallest possible p-value of a rank correlation: the share of permutations that agree perfectly.

    SciPy's p-value is an approximation, and can be smaller.  With ties, more than one permutation agrees.
    """
    tied = (prod(map(factorial, Counter(column).values())) for column in columns)
    return max(tied) / factorial(len(columns[0]))


def _pause_ms(history: History, point: RecordedCheckpoint) -> float:
    """Return the time [ms] from the end of the checkpoint before to the trigger of this one, or -1 if it is unknown."""
    before = previous(history, point)
    return -1 if before is None or before.end_to_end_duration < 0 else point.trigger_timestamp - _ended_ms(before)


def _larger_amount(
    name: str, slow: Sequence[float], others: Sequence[float], in_words: Callable[[float], str]
) -> Iterator[Finding]:
    """Yield the finding that an amount is larger in slow checkpoints.  Yields nothing if a value is unknown, or all are equal."""
    if not slow or not others or len({*slow, *others}) == 1 or min(*slow, *others) < 0:
        return
    is_similar = median(slow) <= _MIN_FACTOR * median(others)
    p = 1.0 if is_similar else float(mannwhitneyu(slow, others, alternative="greater").pvalue)
    text = f"more {name}: {in_words(median(slow))} in {len(slow)} slow ones, {in_words(median(others))} in {len(others)} others (medians)"
    yield Finding(text, p, 1.0)

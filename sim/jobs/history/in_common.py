"""What slow checkpoints have in common: profile, circumstances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import comb
from statistics import fmean, median

from scipy.stats import fisher_exact, mannwhitneyu, spearmanr

from sim.jobs.history.causes import chance, name_of, rhythms, unnamed, unnamed_text
from sim.jobs.history.history import History, is_acknowledged, slow_subtasks
from sim.jobs.history.path import PathStep, steps
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_answers import first_names
from sim.results.critical_path import PathKind
from sim.results.formats import bytes_text, ms_text

# ---- Where the time of several checkpoints goes: for each kind of step and vertex what it takes, of the slow ones and of the others.

Where = tuple[PathKind, str]
"""Kind of step, vertex; "": the coordinator."""


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of step at a vertex, with its time in slow checkpoints and in others."""

    where: Where
    slow_ns: float  # mean
    others_ns: float  # median


def spent(history: History, point: RecordedCheckpoint) -> Counter[Where]:
    """What a checkpoint spent on each kind of step at each vertex [ns]."""
    found: Counter[Where] = Counter()
    for step in steps(history, point):
        found[step.kind, "" if step.subtask is None else step.subtask[0]] += step.duration_ns
    return found


def usual(history: History, points: Iterable[RecordedCheckpoint]) -> dict[Where, float]:
    """The median of each over the checkpoints; 0 where it is not on the path."""
    rows = [spent(history, point) for point in points if point.tasks]
    return {
        where: float(median(row[where] for row in rows))
        for where in dict.fromkeys(where for row in rows for where in row)
    }


def profile(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> list[Row]:
    """What takes longest in the slow ones first; without slow ones in the others."""
    rows = [spent(history, point) for point in slow if point.tasks]
    of_others = usual(history, others)
    names = dict.fromkeys([*(where for row in rows for where in row), *of_others])
    found = [
        Row(where, fmean(row[where] for row in rows) if rows else 0.0, of_others.get(where, 0.0)) for where in names
    ]
    return sorted(found, key=lambda row: (-row.slow_ns, -row.others_ns) if rows else (-row.others_ns, 0))


# ---- What had happened when a checkpoint was triggered: a failure, a restart, another one under way.

_LATE_TRIGGER_FACTOR = 1.5
"""A trigger is late from so many times the usual distance on."""
_NEARLY_LATE = 0.8
"""A checkpoint that takes so much of the usual distance will soon delay the next."""
_MIN_TRIGGERS = 4


def circumstances(history: History, point: RecordedCheckpoint) -> Iterator[str]:
    """Sentences about one checkpoint."""
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
        and _ended_ms(before) > before.trigger_timestamp + _usual_distance_ms(history) > 0
    ):
        passed = ms_text(max(0, point.trigger_timestamp - _ended_ms(before)))
        took = ms_text(before.end_to_end_duration)
        yield f"Savepoint {before.id} had taken {took} until {passed} before it was triggered: periodic checkpoints wait for savepoints."
    elif before is not None and is_after_gap(history, point):
        distance, usual = (
            ms_text(point.trigger_timestamp - before.trigger_timestamp),
            ms_text(_usual_distance_ms(history)),
        )
        yield f"It was triggered {distance} after the one before, usually {usual} pass: the job may have been restarted in between."
    for other in history.checkpoints:
        if overlaps(point, other):
            yield f"{'Savepoint' if other.is_savepoint else 'Checkpoint'} {other.id} was under way at the same time."


def held_triggers(history: History) -> Iterator[str]:
    """What holds the next checkpoint back: a savepoint, or one that takes as long as the interval."""
    usual_ms = _usual_distance_ms(history)
    held = [
        f"{point.id} ({ms_text(point.end_to_end_duration)})"
        for point in history.checkpoints
        if point.is_savepoint
        and point.end_to_end_duration > _LATE_TRIGGER_FACTOR * usual_ms > 0
        and not any(
            point.trigger_timestamp < other.trigger_timestamp < _ended_ms(point) for other in history.checkpoints
        )
    ]
    if held:
        yield (
            f"No checkpoint was triggered during savepoint{'s' if len(held) > 1 else ''} {first_names(held)}: periodic ones wait for "
            "savepoints unless max-concurrent-checkpoints is above 1."
        )
    took = [point.end_to_end_duration for point in history.usual]
    # where most take as long, each may wait for the one before, and the interval is shorter
    if took and median(took) < _NEARLY_LATE * usual_ms <= took[-1] <= usual_ms:
        last, usual = ms_text(took[-1]), ms_text(usual_ms)
        yield f"The last took {last} of the {usual} that usually pass between triggers: a longer one delays the next."


def previous(history: History, point: RecordedCheckpoint) -> RecordedCheckpoint | None:
    return max(
        (other for other in history.checkpoints if other.id < point.id), key=lambda other: other.id, default=None
    )


def follows_failure(history: History, point: RecordedCheckpoint) -> bool:
    before = previous(history, point)
    return before is not None and before.status == "FAILED"


def follows_fault(history: History, point: RecordedCheckpoint) -> bool:
    """Whether tasks had failed since the checkpoint before."""
    return bool(_failures_since(history, point, previous(history, point)))


def is_after_gap(history: History, point: RecordedCheckpoint) -> bool:
    """Whether triggers paused before it, and no long checkpoint was why."""
    before, usual_ms = previous(history, point), _usual_distance_ms(history)
    if before is None or before.id != point.id - 1 or not usual_ms or before.is_savepoint or point.is_savepoint:
        return False
    return (
        point.trigger_timestamp - before.trigger_timestamp > _LATE_TRIGGER_FACTOR * usual_ms
        and before.end_to_end_duration < usual_ms
    )


def overlaps(point: RecordedCheckpoint, other: RecordedCheckpoint) -> bool:
    """Whether both, which are not the same, were under way at one time."""
    begin, end = point.trigger_timestamp, point.trigger_timestamp + point.end_to_end_duration
    return (
        other.id != point.id
        and other.trigger_timestamp < end
        and other.trigger_timestamp + max(other.end_to_end_duration, 0) > begin
    )


def _ended_ms(point: RecordedCheckpoint) -> int:
    return point.trigger_timestamp + max(point.end_to_end_duration, 0)


def _failures_since(history: History, point: RecordedCheckpoint, before: RecordedCheckpoint | None) -> list[int]:
    since_ms = 0 if before is None else before.trigger_timestamp
    return [failure for failure in history.failures_ms if since_ms <= failure <= point.trigger_timestamp]


def _usual_distance_ms(history: History) -> float:
    """The median distance of triggers that follow one another; 0: too few are known."""
    points = [point for point in history.checkpoints if not point.is_savepoint]
    distances = [
        after.trigger_timestamp - before.trigger_timestamp
        for before, after in pairwise(points)
        if after.id == before.id + 1
    ]
    return float(median(distances)) if len(distances) >= _MIN_TRIGGERS else 0.0


# ---- What slow checkpoints have in common that the others have not, and how sure that is.
#
# Each feature is tested by itself, one-sided: presence by Fisher's exact test, amounts by the exact test of Mann and
# Whitney.  Many features are tried on few checkpoints, so probabilities are corrected for their number (Holm 1979).  A
# test shows what goes together, and no cause.  What the job's plan makes likely beforehand, its rhythms, is corrected
# apart from what is only looked for.

SURE_P_VALUE, LIKELY_P_VALUE = 0.01, 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """A feature with its share among slow checkpoints and among the others."""

    text: str  # "upload of count takes longest: 2 of 2 slow ones, 0 of 22 others"
    p: float  # by chance alone, this or more
    corrected: float  # the same for all features that were tried

    @property
    def how_sure(self) -> str:
        if self.corrected < SURE_P_VALUE:
            return "clear"
        return "likely" if self.corrected < LIKELY_P_VALUE else "a hint, may be chance"


@dataclass(frozen=True, slots=True)
class InCommon:
    """The features that tell slow checkpoints from the others."""

    slow: int
    others: int
    tried: int  # features that differ between checkpoints at all
    findings: tuple[Finding, ...]  # the surest first; what chance explains is left out

    @property
    def least_p(self) -> float:
        """What a feature of all slow ones and of no other is worth."""
        return 1 / comb(self.slow + self.others, self.slow)

    @property
    def is_too_few(self) -> bool:
        """Whether not even such a feature could be told from chance."""
        return self.least_p > LIKELY_P_VALUE


_Present = Callable[[RecordedCheckpoint], bool]


def in_common(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> InCommon:
    """What the slow checkpoints have in common that the others have not.  Those without statistics of subtasks are left out.

    Where that leaves no slow ones or no others, whether durations grow with sizes.
    """
    points = [*slow, *others]
    slow, others = [point for point in slow if point.tasks], [point for point in others if point.tasks]
    if not slow or not others:
        sizes = tuple(_kept([*_with_size(points)]))
        return InCommon(0, len(points), len(sizes), sizes)
    explored = [*_presences(history, slow, others), *_amounts(history, slow, others), *_with_size([*slow, *others])]
    # the job's plan names them beforehand: a family of their own
    expected = list(_in_rhythm(history, [*slow, *others]))
    found = sorted([*_kept(explored), *_kept(expected)], key=lambda finding: finding.corrected)
    return InCommon(len(slow), len(others), len(explored) + len(expected), tuple(found))


def _kept(tested: Sequence[Finding]) -> Iterator[Finding]:
    """Corrected for the number of features: Holm's step-down."""
    worst = 0.0
    for rank, finding in enumerate(sorted(tested, key=lambda finding: finding.p)):
        worst = max(worst, min(1.0, finding.p * (len(tested) - rank)))
        if finding.p < LIKELY_P_VALUE:
            yield replace(finding, corrected=worst)


# ------------------------------------------------------------------------------------------ what is there or not


def _presences(
    history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]
) -> Iterator[Finding]:
    for text, present in _features(history, [*slow, *others]).items():
        there, here = sum(map(present, slow)), sum(map(present, others))
        if 0 < there + here < len(slow) + len(others):
            p = float(
                fisher_exact([[there, len(slow) - there], [here, len(others) - here]], alternative="greater").pvalue
            )
            number = "one" if len(slow) == 1 else "ones"
            yield Finding(f"{text}: {there} of {len(slow)} slow {number}, {here} of {len(others)} others", p, 1.0)


def _features(history: History, points: Sequence[RecordedCheckpoint]) -> dict[str, _Present]:
    """By what is said of it."""
    paths = {point.id: steps(history, point) for point in points}
    found: dict[str, _Present] = {}
    for where in dict.fromkeys(_longest(path) for path in paths.values() if path):
        found[f"{_where_text(where)} takes longest"] = lambda point, where=where: _longest(paths[point.id]) == where  # type: ignore[misc]
    for name in dict.fromkeys(_last(point) for point in points):
        found[f"{name} acknowledges last"] = lambda point, name=name: _last(point) == name  # type: ignore[misc]
    managers = dict.fromkeys(_manager(history, paths[point.id]) for point in points)
    for manager in managers if len(managers) > 1 else ():
        if manager:
            found[f"most of the path is in task manager {manager}"] = (
                lambda point, manager=manager: _manager(history, paths[point.id]) == manager  # type: ignore[misc]
            )
    found["it is the first after one that did not complete"] = partial(follows_failure, history)
    if history.failures_ms:
        found["tasks of the job had failed since the checkpoint before"] = partial(follows_fault, history)
    found["triggers had paused before it, as in a restart"] = partial(is_after_gap, history)
    found["another checkpoint or savepoint was under way"] = lambda point: any(
        overlaps(point, other) for other in history.checkpoints
    )
    return found


def _where_text(where: Where) -> str:
    return f"{where[0].value} of {where[1]}" if where[1] else where[0].value


def _longest(path: Sequence[PathStep]) -> Where:
    if not path:
        return PathKind.TRIGGER, ""
    longest = max(path, key=lambda step: step.duration_ns)
    return longest.kind, "" if longest.subtask is None else longest.subtask[0]


def _last(point: RecordedCheckpoint) -> str:
    rows = [
        (row.end_to_end_duration, vertex, row.index)
        for vertex, task in point.tasks.items()
        for row in task.subtasks
        if is_acknowledged(row)
    ]
    return name_of(max(rows)[1:]) if rows else ""


def _manager(history: History, path: Sequence[PathStep]) -> str:
    """Where most of the time of a path was spent; empty: not known."""
    spent: dict[str, int] = {}
    for step in path:
        manager = "" if step.subtask is None else history.task_managers.get(step.subtask, "")
        spent[manager] = spent.get(manager, 0) + step.duration_ns
    return max(spent, key=lambda manager: spent[manager], default="")


def _in_rhythm(history: History, points: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    for rhythm in rhythms(history):
        yield Finding(
            f"the longer a checkpoint, the more it {rhythm.text} ({len(points)} checkpoints)",
            chance(rhythm, points),
            1.0,
        )
    if (found := unnamed(history)) is not None:  # its probability is corrected for all periods
        yield Finding(f"long checkpoints {unnamed_text(found)}", found.p, 1.0)


# ------------------------------------------------------------------------------------------ amounts

_AMOUNTS: dict[str, Callable[[RecordedCheckpoint], float]] = {
    "bytes written": lambda point: point.checkpointed_size,
    "size of all state": lambda point: point.state_size,
    "in-flight data stored": lambda point: point.persisted_data,
}
_COLD = 3
"""A job whose checkpoints count up to here has just begun."""
_MIN_RANKS = 8
_LEAST_RANKS = 0.5
"""A weaker correlation of ranks explains little, however sure it is."""
_FACTOR = 1.2
"""Amounts whose medians differ by a smaller factor explain nothing, however sure the difference is."""


def _amounts(
    history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]
) -> Iterator[Finding]:
    for name, amount in _AMOUNTS.items():
        yield from _compared(name, [amount(point) for point in slow], [amount(point) for point in others], bytes_text)
    pauses = {point.id: _pause_ms(history, point) for point in (*slow, *others)}
    known_slow, known = [[pauses[p.id] for p in points if pauses[p.id] >= 0] for points in (slow, others)]
    yield from _compared("pause since the checkpoint before", known_slow, known, ms_text)
    ids = [point.id for point in slow], [point.id for point in others]
    for word, alternative in (("earlier", "less"), ("later", "greater")):
        p = float(mannwhitneyu(*ids, alternative=alternative).pvalue)
        where = f"{median(ids[0]):.0f} in {len(slow)} slow ones, {median(ids[1]):.0f} in {len(others)} others"
        is_cold = word == "earlier" and min(ids[0]) <= _COLD and not slow_subtasks(history)
        cold = ": code may not be compiled yet, and files and connections are new" if is_cold else ""
        yield Finding(f"they are {word} in the history: ids {where} (medians){cold}", p, 1.0)


def _with_size(points: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    """Over all checkpoints: those that take longer write more, or have more state (Spearman's rank correlation)."""
    durations = [point.end_to_end_duration for point in points]
    written, state = ([_AMOUNTS[name](point) for point in points] for name in ("bytes written", "size of all state"))
    for text, amounts in (("the more it writes", written), ("the larger the state", state if state != written else [])):
        is_known = len(amounts) >= _MIN_RANKS and min(amounts) >= 0
        if not is_known or max(amounts) <= _FACTOR * min(amounts) or len({*durations}) == 1:
            continue
        found = spearmanr(amounts, durations, alternative="greater")
        if found.statistic >= _LEAST_RANKS:
            spread = f"{bytes_text(min(amounts))} to {bytes_text(max(amounts))}"
            sample = f"rank correlation {found.statistic:.2g}, {len(points)} checkpoints"
            yield Finding(f"the longer a checkpoint, {text}: {spread} ({sample})", float(found.pvalue), 1.0)


def _pause_ms(history: History, point: RecordedCheckpoint) -> float:
    before = previous(history, point)
    return (
        -1
        if before is None or before.end_to_end_duration < 0
        else point.trigger_timestamp - before.trigger_timestamp - before.end_to_end_duration
    )


def _compared(
    name: str, slow: Sequence[float], others: Sequence[float], in_words: Callable[[float], str]
) -> Iterator[Finding]:
    if not slow or not others or len({*slow, *others}) == 1 or min(*slow, *others) < 0:
        return
    alike = median(slow) <= _FACTOR * median(others)
    p = 1.0 if alike else float(mannwhitneyu(slow, others, alternative="greater").pvalue)
    text = f"more {name}: {in_words(median(slow))} in {len(slow)} slow ones, {in_words(median(others))} in {len(others)} others (medians)"
    yield Finding(text, p, 1.0)

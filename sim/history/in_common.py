"""What slow checkpoints have in common that the others have not, and how sure that is.

Each feature is tested by itself, one-sided: presence by Fisher's exact test, amounts by the exact test of Mann and Whitney.  Many features
are tried on few checkpoints, so probabilities are corrected for their number (Holm 1979).  A test shows what goes together, and no cause.
What the job's plan makes likely beforehand, its rhythms, is corrected apart from what is only looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from statistics import median

from scipy.stats import fisher_exact, mannwhitneyu, spearmanr

from sim.analysis.number_texts import bytes_text, ms_text
from sim.history.causes import name_of
from sim.history.circumstances import follows_failure, follows_fault, is_after_gap, overlaps, previous
from sim.history.history import History
from sim.history.moments import is_acknowledged
from sim.history.path import PathStep, steps
from sim.history.profile import Where
from sim.history.rhythms import chance, rhythms, unnamed, unnamed_text
from sim.history.service_times import slow_subtasks
from sim.metrics.critical_path import PathKind
from sim.recordings.source.recorded_job import RecordedCheckpoint

SURE, LIKELY = 0.01, 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """A feature with its share among slow checkpoints and among the others."""

    text: str  # "upload of count takes longest: 2 of 2 slow ones, 0 of 22 others"
    p: float  # by chance alone, this or more
    corrected: float  # the same for all features that were tried

    @property
    def how_sure(self) -> str:
        if self.corrected < SURE:
            return "clear"
        return "likely" if self.corrected < LIKELY else "a hint, may be chance"


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
        return self.least_p > LIKELY


_Present = Callable[[RecordedCheckpoint], bool]


def in_common(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> InCommon:
    """What the slow checkpoints have in common that the others have not.  Those without statistics of subtasks are left out."""
    slow, others = [point for point in slow if point.tasks], [point for point in others if point.tasks]
    if not slow or not others:
        return InCommon(len(slow), len(others), 0, ())
    explored = [*_presences(history, slow, others), *_amounts(history, slow, others), *_with_size([*slow, *others])]
    expected = list(_in_rhythm(history, [*slow, *others]))  # the job's plan names them beforehand: a family of their own
    found = sorted([*_kept(explored), *_kept(expected)], key=lambda finding: finding.corrected)
    return InCommon(len(slow), len(others), len(explored) + len(expected), tuple(found))


def _kept(tested: Sequence[Finding]) -> Iterator[Finding]:
    """Corrected for the number of features: Holm's step-down."""
    worst = 0.0
    for rank, finding in enumerate(sorted(tested, key=lambda finding: finding.p)):
        worst = max(worst, min(1.0, finding.p * (len(tested) - rank)))
        if finding.p < LIKELY:
            yield replace(finding, corrected=worst)


# ------------------------------------------------------------------------------------------ what is there or not


def _presences(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
    for text, present in _features(history, [*slow, *others]).items():
        there, here = sum(map(present, slow)), sum(map(present, others))
        if 0 < there + here < len(slow) + len(others):
            p = float(fisher_exact([[there, len(slow) - there], [here, len(others) - here]], alternative="greater").pvalue)
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
    found["another checkpoint or savepoint was under way"] = lambda point: any(overlaps(point, other) for other in history.checkpoints)
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
        yield Finding(f"the longer a checkpoint, the more it {rhythm.text} ({len(points)} checkpoints)", chance(rhythm, points), 1.0)
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
_FEWEST_RANKS = 8
_LEAST_RANKS = 0.5
"""A weaker correlation of ranks explains little, however sure it is."""
_FACTOR = 1.2
"""Amounts whose medians differ by a smaller factor explain nothing, however sure the difference is."""


def _amounts(history: History, slow: Sequence[RecordedCheckpoint], others: Sequence[RecordedCheckpoint]) -> Iterator[Finding]:
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
        is_known = len(amounts) >= _FEWEST_RANKS and min(amounts) >= 0
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


def _compared(name: str, slow: Sequence[float], others: Sequence[float], in_words: Callable[[float], str]) -> Iterator[Finding]:
    if not slow or not others or len({*slow, *others}) == 1 or min(*slow, *others) < 0:
        return
    alike = median(slow) <= _FACTOR * median(others)
    p = 1.0 if alike else float(mannwhitneyu(slow, others, alternative="greater").pvalue)
    text = f"more {name}: {in_words(median(slow))} in {len(slow)} slow ones, {in_words(median(others))} in {len(others)} others (medians)"
    yield Finding(text, p, 1.0)

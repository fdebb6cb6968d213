"""The verdict: sentences that say how strategies differ, and which checkpoint and which wait explain the difference.

A strategy is a scenario with one set of checkpoint options (`StrategyRow`).  Functions that return a sentence return ""
if there is nothing to say.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from operator import attrgetter
from typing import NamedTuple

from sim.model.text import capitalised, listed
from sim.results.end_of_job import Finish
from sim.results.estimates import MIN_INTERVALS, is_noise, longer_run
from sim.results.formats import bytes_text, change_text, count_text, ms_text, per_second_text, share_text
from sim.results.late_triggers import late_triggers_sentence, long_savepoint_sentence
from sim.results.not_completed import COLUMN_OF
from sim.results.side_by_side import FINALISATION, Single, StrategyRow
from sim.results.stored import unlimited_text
from sim.results.summary import STATISTICS
from sim.results.tables import EXPIRED, NOT_TRIGGERED

# ---- Sentences about the end of bounded jobs, checkpoints that stop before their job does, and jobs that do not keep up.

MIN_COMMITTED_SHARE = 0.99
"""A strategy is said to commit less if it commits under this share of the largest committed record count."""
MAX_NAMED = 4
"""Maximum strategies that a sentence lists by name; for more, it gives only their number."""


def finish_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return sentences on the end of a bounded job, or "" if it finishes with no strategy.

    They say when the job finishes with each strategy, how long it waits after its last record, how long the final
    checkpoint takes (FLIP-147), and which strategy commits fewer records.
    """
    ends = [(strategy, strategy.finish) for strategy in strategies if strategy.finish is not None]
    if not ends:
        return ""
    (_, first), (last_strategy, last) = (choose(ends, key=lambda pair: pair[1].at_s) for choose in (min, max))
    at_first = [strategy for strategy, end in ends if not _is_later(end, first)]
    text = f"The job finishes at {_time_of(first)}"
    if len(at_first) < len(strategies):
        text += f" with {_strategy_names(at_first)}"
    if _is_later(last, first):
        text += f", and at {_time_of(last)} with {last_strategy.short_name}"
    if len(ends) < len(strategies):
        text += (
            f"; with {_strategy_names([strategy for strategy in strategies if strategy.finish is None])} it does not"
        )
    return f"{text}. {''.join(f'{sentence}. ' for sentence in _end_sentences(strategies, ends))}"


def _end_sentences(strategies: Sequence[StrategyRow], ends: Sequence[tuple[StrategyRow, Finish]]) -> Iterator[str]:
    """Yield sentences on the end of jobs, without a full stop.

    They are about the wait after the last record, the final checkpoint, and strategies that commit fewer records.  `ends`:
    the strategies with which the job finishes.
    """
    waiting, longest = max(ends, key=lambda pair: pair[1].idle_s)
    if longest.checkpoints > 1:
        checkpoints = f"{ms_text(1e3 * longest.idle_s)} and {count_text(longest.checkpoints)} checkpoints"
        yield f"With {waiting.short_name} the job ends {checkpoints} after its last record"
    # these jobs need at most one checkpoint after their last record
    if once := [pair for pair in ends if pair[1].final is not None and pair[1].checkpoints <= 1]:
        strategy, end = max(once, key=lambda pair: pair[1].final_ms)
        completes = f"completes in {ms_text(end.final_ms)}"
        yield f"Checkpoint {end.final}{end.of} ({strategy.short_name}) is the final one and {completes}"
    if excluded := [strategy for strategy in strategies if _is_excluded_for_final_checkpoint(strategy, strategies)]:
        yield f"Not compared: {_strategy_names(excluded)}, where the final checkpoint is one of few"
    if without := [strategy for strategy, end in ends if end.final is None]:
        yield f"With {_strategy_names(without)} no final checkpoint completes"
    if committing := [(strategy, end.committed) for strategy, end in ends if strategy.commits]:
        most, (strategy, least) = (choose(committing, key=lambda pair: pair[1]) for choose in (max, min))
        if least < MIN_COMMITTED_SHARE * most[1]:
            yield f"{capitalised(strategy.short_name)} commits {count_text(least)} records of {count_text(most[1])}"


def _is_excluded_for_final_checkpoint(strategy: StrategyRow, strategies: Sequence[StrategyRow]) -> bool:
    """Return whether a strategy is not compared because its final checkpoint would distort its median."""
    return strategy.completes_end and strategy in _comparable([strategy]) and strategy not in _comparable(strategies)


def _disabled_checkpoints_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies without checkpoints and savepoints, or "" if there are none.

    It says that transactional output never becomes visible, and that there is nothing to restore after a failure.
    """
    disabled = [strategy for strategy in strategies if strategy.without_interval]
    if not disabled:
        return ""
    output = f"output of {_vertex_names(disabled[0].hidden)} never becomes visible, and " if disabled[0].hidden else ""
    named = _strategy_names(disabled)
    fails = "a failure finds none to restore, and ends the job unless restart.strategy is written"
    return f"With {named} checkpoints are off (checkpoint.interval): {output}{fails}. "


def _invisible_output_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies with which transactional sinks commit nothing in this run, or "" if there are none.

    Strategies without checkpoints are left out: see `_disabled_checkpoints_sentence`.
    """
    hiding = [strategy for strategy in strategies if strategy.hidden and not strategy.without_interval]
    if not hiding:
        return ""
    return (
        f"With {_strategy_names(hiding)} no output of {_vertex_names(hiding[0].hidden)} becomes visible in this run. "
    )


def early_end_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies whose checkpoints stop before the job does, or "" if there are none."""
    stopped = [strategy for strategy in strategies if not math.isnan(strategy.last_trigger_s)]
    if not stopped:
        return ""
    first_s = min(strategy.last_trigger_s for strategy in stopped)
    if not first_s:
        return f"With {_strategy_names(stopped)} no checkpoint is triggered. "
    since = f"none is triggered after {ms_text(1e3 * first_s)}, and a failure restores that last one"
    return f"With {_strategy_names(stopped)} checkpoints stop before the job does: {since}. "


def _is_later(late: Finish, early: Finish) -> bool:
    """Return whether a job finishes later than another one by more than noise."""
    return not is_noise(1e3 * late.at_s, 1e3 * early.at_s)


def _time_of(end: Finish) -> str:
    return ms_text(1e3 * end.at_s)


def _strategy_names(strategies: Sequence[StrategyRow]) -> str:
    """Return the strategies as a list of names, or only their number if there are many."""
    return few_names([strategy.short_name for strategy in strategies])


def few_names(names: Sequence[str]) -> str:
    """Return a list of strategy names, or only their number if there are more than `MAX_NAMED`."""
    return listed(names) if len(names) <= MAX_NAMED else f"{len(names)} strategies"


def _vertex_names(names: Sequence[str]) -> str:
    return listed([f"'{name}'" for name in names])


_MAX_IDLE_BUSY_SHARE = 0.5
"""Below this busy share of the busiest subtask, a job is not overloaded: something else holds its sources up."""
_MIN_FULL_SHARE = 0.995
"""Busy share from which the busiest subtask serves all that it can."""
_MIN_ALWAYS_BUSY_SHARE = 0.9
"""Below this busy share, the busiest vertex alone does not explain why a job cannot keep up."""


def overload_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on the most overloaded strategy, with rates, its bottleneck, and the other overloaded ones.

    Returns "" if all strategies keep up.
    """
    overloaded = [(strategy, strategy.overload) for strategy in strategies if strategy.overload]
    if not overloaded:
        return ""
    worst, rates = min(overloaded, key=lambda pair: pair[1].emitted_per_second / pair[1].due_per_second)
    due = f"{per_second_text(rates.emitted_per_second)} of {per_second_text(rates.due_per_second)} that are due"
    if not math.isnan(rates.until_s):
        due += f" before the first failure or stop ({ms_text(1e3 * rates.until_s)})"
    name, share = worst.busiest if rates.busiest is None else rates.busiest
    load = f"'{name}' is busy {share_text(share)}"
    if rates.never_idle is not None and share < _MIN_ALWAYS_BUSY_SHARE:
        name, busy, back_pressured = rates.never_idle
        load = f"'{name}' is never idle: busy {share_text(busy)} and back-pressured {share_text(back_pressured)}"
    # what sources emit into buffers may hide that a strategy serves no more
    least, most = ((1 + sign * MIN_THROUGHPUT_CHANGE) * _served_per_second(worst) for sign in (-1, 1))
    others = [
        own.label
        for own in strategies
        if own is not worst
        and (
            own.overload
            or (
                own.group == worst.group
                and own.busiest[1] >= _MIN_FULL_SHARE
                and least <= _served_per_second(own) <= most
            )
        )
    ]
    names = "all others" if len(others) + 1 == len(strategies) > 2 else few_names(others)
    also = f" Also overloaded: {names}." if others else ""
    period = "over the whole run" if rates.busiest is None else "until then"
    if not math.isnan(rates.since_s):
        period = f"from {ms_text(1e3 * rates.since_s)} on"
    is_idle = rates.never_idle is None and share < _MAX_IDLE_BUSY_SHARE
    begin = "Held up, not overloaded" if is_idle else "Overloaded"
    who, whose = (f"'{rates.source}' emits", "its") if rates.source else ("sources emit", "their")
    return f"{begin}: {worst.label}: {who} {due}, and {whose} backlog grows; {load} {period}.{also}"


# ---- The sentence about the decisive difference between strategies, computed from their numbers.
#
# A cause always refers to one checkpoint, given by its id: the median or the slowest one. Its numbers are in the result
# tables of its run. Numbers over all checkpoints (median, p99 or longest, throughput) are in the table of strategies.
#
# Two durations count as equal if repetitions of a real run may differ by as much (`is_noise`). Throughputs within 1.5 %
# count as equal.

MAX_QUICK_MS = 150.0
"""Checkpoints with a smaller median duration are quick: nothing delays their barriers."""
_MIN_TAIL_FACTOR = 5
"""If the longest checkpoint takes this many times the median, the longest one is explained instead of the median one.

Quick checkpoints have another limit: twice `MAX_QUICK_MS`.
"""
_MIN_WITH_FINAL = 4
"""With fewer completed checkpoints than this, the final checkpoint would distort the median."""
MIN_THROUGHPUT_CHANGE = 0.015
"""Relative difference below which two throughputs count as equal."""


def verdict(strategies: Sequence[StrategyRow]) -> str:
    """Return the sentences on the decisive difference between strategies.

    If there are several workloads (groups), they are about the one in which the choice of a strategy matters most.
    Strategies with which a sink does not start or loses records, or in which no window ends, are listed but not compared.
    """
    if harmed := [strategy for strategy in strategies if strategy.harmed_sink]:
        sinks = " and ".join(dict.fromkeys(strategy.harmed_sink for strategy in harmed))
        if usable := [strategy for strategy in strategies if not strategy.harmed_sink]:
            return f"Not compared: {_strategy_names(harmed)}, with which {sinks}. {verdict(usable)}"
        simulated = verdict([replace(strategy, harmed_sink="") for strategy in strategies])
        return f"A real job does not run like this: with barriers that overtake data {sinks}. As simulated: {simulated}"
    if held := [strategy for strategy in strategies if strategy.held_window]:
        rest = [strategy for strategy in strategies if not strategy.held_window]
        return (
            f"With {_strategy_names(held)} {held[0].held_window}."
            f"{f' Of the others: {verdict(rest)}'.replace('with all strategies', 'with all of these') if rest else ''}"
        )
    groups: dict[str, list[StrategyRow]] = {}
    for strategy in strategies:
        groups.setdefault(strategy.group, []).append(strategy)
    workloads = groups
    if all(len(group) == 1 for group in groups.values()):
        groups = {"": list(strategies)}
    name, compared = max(groups.items(), key=lambda item: _importance_of_choice(item[1]))
    difference = _difference(compared)
    named = (
        {name}
        if name
        else {row.group for row in compared if re.search(rf"{re.escape(row.short_name)}\b", difference.text)}
    )
    parts = (
        finish_sentence(compared),
        _disabled_checkpoints_sentence(compared),
        _invisible_output_sentence(compared),
        early_end_sentence(compared),
        _join_clauses(difference.text, _unlimited_text(compared)),
        ".",
        _short_run_sentence(compared),
        "" if difference.names_longest else _long_tail_sentence(compared),
        _first_upload_sentence(compared),
        _other_workloads_sentence(
            {group: rows for group, rows in workloads.items() if named and group and group not in named}
        ),
        _schedule_sentences(strategies),
    )
    text = "".join(parts)
    if len(groups) == 1:
        return text
    return f"With {name} and {text.removeprefix('With ')}" if text.startswith("With ") else f"With {name}: {text}"


def _other_workloads_sentence(workloads: Mapping[str, Sequence[StrategyRow]]) -> str:
    """Return a sentence on the checkpoints of these workloads, or "" if there are none."""
    clauses = []
    for workload, rows in workloads.items():
        completing = [row for row in rows if row.summary.completed]
        if any(row.failed for row in rows):
            found = "the job fails"
        elif completing:
            failures = sum(map(_failures, rows))
            longest = f"longest {ms_text(max(row.summary.end_to_end_max_ms for row in completing))}"
            fail = f", {count_text(failures)} fail" if failures else ""
            found = f"checkpoints take {_medians_text(completing)} ({longest}{fail})"
        else:
            found = "no checkpoint completes"
        clauses.append(f"with {workload} {found}")
    return f" {capitalised('; '.join(clauses))}." if clauses else ""


_MIN_SERIALISING_SHARE = 0.1
"""The thread that serialises a canonical savepoint decides if its files wait for it for this share of its time."""
_MIN_CARD_SHARE = 0.8
"""Network cards decide if the bytes of a checkpoint take them this share of its upload."""
_LONG_TAIL = 4
"""Ratio of the 90th percentile to the median from which the slowest checkpoints are explained, too."""
_LONG_TAIL_MS = 1_000
_MIN_CHECKPOINTS_OF_TENTH = 10
"""Minimum number of completed checkpoints of which one in ten is said to be slow."""


def _long_tail_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on the slowest tenth of the checkpoints of the strategy in which they are slowest, or "".

    Nothing is said if they are not much slower than the median, or if one of them is the only one that the median leaves out.
    """

    def excess_ms(strategy: StrategyRow) -> float:
        p50_ms, p90_ms = strategy.summary.end_to_end_p50_ms, strategy.summary.end_to_end_p90_ms
        if strategy.summary.completed < _MIN_CHECKPOINTS_OF_TENTH:
            return 0.0
        return p90_ms - p50_ms if p90_ms >= _LONG_TAIL * p50_ms else 0.0  # NaN: too few checkpoints for it

    longest = max(strategies, key=excess_ms)
    if not excess_ms(longest) >= _LONG_TAIL_MS or longest.singles.slowest is None:
        return ""
    where = f" with {longest.short_name}" if len(strategies) > 1 else ""
    cause = _uncapitalise(_wait_text(longest, several=len(strategies) > 1, slowest=True))
    return f" One in ten takes {ms_text(longest.summary.end_to_end_p90_ms)} or more{where}: {cause}."


def _unlimited_text(strategies: Sequence[StrategyRow]) -> str:
    """Return a clause that writes took no time because storage has no bandwidth limit, or ""."""
    writing = (strategy for strategy in strategies if strategy.summary.completed or strategy.first)
    return unlimited_text(max((strategy.unlimited_bytes for strategy in writing), default=0))


def _first_upload_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on the longest first upload, which no other number includes, or "" if there is none."""
    longest = _longest_single(strategies, lambda strategy: strategy.singles.first_upload)
    if longest is None:
        return ""
    strategy, first = longest
    name = capitalised(_checkpoint_name(strategy, first, several=len(strategies) > 1))
    written = f"{bytes_text(first.written_bytes)} in {ms_text(first.duration_ms)}"
    only = [strategy for strategy in strategies if _is_first_upload(strategy, strategies)]
    alike = f" So does the only one of {_strategy_names(only)}, which is not compared." if only else ""
    return f" {name} uploads everything, {written}: it has its own row, and everything but commits is about later ones.{alike}"


def _longest_single(
    strategies: Sequence[StrategyRow], single_of: Callable[[StrategyRow], Single | None]
) -> tuple[StrategyRow, Single] | None:
    """Return the strategy with the longest of these checkpoints, and the checkpoint, or None if there is none."""
    pairs = [(strategy, single) for strategy in strategies if (single := single_of(strategy)) is not None]
    return max(pairs, key=lambda pair: pair[1].duration_ms, default=None)


def _is_first_upload(strategy: StrategyRow, strategies: Sequence[StrategyRow]) -> bool:
    """Return whether the only completed checkpoint of a strategy corresponds to the first upload of other strategies.

    `first_uploads` does not mark it: without later checkpoints it is unknown whether they would be smaller.
    """
    return strategy.summary.completed == 1 and not strategy.first and any(other.first for other in strategies)


def _schedule_sentences(strategies: Sequence[StrategyRow]) -> str:
    """Return sentences on triggers that are later than the interval, and on the longest savepoint, or ""."""
    several = len(strategies) > 1
    name_of = attrgetter("label" if len({strategy.group for strategy in strategies}) > 1 else "short_name")
    late_triggers = [(name_of(strategy), strategy.late) for strategy in strategies if strategy.late is not None]
    long_savepoints = [
        (name_of(strategy), strategy.savepoint) for strategy in strategies if strategy.savepoint is not None
    ]
    return (
        late_triggers_sentence(late_triggers[:MAX_NAMED], several=several)
        + long_savepoint_sentence(long_savepoints, several=several)
        + _longest_savepoint_sentences(strategies)
    )


def _longest_savepoint_sentences(strategies: Sequence[StrategyRow]) -> str:
    """Return sentences on the failure and the longest wait of the longest savepoint that fails or is reported as long.

    The wait is given if barriers or the asynchronous part take at least half of the duration.  Returns "" if there is
    nothing to report.
    """
    longest = _longest_single(
        strategies,
        lambda strategy: (
            single if (single := strategy.singles.savepoint) and (single.cut_off or strategy.savepoint) else None
        ),
    )
    if longest is None:
        return ""
    (strategy, single), several = longest, len(strategies) > 1
    path, text = single.path, ""
    if single.cut_off and strategy.savepoint is None:
        text = f" {capitalised(_checkpoint_name(strategy, single, several))} fails after {ms_text(single.duration_ms)}."
    barriers_ms, snapshot_ms = max(path.queue_ms, path.alignment_ms), max(path.async_work_ms, path.upload_ms)
    # False if times are NaN, because no path was recorded
    if 2 * max(barriers_ms, snapshot_ms) >= single.duration_ms:
        aligned = ": savepoints are always aligned" if barriers_ms > snapshot_ms else ""
        text += f" {_cause_sentence(strategy, single, several)}{aligned}."
    return text


def _importance_of_choice(strategies: Sequence[StrategyRow]) -> tuple[int, int, float]:
    """Return how much the choice of a strategy matters: failed jobs, failed checkpoints, largest ratio of median durations."""
    durations = [_median_ms(strategy) for strategy in strategies if strategy.summary.completed]
    ratio = max(durations) / max(min(durations), 1.0) if durations else 0.0
    return sum(strategy.failed for strategy in strategies), sum(map(_failures, strategies)), ratio


class _Difference(NamedTuple):
    """The sentence on the decisive difference between strategies, without a full stop."""

    text: str
    names_longest: bool = (
        False  # it gives the duration of the longest checkpoint, so that the tail needs no other sentence
    )


def _difference(strategies: Sequence[StrategyRow]) -> _Difference:
    """Return the sentence on the decisive difference.

    The first that applies: no checkpoint ended, one strategy fails, none is comparable, medians differ, slowest checkpoints
    differ, all strategies are equal.
    """
    running = [
        strategy
        for strategy in strategies
        if strategy.summary.completed + strategy.summary.failed or strategy.failed or strategy.summary.standstill
    ]
    if not running:
        return _Difference(_unended_sentence(strategies))
    # the few checkpoints of a strategy whose checkpoints stop early are not comparable
    running = [strategy for strategy in running if math.isnan(strategy.last_trigger_s)] or running
    several, comparable = len(strategies) > 1, _comparable(running)
    worst = max(running, key=lambda own: (own.failed, bool(own.summary.standstill), _failed_share(own)))
    if worst.failed or _failures(worst) or worst.summary.standstill:
        names_longest = bool(comparable) and _has_long_tail(_best_strategy(comparable, _median_ms))
        return _Difference(_failure_sentence(worst, running, comparable), names_longest)
    if not comparable:
        return _Difference(_interrupted_sentence(running))
    slow, fast = max(comparable, key=_median_ms), _best_strategy(comparable, _median_ms)
    if not is_noise(_median_ms(slow), _median_ms(fast)):
        return _Difference(
            _join_clauses(
                _wait_text(slow, several), _median_change_text(fast, slow), _throughput_change_text(fast, slow)
            )
        )
    tail = _tail(comparable)
    late, early = max(comparable, key=tail.ms), _best_strategy(comparable, tail.ms)
    if not is_noise(tail.ms(late), tail.ms(early)):
        clauses = _tail_sentence(late, early, tail, _medians_text(comparable)), _throughput_change_text(early, late)
        return _Difference(_join_clauses(*clauses), names_longest=True)
    return _Difference(_equality_sentence(slow, comparable, several), names_longest=_has_long_tail(slow))


_MIN_INTERRUPTED = 3
"""Number of interrupted checkpoints of a strategy from which a longer run does not help."""


def _interrupted_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return the sentence for runs in which restarts, or the end of the job, interrupted all checkpoints."""
    cut_off = [found for own in strategies for found in own.not_completed if found.fate == "interrupted"]
    longest = max(cut_off, key=attrgetter("longest_ms"), default=None)
    if longest is None or longest.count < _MIN_INTERRUPTED:
        return "After the warm-up no checkpoint was completed: a restart or the end of the job interrupted them; run longer"
    return (
        f"After the warm-up no checkpoint was completed: {longest.count} are interrupted by restarts, the longest after "
        f"{ms_text(longest.longest_ms)}: none is over before the next failure"
    )


def _comparable(strategies: Sequence[StrategyRow]) -> list[StrategyRow]:
    """Return the strategies that may be compared.

    All their checkpoints must complete, and there must be others than the first upload.

    Strategies whose interval is so long that a run has few of them are left out if there is one with a shorter interval.

    The final checkpoint is quick, because channels are empty at the end of input.  Therefore a strategy with a final
    checkpoint and fewer than `_MIN_WITH_FINAL` checkpoints is left out, unless all comparable strategies have a final
    checkpoint.
    """
    short, complete = _too_few_intervals(strategies), _completing(strategies)
    complete = [strategy for strategy in complete if strategy not in short]
    if all(strategy.completes_end for strategy in complete):
        return complete
    return [
        strategy for strategy in complete if not strategy.completes_end or strategy.summary.completed >= _MIN_WITH_FINAL
    ]


def _completing(strategies: Sequence[StrategyRow]) -> list[StrategyRow]:
    """Return the strategies all of whose checkpoints complete, if there are others than the first upload."""
    return [
        strategy
        for strategy in strategies
        if strategy.summary.completed
        and not (strategy.failed or _failures(strategy) or strategy.summary.standstill)
        and not _is_first_upload(strategy, strategies)
    ]


def _too_few_intervals(strategies: Sequence[StrategyRow]) -> list[StrategyRow]:
    """Return the completing strategies of whose intervals the run has too few, if another one has a shorter interval."""
    completing = _completing(strategies)
    shortest_ms = min((own.interval_ms for own in completing), default=0.0)
    return [own for own in completing if own.interval_ms > shortest_ms and own.intervals < MIN_INTERVALS]


def _short_run_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies that are not compared because the run has too few of their intervals, or ""."""
    if not (short := _too_few_intervals(strategies)):
        return ""
    longest = max(short, key=attrgetter("interval_ms"))
    return (
        f" Durations with {_strategy_names(short)} are not compared: the run has fewer than {MIN_INTERVALS} such intervals, and its first "
        f"checkpoint meets a job that has just started ({longer_run(MIN_INTERVALS, longest.warmup_ms, longest.interval_ms)})."
    )


def axis_sentences(strategies: Sequence[StrategyRow]) -> Iterator[str]:
    """Yield a sentence per axis on its effect alone, if there are several axes.

    It compares the two strategies that differ only in this axis and whose median durations differ most.
    """
    for axis in dict(strategies[0].axes) if strategies and len(strategies[0].axes) > 1 else ():
        pairs = [
            pair
            for pair in permutations(_comparable(strategies), 2)
            if {name for name, _ in {*pair[0].axes} ^ {*pair[1].axes}} == {axis}
            and not is_noise(*map(_median_ms, pair))
        ]
        if pairs:
            slow, fast = max(pairs, key=lambda pair: _median_ms(pair[0]) / _median_ms(pair[1]))
            yield f"{axis} alone: {_median_text(fast)} in the median ({fast.label}) instead of {_median_text(slow)} ({slow.label})."


def _unended_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence for runs in which no checkpoint completed or failed: what the longest-running one waits for."""
    text = "No checkpoint was completed or failed after the warm-up"
    if all(strategy.is_off for strategy in strategies):
        return "No checkpoint is due: set checkpoint.interval"
    longest = _longest_single(
        strategies, lambda strategy: single if (single := strategy.singles.under_way) and single.cut_off else None
    )
    if longest is None:
        return f"{text}: run longer"
    (strategy, single), several = longest, len(strategies) > 1
    lasts = f"has been under way for {ms_text(single.duration_ms)} when the run ends, so run longer"
    cause = _cause_sentence(strategy, single, several)
    return f"{text}: {_checkpoint_name(strategy, single, several)} {lasts}. {cause}"


class _Tail(NamedTuple):
    """The measure by which the slowest checkpoints are compared: p99 if every strategy has its minimum sample, else the maximum."""

    name: str
    ms: Callable[[StrategyRow], float]


def _tail(strategies: Sequence[StrategyRow]) -> _Tail:
    """Return the measure by which the slowest checkpoints of these strategies are compared."""
    if all(own.summary.completed >= STATISTICS["end_to_end_p99_ms"].smallest_sample for own in strategies):
        return _Tail("p99", attrgetter("summary.end_to_end_p99_ms"))
    return _Tail("longest", attrgetter("summary.end_to_end_max_ms"))


def _failure_sentence(worst: StrategyRow, strategies: Sequence[StrategyRow], comparable: Sequence[StrategyRow]) -> str:
    """Return the sentence on the strategy that fails most: its failures, their cause, and the best of the `comparable` ones.

    `worst`: the strategy with a failed job, deadlocked tasks, or the largest share of failed checkpoints.
    """
    standstill, failed, failures = worst.summary.standstill, worst.singles.failed, _failure_texts(worst)
    begin = f"With {worst.short_name} {failures[0] if failures else 'a checkpoint hangs'}"
    failing = [own for own in strategies if own is not worst and own not in comparable and _failures(own)]
    failing_texts = [f"with {own.short_name} {'; '.join(_failure_texts(own))}" for own in failing[:MAX_NAMED]]
    if worst.failed:
        reason = (worst.status.partition(": ")[2] or worst.status).rstrip(".")
        others = f"with {' or '.join(strategy.short_name for strategy in comparable)} it " if comparable else ""
        if worst.status.startswith("RESTARTING"):
            cause = ""
            if failed is not None and failed.cut_off and EXPIRED in reason:
                cause = _uncapitalise(_cause_sentence(worst, failed, several=len(strategies) > 1))
            begin = f"With {worst.short_name} the job restarts forever: {reason}"
            return _join_clauses(begin, *failing_texts, standstill, others and f"{others}does not", cause)
        # no checkpoint failed, but a job of a chain found no snapshot to start from
        if "cannot start" in reason:
            return _join_clauses(f"With {worst.short_name} {reason}", others and f"{others}goes on")
        begin = f"With {worst.short_name} the job fails ({reason})" + (f" after {failures[0]}" if failures else "")
    if standstill:
        begin += f", because tasks wait for each other: {standstill}; with aligned barriers they do not"
    elif failed is not None and (
        failed.cut_off == FINALISATION or (failed.cut_off and _is_explained(failed, worst.singles.failures[0][0]))
    ):
        begin += f", because {_uncapitalise(_cause_sentence(worst, failed, several=True))}"
    return _join_clauses(
        begin,
        *([] if worst.failed else _survival_texts(worst)),
        *failures[1:],
        *failing_texts,
        _completion_text(comparable),
    )


def _survival_texts(strategy: StrategyRow) -> Iterator[str]:
    """Yield clauses on the restarts that failed checkpoints caused, and on why the job did not fail."""
    summary, singles, tolerable = strategy.summary, strategy.singles, strategy.tolerable
    if singles.restarts:
        yield _restarts_text(strategy)
    # A steady run with more checkpoints than failures are tolerated explains it, too, even if it had fewer failures.
    is_limit_near = tolerable < _failures(strategy) or (strategy.steady and tolerable <= summary.completed)
    if summary.completed and singles.failures and all(reason == NOT_TRIGGERED for reason, _ in singles.failures):
        yield f"{'it does' if _failures(strategy) == 1 else 'they do'} not count against checkpoint.tolerable-failed ({tolerable})"
    elif summary.completed and singles.in_a_row <= tolerable and is_limit_near:
        yield f"at most {singles.in_a_row} in a row, of {tolerable} that are tolerated: a completed one resets the count"


def _restarts_text(strategy: StrategyRow) -> str:
    """Return ``the job restarts 2 times, from the beginning, as more than 3 checkpoints in a row fail (checkpoint.tolerable-failed)``."""
    count, from_beginning, tolerable = strategy.singles.restarts, strategy.singles.from_beginning, strategy.tolerable
    places = {0: "", count: ", from the beginning"}
    place = places.get(from_beginning, f", {from_beginning} of them from the beginning")
    reasons = {0: "a checkpoint fails", 1: "more than 1 checkpoint in a row fails"}
    reason = reasons.get(tolerable, f"more than {tolerable} checkpoints in a row fail")
    times = "once" if count == 1 else f"{count} times"
    return f"the job restarts {times}{place}, as {reason} (checkpoint.tolerable-failed)"


def _completion_text(comparable: Sequence[StrategyRow]) -> str:
    """Return a clause on the best of these strategies, whose checkpoints all complete, or "" if there is none."""
    if not comparable:
        return ""
    fast = _best_strategy(comparable, _median_ms)
    completed, took = fast.summary.completed, _median_text(fast)
    if _has_long_tail(fast):
        took += f" in the median, the longest in {ms_text(fast.summary.end_to_end_max_ms)}"
    return f"{fast.short_name} completes {'its one' if completed == 1 else f'all {completed}'} in {took}{_in_flight_text(fast, 'stores')}"


def _failure_texts(strategy: StrategyRow) -> list[str]:
    """Return a clause per failure reason with its count: ``3 of 9 checkpoints expire``, ``2 fail (IO_EXCEPTION)``."""
    expire, fail = ("expired", "failed") if strategy.failed else ("expire", "fail")
    return [
        f"{count}{'' if i else f' of {strategy.summary.completed + _failures(strategy)} checkpoints'} "
        + (expire if _is_expiry(message) else f"{fail} ({message.rstrip('.') or 'no reason given'})")
        for i, (message, count) in enumerate(strategy.singles.failures)
    ]


def _is_explained(failed: Single, message: str) -> bool:
    """Return whether the path of a failed checkpoint explains why acknowledgements, or responses to its trigger, were missing."""
    is_cut_off = failed.unknown_loss is not None or failed.path.queue_at_source
    return _is_expiry(message) or (message == NOT_TRIGGERED and is_cut_off)


def _is_expiry(message: str) -> bool:
    """Return whether a failure message says that a checkpoint expired."""
    return "expire" in message.lower()


def _equality_sentence(slow: StrategyRow, strategies: Sequence[StrategyRow], several: bool) -> str:
    """Return the sentence for strategies that do not differ by more than noise, or for a single one."""
    fast, medians = min(strategies, key=_median_ms), _medians_text(strategies)
    begin = f"Checkpoints of {slow.short_name} take" if several and len(strategies) == 1 else "Checkpoints take"
    if _has_long_tail(slow):
        times = f"{_median_text(slow)} in the median, the longest {ms_text(slow.summary.end_to_end_max_ms)}"
        text = f"{begin} {times}: {_uncapitalise(_wait_text(slow, several, slowest=True))}"
    elif _median_ms(slow) < MAX_QUICK_MS:
        text = f"{begin} {medians}: nothing holds the barriers up ({_load_text(slow)})"
    else:
        text = _wait_text(slow, several)
    if len(strategies) == 1:
        return _join_clauses(text, _cost_text(slow))
    alike = (
        f"checkpoints take {medians} with all strategies"
        if medians == _median_text(slow)
        else f"the strategies differ by less than repetitions of one real job do ({medians})"
    )
    return _join_clauses(text, alike, _throughput_range_text(slow, fast, strategies))


def _cost_text(strategy: StrategyRow) -> str:
    """Return a clause on the throughput that checkpoints cost, compared with a run without checkpoints, or "" if unknown.

    Throughput is a mean over the run, and records that a savepoint delays are processed after it.  The mean therefore
    cannot show the cost of savepoints, and the clause never says that they cost nothing.
    """
    change = strategy.throughput_change
    cause = "checkpoints and savepoints" if strategy.has_savepoints else "checkpoints"
    if math.isnan(change):
        return ""
    if abs(change) < MIN_THROUGHPUT_CHANGE:
        return "" if strategy.has_savepoints else f"{cause} cost no throughput"
    if change < 0:
        return f"{cause} cost {change_text(change).lstrip('-')} of throughput"
    return f"throughput is {change_text(change)} with {cause}"


def _tail_sentence(late: StrategyRow, early: StrategyRow, tail: _Tail, medians: str) -> str:
    """Return the sentence for strategies with equal medians but different slowest checkpoints, with the cause of the slowest one."""
    slowest = f"{ms_text(tail.ms(early))} instead of {ms_text(tail.ms(late))}"
    cause = _uncapitalise(_wait_text(late, several=True, slowest=True))
    return f"Medians are alike ({medians}), tails are not: {cause}; the {tail.name} of {early.short_name} is {slowest}"


def _wait_text(strategy: StrategyRow, several: bool, *, slowest: bool = False) -> str:
    """Return the largest wait of the median checkpoint (or the `slowest`) of a strategy, and where it occurs."""
    single = strategy.singles.slowest if slowest else strategy.singles.median
    if single is None:
        return f"Nothing was recorded of these checkpoints ({_load_text(strategy)})"
    return _cause_sentence(strategy, single, several)


def _cause_sentence(strategy: StrategyRow, single: Single, several: bool) -> str:
    """Return a sentence, without a full stop, on the largest wait of this checkpoint, and where it occurs.

    `several`: there are other strategies, so the checkpoint is named together with its strategy.
    """
    path, checkpoint = single.path, _checkpoint_name(strategy, single, several)
    if single.cut_off == FINALISATION:
        return f"All tasks of {checkpoint} acknowledge it, and its metadata cannot be written"
    if single.unknown_loss is not None:
        cause, lost_ms, known_ms = single.unknown_loss
        lost = f"{cause.removesuffix(' lost')} is lost at {ms_text(lost_ms)}"
        return f"{lost}, which the JobManager learns at {ms_text(known_ms)}: its tasks do not acknowledge {checkpoint}"
    if math.isnan(path.queue_ms):
        return f"Nothing was recorded of the path of {checkpoint} ({_load_text(strategy)})"
    # the largest kind in the largest column of the table of strategies, so that text and table agree
    times_ms = {kind: getattr(path, f"{kind}_ms") for kind in COLUMN_OF}
    columns_ms = Counter[str]()
    for kind, ms in times_ms.items():
        columns_ms[COLUMN_OF[kind]] += ms
    largest = max(times_ms, key=lambda kind: (columns_ms[COLUMN_OF[kind]], times_ms[kind]))
    took = f"{ms_text(times_ms[largest])} of the {ms_text(single.duration_ms)} of {checkpoint}"
    worker = f"'{path.async_vertex}'"
    both_ms, is_canonical = path.upload_ms + path.async_work_ms, single.savepoint_format == "CANONICAL"
    is_serialised = single.cut_off or path.async_work_ms >= _MIN_SERIALISING_SHARE * both_ms
    if is_canonical and is_serialised and largest in ("async_work", "upload"):  # both at the same time
        took = f"{ms_text(both_ms)} of the {ms_text(single.duration_ms)} of {checkpoint}"
        decide = "barriers do not decide" if single.cut_off else "neither storage nor barriers decide"
        return f"Serialising and writing {_upload_text(single, took)} (canonical: at most at checkpoint.savepoint-rate): {decide}"
    match largest:
        case "queue":
            return _queue_text(strategy, single, checkpoint)
        case "timeout":
            place = f"in front of '{path.timeout_vertex}' until the alignment timeout lets them overtake"
            return f"Barriers of {checkpoint} wait {ms_text(path.timeout_ms)} {place} ({_load_text(strategy, path.timeout_vertex)})"
        case "alignment":
            waits = f"'{path.alignment_vertex}' waits {ms_text(path.alignment_vertex_ms)} from its first to its last barrier"
            return f"In {checkpoint} {waits}, which comes from {single.late_input} ({_load_text(strategy)})"
        case "pre_barrier":
            return f"Work before the barrier takes {took}"
        case "sync":
            return f"The synchronous phase takes {took}, on the task threads"
        case "async_queue":
            return f"Snapshots wait {took} for the asynchronous thread of {worker}, at work for older checkpoints"
        case "async_work":
            return f"Asynchronous work of {worker} takes {took}, not counting its files: neither storage nor barriers decide"
        case "upload":
            cards_s = single.written_bytes / strategy.card_bytes_per_second
            decide = (
                "the network cards (storage.nic) decide"
                if 1e3 * cards_s >= _MIN_CARD_SHARE * path.upload_ms
                else "storage decides"
            )
            barriers_ms = path.queue_ms + path.timeout_ms + path.alignment_ms
            barriers, singles = ", not the barriers", strategy.singles
            if single is singles.median and 2 * singles.barriers_in_tail >= singles.tail > 0:
                barriers = f" here, but {singles.barriers_in_tail} of the slowest {singles.tail} checkpoints wait longer for barriers than for files"
            if 2 * barriers_ms >= path.upload_ms:
                barriers = f", and so {'do' if barriers_ms >= path.upload_ms else 'partly do'} the barriers, which wait {ms_text(barriers_ms)}"
            return f"Writing {_upload_text(single, took)}: {decide}{barriers}"
        case "channel_state":
            return f"Writing in-flight data of {worker} takes {took}: storage decides, once barriers are through"
        case _:
            return f"Messages to and from the coordinator take {took}"


def _queue_text(strategy: StrategyRow, single: Single, checkpoint: str) -> str:
    """Return the sentence on barriers that wait behind data or for a task thread, or on a trigger that waits for a source."""
    name, singles = single.path.queue_vertex, strategy.singles
    vertex, waited, load = f"'{name}'", ms_text(single.path.queue_vertex_ms), _load_text(strategy, name)
    if single.path.queue_at_source:
        if single is singles.failed and singles.failures[0][0] == NOT_TRIGGERED:
            return f"{vertex} does not answer the trigger of {checkpoint} within {waited}, pekko.ask.timeout: its TaskManager is cut off"
        takes, limit = ("does not take", "within") if single.cut_off else ("takes", "only after")
        return f"{vertex} {takes} the trigger of {checkpoint} {limit} {waited}: its task thread is held up ({load})"
    is_committing = 2 * strategy.commit_ms.get(name, 0) >= single.path.queue_vertex_ms
    if single.persisted_bytes > 0 and name not in strategy.aligned and not is_committing:
        return f"Even barriers that overtake data, as in {checkpoint}, wait {waited} for the task thread of {vertex} ({load})"
    if is_committing:
        commit = f"whose commit of an older checkpoint takes {ms_text(strategy.commit_ms[name])} (commit.time)"
        return f"Barriers of {checkpoint} wait {waited} for the thread of {vertex}, {commit}, which none overtakes ({load})"
    if name in strategy.committers:
        waits = f"{waited} for {vertex}, whose thread is at work on an older commit"
    elif name in strategy.firing:
        waits = f"{waited} behind data in front of {vertex}, or while its window fires"
    elif is_noise(single.path.queue_ms, single.path.queue_vertex_ms):
        waits = f"behind {waited} of queued data in front of {vertex}"
    else:
        waits = f"behind {ms_text(single.path.queue_ms)} of queued data, {waited} of it in front of {vertex}"
    return f"Barriers of {checkpoint} wait {waits} ({load})"


def _upload_text(single: Single, took: str) -> str:
    """Return what a checkpoint writes, how long that takes, and its wait for an older checkpoint if that is as long."""
    # files that operators write are not part of the checkpoint size
    written = bytes_text(single.written_bytes) if single.written_bytes and not single.cut_off else "files"
    path, older = single.path, ""
    if 2 * path.async_queue_ms >= path.upload_ms:
        older = f", after {ms_text(path.async_queue_ms)} in which the asynchronous thread of '{path.async_vertex}' writes an older checkpoint"
    return f"{written} takes {took}{older}"


def _checkpoint_name(strategy: StrategyRow, single: Single, several: bool) -> str:
    """Return ``checkpoint 4``, or ``checkpoint 4 (aligned)`` if there are several strategies."""
    return f"{single} ({strategy.short_name})" if several else str(single)


def _median_change_text(fast: StrategyRow, slow: StrategyRow) -> str:
    """Return a clause that compares the median durations of two strategies, and the longest ones if that of `fast` is long, too."""
    longest = ""
    if _has_long_tail(fast):
        fast_ms, slow_ms = (row.summary.end_to_end_max_ms for row in (fast, slow))
        both = ms_text(fast_ms), ms_text(slow_ms)
        longest = (
            f" (longest {both[0]} instead of {both[1]})" if both[0] != both[1] else f" (longest {both[0]}, as there)"
        )
    return f"{fast.short_name} checkpoints take {_median_text(fast)} instead of {_median_text(slow)}{longest}{_in_flight_text(fast)}"


def _in_flight_text(strategy: StrategyRow, verb: str = "store") -> str:
    """Return a clause on the in-flight data that each checkpoint stores (median), or "" if none is stored."""
    stored_bytes = strategy.summary.persisted_bytes
    return f" and {verb} {bytes_text(stored_bytes)} of in-flight data each" if stored_bytes > 0 else ""


def _throughput_change_text(fast: StrategyRow, slow: StrategyRow) -> str:
    """Return a clause on the throughput of `fast` compared with `slow`, or "" if one of the jobs ends within the run."""
    if fast.is_over or slow.is_over:
        return ""
    served, other = map(_served_per_second, (fast, slow))
    if min(served, other) == 0 < max(served, other):
        return f"throughput is {per_second_text(served)} instead of {per_second_text(other)}"
    change = served / other - 1 if other else 0.0
    if abs(change) < MIN_THROUGHPUT_CHANGE:
        return f"throughput is the same ({change_text(change)})"
    return f"throughput {'rises' if change > 0 else 'drops'} ({change_text(change)})"


def _throughput_range_text(slow: StrategyRow, fast: StrategyRow, strategies: Sequence[StrategyRow]) -> str:
    """Return the highest and the lowest throughput with their strategies, if they differ by more than noise.

    Otherwise, and if some job ends within the run, returns `_throughput_change_text` of `fast` and `slow`.
    """
    low, high = min(strategies, key=_served_per_second), max(strategies, key=_served_per_second)
    least, most = _served_per_second(low), _served_per_second(high)
    if any(strategy.is_over for strategy in strategies) or not least > 0 or most / least - 1 < MIN_THROUGHPUT_CHANGE:
        return _throughput_change_text(fast, slow)
    return f"{high.short_name} serves {per_second_text(most)}, {low.short_name} {per_second_text(least)}"


def _load_text(strategy: StrategyRow, named: str = "") -> str:
    """Return the busiest and the most back-pressured vertex with their shares.

    `named`: a vertex that the sentence has already named, so its name is not repeated.
    """
    summary, (busiest, share) = strategy.summary, strategy.busiest
    if busiest == named:
        return f"busy {share_text(share)}"
    text = f"'{busiest}' busy {share_text(share)}"
    if summary.most_backpressured_share >= 0.1:
        text += f", '{summary.most_backpressured}' back-pressured {share_text(summary.most_backpressured_share)}"
    return text


def _best_strategy(strategies: Sequence[StrategyRow], duration: Callable[[StrategyRow], float]) -> StrategyRow:
    """Return the strategy with the smallest `duration`.

    Among strategies within noise of it and without less throughput, this is the one that stores least in-flight data.
    """
    quickest = min(strategies, key=duration)
    least_per_second = _served_per_second(quickest) * (1 - MIN_THROUGHPUT_CHANGE)
    equals = [
        strategy
        for strategy in strategies
        if is_noise(duration(strategy), duration(quickest)) and _served_per_second(strategy) >= least_per_second
    ]
    return min(equals or [quickest], key=lambda strategy: (strategy.summary.persisted_bytes, duration(strategy)))


_served_per_second: Callable[[StrategyRow], float] = attrgetter("summary.throughput_per_second")
_median_ms: Callable[[StrategyRow], float] = attrgetter("summary.end_to_end_p50_ms")


def _has_long_tail(strategy: StrategyRow) -> bool:
    """Return whether the longest checkpoint of a strategy is so much longer than the median that sentences give it, too."""
    median_ms = _median_ms(strategy)
    min_ms = 2 * MAX_QUICK_MS if median_ms < MAX_QUICK_MS else _MIN_TAIL_FACTOR * median_ms
    return strategy.summary.end_to_end_max_ms >= min_ms


def _median_text(strategy: StrategyRow) -> str:
    return ms_text(_median_ms(strategy))


def _medians_text(strategies: Sequence[StrategyRow]) -> str:
    """Return ``46 ms to 48 ms``: the smallest and the largest median duration, or one if they are printed alike."""
    low, high = (ms_text(choose(map(_median_ms, strategies))) for choose in (min, max))
    return low if low == high else f"{low} to {high}"


def _failed_share(strategy: StrategyRow) -> float:
    """Return the share of failed checkpoints among those that completed or failed."""
    return _failures(strategy) / max(1, strategy.summary.completed + _failures(strategy))


def _failures(strategy: StrategyRow) -> int:
    """Return the number of failed checkpoints, except those that a restart or the end of the job interrupted."""
    return strategy.summary.failed - strategy.summary.interrupted


def _join_clauses(*parts: str) -> str:
    """Return the parts that are not empty, separated by "; "."""
    return "; ".join(filter(None, parts))


def _uncapitalise(text: str) -> str:
    """Return a text with a lower-case first letter."""
    return text[:1].lower() + text[1:]

"""The verdict: sentences that say how strategies differ, and which checkpoint and which wait explain the difference.

A strategy is a scenario with one set of checkpoint options (`StrategyRow`).  Functions that return a sentence return ""
if there is nothing to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

from sim.model.text import capitalised, listed
from sim.results.consequences import Finish, late_triggers_sentence, long_savepoint_sentence
from sim.results.estimates import is_noise
from sim.results.formats import bytes_text, change_text, count_text, ms_text, per_second_text, share_text
from sim.results.side_by_side import FINALISATION, Single, StrategyRow
from sim.results.stored import unlimited_text
from sim.results.summary import STATISTICS
from sim.results.tables import EXPIRED, NOT_TRIGGERED

# ---- Sentences about the end of bounded jobs, checkpoints that stop before their job does, and jobs that do not keep up.

COMMITTED_SHARE = 0.99
"""A strategy is said to commit less if it commits under this share of the largest committed record count."""
MAX_NAMED = 4
"""Maximum strategies that a sentence lists by name; for more, it gives only their number."""


def finish_sentence(lines: Sequence[StrategyRow]) -> str:
    """Return sentences on the end of a bounded job, or "" if it finishes with no strategy.

    They say when the job finishes with each strategy, how long it waits after its last record, how long the final
    checkpoint takes (FLIP-147), and which strategy commits fewer records.
    """
    found = [(line, line.finish) for line in lines if line.finish is not None]
    if not found:
        return ""
    early, late = min(found, key=lambda item: item[1].at_s), max(found, key=lambda item: item[1].at_s)
    soon = [line for line, end in found if not _later(end, early[1])]
    text = f"The job finishes at {_at(early[1])}" + (f" with {_names(soon)}" if len(soon) < len(lines) else "")
    if _later(late[1], early[1]):
        text += f", and at {_at(late[1])} with {late[0].called}"
    if len(found) < len(lines):
        text += f"; with {_names([line for line in lines if line.finish is None])} it does not"
    return f"{text}. {''.join(f'{sentence}. ' for sentence in _about_ends(lines, found))}"


def _about_ends(lines: Sequence[StrategyRow], found: Sequence[tuple[StrategyRow, Finish]]) -> Iterator[str]:
    """Yield sentences on the end of jobs, without a full stop.

    They are about the wait after the last record, the final checkpoint, and strategies that commit fewer records.  `found`:
    the strategies with which the job finishes.
    """
    waiting, longest = max(found, key=lambda item: item[1].idle_s)
    if longest.checkpoints > 1:
        checkpoints = f"{ms_text(1e3 * longest.idle_s)} and {count_text(longest.checkpoints)} checkpoints"
        yield f"With {waiting.called} {checkpoints} pass after its last record"
    # these jobs need at most one checkpoint after their last record
    if once := [(line, end) for line, end in found if end.final is not None and end.checkpoints <= 1]:
        line, end = max(once, key=lambda item: item[1].final_ms)
        complete = f"is complete after {ms_text(end.final_ms)}"
        yield f"Checkpoint {end.final}{end.of} ({line.called}) holds its end and {complete}"
    if few := [line for line in lines if line not in _sound(lines) and line in _sound([line]) and line.completes_end]:
        yield f"Not compared: {_names(few)}, where such a checkpoint is one of few"
    if open_ := [line for line, end in found if end.final is None]:
        yield f"With {_names(open_)} no checkpoint holds its end"
    most, (less, least) = max(end.committed for _, end in found), min(found, key=lambda item: item[1].committed)
    if least.committed < COMMITTED_SHARE * most:
        yield f"{capitalised(less.called)} commits {count_text(least.committed)} records of {count_text(most)}"


def off_sentence(lines: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies without checkpoints and savepoints, or "" if there are none.

    It says that transactional output never becomes visible, and that there is nothing to restore after a failure.
    """
    off = [line for line in lines if line.without_interval]
    if not off:
        return ""
    hidden = listed([f"'{vertex}'" for vertex in off[0].hidden])
    output = f"output of {hidden} never becomes visible, and " if hidden else ""
    return (
        f"With {_names(off)} no checkpoint is due (checkpoint.interval): {output}a failure finds none to go back to. "
    )


def unseen_sentence(lines: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies with which transactional sinks commit nothing in this run, or "" if there are none.

    Strategies without checkpoints are left out: see `off_sentence`.
    """
    found = [line for line in lines if line.hidden and not line.without_interval]
    if not found:
        return ""
    vertices = listed([f"'{vertex}'" for vertex in found[0].hidden])
    return f"With {_names(found)} no output of {vertices} becomes visible in this run. "


def stopped_sentence(lines: Sequence[StrategyRow]) -> str:
    """Return a sentence on strategies whose checkpoints stop before the job does, or "" if there are none."""
    stopped = [line for line in lines if not math.isnan(line.last_trigger_s)]
    if not stopped:
        return ""
    first = min(stopped, key=lambda line: line.last_trigger_s)
    if not first.last_trigger_s:
        return f"With {_names(stopped)} no checkpoint is triggered. "
    when = ms_text(1e3 * first.last_trigger_s)
    since = f"none is triggered after {when}, and a failure goes back to that one"
    return f"With {_names(stopped)} checkpoints end while the job runs on: {since}. "


def _later(late: Finish, early: Finish) -> bool:
    """Return whether a job finishes later than another one by more than noise."""
    return not is_noise(1e3 * late.at_s, 1e3 * early.at_s)


def _at(found: Finish) -> str:
    """Return the time at which a job finishes."""
    return ms_text(1e3 * found.at_s)


def _names(lines: Sequence[StrategyRow]) -> str:
    """Return the strategies as a list of names, or only their number if there are many."""
    return few_names([line.called for line in lines])


def few_names(names: Sequence[str]) -> str:
    """Return a list of strategy names, or only their number if there are more than `MAX_NAMED`."""
    return listed(names) if len(names) <= MAX_NAMED else f"{len(names)} strategies"


_ALWAYS_BUSY = 0.9
"""Below this busy share, the busiest vertex alone does not explain why a job cannot keep up."""


def overload_sentence(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on the most overloaded strategy, with rates, its bottleneck, and the other overloaded ones.

    Returns "" if all strategies keep up.
    """
    found = [
        (line.overload.emitted_per_second / line.overload.due_per_second, line, line.overload)
        for line in strategies
        if line.overload
    ]
    if not found:
        return ""
    _, worst, overload = min(found, key=lambda item: item[0])
    when = (
        "" if math.isnan(overload.until_s) else f" before the first failure or stop ({ms_text(1e3 * overload.until_s)})"
    )
    rates = f"{per_second_text(overload.emitted_per_second)} of {per_second_text(overload.due_per_second)} that are due{when}"
    name, share = worst.busiest
    others = [line.label for _, line, _ in found if line is not worst]
    names = "all others" if len(found) == len(strategies) > 2 else few_names(others)
    also = f" So {'are' if others[1:] else 'is'} {names}." if others else ""
    load = f"'{name}' is busy {share_text(share)}"
    if overload.never_idle is not None and share < _ALWAYS_BUSY:
        name, busy, waits = overload.never_idle
        load = f"'{name}' is never idle: busy {share_text(busy)} and back-pressured {share_text(waits)}"
    return f"Overloaded: {worst.label}: sources emit {rates}, and their backlog grows; {load} over the whole run.{also}"


# ---- The sentence about the decisive difference between strategies, computed from their numbers.
#
# A cause always refers to one checkpoint, given by its id: the median or the slowest one. Its numbers are in the result
# tables of its run. Numbers over all checkpoints (median, p99 or longest, throughput) are in the table of strategies.
#
# Two durations count as equal if repetitions of a real run may differ by as much (`is_noise`). Throughputs within 1.5 %
# count as equal.

QUICK_MS = 150.0
"""Checkpoints with a smaller median duration are quick: nothing delays their barriers."""
_TAIL_FACTOR = 5
"""If the longest checkpoint takes this many times the median, the longest one is explained instead of the median one.

Quick checkpoints have another limit: twice `QUICK_MS`.
"""
_MANY = 4
"""With fewer completed checkpoints than this, the final checkpoint would distort the median."""
NOISE_THROUGHPUT = 0.015
"""Relative difference below which two throughputs count as equal."""


def verdict(strategies: Sequence[StrategyRow]) -> str:
    """Return the sentences on the decisive difference between strategies.

    If there are several workloads (groups), they are about the one in which the choice of a strategy matters most.
    Strategies with which a sink does not start or loses records, or in which no window ends, are listed but not compared.
    """
    if harmed := [line for line in strategies if line.harmed_sink]:
        sinks = " and ".join(dict.fromkeys(line.harmed_sink for line in harmed))
        if usable := [line for line in strategies if not line.harmed_sink]:
            return f"Not compared: {_names(harmed)}, with which {sinks}. {verdict(usable)}"
        strategies = [replace(line, harmed_sink="") for line in strategies]
        return f"Real jobs differ, as {sinks} where barriers overtake data. As simulated: {verdict(strategies)}"
    if held := [line for line in strategies if line.held_window]:
        rest = [line for line in strategies if not line.held_window]
        return f"With {_names(held)} {held[0].held_window}.{f' {verdict(rest)}' if rest else ''}"
    groups: dict[str, list[StrategyRow]] = {}
    for line in strategies:
        groups.setdefault(line.group, []).append(line)
    uploads = _first_uploads(strategies) + _schedule(strategies)
    if len(groups) == 1 or all(len(lines) == 1 for lines in groups.values()):
        return f"{_ends(strategies)}{_sentence(strategies)}{_unlimited(strategies)}.{uploads}"
    group, lines = max(groups.items(), key=lambda item: _stakes(item[1]))
    text = f"{_ends(lines)}{_sentence(lines)}{_unlimited(lines)}.{uploads}"
    return f"With {group} and {text.removeprefix('With ')}" if text.startswith("With ") else f"With {group}: {text}"


def _ends(lines: Sequence[StrategyRow]) -> str:
    """Return the sentences on the end of jobs and of checkpoints."""
    return finish_sentence(lines) + off_sentence(lines) + unseen_sentence(lines) + stopped_sentence(lines)


def _unlimited(lines: Sequence[StrategyRow]) -> str:
    """Return a clause, with "; " before it, that writes took no time because storage has no bandwidth limit, or ""."""
    text = unlimited_text(
        max((line.unlimited_bytes for line in lines if line.summary.completed or line.first), default=0)
    )
    return f"; {text}" if text else ""


def _first_uploads(strategies: Sequence[StrategyRow]) -> str:
    """Return a sentence on the longest first upload, which no other number includes, or "" if there is none."""
    found = _longest(strategies, lambda line: line.singles.first_upload)
    if found is None:
        return ""
    line, first = found
    name = capitalised(_called(line, first, several=len(strategies) > 1))
    written = f"{bytes_text(first.written_bytes)} in {ms_text(first.duration_ms)}"
    only = [line for line in strategies if _is_first_upload(line, strategies)]
    alike = f" So does the only one of {_names(only)}, which is not compared." if only else ""
    return f" {name} uploads everything, {written}: it has a row of its own, and all else is about later ones.{alike}"


def _longest(
    lines: Sequence[StrategyRow], single_of: Callable[[StrategyRow], Single | None]
) -> tuple[StrategyRow, Single] | None:
    """Return the strategy with the longest of these checkpoints, and the checkpoint, or None if there is none."""
    found = [(line, single) for line in lines if (single := single_of(line)) is not None]
    return max(found, key=lambda pair: pair[1].duration_ms, default=None)


def _is_first_upload(line: StrategyRow, lines: Sequence[StrategyRow]) -> bool:
    """Return whether the only completed checkpoint of a strategy corresponds to the first upload of other strategies.

    `first_uploads` does not mark it: without later checkpoints it is unknown whether they would be smaller.
    """
    return line.summary.completed == 1 and not line.first and any(other.first for other in lines)


def _schedule(strategies: Sequence[StrategyRow]) -> str:
    """Return sentences on triggers that are later than the interval, and on the longest savepoint, or ""."""
    several, groups = len(strategies) > 1, len({line.group for line in strategies})
    names = {line.label: line.label if groups > 1 else line.called for line in strategies}
    late = [(names[line.label], line.late) for line in strategies if line.late is not None]
    long = [(names[line.label], line.savepoint) for line in strategies if line.savepoint is not None]
    return (
        late_triggers_sentence(late[:MAX_NAMED], several=several)
        + long_savepoint_sentence(long, several=several)
        + _longest_savepoint(strategies)
    )


def _longest_savepoint(strategies: Sequence[StrategyRow]) -> str:
    """Return sentences on the failure and the longest wait of the longest savepoint that fails or is reported as long.

    The wait is given if barriers or the asynchronous part take at least half of the duration.  Returns "" if there is
    nothing to report.
    """
    found = _longest(
        strategies,
        lambda line: single if (single := line.singles.savepoint) and (single.cut_off or line.savepoint) else None,
    )
    if found is None:
        return ""
    line, single = found
    duration_ms = single.duration_ms
    several, way = len(strategies) > 1, single.path
    fails = (
        f" {capitalised(_called(line, single, several))} fails after {ms_text(duration_ms)}."
        if single.cut_off and line.savepoint is None
        else ""
    )
    barriers, snapshot = max(way.queue_ms, way.alignment_ms), max(way.async_work_ms, way.upload_ms)
    # "not >=" instead of "<": times are NaN if no path was recorded
    if not 2 * max(barriers, snapshot) >= duration_ms:
        return fails
    aligned = ": savepoints are always aligned" if barriers > snapshot else ""
    return f"{fails} {_cause_of(line, single, several)}{aligned}."


def _stakes(lines: Sequence[StrategyRow]) -> tuple[int, int, float]:
    """Return how much the choice of a strategy matters: failed jobs, failed checkpoints, largest ratio of median durations."""
    durations = [line.summary.end_to_end_p50_ms for line in lines if line.summary.completed]
    ratio = max(durations) / max(min(durations), 1.0) if durations else 0.0
    return sum(line.failed for line in lines), sum(map(_failures, lines)), ratio


def _sentence(lines: Sequence[StrategyRow]) -> str:
    """Return the sentence on the decisive difference, without a full stop.

    The first that applies: no checkpoint ended, one strategy fails, none is comparable, medians differ, slowest checkpoints
    differ, all strategies are equal.
    """
    running = [
        line for line in lines if line.summary.completed + line.summary.failed or line.failed or line.summary.standstill
    ]
    if not running:
        return _none_ended(lines)
    if any(math.isnan(line.last_trigger_s) for line in running):
        # the few checkpoints of a strategy whose checkpoints stop early are not comparable
        running = [line for line in running if math.isnan(line.last_trigger_s)]
    several = len(lines) > 1
    worst = max(running, key=lambda line: (line.failed, bool(line.summary.standstill), _failed_share(line)))
    sound = _sound(running)
    if worst.failed or _failures(worst) or worst.summary.standstill:
        return _failing(worst, running, sound)
    if not sound:
        return "After the warm-up no checkpoint was completed: a restart or the end of the job interrupted them; run longer"
    slow, fast = max(sound, key=_median_ms), _best(sound, _median_ms)
    if not is_noise(_median_ms(slow), _median_ms(fast)):
        return _joined(_cause(slow, several), _instead(fast, slow), _throughput(fast, slow))
    tail = _tail(sound)
    late, early = max(sound, key=tail.ms), _best(sound, tail.ms)
    if not is_noise(tail.ms(late), tail.ms(early)):
        return _joined(_tails(late, early, tail), _throughput(early, late))
    return _equal(slow, sound, several)


def _sound(lines: Sequence[StrategyRow]) -> list[StrategyRow]:
    """Return the strategies that may be compared.

    All their checkpoints must complete, and there must be others than the first upload.

    The final checkpoint is quick, because channels are empty at the end of input.  Therefore a strategy with a final
    checkpoint and fewer than `_MANY` checkpoints is left out, unless all comparable strategies have a final checkpoint.
    """
    found = [
        line
        for line in lines
        if line.summary.completed
        and not (line.failed or _failures(line) or line.summary.standstill or _is_first_upload(line, lines))
    ]
    without = [line for line in found if not line.completes_end]
    return [line for line in found if line in without or line.summary.completed >= _MANY] if without else found


def axis_sentences(lines: Sequence[StrategyRow]) -> Iterator[str]:
    """Yield a sentence per axis on its effect alone, if there are several axes.

    It compares the two strategies that differ only in this axis and whose median durations differ most.
    """
    for axis in dict(lines[0].axes) if lines and len(lines[0].axes) > 1 else ():
        pairs = [
            pair
            for pair in permutations(_sound(lines), 2)
            if {name for name, _ in {*pair[0].axes} ^ {*pair[1].axes}} == {axis}
            and not is_noise(*map(_median_ms, pair))
        ]
        if pairs:
            slow, fast = max(pairs, key=lambda pair: _median_ms(pair[0]) / _median_ms(pair[1]))
            yield f"{axis} alone: {ms_text(_median_ms(fast))} in the median ({fast.label}) instead of {ms_text(_median_ms(slow))} ({slow.label})."


def _none_ended(lines: Sequence[StrategyRow]) -> str:
    """Return a sentence for runs in which no checkpoint completed or failed: what the longest-running one waits for."""
    text = "No checkpoint was completed or failed after the warm-up"
    if all(line.is_off for line in lines):
        return "No checkpoint is due: set checkpoint.interval"
    found = _longest(lines, lambda line: single if (single := line.singles.under_way) and single.cut_off else None)
    if found is None:
        return f"{text}: run longer"
    (line, single), several = found, len(lines) > 1
    since = f"{_called(line, single, several)} has been under way for {ms_text(single.duration_ms)} when the run ends, so run longer"
    return f"{text}: {since}. {_cause_of(line, single, several)}"


class _Tail(NamedTuple):
    """The measure by which the slowest checkpoints are compared: p99 if every strategy has its minimum sample, else the maximum."""

    name: str
    ms: Callable[[StrategyRow], float]


def _tail(lines: Sequence[StrategyRow]) -> _Tail:
    """Return the measure by which the slowest checkpoints of these strategies are compared."""
    if all(line.summary.completed >= STATISTICS["end_to_end_p99_ms"].smallest_sample for line in lines):
        return _Tail("p99", lambda line: line.summary.end_to_end_p99_ms)
    return _Tail("longest", lambda line: line.summary.end_to_end_max_ms)


def _failing(worst: StrategyRow, lines: Sequence[StrategyRow], sound: Sequence[StrategyRow]) -> str:
    """Return the sentence on the strategy that fails most: its failures, their cause, and the best of the `sound` strategies.

    `worst`: the strategy with a failed job, deadlocked tasks, or the largest share of failed checkpoints.
    """
    row, failed, fates = worst.summary, worst.singles.failed, _fates(worst)
    begun, more = (
        f"With {worst.called} {fates[0] if fates else 'a checkpoint hangs'}",
        "".join(f"; {fate}" for fate in fates[1:]),
    )
    if worst.failed:
        reason = (worst.status.partition(": ")[2] or worst.status).rstrip(".")
        if worst.status.startswith("RESTARTING"):
            remedy = f"; with {' or '.join(line.called for line in sound)} it does not" if sound else ""
            hung = f"; {row.standstill}" if row.standstill else ""
            is_expiry = failed is not None and failed.cut_off and EXPIRED in reason
            cause = (
                f"; {_lower(_cause_of(worst, failed, several=len(lines) > 1))}"
                if failed is not None and is_expiry
                else ""
            )
            return f"With {worst.called} the job restarts forever: {reason}{hung}{remedy}{cause}"
        # no checkpoint failed, but a job of a chain found no snapshot to start from
        if "cannot begin" in reason:
            return f"With {worst.called} {reason}" + (
                f"; with {' or '.join(line.called for line in sound)} it goes on" if sound else ""
            )
        begun = f"With {worst.called} the job fails ({reason})" + (f" after {fates[0]}" if fates else "")
    if row.standstill:
        begun += f", because {_circle(worst)}"
    elif failed is not None and (
        failed.cut_off == FINALISATION or (failed.cut_off and _is_unanswered(worst.singles.failures[0][0]))
    ):
        begun += f", because {_lower(_cause_of(worst, failed, several=True))}"
    # Explain why the job did not fail although it had more failures than are tolerated in a row. A steady run with
    # enough checkpoints explains it, too, even if it had fewer failures.
    is_limit_near = worst.tolerable < _failures(worst) or (worst.steady and worst.tolerable <= row.completed)
    if not worst.failed and row.completed and worst.singles.in_a_row <= worst.tolerable and is_limit_near:
        in_a_row = f"at most {worst.singles.in_a_row} in a row, of {worst.tolerable} that are tolerated"
        more = f"; {in_a_row}: one that completes sets the count to 0{more}"
    if not worst.failed and worst.singles.restarts:
        more = f"; {_restarts(worst)}{more}"
    others = [line for line in lines if line is not worst and line not in sound and _failures(line)][:MAX_NAMED]
    more += "".join(f"; with {line.called} {'; '.join(_fates(line))}" for line in others)
    if not sound:
        return begun + more
    fast = _best(sound, _median_ms)
    count = fast.summary.completed
    completes = "its one" if count == 1 else f"all {count}"
    took = ms_text(fast.summary.end_to_end_p50_ms)
    if fast.summary.end_to_end_max_ms >= _TAIL_FACTOR * fast.summary.end_to_end_p50_ms and count > 1:
        took += f" in the median, the longest in {ms_text(fast.summary.end_to_end_max_ms)}"
    return f"{begun}{more}; {fast.called} completes {completes} in {took}{_stored(fast, 'stores')}"


def _restarts(line: StrategyRow) -> str:
    """Return ``the job restarts 2 times, from the beginning, as more than 3 checkpoints in a row fail (checkpoint.tolerable-failed)``."""
    count, from_beginning = line.singles.restarts, line.singles.from_beginning
    times = "once" if count == 1 else f"{count} times"
    places = {0: "", count: ", from the beginning"}
    place = places.get(from_beginning, f", {from_beginning} of them from the beginning")
    what = "a checkpoint fails"
    if line.tolerable:
        what = f"more than {line.tolerable} {'checkpoint in a row fails' if line.tolerable == 1 else 'checkpoints in a row fail'}"
    return f"the job restarts {times}{place}, as {what} (checkpoint.tolerable-failed)"


def _fates(line: StrategyRow) -> list[str]:
    """Return a clause per failure reason with its count: ``3 of 9 checkpoints expire``, ``2 fail (IO_EXCEPTION)``."""
    expire, fail = ("expired", "failed") if line.failed else ("expire", "fail")
    return [
        f"{count}{'' if i else f' of {line.summary.completed + _failures(line)} checkpoints'} "
        + (expire if _is_expiry(message) else f"{fail} ({message.rstrip('.') or 'no reason given'})")
        for i, (message, count) in enumerate(line.singles.failures)
    ]


def _is_unanswered(message: str) -> bool:
    """Return whether a checkpoint failed because acknowledgements, or responses to its trigger, were not received in time."""
    return _is_expiry(message) or message == NOT_TRIGGERED


def _is_expiry(message: str) -> bool:
    """Return whether a failure message says that a checkpoint expired."""
    return "expire" in message.lower()


def _circle(line: StrategyRow) -> str:
    """Return a clause on tasks that wait for each other (a deadlock of unaligned barriers)."""
    return f"tasks wait for each other: {line.summary.standstill}; with aligned barriers they do not"


def _equal(slow: StrategyRow, lines: Sequence[StrategyRow], several: bool) -> str:
    """Return the sentence for strategies that do not differ by more than noise, or for a single one."""
    row, fast = slow.summary, min(lines, key=_median_ms)
    begun = f"Checkpoints of {slow.called} take" if several and len(lines) == 1 else "Checkpoints take"
    low, high = ms_text(fast.summary.end_to_end_p50_ms), ms_text(row.end_to_end_p50_ms)
    is_quick = row.end_to_end_p50_ms < QUICK_MS
    if row.end_to_end_max_ms >= (2 * QUICK_MS if is_quick else _TAIL_FACTOR * row.end_to_end_p50_ms):
        times = f"{ms_text(row.end_to_end_p50_ms)} in the median, the longest {ms_text(row.end_to_end_max_ms)}"
        text = f"{begun} {times}: {_lower(_cause(slow, several, slowest=True))}"
    elif is_quick:
        text = f"{begun} {low if low == high else f'{low} to {high}'}: nothing holds the barriers up ({_load(slow)})"
    else:
        text = _cause(slow, several)
    if len(lines) == 1:
        return _joined(text, _cost(slow))
    alike = (
        f"checkpoints take {low} with all strategies"
        if low == high
        else f"the strategies differ by less than repetitions of one real job do ({low} to {high})"
    )
    return _joined(text, alike, _throughputs(slow, fast, lines))


def _cost(line: StrategyRow) -> str:
    """Return a clause on the throughput that checkpoints cost, compared with a run without checkpoints, or "" if unknown.

    Throughput is a mean over the run, and records that a savepoint delays are processed after it.  The mean therefore
    cannot show the cost of savepoints, and the clause never says that they cost nothing.
    """
    change, what = line.throughput_change, "checkpoints and savepoints" if line.has_savepoints else "checkpoints"
    if math.isnan(change):
        return ""
    if abs(change) < NOISE_THROUGHPUT:
        return "" if line.has_savepoints else f"{what} cost no throughput"
    if change < 0:
        return f"{what} cost {change_text(change).lstrip('-')} of throughput"
    return f"throughput is {change_text(change)} with {what}"


def _tails(late: StrategyRow, early: StrategyRow, tail: _Tail) -> str:
    """Return the sentence for strategies with equal medians but different slowest checkpoints, with the cause of the slowest one."""
    low, high = sorted((_median_ms(early), _median_ms(late)))
    medians = ms_text(low) if ms_text(low) == ms_text(high) else f"{ms_text(low)} to {ms_text(high)}"
    slowest = f"{ms_text(tail.ms(early))} instead of {ms_text(tail.ms(late))}"
    cause = _lower(_cause(late, several=True, slowest=True))
    return f"Medians are alike ({medians}), tails are not: {cause}; the {tail.name} of {early.called} is {slowest}"


def _cause(line: StrategyRow, several: bool, *, slowest: bool = False) -> str:
    """Return the largest wait of the median checkpoint (or the `slowest`) of a strategy, and where it occurs."""
    single = line.singles.slowest if slowest else line.singles.median
    if single is None:
        return f"Nothing was recorded of these checkpoints ({_load(line)})"
    return _cause_of(line, single, several)


def _cause_of(line: StrategyRow, single: Single, several: bool) -> str:
    """Return a sentence, without a full stop, on the largest wait of this checkpoint, and where it occurs.

    `several`: there are other strategies, so the checkpoint is named together with its strategy.
    """
    way, called = single.path, _called(line, single, several)
    # grouped as in the table of strategies, so that text and table agree on the largest column
    columns = (
        {"queue": way.queue_ms, "timeout": way.timeout_ms},
        {"alignment": way.alignment_ms},
        {"pre-barrier": way.pre_barrier_ms},
        {"sync": way.sync_ms},
        {
            "async queue": way.async_queue_ms,
            "async work": way.async_work_ms,
            "upload": way.upload_ms,
            "channel state": way.channel_state_ms,
        },
        {"messages": way.messages_ms},
    )
    if single.cut_off == FINALISATION:
        return f"All tasks of {called} acknowledge it, and its metadata cannot be written"
    if single.unknown_loss is not None:
        cause, lost_ms, known_ms = single.unknown_loss
        lost = f"{cause.removesuffix(' lost')} is lost at {ms_text(lost_ms)}"
        return f"{lost}, which the JobManager learns at {ms_text(known_ms)}: its tasks do not acknowledge {called}"
    if math.isnan(way.queue_ms):
        return f"Nothing was recorded of the path of {called} ({_load(line)})"
    parts = max(columns, key=lambda column: sum(column.values()))
    part = max(parts, key=lambda name: parts[name])
    took = f"{ms_text(parts[part])} of the {ms_text(single.duration_ms)} of {called}"
    queue, worker = f"'{way.queue_vertex}'", f"'{way.async_vertex}'"
    spent, load = ms_text(way.queue_vertex_ms), _load(line, way.queue_vertex)
    match part:
        case "queue" if way.queue_at_source:
            if single is line.singles.failed and line.singles.failures[0][0] == NOT_TRIGGERED:
                return f"{queue} does not answer the trigger of {called} within {spent}, pekko.ask.timeout: its TaskManager is cut off"
            late = (
                f"does not take the trigger of {called} within"
                if single.cut_off
                else f"takes the trigger of {called} only after"
            )
            return f"{queue} {late} {spent}: its task thread is held up ({load})"
        case "queue" if single.persisted_bytes > 0:
            return f"Even barriers that overtake data, as in {called}, wait {spent} for the task thread of {queue} ({load})"
        case "queue" if way.queue_vertex in line.committers:
            return f"Barriers of {called} wait {spent} for {queue}, whose thread is at work on an older commit ({load})"
        case "queue" if way.queue_vertex in line.firing:
            return (
                f"Barriers of {called} wait {spent} behind data in front of {queue}, or while its window fires ({load})"
            )
        case "queue":
            return f"Barriers of {called} wait behind {spent} of queued data in front of {queue} ({load})"
        case "timeout":
            place = f"in front of '{way.timeout_vertex}' until the alignment timeout lets them overtake"
            return f"Barriers of {called} wait {ms_text(way.timeout_ms)} {place} ({_load(line, way.timeout_vertex)})"
        case "alignment":
            waits = (
                f"'{way.alignment_vertex}' waits {ms_text(way.alignment_vertex_ms)} from its first to its last barrier"
            )
            return f"In {called} {waits}, which comes from {single.late_input} ({_load(line, way.alignment_vertex)})"
        case "pre-barrier":
            return f"Work before the barrier takes {took}"
        case "sync":
            return f"The synchronous phase takes {took}, on the task threads"
        case "async queue":
            return f"Snapshots wait {took} for the asynchronous thread of {worker}, at work for older checkpoints"
        case "async work":
            canonical = " (canonical: entries are serialised at checkpoint.savepoint-rate)"
            why = canonical if single.savepoint_format == "CANONICAL" else ""
            return f"Asynchronous work of {worker} takes {took}{why}, beside its files: neither storage nor barriers decide"
        case "upload":
            # files that operators write are not part of the checkpoint size
            is_known = single.written_bytes and not single.cut_off
            written = bytes_text(single.written_bytes) if is_known else "files"
            if single.initial_log_bytes:
                written = f"{bytes_text(single.initial_log_bytes)} of initial state per subtask (a changelog, not in its size)"
            older = ""
            if 2 * way.async_queue_ms >= way.upload_ms:
                older = f", after {ms_text(way.async_queue_ms)} in which the asynchronous thread of {worker} writes an older checkpoint"
            return f"Writing {written} takes {took}{older}: storage decides, not the barriers"
        case "channel state":
            return f"Writing in-flight data of {worker} takes {took}: storage decides, once barriers are through"
        case _:
            return f"Messages to and from the coordinator take {took}"


def _called(line: StrategyRow, single: Single, several: bool) -> str:
    """Return ``checkpoint 4``, or ``checkpoint 4 (aligned)`` if there are several strategies."""
    return f"{single} ({line.called})" if several else str(single)


def _instead(fast: StrategyRow, slow: StrategyRow) -> str:
    """Return a clause that compares the median durations of two strategies."""
    durations = f"take {ms_text(fast.summary.end_to_end_p50_ms)} instead of {ms_text(slow.summary.end_to_end_p50_ms)}"
    return f"{fast.called} checkpoints {durations}{_stored(fast)}"


def _stored(line: StrategyRow, verb: str = "store") -> str:
    """Return a clause on the in-flight data that each checkpoint stores (median), or "" if none is stored."""
    stored = line.summary.persisted_bytes
    return f" and {verb} {bytes_text(stored)} of in-flight data each" if stored > 0 else ""


def _throughput(fast: StrategyRow, slow: StrategyRow) -> str:
    """Return a clause on the throughput of `fast` compared with `slow`, or "" if one of the jobs ends within the run."""
    if fast.is_over or slow.is_over:
        return ""
    change = (
        fast.summary.throughput_per_second / slow.summary.throughput_per_second - 1
        if slow.summary.throughput_per_second
        else 0.0
    )
    if abs(change) < NOISE_THROUGHPUT:
        return f"throughput is the same ({change_text(change)})"
    return f"throughput {'rises' if change > 0 else 'drops'} ({change_text(change)})"


def _throughputs(slow: StrategyRow, fast: StrategyRow, lines: Sequence[StrategyRow]) -> str:
    """Return the highest and the lowest throughput with their strategies, if they differ by more than noise.

    Otherwise, and if some job ends within the run, returns `_throughput` of `fast` and `slow`.
    """
    low, high = min(lines, key=_served), max(lines, key=_served)
    if (
        any(line.is_over for line in lines)
        or not _served(low) > 0
        or _served(high) / _served(low) - 1 < NOISE_THROUGHPUT
    ):
        return _throughput(fast, slow)
    return f"{high.called} serves {per_second_text(_served(high))}, {low.called} {per_second_text(_served(low))}"


def _served(line: StrategyRow) -> float:
    """Return the throughput of a strategy."""
    return line.summary.throughput_per_second


def _load(line: StrategyRow, named: str = "") -> str:
    """Return the busiest and the most back-pressured vertex with their shares.

    `named`: a vertex that the sentence has already named, so its name is not repeated.
    """
    row, (busiest, share) = line.summary, line.busiest
    text = f"busy {share_text(share)}" if busiest == named else f"'{busiest}' busy {share_text(share)}"
    if busiest != named and row.most_backpressured_share >= 0.1:
        text += f", '{row.most_backpressured}' back-pressured {share_text(row.most_backpressured_share)}"
    return text


def _best(lines: Sequence[StrategyRow], duration: Callable[[StrategyRow], float]) -> StrategyRow:
    """Return the strategy with the smallest `duration`.

    Among strategies within noise of it and without less throughput, this is the one that stores least in-flight data.
    """
    quickest = min(lines, key=duration)
    served = quickest.summary.throughput_per_second * (1 - NOISE_THROUGHPUT)
    equals = [
        line
        for line in lines
        if is_noise(duration(line), duration(quickest)) and line.summary.throughput_per_second >= served
    ]
    return min(equals or [quickest], key=lambda line: (line.summary.persisted_bytes, duration(line)))


def _median_ms(line: StrategyRow) -> float:
    """Return the median duration of the completed checkpoints of a strategy."""
    return line.summary.end_to_end_p50_ms


def _failed_share(line: StrategyRow) -> float:
    """Return the share of failed checkpoints among those that completed or failed."""
    return _failures(line) / max(1, line.summary.completed + _failures(line))


def _failures(line: StrategyRow) -> int:
    """Return the number of failed checkpoints, except those that a restart or the end of the job interrupted."""
    return line.summary.failed - line.summary.interrupted


def _joined(*parts: str) -> str:
    """Return the parts that are not empty, separated by "; "."""
    return "; ".join(part for part in parts if part)


def _lower(text: str) -> str:
    """Return a text with a lower-case first letter."""
    return text[:1].lower() + text[1:]

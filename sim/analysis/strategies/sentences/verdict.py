"""The sentence about the decisive difference between strategies, computed from their numbers.

A cause is that of one checkpoint, named by its id: the median one or the slowest one.  Its numbers stand in the tables of its run.
What is said of all checkpoints (median, p99 or longest, throughput) stands in the table of strategies.

Two durations count as equal if they differ by less than repetitions of a real run do (`noise`).  Throughputs within 1.5 % count as equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sim.analysis.number_texts import bytes_text, change_text, ms_text, per_second_text, share_text
from sim.analysis.strategies.noise import is_noise
from sim.analysis.strategies.not_completed import EXPIRED
from sim.analysis.strategies.schedule import late_triggers_sentence, long_savepoint_sentence
from sim.analysis.strategies.sentences.finishing import MOST_NAMED, finish_sentence, off_sentence, stopped_sentence
from sim.analysis.strategies.side_by_side import StrategyRow
from sim.analysis.strategies.single import FINALISATION, Single
from sim.analysis.strategies.storage_use import unlimited_text
from sim.prose import capitalised
from sim.quantities.results import STATISTICS

QUICK_MS = 150.0
NOISE_THROUGHPUT = 0.015


def verdict(strategies: Sequence[StrategyRow]) -> str:
    """The decisive difference.  Of several workloads, the one where the choice matters most is taken."""
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
    return finish_sentence(lines) + off_sentence(lines) + stopped_sentence(lines)


def _unlimited(lines: Sequence[StrategyRow]) -> str:
    """That completed checkpoints took no time to write, where it is so."""
    text = unlimited_text(max((line.unlimited_bytes for line in lines if line.summary.completed or line.first), default=0))
    return f"; {text}" if text else ""


def _first_uploads(strategies: Sequence[StrategyRow]) -> str:
    """The longest first upload, and that it counts nowhere else; empty: there is none."""
    found = [(first.duration_ms, line, first) for line in strategies if (first := line.singles.first_upload) is not None]
    if not found:
        return ""
    duration_ms, line, first = max(found, key=lambda item: item[0])
    name = capitalised(_called(line, first, several=len(strategies) > 1))
    written = f"{bytes_text(first.written_bytes)} in {ms_text(duration_ms)}"
    return f" {name} uploads everything, {written}: it has a row of its own, and all else is about later ones."


def _schedule(strategies: Sequence[StrategyRow]) -> str:
    """Checkpoints that come later than their interval, and a savepoint that outlasts them; empty: neither."""
    several, groups = len(strategies) > 1, len({line.group for line in strategies})
    names = {line.label: line.label if groups > 1 else line.called for line in strategies}
    late = [(names[line.label], line.late) for line in strategies if line.late is not None]
    long = [(names[line.label], line.savepoint) for line in strategies if line.savepoint is not None]
    return late_triggers_sentence(late[:MOST_NAMED], several=several) + long_savepoint_sentence(long, several=several)


def _stakes(lines: Sequence[StrategyRow]) -> tuple[int, int, float]:
    """The weight of the choice: failed jobs, failed checkpoints, ratio of durations."""
    durations = [line.summary.end_to_end_p50_ms for line in lines if line.summary.completed]
    ratio = max(durations) / max(min(durations), 1.0) if durations else 0.0
    return sum(line.failed for line in lines), sum(map(_failures, lines)), ratio


def _sentence(lines: Sequence[StrategyRow]) -> str:
    running = [line for line in lines if line.summary.completed + line.summary.failed or line.failed or line.summary.standstill]
    if not running:
        is_off = all(line.without_interval for line in lines)
        return f"No checkpoint was completed or failed after the warm-up: {'set checkpoint.interval' if is_off else 'run longer'}"
    if any(math.isnan(line.last_trigger_s) for line in running):
        running = [line for line in running if math.isnan(line.last_trigger_s)]  # a few checkpoints are no match for many
    several = len(lines) > 1
    worst = max(running, key=lambda line: (line.failed, bool(line.summary.standstill), _failed_share(line)))
    sound = [line for line in running if line.summary.completed and not (line.failed or _failures(line) or line.summary.standstill)]
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


class _Tail(NamedTuple):
    """The quantile by which slow checkpoints are compared: p99 if all strategies have its sample, else the longest."""

    name: str
    ms: Callable[[StrategyRow], float]


def _tail(lines: Sequence[StrategyRow]) -> _Tail:
    if all(line.summary.completed >= STATISTICS["end_to_end_p99_ms"].smallest_sample for line in lines):
        return _Tail("p99", lambda line: line.summary.end_to_end_p99_ms)
    return _Tail("longest", lambda line: line.summary.end_to_end_max_ms)


def _failing(worst: StrategyRow, lines: Sequence[StrategyRow], sound: Sequence[StrategyRow]) -> str:
    row, failed, fates = worst.summary, worst.singles.failed, _fates(worst)
    begun, more = f"With {worst.called} {fates[0] if fates else 'a checkpoint hangs'}", "".join(f"; {fate}" for fate in fates[1:])
    if worst.failed:
        reason = (worst.status.partition(": ")[2] or worst.status).rstrip(".")
        if worst.status.startswith("RESTARTING"):
            goes_on = f"; with {' or '.join(line.called for line in sound)} it does not" if sound else ""
            hung = f"; {row.standstill}" if row.standstill else ""
            is_expiry = failed is not None and failed.cut_off and EXPIRED in reason
            cause = f"; {_lower(_cause_of(worst, failed, several=len(lines) > 1))}" if failed is not None and is_expiry else ""
            return f"With {worst.called} the job restarts for ever: {reason}{hung}{goes_on}{cause}"
        if "cannot begin" in reason:  # no checkpoint failed: a job of a chain found no snapshot to begin from
            return f"With {worst.called} {reason}" + (f"; with {' or '.join(line.called for line in sound)} it goes on" if sound else "")
        begun = f"With {worst.called} the job fails ({reason})" + (f" after {fates[0]}" if fates else "")
    if row.standstill:
        begun += f", because {_circle(worst)}"
    elif failed is not None and (failed.cut_off == FINALISATION or (failed.cut_off and _is_expiry(worst.singles.failures[0][0]))):
        begun += f", because {_lower(_cause_of(worst, failed, several=True))}"
    if not worst.failed and row.completed and worst.singles.in_a_row <= worst.tolerable < _failures(worst):
        in_a_row = f"at most {worst.singles.in_a_row} in a row, of {worst.tolerable} that are tolerated"
        more = f"; {in_a_row}: one that completes sets the count to 0{more}"
    others = [line for line in lines if line is not worst and line not in sound and _failures(line)][:MOST_NAMED]
    more += "".join(f"; with {line.called} {'; '.join(_fates(line))}" for line in others)
    if not sound:
        return begun + more
    fast = _best(sound, _median_ms)
    count = fast.summary.completed
    completes = "its one" if count == 1 else f"all {count}"
    return f"{begun}{more}; {fast.called} completes {completes} in {ms_text(fast.summary.end_to_end_p50_ms)}{_stored(fast, 'stores')}"


def _fates(line: StrategyRow) -> list[str]:
    """``3 of 9 checkpoints expire``, ``2 fail (IO_EXCEPTION)``: each reason with its number."""
    expire, fail = ("expired", "failed") if line.failed else ("expire", "fail")
    return [
        f"{count}{'' if i else f' of {line.summary.completed + _failures(line)} checkpoints'} "
        + (expire if _is_expiry(message) else f"{fail} ({message.rstrip('.') or 'no reason given'})")
        for i, (message, count) in enumerate(line.singles.failures)
    ]


def _is_expiry(message: str) -> bool:
    return "expire" in message.lower()


def _circle(line: StrategyRow) -> str:
    return f"tasks wait for each other: {line.summary.standstill}; with aligned barriers they do not"


def _equal(slow: StrategyRow, lines: Sequence[StrategyRow], several: bool) -> str:
    row, fast = slow.summary, min(lines, key=_median_ms)
    if row.end_to_end_p50_ms < QUICK_MS and row.end_to_end_max_ms >= 2 * QUICK_MS:
        times = f"{ms_text(row.end_to_end_p50_ms)} in the median, the longest {ms_text(row.end_to_end_max_ms)}"
        text = f"Checkpoints take {times}: {_lower(_cause(slow, several, slowest=True))}"
    elif row.end_to_end_p50_ms < QUICK_MS:
        text = f"Checkpoints take {ms_text(row.end_to_end_p50_ms)}: nothing holds the barriers up ({_load(slow)})"
    else:
        text = _cause(slow, several)
    if len(lines) == 1:
        change = slow.throughput_change
        return text if math.isnan(change) else f"{text}; {_cost(change)}"
    low, high = ms_text(fast.summary.end_to_end_p50_ms), ms_text(row.end_to_end_p50_ms)
    alike = f"checkpoints take {low} with all strategies" if low == high else f"the strategies differ by less than noise ({low} to {high})"
    return _joined(text, alike, _throughputs(slow, fast, lines))


def _cost(change: float) -> str:
    """What checkpoints cost, from the change against no checkpoints."""
    if abs(change) < NOISE_THROUGHPUT:
        return "checkpoints cost no throughput"
    if change < 0:
        return f"checkpoints cost {change_text(change).lstrip('-')} of throughput"
    return f"throughput is {change_text(change)} with checkpoints"


def _tails(late: StrategyRow, early: StrategyRow, tail: _Tail) -> str:
    """Equal medians with different slowest checkpoints: the reason for the difference."""
    low, high = sorted((_median_ms(early), _median_ms(late)))
    medians = ms_text(low) if ms_text(low) == ms_text(high) else f"{ms_text(low)} to {ms_text(high)}"
    slowest = f"{ms_text(tail.ms(early))} instead of {ms_text(tail.ms(late))}"
    cause = _lower(_cause(late, several=True, slowest=True))
    return f"Medians are alike ({medians}), tails are not: {cause}; the {tail.name} of {early.called} is {slowest}"


def _cause(line: StrategyRow, several: bool, *, slowest: bool = False) -> str:
    """The largest part of one checkpoint, and its place: of the median one, or of the `slowest`."""
    single = line.singles.slowest if slowest else line.singles.median
    if single is None:
        return f"Nothing was recorded of these checkpoints ({_load(line)})"
    return _cause_of(line, single, several)


def _cause_of(line: StrategyRow, single: Single, several: bool) -> str:
    """The largest part of this checkpoint, and its place."""
    way, called = single.path, _called(line, single, several)
    parts = {
        "queue": way.queue_ms, "timeout": way.timeout_ms, "alignment": way.alignment_ms, "pre-barrier": way.pre_barrier_ms,
        "sync": way.sync_ms, "async queue": way.async_queue_ms, "async work": way.async_work_ms, "upload": way.upload_ms,
        "channel state": way.channel_state_ms, "messages": way.messages_ms,
    }  # fmt: skip
    if single.cut_off == FINALISATION:
        return f"All tasks of {called} acknowledge it, and its metadata cannot be written"
    if all(math.isnan(value) for value in parts.values()):
        return f"Nothing was recorded of the path of {called} ({_load(line)})"
    part = max(parts, key=lambda name: parts[name])
    took = f"{ms_text(parts[part])} of the {ms_text(single.duration_ms)} of {called}"
    queue, join, worker = f"'{way.queue_vertex}'", f"'{way.alignment_vertex}'", f"'{way.async_vertex}'"
    match part:
        case "queue" if way.queue_at_source:
            spent, load = ms_text(way.queue_vertex_ms), _load(line, way.queue_vertex)
            late = f"does not take the trigger of {called} within" if single.cut_off else f"takes the trigger of {called} only after"
            return f"{queue} {late} {spent}: its task thread is held up ({load})"
        case "queue" if single.persisted_bytes > 0:
            spent, load = ms_text(way.queue_vertex_ms), _load(line, way.queue_vertex)
            return f"Even barriers that overtake data, as in {called}, wait {spent} for the task thread of {queue} ({load})"
        case "queue" if way.queue_vertex in line.committers:
            spent, load = ms_text(way.queue_vertex_ms), _load(line, way.queue_vertex)
            return f"Barriers of {called} wait {spent} for {queue}, whose thread is at work on an older commit ({load})"
        case "queue":
            spent, load = ms_text(way.queue_vertex_ms), _load(line, way.queue_vertex)
            return f"Barriers of {called} wait behind {spent} of queued data in front of {queue} ({load})"
        case "timeout":
            spent, load = ms_text(way.timeout_ms), _load(line, way.timeout_vertex)
            where = f"in front of '{way.timeout_vertex}'"
            return f"Barriers of {called} wait {spent} {where} until the alignment timeout lets them overtake ({load})"
        case "alignment":
            load = _load(line, way.alignment_vertex)
            spent = ms_text(way.alignment_vertex_ms)
            return f"In {called} {join} waits {spent} from its first to its last barrier: one of its inputs is behind ({load})"
        case "pre-barrier":
            return f"Work before the barrier takes {took}"
        case "sync":
            return f"The synchronous phase takes {took}, on the task threads"
        case "async queue":
            return f"Snapshots wait {took} for the asynchronous thread of {worker}, at work for older checkpoints"
        case "async work":
            return f"Asynchronous work of {worker} takes {took}, beside its files: neither storage nor barriers decide"
        case "upload":
            is_known = single.written_bytes and not single.cut_off  # files of operators count in no checkpoint
            written = bytes_text(single.written_bytes) if is_known else "files"
            return f"Writing {written} takes {took}: storage decides, not the barriers"
        case "channel state":
            return f"Writing in-flight data of {worker} takes {took}: storage decides, once barriers are through"
        case _:
            return f"Messages to and from the coordinator take {took}"


def _called(line: StrategyRow, single: Single, several: bool) -> str:
    """``checkpoint 4``, and of which strategy if there are several."""
    return f"{single} ({line.called})" if several else str(single)


def _instead(fast: StrategyRow, slow: StrategyRow) -> str:
    durations = f"take {ms_text(fast.summary.end_to_end_p50_ms)} instead of {ms_text(slow.summary.end_to_end_p50_ms)}"
    return f"{fast.called} checkpoints {durations}{_stored(fast)}"


def _stored(line: StrategyRow, verb: str = "store") -> str:
    stored = line.summary.persisted_bytes
    return f" and {verb} {bytes_text(stored)} of in-flight data each" if stored > 0 else ""


def _throughput(fast: StrategyRow, slow: StrategyRow) -> str:
    """The difference of throughput; empty if the end of a job distorts it."""
    if fast.is_over or slow.is_over:
        return ""
    change = fast.summary.throughput_per_second / slow.summary.throughput_per_second - 1 if slow.summary.throughput_per_second else 0.0
    if abs(change) < NOISE_THROUGHPUT:
        return f"throughput is the same ({change_text(change)})"
    return f"throughput {'rises' if change > 0 else 'drops'} ({change_text(change)})"


def _throughputs(slow: StrategyRow, fast: StrategyRow, lines: Sequence[StrategyRow]) -> str:
    """The highest and the lowest throughput, by name, if they differ; empty if the end of a job distorts them."""
    low, high = min(lines, key=_served), max(lines, key=_served)
    if any(line.is_over for line in lines) or not _served(low) > 0 or _served(high) / _served(low) - 1 < NOISE_THROUGHPUT:
        return _throughput(fast, slow)
    return f"{high.called} serves {per_second_text(_served(high))}, {low.called} {per_second_text(_served(low))}"


def _served(line: StrategyRow) -> float:
    return line.summary.throughput_per_second


def _load(line: StrategyRow, named: str = "") -> str:
    """The busy vertices and the waiting ones; the vertex `named` in the sentence already is left out."""
    row, (busiest, share) = line.summary, line.busiest
    text = f"busy {share_text(share)}" if busiest == named else f"'{busiest}' busy {share_text(share)}"
    if busiest != named and row.most_backpressured_share >= 0.1:
        text += f", '{row.most_backpressured}' back-pressured {share_text(row.most_backpressured_share)}"
    return text


def _best(lines: Sequence[StrategyRow], duration: Callable[[StrategyRow], float]) -> StrategyRow:
    """The quickest strategy; among equally quick and productive ones, the one that stores least."""
    quickest = min(lines, key=duration)
    served = quickest.summary.throughput_per_second * (1 - NOISE_THROUGHPUT)
    equals = [line for line in lines if is_noise(duration(line), duration(quickest)) and line.summary.throughput_per_second >= served]
    return min(equals or [quickest], key=lambda line: (line.summary.persisted_bytes, duration(line)))


def _median_ms(line: StrategyRow) -> float:
    return line.summary.end_to_end_p50_ms


def _failed_share(line: StrategyRow) -> float:
    return _failures(line) / max(1, line.summary.completed + _failures(line))


def _failures(line: StrategyRow) -> int:
    """Failed checkpoints, without those that a restart or the end of the job interrupted."""
    return line.summary.failed - line.summary.interrupted


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]

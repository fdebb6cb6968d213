"""What a job does between two looks, what it did over many of them, and in which of that two times differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from sim.analysis.number_texts import bytes_text, ms_text, per_second_text, share_text
from sim.watching.changes import begun_again
from sim.watching.forecast import Circumstances
from sim.watching.look import Look, SeenCheckpoint

ALIKE = 1.3
"""Flink's counters are up to 10 s old: loads of a minute that differ by a smaller factor are alike."""
_GROWN = 1.2
"""State that differs by a smaller factor is alike."""
_FULL = 0.2
"""A thread is busier if it is by so much of its time."""
_NOTABLE_MS = 20.0
"""Parts that grow by less are noise of a machine."""
MOST_CAUSES = 3


@dataclass(frozen=True, slots=True)
class MeasuredLook:
    """What a job did between two looks."""

    time_ms: int
    seconds: float  # between the two
    load: Mapping[str, float]
    busy: Mapping[str, float]
    pressed: Mapping[str, float]


def has_new_counters(before: Look, now: Look) -> bool:
    """Whether Flink has fetched counters of the job's tasks in between.  A running thread's times grow also where no record comes.

    Flink: MetricFetcherImpl.  It asks its TaskManagers at a look, and shows what they answer at the next one.  What they do not answer
    in time is as it was.
    """
    return before.job != now.job or before.totals != now.totals


def measured(before: Look, now: Look) -> MeasuredLook | None:
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
            _grown(earlier.busy_ms, totals.busy_ms), _grown(earlier.idle_ms, totals.idle_ms), _grown(earlier.pressed_ms, totals.pressed_ms),
        ]  # fmt: skip
        times = [time for time in spent if time is not None]
        if len(times) == len(spent) and sum(times) > 0:
            busy[vertex], pressed[vertex] = times[0] / sum(times), times[2] / sum(times)
    return MeasuredLook(now.time_ms, passed_s, load, busy, pressed)


def over(rows: Sequence[MeasuredLook], checkpoints: Sequence[SeenCheckpoint]) -> Circumstances:
    """The means of several looks, as long as each lasts, for a counter that comes late is caught up; the medians of checkpoints."""
    done = [point for point in checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return Circumstances(
        _means([(row.seconds, row.load) for row in rows]), _means([(row.seconds, row.busy) for row in rows]),
        _means([(row.seconds, row.pressed) for row in rows]),
        _medians(point.state for point in done), _medians((point.parts_ms for point in done if point.parts_ms), fill=True),
    )  # fmt: skip


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
        Cause(f"load of '{name}' {times_text(factor)} ({per_second_text(was)} -> {per_second_text(is_)})", factor, name, "load")
        for name, was, is_, factor in _ratios(usual.load, now.load, ALIKE)
    ]
    found += [
        Cause(f"state of '{name}' {times_text(factor)} ({bytes_text(was)} -> {bytes_text(is_)})", factor, name, "state")
        for name, was, is_, factor in _ratios(usual.state, now.state, _GROWN)
    ]
    found = found[:MOST_CAUSES]
    busier = _largest_difference(usual.busy, now.busy, _FULL, sign, usual.busy.keys() & now.busy.keys())
    found += [
        Cause(f"threads of '{name}' work {share_text(is_)} of the time (before: {share_text(was)})", 1.0, name, "thread")
        for name, was, is_ in busier
    ]
    parts = (usual.parts_ms.keys() | now.parts_ms.keys()) if usual.parts_ms and now.parts_ms else ()
    longer = _largest_difference(usual.parts_ms, now.parts_ms, _NOTABLE_MS, sign, parts)
    what = "grew" if sign > 0 else "shrank"
    found += [
        Cause(f"of a checkpoint, {name} {what} most: {ms_text(is_)} (before: {ms_text(was)})", 1.0, "", "part") for name, was, is_ in longer
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
        name: sum(weight * row[name] for weight, row in rows if name in row) / sum(weight for weight, row in rows if name in row)
        for name in names
    }  # fmt: skip


def _medians(rows: Iterable[Mapping[str, float]], *, fill: bool = False) -> dict[str, float]:
    """The median of each name.  `fill`: a row without a name has 0 of it."""
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return {name: float(median(row.get(name, 0.0) for row in listed if fill or name in row)) for name in names}


def _ratios(usual: Mapping[str, float], now: Mapping[str, float], alike: float) -> list[tuple[str, float, float, float]]:
    """(name, before, now, factor) of what differs, by the largest factor first."""
    both = [(name, usual[name], value) for name, value in now.items() if name in usual and usual[name] != value]
    rows = [(name, was, value, value / was if was else inf) for name, was, value in both]
    return sorted((row for row in rows if not 1 / alike < row[3] < alike), key=lambda row: -max(row[3], 1 / row[3] if row[3] else inf))


def _largest_difference(
    usual: Mapping[str, float], now: Mapping[str, float], least: float, sign: int, names: Iterable[str]
) -> list[tuple[str, float, float]]:
    """(name, before, now) of what has grown most, or with a negative `sign` shrunk most; empty: none by so much."""
    rows = [(name, usual.get(name, 0.0), now.get(name, 0.0)) for name in sorted(names)]
    return sorted((row for row in rows if sign * (row[2] - row[1]) >= least), key=lambda row: sign * (row[1] - row[2]))[:1]

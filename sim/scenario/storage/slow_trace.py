"""Measured speeds from a CSV file -> how slow a node is through time, one series per machine."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path as FilePath

from pydantic import Field

from sim.model.storage import SlowTrace
from sim.scenario.grammar.fields import Axis, Duration
from sim.scenario.grammar.section import Section
from sim.scenario.job.trace import TraceError, clocked, columns_and_rows, file_stamp, moment, must_have, not_increasing, time_column
from sim.units import SECOND, UnitError, format_duration, parse_number


class SlowSeries(Section):
    """Measured speeds from a CSV file (also .csv.gz), relative to the scenario; the median through time is a usual node."""

    trace: str = Field(min_length=1)
    """The CSV file."""
    column: str
    """Speed, in any unit."""
    time: str | None = None
    """Column of the time stamps: seconds, epoch milliseconds and the like, or ISO 8601; default: one with such a name, else the first."""
    machine: str | None = None
    """Column that tells machines apart, each a series of its own."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """How far into the trace the run begins: nodes are its machines in turn, all at that moment.  Default: each node is one of them, from a
    moment of its own on."""


def read_slowness(series: SlowSeries, folder: FilePath) -> SlowTrace:
    """Factor = usual speed / speed of the row, until the next row of that machine.  A blank keeps the speed before it.

    The usual speed is the median over the time of all machines: half of their time they are faster, half of it slower.
    """
    file = folder / series.trace
    nodes, length_ns = _all_series(file, file_stamp(file), series.column, series.time, series.machine)
    begin_ns = series.from_
    if begin_ns is not None and begin_ns >= length_ns:
        raise TraceError(f"{file} has rows of {format_duration(length_ns)}: none from {format_duration(begin_ns)} on")
    return SlowTrace(nodes, length_ns, begin_ns)


@lru_cache(maxsize=8)
def _all_series(
    file: FilePath,
    stamp: tuple[int, int],  # noqa: ARG001
    column: str,
    time: str | None,
    machine: str | None,
) -> tuple[tuple[tuple[tuple[int, Fraction], ...], ...], int]:
    """The factors of every machine and the longest of their times, read once for the many cells of a sweep.

    `stamp` is not used here: another one is another file.
    """
    columns, rows = columns_and_rows(file)
    time = time or time_column(columns)
    must_have(file, columns, [time, column, *([machine] if machine else [])])
    machines: dict[str, list[tuple[Fraction, Fraction]]] = {}  # (time, speed)
    clock, rows = clocked(time, rows)
    for line, row in rows:
        if (text := (row[column] or "").strip()) != "":
            speeds = machines.setdefault((row[machine] or "") if machine else "", [])
            at = moment(clock, row[time], file, line)
            if speeds and at <= speeds[-1][0]:
                raise TraceError(f"{file}:{line}: {not_increasing(clock)}")
            speeds.append((at, _speed(text, file, line)))
    if not machines or min(map(len, machines.values())) < 2:
        raise TraceError(f"{file} has fewer than two speeds of a machine in column '{column}'")
    usual = _median([(speed, after - at) for speeds in machines.values() for (at, speed), (after, _) in pairwise(speeds)])
    length = max(speeds[-1][0] - speeds[0][0] for speeds in machines.values())
    return tuple(_steps(speeds, usual) for speeds in machines.values()), round(length * SECOND)


def _steps(speeds: list[tuple[Fraction, Fraction]], usual: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """The times at which the factor changes; noise of recorded speeds is left out."""
    steps: list[tuple[int, Fraction]] = []
    for at, speed in speeds:
        factor = (usual / speed).limit_denominator(100)
        if not steps or factor != steps[-1][1]:
            steps.append((round((at - speeds[0][0]) * SECOND), factor or Fraction(1, 100)))
    return tuple(steps)


def _median(weighted: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The weighted median of (value, weight) pairs."""
    half, so_far = sum(weight for _, weight in weighted) / 2, Fraction(0)
    for value, weight in sorted(weighted):
        so_far += weight
        if so_far >= half:
            return value
    raise ValueError("no values")


def _speed(text: str, file: FilePath, line: int) -> Fraction:
    try:
        speed = parse_number(text)
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is no speed") from None
    if speed == 0:
        raise TraceError(f"{file}:{line}: a speed of 0 would last for ever: leave the row blank, or write an outage under faults:")
    return speed

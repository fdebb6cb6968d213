"""The section `storage:` of a scenario: its keys, traces of slow nodes, and the model that is built from it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model import storage
from sim.model.catalog import At, attribute_of, options_of
from sim.model.fields import Duration, Positive, Share
from sim.model.schema.sections import FORMS, Axis, Options, Section, Texts, add_key, build_model, section_of
from sim.model.schema.text import Reading, cached_builder
from sim.model.schema.trace import (
    TraceError,
    columns_and_rows,
    detect_format,
    file_signature,
    not_increasing_message,
    parse_time,
    require_columns,
    time_column,
)
from sim.model.storage import STORAGES, SlowTrace
from sim.model.units import SECOND, UnitError, format_duration, parse_number

# ---- Traces of slow nodes: measured speeds in a CSV file -> a factor over time for each machine.


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

    def build(self, at: At) -> storage.SlowPlaces | None:
        """Return the slowness in the file, or None if it cannot be read.  Errors are reported to `at.reading`."""
        at.reading.reads_files = True
        try:
            return storage.SlowPlaces(trace=read_slowness(self, at.folder))
        except TraceError as error:
            at.wrong(str(error), "trace")
            return None


def read_slowness(series: SlowSeries, folder: Path) -> SlowTrace:
    """Return the factor by which each machine is slow over time.

    The factor of a row is usual speed / measured speed.  It applies until the next row of that machine; rows without a speed are
    skipped.  The usual speed is the median over the time of all machines: for half of that time, machines are faster.

    `folder`: folder of the scenario.  Raises `TraceError` if the file is invalid or ends before `from`.
    """
    file = folder / series.trace
    nodes, length_ns = _all_series(file, file_signature(file), series.column, series.time, series.machine)
    begin_ns = series.from_
    if begin_ns is not None and begin_ns >= length_ns:
        raise TraceError(f"{file} ends after {format_duration(length_ns)}: from: {format_duration(begin_ns)} is later")
    return SlowTrace(nodes, length_ns, begin_ns)


@lru_cache(maxsize=8)
def _all_series(
    file: Path,
    stamp: tuple[int, int],
    column: str,
    time: str | None,
    machine: str | None,
) -> tuple[tuple[tuple[tuple[int, Fraction], ...], ...], int]:
    """Return (steps of each machine, longest recorded time of a machine [ns]).  For steps see `_steps`.

    Cached, because all combinations of a sweep read the same file.  `stamp` is only part of the cache key, so that a file that has
    changed is read again.
    """
    columns, rows = columns_and_rows(file)
    time = time or time_column(columns)
    require_columns(file, columns, [time, column, *([machine] if machine else [])])
    machines: dict[str, list[tuple[Fraction, Fraction]]] = {}  # machine -> (time [s], speed) of its rows
    time_format, rows = detect_format(time, rows)
    for line, row in rows:
        if (text := (row[column] or "").strip()) != "":
            speeds = machines.setdefault((row[machine] or "") if machine else "", [])
            at = parse_time(time_format, row[time], file, line)
            if speeds and at <= speeds[-1][0]:
                raise TraceError(f"{file}:{line}: {not_increasing_message(time_format)}")
            speeds.append((at, _speed(text, file, line)))
    if not machines or min(map(len, machines.values())) < 2:
        raise TraceError(f"{file} has fewer than two speeds of a machine in column '{column}'")
    usual = _median(
        [(speed, after - at) for speeds in machines.values() for (at, speed), (after, _) in pairwise(speeds)]
    )
    length = max(speeds[-1][0] - speeds[0][0] for speeds in machines.values())
    return tuple(_steps(speeds, usual) for speeds in machines.values()), round(length * SECOND)


def _steps(speeds: list[tuple[Fraction, Fraction]], usual: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """Return (time since the first row [ns], factor) for each change of the factor.

    Factors are rounded to fractions with a denominator of at most 100, so that noise in the speeds does not cause steps.
    `speeds`: (time [s], speed) in order of time.
    """
    steps: list[tuple[int, Fraction]] = []
    for at, speed in speeds:
        factor = (usual / speed).limit_denominator(100)
        if not steps or factor != steps[-1][1]:
            steps.append((round((at - speeds[0][0]) * SECOND), factor or Fraction(1, 100)))
    return tuple(steps)


def _median(weighted: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the weighted median of (value, weight) pairs.  Raises `ValueError` if there are none."""
    half, so_far = sum(weight for _, weight in weighted) / 2, Fraction(0)
    for value, weight in sorted(weighted):
        so_far += weight
        if so_far >= half:
            return value
    raise ValueError("no values")


def _speed(text: str, file: Path, line: int) -> Fraction:
    """Return the speed in a cell.  Raises `TraceError` if it is not a number, or if it is 0."""
    try:
        speed = parse_number(text)
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is not a speed") from None
    if speed == 0:
        raise TraceError(
            f"{file}:{line}: a speed of 0 would last for ever: leave the row blank, or write an outage under faults:"
        )
    return speed


# ---- The section `storage:`. Most keys are options of the model; those whose value has a special form are declared here.


def _slow_kind(value: object) -> str:
    """Return the tag of a form of `slow:`: "trace" for a CSV file, otherwise "episodes"."""
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


FORMS[storage.SlowPlaces] = Annotated[
    Annotated[section_of(storage.SlowPlaces), Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]
section_of.cache_clear()


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Texts] = {
        "lasts": "nodes, prefixes and disks are slow for a while: write it in slow: of dfs:, object-store: or disk:"
    }

    share: Axis[Share]
    """Share of the files that are slow."""
    factor: Axis[Positive]
    """Bandwidth of a slow file is divided by this, latency multiplied."""


class Storage(Options, of=(storage.Storage,)):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    slow: Slow | None = None


@cached_builder
def build_storage(given: Storage, reading: Reading, folder: Path) -> storage.Storage:
    """Return the model of `storage:`.  Errors are reported to `reading`.  `folder`: folder of the scenario."""
    at = At(("storage",), reading, folder)
    others: Iterator[Any] = (
        build_model(kind.options, written, at.below(kind.name))
        for kind in STORAGES.values()
        if kind.name not in options_of(storage.Storage) and (written := getattr(given, attribute_of(kind.name)))
    )
    return build_model(storage.Storage, given, at, other=next(others, None))


for _kind in STORAGES.values():
    if _kind.name not in options_of(storage.Storage):
        add_key(Storage, _kind.name, section_of(_kind.options))

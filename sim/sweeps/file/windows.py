"""Windows of a trace -> the changes of the scenario in each of them.  `sim.traces` cuts windows by features of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

from sim.scenario.job.document import Trace
from sim.scenario.job.trace import RateSeries, TraceError, columns_and_rows, series_of
from sim.scenario.text.problems import Reading, did_you_mean
from sim.series.headers import rate_of
from sim.sheet import unescaped
from sim.sweeps.file.design import Point, text_of
from sim.sweeps.file.document import Windows
from sim.units import format_duration, format_number

NAME, FROM, FILE, LENGTH = "window", "from_s", "file", "length_s"
"""Columns of a table of windows.  A column with a dot in its name is a key of the scenario."""
RATE = "rate"
"""The column of a source's rate where no column has a name of rates: that of our own tables."""
MOST = 1000
"""More windows at a fixed distance are hardly meant: `most:` asks for them."""


class TraceWindow(NamedTuple):
    """A piece of a trace, as the changes of the scenario that replay it."""

    name: str
    changes: Point
    labels: tuple[tuple[str, str], ...] = ()  # (column, value): the group of the window


class WindowPlan(NamedTuple):
    """The windows of a sweep, and a description of their trace."""

    windows: list[TraceWindow]
    description: str = ""  # what the trace is, and how many windows it makes


class _Piece(NamedTuple):
    """The beginning and the length of a piece of a trace."""

    begin_ns: int
    length_ns: int | None = None  # None: the sweep file has the length
    trace: Path | None = None


def windows(given: Windows, folder: Path, scenario_folder: Path, reading: Reading, label: str = "") -> WindowPlan:
    """The windows; mistakes go to `reading`.  `label`: a column of the table that sorts windows into groups."""
    if list(_missing(given, reading)):
        return WindowPlan([])
    place = next(name for name in ("file", "at", "every") if getattr(given, name) is not None)
    try:
        common = _common_rate(given, folder, scenario_folder)
        series = None if common is None else series_of(Trace.model_validate(common), scenario_folder)
        if given.file is not None:
            found = list(_of_table(folder / given.file, given, label))
        else:
            assert series is not None  # noqa: S101 - else it is a problem
            found = [(TraceWindow(format_duration(at_ns), {}), _Piece(at_ns)) for at_ns in _grid(given, series, folder)]
        if given.most and len(found) > given.most:
            found = [found[i * len(found) // given.most] for i in range(given.most)]
        if series is not None:
            for window, piece in found:
                _within(window, piece, given, series, folder)
    except TraceError as error:
        reading.wrong(("windows", place), str(error))
        return WindowPlan([])
    driven = [window._replace(changes={**_driven(given, piece, common, scenario_folder), **window.changes}) for window, piece in found]
    return WindowPlan(driven, _description(given, found, series))


def _missing(given: Windows, reading: Reading) -> Iterator[str]:
    """Keys that windows need and that are missing."""
    for name in ("source", "trace", "length") if given.file is None else ():
        if getattr(given, name) is None:
            reading.wrong(("windows",), f"{name} is missing")
            yield name


def _rate(given: Windows, trace: Path, column: str, scenario_folder: Path) -> dict[str, Any]:
    """The rate of the source as the scenario has it, from the first row on."""
    rate: dict[str, Any] = {"trace": relpath(trace, scenario_folder), "column": column}  # relative to the scenario
    if given.time is not None:
        rate["time"] = given.time
    if given.time_unit is not None:
        rate["time-unit"] = given.time_unit
    if given.zone is not None:
        rate["zone"] = given.zone
    if given.step is not None:
        rate["every"] = format_duration(given.step)
    if given.scale is not None:
        rate["scale"] = format_number(given.scale)
    return rate


def _common_rate(given: Windows, folder: Path, scenario_folder: Path) -> dict[str, Any] | None:
    """The rate that all windows share; None: a table of windows has the traces."""
    if given.source is None or given.trace is None:
        return None
    file = folder / given.trace
    column = given.column or rate_of(columns_and_rows(file)[0]) or RATE
    return _rate(given, file, column, scenario_folder)


def _driven(given: Windows, piece: _Piece, common: dict[str, Any] | None, scenario_folder: Path) -> Point:
    """The change that drives the source by this piece of the trace."""
    length_ns = piece.length_ns if given.length is None else given.length
    assert length_ns is not None  # noqa: S101 - else it is a problem
    lasts = {"run.duration": format_duration(length_ns)}
    if given.source is None:
        return lasts
    if common is None:
        assert piece.trace is not None  # noqa: S101 - else it is a problem
        common = _rate(given, piece.trace, given.column or RATE, scenario_folder)
    return {f"job.{given.source}.source.rate": {**common, "from": format_duration(piece.begin_ns)}, **lasts}


def _grid(given: Windows, series: RateSeries, folder: Path) -> Sequence[int]:
    """Starts of windows: those of `at`, or all that fit into the trace.  The last row counts as long as the one before it."""
    if given.at:
        return given.at
    assert given.trace is not None and given.length is not None  # noqa: S101, PT018 - else it is a problem
    file = folder / given.trace
    long_ns = series.length_ns + series.last_ns
    if given.length > long_ns:
        raise TraceError(f"{file} has {series}, less than one window of {format_duration(given.length)}")
    starts = range(0, long_ns - given.length + 1, given.every or given.length)
    if given.most is None and len(starts) > MOST:
        raise TraceError(
            f"{len(starts):,} windows, {format_duration(given.every or given.length)} apart: {file} has {series}; "
            f"write a longer every:, most: 20 for so many of them, or at:{_other_unit(given, series)}"
        )
    return starts


def _within(window: TraceWindow, piece: _Piece, given: Windows, series: RateSeries, folder: Path) -> None:
    """TraceError: the window is not inside of the trace.  The last row counts as long as the one before it."""
    length_ns = given.length or piece.length_ns or 0
    if piece.begin_ns + length_ns <= series.length_ns + series.last_ns:
        return
    latest_ns = series.length_ns + series.last_ns - length_ns
    instead = f"begin at {format_duration(latest_ns)} or before" if latest_ns >= 0 else "write a shorter length:"
    raise TraceError(
        f"the window '{window.name}' of {format_duration(length_ns)} is not within {folder / (given.trace or '')}: it has {series}; "
        f"{instead}"
    )


def _other_unit(given: Windows, series: RateSeries) -> str:
    """What to write if numbers are of another unit than they were read in."""
    if series.clock is None or series.clock.unit_s is None or given.time_unit is not None or series.clock.epoch:
        return ""
    return "; if its times are milliseconds write time-unit: ms"


def _description(given: Windows, found: list[tuple[TraceWindow, _Piece]], series: RateSeries | None) -> str:
    """What stands before a sweep: the span of the trace, and the windows of it."""
    lengths = sorted({given.length or piece.length_ns or 0 for _, piece in found})
    long = format_duration(lengths[0]) + ("" if len(lengths) == 1 else f" to {format_duration(lengths[-1])}")
    count = f"{len(found):,} window{'s' if len(found) > 1 else ''} of {long}"
    if series is not None:
        sparse = series.apart_ns > lengths[-1]
        return f"{given.trace}: {series}{_other_unit(given, series) if sparse else ''}; {count}"
    traces = len({piece.trace for _, piece in found if piece.trace is not None})
    return f"{given.file}: {count}" + (f", of {traces} traces" if traces > 1 else "")


def _of_table(file: Path, given: Windows, label: str) -> Iterator[tuple[TraceWindow, _Piece]]:
    columns, rows = columns_and_rows(file)
    needed = {NAME: "", FROM: ""}
    if given.source is None and (FILE in columns or not any("." in column for column in columns)):
        what = "names traces" if FILE in columns else "changes nothing of the scenario"
        raise TraceError(f"{file} {what}: write source: in the sweep file")
    if given.source is not None and given.trace is None:
        needed[FILE] = ": write trace: in the sweep file"
    if given.length is None:
        needed[LENGTH] = ": write length: in the sweep file"
    for column, instead in needed.items():
        if column not in columns:
            has = f"{did_you_mean(column, columns)}; it has {', '.join(columns) or 'none'}"
            raise TraceError(f"{file} has no column '{column}'{instead or has}")
    seen, traces = set[str](), set[str]()
    for line, row in rows:
        name = str(row[NAME])
        if name in seen:
            raise TraceError(f"{file}:{line}: the window '{name}' is there already")
        seen.add(name)
        traces.add(str(row.get(FILE) or ""))
        if given.trace is not None and len(traces) > 1:
            raise TraceError(f"{file}:{line}: windows of several traces, and the sweep file names one: leave trace: out")
        if FILE in needed and not row[FILE]:
            raise TraceError(f"{file}:{line}: '{name}' names no file")
        changes = {column: row[column] for column in columns if "." in column and row[column] not in (None, "")}
        length = _nanoseconds(row[LENGTH], file, line) if given.length is None else None
        window = TraceWindow(name, changes, ((label, text_of(row[label])),) if label in columns else ())
        trace = file.parent / unescaped(str(row[FILE])) if FILE in columns else None
        yield window, _Piece(_nanoseconds(row[FROM], file, line), length, trace)
    if not seen:
        raise TraceError(f"{file} has no windows")


def _nanoseconds(value: object, file: Path, line: int) -> int:
    try:
        at_ns = round(float(str(value)) * 1e9)
    except (ValueError, OverflowError):
        raise TraceError(f"{file}:{line}: '{value}' is no time in seconds") from None
    if at_ns < 0:
        raise TraceError(f"{file}:{line}: {value} s is before the first row of the trace")
    return at_ns

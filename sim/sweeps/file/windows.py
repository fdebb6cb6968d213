"""Windows of a trace -> the changes of the scenario in each of them.  `sim.traces` cuts windows by features of the trace."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

from sim.scenario.job.trace import TraceError, columns_and_rows, length_ns
from sim.scenario.text.problems import Reading, did_you_mean
from sim.sheet import unescaped
from sim.sweeps.file.design import Point, text_of
from sim.sweeps.file.document import Windows
from sim.units import format_duration, format_number

__all__ = ["Window", "windows"]

NAME, FROM, FILE, LENGTH = "window", "from_s", "file", "length_s"
"""Columns of a table of windows.  A column with a dot in its name is a key of the scenario."""
RATE = "rate"
"""The default column of a source's rate: that of our own tables."""


class Window(NamedTuple):
    """The piece of the trace in a run."""

    name: str
    changes: Point
    labels: tuple[tuple[str, str], ...] = ()  # (column, value): the group of the window


class _Piece(NamedTuple):
    begin_ns: int
    length_ns: int | None = None  # None: the sweep file has the length
    trace: Path | None = None


def windows(given: Windows, folder: Path, scenario_folder: Path, reading: Reading, label: str = "") -> list[Window]:
    """The windows; mistakes go to `reading`.  `label`: a column of the table that sorts windows into groups."""
    if sum(way is not None for way in (given.every, given.at, given.file)) != 1:
        reading.wrong(("windows",), "write exactly one of every, at and file")
        return []
    if list(_missing(given, reading)):
        return []
    try:
        if given.file is not None:
            found = list(_of_table(folder / given.file, given, label))
        else:
            found = [(Window(format_duration(at_ns), {}), _Piece(at_ns)) for at_ns in given.at or _grid(given, folder)]
    except TraceError as error:
        reading.wrong(("windows", "file" if given.file is not None else "trace"), str(error))
        return []
    if given.most and len(found) > given.most:
        found = [found[i * len(found) // given.most] for i in range(given.most)]
    return [window._replace(changes={**_driven(given, piece, folder, scenario_folder), **window.changes}) for window, piece in found]


def _missing(given: Windows, reading: Reading) -> Iterator[str]:
    """Keys that windows need and that are missing, and keys of a source without a source."""
    for name in ("source", "trace", "length") if given.file is None else ():
        if getattr(given, name) is None:
            reading.wrong(("windows",), f"{name} is missing")
            yield name
    for name in ("trace", "column", "time", "step", "scale"):
        if given.source is None and getattr(given, name) is not None:
            reading.wrong(("windows", name), "is of a source: name it, too")
            yield name


def _driven(given: Windows, piece: _Piece, folder: Path, scenario_folder: Path) -> Point:
    """The change that drives the source by this piece of the trace."""
    trace = piece.trace if given.trace is None else folder / given.trace
    length_ns = piece.length_ns if given.length is None else given.length
    assert length_ns is not None  # noqa: S101 - else it is a problem
    lasts = {"run.duration": format_duration(length_ns)}
    if given.source is None:
        return lasts
    assert trace is not None  # noqa: S101 - else it is a problem
    rate: dict[str, Any] = {"trace": relpath(trace, scenario_folder), "column": given.column or RATE}  # relative to the scenario
    rate["from"] = format_duration(piece.begin_ns)
    if given.time is not None:
        rate["time"] = given.time
    if given.step is not None:
        rate["every"] = format_duration(given.step)
    if given.scale is not None:
        rate["scale"] = format_number(given.scale)
    return {f"job.{given.source}.source.rate": rate, **lasts}


def _grid(given: Windows, folder: Path) -> list[int]:
    """Starts of windows that fit into the trace."""
    assert given.trace is not None and given.length is not None  # noqa: S101, PT018 - else it is a problem
    file = folder / given.trace
    end_ns = length_ns(file, given.column or RATE, given.time, given.step)
    if given.length > end_ns:
        raise TraceError(f"{file} has rows of {format_duration(end_ns)}, less than one window of {format_duration(given.length)}")
    return list(range(0, end_ns - given.length + 1, given.every or given.length))


def _of_table(file: Path, given: Windows, label: str) -> Iterator[tuple[Window, _Piece]]:
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
        window = Window(name, changes, ((label, text_of(row[label])),) if label in columns else ())
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

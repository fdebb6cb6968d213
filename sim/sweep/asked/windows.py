"""Windows of a trace -> what each of them changes about the scenario.  Cutting by features of the trace is somebody else's work."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

from sim.scenario.problems import Reading, did_you_mean
from sim.scenario.trace import TraceError, columns_and_rows, length_ns
from sim.sweep.asked.design import Point, text_of
from sim.sweep.asked.document import Windows
from sim.units import format_duration, format_number

__all__ = ["Window", "windows"]

NAME, FROM = "window", "from_s"
"""Columns of a table of windows; others that have a dot in their name are keys of the scenario."""


class Window(NamedTuple):
    """A run's piece of the trace."""

    name: str
    changes: Point
    labels: tuple[tuple[str, str], ...] = ()  # (column, value): the group it belongs to


def windows(given: Windows, folder: Path, scenario_folder: Path, reading: Reading, label: str = "") -> list[Window]:
    """Each of them; a mistake goes to `reading`.  `label`: a column of the table, if there, that sorts windows into groups."""
    if sum(way is not None for way in (given.every, given.at, given.file)) != 1:
        reading.wrong(("windows",), "write exactly one of every, at and file")
        return []
    try:
        if given.file is not None:
            found = list(_of_table(folder / given.file, label))
        else:
            found = [(Window(format_duration(at_ns), {}), at_ns) for at_ns in given.at or _grid(given, folder)]
    except TraceError as error:
        reading.wrong(("windows", "file" if given.file is not None else "trace"), str(error))
        return []
    if given.most and len(found) > given.most:
        found = [found[i * len(found) // given.most] for i in range(given.most)]
    trace = relpath(folder / given.trace, scenario_folder)  # where a scenario looks for it
    return [window._replace(changes={**_driven(given, trace, at_ns), **window.changes}) for window, at_ns in found]


def _driven(given: Windows, trace: str, at_ns: int) -> Point:
    """The source's rate is this piece of the trace."""
    rate: dict[str, Any] = {"trace": trace, "column": given.column, "from": format_duration(at_ns)}
    if given.time is not None:
        rate["time"] = given.time
    if given.step is not None:
        rate["every"] = format_duration(given.step)
    if given.scale is not None:
        rate["scale"] = format_number(given.scale)
    return {f"job.{given.source}.source.rate": rate, "run.duration": format_duration(given.length)}


def _grid(given: Windows, folder: Path) -> list[int]:
    """Windows that end before the trace does."""
    file = folder / given.trace
    end_ns = length_ns(file, given.column, given.time, given.step)
    if given.length > end_ns:
        raise TraceError(f"{file} has rows of {format_duration(end_ns)}, less than one window of {format_duration(given.length)}")
    return list(range(0, end_ns - given.length + 1, given.every or given.length))


def _of_table(file: Path, label: str) -> Iterator[tuple[Window, int]]:
    columns, rows = _table(file)
    for column in (NAME, FROM):
        if column not in columns:
            raise TraceError(f"{file} has no column '{column}'{did_you_mean(column, columns)}; it has {', '.join(columns) or 'none'}")
    seen = set[str]()
    for line, row in rows:
        name = str(row[NAME])
        if name in seen:
            raise TraceError(f"{file}:{line}: the window '{name}' is there already")
        seen.add(name)
        try:
            at_ns = round(float(str(row[FROM])) * 1e9)
        except (ValueError, OverflowError):
            raise TraceError(f"{file}:{line}: '{row[FROM]}' is no time in seconds") from None
        if at_ns < 0:
            raise TraceError(f"{file}:{line}: {row[FROM]} s is before the first row of the trace")
        changes = {column: row[column] for column in columns if "." in column and row[column] not in (None, "")}
        yield Window(name, changes, ((label, text_of(row[label])),) if label in columns else ()), at_ns
    if not seen:
        raise TraceError(f"{file} has no windows")


def _table(file: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, Any]]]]:
    if file.suffix != ".parquet":
        return columns_and_rows(file)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except FileNotFoundError:
        raise TraceError(f"no such file: {file}") from None
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{file} is no Parquet file: {str(error).splitlines()[0]}") from None
    return table.column_names, iter(enumerate(table.to_pylist(), start=1))

"""Rates of a source from a CSV file: (start, records per second) steps."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path as FilePath

from sim.scenario.document_job import Trace
from sim.scenario.problems import did_you_mean
from sim.units import UnitError, parse_number

__all__ = ["TraceError", "columns_and_rows", "moment", "read_trace"]

MAX_BYTES = 200 * 10**6


class TraceError(ValueError):
    """The file gives no rates; the message says why."""


def read_trace(trace: Trace, folder: FilePath) -> list[tuple[int, Fraction]]:
    """(ns since the first row, records per second) wherever the rate changes.  A blank keeps the rate before it."""
    file = folder / trace.trace
    columns, rows = columns_and_rows(file)
    time = trace.time or (columns[0] if columns else "")
    for column in (trace.column, *([] if trace.every else [time])):
        if column not in columns:
            raise TraceError(f"{file} has no column '{column}'{did_you_mean(column, columns)}; it has {', '.join(columns) or 'none'}")
    scale = Fraction(1) if trace.scale is None else trace.scale
    steps: list[tuple[int, Fraction]] = []
    first: Fraction | None = None
    for number, (line, row) in enumerate(rows):
        at = Fraction(trace.every * number, 10**9) if trace.every else moment(row[time], file, line)
        first = at if first is None else first
        start_ns = round((at - first) * 10**9)
        if (text := (row[trace.column] or "").strip()) == "":
            continue
        rate = _rate(text, file, line) * scale
        if steps and start_ns <= steps[-1][0]:
            raise TraceError(f"{file}:{line}: time does not increase")
        if not steps or rate != steps[-1][1]:
            steps.append((start_ns, rate))
    if not steps:
        raise TraceError(f"{file} has no rates in column '{trace.column}'")
    return steps


def columns_and_rows(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
    """(names in the first line, (line, row) of all others) of a CSV file.  TraceError: there is none."""
    reader: csv.DictReader[str] = csv.DictReader(io.StringIO(_text_of(file), newline=None))
    try:
        return list(reader.fieldnames or []), _rows(reader, file)
    except csv.Error as error:
        raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None


def _rows(reader: csv.DictReader[str], file: FilePath) -> Iterator[tuple[int, dict[str, str | None]]]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # a field of more than 128 KiB
            raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None
        yield reader.line_num, row


def _text_of(file: FilePath) -> str:
    """The text of a CSV file, unpacked if it is compressed.  TraceError: there is none."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise TraceError(f"{file} is larger than {MAX_BYTES // 10**6} MB")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise TraceError(f"no such file: {file}") from None
    except (OSError, EOFError) as error:
        raise TraceError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{file} is no CSV text") from None


def moment(text: str | None, file: FilePath, line: int) -> Fraction:
    """Seconds of a number or an ISO 8601 time.  TraceError: neither."""
    shown = (text or "").strip()
    try:
        return parse_number(shown)
    except UnitError:
        pass
    try:
        moment = datetime.fromisoformat(shown)
    except ValueError:
        raise TraceError(f"{file}:{line}: '{shown}' is no time: seconds or ISO 8601") from None
    return Fraction((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _rate(text: str, file: FilePath, line: int) -> Fraction:
    try:
        return parse_number(text).limit_denominator(10**6)  # recorded rates carry the noise of a double
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is no rate") from None

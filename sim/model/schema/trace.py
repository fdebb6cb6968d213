"""Rates of a source from a CSV file, or from a table of `ckptsim traces`: (start, records per second) steps."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from math import gcd
from pathlib import Path as FilePath
from typing import Any, NamedTuple, TypeVar

from sim.model.job import Rate
from sim.model.packed_records import PackedRecords
from sim.model.schema.job import Trace
from sim.model.schema.text import did_you_mean
from sim.model.series.monitoring import (
    TIME,
    MonitoringError,
    MonitoringTable,
    NotRecordsError,
    are_metrics,
    are_offsets,
    table_of_columns,
    table_of_document,
    table_of_offsets,
)
from sim.model.series.tables import (
    EXPECTED,
    SAMPLE,
    TIMES,
    Clock,
    Kind,
    Metric,
    cell_number,
    cell_text,
    clock_of,
    first_of,
    is_zone,
    metric_of,
    taken_as,
)
from sim.model.text import PrintableError
from sim.model.units import DURATIONS, UnitError, billionths, format_duration, parse_number

MAX_BYTES = 200 * 10**6
_DELIMITER_LINE = re.compile(r"\Asep=.\r?\n")
"""The first line of what Grafana writes for Excel."""
TO_OVERRIDE = "scale: with the records per second for a value of 1"
_START = 0
"""The column of packed steps with their times."""
Row = TypeVar("Row", bound=dict[str, Any])
UNITS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}


class TraceError(PrintableError, ValueError):
    """The file gives no rates; the message says why."""


class RateSeries(NamedTuple):
    """The rates of a file."""

    steps: PackedRecords[Rate]
    length_ns: int  # from the first row to the last
    last_ns: int  # from the row before the last to the last one
    rows: int
    clock: Clock | None  # of its times; None: rows stand at a fixed distance
    assumed: str = ""  # what was decided about the values

    def __str__(self) -> str:
        times = "" if self.clock is None else f", times in {self.clock}"
        return f"{_about(self.length_ns)}, {self.rows:,} rows{times}"

    @property
    def apart_ns(self) -> int:
        """From a row to the next one, on average."""
        return self.length_ns // max(1, self.rows - 1)


def read_trace(trace: Trace, folder: FilePath, *, until_ns: int) -> list[tuple[int, Fraction]]:
    """(ns in the run, records per second) wherever the rate changes before `until_ns`.  A blank keeps the rate before it."""
    return [(at, Fraction(numerator, denominator)) for at, numerator, denominator in _cut(trace, folder, until_ns, 1)]


def _cut(trace: Trace, folder: FilePath, until_ns: int, shared: int) -> Iterator[tuple[int, int, int]]:
    """(ns in the run, numerator, denominator) of the rate of one of `shared` subtasks."""
    file = folder / trace.trace
    steps, length_ns, *_ = series_of(trace, folder)
    begin_ns, factor = trace.from_ or 0, Fraction(1 if trace.scale is None else trace.scale) / shared
    if begin_ns > length_ns:
        raise TraceError(f"{file} has rows of {format_duration(length_ns)}: none from {format_duration(begin_ns)} on")
    first = max(steps.last_until(_START, begin_ns), 0)
    last = steps.last_until(_START, begin_ns + until_ns - 1)
    for start_ns, numerator, denominator in steps.integers(first, max(last, first) + 1):
        yield max(start_ns - begin_ns, 0), *_lowest(numerator * factor.numerator, denominator * factor.denominator)


def rates_of_trace(trace: Trace, folder: FilePath, *, until_ns: int, shared: int) -> Sequence[Rate]:
    """The rate of one of `shared` subtasks.  The settings of a sweep meet the same windows: they get the same object."""
    return _rates(trace, folder, file_stamp(folder / trace.trace), until_ns, shared)


@lru_cache(maxsize=256)
def _rates(
    trace: Trace,
    folder: FilePath,
    stamp: tuple[int, int],
    until_ns: int,
    shared: int,
) -> Sequence[Rate]:
    return PackedRecords(Rate.of_integers, _cut(trace, folder, until_ns, shared))


def length_ns(trace: Trace, folder: FilePath) -> int:
    """From the first row to the last."""
    return series_of(trace, folder).length_ns


def series_of(trace: Trace, folder: FilePath) -> RateSeries:
    """All of a file.  TraceError: it gives no rates."""
    file = folder / trace.trace
    return _series(
        file,
        file_stamp(file),
        trace.column,
        trace.time,
        trace.time_unit,
        trace.zone,
        trace.every,
        trace.scale is not None,
    )


@lru_cache(maxsize=8)
def _series(
    file: FilePath,
    stamp: tuple[int, int],
    column: str,
    time: str | None,
    time_unit: str | None,
    zone: str | None,
    every_ns: int | None,
    is_scaled: bool,  # the user says what a value is worth, so nothing is refused
) -> RateSeries:
    """All of a file, read once for the many windows of a sweep.  `stamp` is not used here: another one is another file."""
    columns, rows, made = _table(file, as_written=is_scaled)
    time = time or time_column(columns)
    if zone is not None and not is_zone(zone):
        raise TraceError(f"{file}: zone: '{zone}' is not a time zone: write one such as Europe/Berlin or UTC")
    must_have(file, columns, [column, *([] if every_ns else [time])])
    if time == column and not every_ns:
        raise TraceError(f"{file}: the column '{column}' cannot be both the time and the rate: name another with time:")
    metric, rows = (Metric(Kind.RATE), rows) if made else _metric(column, rows, is_scaled=is_scaled)
    if metric.kind is Kind.OTHER:
        raise TraceError(f"{file}: {metric.refusal(column, f', or write {TO_OVERRIDE}')}")
    if metric.kind in (Kind.COUNTER, Kind.PERIOD):
        time, column, made = _differentiated(file, time, column, rows, metric, time_unit, zone, every_ns)
        rows, time_unit, zone, every_ns = _written_rows(made), None, None, None
    clock: Clock | None = None
    if not every_ns:
        clock, rows = detect_clock(time, rows, None if time_unit is None else UNITS[time_unit], zone)
    steps, latest_rate = list[tuple[int, int, int]](), None
    first_ns: int | Fraction | None = None
    at_ns: int | Fraction | None = None
    start_ns, latest_ns, before_ns, count = 0, -1, 0, 0
    for number, (line, row) in enumerate(rows):
        at_ns = every_ns * number if clock is None else _moment_ns(clock, row[time], file, line, at_ns)  # type: ignore[operator]
        first_ns = at_ns if first_ns is None else first_ns
        before_ns, start_ns, count = start_ns, round(at_ns - first_ns), number + 1
        if (written := row[column]) is None:
            raise TraceError(f"{file}:{line}: has fewer fields than there are columns")
        if (text := written.strip()) == "":
            continue
        rate = _rate(text, file, line)
        if start_ns <= latest_ns:
            raise TraceError(f"{file}:{line}: {not_increasing(clock)}")
        latest_ns = start_ns
        if rate != latest_rate:
            steps.append((start_ns, *rate))
            latest_rate = rate
    if not steps:
        raise TraceError(f"{file} has no rates in column '{column}'")
    return RateSeries(
        PackedRecords(Rate.of_integers, steps),
        start_ns,
        start_ns - before_ns,
        count,
        clock,
        made.assumed if made else "",
    )


def _metric(
    column: str, rows: Iterator[tuple[int, Row]], *, is_scaled: bool
) -> tuple[Metric, Iterator[tuple[int, Row]]]:
    """(what the column has, all rows): by its name or its first cells.  If it is scaled, the user says what is no count by its name."""
    if is_scaled:
        metric = metric_of(column)
        counts = metric.kind is Kind.COUNTER or metric.window_s is not None
        return (metric if counts else Metric(Kind.RATE)), rows
    first = list(islice(rows, SAMPLE))
    return taken_as(column, (cell_number(row[column]) for _, row in first)), chain(first, rows)


def _differentiated(
    file: FilePath,
    time: str,
    column: str,
    rows: Iterator[tuple[int, dict[str, str | None]]],
    metric: Metric,
    time_unit: str | None,
    zone: str | None,
    every_ns: int | None,
) -> tuple[str, str, MonitoringTable]:
    """(column of times, column of rates, table) of a column of counts."""
    if every_ns:
        rows = ((line, row | {time: str(Fraction(every_ns * i, 10**9))}) for i, (line, row) in enumerate(rows))
    unit_s = None if time_unit is None else UNITS[time_unit]
    try:
        rates = table_of_columns(
            [time, column], rows, metric=metric, unit_s=Fraction(1) if every_ns else unit_s, zone=zone
        )
    except MonitoringError as error:
        raise TraceError(f"{file}: {error}") from None
    return TIME, rates.columns[1], rates


def time_column(columns: Sequence[str]) -> str:
    """The column of the times where none is named: one with such a name, else the first."""
    return first_of(TIMES, columns) or (columns[0] if columns else "")


def detect_clock(
    column: str, rows: Iterator[tuple[int, Row]], unit_s: Fraction | None = None, zone: str | None = None
) -> tuple[Clock, Iterator[tuple[int, Row]]]:
    """(the clock of a column by its first rows, all rows)."""
    first = list(islice(rows, SAMPLE))
    return clock_of(column, (cell_text(row[column]) for _, row in first), unit_s, zone), chain(first, rows)


def not_increasing(clock: Clock | None) -> str:
    """What is wrong with a time that is not after the one before it."""
    changed = clock is not None and clock.zoneless and clock.zone == "UTC"
    return "time does not increase" + (
        ": if clocks were set back here, write zone: such as Europe/Berlin" if changed else ""
    )


def _about(ns: int) -> str:
    """A length to three digits."""
    unit = next((unit for unit in ("d", "h", "min", "s") if ns >= 2 * DURATIONS[unit]), None)
    return format_duration(ns) if unit is None else f"{float(f'{ns / DURATIONS[unit]:.3g}'):,g} {unit}"


def file_stamp(file: FilePath) -> tuple[int, int]:
    """(time of the last change [ns], bytes): another pair is another file.  Zeros if there is none: reading it says why."""
    try:
        stat = file.stat()
    except (OSError, ValueError):
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def must_have(file: FilePath, columns: Sequence[str], required: Iterable[str]) -> None:
    """TraceError: a required column is missing, or is there twice."""
    for name in required:
        if name not in columns:
            raise TraceError(
                f"{file} has no column '{name}'{did_you_mean(name, columns)}; it has {', '.join(columns) or 'none'}"
            )
        if columns.count(name) > 1:
            raise TraceError(f"{file} has the column '{name}' twice")


def columns_and_rows(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
    """(names in the first line, (line, row) of all others) of a CSV file; of Parquet, a file or a folder of them, as texts as well.

    TraceError: there is none.
    """
    columns, rows, _ = _table(file, as_written=False)
    return columns, rows


def _table(
    file: FilePath, *, as_written: bool
) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]], MonitoringTable | None]:
    """(columns, rows, how they were made if they are rates).  `as_written`: the user says what the values of metrics are."""
    if _is_parquet(file):
        return *_parquet(file), None
    text = _text_of(file)
    if text.lstrip()[:1] in ("{", "["):
        made = _monitored(file, text, as_written=as_written)
        return made.columns, _written_rows(made), made
    reader: csv.DictReader[str] = csv.DictReader(io.StringIO(_DELIMITER_LINE.sub("", text, count=1), newline=None))
    try:
        columns = list(reader.fieldnames or [])
        rates_of = table_of_offsets if are_offsets(columns) else table_of_columns if are_metrics(columns) else None
        if rates_of is None:
            return columns, _rows(reader, file), None
        made = rates_of(columns, _rows(reader, file))
        return made.columns, _written_rows(made), made
    except MonitoringError as error:
        raise TraceError(f"{file}: {error}") from None
    except csv.Error as error:
        raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None


def _monitored(file: FilePath, text: str, *, as_written: bool) -> MonitoringTable:
    """Rates of a monitoring system, from its JSON."""
    try:
        table = table_of_document(text, as_written=as_written)
    except NotRecordsError as error:
        raise TraceError(f"{file}: {error.metric.refusal(error.name, f', or write {TO_OVERRIDE}')}") from None
    except MonitoringError as error:
        raise TraceError(f"{file} {error}") from None
    if table is None:
        raise TraceError(
            f"{file} is JSON, but neither an answer of Prometheus, Datadog, CloudWatch or InfluxDB nor data frames of Grafana"
        )
    return table


def _written_rows(table: MonitoringTable) -> Iterator[tuple[int, dict[str, str | None]]]:
    return ((i, dict(zip(table.columns, row, strict=True))) for i, row in enumerate(table.rows, start=1))


def _is_parquet(file: FilePath) -> bool:
    return file.suffix == ".parquet" or file.is_dir()


def _parquet(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.exists():
        raise TraceError(f"no such file: {file}")
    parts = sorted(file.glob("*.parquet")) if file.is_dir() else [file]
    if not parts:
        raise TraceError(f"{file} is a folder without Parquet files")
    try:
        opened = [pq.ParquetFile(part) for part in parts]
        groups = [part.metadata.row_group(i) for part in opened for i in range(part.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MAX_BYTES:
            raise TraceError(f"{file} is larger than {MAX_BYTES // 10**6} MB")
        table = pa.concat_tables([part.read() for part in opened])
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{file} is not a Parquet file: {str(error).splitlines()[0]}") from None
    names = table.column_names
    texts = [[cell_text(value) for value in table.column(name).to_pylist()] for name in names]
    return names, (
        (line, dict(zip(names, row, strict=True))) for line, row in enumerate(zip(*texts, strict=True), start=1)
    )


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
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"{file} is not CSV text") from None


def moment(clock: Clock, cell: object, file: FilePath, line: int, after: Fraction | None = None) -> Fraction:
    """A cell as seconds; `after`: that of the row before.  TraceError: it is not a time."""
    written = cell_text(cell).strip()
    if (found := clock.seconds(written, after)) is None:
        expected = EXPECTED if clock.unread or not written else f"the others are {clock}"
        raise TraceError(f"{file}:{line}: '{written}' is not a time: {expected}")
    return found


def _moment_ns(
    clock: Clock, cell: str | None, file: FilePath, line: int, after_ns: int | Fraction | None
) -> int | Fraction:
    """A cell as nanoseconds, exact.  TraceError: it is not a time."""
    if (at_ns := clock.nanoseconds(cell_text(cell).strip())) is not None:
        return at_ns
    return moment(clock, cell, file, line, None if after_ns is None else Fraction(after_ns) / 10**9) * 10**9


def _rate(text: str, file: FilePath, line: int) -> tuple[int, int]:
    """Numerator and denominator; recorded rates carry the noise of a double."""
    if (number := billionths(text)) is not None and number % 10**3 == 0:
        return _lowest(number, 10**9)
    try:
        rate = parse_number(text).limit_denominator(10**6)
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is not a rate") from None
    return rate.numerator, rate.denominator


def _lowest(numerator: int, denominator: int) -> tuple[int, int]:
    """The fraction in its lowest terms."""
    common = gcd(numerator, denominator)
    return numerator // common, denominator // common

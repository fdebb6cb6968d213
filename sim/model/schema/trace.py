"""Read the rates of a source from a CSV or Parquet file or monitoring data, as (start, records per second) steps."""

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
from sim.model.series.columns import (
    EXPECTED_TIMES,
    MAX_INSPECTED_CELLS,
    TIME_COLUMNS,
    TimeFormat,
    cell_number,
    cell_text,
    detect_time_format,
    find_column,
    is_zone,
)
from sim.model.series.monitoring import (
    RECIPE,
    TIME,
    Kind,
    Metric,
    MonitoringError,
    MonitoringTable,
    NotRecordsError,
    classify_name,
    classify_series,
    refuse_offsets,
    table_of_counter,
    table_of_document,
)
from sim.model.text import PrintableError, did_you_mean
from sim.model.units import DURATIONS, UnitError, billionths, format_duration, parse_number

MAX_BYTES = 200 * 10**6
_DELIMITER_LINE = re.compile(r"\Asep=.\r?\n")
"""The first line of CSV files that Grafana writes for Excel."""
SCALE_HINT = "scale: with the records per second for a value of 1"
_START_COLUMN = 0
"""Index of the start time in the packed steps."""
Row = TypeVar("Row", bound=dict[str, Any])
UNITS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}


class TraceError(PrintableError, ValueError):
    """The file contains no usable rates."""


class RateSeries(NamedTuple):
    """The rates of a file."""

    steps: PackedRecords[Rate]
    length_ns: int  # from the first row to the last
    last_ns: int  # from the row before the last to the last one
    rows: int
    time_format: TimeFormat | None  # format of the times; None if rows are equally spaced (`every:`)
    assumed: str = ""  # assumptions about the values, as text

    def __str__(self) -> str:
        times = "" if self.time_format is None else f", times in {self.time_format}"
        return f"{_length_text(self.length_ns)}, {self.rows:,} rows{times}"

    @property
    def sampling_interval_ns(self) -> int:
        """Mean time from one row to the next."""
        return self.length_ns // max(1, self.rows - 1)


def read_trace(trace: Trace, folder: FilePath, *, until_ns: int) -> list[tuple[int, Fraction]]:
    """Return (ns since the start of the run, records per second) steps, up to `until_ns`.

    A row with an empty cell continues the rate of the row before.
    """
    return [
        (at, Fraction(numerator, denominator))
        for at, numerator, denominator in _rates_in_window(trace, folder, until_ns, 1)
    ]


def _rates_in_window(trace: Trace, folder: FilePath, until_ns: int, subtasks: int) -> Iterator[tuple[int, int, int]]:
    """Yield (ns since the start of the run, numerator, denominator) of the rate of each of `subtasks` subtasks."""
    file = folder / trace.trace
    steps, length_ns, *_ = series_of(trace, folder)
    begin_ns, factor = trace.from_ or 0, Fraction(1 if trace.scale is None else trace.scale) / subtasks
    if begin_ns > length_ns:
        raise TraceError(f"{file} ends after {format_duration(length_ns)}: from: {format_duration(begin_ns)} is later")
    first = max(steps.last_until(_START_COLUMN, begin_ns), 0)
    last = steps.last_until(_START_COLUMN, begin_ns + until_ns - 1)
    for start_ns, numerator, denominator in steps.integers(first, max(last, first) + 1):
        yield (
            max(start_ns - begin_ns, 0),
            *_lowest_terms(numerator * factor.numerator, denominator * factor.denominator),
        )


def rates_of_trace(trace: Trace, folder: FilePath, *, until_ns: int, subtasks: int) -> Sequence[Rate]:
    """Return the rate of each of `subtasks` subtasks.  Cached, because all settings of a sweep share the windows."""
    return _rates(trace, folder, file_signature(folder / trace.trace), until_ns, subtasks)


@lru_cache(maxsize=256)
def _rates(
    trace: Trace,
    folder: FilePath,
    stamp: tuple[int, int],
    until_ns: int,
    subtasks: int,
) -> Sequence[Rate]:
    return PackedRecords(Rate.of_integers, _rates_in_window(trace, folder, until_ns, subtasks))


def series_of(trace: Trace, folder: FilePath) -> RateSeries:
    """Read a whole file.  Raises `TraceError` if it contains no usable rates."""
    file = folder / trace.trace
    return _series(
        file,
        file_signature(file),
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
    is_scaled: bool,  # `scale:` is set, so any metric is accepted
) -> RateSeries:
    """Read a whole file.  Cached for the windows of a sweep; `stamp` is only part of the key of the cache."""
    columns, rows, made = _read_table(file, as_written=is_scaled)
    time = time or time_column(columns)
    if zone is not None and not is_zone(zone):
        raise TraceError(f"{file}: zone: '{zone}' is not a time zone: write one such as Europe/Berlin or UTC")
    require_columns(file, columns, [column, *([] if every_ns else [time])])
    if time == column and not every_ns:
        raise TraceError(f"{file}: the column '{column}' cannot be both the time and the rate: name another with time:")
    metric, rows = (Metric(Kind.RATE), rows) if made else _detect_metric(column, rows, is_scaled=is_scaled)
    if metric.kind is Kind.OTHER:
        raise TraceError(f"{file}: {metric.refusal(column, f', or write {SCALE_HINT}')}")
    if metric.kind is Kind.COUNTER:
        made = _convert_counts_to_rates(file, time, column, rows, time_unit, zone, every_ns)
        time, rows, time_unit, zone, every_ns = TIME, _table_rows(made), None, None, None
    time_format: TimeFormat | None = None
    if not every_ns:
        time_format, rows = detect_format(time, rows, None if time_unit is None else UNITS[time_unit], zone)
    steps, latest_rate = list[tuple[int, int, int]](), None
    first_ns: int | Fraction | None = None
    at_ns: int | Fraction | None = None
    start_ns, latest_ns, before_ns, count = 0, -1, 0, 0
    for number, (line, row) in enumerate(rows):
        at_ns = every_ns * number if time_format is None else _parse_time_ns(time_format, row[time], file, line, at_ns)  # type: ignore[operator]
        first_ns = at_ns if first_ns is None else first_ns
        before_ns, start_ns, count = start_ns, round(at_ns - first_ns), number + 1
        if (written := row[column]) is None:
            raise TraceError(f"{file}:{line}: has fewer fields than there are columns")
        if (text := written.strip()) == "":
            continue
        rate = _parse_rate(text, file, line)
        if start_ns <= latest_ns:
            raise TraceError(f"{file}:{line}: {not_increasing_message(time_format)}")
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
        time_format,
        made.assumed if made else "",
    )


def _detect_metric(
    column: str, rows: Iterator[tuple[int, Row]], *, is_scaled: bool
) -> tuple[Metric, Iterator[tuple[int, Row]]]:
    """Return the metric of a column, detected by its name or its first cells, and all rows.

    With `scale:` only counters are detected, by their names; any other column contains rates.
    """
    if is_scaled:
        return Metric(Kind.COUNTER if classify_name(column).kind is Kind.COUNTER else Kind.RATE), rows
    first = list(islice(rows, MAX_INSPECTED_CELLS))
    return classify_series(column, (cell_number(row[column]) for _, row in first)), chain(first, rows)


def _convert_counts_to_rates(
    file: FilePath,
    time: str,
    column: str,
    rows: Iterator[tuple[int, dict[str, str | None]]],
    time_unit: str | None,
    zone: str | None,
    every_ns: int | None,
) -> MonitoringTable:
    """Convert a column of counts."""
    if every_ns:
        rows = ((line, row | {time: str(Fraction(every_ns * i, 10**9))}) for i, (line, row) in enumerate(rows))
    unit_s = Fraction(1) if every_ns else None if time_unit is None else UNITS[time_unit]
    try:
        return table_of_counter(time, column, rows, unit_s, zone)
    except MonitoringError as error:
        raise TraceError(f"{file}: {error}") from None


def time_column(columns: Sequence[str]) -> str:
    """Return the column of the times if `time:` is missing: one with a known name, otherwise the first."""
    return find_column(TIME_COLUMNS, columns) or (columns[0] if columns else "")


def detect_format(
    column: str, rows: Iterator[tuple[int, Row]], unit_s: Fraction | None = None, zone: str | None = None
) -> tuple[TimeFormat, Iterator[tuple[int, Row]]]:
    """Detect the format of the times in a column from its first rows.  Returns the format and all rows."""
    first = list(islice(rows, MAX_INSPECTED_CELLS))
    return detect_time_format(column, (cell_text(row[column]) for _, row in first), unit_s, zone), chain(first, rows)


def not_increasing_message(time_format: TimeFormat | None) -> str:
    """Return the error message for a time that is not after the one before it."""
    may_be_local = time_format is not None and time_format.is_zoneless and time_format.zone == "UTC"
    return "time does not increase" + (
        ": if daylight saving time ends here, set zone:, for example to Europe/Berlin" if may_be_local else ""
    )


def _length_text(ns: int) -> str:
    """Format a duration with three digits."""
    unit = next((unit for unit in ("d", "h", "min", "s") if ns >= 2 * DURATIONS[unit]), None)
    return format_duration(ns) if unit is None else f"{float(f'{ns / DURATIONS[unit]:.3g}'):,g} {unit}"


def file_signature(file: FilePath) -> tuple[int, int]:
    """Return (modification time [ns], bytes), by which caches notice a changed file; zeros if it does not exist."""
    try:
        stat = file.stat()
    except (OSError, ValueError):
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def require_columns(file: FilePath, columns: Sequence[str], required: Iterable[str]) -> None:
    """Raise `TraceError` if a required column is missing or duplicated."""
    for name in required:
        if name not in columns:
            raise TraceError(
                f"{file} has no column '{name}'{did_you_mean(name, columns)}; it has {', '.join(columns) or 'none'}"
            )
        if columns.count(name) > 1:
            raise TraceError(f"{file} has the column '{name}' twice")


def columns_and_rows(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
    """Return (column names, (line, row) of each row) of a CSV file, a Parquet file or a folder of Parquet files.

    All cells are text.  Raises `TraceError` if the file cannot be read.
    """
    columns, rows, _ = _read_table(file, as_written=False)
    return columns, rows


def _read_table(
    file: FilePath, *, as_written: bool
) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]], MonitoringTable | None]:
    """Return (columns, rows, table if they were converted from monitoring data).

    `as_written`: accept any metric, because `scale:` says what its values mean.
    """
    if _is_parquet(file):
        return *_read_parquet(file), None
    text = _read_csv_text(file)
    if text.lstrip()[:1] in ("{", "["):
        made = _read_monitoring_json(file, text, as_written=as_written)
        return made.columns, _table_rows(made), made
    reader: csv.DictReader[str] = csv.DictReader(io.StringIO(_DELIMITER_LINE.sub("", text, count=1), newline=None))
    try:
        columns = list(reader.fieldnames or [])
        refuse_offsets(columns)
        return columns, _csv_rows(reader, file), None
    except MonitoringError as error:
        raise TraceError(f"{file} {error}") from None
    except csv.Error as error:
        raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None


def _read_monitoring_json(file: FilePath, text: str, *, as_written: bool) -> MonitoringTable:
    """Rates of a monitoring system, from its JSON."""
    try:
        table = table_of_document(text, as_written=as_written)
    except NotRecordsError as error:
        raise TraceError(f"{file}: {error.metric.refusal(error.name, f', or write {SCALE_HINT}')}") from None
    except MonitoringError as error:
        raise TraceError(f"{file} {error}") from None
    if table is None:
        raise TraceError(f"{file} is JSON, but not an answer of Prometheus to a range query: {RECIPE}")
    return table


def _table_rows(table: MonitoringTable) -> Iterator[tuple[int, dict[str, str | None]]]:
    return ((i, dict(zip(table.columns, row, strict=True))) for i, row in enumerate(table.rows, start=1))


def _is_parquet(file: FilePath) -> bool:
    return file.suffix == ".parquet" or file.is_dir()


def _read_parquet(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
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


def _csv_rows(reader: csv.DictReader[str], file: FilePath) -> Iterator[tuple[int, dict[str, str | None]]]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # a field of more than 128 KiB
            raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None
        yield reader.line_num, row


def _read_csv_text(file: FilePath) -> str:
    """Return the text of a CSV file, decompressed if its name ends in .gz.  Raises `TraceError` if it cannot be read."""
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
        raise TraceError(f"{file} is not UTF-8 text") from None


def parse_time(
    time_format: TimeFormat, cell: object, file: FilePath, line: int, after: Fraction | None = None
) -> Fraction:
    """Return a cell as seconds; `after` is the time of the row before.  Raises `TraceError` if it is not a time."""
    written = cell_text(cell).strip()
    if (found := time_format.seconds(written, after)) is None:
        expected = EXPECTED_TIMES if time_format.unreadable or not written else f"the other rows have {time_format}"
        raise TraceError(f"{file}:{line}: '{written}' is not a time: {expected}")
    return found


def _parse_time_ns(
    time_format: TimeFormat, cell: str | None, file: FilePath, line: int, after_ns: int | Fraction | None
) -> int | Fraction:
    """Return a cell as exact nanoseconds.  Raises `TraceError` if it is not a time."""
    if (at_ns := time_format.nanoseconds(cell_text(cell).strip())) is not None:
        return at_ns
    return parse_time(time_format, cell, file, line, None if after_ns is None else Fraction(after_ns) / 10**9) * 10**9


def _parse_rate(text: str, file: FilePath, line: int) -> tuple[int, int]:
    """Return numerator and denominator of a rate.  Large denominators are rounding errors of a double, and are limited."""
    if (number := billionths(text)) is not None and number % 10**3 == 0:
        return _lowest_terms(number, 10**9)
    try:
        rate = parse_number(text).limit_denominator(10**6)
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is not a rate") from None
    return rate.numerator, rate.denominator


def _lowest_terms(numerator: int, denominator: int) -> tuple[int, int]:
    """Return the fraction in its lowest terms."""
    common = gcd(numerator, denominator)
    return numerator // common, denominator // common

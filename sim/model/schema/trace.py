"""Read the rates of a source from a CSV or Parquet file or monitoring data, as (start, records per second) steps."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from math import gcd
from pathlib import Path as FilePath
from typing import Annotated, NamedTuple
from zoneinfo import available_timezones

from pydantic import Field

from sim.model.job import Rate
from sim.model.packed_records import PackedRecords
from sim.model.schema.sections import Axis, Section
from sim.model.series.columns import (
    EXPECTED_TIMES,
    MAX_INSPECTED_CELLS,
    TIME_COLUMNS,
    UNIT_SUFFIXES,
    TimeFormat,
    cell_number,
    cell_text,
    detect_time_format,
    find_column,
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
from sim.model.value_types import Duration, Number, choice

MAX_BYTES = 200 * 10**6
_DELIMITER_LINE = re.compile(r"\Asep=.\r?\n")
"""The first line of CSV files that Grafana writes for Excel."""
SCALE_HINT = "scale: with the records per second for a value of 1"
_START_COLUMN = 0
"""Index of the start time in the packed steps."""
Row = dict[str, str | None]
UNITS = {suffixes[0]: unit_s for unit_s, suffixes in UNIT_SUFFIXES.items()}


class Trace(Section):
    """Rates from a CSV file (also .csv.gz), JSON of Prometheus, or a table of `ckptsim traces`, relative to the scenario."""

    trace: str = Field(min_length=1)
    """CSV or Parquet file with rates; the path is relative to the scenario."""
    column: str
    """Column with the rates, in records per second."""
    time: str | None = None
    """Column with timestamps: seconds, epoch milliseconds or finer, or ISO 8601.  Default: a column with a usual name, otherwise the first
    one."""
    time_unit: Annotated[str, choice("s", "ms", "us", "ns")] | None = None
    """Unit of numeric timestamps.  Default: from the suffix of the column's name, otherwise from their magnitude (seconds, or epoch
    milliseconds or finer)."""
    zone: str | None = None
    """Time zone of dates without one, such as Europe/Berlin.  Default: UTC."""
    every: Duration | None = None
    """Time between two rows, for files without timestamps."""
    scale: Axis[Number] | None = None
    """Factor by which rates are multiplied.  Default: 1."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """Offset into the trace at which the run starts; a list of offsets is a sweep axis.  Default: the first row."""


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


def rates_of_trace(trace: Trace, folder: FilePath, *, until_ns: int, subtasks: int) -> Sequence[Rate]:
    """Return the rate of each of `subtasks` subtasks since the start of the run, up to `until_ns`.

    A row with an empty cell continues the rate of the row before.  Cached, because all settings of a sweep share the windows.
    """
    return _rates(trace, folder, file_signature(folder / trace.trace), until_ns, subtasks)


@lru_cache(maxsize=256)
def _rates(
    trace: Trace, folder: FilePath, signature: tuple[int, int], until_ns: int, subtasks: int
) -> PackedRecords[Rate]:
    return PackedRecords(Rate.of_integers, _rates_in_window(trace, folder, until_ns, subtasks))


def _rates_in_window(trace: Trace, folder: FilePath, until_ns: int, subtasks: int) -> Iterator[tuple[int, int, int]]:
    """Yield (ns since the start of the run, numerator, denominator) of the rate of each of `subtasks` subtasks."""
    steps, length_ns, *_ = series_of(trace, folder)
    begin_ns, factor = trace.from_ or 0, Fraction(1 if trace.scale is None else trace.scale) / subtasks
    if begin_ns > length_ns:
        raise TraceError(
            f"{folder / trace.trace} ends after {format_duration(length_ns)}: from: {format_duration(begin_ns)} is later"
        )
    first = max(steps.last_until(_START_COLUMN, begin_ns), 0)
    last = steps.last_until(_START_COLUMN, begin_ns + until_ns - 1)
    for start_ns, numerator, denominator in steps.integers(first, max(last, first) + 1):
        yield (
            max(start_ns - begin_ns, 0),
            *_lowest_terms(numerator * factor.numerator, denominator * factor.denominator),
        )


def series_of(trace: Trace, folder: FilePath) -> RateSeries:
    """Read a whole file.  Raises `TraceError` if it contains no usable rates."""
    file = folder / trace.trace
    # windows, and rates multiplied by other factors, are of the same series
    return _series(
        file, file_signature(file), trace.model_copy(update={"from_": None, "scale": trace.scale is not None})
    )


@lru_cache(maxsize=8)
def _series(file: FilePath, signature: tuple[int, int], trace: Trace) -> RateSeries:
    """Read a whole file.  Cached for the windows of a sweep; `signature` is only part of the key of the cache."""
    column, every_ns, is_scaled = trace.column, trace.every, bool(trace.scale)
    table = TraceTable(file, is_scaled=is_scaled)
    zone, unit_s = trace.zone, None if trace.time_unit is None else UNITS[trace.time_unit]
    time = trace.time or table.time_column
    if zone is not None and zone not in available_timezones():
        raise TraceError(f"{file}: zone: '{zone}' is not a time zone: write one such as Europe/Berlin or UTC")
    table.require_columns(column, *([] if every_ns else [time]))
    if time == column and not every_ns:
        raise TraceError(f"{file}: the column '{column}' cannot be both the time and the rate: name another with time:")
    metric = Metric(Kind.RATE) if table.converted else _metric_of(column, table, is_scaled=is_scaled)
    if metric.kind is Kind.OTHER:
        raise table.refusal(metric, column)
    if metric.kind is Kind.COUNTER:
        rows = table.rows
        if every_ns:
            rows = ((line, row | {time: str(Fraction(every_ns * i, 10**9))}) for i, (line, row) in enumerate(rows))
        try:
            table.use(table_of_counter(time, column, rows, Fraction(1) if every_ns else unit_s, zone))
        except MonitoringError as error:
            raise TraceError(f"{file}: {error}") from None
        time, unit_s, zone, every_ns = TIME, None, None, None
    if not every_ns:
        table.detect_times(time, unit_s, zone)
    steps, latest_rate = list[tuple[int, int, int]](), None
    first_ns: int | Fraction | None = None
    at_ns: int | Fraction | None = None
    start_ns, latest_ns, before_ns, count = 0, -1, 0, 0
    for number, (line, row) in enumerate(table.rows):
        at_ns = every_ns * number if every_ns else table.nanoseconds(line, row, at_ns)
        first_ns = at_ns if first_ns is None else first_ns
        before_ns, start_ns, count = start_ns, round(at_ns - first_ns), number + 1
        if (written := row[column]) is None:
            raise TraceError(f"{file}:{line}: has fewer fields than there are columns")
        if (text := written.strip()) == "":
            continue
        rate = _rate_terms(text, table, line)
        if start_ns <= latest_ns:
            raise table.not_increasing(line)
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
        None if every_ns else table.time_format,
        table.converted.assumed if table.converted else "",
    )


def _metric_of(column: str, table: TraceTable, *, is_scaled: bool) -> Metric:
    """Return the metric of a column, detected by its name or its first cells.

    With `scale:` only counters are detected, by their names; any other column contains rates.
    """
    if is_scaled:
        return Metric(Kind.COUNTER if classify_name(column).kind is Kind.COUNTER else Kind.RATE)
    return classify_series(column, (cell_number(row[column]) for _, row in table.first_rows()))


def _rate_terms(text: str, table: TraceTable, line: int) -> tuple[int, int]:
    """Return numerator and denominator of a rate.  Large denominators are rounding errors of a double, and are limited."""
    if (number := billionths(text)) is not None and number % 10**3 == 0:
        return _lowest_terms(number, 10**9)
    rate = table.number(text, line, "rate").limit_denominator(10**6)
    return rate.numerator, rate.denominator


def _lowest_terms(numerator: int, denominator: int) -> tuple[int, int]:
    """Return the fraction in its lowest terms."""
    common = gcd(numerator, denominator)
    return numerator // common, denominator // common


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


# ---- Tables with a column of times: CSV files, Parquet files, and the rates of monitoring data.


class TraceTable:
    """The rows of a CSV file, a Parquet file or a folder of Parquet files.  All cells are text.

    Raises `TraceError` if the file cannot be read.  `is_scaled`: `scale:` says what the values of any metric mean.
    """

    def __init__(self, file: FilePath, *, is_scaled: bool = False) -> None:
        self.file = file
        self.columns = list[str]()
        self.rows: Iterator[tuple[int, Row]] = iter(())  # with their line numbers
        self.converted: MonitoringTable | None = None  # the monitoring data that the rows are from
        self.time, self.time_format = "", TimeFormat()
        if file.suffix == ".parquet" or file.is_dir():
            self.columns, self.rows = _read_parquet(file)
            return
        text = _read_csv_text(file)
        try:
            if text.lstrip()[:1] not in ("{", "["):
                lines = io.StringIO(_DELIMITER_LINE.sub("", text, count=1), newline=None)
                reader: csv.DictReader[str] = csv.DictReader(lines)
                self.columns, self.rows = list(reader.fieldnames or []), _csv_rows(reader, file)
                refuse_offsets(self.columns)
            elif (rates := table_of_document(text, as_written=is_scaled)) is not None:
                self.use(rates)
            else:
                raise TraceError(f"{file} is JSON, but not an answer of Prometheus to a range query: {RECIPE}")
        except NotRecordsError as error:
            raise self.refusal(error.metric, error.name) from None
        except MonitoringError as error:
            raise TraceError(f"{file} {error}") from None
        except csv.Error as error:
            raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None

    def use(self, rates: MonitoringTable) -> None:
        """Replace the rows by the rates of monitoring data."""
        self.converted, self.columns = rates, rates.columns
        self.rows = ((i, dict(zip(rates.columns, row, strict=True))) for i, row in enumerate(rates.rows, start=1))

    def refusal(self, metric: Metric, name: str) -> TraceError:
        """Return the error that a metric is not a rate of records."""
        return TraceError(f"{self.file}: {metric.refusal(name, f', or write {SCALE_HINT}')}")

    @property
    def time_column(self) -> str:
        """The column of the times if none is named: one with a known name, otherwise the first."""
        return find_column(TIME_COLUMNS, self.columns) or (self.columns[0] if self.columns else "")

    def require_columns(self, *required: str) -> None:
        """Raise `TraceError` if a column is missing or duplicated."""
        for name in required:
            if name not in self.columns:
                there = f"{did_you_mean(name, self.columns)}; it has {', '.join(self.columns) or 'none'}"
                raise TraceError(f"{self.file} has no column '{name}'{there}")
            if self.columns.count(name) > 1:
                raise TraceError(f"{self.file} has the column '{name}' twice")

    def first_rows(self) -> list[tuple[int, Row]]:
        """Return the rows by which formats are detected.  They remain in the table."""
        first = list(islice(self.rows, MAX_INSPECTED_CELLS))
        self.rows = chain(first, self.rows)
        return first

    def detect_times(self, column: str, unit_s: Fraction | None = None, zone: str | None = None) -> None:
        """Detect the format of the column of times; its arguments are those of `detect_time_format`."""
        cells = (cell_text(row[column]) for _, row in self.first_rows())
        self.time, self.time_format = column, detect_time_format(column, cells, unit_s, zone)

    def seconds(self, line: int, row: Row, after: Fraction | None = None) -> Fraction:
        """Return the time of a row [s]; `after` is that of the row before."""
        written = cell_text(row[self.time]).strip()
        if (found := self.time_format.seconds(written, after)) is None:
            is_unknown = self.time_format.unreadable or not written
            expected = EXPECTED_TIMES if is_unknown else f"the other rows have {self.time_format}"
            raise TraceError(f"{self.file}:{line}: '{written}' is not a time: {expected}")
        return found

    def nanoseconds(self, line: int, row: Row, after_ns: int | Fraction | None) -> int | Fraction:
        """Return the exact time of a row [ns]; `after_ns` is that of the row before."""
        if (at_ns := self.time_format.nanoseconds(cell_text(row[self.time]).strip())) is not None:
            return at_ns
        return self.seconds(line, row, None if after_ns is None else Fraction(after_ns) / 10**9) * 10**9

    def not_increasing(self, line: int) -> TraceError:
        """Return the error that the time of a row is not after the one before it."""
        may_be_local = self.time_format.is_zoneless and self.time_format.zone == "UTC"
        hint = ": if daylight saving time ends here, set zone:, for example to Europe/Berlin" if may_be_local else ""
        return TraceError(f"{self.file}:{line}: time does not increase{hint}")

    def number(self, cell: str | None, line: int, what: str) -> Fraction:
        """Return the number in a cell; `what` it is, for the error message."""
        try:
            return parse_number(cell)
        except UnitError:
            raise TraceError(f"{self.file}:{line}: '{cell}' is not a {what}") from None


def _read_parquet(file: FilePath) -> tuple[list[str], Iterator[tuple[int, Row]]]:
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


def _csv_rows(reader: csv.DictReader[str], file: FilePath) -> Iterator[tuple[int, Row]]:
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

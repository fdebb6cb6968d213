"""Rates of a source from a CSV file, or from a table of `ckptsim traces`: (start, records per second) steps."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path as FilePath

from sim.foreign import Readable
from sim.model.job import Rate
from sim.packed_records import PackedRecords
from sim.scenario.job.document import Trace
from sim.scenario.text.problems import did_you_mean
from sim.units import UnitError, format_duration, parse_number

__all__ = ["TraceError", "columns_and_rows", "file_stamp", "length_ns", "moment", "must_have", "rates_of_trace", "read_trace"]

MAX_BYTES = 200 * 10**6
_START = 0
"""The column of packed steps with their times."""
TIME = "t_s"
"""The column of the time in tables of our own."""


class TraceError(Readable, ValueError):
    """The file gives no rates; the message says why."""


def read_trace(trace: Trace, folder: FilePath, *, until_ns: int) -> list[tuple[int, Fraction]]:
    """(ns in the run, records per second) wherever the rate changes before `until_ns`.  A blank keeps the rate before it."""
    file = folder / trace.trace
    steps, length_ns = _all_steps(file, file_stamp(file), trace.column, trace.time, trace.every)
    begin_ns, scale = trace.from_ or 0, Fraction(1) if trace.scale is None else trace.scale
    if begin_ns > length_ns:
        raise TraceError(f"{file} has rows of {format_duration(length_ns)}: none from {format_duration(begin_ns)} on")
    first = max(steps.last_until(_START, begin_ns), 0)
    last = steps.last_until(_START, begin_ns + until_ns - 1)
    return [(max(step.start_ns - begin_ns, 0), step.per_second * scale) for step in steps[first : max(last, first) + 1]]


def rates_of_trace(trace: Trace, folder: FilePath, *, until_ns: int, shared: int) -> Sequence[Rate]:
    """The rate of one of `shared` subtasks.  The settings of a sweep meet the same windows: they get the same object."""
    return _rates(trace, folder, file_stamp(folder / trace.trace), until_ns, shared)


@lru_cache(maxsize=256)
def _rates(
    trace: Trace,
    folder: FilePath,
    stamp: tuple[int, int],  # noqa: ARG001 - another one is another file
    until_ns: int,
    shared: int,
) -> Sequence[Rate]:
    rates = ((at, rate / shared) for at, rate in read_trace(trace, folder, until_ns=until_ns))
    return PackedRecords(Rate.of_integers, ((at, rate.numerator, rate.denominator) for at, rate in rates))


def length_ns(file: FilePath, column: str, time: str | None, every_ns: int | None) -> int:
    """From the first row to the last."""
    return _all_steps(file, file_stamp(file), column, time, every_ns)[1]


@lru_cache(maxsize=8)
def _all_steps(
    file: FilePath,
    stamp: tuple[int, int],  # noqa: ARG001
    column: str,
    time: str | None,
    every_ns: int | None,
) -> tuple[PackedRecords[Rate], int]:
    """All steps of a file and the time of its last row, read once for the many windows of a sweep.

    `stamp` is not used here: another one is another file.
    """
    columns, rows = columns_and_rows(file)
    time = time or (TIME if _is_parquet(file) else columns[0] if columns else "")
    must_have(file, columns, [column, *([] if every_ns else [time])])
    if time == column and not every_ns:
        raise TraceError(f"{file}: the column '{column}' cannot be both the time and the rate: name another with time:")
    steps, latest_rate = list[tuple[int, int, int]](), None
    first: Fraction | None = None
    start_ns, latest_ns = 0, -1
    for number, (line, row) in enumerate(rows):
        at = Fraction(every_ns * number, 10**9) if every_ns else moment(row[time], file, line)
        first = at if first is None else first
        start_ns = round((at - first) * 10**9)
        if (written := row[column]) is None:
            raise TraceError(f"{file}:{line}: has fewer fields than there are columns")
        if (text := written.strip()) == "":
            continue
        rate = _rate(text, file, line)
        if start_ns <= latest_ns:
            raise TraceError(f"{file}:{line}: time does not increase")
        latest_ns = start_ns
        if rate != latest_rate:
            steps.append((start_ns, rate.numerator, rate.denominator))
            latest_rate = rate
    if not steps:
        raise TraceError(f"{file} has no rates in column '{column}'")
    return PackedRecords(Rate.of_integers, steps), start_ns


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
            raise TraceError(f"{file} has no column '{name}'{did_you_mean(name, columns)}; it has {', '.join(columns) or 'none'}")
        if columns.count(name) > 1:
            raise TraceError(f"{file} has the column '{name}' twice")


def columns_and_rows(file: FilePath) -> tuple[list[str], Iterator[tuple[int, dict[str, str | None]]]]:
    """(names in the first line, (line, row) of all others) of a CSV file; of Parquet, a file or a folder of them, as texts as well.

    TraceError: there is none.
    """
    if _is_parquet(file):
        return _parquet(file)
    reader: csv.DictReader[str] = csv.DictReader(io.StringIO(_text_of(file), newline=None))
    try:
        return list(reader.fieldnames or []), _rows(reader, file)
    except csv.Error as error:
        raise TraceError(f"{file}:{reader.line_num + 1}: {error}") from None


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
        raise TraceError(f"{file} is no Parquet file: {str(error).splitlines()[0]}") from None
    names = table.column_names
    texts = [[_text(value) for value in table.column(name).to_pylist()] for name in names]
    return names, ((line, dict(zip(names, row, strict=True))) for line, row in enumerate(zip(*texts, strict=True), start=1))


def _text(value: object) -> str:
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - not a number is no value


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
        raise TraceError(f"{file} is no CSV text") from None


def moment(text: str | None, file: FilePath, line: int) -> Fraction:
    """Seconds of a number or an ISO 8601 time.  TraceError: neither."""
    written = (text or "").strip()
    try:
        return parse_number(written)
    except UnitError:
        pass
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise TraceError(f"{file}:{line}: '{written}' is no time: seconds or ISO 8601") from None
    return Fraction((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _rate(text: str, file: FilePath, line: int) -> Fraction:
    try:
        return parse_number(text).limit_denominator(10**6)  # recorded rates carry the noise of a double
    except UnitError:
        raise TraceError(f"{file}:{line}: '{text}' is no rate") from None

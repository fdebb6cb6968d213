"""Read a trace file of any kind (text table, JSON document, Parquet) into rows, and count arrivals per second.

Rows are yielded as record batches with the columns UNION of `sim.studies.traces.tables`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.jobs.source.recorded_job import ZIP
from sim.model.series.columns import MAX_INSPECTED_CELLS, TIME_COLUMNS, cell_number, cell_text, find_column
from sim.model.series.monitoring import (
    Kind,
    MonitoringError,
    MonitoringTable,
    NotRecordsError,
    classify_name,
    classify_series,
    refuse_offsets,
    table_of_counter,
    table_of_document,
)
from sim.model.text import printable
from sim.model.units import MS, format_duration
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile, filesystem_of
from sim.studies.traces.parsing import (
    SCALE_HINT,
    ColumnReader,
    Format,
    TraceContent,
    TraceFileError,
    TraceLine,
    out_of_order,
)
from sim.studies.traces.tables import MAX_GAP_S, UNION

# ---- Text tables, read block by block, so that only one block is in memory. Invalid rows are put in quarantine with the reason.
# A file of unknown format becomes a single row in quarantine.

BLOCK_ROWS, BLOCK_CHARACTERS = 50_000, 8 << 20
"""Maximum rows and characters of a block."""
MIN_GAP_STEPS = 1.5
"""Minimum time between two rows of rates / median time between rows, for a gap."""
MAX_GAP_SHARE = 0.25
"""Maximum share of gaps.  With more of them, the times between rows have no usual length."""
MIN_ORDERED_SHARE, MIN_ROWS_TO_JUDGE = 0.5, 10
"""Minimum share of rows in the order of time, below which a file is not a time series; minimum rows for this check."""
MAX_ROW_CHARACTERS = 200
"""Maximum characters of a row in quarantine."""
_DELIMITERS = ",;\t|"
_DELIMITER_LINE = re.compile("\ufeff?sep=.")


class _TextTable(NamedTuple):
    """A table whose rows are still to be read."""

    columns: list[str]  # numbers if the file has no header
    rows: Iterator[TraceLine]
    header: list[
        str
    ]  # cells of the first line, by which the format is recognized; numbers if the user names columns by number
    first: TraceLine | None = None  # first line of a text file, for messages
    delimiter: str = ","


def read_rows(source: TraceFile, content: TraceContent, choices: Choices = Choices()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - frozen
    """Yield the rows of a text file.

    Its first line has the column names, unless it has numbers or the user names columns by number.  A file that cannot be read
    yields a row in quarantine.
    """
    try:
        remaining = content.lines()
        first = next((line for line in remaining if line.text.strip() or line.fault), None)
        if first is None:
            yield quarantined(source, "the file is empty")
            return
        if _DELIMITER_LINE.fullmatch(first.text):  # Grafana's "Download for Excel"
            first = next(remaining, first)
        if first.fault:
            yield _quarantine(source, [first._replace(fault=f"its first line: {first.fault}")])
            return
        delimiter = max(_DELIMITERS, key=first.text.count)
        names = [name.strip().strip("\ufeff") for name in _split_line(first.text, delimiter) or []]
        numbers = [str(i) for i in range(len(names))]
        is_numbered = choices.names_columns_by_number(len(names))
        has_header = not is_numbered and not all(_is_number(name) or not name for name in names[:2])
        rows = _rows_of_lines(remaining if has_header else chain([first], remaining), delimiter, len(names))
        table = _TextTable(names if has_header else numbers, rows, numbers if is_numbered else names, first, delimiter)
        if choices.value is None:
            refuse_offsets(table.header)
        may_be_counter = choices.per_s is None and choices.meaning in (None, "rates")
        column = choices.value_column(table.header) if may_be_counter else None
        if column is not None and classify_name(column).kind is not Kind.RATE:
            yield from _rows_of_unknown_metric(source, choices, table, column)
        else:
            yield from _rows_of_known_format(source, choices, table)
    except (TraceFileError, MonitoringError) as error:
        yield quarantined(source, str(error))


def _rows_of_lines(remaining: Iterable[TraceLine], delimiter: str, count: int) -> Iterator[TraceLine]:
    """Yield a row for each line that is not blank.  `count`: number of columns."""
    for line in remaining:
        cells = None if line.fault else _split_line(line.text, delimiter)
        if cells is None:
            yield line._replace(fault=line.fault or "quotes are not closed")
        elif len(cells) == count:
            yield TraceLine(line.number, "", cells=cells)
        elif line.text.strip():
            yield line._replace(fault=f"does not have {count} fields")


def table_rows(
    source: TraceFile, columns: list[str], rows: Iterable[list[str]], choices: Choices
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table with these column names.  `rows`: cells of each row."""
    numbered = (TraceLine(number, "", cells=cells) for number, cells in enumerate(rows, start=1))
    try:
        yield from _rows_of_known_format(source, choices, _TextTable(columns, numbered, columns))
    except TraceFileError as error:
        yield quarantined(source, str(error))


def monitoring_rows(source: TraceFile, table: MonitoringTable, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rates of a monitoring system: those of its only source, or of the one chosen with --value.

    With several sources and no choice, yield a row in quarantine.
    """
    for note in table.notes:
        yield noted(source, note)
    _, *sources = table.columns
    if len(sources) > 1 and choices.value is None:
        yield quarantined(source, f"has the rates of {', '.join(sources)}: choose one with --time time --value")
        return
    yield from table_rows(source, table.columns, table.rows, choices.of_source(sources[0]))


def _rows_of_unknown_metric(
    source: TraceFile, choices: Choices, table: _TextTable, column: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table with one value column, whose values are a rate or a counter.

    A counter is converted to rates, for which the whole table is read.  Raises TraceFileError if it is another quantity.
    """
    sample = list(islice(table.rows, MAX_INSPECTED_CELLS))
    position = table.header.index(column)
    metric = classify_series(column, (cell_number(row.cells[position]) for row in sample if not row.fault))
    if metric.kind is Kind.OTHER:
        raise TraceFileError(metric.refusal(column, f"; {SCALE_HINT}"))
    rows = chain(sample, table.rows)
    if metric.kind is not Kind.COUNTER:
        yield from _rows_of_known_format(source, choices, table._replace(rows=rows))
        return
    time = choices.time or find_column(TIME_COLUMNS, table.header) or table.header[0]
    unit_s = None if choices.unit_s is None else Fraction(choices.unit_s).limit_denominator(10**9)
    numbered = ((row.number, dict(zip(table.header, row.cells, strict=True))) for row in rows if not row.fault)
    rates = table_of_counter(time, column, numbered, unit_s, choices.zone)
    yield from monitoring_rows(source, rates, replace(choices, time=None, value=None, unit_s=None))


def _rows_of_known_format(source: TraceFile, choices: Choices, table: _TextTable) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in a known format.  If the format is unknown, yield a row in quarantine with the first line."""
    columns, first = table.columns, table.first
    format_ = choices.format_of(table.header)
    duplicates = sorted({name for name in columns if columns.count(name) > 1})
    if format_ is not None and not duplicates:
        yield from _BlockReader(source, format_, table, choices.zone).read()
        return
    unknown = f"no known format has the columns {', '.join(table.header)[:MAX_ROW_CHARACTERS]}: name columns with --time and --value"
    why = unknown if format_ is None else f"has the column '{duplicates[0]}' twice"
    text = "" if first is None else first.text[:MAX_ROW_CHARACTERS]
    yield quarantined(source, why, text)


class _BlockReader:
    """Reads the blocks of a file in order.  It keeps the latest time, because times must also increase from block to block."""

    def __init__(self, source: TraceFile, format_: Format, table: _TextTable, zone: str | None) -> None:
        self.source, self.format, self.table = source, format_, table
        self.latest_s = -np.inf
        self.reader = ColumnReader(zone)
        self.blocks = self.rows = 0
        self.step_s = np.nan  # median time between the rows of the first block with several rows
        self.steps = self.gaps = 0  # number of times between rows, and of those that are gaps
        self.gaps_s = 0.0  # sum of the gaps

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file.  If its rest cannot be read, TraceFileError is raised after the rows before it."""
        block, size = list[TraceLine](), 0
        read_error: TraceFileError | None = None
        while True:
            try:
                row = next(self.table.rows, None)
            except TraceFileError as error:  # rows before the error are used
                row, read_error = None, error
            if row is not None:
                block.append(row)
                size += _characters(row)
                if len(block) <= BLOCK_ROWS and size < BLOCK_CHARACTERS:
                    continue
            # only the next row shows that the time of the last one is ahead
            kept_back = int(row is not None and bool(self.format.ordered) and len(block) > 1)
            yield from self._block(block, kept_back)
            block = block[len(block) - kept_back :]
            size = sum(map(_characters, block))
            if row is None:
                break
        if read_error is not None:
            raise read_error
        if not self.rows:
            yield quarantined(self.source, "there are no rows under the names of its columns")
        if self.format.ordered == "rates" and 0 < self.gaps <= MAX_GAP_SHARE * self.steps:
            length = format_duration(round(self.gaps_s * 1000) * MS)
            gaps, each = (
                (f"{self.gaps} gaps, {length} in all", "each") if self.gaps > 1 else (f"1 gap of {length}", "it")
            )
            yield noted(self.source, f"{gaps}: the rate before {each} goes on")

    def _block(self, block: list[TraceLine], kept_back: int) -> Iterator[pa.RecordBatch]:
        """Parse a block, and yield its rows except the last `kept_back` ones, which the next block begins with."""
        until = block[-kept_back - 1].number if block else 0
        self.rows += sum(row.number <= until for row in block)
        bad = [row for row in block if row.fault]
        good = {row.number: row.cells for row in block if not row.fault}
        if good:
            texts = pd.DataFrame.from_dict(good, orient="index", columns=self.table.columns)
            parsed = self.format.parse(texts, self.reader)
            wrong = self._with_misplaced_rows(parsed.tables, parsed.wrong, until)
            is_valid = (wrong == "") & (wrong.index <= until)
            is_usable = is_valid & (parsed.passed == "")
            if self.blocks == 0 and is_usable.any() and str(self.reader):
                yield noted(self.source, str(self.reader))
            for kind, rows in parsed.tables.items():
                if len(chosen := rows[is_usable.reindex(rows.index)]):
                    yield self._batch(kind, chosen)
            reasons = zip(wrong.index.tolist(), wrong, strict=True)
            bad += [TraceLine(line, self.table.delimiter.join(good[line]), why) for line, why in reasons if why]
            for why, count in parsed.passed[is_valid & (parsed.passed != "")].value_counts().items():
                yield rows_batch("passed", self.source, pd.DataFrame({"reason": [str(why)], "count": [int(count)]}))
        if bad := [row for row in sorted(bad) if row.number <= until]:
            yield _quarantine(self.source, bad)
        self.blocks += 1

    def _with_misplaced_rows(
        self, tables: Mapping[str, pd.DataFrame], wrong: pd.Series[str], until: int
    ) -> pd.Series[str]:
        """Return the reasons `wrong` with those of rows that are out of order added.  Updates the latest time up to line `until`.

        Raises TraceFileError if most rows of the first block are out of order.
        """
        if not self.format.ordered:
            return wrong
        time = tables[self.format.ordered]["t_s"]
        time = time[wrong.reindex(time.index) == ""]
        reasons = out_of_order(time.to_numpy(), self.latest_s, strictly=self.format.ordered == "rates")
        misplaced = pd.Series(reasons, index=time.index, dtype=object)[reasons != ""]
        if self.blocks == 0 and len(time) >= MIN_ROWS_TO_JUDGE and len(misplaced) > (1 - MIN_ORDERED_SHARE) * len(time):
            first = f"{len(misplaced)} of the first {len(time)} rows are not in order"
            raise TraceFileError(f"time goes back: {first}: are columns swapped, or is it not sorted? Not read")
        wrong = misplaced.reindex(wrong.index).fillna(wrong)
        kept = time[(wrong.reindex(time.index) == "") & (time.index <= until)]
        self._count_gaps(kept.to_numpy())
        self.latest_s = float(kept.iloc[-1]) if len(kept) else self.latest_s
        return wrong

    def _count_gaps(self, times_s: np.ndarray) -> None:
        """Count the gaps between rows.  `times_s`: times of the rows after the latest one."""
        steps_s = np.diff(times_s, prepend=self.latest_s)
        steps_s = steps_s[np.isfinite(steps_s)]
        if np.isnan(self.step_s) and len(steps_s):
            self.step_s = np.median(steps_s)
        gaps_s = steps_s[steps_s > MIN_GAP_STEPS * self.step_s]
        self.steps, self.gaps = self.steps + len(steps_s), self.gaps + len(gaps_s)
        self.gaps_s += float(gaps_s.sum())

    def _batch(self, kind: str, rows: pd.DataFrame) -> pa.RecordBatch:
        if kind == "failures" and "run" not in rows and self.source.run is not None:
            rows = rows.assign(run=self.source.run)
        return rows_batch(kind, self.source, rows.assign(line=rows.index))


def _characters(row: TraceLine) -> int:
    return len(row.text) + sum(map(len, row.cells))


def _split_line(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a line, or None if its quotes are not closed."""
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], strict=True, delimiter=delimiter), [])
    except csv.Error:
        return None


def _quarantine(source: TraceFile, rows: list[TraceLine]) -> pa.RecordBatch:
    """Return rows with faults as rows in quarantine."""
    cells = [(row.number, row.fault, row.text[:MAX_ROW_CHARACTERS]) for row in rows]
    return rows_batch("quarantine", source, pd.DataFrame(cells, columns=["line", "reason", "text"]))


def quarantined(source: TraceFile, reason: str, text: str = "") -> pa.RecordBatch:
    """Return a row in quarantine for a whole file, with its first line as `text`, or for the rest of a file that cannot be read."""
    return rows_batch("quarantine", source, pd.DataFrame({"reason": [printable(reason)], "text": [text]}))


def noted(source: TraceFile, how: str) -> pa.RecordBatch:
    """Return a row with a note on how a file was read."""
    return rows_batch("note", source, pd.DataFrame({"reason": [printable(how)], "count": [1]}))


def rows_batch(kind: str, source: TraceFile, rows: pd.DataFrame) -> pa.RecordBatch:
    """Return rows of this kind as a record batch with the columns UNION; columns that `rows` lacks are null."""
    rows = rows.assign(kind=kind, trace=source.trace, file=source.path)
    arrays = [
        pa.array(rows[field.name], type=field.type, from_pandas=True)
        if field.name in rows
        else pa.nulls(len(rows), field.type)
        for field in UNION
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=UNION)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- Arrivals, counted per second while they are read. Times of a file do not decrease, so only its last second is kept in memory.


def with_arrivals_counted(source: TraceFile, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, with arrivals replaced by a row per second with their number (`rate` and `count`).

    Seconds without arrivals get a row with 0 too (see MAX_GAP_S).  The `line` of a row is that of the first arrival of its
    second; in a second without arrivals, that of the last second before it with some.
    """
    last_second = list[pd.DataFrame]()
    for batch in batches:
        if not batch.num_rows or batch.column("kind")[0].as_py() != "arrivals":
            yield batch
            continue
        arrived = batch.select(["t_s", "line"]).to_pandas()
        seconds = pd.concat([*last_second, arrived.assign(t_s=np.floor(arrived["t_s"]), count=1)]).groupby("t_s")
        rows = _with_empty_seconds(seconds.agg({"line": "min", "count": "sum"}))
        yield _arrivals_batch(source, rows[:-1])
        last_second = [rows[-1:]]
    for rows in last_second:
        yield _arrivals_batch(source, rows)


def _with_empty_seconds(counted: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with rows for seconds without arrivals.  A gap longer than MAX_GAP_S gets only its first and last second."""
    at = counted.index.to_numpy()
    seconds = [at]
    for i in np.flatnonzero(np.diff(at) > 1):
        first, last = at[i] + 1, at[i + 1] - 1
        seconds.append(np.arange(first, last + 1) if last - first < MAX_GAP_S else np.array([first, last]))
    rows = counted.reindex(np.sort(np.concatenate(seconds))).rename_axis("t_s").reset_index()
    return rows.assign(line=rows["line"].ffill(), count=rows["count"].fillna(0))


def _arrivals_batch(source: TraceFile, rows: pd.DataFrame) -> pa.RecordBatch:
    return rows_batch("arrivals", source, rows.assign(rate=rows["count"]))


# ---- Parquet: tables whose columns belong to a known format, and OpenDC's failure models.

_MODEL_COLUMNS = ["failure_interval", "failure_duration"]
"""Columns of OpenDC's failure models: time since the start of the previous failure [ms], and duration [ms]."""


def parquet_rows(source: TraceFile, file: Any, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, a block at a time.

    In a failure model, the interval of a row in quarantine counts as 0, so that later failures keep their distances.
    """
    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if set(_MODEL_COLUMNS) <= set(names):
            yield from _failures_of_model(source, table.iter_batches(BLOCK_ROWS, columns=_MODEL_COLUMNS))
        else:
            yield from table_rows(source, names, _cells(table), choices)
    except (pa.ArrowException, OSError) as error:
        yield quarantined(source, f"is not a Parquet file, or a damaged one: {str(error).splitlines()[0]}")


def _cells(table: pq.ParquetFile) -> Iterator[list[str]]:
    """Yield rows as texts, which the formats of text tables can parse."""
    for block in table.iter_batches(BLOCK_ROWS):
        for row in zip(*(column.to_pylist() for column in block.columns), strict=True):
            yield list(map(cell_text, row))


def _failures_of_model(source: TraceFile, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the failures of an OpenDC model, whose times are the sums of intervals."""
    at_ms, line = 0.0, 0
    for block in blocks:
        rows = pd.DataFrame(
            {name: pd.to_numeric(block.column(name).to_pandas(), errors="coerce") for name in block.schema.names}
        )
        rows.index = pd.RangeIndex(line + 1, line + 1 + len(rows))
        line += len(rows)
        good = (rows >= 0).all(axis=1)
        if not good.all():
            bad = pd.DataFrame(
                {"line": rows.index[~good], "reason": "an interval or a duration is negative or missing", "text": ""}
            )
            yield rows_batch("quarantine", source, bad)
        rows = rows[good]
        begin_ms = at_ms + rows["failure_interval"].astype(float).cumsum()
        at_ms = float(begin_ms.iloc[-1]) if len(rows) else at_ms
        yield rows_batch("failures", source, pd.DataFrame({"line": rows.index, "t_s": begin_ms / 1e3}))


# ---- Reading a file in a folder or bucket, in this process or in a Spark task. Its kind is detected by its first bytes.

MAX_JSON_BYTES = 64 << 20
"""Maximum bytes of a JSON document, which is parsed as a whole."""
_LOG_LINE = re.compile(
    rb"^.{0,60}\d\d:\d\d:\d\d[.,]\d{3}.{0,80}\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b", re.MULTILINE
)
_OF_JOBS = "`ckptsim import` reads logs, answers and archives of a job"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def rows_of(file: TraceFile, choices: Choices = Choices()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - frozen
    """Yield all rows of a file, including rows in quarantine.

    If the file, or the rest of it, cannot be read, a row in quarantine says why; the rows before are kept.
    """
    try:
        yield from with_arrivals_counted(file, _rows(file, choices))
    except TraceFileError as error:
        yield quarantined(file, str(error))
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        yield quarantined(file, f"cannot be read: {why}")


def _rows(file: TraceFile, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Detect the kind of a file, and yield its rows.  Arrivals are not counted yet."""
    filesystem, base = filesystem_of(file.root)
    with filesystem.open_input_file(f"{base}/{file.path}") as stream:
        content = TraceContent(stream, file.size)
        head = content.peek()
        if head[:4] == b"PAR1":
            yield from parquet_rows(file, stream, choices)
        elif head[: len(ZIP)] == ZIP:
            yield quarantined(file, f"is a zip: {_OF_JOBS}")
        elif _LOG_LINE.search(head):
            yield quarantined(file, f"is a log: {_OF_JOBS}")
        elif head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            yield from _document_rows(file, content, choices)
        elif head[:2] in _UTF_16:
            yield quarantined(file, "is UTF-16: save it as UTF-8")
        elif b"\0" in head:
            yield quarantined(file, "is no text, and nothing else we know")
        else:
            yield from read_rows(file, content, choices)


def _document_rows(source: TraceFile, content: TraceContent, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a JSON document: rates of a monitoring system.

    Raises TraceFileError if it is larger than MAX_JSON_BYTES, or of another kind.
    """
    if len(data := content.read(MAX_JSON_BYTES + 1)) > MAX_JSON_BYTES:
        raise TraceFileError(f"holds more than {MAX_JSON_BYTES >> 20} MB: not read any further")
    table = _monitored(data, as_written=choices.per_s is not None)
    if table is None:
        raise TraceFileError(f"is a document without a series of rates: {_OF_JOBS}")
    yield from monitoring_rows(source, table, choices)


def _monitored(data: bytes, *, as_written: bool) -> MonitoringTable | None:
    """Return the rates in a document of a monitoring system, or None if it is another document.

    Raises TraceFileError if it is a document of a monitoring system without rates.
    """
    try:
        return table_of_document(data.decode("utf-8-sig"), as_written=as_written)
    except UnicodeDecodeError:
        return None
    except NotRecordsError as error:
        raise TraceFileError(error.metric.refusal(error.name, f"; {SCALE_HINT}")) from None
    except MonitoringError as error:
        raise TraceFileError(str(error)) from None

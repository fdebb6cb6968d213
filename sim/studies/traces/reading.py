"""Read text tables, monitoring data and labelled anomalies into rows, and count arrivals per second.

Rows are yielded as record batches with the columns UNION of `sim.studies.traces.tables`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from sim.jobs.source.recorded_job import Budget
from sim.model.series.monitoring import MonitoringError, MonitoringTable, refuse_offsets, table_of_counter
from sim.model.series.tables import SAMPLE, TIMES, Kind, cell_number, first_of, metric_of, taken_as
from sim.model.text import printable
from sim.studies.traces.choices import Choices
from sim.studies.traces.parsing import (
    SCALE_HINT,
    ColumnReader,
    Format,
    TraceFileError,
    TraceLine,
    dates,
    lines,
    out_of_order,
)
from sim.studies.traces.tables import MAX_GAP_S, UNION

# ---- Text tables, read block by block, so that only one block is in memory. Invalid rows are put in quarantine with the reason.
# A file of unknown format becomes a single row in quarantine.

BLOCK_ROWS, BLOCK_CHARACTERS = 50_000, 8 << 20
"""Maximum rows and characters of a block."""
HELD_BACK = 100
"""Last rows of a block that are parsed again with the next block, because only later rows show that a time is too far ahead."""
MIN_ORDERED_SHARE, MIN_ROWS_TO_JUDGE = 0.5, 10
"""Minimum share of rows in the order of time, below which a file is not a time series; minimum rows for this check."""
MAX_ROW = 200  # characters of a row in quarantine
_DELIMITERS = ",;\t|"
_DELIMITER_LINE = re.compile("\ufeff?sep=.")


class RowOrigin:
    """The origin of rows: the name of the trace, and the path of the file."""

    def __init__(self, trace: str, file: str) -> None:
        self.trace, self.file = trace, file

    @property
    def run(self) -> str | None:
        """Return the run to which a file of events belongs, from its name ``<run>_events``; None for other names."""
        name = self.trace.rpartition("/")[2]
        return name.removesuffix("_events") if name.endswith("_events") else None


def read_rows(source: RowOrigin, stream: BinaryIO, choices: Choices = Choices()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - frozen
    """Yield the rows of a text file.

    Its first line has the column names, unless it has numbers or the user names columns by number.  A file that cannot be read
    yields a row in quarantine.
    """
    try:
        remaining = lines(stream)
        first = next(remaining, None)
        if first is None or (not first.text.strip() and not first.fault):
            first = next((line for line in remaining if line.text.strip()), None)
        if first is None:
            yield quarantined(source, "the file is empty")
            return
        if _DELIMITER_LINE.fullmatch(first.text):  # Grafana's "Download for Excel"
            first = next(remaining, first)
        if first.fault:
            yield _quarantine(source, [(first.number, f"its first line: {first.fault}", first.text)])
            return
        delimiter = max(_DELIMITERS, key=first.text.count)
        columns = [name.strip().strip("\ufeff") for name in _fields(first, delimiter) or []]
        headless = all(_is_number(name) or not name for name in columns[:2]) or choices.names_columns_by_number(
            len(columns)
        )
        names = [str(i) for i in range(len(columns))] if headless else columns
        header = columns if headless and not choices.names_columns_by_number(len(columns)) else names
        rows = chain([first], remaining) if headless else remaining
        is_open = choices.format is None and choices.per_s is None and choices.meaning in (None, "rates")
        if choices.value is None and choices.format is None:
            refuse_offsets(header)
        if is_open and (column := choices.value_column(header)) is not None and metric_of(column).kind is not Kind.RATE:
            yield from _column_rows(source, choices, header, names, delimiter, rows, first, column)
        else:
            yield from _known_rows(source, choices, header, names, delimiter, rows, first)
    except (TraceFileError, MonitoringError) as error:
        yield quarantined(source, str(error))


def table_rows(
    source: RowOrigin, names: list[str], rows: Iterable[TraceLine], choices: Choices
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a comma-separated table with these column names.  `rows`: its lines after the header."""
    try:
        yield from _known_rows(source, choices, names, names, ",", rows, TraceLine(0, ""))
    except TraceFileError as error:
        yield quarantined(source, str(error))


def monitoring_rows(source: RowOrigin, table: MonitoringTable, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rates of a monitoring system: those of its only source, or of the one chosen with --value.

    With several sources and no choice, yield a row in quarantine.
    """
    for note in table.notes:
        yield noted(source, note)
    _, *sources = table.columns
    if len(sources) > 1 and choices.value is None:
        yield quarantined(source, f"has the rates of {', '.join(sources)}: choose one with --time time --value")
        return
    chosen = choices.of_source(sources[0])
    yield from table_rows(
        source, table.columns, (TraceLine(i, csv_line(row)) for i, row in enumerate(table.rows, start=1)), chosen
    )


def _column_rows(
    source: RowOrigin,
    choices: Choices,
    header: list[str],
    names: list[str],
    delimiter: str,
    rows: Iterable[TraceLine],
    first: TraceLine,
    column: str,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table with one value column, whose values are a rate or a counter.

    A counter is converted to rates, for which the whole table is read.  Raises TraceFileError if it is another quantity.
    """
    remaining = iter(rows)
    begin = list(islice(remaining, SAMPLE))
    place = header.index(column)
    cells = [fields[place] for line in begin if len(fields := _fields(line, delimiter) or []) == len(header)]
    metric = taken_as(column, map(cell_number, cells))
    if metric.kind is not Kind.COUNTER:
        if metric.kind is Kind.OTHER:
            raise TraceFileError(metric.refusal(column, f"; {SCALE_HINT}"))
        yield from _known_rows(source, choices, header, names, delimiter, chain(begin, remaining), first)
        return
    time = choices.time or first_of(TIMES, header) or header[0]
    unit_s = None if choices.unit_s is None else Fraction(choices.unit_s).limit_denominator(10**9)
    numbered = (
        (line.number, dict(zip(header, row, strict=True)))
        for line in chain(begin, remaining)
        if len(row := _fields(line, delimiter) or []) == len(header)
    )
    table = table_of_counter(time, column, numbered, unit_s, choices.zone)
    yield from monitoring_rows(source, table, replace(choices, time=None, value=None, unit_s=None))


def csv_line(cells: Iterable[str]) -> str:
    """Return cells as a line of a CSV file."""
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(cells)
    return written.getvalue()


def _known_rows(
    source: RowOrigin,
    choices: Choices,
    header: list[str],
    names: list[str],
    delimiter: str,
    rows: Iterable[TraceLine],
    first: TraceLine,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in a known format.  If the format is unknown, yield a row in quarantine with the line `first`.

    `header`: cells of the first line, by which the format is recognized; numbers if the user names columns by number.
    `names`: column names; numbers if the file has no header.
    """
    format_ = choices.format_of(header)
    twice = sorted({name for name in names if names.count(name) > 1})
    if format_ is not None and not twice:
        yield from _Blocks(source, format_, names, delimiter, choices.zone).read(rows)
        return
    unknown = f"no known format has the columns {', '.join(header)[:MAX_ROW]}: name columns with --time and --value"
    why = unknown if format_ is None else f"has the column '{twice[0]}' twice"
    yield _quarantine(source, [(first.number, why, first.text)]) if first.number else quarantined(source, why)


class _Blocks:
    """Reads the blocks of a file in order.  It keeps the latest time, because times must also increase from block to block."""

    def __init__(
        self, source: RowOrigin, format_: Format, columns: list[str], delimiter: str, zone: str | None
    ) -> None:
        self.source, self.format, self.columns, self.delimiter = source, format_, columns, delimiter
        self.latest = -np.inf
        self.reader = ColumnReader(zone)
        self.blocks = self.rows = 0

    def read(self, rows: Iterable[TraceLine]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file.  If its rest cannot be read, TraceFileError is raised after the rows before it."""
        block, size = list[TraceLine](), 0
        broken: TraceFileError | None = None
        source = iter(rows)
        while True:
            try:
                line = next(source, None)
            except TraceFileError as error:  # rows before the error are used
                line, broken = None, error
            if line is not None:
                block.append(line)
                size += len(line.text)
                if len(block) < BLOCK_ROWS + HELD_BACK and size < BLOCK_CHARACTERS:
                    continue
            kept_back = HELD_BACK if line is not None and self.format.ordered and len(block) > 2 * HELD_BACK else 0
            yield from self._block(block, kept_back)
            block = block[len(block) - kept_back :]
            size = sum(len(line.text) for line in block)
            if line is None:
                break
        if broken is not None:
            raise broken
        if not self.rows:
            yield quarantined(self.source, "there are no rows under the names of its columns")

    def _block(self, block: list[TraceLine], kept_back: int) -> Iterator[pa.RecordBatch]:
        """Parse a block, and yield its rows except the last `kept_back` ones, which the next block begins with."""
        bad, good = list[tuple[int, str, str]](), dict[int, list[str]]()
        until = block[-kept_back - 1].number if block else 0
        for line in block:
            self.rows += line.number <= until
            if line.fault:
                bad.append((line.number, line.fault, line.text))
            elif (row := _fields(line, self.delimiter)) is None:
                bad.append((line.number, "quotes are not closed", line.text))
            elif len(row) == len(self.columns):
                good[line.number] = row
            elif row and line.text.strip():  # blank lines are ignored
                bad.append((line.number, f"does not have {len(self.columns)} fields", line.text))
        if good:
            texts = pd.DataFrame.from_dict(good, orient="index", columns=self.columns)
            parsed = self.format.parse(texts, self.reader)
            wrong = self._in_order(parsed.tables, parsed.wrong, until)
            usable = (wrong == "") & (parsed.passed == "") & (wrong.index <= until)
            if self.blocks == 0 and usable.any() and str(self.reader):
                yield noted(self.source, str(self.reader))
            for kind, rows in parsed.tables.items():
                if len(chosen := rows[usable.reindex(rows.index)]):
                    yield self._table(kind, chosen)
            broken = wrong[wrong != ""]
            bad += [
                (line, why, self.delimiter.join(good[line]))
                for line, why in zip(broken.index.tolist(), broken, strict=True)
            ]
            passed = parsed.passed[(wrong == "") & (parsed.passed != "") & (wrong.index <= until)].value_counts()
            for why, count in passed.items():
                yield passed_over(self.source, str(why), int(count))
        if bad := [row for row in sorted(bad) if row[0] <= until]:
            yield _quarantine(self.source, bad)
        self.blocks += 1

    def _in_order(self, tables: Mapping[str, pd.DataFrame], wrong: pd.Series[str], until: int) -> pd.Series[str]:
        """Return the reasons `wrong` with those of rows that are out of order added.  Updates the latest time up to line `until`.

        Raises TraceFileError if most rows of the first block are out of order.
        """
        if not self.format.ordered:
            return wrong
        time = tables[self.format.ordered]["t_s"]
        time = time[wrong.reindex(time.index) == ""]
        strictly = self.format.ordered == "rates"
        steps = np.diff(time.to_numpy(), prepend=self.latest)
        if ((steps > 0) if strictly else (steps >= 0)).all():
            misplaced = dict[int, str]()
        else:
            misplaced = out_of_order(time.tolist(), self.latest, strictly=strictly)
        if self.blocks == 0 and len(time) >= MIN_ROWS_TO_JUDGE and len(misplaced) > (1 - MIN_ORDERED_SHARE) * len(time):
            first = f"{len(misplaced)} of the first {len(time)} rows are not in order"
            raise TraceFileError(f"time goes back: {first}: are columns swapped, or is it not sorted? Not read")
        if misplaced:
            places = time.index[list(misplaced)]
            wrong = pd.Series(list(misplaced.values()), index=places, dtype=object).reindex(wrong.index).fillna(wrong)
        kept = time[(wrong.reindex(time.index) == "") & (time.index <= until)]
        self.latest = float(kept.iloc[-1]) if len(kept) else self.latest
        return wrong

    def _table(self, kind: str, rows: pd.DataFrame) -> pa.RecordBatch:
        if kind == "failures" and "run" not in rows and self.source.run is not None:
            rows = rows.assign(run=self.source.run)
        return rows_batch(kind, self.source, rows.assign(line=rows.index))


def _fields(line: TraceLine, delimiter: str) -> list[str] | None:
    """Return the cells of a line, or None if its quotes are not closed."""
    if '"' not in line.text:
        return line.text.split(delimiter)
    try:
        return next(csv.reader([line.text], strict=True, delimiter=delimiter), [])
    except csv.Error:
        return None


def _quarantine(source: RowOrigin, rows: list[tuple[int, str, str]]) -> pa.RecordBatch:
    """Return rows in quarantine.  `rows`: (line, reason, text) of each."""
    table = pd.DataFrame(rows, columns=["line", "reason", "text"])
    return rows_batch("quarantine", source, table.assign(text=table["text"].str[:MAX_ROW]))


def quarantined(source: RowOrigin, reason: str) -> pa.RecordBatch:
    """Return a row in quarantine for a whole file, or for the rest of a file that cannot be read."""
    return rows_batch("quarantine", source, pd.DataFrame({"reason": [printable(reason)], "text": [""]}))


def passed_over(source: RowOrigin, why: str, count: int) -> pa.RecordBatch:
    """Return a row with the number of valid lines that belong to no table, and the reason."""
    return rows_batch("passed", source, pd.DataFrame({"reason": [why], "count": [count]}))


def noted(source: RowOrigin, how: str) -> pa.RecordBatch:
    """Return a row with a note on how a file was read."""
    return rows_batch("note", source, pd.DataFrame({"reason": [printable(how)], "count": [1]}))


def rows_batch(kind: str, source: RowOrigin, rows: pd.DataFrame) -> pa.RecordBatch:
    """Return rows of this kind as a record batch with the columns UNION; columns that `rows` lacks are null."""
    same = {"kind": kind, "trace": source.trace, "file": source.file}
    columns = {
        **{name: [value] * len(rows) for name, value in same.items()},
        **{str(name): rows[name] for name in rows},
    }
    arrays = [
        pa.array(columns[field.name], type=field.type, from_pandas=True)
        if field.name in columns
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


def with_arrivals_counted(source: RowOrigin, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, with arrivals replaced by a row per second with their number (`rate` and `count`).

    Seconds without arrivals get a row with 0 too (see MAX_GAP_S).  The `line` of a row is that of the first arrival of its
    second; in a second without arrivals, that of the last second before it with some.
    """
    held = list[pd.DataFrame]()
    for batch in batches:
        if not batch.num_rows or batch.column("kind")[0].as_py() != "arrivals":
            yield batch
            continue
        arrived = batch.select(["t_s", "line"]).to_pandas()
        seconds = pd.concat([*held, arrived.assign(t_s=np.floor(arrived["t_s"]), count=1)]).groupby("t_s")
        rows = _with_empty_seconds(seconds.agg({"line": "min", "count": "sum"}))
        yield _arrivals_batch(source, rows[:-1])
        held = [rows[-1:]]
    for rows in held:
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


def _arrivals_batch(source: RowOrigin, rows: pd.DataFrame) -> pa.RecordBatch:
    return rows_batch("arrivals", source, rows.assign(rate=rows["count"]))


# ---- Labelled anomalies.


def labelled_windows(source: RowOrigin, data: bytes) -> Iterator[pa.RecordBatch] | None:
    """Return labelled anomalies, a JSON object {file: [[begin, end], ...]}, as rows of failures.  Return None for other documents."""
    try:
        labels = Budget().parse(data, "labels")
    except (ValueError, RecursionError):
        return None
    if not isinstance(labels, dict) or not labels or not all(_is_windows(value) for value in labels.values()):
        return None
    return _labelled(source, labels)


def _labelled(source: RowOrigin, labels: dict[str, list[list[str]]]) -> Iterator[pa.RecordBatch]:
    """Yield a failure per labelled anomaly.  Its `run` is the labelled file's name without suffixes."""
    marked = [(Path(name).name.partition(".")[0], *window) for name, windows in labels.items() for window in windows]
    rows = pd.DataFrame(marked, columns=["run", "begin", "end"])
    for column in ("begin", "end"):
        rows[column] = dates(rows[column])
    rows["lasts_s"] = rows["end"] - rows["begin"]
    good = rows[rows["lasts_s"] >= 0]
    yield rows_batch(
        "failures",
        source,
        pd.DataFrame(
            {
                "line": good.index + 1,
                "t_s": good["begin"],
                "lasts_s": good["lasts_s"],
                "what": "labelled anomaly",
                "run": good["run"],
            }
        ),
    )
    for _ in range(len(rows) - len(good)):
        yield quarantined(source, "a window ends before it begins, or is not a time")


def _is_windows(value: object) -> bool:
    """Return True for a list of pairs of texts."""
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(moment, str) for moment in pair) for pair in value
    )

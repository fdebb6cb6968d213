"""Read a trace file of any kind: text table, JSON document, or Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.jobs.source.recorded_job import ZIP
from sim.model.series.columns import cell_text
from sim.model.series.monitoring import MonitoringError, MonitoringTable, NotRecordsError, table_of_document
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile, filesystem_of
from sim.studies.traces.parsing import SCALE_HINT, TraceContent, TraceFileError
from sim.studies.traces.reading import (
    monitoring_rows,
    quarantined,
    read_rows,
    rows_batch,
    table_rows,
    with_arrivals_counted,
)

# ---- Parquet: tables whose columns belong to a known format, and OpenDC's failure models.

_MODEL_COLUMNS = ["failure_interval", "failure_duration"]
"""Columns of OpenDC's failure models: time since the start of the previous failure [ms], and duration [ms]."""
BLOCK_ROWS = 50_000
"""Rows of a Parquet file that are read together."""


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

"""Read a trace file of any kind: text table, JSON document, Parquet, or the answer of an HTTP query."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.jobs.source.recorded_job import ZIP, RecordingError
from sim.jobs.source.rest_client import Client
from sim.jobs.source.secrets import masked_text
from sim.model.series.columns import cell_text
from sim.model.series.monitoring import MonitoringError, MonitoringTable, table_of_document
from sim.studies.sweeps.spark_session import staging
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile, filesystem_of
from sim.studies.traces.parsing import GZIP, SCALE_HINT, TraceFileError, unpacked
from sim.studies.traces.reading import (
    RowOrigin,
    monitoring_rows,
    quarantined,
    read_rows,
    rows_batch,
    table_rows,
    with_arrivals_counted,
)

# ---- Parquet: tables whose columns belong to a known format, and OpenDC's failure models.

MODEL_COLUMNS = ("failure_interval", "failure_duration", "failure_intensity")
"""Columns of OpenDC's failure models: time since the start of the previous failure [ms], duration [ms], and share that fails."""
BLOCK_ROWS = 50_000
"""Rows of a Parquet file that are read together."""


def parquet_rows(source: RowOrigin, file: Any, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, a block at a time.

    In a failure model, the interval of a row in quarantine counts as 0, so that later failures keep their distances.
    """
    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if {"failure_interval", "failure_duration"} <= set(names):
            yield from _failures_of_model(
                source, table.iter_batches(BLOCK_ROWS, columns=[name for name in MODEL_COLUMNS if name in names])
            )
        else:
            yield from table_rows(source, names, _cells(table), choices)
    except (pa.ArrowException, OSError) as error:
        yield quarantined(source, f"is not a Parquet file, or a damaged one: {str(error).splitlines()[0]}")


def _cells(table: pq.ParquetFile) -> Iterator[list[str]]:
    """Yield rows as texts, which the formats of text tables can parse."""
    for block in table.iter_batches(BLOCK_ROWS):
        for row in zip(*(column.to_pylist() for column in block.columns), strict=True):
            yield list(map(cell_text, row))


def _failures_of_model(source: RowOrigin, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the failures of an OpenDC model, whose times are the sums of intervals."""
    at_ms, line = 0.0, 0
    for block in blocks:
        rows = pd.DataFrame(
            {name: pd.to_numeric(block.column(name).to_pandas(), errors="coerce") for name in block.schema.names}
        )
        rows.index = pd.RangeIndex(line + 1, line + 1 + len(rows))
        line += len(rows)
        good = (rows[list(MODEL_COLUMNS[:2])] >= 0).all(axis=1)
        if not good.all():
            bad = pd.DataFrame(
                {"line": rows.index[~good], "reason": "an interval or a duration is negative or missing", "text": ""}
            )
            yield rows_batch("quarantine", source, bad)
        rows = rows[good]
        begin_ms = at_ms + rows["failure_interval"].astype(float).cumsum()
        at_ms = float(begin_ms.iloc[-1]) if len(rows) else at_ms
        texts = rows["failure_intensity"].map("outage of {:.0%}".format) if "failure_intensity" in rows else "outage"
        lasts_s = rows["failure_duration"].astype(float) / 1e3
        yield rows_batch(
            "failures",
            source,
            pd.DataFrame({"line": rows.index, "t_s": begin_ms / 1e3, "lasts_s": lasts_s, "what": texts}),
        )


# ---- The answer of an HTTP query, stored in a file that is read like any other.

ANSWER_FILE = "prometheus.json"
"""Name of that file, and thus of its trace."""


@contextmanager
def local_copy(location: str) -> Iterator[str]:
    """Yield the path of a local copy: for an HTTP URL, a file with its answer, which exists during the block; else `location` itself.

    Raises TraceFileError if the URL has no usable answer.
    """
    if not location.startswith(("http://", "https://")):
        yield location
        return
    parts = urlsplit(location)
    base, query = f"{parts.scheme}://{parts.netloc}", f"{parts.path}?{parts.query}" if parts.query else parts.path
    try:
        answer = Client(base).get(query)
    except RecordingError as error:
        raise TraceFileError(masked_text(str(error))) from None
    with staging() as folder:
        (folder / ANSWER_FILE).write_text(json.dumps(answer))
        yield str(folder / ANSWER_FILE)


# ---- Reading a file in a folder or bucket, in this process or in a Spark task. Its kind is detected by its first bytes.

MAX_JSON_BYTES = 64 << 20
"""Maximum bytes of a JSON document, which is parsed as a whole."""
HEAD_BYTES = 1 << 16
"""Bytes from which the kind of a file is detected."""
_LOG_LINE = re.compile(
    rb"^.{0,60}\d\d:\d\d:\d\d[.,]\d{3}.{0,80}\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b", re.MULTILINE
)
_OF_JOBS = "`ckptsim import` reads logs, answers and archives of a job"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def rows_of(file: TraceFile, choices: Choices = Choices()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - frozen
    """Yield all rows of a file, including rows in quarantine.

    If the file, or the rest of it, cannot be read, a row in quarantine says why; the rows before are kept.
    """
    source = RowOrigin(file.trace, file.path)
    try:
        yield from with_arrivals_counted(source, _rows(source, file, choices))
    except TraceFileError as error:
        yield quarantined(source, str(error))
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        yield quarantined(source, f"cannot be read: {why}")


def _rows(source: RowOrigin, file: TraceFile, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Detect the kind of a file, and yield its rows.  Arrivals are not counted yet."""
    filesystem, base = filesystem_of(file.root)
    with filesystem.open_input_file(f"{base}/{file.path}") as stream:
        head = _head(stream)
        stream.seek(0)
        if head[:4] == b"PAR1":
            yield from parquet_rows(source, stream, choices)
        elif head[: len(ZIP)] == ZIP:
            yield quarantined(source, f"is a zip: {_OF_JOBS}")
        elif _LOG_LINE.search(head):
            yield quarantined(source, f"is a log: {_OF_JOBS}")
        elif head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            yield from _document_rows(source, stream, choices)
        elif head[:2] in _UTF_16:
            yield quarantined(source, "is UTF-16: save it as UTF-8")
        elif b"\0" in head:
            yield quarantined(source, "is no text, and nothing else we know")
        else:
            yield from read_rows(source, stream, choices)


def _head(stream: Any) -> bytes:
    """Return the first bytes of a file, decompressed; b"" if it is damaged gzip."""
    data: bytes = stream.read(HEAD_BYTES)
    if data[:2] != GZIP:
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, HEAD_BYTES)
    except zlib.error:
        return b""


def _document_rows(source: RowOrigin, stream: BinaryIO, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a JSON document: rates of a monitoring system.

    Raises TraceFileError if it is larger than MAX_JSON_BYTES, or of another kind.
    """
    data = b""
    for block in unpacked(stream):
        data += block
        if len(data) > MAX_JSON_BYTES:
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
        return table_of_document(data.decode("utf-8-sig"), as_written=as_written, override=SCALE_HINT)
    except UnicodeDecodeError:
        return None
    except MonitoringError as error:
        raise TraceFileError(str(error)) from None

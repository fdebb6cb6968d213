"""Reading a file below a folder or bucket, within a Spark task: its kind, by content, and its rows."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from sim.recordings.source.files import ZIP
from sim.recordings.source.rest.saved import is_answer
from sim.series.monitoring.documents import table_of_document
from sim.series.monitoring.samples import MonitoringError, MonitoringTable, NotRecordsError
from sim.sweeps.spark.staging import staging
from sim.traces.checkpoints import labelled_windows, log_rows, recording_rows
from sim.traces.choices import Choices
from sim.traces.formats import TO_OVERRIDE
from sim.traces.lines import GZIP, TraceFileError, unpacked
from sim.traces.listing import TraceFile, filesystem_of
from sim.traces.parquet import parquet_rows
from sim.traces.reading import RowOrigin, monitoring_rows, quarantined, read_rows

MOST_JSON, MOST_LOG = 64 << 20, 2 << 30
"""Limits in bytes: for documents parsed as a whole, and for files copied to be read line by line."""
HEAD = 1 << 16
_LOG_LINE = re.compile(rb"^.{0,60}\d\d:\d\d:\d\d[.,]\d{3}.{0,80}\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b", re.MULTILINE)
_BYTE_ORDER = (b"\xff\xfe", b"\xfe\xff")


def rows_of(file: TraceFile, choices: Choices = Choices()) -> Iterator[pa.RecordBatch]:  # noqa: B008 - frozen
    """All rows of a file, those in quarantine included; an unreadable rest becomes a row in quarantine."""
    source = RowOrigin(file.trace, file.paths[0] if file.folder is None else file.folder.rstrip("/") or ".")
    try:
        yield from _rows(source, file, choices)
    except TraceFileError as error:
        yield quarantined(source, str(error))
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        yield quarantined(source, f"cannot be read: {why}")


def _rows(source: RowOrigin, file: TraceFile, choices: Choices) -> Iterator[pa.RecordBatch]:
    filesystem, base = filesystem_of(file.root)
    places = [f"{base}/{path}" for path in file.paths]
    if file.folder is not None:
        yield from _answers(source, filesystem, base, file)
        return
    with filesystem.open_input_file(places[0]) as stream:
        head = _head(stream)
        stream.seek(0)
        if head[:4] == b"PAR1":
            yield from parquet_rows(source, stream, choices)
            return
        if not _is_log(file, head):
            if head[: len(ZIP)] == ZIP or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
                yield from _document_rows(source, stream, choices)
            elif head[:2] in _BYTE_ORDER:
                yield quarantined(source, "is UTF-16: save it as UTF-8")
            elif b"\0" in head:
                yield quarantined(source, "is no text, and nothing else we know")
            else:
                yield from read_rows(source, stream, choices)
            return
    yield from _logs(source, filesystem, places)


def _head(stream: Any) -> bytes:
    """The first bytes of a file's unpacked content."""
    data: bytes = stream.read(HEAD)
    if data[:2] != GZIP:
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, HEAD)
    except zlib.error:
        return b""


def _is_log(file: TraceFile, head: bytes) -> bool:
    return len(file.paths) > 1 or bool(_LOG_LINE.search(head))


def _document_rows(source: RowOrigin, stream: BinaryIO, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Rows of a document or archive, which is read as a whole."""
    with staging() as folder:
        copy = folder / "job"
        _copy(stream, copy, MOST_JSON)
        with copy.open("rb") as begin:
            if begin.read(len(ZIP)) == ZIP and not zipfile.is_zipfile(copy):
                raise TraceFileError("is a damaged zip")
        if (table := _monitored(copy, as_written=choices.per_s is not None)) is not None:
            yield from monitoring_rows(source, table, choices)
            return
        yield from labelled_windows(source, copy) or recording_rows(source, copy)


def _monitored(copy: Path, *, as_written: bool) -> MonitoringTable | None:
    """Rates of a monitoring system.  TraceFileError: it is of one, and there are none."""
    try:
        return table_of_document(copy.read_text("utf-8-sig"), as_written=as_written)
    except UnicodeDecodeError:
        return None
    except NotRecordsError as error:
        raise TraceFileError(error.metric.refusal(error.name, f"; {TO_OVERRIDE}")) from None
    except MonitoringError as error:
        raise TraceFileError(str(error)) from None


def _logs(source: RowOrigin, filesystem: Any, places: list[str]) -> Iterator[pa.RecordBatch]:
    """Rows of logs; the readable part of a damaged one counts."""
    with staging() as folder:
        copies = list[Path]()
        for place in places:
            copies.append(folder / Path(place).name)
            with filesystem.open_input_file(place) as stream:
                try:
                    _copy(stream, copies[-1], MOST_LOG)
                except TraceFileError as error:
                    yield quarantined(source, f"{copies[-1].name} {error}" if len(places) > 1 else str(error))
        yield from log_rows(source, copies)


def _answers(source: RowOrigin, filesystem: Any, base: str, file: TraceFile) -> Iterator[pa.RecordBatch]:
    """Rows of a folder of saved answers, from a copy."""
    left = MOST_JSON
    with staging() as folder:
        for path in file.paths:
            name = path.removeprefix(file.folder or "")
            if not is_answer(name):
                continue  # a name in a bucket may lead out of the folder
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with filesystem.open_input_file(f"{base}/{path}") as stream:
                left -= _copy(stream, copy, left)
        yield from recording_rows(source, folder)


def _copy(stream: BinaryIO, to: Path, most: int) -> int:
    """Copy the unpacked content; returns the bytes.  TraceFileError: damaged, or too large; the bytes before are written."""
    count = 0
    with to.open("wb") as copy:
        for block in unpacked(stream):
            count += len(block)
            if count > most:
                raise TraceFileError(f"holds more than {most >> 20} MB: not read any further")
            copy.write(block)
    return count

"""The files below a folder or bucket, and how a task opens one of them.  Any address that pyarrow knows: paths, s3://, gs://, hdfs://."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from sim.traces.checkpoints import checkpoint_rows
from sim.traces.lines import TraceFileError
from sim.traces.outages import outage_rows
from sim.traces.reading import quarantined, read_rows, trace_name

__all__ = ["TraceFile", "list_files", "rows_of"]


class TraceFile(NamedTuple):
    root: str  # as the user wrote it
    path: str  # below it


def list_files(root: str) -> list[TraceFile]:
    """Names only.  TraceFileError: there is nothing to read."""
    try:
        filesystem, base = _filesystem(root)
        found = filesystem.get_file_info(pafs.FileSelector(base, recursive=True))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TraceFileError(f"{root}: {str(error).splitlines()[0]}") from None
    paths = sorted(str(PurePosixPath(info.path).relative_to(base)) for info in found if info.type == pafs.FileType.File)
    shown = [path for path in paths if not PurePosixPath(path).name.startswith((".", "_"))]
    wanted = [TraceFile(root, path) for path in shown if path.endswith(tuple(_READERS))]
    if not wanted:
        raise TraceFileError(f"{root}: no files that end in {', '.join(_READERS)}")
    return wanted


def rows_of(file: TraceFile) -> Iterator[pa.RecordBatch]:
    """All rows of a file, those in quarantine as well; what cannot be read is one of these."""
    trace = trace_name(file.path)
    filesystem, base = _filesystem(file.root)
    try:
        with filesystem.open_input_stream(f"{base}/{file.path}", compression=None) as stream:
            ending = next(ending for ending in _READERS if file.path.endswith(ending))
            yield from _READERS[ending](trace, stream)
    except (OSError, pa.ArrowException) as error:
        yield quarantined(trace, f"cannot be read: {str(error).splitlines()[0]}")


def _filesystem(root: str) -> tuple[Any, str]:
    if "://" in root:
        found: tuple[Any, str] = pafs.FileSystem.from_uri(root)
        return found
    return pafs.LocalFileSystem(), str(Path(root).absolute())


def _table(trace: str, stream: Any) -> Iterator[pa.RecordBatch]:
    return read_rows(trace, stream, packed=False)


def _packed_table(trace: str, stream: Any) -> Iterator[pa.RecordBatch]:
    return read_rows(trace, stream, packed=True)


_READERS = {
    ".csv": _table, ".csv.gz": _packed_table, ".parquet": outage_rows,
    ".json": checkpoint_rows, ".json.gz": checkpoint_rows, ".log": checkpoint_rows, ".log.gz": checkpoint_rows,
}  # fmt: skip

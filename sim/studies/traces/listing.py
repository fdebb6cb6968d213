"""List the trace files under a folder or bucket (path, s3://, gs://, hdfs://).  Files are selected by their names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from sim.model.text import Address
from sim.studies.traces.parsing import TraceFileError

NON_TRACE_SUFFIXES = (".md", ".rst", ".html", ".yaml", ".yml", ".toml", ".py", ".ipynb", ".png", ".jpg", ".svg", ".pdf")
"""Suffixes of files that are never traces."""
_ENDINGS = (".gz", ".csv", ".json", ".log", ".parquet", ".zip", ".txt", ".tsv")


class TraceFile(NamedTuple):
    """A file of a trace."""

    trace: str  # name of the trace
    root: str  # folder that was listed: a URL, or an absolute path
    path: str  # relative to the root
    size: int = 0  # stored (possibly compressed) bytes

    @property
    def run(self) -> str | None:
        """Return the run to which a file of events belongs, from its name ``<run>_events``; None for other names."""
        name = self.trace.rpartition("/")[2]
        return name.removesuffix("_events") if name.endswith("_events") else None


class TraceListing(NamedTuple):
    """The traces under a folder."""

    files: list[TraceFile]
    notes: list[str]  # messages on skipped and renamed files


def list_files(root: str, *, exclude: str | None = None) -> TraceListing:
    """List the trace files under `root`, except in the folder `exclude`.

    Raises TraceFileError if there are none, or if `root` cannot be listed.
    """
    if root.startswith(("http://", "https://")):
        raise TraceFileError(
            f"{Address(root)}: is not a folder or bucket: store the answer in a file, curl -o load.json URL"
        )
    notes = list[str]()
    try:
        filesystem, base = filesystem_of(root)
        if isinstance(filesystem, pafs.LocalFileSystem):
            sizes = (
                {Path(root).name: Path(root).stat().st_size}
                if Path(root).is_file()
                else dict(_local_files(Path(base), notes))
            )
        else:
            sizes = dict(_remote_files(filesystem, base))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TraceFileError(f"{root}: {getattr(error, 'strerror', None) or str(error).splitlines()[0]}") from None
    paths = sorted(sizes)
    if exclude is not None:
        below = _path_below(exclude, root)
        paths = [path for path in paths if below is None or not path.startswith(f"{below}/")]
    visible = [path for path in paths if not any(part.startswith((".", "_")) for part in path.split("/"))]
    non_traces = [
        path
        for path in visible
        if path.lower().endswith(NON_TRACE_SUFFIXES) or PurePosixPath(path).name in ("LICENSE", "NOTICE")
    ]
    if non_traces:
        notes.append(f"skipped, not traces: {_count_and_names(non_traces)}")
    if hidden := [path for path in paths if path not in set(visible)]:
        notes.append(f"hidden: {_count_and_names(hidden)}")
    traces = sorted(set(visible) - set(non_traces))
    if not traces:
        raise TraceFileError(f"{root}: no trace files found" + "".join(f"; {line}" for line in notes))
    location = root if "://" in root else base  # absolute, because a Spark task may have another working directory
    files = [TraceFile(trace_name(path), location, path, sizes[path]) for path in traces]
    return TraceListing(_with_unique_names(files, notes), notes)


def filesystem_of(root: str) -> tuple[Any, str]:
    """Return (pyarrow file system, folder in it)."""
    if "://" in root:
        filesystem, base = pafs.FileSystem.from_uri(root)
        return filesystem, base
    path = Path(root).absolute()
    return pafs.LocalFileSystem(), str(path.parent if path.is_file() else path)


def trace_name(path: str) -> str:
    """Return the name of a trace: its path without suffixes, in characters that are safe in any file system.

    A name of more than MAX_TRACE_NAME_BYTES is shortened, and gets a hash of the path.
    """
    short = path
    while ending := next((end for end in _ENDINGS if short.lower().endswith(end)), None):
        short = short[: -len(ending)]
    parts = ["".join(c if c.isalnum() or c in "-_." else "_" for c in part).lstrip(".") for part in short.split("/")]
    name = "/".join(part or "_" for part in parts)
    if len(name.replace("/", "%2F").encode()) <= MAX_TRACE_NAME_BYTES:
        return name
    begin = name.encode()[: MAX_TRACE_NAME_BYTES // 3].decode(errors="ignore").replace("/", "_")
    return f"{begin}-{hashlib.sha256(path.encode(errors='replace')).hexdigest()[:16]}"


MAX_TRACE_NAME_BYTES = 200
"""Maximum bytes of a trace's name, which names a folder; file systems allow 255."""


def _local_files(base: Path, notes: list[str]) -> Iterator[tuple[str, int]]:
    """Yield (path, size in bytes) of the files below a folder.  Links to folders are not followed; what is skipped gets a note."""
    if not base.exists():
        raise FileNotFoundError(2, "no such file or folder", str(base))
    for file in sorted(base.rglob("*")):
        path = file.relative_to(base).as_posix()
        if file.is_file():
            yield path, file.stat().st_size
        elif file.is_symlink():
            notes.append(f"{path}: is a link to a folder, or a broken one: not followed")
        elif not file.is_dir():
            notes.append(f"{path}: is not a regular file")
        elif not os.access(file, os.R_OK | os.X_OK):
            notes.append(f"{path}: cannot be listed")


def _remote_files(filesystem: Any, base: str) -> Iterator[tuple[str, int]]:
    for info in filesystem.get_file_info(pafs.FileSelector(base, recursive=True)):
        if info.type == pafs.FileType.File:
            yield str(PurePosixPath(info.path).relative_to(base)), info.size


def _path_below(inner: str, root: str) -> str | None:
    """Return the path of `inner` relative to `root`, or None if `inner` is not below it."""
    if "://" in inner or "://" in root:
        base = root.rstrip("/") + "/"
        return inner[len(base) :] if inner.startswith(base) else None
    try:
        return Path(inner).resolve().relative_to(Path(root).resolve()).as_posix()
    except ValueError:
        return None


def _with_unique_names(files: Iterable[TraceFile], notes: list[str]) -> list[TraceFile]:
    """Return the files with unique trace names: files that differ only in their suffixes get a number.  A note says so."""
    by_name = dict[str, list[TraceFile]]()
    for file in sorted(files):
        by_name.setdefault(file.trace, []).append(file)
    used, named = set(by_name), list[TraceFile]()
    for name, same in by_name.items():
        for i, file in enumerate(same):
            unique = name if i == 0 else next(other for k in count(1) if (other := f"{name}-{k}") not in used)
            used.add(unique)
            named.append(file._replace(trace=unique))
        if len(same) > 1:
            others = ", ".join(file.trace for file in named[1 - len(same) :])
            notes.append(f"{', '.join(file.path for file in same)}: have the same trace name; renamed to {others}")
    return named


def _count_and_names(paths: list[str]) -> str:
    names = sorted({PurePosixPath(path).name for path in paths})
    return f"{len(paths)} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"

"""List the trace files below a folder or bucket, selected by name.  Any address that pyarrow knows: paths, s3://, gs://, hdfs://.

A trace is a file; the parts of a rotated log are one trace, and so are saved answers of Flink's REST API
(`jobs/...json`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from sim.studies.traces.parsing import TraceFileError

NON_TRACE_SUFFIXES = (".md", ".rst", ".html", ".yaml", ".yml", ".toml", ".py", ".ipynb", ".png", ".jpg", ".svg", ".pdf")
"""Suffixes of files that are never traces."""
_ENDINGS = (".gz", ".csv", ".json", ".log", ".parquet", ".zip", ".txt", ".tsv")
_ROTATED = re.compile(r"(?P<log>.*\.log)(?:[.-][\w.-]+?)?(?:\.gz)?$")
_ANSWERS = re.compile(r"(?P<root>(?:.*/)?)(?:samples/\d+/)?jobs/.*\.json$")


class TraceFile(NamedTuple):
    """A file of a trace."""

    trace: str
    root: str  # common folder, as the user wrote it
    paths: tuple[str, ...]  # below the root
    folder: str | None = None  # of saved answers, below the root
    size: int = 0  # bytes of all paths, as they lie there


class Found(NamedTuple):
    """The traces below a folder, and notes about skipped and renamed files."""

    files: list[TraceFile]
    notes: list[str]  # lines about skipped and renamed files


def list_files(root: str, *, without: str | None = None) -> Found:
    """List all files outside of the folder `without`.  Raises TraceFileError if there are none."""
    notes = list[str]()
    try:
        filesystem, base = filesystem_of(root)
        if isinstance(filesystem, pafs.LocalFileSystem):
            sizes = (
                {Path(root).name: Path(root).stat().st_size}
                if Path(root).is_file()
                else dict(_local(Path(base), notes))
            )
        else:
            sizes = dict(_remote(filesystem, base))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise TraceFileError(f"{root}: {getattr(error, 'strerror', None) or str(error).splitlines()[0]}") from None
    paths = sorted(sizes)
    if without is not None:
        below = _below(without, root)
        paths = [path for path in paths if below is None or not path.startswith(f"{below}/")]
    visible = [path for path in paths if not any(part.startswith((".", "_")) for part in path.split("/"))]
    others = [
        path
        for path in visible
        if path.lower().endswith(NON_TRACE_SUFFIXES) or PurePosixPath(path).name in ("LICENSE", "NOTICE")
    ]
    if others:
        notes.append(f"no traces by their names: {_count_and_names(others)}")
    if hidden := [path for path in paths if path not in set(visible)]:
        notes.append(f"hidden: {_count_and_names(hidden)}")
    traces = sorted(set(visible) - set(others))
    if not traces:
        raise TraceFileError(f"{root}: no files of traces here" + "".join(f"; {line}" for line in notes))
    at = root if "://" in root else base  # a task may run on another machine
    files = [file._replace(size=sum(map(sizes.__getitem__, file.paths))) for file in _grouped(at, traces)]
    return Found(_named(files, notes), notes)


def filesystem_of(root: str) -> tuple[Any, str]:
    """(pyarrow's file system, the folder in it)."""
    if "://" in root:
        found: tuple[Any, str] = pafs.FileSystem.from_uri(root)
        return found
    path = Path(root).absolute()
    return pafs.LocalFileSystem(), str(path.parent if path.is_file() else path)


def trace_name(path: str) -> str:
    """The name of a trace: the path of its file without the suffix, in characters that are safe in any file system."""
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
"""Bytes of a folder's name; file systems allow 255."""


def _local(base: Path, notes: list[str]) -> Iterator[tuple[str, int]]:
    """List files below a folder with their bytes; follow symlinks, and visit each folder once."""
    if not base.exists():
        raise FileNotFoundError(2, "no such file or folder", str(base))
    yield from _walk(base, base, {os.path.realpath(base)}, notes)


def _walk(base: Path, folder: Path, seen: set[str], notes: list[str]) -> Iterator[tuple[str, int]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        notes.append(f"{folder.relative_to(base)}: cannot be listed: {error.strerror}")
        return
    for entry in entries:
        path = Path(entry.path)
        name = path.relative_to(base).as_posix()
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
            size = entry.stat().st_size if is_file else 0
        except OSError as error:  # a link to itself
            notes.append(f"{name}: is a broken symbolic link: {error.strerror}")
            continue
        if is_folder:
            real = os.path.realpath(entry.path)
            if real in seen:
                notes.append(f"{name}: is a link to a folder that is read anyway")
            else:
                seen.add(real)
                yield from _walk(base, path, seen, notes)
        elif is_file:
            yield name, size
        else:
            notes.append(f"{name}: is {'a broken symbolic link' if entry.is_symlink() else 'not a regular file'}")


def _remote(filesystem: Any, base: str) -> Iterator[tuple[str, int]]:
    for info in filesystem.get_file_info(pafs.FileSelector(base, recursive=True)):
        if info.type == pafs.FileType.File:
            yield str(PurePosixPath(info.path).relative_to(base)), info.size


def _below(inner: str, root: str) -> str | None:
    """Return the path of a folder relative to another.  Returns None if it is not below."""
    if "://" in inner or "://" in root:
        base = root.rstrip("/") + "/"
        return inner[len(base) :] if inner.startswith(base) else None
    try:
        return Path(inner).resolve().relative_to(Path(root).resolve()).as_posix()
    except ValueError:
        return None


def _grouped(root: str, paths: list[str]) -> Iterator[TraceFile]:
    """The files, grouped into traces."""
    folders = sorted({match["root"] for path in paths if (match := _ANSWERS.match(path))}, key=len)
    answers, logs = dict[str, list[str]](), dict[str, list[str]]()
    for path in paths:
        folder = next((folder for folder in folders if path.startswith(folder) and path.endswith(".json")), None)
        if folder is not None:
            answers.setdefault(folder, []).append(path)
        elif match := _ROTATED.match(path):
            logs.setdefault(match["log"], []).append(path)
        else:
            yield TraceFile(trace_name(path), root, (path,))
    for log, parts in logs.items():
        yield TraceFile(trace_name(log), root, tuple(parts))
    for folder, parts in answers.items():
        name = folder.rstrip("/") or PurePosixPath(root.rstrip("/")).name
        yield TraceFile(trace_name(name), root, tuple(parts), folder)


def _named(files: Iterable[TraceFile], notes: list[str]) -> list[TraceFile]:
    """Make trace names unique: files that differ only in their suffixes keep them, with a note."""
    by_name = dict[str, list[TraceFile]]()
    for file in sorted(files):
        by_name.setdefault(file.trace, []).append(file)
    used, named = set(by_name), list[TraceFile]()
    for name, same in by_name.items():
        for i, file in enumerate(same):
            own = name if i == 0 else next(other for k in count(1) if (other := f"{name}-{k}") not in used)
            used.add(own)
            named.append(file._replace(trace=own))
        if len(same) > 1:
            others = ", ".join(file.trace for file in named[1 - len(same) :])
            notes.append(f"{', '.join(file.paths[0] for file in same)}: have one name; the later ones are {others}")
    return named


def _count_and_names(paths: list[str]) -> str:
    names = sorted({PurePosixPath(path).name for path in paths})
    return f"{len(paths)} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"

"""Files that are there whole or not at all: written beside their place, brought to the disk, renamed."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["NotKeptError", "is_abandoned", "kept_in", "partial_of", "remove_partials", "replace_file", "replace_text"]

_PARTIAL = re.compile(r"\..+\.(\d+)\.tmp")
_ABANDONED_S = 60.0  # nothing was added for so long: whoever writes there may be on another machine, where we see no process
LONGEST_NAME = 100  # characters kept in the name of the partial file: a file system takes 255 bytes


class NotKeptError(RuntimeError):
    """A disk that is full or gone, a folder that nobody may write to any more; one line."""


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """NotKeptError if what is written meanwhile cannot be."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise NotKeptError(f"cannot keep results in {folder}: {why}; what was kept before stays, and the same command goes on") from None


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside `path` that then takes its place.  If it cannot (a full disk, Ctrl-C), what was there before stays.

    A link keeps pointing to its file, and a file keeps its permissions.  A pipe or a device has no older content: it is written to.
    OSError: its file name is `path`.
    """
    if path.exists() and not path.is_file():  # asked of the path itself: that of a pipe behind /dev/stdout leads nowhere
        write(path)
        return
    target = Path(os.path.realpath(path))
    partial = partial_of(target)
    try:
        write(partial)
        if target.exists():
            partial.chmod(target.stat().st_mode & 0o7777)
        _sync(partial, os.O_RDWR)  # else a crash of the machine may leave an empty file under the name
        partial.replace(target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
    with suppress(OSError):  # some file systems cannot sync a folder
        _sync(target.parent, os.O_RDONLY)


def replace_text(path: Path, text: str) -> None:
    """As UTF-8."""
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def partial_of(path: Path) -> Path:
    """Beside a file or folder: where this process prepares it."""
    return path.with_name(f".{path.name[:LONGEST_NAME]}.{os.getpid()}.tmp")


def is_abandoned(path: Path) -> bool:
    """Whether it was prepared by a process that is gone from this machine."""
    match = _PARTIAL.fullmatch(path.name)
    return match is not None and not _runs(int(match[1]))


def remove_partials(folder: Path) -> None:
    """What killed processes left in a folder when they could not rename it any more: files, and folders of files."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if is_abandoned(path) and time.time() - path.lstat().st_mtime > _ABANDONED_S:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

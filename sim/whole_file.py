"""Files that are there whole or not at all: written beside their place, brought to the disk, renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["replace_file", "replace_text"]

LONGEST_NAME = 100  # characters kept in the name of the partial file: a file system takes 255 bytes


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside `path` that then takes its place.  If it cannot (a full disk, Ctrl-C), what was there before stays.

    A link keeps pointing to its file, and a file keeps its permissions.  A pipe or a device has no older content: it is written to.
    OSError: its file name is `path`.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        write(path)
        return
    partial = target.with_name(f".{target.name[:LONGEST_NAME]}.{os.getpid()}.tmp")
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


def _sync(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

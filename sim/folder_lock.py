"""One command at a time in a folder: the operating system locks a file there for it, and frees it when the command ends or dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sim.foreign import Readable, shown

__all__ = ["LOCK", "FolderInUseError", "locked"]

LOCK = ".ckptsim.lock"
"""It names its owner.  After a kill it stays, and nobody holds it."""


class FolderInUseError(Readable):
    """Another command works in the folder; the message says which."""


@contextmanager
def locked(folder: Path, warn: Callable[[str], object]) -> Iterator[None]:
    """Nobody else enters this block for the same folder.  Processes that are forked in it keep the lock as long as they live.

    Some file systems cannot lock: `warn` is told, and the block runs all the same.
    FolderInUseError: another command is in it.  OSError: the file cannot be written.
    """
    path = folder / LOCK
    while (lock := _lock(path, warn)) is None:
        pass
    try:
        os.ftruncate(lock, 0)
        os.write(lock, f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n".encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _lock(path: Path, warn: Callable[[str], object]) -> int | None:
    """The open file; None: its owner removed it after we opened it, so it locks nobody out."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)  # a link may lead to a file of somebody
    folder = path.parent
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.lstat(), os.fstat(lock)):
            return lock
    except BlockingIOError:
        owner = shown(os.pread(lock, 200, 0).decode(errors="replace")) or "it has just begun"
        os.close(lock)
        raise FolderInUseError(f"another command writes to {folder} ({owner}): wait for it, or give another folder") from None
    except FileNotFoundError:  # removed, and no other there yet
        pass
    except OSError as error:
        warn(f"warning: {folder}: its file system locks no files ({error.strerror}): let no other command write there meanwhile")
        return lock
    os.close(lock)
    return None

"""One command at a time in a folder: the operating system locks a file there, and frees it when the command ends or dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sim.foreign import Readable, one_line

LOCK = ".ckptsim.lock"
"""The file names its owner.  After a kill the file stays without a lock."""


class FolderInUseError(Readable):
    """Another command works in the folder; the message names it."""

    def __init__(self, folder: Path, owner: str) -> None:
        super().__init__(f"another command writes to {folder} ({owner}): wait for it, or give another folder")
        self.owner = owner


@contextmanager
def locked(folder: Path, warn: Callable[[str], object]) -> Iterator[None]:
    """No other process enters this block for the same folder.  Processes forked within it keep the lock while they live.

    Some file systems cannot lock: then `warn` is called, and the block runs without a lock.
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
    """The open file; None: its owner has removed it meanwhile, so its lock is useless."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)  # a link may lead to a foreign file
    folder = path.parent
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(path.lstat(), os.fstat(lock)):
            return lock
    except BlockingIOError:
        owner = one_line(os.pread(lock, 200, 0).decode(errors="replace")) or "it has just begun"
        os.close(lock)
        raise FolderInUseError(folder, owner) from None
    except FileNotFoundError:  # removed, and not yet created again
        pass
    except OSError as error:
        warn(f"warning: {folder}: its file system locks no files ({error.strerror}): let no other command write there meanwhile")
        return lock
    os.close(lock)
    return None

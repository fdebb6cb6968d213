"""Atomic replacement of files, and locks of folders."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sim.model.text import PrintableError, one_line

# ---- Replace files atomically: write a partial file next to the target, sync it, rename it.

_PARTIAL = re.compile(r"\..+\.(\d+)\.tmp")
# an unchanged partial file this old is abandoned: its process may be on another machine, invisible here
_ABANDONED_S = 60.0
MAX_NAME_CHARS = 100  # characters kept in the name of the partial file: a file system allows 255 bytes


class ResultsNotWrittenError(RuntimeError):
    """The disk is full or gone, or the folder is read-only; one line."""

    exit_code = 4


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise `ResultsNotWrittenError` if a write in this block fails."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise ResultsNotWrittenError(
            f"cannot write results to {folder}: {why}; earlier results are kept, run the same command to resume"
        ) from None


def replace_file(path: Path, write: Callable[[Path], object], *, others_follow: bool = False) -> None:
    """Replace a file by one that `write` fills.  If that fails (a full disk, Ctrl-C), the old file is kept.

    Links are followed, and permissions are kept.  A pipe or a device is written directly.  With `others_follow` the
    folder is not synced, because the last of several files does it.  The file name of an `OSError` is `path`.
    """
    # the path itself decides: the target of a pipe behind /dev/stdout does not exist
    if path.exists() and not path.is_file():
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
        with suppress(OSError):  # the folder may be a file: the write has said so
            partial.unlink()
    if not others_follow:
        with suppress(OSError):  # some file systems cannot sync a folder
            _sync(target.parent, os.O_RDONLY)


def replace_text(path: Path, text: str) -> None:
    """Write text as UTF-8."""
    replace_file(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def partial_of(path: Path) -> Path:
    """Return the path of the partial file or folder of this process."""
    return path.with_name(f".{path.name[:MAX_NAME_CHARS]}.{os.getpid()}.tmp")


def is_abandoned(path: Path) -> bool:
    """Return whether the process that created a partial file no longer exists."""
    match = _PARTIAL.fullmatch(path.name)
    return match is not None and not _runs(int(match[1]))


def remove_partials(folder: Path) -> None:
    """Remove partial files and folders of killed processes."""
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


# ---- Locks of folders: an operating system lock of a file in the folder, which is released when the process ends.

LOCK = ".ckptsim.lock"
"""Name of the lock file, which contains the owner.  After a kill the file remains, but is not locked."""


class FolderInUseError(PrintableError):
    """Another command uses the folder; the message names it."""

    exit_code = 2

    def __init__(self, folder: Path, owner: str) -> None:
        super().__init__(f"another command writes to {folder} ({owner}): wait for it, or give another folder")
        self.owner = owner


@contextmanager
def locked(folder: Path, warn: Callable[[str], object]) -> Iterator[None]:
    """Lock a folder for this process, and for processes forked within the block.

    If the file system does not support locks, `warn` is called, and the block runs without a lock.  Raises
    `FolderInUseError` if another command has the lock, and `OSError` if the lock file cannot be written.
    """
    path = folder / LOCK
    while (lock := _lock(path, warn)) is None:
        pass
    try:
        os.ftruncate(lock, 0)
        os.write(
            lock,
            f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n".encode(),
        )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _lock(path: Path, warn: Callable[[str], object]) -> int | None:
    """Return the locked file, or None if its owner has removed it in the meantime, which makes the lock useless."""
    # a link may lead to a foreign file
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
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
        warn(
            f"warning: {folder}: its file system locks no files ({error.strerror}): do not run another command that writes there"
        )
        return lock
    os.close(lock)
    return None

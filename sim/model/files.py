"""Files written as a whole or not at all, and folders that one process at a time may write."""

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

# ---- Files written as a whole or not at all: prepared next to their place, brought to the disk, renamed.

_PARTIAL = re.compile(r"\..+\.(\d+)\.tmp")
# an unchanged partial file this old is abandoned: its process may be on another machine, invisible here
_ABANDONED_S = 60.0
MAX_NAME_CHARS = 100  # characters kept in the name of the partial file: a file system allows 255 bytes


class NotKeptError(RuntimeError):
    """The disk is full or gone, or the folder is read-only; one line."""


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """NotKeptError: a write in this block failed."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise NotKeptError(
            f"cannot write results to {folder}: {why}; earlier results are kept, run the same command to resume"
        ) from None


def replace_file(path: Path, write: Callable[[Path], object], *, others_follow: bool = False) -> None:
    """`write` fills a file next to `path`, which then replaces it.  If that fails (a full disk, Ctrl-C), the old file stays.

    `others_follow`: the last of the files of a folder brings all their names to the disk; each for itself would wait as long again.
    A link keeps pointing to its file, and a file keeps its permissions.  A pipe or a device has no old content: it is
    written directly.  OSError: its file name is `path`.
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
    """The path next to a file or folder where this process prepares it."""
    return path.with_name(f".{path.name[:MAX_NAME_CHARS]}.{os.getpid()}.tmp")


def is_abandoned(path: Path) -> bool:
    """Whether the process that prepared it is gone from this machine."""
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


# ---- One command at a time in a folder: the operating system locks a file there, and frees it when the command ends or dies.

LOCK = ".ckptsim.lock"
"""The file names its owner.  After a kill the file stays without a lock."""


class FolderInUseError(PrintableError):
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
    """The open file; None: its owner has removed it meanwhile, so its lock is useless."""
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
            f"warning: {folder}: its file system locks no files ({error.strerror}): let no other command write there meanwhile"
        )
        return lock
    os.close(lock)
    return None

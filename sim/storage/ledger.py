"""The ledger of all stored files of a run, and the exceptions that storage raises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType

# ---- The ledger of all files of a run: when each was created, became durable, was abandoned, and was deleted.

Name = tuple[str | int, ...]
"""Name of a file: (kind, vertex, subtask, checkpoint, ...).  Its random properties are functions of its name and the seed."""

FileId = NewType("FileId", int)


@dataclass(slots=True)
class StoredFile:
    """A file with its size, and the times of the events in its life [ns], None if they have not happened."""

    id: FileId
    name: Name
    host: int  # TaskManager that writes it; -1: the JobManager
    disk: bool  # True: on the local disk of that TaskManager, not in checkpoint storage
    created_ns: int
    size_bytes: int = 0  # written so far
    durable_ns: int | None = None  # closed, and readable in full from then on
    deleted_ns: int | None = None  # its deletion began; it is unreadable from then on
    removed_ns: int | None = None  # its deletion was answered, or failed for good
    given_up_ns: int | None = None  # its writer abandoned it before it was closed
    inside: FileId | None = None  # physical file that contains it, if file merging is enabled

    @property
    def complete(self) -> bool:
        """Return True if the file was written and closed.  Otherwise it is being written or was abandoned."""
        return self.durable_ns is not None


@dataclass(slots=True)
class DeletionLine:
    """The queue of files that one call of `FileSystem.delete` deletes."""

    moved_ns: int  # time of the call, or of the latest deletion that began


class FileLedger:
    """All files of a run by id, in the order in which they were created."""

    def __init__(self) -> None:
        self._files: list[StoredFile] = []
        self.to_delete: dict[FileId, DeletionLine] = {}  # file whose deletion has not begun -> its queue
        self.bytes_read: Counter[str] = Counter()  # by kind of file, the first element of its name

    def __iter__(self) -> Iterator[StoredFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, file: FileId) -> StoredFile:
        return self._files[file]

    def adopt(self, older: FileLedger) -> None:
        """Take over the files of a restored job, which keep their ids."""
        self._files = list(older)

    def exists(self, file: FileId) -> bool:
        """Return True if the file can be read in full: it was closed, and its deletion has not begun."""
        stored = self._files[file]
        return stored.complete and stored.deleted_ns is None

    def create(self, name: Name, host: int, now: int, *, disk: bool, inside: FileId | None = None) -> StoredFile:
        """Add an empty file.  `inside`: physical file that contains it, None if it is one itself."""
        stored = StoredFile(FileId(len(self._files)), name, host, disk, now, inside=inside)
        self._files.append(stored)
        return stored

    def close(self, stored: StoredFile, now: int) -> None:
        """Mark a file as durable, unless its writer has abandoned it.  `now`: simulation time [ns]."""
        if stored.given_up_ns is None:
            stored.durable_ns = now


# ---- Failures of storage: transient ones, after which the client retries, and final ones.


class Transient(Exception):  # the name does not end in Error, because the client retries
    """Raised if one attempt of a request fails.  The client retries it."""


class Unreachable(Transient):
    """Raised if storage is down."""


class TimedOut(Transient):
    """Raised if a request is not answered within its timeout."""


class Refused(Transient):
    """Raised if storage rejects a request because there are too many (S3: 503 Slow Down)."""


class StorageFailed(Exception):
    """Raised if all attempts of a request have failed.  A file that is being written is abandoned."""


class DiskFull(StorageFailed):
    """Raised if a local disk has no space left."""

"""The ledger of stored files, and failures of storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType

# ---- The ledger of all files of a run: when each was created, became durable, was abandoned, and was deleted.

Name = tuple[str | int, ...]
"""(kind, vertex, index, checkpoint, ...).  Random properties of a file are functions of its name and the seed."""

FileId = NewType("FileId", int)


@dataclass(slots=True)
class StoredFile:
    """A file with its size and times."""

    id: FileId
    name: Name
    host: int  # task manager that writes it; -1: the JobManager
    disk: bool  # on the local disk of that host, not in checkpoint storage
    created_ns: int
    size_bytes: int = 0  # written so far
    durable_ns: int | None = None  # closed: readable in full from here on
    deleted_ns: int | None = None
    removed_ns: int | None = None  # its deletion was answered, or failed for good
    given_up_ns: int | None = None  # its writer abandoned it before it was closed
    inside: FileId | None = None  # the physical file that holds it, where small files are merged

    @property
    def complete(self) -> bool:
        """Whether it was written and closed.  If not, it is being written or was abandoned."""
        return self.durable_ns is not None


@dataclass(slots=True)
class DeletionLine:
    """The queue of files that one request deletes, one after the other."""

    moved_ns: int  # when the request was made, or the latest deletion began


class FileLedger:
    """All files by id, in the order in which they were created."""

    def __init__(self) -> None:
        self._files: list[StoredFile] = []
        self.to_delete: dict[FileId, DeletionLine] = {}  # files queued for deletion
        self.written = 0  # files closed so far; a physical file of merged ones counts once
        self.bytes_written = 0  # in them
        self.bytes_read: Counter[str] = Counter()  # by the first word of a name

    def __iter__(self) -> Iterator[StoredFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, file: FileId) -> StoredFile:
        return self._files[file]

    def adopt(self, older: FileLedger) -> None:
        """Take over the files of an older job with their ids.  They do not count as written."""
        self._files = list(older)

    def exists(self, file: FileId) -> bool:
        """Whether the file can be read in full."""
        stored = self._files[file]
        return stored.complete and stored.deleted_ns is None

    def create(self, name: Name, host: int, now: int, *, disk: bool, inside: FileId | None = None) -> StoredFile:
        stored = StoredFile(FileId(len(self._files)), name, host, disk, now, inside=inside)
        self._files.append(stored)
        return stored

    def close(self, stored: StoredFile, now: int) -> None:
        """Mark a file as durable, unless its writer has abandoned it."""
        if stored.given_up_ns is None:
            stored.durable_ns = now
            if stored.inside is None:
                self.written += 1
                self.bytes_written += stored.size_bytes

    def delete(self, file: FileId, now: int) -> None:
        if self._files[file].deleted_ns is None:
            self._files[file].deleted_ns = now


# ---- Failures of storage: transient ones, which clients retry, and final ones.


class Transient(Exception):  # it is not an error yet: it is tried again
    """An attempt has failed.  The client retries."""


class Unreachable(Transient):
    """Storage is down."""


class TimedOut(Transient):
    """A request was not answered within its timeout."""


class Refused(Transient):
    """Storage rejects a request because there are too many (S3: 503 Slow Down)."""


class StorageFailed(Exception):
    """All attempts have failed.  The file being written is abandoned."""


class DiskFull(StorageFailed):
    """A local disk has no space left."""

"""The ledger of stored files, and failures of storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NewType

# ---- The ledger of all files of a run: when each became durable, was deleted, or was given up half-written.

Name = tuple[str | int, ...]
"""(kind, vertex, index, checkpoint, ...).  Random properties of a file are functions of its name and the seed."""

FileId = NewType("FileId", int)


@dataclass(slots=True)
class StoredFile:
    """A file, and its times."""

    id: FileId
    name: Name
    host: int  # task manager that writes it; -1: the JobManager
    disk: bool  # on the local disk of that host, not in checkpoint storage
    created_ns: int
    size_bytes: int = 0  # written so far
    durable_ns: int | None = None  # closed: readable in full from here on
    deleted_ns: int | None = None
    removed_ns: int | None = None  # its deletion was answered, or given up
    given_up_ns: int | None = None  # its writer stopped before it was closed
    inside: FileId | None = None  # the physical file that holds it, where small files are merged

    @property
    def complete(self) -> bool:
        """Whether all of it was written; False: being written, or given up half-written."""
        return self.durable_ns is not None


@dataclass(slots=True)
class DeletionLine:
    """Files that one request deletes, one after the other."""

    moved_ns: int  # when it began, or the turn of its last file came


class FileLedger:
    """All files by id, in the order in which they were created."""

    def __init__(self) -> None:
        self._files: list[StoredFile] = []
        self.to_delete: dict[FileId, DeletionLine] = {}  # asked for, but their turn has not come
        self.written = 0  # files closed so far, merged ones as one
        self.bytes_written = 0  # in them
        self.bytes_read: Counter[str] = Counter()  # by the first word of a name

    def __iter__(self) -> Iterator[StoredFile]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, file: FileId) -> StoredFile:
        return self._files[file]

    def adopt(self, older: FileLedger) -> None:
        """Begin with the files of an older job, under their ids; they do not count as written."""
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
        """A file becomes durable, unless its writer has given it up."""
        if stored.given_up_ns is None:
            stored.durable_ns = now
            if stored.inside is None:
                self.written += 1
                self.bytes_written += stored.size_bytes

    def delete(self, file: FileId, now: int) -> None:
        if self._files[file].deleted_ns is None:
            self._files[file].deleted_ns = now


# ---- Failures of storage: transient ones, after which a client tries again, and final ones.


class Transient(Exception):  # it is not an error yet: it is tried again
    """An attempt has failed.  The client tries again."""


class Unreachable(Transient):
    """Storage is down."""


class TimedOut(Transient):
    """A request has had no answer within its time limit."""


class Refused(Transient):
    """Storage turns a request away, as there are too many (S3's 503 Slow Down)."""


class StorageFailed(Exception):  # named like the event it brings about
    """All attempts have failed.  The file being written is given up."""


class DiskFull(StorageFailed):
    """A local disk has no space left."""

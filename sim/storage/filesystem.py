"""Checkpoint storage as its users see it: write, open, read, delete, rename; what it costs is the medium's business.

Knows bytes and files; what they hold is the caller's business.
"""

from __future__ import annotations

from collections.abc import Iterable

import simpy

from sim.model.storage import Storage
from sim.storage.attempts import Attempts
from sim.storage.flat import FlatStorage
from sim.storage.ledger import FileId, FileLedger
from sim.storage.medium import Medium
from sim.storage.stream import Stream
from sim.storage.work import Work

__all__ = ["CheckpointStorage", "FileSystem"]


class FileSystem:
    """The verbs of one medium.  `name` = (kind, vertex, index, checkpoint, ...), `host` = task manager (-1: the JobManager)."""

    def __init__(self, attempts: Attempts, medium: Medium, files: FileLedger, *, disk: bool = False) -> None:
        self.attempts = attempts
        self.medium = medium
        self.files = files
        self._disk = disk

    def open(self, *name: str | int, host: int = 0) -> Stream:
        """A file to write to, piece by piece."""
        return Stream(self.medium.open(name, host), self.files, name, host, lambda: self.attempts.now, disk=self._disk)

    def write(self, size_bytes: int, *name: str | int, host: int = 0) -> Work[FileId]:
        """Process: create a file, write `size_bytes`, close it.  Raises StorageFailed."""
        stream = self.open(*name, host=host)
        yield from stream.write(size_bytes)
        return (yield from stream.close())

    def read(self, size_bytes: int, *name: str | int, host: int = 0) -> Work[None]:
        """Process: read so much of the file of this name.  Raises StorageFailed."""
        yield from self.medium.read(size_bytes, name, host)

    def delete(self, files: Iterable[FileId], *, host: int = -1) -> Work[None]:
        """Process: delete files one after the other; a file is gone from the moment it is asked for.  Raises StorageFailed."""
        for file in files:
            stored = self.files[file]
            if stored.deleted_ns is None:
                self.files.delete(file, self.attempts.now)
                yield from self.medium.remove(stored.name, stored.size_bytes, host)

    @property
    def renames(self) -> bool:
        """Whether this kind of storage can rename a file (object stores cannot)."""
        return self.medium.renames

    def rename(self, file: FileId, *name: str | int, host: int = 0) -> Work[None]:
        """Process: give a file another name.  NotImplementedError where `renames` is False; raises StorageFailed."""
        if not self.renames:
            raise NotImplementedError("an object store cannot rename: write under the final name, or copy")
        yield from self.medium.rename(self.files[file].name, host)
        self.files[file].name = name


class CheckpointStorage(FileSystem):
    """Where the checkpoints of one job lie (Flink: CheckpointStorageAccess, CheckpointStreamFactory)."""

    def __init__(self, env: simpy.Environment, options: Storage, seed: int) -> None:
        attempts = Attempts(env, options.retry)
        super().__init__(attempts, FlatStorage(attempts, options, seed), FileLedger())
        self.env = env
        self.options = options
        self.seed = seed

    def write_metadata(self, checkpoint: int = 0, size_bytes: int = 0) -> Work[FileId]:
        """Process: the _metadata file of a checkpoint (Flink: on the coordinator's I/O thread).  Raises StorageFailed."""
        stored = self.files.create(("_metadata", checkpoint), -1, self.attempts.now)
        stored.size_bytes = size_bytes
        if self.options.metadata_ns:
            yield from self.attempts.insist(lambda _: self._wait(self.options.metadata_ns))
        self.files.close(stored, self.attempts.now)
        return stored.id

    def is_inlined(self, size_bytes: int) -> bool:
        """Small state travels in the acknowledgement (FsCheckpointStreamFactory): no file, no latency."""
        return size_bytes <= self.options.inline_threshold_bytes

    def fail_until(self, until_ns: int) -> None:
        """An outage begins now: what is under way breaks off, nothing is reached before `until_ns`; clients retry."""
        self.attempts.fail_until(until_ns)

    @property
    def files_written(self) -> int:
        """Files closed so far."""
        return self.files.written

    @property
    def bytes_written(self) -> int:
        """Bytes in them."""
        return self.files.bytes_written

    def _wait(self, delay_ns: int) -> Work[None]:
        yield self.attempts.wait(delay_ns)

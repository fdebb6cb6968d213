"""A file that is being written, from its first byte to its last.  The ledger notes what the medium does to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sim.storage.ledger import FileId, FileLedger, Name, StoredFile
from sim.storage.medium import Sink
from sim.storage.work import Work

T = TypeVar("T")


class FileStream:
    """A file that is being written, piece by piece.  It exists from the first byte on, and is durable once it is closed."""

    def __init__(self, sink: Sink, files: FileLedger, name: Name, host: int, clock: Callable[[], int], *, disk: bool) -> None:
        self.name = name
        self.host = host
        self._sink = sink
        self._files = files
        self._clock = clock
        self._disk = disk
        self._stored: StoredFile | None = None

    @property
    def file(self) -> StoredFile:
        if self._stored is None:
            self._stored = self._files.create(self.name, self.host, self._clock(), disk=self._disk)
        return self._stored

    def write(self, size_bytes: int) -> Work[None]:
        """Process: `size_bytes` more.  Raises StorageFailed."""
        stored = self.file
        yield from self._or_give_up(self._sink.write(size_bytes))
        stored.size_bytes += size_bytes

    def close(self) -> Work[FileId]:
        """Process: make it durable.  Raises StorageFailed."""
        stored = self.file
        yield from self._or_give_up(self._sink.close())
        self._files.close(stored, self._clock())
        return stored.id

    def closed(self, size_bytes: int) -> FileId:
        """The file is durable with this size, and took no time of the medium."""
        self.file.size_bytes = size_bytes
        self._files.close(self.file, self._clock())
        return self.file.id

    def give_up(self) -> None:
        """Stop before it is closed; what was written stays half-written.  What is under way goes on to its end, for nothing."""
        if self._stored is not None and not self._stored.complete and self._stored.given_up_ns is None:
            self._stored.given_up_ns = self._clock()
            self._sink.give_up()

    def _or_give_up(self, work: Work[T]) -> Work[T]:
        try:
            return (yield from work)
        except BaseException:  # interrupted, failed for good, or its waiter is gone
            self.give_up()
            raise

"""Checkpoint storage as its users see it: write, open, read, delete.  The medium decides what that costs.

It knows bytes and files, and not their content.
"""

from __future__ import annotations

from collections.abc import Iterable

import simpy

from sim.model.storage import Disk, Retry, Storage
from sim.storage.attempts import Attempts
from sim.storage.bandwidth.cards import Cards
from sim.storage.bandwidth.disk import LocalDisk
from sim.storage.bandwidth.network import Link, SharedNetwork, Steady
from sim.storage.failures import StorageFailed
from sim.storage.ledger import DeletionLine, FileId, FileLedger
from sim.storage.media.flat import FlatStorage
from sim.storage.media.slow_nodes import SlowLink, slowness
from sim.storage.medium import MEDIA, Medium
from sim.storage.merging import MergedFiles
from sim.storage.parallel import in_parallel
from sim.storage.stream import FileStream
from sim.storage.work import Work


class FileSystem:
    """The verbs of one medium.  `name` = (kind, vertex, index, checkpoint, ...), `host` = task manager (-1: the JobManager)."""

    def __init__(self, attempts: Attempts, medium: Medium, files: FileLedger, *, disk: bool = False) -> None:
        self.attempts = attempts
        self.medium = medium
        self.files = files
        self.merged: MergedFiles | None = None
        self._disk = disk

    def open(self, *name: str | int, host: int = 0) -> FileStream:
        """A file to write to, piece by piece."""
        return FileStream(self.medium.open(name, host), self.files, name, host, lambda: self.attempts.now, disk=self._disk)

    def write(self, size_bytes: int, *name: str | int, host: int = 0, merge: int | None = None, owner: str = "") -> Work[FileId]:
        """Process: create a file, write `size_bytes`, close it.  Raises StorageFailed.

        With file merging on, files of the same checkpoint `merge` (None: never), task manager and `owner` may share a physical file.
        Flink merges shared state within its subtask, and everything else within its task manager.
        """
        if merge is not None and self.merged is not None and self.merged.takes(size_bytes):
            return (yield from self.merged.write(size_bytes, name, host, merge, owner))
        stream = self.open(*name, host=host)
        yield from stream.write(size_bytes)
        return (yield from stream.close())

    def read(self, size_bytes: int, *name: str | int, host: int = 0) -> Work[None]:
        """Process: read bytes of a file.  Raises StorageFailed."""
        yield from self.medium.read(size_bytes, name, host)
        self.files.bytes_read[str(name[0])] += size_bytes

    def delete(self, files: Iterable[FileId], *, host: int = -1, threads: int = 1) -> Work[None]:
        """Process: delete files, one after the other per thread.  Each is unreadable when its turn comes.

        All are tried, and then the first StorageFailed is raised (StateUtil#bestEffortDiscardAllStateObjects).
        """
        files = list(files)
        self.files.to_delete.update(dict.fromkeys(files, DeletionLine(self.attempts.now)))
        failures: list[StorageFailed] = []
        yield from in_parallel(self.attempts.env, [self._try_to_delete(file, host, failures) for file in files], threads)
        for failure in failures:
            raise failure

    def _try_to_delete(self, file: FileId, host: int, failures: list[StorageFailed]) -> Work[None]:
        try:
            yield from self._delete(file, host)
        except StorageFailed as failure:
            failures.append(failure)
        self.files[file].removed_ns = self.attempts.now

    def _delete(self, file: FileId, host: int) -> Work[None]:
        stored = self.files[file]
        if (line := self.files.to_delete.pop(file, None)) is not None:
            line.moved_ns = self.attempts.now
        if stored.deleted_ns is None:
            self.files.delete(file, self.attempts.now)
            if stored.inside is not None and self.merged is not None:
                yield from self.merged.delete(stored, stored.inside, host)
            else:
                yield from self.medium.remove(stored.name, stored.size_bytes if stored.complete else 0, host)


class CheckpointStorage(FileSystem):
    """The checkpoint storage of one job (Flink: CheckpointStorageAccess, CheckpointStreamFactory)."""

    def __init__(self, env: simpy.Environment, options: Storage, seed: int, floor_ns: int = 0) -> None:
        """`floor_ns`: what a file of flat storage costs beside what the options say."""
        attempts = Attempts(env, options.retry)
        super().__init__(attempts, _medium(attempts, options, seed, floor_ns), FileLedger())
        self.env = env
        self.options = options
        self.seed = seed
        self.merged = None if options.merging is None else MergedFiles(self, options.merging)
        self._disks = Disks(env, options.disk, self.files, seed)

    def write_metadata(self, checkpoint: int = 0, size_bytes: int = 0) -> Work[FileId]:
        """Process: the _metadata file of a checkpoint (Flink: on the coordinator's I/O thread).  Raises StorageFailed."""
        stream = self.open("_metadata", checkpoint, host=-1)
        if self.options.metadata_ns:
            yield from self.attempts.insist(self._metadata_latency)
        if isinstance(self.medium, FlatStorage):
            return stream.closed(size_bytes)
        yield from stream.write(size_bytes)
        return (yield from stream.close())

    def is_inlined(self, size_bytes: int) -> bool:
        """Small state travels in the acknowledgement (FsCheckpointStreamFactory): no file, no latency."""
        return size_bytes <= self.options.inline_threshold_bytes

    def end_merging(self, checkpoint: int) -> Work[None]:
        """Process: a checkpoint is subsumed or aborted.  The physical files of its small files are closed.  Raises StorageFailed."""
        if self.merged is not None:
            yield from self.merged.end(checkpoint)

    def may_reuse(self, file: FileId) -> bool:
        """Whether a later checkpoint may refer to the file instead of writing its bytes again (space amplification of merged files)."""
        return self.merged is None or self.merged.may_reuse(file)

    def disk(self, host: int) -> FileSystem:
        """The local disk of a task manager: the same verbs; `DiskFull` when its space runs out."""
        return self._disks.of(host)

    def lose_disk(self, host: int) -> None:
        """A task manager is lost with its disk: all files there are deleted, and its successor has an empty disk."""
        self._disks.lose(host)

    def fail_until(self, until_ns: int) -> None:
        """An outage begins now: requests under way break off, and storage is unreachable until `until_ns`.  Clients retry."""
        self.attempts.fail_until(until_ns)

    @property
    def bytes_written(self) -> int:
        """Bytes in them."""
        return self.files.bytes_written

    def _metadata_latency(self, _: int) -> Work[None]:
        yield self.attempts.wait(self.options.metadata_ns)


class Disks:
    """Local disks by task manager; their files stand in the ledger of the storage beside them."""

    def __init__(self, env: simpy.Environment, options: Disk, files: FileLedger, seed: int) -> None:
        self.env = env
        self.options = options
        self.files = files
        self.seed = seed
        self._systems: dict[int, FileSystem] = {}

    def of(self, host: int) -> FileSystem:
        if host not in self._systems:
            attempts = Attempts(self.env, Retry())  # of its own: outages of storage do not reach it
            self._systems[host] = FileSystem(attempts, LocalDisk(attempts, self.options, self._link(host)), self.files, disk=True)
        return self._systems[host]

    def _link(self, host: int) -> Link | None:
        """What all that read and write on the disk of a task manager share."""
        rate, slow = self.options.bytes_per_second, self.options.slow
        if rate is None:
            return None
        return Steady(rate) if slow is None else SlowLink(rate, slowness(slow, self.seed, host))

    def lose(self, host: int) -> None:
        self._systems.pop(host, None)
        for stored in self.files:
            if stored.disk and stored.host == host and stored.deleted_ns is None:
                stored.deleted_ns = int(self.env.now)


def _medium(attempts: Attempts, options: Storage, seed: int, floor_ns: int) -> Medium:
    network, cards = SharedNetwork(attempts), Cards(options.nic_bytes_per_second)
    if options.kind is not None:
        return MEDIA[options.kind.name].make(attempts, network, cards, options.options, seed)
    return FlatStorage(attempts, options, seed, floor_ns)

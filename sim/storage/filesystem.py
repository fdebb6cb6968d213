"""File systems on a medium: file streams, file merging (FLIP-306), checkpoint storage, and local disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import simpy

from sim.model.storage import FileMerging, Retry, Storage
from sim.storage.ledger import DeletionLine, FileId, FileLedger, Name, StorageFailed, StoredFile
from sim.storage.media.flat import FlatStorage
from sim.storage.media.object_store import ObjectStorage
from sim.storage.media.slow_nodes import node_link
from sim.storage.medium import MEDIA, Medium, OutputFile
from sim.storage.network import LocalDisk, NetworkInterfaces, SharedNetwork
from sim.storage.requests import Attempts, Work, shield_from_interrupt

# ---- A file that is being written. The ledger tracks its state.

T = TypeVar("T")


class FileStream:
    """A file that is being written.  It is in the ledger from its first write on, and is durable when it is closed."""

    def __init__(
        self, sink: OutputFile, files: FileLedger, name: Name, host: int, clock: Callable[[], int], *, disk: bool
    ) -> None:
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
        """Process: append `size_bytes`.  If this fails or is interrupted, the file is abandoned.  Raises StorageFailed."""
        stored = self.file
        yield from self._abort_on_failure(self._sink.write(size_bytes))
        stored.size_bytes += size_bytes

    def close(self) -> Work[FileId]:
        """Process: make the file durable, and return its id.  Raises StorageFailed."""
        stored = self.file
        yield from self._abort_on_failure(self._sink.close())
        self._files.close(stored, self._clock())
        return stored.id

    def closed(self, size_bytes: int) -> FileId:
        """Write and close a file of this size in no time, and return its id."""
        self.file.size_bytes = size_bytes
        self._files.close(self.file, self._clock())
        return self.file.id

    def give_up(self) -> None:
        """Abandon the file before it is closed.  Bytes written so far stay in storage, and transfers in progress continue."""
        if self._stored is not None and not self._stored.complete and self._stored.given_up_ns is None:
            self._stored.given_up_ns = self._clock()
            self._sink.give_up()

    def _abort_on_failure(self, work: Work[T]) -> Work[T]:
        try:
            return (yield from work)
        except BaseException:  # interrupted, failed for good, or the process has ended
            self.give_up()
            raise


# ---- File merging: small files are written into common physical files (FLIP-306, FileMergingSnapshotManagerBase).
#
# A writer takes an idle physical file of its group, or creates one (non-blocking pool).  It appends its logical file, makes
# it durable by a flush, and returns the physical file to the pool.  A physical file is closed when it is large enough or its
# checkpoint has ended, and deleted together with its last logical file.  If too much space is wasted, later checkpoints do
# not reuse the files that waste most.


class _Group(NamedTuple):
    """What logical files must have in common to share a physical file."""

    host: int  # TaskManager
    by: int | None  # checkpoint; None: files of different checkpoints are merged
    owner: str  # subtask; "": all subtasks of the TaskManager


class MergedFiles:
    """The logical files of a job, and the physical files that contain them."""

    def __init__(self, system: FileSystem, options: FileMerging) -> None:
        self.system = system
        self.options = options
        self._idle: dict[_Group, list[FileStream]] = {}
        self._over: set[int] = set()  # checkpoints that were subsumed or aborted
        self._made = 0  # number of physical files created
        self._inside: dict[FileId, list[StoredFile]] = {}  # physical file -> logical files in it that are not deleted
        self._worn: set[FileId] = set()  # physical files that waste too much space to be reused

    def takes(self, size_bytes: int) -> bool:
        """Return True if a file is small enough to be merged."""
        return size_bytes < self.options.max_file_bytes

    def write(self, size_bytes: int, name: Name, host: int, by: int, owner: str) -> Work[FileId]:
        """Process: append a logical file to a physical one, and return the id of the logical file.  Raises StorageFailed.

        `by`: checkpoint.  `owner`: see `_Group`.
        """
        group = _Group(host, None if self.options.across else by, owner)
        idle = self._idle.setdefault(group, [])
        physical = idle.pop(0) if idle else self._create(group)
        logical = self.system.files.create(
            name, host, self.system.attempts.now, disk=physical.file.disk, inside=physical.file.id
        )
        try:
            yield from physical.write(size_bytes)
        except BaseException:
            logical.given_up_ns = self.system.attempts.now
            raise
        logical.size_bytes = size_bytes
        self._inside.setdefault(physical.file.id, []).append(logical)
        self.system.files.close(logical, self.system.attempts.now)
        if physical.file.size_bytes < self.options.max_file_bytes and group.by not in self._over:
            idle.append(physical)
            return logical.id
        try:
            yield from shield_from_interrupt(self._close(physical))
        except BaseException:  # no checkpoint will refer to the logical file; the physical one may contain others
            self._discard(logical, physical.file.id)
            raise
        return logical.id

    def end(self, by: int) -> Work[None]:
        """Process: close the physical files of a subsumed or aborted checkpoint, and check for wasted space."""
        self._over.add(by)
        for group in [group for group in self._idle if group.by == by]:
            for physical in self._idle.pop(group):
                yield from self._close(physical)
        for host in sorted({self.system.files[physical].host for physical in self._inside}):
            self._control_space(host)

    def delete(self, logical: StoredFile, physical: FileId, host: int) -> Work[None]:
        """Process: delete a logical file.  If it was the last one in a closed physical file, delete that, too."""
        if physical not in self._inside:  # the file was written by the job from which this one was restored
            needed = (file for file in self.system.files if file.inside == physical and file.deleted_ns is None)
            self._inside[physical] = [*needed, logical]
        self._inside[physical].remove(logical)
        if self.system.files[physical].complete and not self._inside[physical]:
            yield from self._delete(physical, host)

    def may_reuse(self, file: FileId) -> bool:
        """Return True if later checkpoints may refer to a logical file.

        If not, they write its bytes again, so that the space of its physical file is freed.
        """
        return self.system.files[file].inside not in self._worn

    def _control_space(self, host: int) -> None:
        """Exclude the physical files of a host that waste most space from reuse, until the rest is within the limit.

        Source: FileMergingSnapshotManagerBase#controlSpace.
        """
        most = self.options.max_space_amplification
        if most < 1:
            return
        files = self.system.files
        needed = {
            p: sum(logical.size_bytes for logical in inside)
            for p, inside in self._inside.items()
            if files[p].host == host
        }
        goal = most * sum(needed.values())
        alive = sum(files[p].size_bytes for p in needed if p not in self._worn)
        wasted = {p: files[p].size_bytes - needed[p] for p in needed if files[p].complete and p not in self._worn}
        for physical in sorted(wasted, key=lambda p: -wasted[p]):
            if alive <= goal:
                return
            if needed[physical] * most < files[physical].size_bytes:
                self._worn.add(physical)
                alive -= wasted[physical]

    def _discard(self, logical: StoredFile, physical: FileId) -> None:
        """Mark a logical file as deleted, without a request to storage."""
        logical.deleted_ns = logical.removed_ns = self.system.attempts.now
        if logical in self._inside.get(physical, ()):
            self._inside[physical].remove(logical)

    def _close(self, physical: FileStream) -> Work[None]:
        file = yield from physical.close()
        if not self._inside.get(file):  # all of its logical files were deleted before
            yield from self._delete(file, physical.host)

    def _delete(self, physical: FileId, host: int) -> Work[None]:
        self._inside.pop(physical, None)
        self._worn.discard(physical)
        yield from self.system.delete([physical], host=host)

    def _create(self, group: _Group) -> FileStream:
        self._made += 1
        return self.system.open(
            "merged", -1 if group.by is None else group.by, group.owner, self._made, host=group.host
        )


# ---- File systems and checkpoint storage. The medium determines how long operations take.


class FileSystem:
    """Files on one medium.

    Parameters of its methods: `name` is (kind, vertex, subtask, checkpoint, ...), see `sim.storage.ledger.Name`; `host` is
    the TaskManager that does the operation, or -1 for the JobManager.
    """

    def __init__(self, attempts: Attempts, medium: Medium, files: FileLedger, *, disk: bool = False) -> None:
        self.attempts = attempts
        self.medium = medium
        self.files = files
        self.merged: MergedFiles | None = None
        self._disk = disk

    def open(self, *name: str | int, host: int = 0) -> FileStream:
        """Open a file for writing."""
        return FileStream(
            self.medium.open(name, host), self.files, name, host, lambda: self.attempts.now, disk=self._disk
        )

    def write(
        self, size_bytes: int, *name: str | int, host: int = 0, merge: int | None = None, owner: str = ""
    ) -> Work[FileId]:
        """Process: create a file, write `size_bytes`, close it, and return its id.  Raises StorageFailed.

        With file merging, small files of the same checkpoint `merge`, TaskManager and `owner` may share a physical file.
        Flink merges shared state per subtask, and other files per TaskManager.  If `merge` is None, the file is not merged.
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

    def delete(self, files: Iterable[FileId], *, host: int = -1) -> Work[None]:
        """Process: delete files one after the other.  A file is unreadable as soon as its own deletion begins.

        If a deletion fails, the others are attempted all the same.  Then the first StorageFailed is raised
        (StateUtil#bestEffortDiscardAllStateObjects).
        """
        files = list(files)
        self.files.to_delete.update(dict.fromkeys(files, DeletionLine(self.attempts.now)))
        failures: list[StorageFailed] = []
        for file in files:
            try:
                yield from self._delete(file, host)
            except StorageFailed as error:  # the other files are deleted all the same
                failures.append(error)
            self.files[file].removed_ns = self.attempts.now
        for failure in failures:
            raise failure

    def _delete(self, file: FileId, host: int) -> Work[None]:
        stored = self.files[file]
        if (line := self.files.to_delete.pop(file, None)) is not None:
            line.moved_ns = self.attempts.now
        if stored.deleted_ns is None:
            stored.deleted_ns = self.attempts.now
            if stored.inside is not None and self.merged is not None:
                yield from self.merged.delete(stored, stored.inside, host)
            else:
                yield from self.medium.remove(stored.name, stored.size_bytes if stored.complete else 0, host)


class CheckpointStorage(FileSystem):
    """The checkpoint storage of one job (Flink: CheckpointStorageAccess, CheckpointStreamFactory)."""

    def __init__(self, env: simpy.Environment, options: Storage, seed: int, floor_ns: int = 0) -> None:
        """Create the storage with its medium.  `floor_ns`: time that flat storage adds to each file."""
        attempts = Attempts(env, options.retry)
        super().__init__(attempts, _medium(attempts, options, seed, floor_ns), FileLedger())
        self.env = env
        self.options = options
        self.seed = seed
        self.merged = None if options.merging is None else MergedFiles(self, options.merging)
        self._disks: dict[int, FileSystem] = {}  # by TaskManager; their files are in the ledger of this storage

    def continue_from(self, older: CheckpointStorage) -> None:
        """Take over the files of the storage of the previous job instance, and the objects that it counts as stored."""
        self.files.adopt(older.files)
        if isinstance(self.medium, ObjectStorage) and isinstance(older.medium, ObjectStorage):
            self.medium.requests.continue_from(older.medium.requests)

    def write_metadata(self, checkpoint: int = 0, size_bytes: int = 0) -> Work[FileId]:
        """Process: write the _metadata file of a checkpoint, and return its id.  Raises StorageFailed.

        `size_bytes` is the state that it contains.  Flink writes it on the I/O executor of the CheckpointCoordinator.
        """
        stream = self.open("_metadata", checkpoint, host=-1)
        if self.options.metadata_ns:
            yield from self.attempts.spend(self.options.metadata_ns)
        if isinstance(self.medium, FlatStorage):
            return stream.closed(size_bytes)
        yield from stream.write(size_bytes)
        return (yield from stream.close())

    def is_inlined(self, size_bytes: int) -> bool:
        """Return True if state is stored in the acknowledgement instead of a file, because it is small (FsCheckpointStreamFactory)."""
        return size_bytes <= self.options.inline_threshold_bytes

    def end_merging(self, checkpoint: int) -> Work[None]:
        """Process: close the physical files of a subsumed or aborted checkpoint.  Raises StorageFailed."""
        if self.merged is not None:
            yield from self.merged.end(checkpoint)

    def may_reuse(self, file: FileId) -> bool:
        """Return True if a later checkpoint may refer to the file.  It may not if the physical file wastes too much space."""
        return self.merged is None or self.merged.may_reuse(file)

    def disk(self, host: int) -> FileSystem:
        """Return the local disk of a TaskManager.  Writing to it raises DiskFull when it has no space left."""
        if host not in self._disks:
            attempts = Attempts(self.env, Retry())  # outages of checkpoint storage do not affect local disks
            link = node_link(self.options.disk.bytes_per_second, self.options.disk.slow, self.seed, host)
            medium = LocalDisk(attempts, self.options.disk, link)
            self._disks[host] = FileSystem(attempts, medium, self.files, disk=True)
        return self._disks[host]

    def lose_disk(self, host: int) -> None:
        """Delete the files on the disk of a lost TaskManager, in no time.  Its replacement has an empty disk."""
        self._disks.pop(host, None)
        for stored in self.files:
            if stored.disk and stored.host == host and stored.deleted_ns is None:
                stored.deleted_ns = int(self.env.now)

    def fail_until(self, until_ns: int) -> None:
        """Begin an outage: requests in progress fail, and storage is unreachable until `until_ns`.  Clients retry."""
        self.attempts.fail_until(until_ns)


def _medium(attempts: Attempts, options: Storage, seed: int, floor_ns: int) -> Medium:
    network, interfaces = SharedNetwork(attempts), NetworkInterfaces(options.nic_bytes_per_second)
    if options.kind is not None:
        return MEDIA[options.kind.name].make(attempts, network, interfaces, options.options, seed)
    return FlatStorage(attempts, options, seed, floor_ns)

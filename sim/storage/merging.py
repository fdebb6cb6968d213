"""Several small files of one checkpoint in one physical file (FLIP-306, FileMergingSnapshotManagerBase).

A writer takes an idle physical file of its group, or creates one (the non-blocking pool), appends, and gives it back.  What it appended is
durable then (the stream is flushed, not closed).  A physical file is closed when it is large enough or its checkpoint is over, and
deleted when nothing in it is needed any more.  If too much of the space is wasted, the files that waste most are not referred to again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sim.model.storage import FileMerging
from sim.storage.attempts import Attempts
from sim.storage.ledger import FileId, FileLedger, Name, StoredFile
from sim.storage.stream import FileStream
from sim.storage.work import Work, outlasting


class PhysicalFiles(Protocol):
    """The storage of physical files.  `FileSystem` implements it."""

    @property
    def attempts(self) -> Attempts: ...

    @property
    def files(self) -> FileLedger: ...

    def open(self, *name: str | int, host: int = 0) -> FileStream: ...

    def delete(self, files: Iterable[FileId], *, host: int = -1) -> Work[None]: ...


class _Group(NamedTuple):
    """The key of small files that may share a physical file."""

    host: int
    by: int | None  # checkpoint; None: across their boundaries
    owner: str  # a subtask; empty: all of the task manager


class MergedFiles:
    """The logical files of a job and the physical files that hold them."""

    def __init__(self, system: PhysicalFiles, options: FileMerging) -> None:
        self.system = system
        self.options = options
        self._idle: dict[_Group, list[FileStream]] = {}
        self._over: set[int] = set()  # checkpoints nothing more comes for
        self._made = 0
        self._inside: dict[FileId, list[StoredFile]] = {}  # physical file -> the logical ones in it that are needed
        self._worn: set[FileId] = set()  # physical files that waste too much

    def takes(self, size_bytes: int) -> bool:
        """Whether a file is small enough to share."""
        return size_bytes < self.options.max_file_bytes

    def write(self, size_bytes: int, name: Name, host: int, by: int, owner: str) -> Work[FileId]:
        """Process: a logical file, appended to a physical one.  Raises StorageFailed."""
        group = _Group(host, None if self.options.across else by, owner)
        idle = self._idle.setdefault(group, [])
        physical = idle.pop(0) if idle else self._create(group)
        logical = self.system.files.create(name, host, self.system.attempts.now, disk=physical.file.disk, inside=physical.file.id)
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
            yield from outlasting(self._close(physical))
        except BaseException:  # no handle names the logical file; the physical one may hold others
            self._discard(logical, physical.file.id)
            raise
        return logical.id

    def end(self, by: int) -> Work[None]:
        """Process: a checkpoint is subsumed or aborted; its physical files are closed, wasted space is looked at."""
        self._over.add(by)
        for group in [group for group in self._idle if group.by == by]:
            for physical in self._idle.pop(group):
                yield from self._close(physical)
        for host in sorted({self.system.files[physical].host for physical in self._inside}):
            self._control_space(host)

    def delete(self, logical: StoredFile, physical: FileId, host: int) -> Work[None]:
        """Process: the physical file goes with the last logical file in it, once it is closed."""
        if physical not in self._inside:  # an older job wrote the file
            needed = (file for file in self.system.files if file.inside == physical and file.deleted_ns is None)
            self._inside[physical] = [*needed, logical]
        self._inside[physical].remove(logical)
        if self.system.files[physical].complete and not self._inside[physical]:
            yield from self._delete(physical, host)

    def may_reuse(self, file: FileId) -> bool:
        """Whether a later checkpoint may refer to the file; if not, its bytes are written again, so that space becomes free."""
        return self.system.files[file].inside not in self._worn

    def _control_space(self, host: int) -> None:
        """Wear out the files that waste most until the rest is within bounds (FileMergingSnapshotManagerBase#controlSpace)."""
        most = self.options.max_space_amplification
        if most < 1:
            return
        files = self.system.files
        needed = {p: sum(logical.size_bytes for logical in inside) for p, inside in self._inside.items() if files[p].host == host}
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
        logical.deleted_ns = logical.removed_ns = self.system.attempts.now
        if logical in self._inside.get(physical, ()):
            self._inside[physical].remove(logical)

    def _close(self, physical: FileStream) -> Work[None]:
        file = yield from physical.close()
        if not self._inside.get(file):  # all that was in it has been deleted in the meantime
            yield from self._delete(file, physical.host)

    def _delete(self, physical: FileId, host: int) -> Work[None]:
        self._inside.pop(physical, None)
        self._worn.discard(physical)
        yield from self.system.delete([physical], host=host)

    def _create(self, group: _Group) -> FileStream:
        self._made += 1
        return self.system.open("merged", -1 if group.by is None else group.by, group.owner, self._made, host=group.host)

"""Several small files of one checkpoint in one physical file (FLIP-306, FileMergingSnapshotManagerBase).

A writer takes an idle physical file of its task manager and checkpoint, or creates one (the non-blocking pool), appends, and gives it
back; what it appended is durable then (the stream is flushed, not closed).  A physical file is closed when it is large enough or its
checkpoint is over, and deleted when nothing in it is needed any more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sim.model.storage import FileMerging
from sim.storage.ledger import FileId, Name, StoredFile
from sim.storage.stream import Stream
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.storage.filesystem import FileSystem

__all__ = ["MergedFiles"]

Group = tuple[int, str | int]
"""(task manager, whatever its files may be merged by: a checkpoint; or one for all)."""


class MergedFiles:
    def __init__(self, system: FileSystem, options: FileMerging) -> None:
        self.system = system
        self.options = options
        self._idle: dict[Group, list[Stream]] = {}
        self._over: set[Group] = set()
        self._made = 0
        self._inside: dict[FileId, list[StoredFile]] = {}  # physical file -> the logical ones in it

    def takes(self, size_bytes: int) -> bool:
        """Whether a file is small enough to share."""
        return size_bytes < self.options.max_file_bytes

    def write(self, size_bytes: int, name: Name, host: int, by: str | int) -> Work[FileId]:
        """Process: a logical file, appended to a physical one.  Raises StorageFailed."""
        group = self._group(host, by)
        idle = self._idle.setdefault(group, [])
        physical = idle.pop(0) if idle else self._create(group)
        logical = self.system.files.create(name, host, self.system.attempts.now, inside=physical.file.id)
        try:
            yield from physical.write(size_bytes)
        except BaseException:
            logical.given_up_ns = self.system.attempts.now
            raise
        logical.size_bytes = size_bytes
        self._inside.setdefault(physical.file.id, []).append(logical)
        self.system.files.close(logical, self.system.attempts.now)
        if physical.file.size_bytes >= self.options.max_file_bytes or group in self._over:
            yield from self._close(physical)
        else:
            idle.append(physical)
        return logical.id

    def end(self, by: str | int) -> Work[None]:
        """Process: nothing more comes for a checkpoint (it is complete, or aborted): its physical files are closed."""
        if not self.options.across:
            for group in [group for group in self._idle if group[1] == by]:
                self._over.add(group)
                for physical in self._idle.pop(group):
                    yield from self._close(physical)

    def delete(self, logical: StoredFile, physical: FileId, host: int) -> Work[None]:
        """Process: the physical file goes with the last logical file in it, once it is closed."""
        self._inside[physical].remove(logical)
        if self.system.files[physical].whole and not self._inside[physical]:
            yield from self.system.delete([physical], host=host)

    def may_reuse(self, file: FileId) -> bool:
        """Whether a later checkpoint may refer to the file; if not, its bytes are written again, so that space is freed.

        Flink: not if the physical files of the task manager are more than `max-space-amplification` times what is needed in them.
        """
        stored = self.system.files[file]
        if stored.inside is None or self.options.max_space_amplification < 1:
            return True
        mine = [(self.system.files[p].size_bytes, files) for p, files in self._inside.items() if self.system.files[p].host == stored.host]
        needed = sum(logical.size_bytes for _, files in mine for logical in files)
        return Fraction(sum(size for size, files in mine if files)) <= self.options.max_space_amplification * needed

    def _close(self, physical: Stream) -> Work[None]:
        file = yield from physical.close()
        if not self._inside.get(file):  # all that was in it has been deleted in the meantime
            yield from self.system.delete([file], host=physical.host)

    def _create(self, group: Group) -> Stream:
        self._made += 1
        return self.system.open("merged", group[1], self._made, host=group[0])

    def _group(self, host: int, by: str | int) -> Group:
        return host, "all" if self.options.across else by

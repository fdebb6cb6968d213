"""The owner of state: a subtask, its task manager, and its files in storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sim.model.job import Vertex
from sim.model.key_groups import key_groups
from sim.model.state import StateOptions
from sim.model.stored import SnapshotType
from sim.runtime.taskmanager.processor import WorkOnCore, on_own_core
from sim.state.compaction import CompactionThread
from sim.state.files import File, Handle
from sim.storage import CheckpointStorage, FileId
from sim.storage.work import Work


@dataclass(frozen=True, slots=True)
class StateOwner:
    """The subtask that owns state.  `host`: its task manager.

    `slow` is called with the factor by which its asynchronous work slows its thread down.
    `work_on_core`: a process for work and the processor time beside it.  `compaction`: the thread that compacts for the host.
    """

    vertex: Vertex
    index: int
    seed: int
    options: StateOptions = StateOptions()
    host: int = 0
    slow: Callable[[Fraction], None] = lambda _: None
    work_on_core: WorkOnCore = on_own_core
    compaction: CompactionThread | None = None

    @property
    def share(self) -> Fraction:
        """The share of the subtask in the key groups."""
        groups = self.vertex.max_parallelism
        return Fraction(len(key_groups(self.index, self.vertex.parallelism, groups)), groups)

    @property
    def keyed_bytes(self) -> int:
        """The share of the subtask in the keyed state that the job begins with [bytes]."""
        return 0 if self.vertex.state is None else int(self.vertex.state.bytes * self.share)

    def write(
        self, storage: CheckpointStorage, handles: list[Handle], file: File, name: tuple[str | int, ...], merge: int | None,
    ) -> Work[None]:  # fmt: skip
        """Process: one file; small ones travel in the acknowledgement, in no time.  Raises StorageFailed."""
        written = None
        if not storage.is_inlined(file.size_bytes):
            owner = f"{self.vertex.name}/{self.index}" if file.scope == "shared" else ""
            written = yield from storage.write(file.size_bytes, *name, host=self.host, merge=merge, owner=owner)
        handles.append(Handle(file.name, file.size_bytes, file.scope, written))

    def read(self, storage: CheckpointStorage, handle: Handle, size_bytes: int) -> Work[None]:
        """Process: part of a file; what travelled in an acknowledgement is in the metadata.  Raises StorageFailed."""
        if handle.file is not None and size_bytes:
            yield from storage.read(size_bytes, *storage.files[FileId(handle.file)].name, host=self.host)


def merge_of(type_: SnapshotType, checkpoint: int) -> int | None:
    """The checkpoint whose physical files a snapshot may share.  None: a savepoint shares none."""
    return None if type_ in ("canonical", "native") else checkpoint

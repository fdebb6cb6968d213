"""What one subtask writes per snapshot besides in-flight data: sizes, and the files of the asynchronous phase.

Heap state is always written in full (HeapSnapshotStrategy); keyed state and operator state of a subtask go one after
the other through the task's one asynchronous thread (OperatorSnapshotFinalizer), so two files cost two latencies.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

import simpy

from sim.model.job import Snapshot, Vertex
from sim.model.random import draw, stream
from sim.storage.filesystem import CheckpointStorage

__all__ = ["SubtaskState"]


@dataclass(frozen=True, slots=True)
class SubtaskState:
    vertex: Vertex
    index: int
    seed: int

    @property
    def keyed_bytes(self) -> int:
        """This subtask's share of the keyed state, by key groups (KeyGroupRangeAssignment)."""
        if self.vertex.state is None:
            return 0
        groups, p = self.vertex.max_parallelism, self.vertex.parallelism
        first = (self.index * groups + p - 1) // p
        last = ((self.index + 1) * groups - 1) // p
        return self.vertex.state.bytes * (last - first + 1) // groups

    @property
    def total_bytes(self) -> int:
        return self.keyed_bytes + self._own.operator_state_bytes

    def work_ns(self, phase: Literal["pre_barrier", "sync", "async"], checkpoint: int) -> int:
        """The operator's own work in a phase of this snapshot: paid with its probability, drawn per phase, subtask and snapshot."""
        cost = {"pre_barrier": self._own.pre_barrier_ns, "sync": self._own.sync_ns, "async": self._own.async_ns}[phase]
        if not cost:
            return 0
        share = self._own.probability
        u = draw(stream(self.seed, "snapshot-work", phase, self.vertex.name, self.index), checkpoint)
        return cost if u * share.denominator < share.numerator << 32 else 0

    def write(self, storage: CheckpointStorage, kind: Literal["keyed", "operator"], checkpoint: int) -> Generator[simpy.Event, None, None]:
        """Process: one file of the asynchronous phase (none if it is empty or small enough to travel inline)."""
        size_bytes = self.keyed_bytes if kind == "keyed" else self._own.operator_state_bytes
        if size_bytes and not storage.is_inlined(size_bytes):
            yield from storage.write(size_bytes, kind, self.vertex.name, self.index, checkpoint)

    @property
    def _own(self) -> Snapshot:
        return self.vertex.snapshot

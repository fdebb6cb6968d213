"""How one barrier travels: the options inside it.  They travel *in* the barrier and may differ per edge.

Source: Flink's CheckpointOptions and its AlignmentType; which edge rewrites them is `forced.py`.
"""

from __future__ import annotations

from enum import Enum

from sim.model.stored import SnapshotType
from sim.protocol.machine import changed
from sim.protocol.value_class import value_class


class Ending(Enum):
    """The way in which the data of a task ends (StopMode): with finish() of its operators, or without."""

    DRAIN = "drain"
    NO_DRAIN = "no-drain"
    AFTERWARDS = "savepoint-then-finish"  # as before FLIP-147: finish() follows the savepoint, and nothing holds what it emits


class AlignmentType(Enum):
    """The reaction of a reader to a barrier (CheckpointOptions.AlignmentType)."""

    __hash__ = object.__hash__  # members are themselves and nothing else; the hash of Enum is a function in Python

    AT_LEAST_ONCE = "at-least-once"  # counts it, never blocks
    ALIGNED = "aligned"  # waits for the others; with a timeout until the deadline at most
    UNALIGNED = "unaligned"  # snapshots at the first one
    FORCED_ALIGNED = "forced-aligned"  # waits on this edge only; the reader goes on as the checkpoint was meant


@value_class
class Traits:
    """The traits of a barrier's marker in the data plane."""

    priority: bool  # overtakes data
    blocking: bool  # nothing follows it before the reader resumes
    announced: bool  # reader is told of its arrival, writer of its departure


_TRAITS = {
    AlignmentType.AT_LEAST_ONCE: Traits(priority=False, blocking=False, announced=False),
    AlignmentType.ALIGNED: Traits(priority=False, blocking=True, announced=False),
    AlignmentType.UNALIGNED: Traits(priority=True, blocking=False, announced=False),
    AlignmentType.FORCED_ALIGNED: Traits(priority=False, blocking=True, announced=False),
}
_ANNOUNCED = Traits(priority=False, blocking=True, announced=True)  # aligned, with a deadline


@value_class
class BarrierOptions:
    """The options that one barrier carries."""

    trigger_ns: int  # t0 of the checkpoint
    alignment: AlignmentType = AlignmentType.ALIGNED
    aligned_timeout_ns: int | None = None  # counted from t0; None: never; only (forced) aligned barriers have one
    savepoint: bool = False
    stop: Ending | None = None  # of a savepoint: sources end their data this way and take part only then
    type: SnapshotType | None = None  # None: a checkpoint is an ordinary one, a savepoint canonical

    @property
    def snapshot_type(self) -> SnapshotType:
        """What the state backends are asked for."""
        return self.type or ("canonical" if self.savepoint else "checkpoint")

    @property
    def unaligned(self) -> bool:
        return self.alignment is AlignmentType.UNALIGNED

    @property
    def timeoutable(self) -> bool:
        """Aligned until the deadline (a forced aligned barrier never is: CheckpointOptions.isTimeoutable)."""
        return self.alignment is AlignmentType.ALIGNED and self.aligned_timeout_ns is not None

    @property
    def deadline_ns(self) -> int:
        """When a timeoutable barrier turns unaligned [ns]: one clock for all tasks (FLINK-23041)."""
        if self.aligned_timeout_ns is None:
            raise ValueError("only a barrier with a timeout has a deadline")
        return self.trigger_ns + self.aligned_timeout_ns

    def has_priority(self, now: int, *, converted: bool) -> bool:
        """Whether a barrier processed at `now` [ns] is a priority barrier.

        `converted`: its sender converts it in its output queue at the deadline (since FLINK-27251), never before it.
        """
        return self.unaligned or (converted and self.timeoutable and now >= self.deadline_ns)

    @property
    def traits(self) -> Traits:
        return _ANNOUNCED if self.timeoutable else _TRAITS[self.alignment]

    @property
    def needs_channel_state(self) -> bool:
        """Whether in-flight data may belong to the snapshot (CheckpointOptions.needsChannelState)."""
        return self.unaligned or self.timeoutable

    def as_unaligned(self) -> BarrierOptions:
        """The options after the timeout, without a deadline (CheckpointOptions.toUnaligned)."""
        return changed(self, alignment=AlignmentType.UNALIGNED, aligned_timeout_ns=None)

    def on_forced_edge(self) -> BarrierOptions:
        """What an edge without support for unaligned checkpoints carries (withUnalignedUnsupported)."""
        return changed(self, alignment=AlignmentType.FORCED_ALIGNED) if self.needs_channel_state else self

    def restored(self) -> BarrierOptions:
        """What a task reached by a forced aligned barrier writes to its own outputs (withUnalignedSupported)."""
        if self.alignment is not AlignmentType.FORCED_ALIGNED:
            return self
        meant = AlignmentType.UNALIGNED if self.aligned_timeout_ns is None else AlignmentType.ALIGNED
        return changed(self, alignment=meant)

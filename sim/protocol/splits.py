"""The splits of a source: which reader owns each, and what a checkpoint holds of that (SourceCoordinator, SplitAssignmentTracker).

An enumerator assigns each split when it discovers it, to its readers in turn.  Its snapshot is taken at the trigger, and
its messages wait until the barrier is in the reader, so that a checkpoint holds all splits as they were at the trigger.
A regional checkpoint (FLIP-600) asks it for a second state, which is later, and gives it back what readers of failed
regions have got since their fallback.  Discovery is a fixed interval; the load of readers does not depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from sim.protocol.machine import replace, value_class


@value_class
class Splits:
    """Who owns the splits of a source, which are numbered as they are discovered."""

    discovered: int = 0
    unassigned: tuple[int, ...] = ()  # owned by the enumerator
    owned: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by reader

    def owners(self, split: int) -> list[int]:
        """Return the readers that own a split, and -1 if the enumerator does."""
        readers = [reader for reader, splits in sorted(self.owned.items()) if split in splits]
        return [*readers, *[-1] * (split in self.unassigned)]


@value_class
class Assignment:
    """A split that a reader has got."""

    reader: int
    split: int
    after: int  # the latest checkpoint that had been triggered


@value_class
class SplitEnumerator:
    """The enumerator of a source."""

    readers: tuple[int, ...]
    live: Splits = Splits()
    next_reader: int = 0
    newest: int = 0  # the latest checkpoint that was triggered
    checkpoints: Mapping[int, Splits] = field(default_factory=dict)
    tracked: tuple[Assignment, ...] = ()  # assignments that are in no completed checkpoint, as far as it was told

    def discover(self) -> SplitEnumerator:
        """Discover a split, and assign it with all that have come back."""
        after, owned = self, dict(self.live.owned)
        for split in (*self.live.unassigned, self.live.discovered):
            reader = after.readers[after.next_reader % len(after.readers)]
            owned[reader] = (*owned.get(reader, ()), split)
            tracked = (*after.tracked, Assignment(reader, split, after.newest))
            after = replace(after, next_reader=after.next_reader + 1, tracked=tracked)
        return replace(after, live=Splits(self.live.discovered + 1, (), owned))

    def trigger(self, checkpoint: int) -> SplitEnumerator:
        """Take a snapshot."""
        return replace(self, newest=checkpoint, checkpoints={**self.checkpoints, checkpoint: self.live})

    def fall_back(self, checkpoint: int, fallback: int, failed: Collection[int]) -> SplitEnumerator:
        """Replace the state of a checkpoint by one that fits older parts of some readers (checkpointCoordinatorForRegionFallback).

        As in the proposal's unit test, what these readers have got since then goes back to the live enumerator, although
        they go on reading it.
        """
        before, held = self.checkpoints.get(fallback, Splits()), dict(self.checkpoints[checkpoint].owned)
        held |= {reader: before.owned.get(reader, ()) for reader in failed}
        after = self.take_back(fallback, failed)
        state = Splits(after.live.discovered, after.live.unassigned, held)
        return replace(after, checkpoints={**self.checkpoints, checkpoint: state})

    def take_back(self, checkpoint: int, readers: Collection[int]) -> SplitEnumerator:
        """Take back the splits that these readers have got since a checkpoint (getAndRemoveUncheckpointedAssignment)."""
        since = [row for row in self.tracked if row.reader in readers and row.after >= checkpoint]
        unassigned = (*self.live.unassigned, *(row.split for row in since))
        tracked = tuple(row for row in self.tracked if row not in since)
        return replace(self, live=replace(self.live, unassigned=unassigned), tracked=tracked)

    def complete(self, checkpoint: int) -> SplitEnumerator:
        """Forget the assignments in a completed checkpoint.  After a fallback the enumerator does not hear of the completion."""
        return replace(self, tracked=tuple(row for row in self.tracked if row.after >= checkpoint))

    def restore(self, checkpoint: int, readers: Collection[int], *, resets: bool) -> SplitEnumerator:
        """Restart readers from a checkpoint.  The enumerator goes on, unless it `resets` with a new JobManager."""
        state = self.checkpoints.get(checkpoint, Splits())
        if resets:
            return replace(self, live=state, tracked=())
        after = self.take_back(checkpoint, readers)
        owned = {**after.live.owned, **{reader: state.owned.get(reader, ()) for reader in readers}}
        return replace(after, live=replace(after.live, owned=owned))

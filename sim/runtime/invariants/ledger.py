"""The ledger of record positions.  It is independent of what checkpoints store, so that both can be compared.

The ledger records the position of each task when it takes a snapshot (its cut).  A restart sets tasks back to such a
position, and from there the number of processed records advances it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class RecordTally:
    """The positions of all tasks, in records since the start of the job."""

    served: Numbers  # by task: records processed
    late: Numbers  # by task: records processed whose outputs are pending
    read: Numbers  # by channel
    written: Numbers  # by channel
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]  # by task: whether its position was recorded

    @classmethod
    def zero(cls, tasks: int, channels: int) -> RecordTally:
        """Return a tally in which all positions are 0 and unknown."""
        served, late = np.zeros((2, tasks), np.int64)
        read, written = np.zeros((2, channels), np.int64)
        return cls(served, late, read, written, np.zeros(tasks, np.bool_))


@dataclass(slots=True)
class Ledger:
    """The recorded positions of all tasks at their cuts.

    `inputs`, `outputs`: channels of each task.  `ends`: (reader, writer) task of each channel.
    """

    inputs: Sequence[Numbers | slice]
    outputs: Sequence[Numbers | slice]
    ends: tuple[np.ndarray, np.ndarray]
    ahead: RecordTally  # difference between the position of a task and its count since its restart
    notes: dict[int, RecordTally] = field(default_factory=dict)  # checkpoint -> positions; call `of` to read them
    # checkpoint -> (task, read, written): channel positions that `of` merges into `notes` on demand, because few are read
    _fresh: dict[int, list[tuple[int, Numbers, Numbers]]] = field(default_factory=dict)
    _moved: bool = False  # whether some value of `ahead` may differ from 0

    @classmethod
    def opened(cls, inputs: Sequence[Numbers | slice], outputs: Sequence[Numbers | slice], channels: int) -> Ledger:
        """Return an empty ledger.  `inputs`, `outputs`: channels of each task.  `channels`: number of channels."""
        tally = RecordTally.zero(len(inputs), channels)
        readers, writers = np.zeros((2, len(tally.read)), np.int32)
        for task, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
            readers[read], writers[written] = task, task
        return cls(inputs, outputs, (readers, writers), tally)

    def note(
        self, checkpoint: int, task: int, served: int, late: int, read: Numbers, written: Numbers
    ) -> tuple[int, Numbers, Numbers]:
        """Record the counts of a task at its cut.  Return its position: (records processed, read, written)."""
        if self._moved:
            served += int(self.ahead.served[task])
            read, written = self.ahead.read[self.inputs[task]] + read, self.ahead.written[self.outputs[task]] + written
        note = self._noted(checkpoint)
        note.served[task], note.late[task], note.known[task] = served, late, True
        self._fresh.setdefault(checkpoint, []).append((task, read, written))
        return served, read, written

    def served(self, checkpoint: int, task: int) -> int:
        """Return the number of records that a task had processed at its cut, or 0 if unknown."""
        note = self.notes.get(checkpoint)
        return 0 if note is None else int(note.served[task])

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """Record that a task reuses its part of the earlier checkpoint `before`."""
        note, old, inputs, outputs = self._noted(checkpoint), self.of(before), self.inputs[task], self.outputs[task]
        note.served[task], note.late[task], note.known[task] = old.served[task], old.late[task], old.known[task]
        note.read[inputs], note.written[outputs] = old.read[inputs], old.written[outputs]

    def _noted(self, checkpoint: int) -> RecordTally:
        """Return the positions recorded for a checkpoint, which are added if there are none."""
        note = self.notes.get(checkpoint)
        if note is None:
            note = self.notes[checkpoint] = RecordTally.zero(len(self.inputs), len(self.ahead.read))
        return note

    def of(self, checkpoint: int) -> RecordTally:
        """Return the positions of tasks at their cuts for a checkpoint; unknown ones are 0."""
        note = self.notes.get(checkpoint)
        if note is None:
            return RecordTally.zero(len(self.inputs), len(self.ahead.read))
        for task, read, written in self._fresh.pop(checkpoint, ()):
            note.read[self.inputs[task]], note.written[self.outputs[task]] = read, written
        return note

    def restart_at(self, tally: RecordTally, counted: RecordTally) -> None:
        """Set restarted tasks to the positions in `tally`.

        `counted`: current counts of the data plane; `counted.known` selects the restarted tasks.
        """
        self._moved = True
        which = counted.known
        read, written = which[self.ends[0]], which[self.ends[1]]
        self.ahead.served[which] = tally.served[which] - counted.served[which]
        self.ahead.read[read] = tally.read[read] - counted.read[read]
        self.ahead.written[written] = tally.written[written] - counted.written[written]

    def stands(self, counted: RecordTally) -> RecordTally:
        """Return the positions of tasks whose counts since their restart are `counted`."""
        ahead = self.ahead
        sums = ahead.served + counted.served, counted.late, ahead.read + counted.read, ahead.written + counted.written
        return RecordTally(*sums, counted.known)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Drop checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.notes if gone(number)]:
            del self.notes[checkpoint]
            self._fresh.pop(checkpoint, None)

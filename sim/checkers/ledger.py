"""An account of records that no restore touches: where each task must stand, by what it has done since its last start.

The ledger notes where a task stood at each of its cuts.  A restart goes back to a note; from there only counted work leads on.
Nothing here is read from what a checkpoint stores, so both can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(slots=True)
class RecordTally:
    """The positions of tasks, in records since the beginning of the job."""

    served: Numbers  # by task
    late: Numbers  # by task: of those served, how many have not written their outputs
    read: Numbers  # by channel
    written: Numbers
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]  # by task: whether it was noted

    @classmethod
    def zero(cls, tasks: int, channels: int) -> RecordTally:
        served, late = np.zeros((2, tasks), np.int64)
        read, written = np.zeros((2, channels), np.int64)
        return cls(served, late, read, written, np.zeros(tasks, np.bool_))


@dataclass(slots=True)
class Ledger:
    """The account of records that no restore changes.

    `inputs`, `outputs`: the channels of each task; `ends`: the task at the read and at the written end of each channel.
    """

    inputs: Sequence[Numbers | slice]
    outputs: Sequence[Numbers | slice]
    ends: tuple[np.ndarray, np.ndarray]
    ahead: RecordTally  # what is to be added to a task's counts to say where it stands
    notes: dict[int, RecordTally] = field(default_factory=dict)  # by checkpoint

    @classmethod
    def opened(cls, inputs: Sequence[Numbers | slice], outputs: Sequence[Numbers | slice], channels: int) -> Ledger:
        tally = RecordTally.zero(len(inputs), channels)
        readers, writers = np.zeros((2, len(tally.read)), np.int32)
        for task, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
            readers[read], writers[written] = task, task
        return cls(inputs, outputs, (readers, writers), tally)

    def note(self, checkpoint: int, task: int, served: int, late: int, read: Numbers, written: Numbers) -> tuple[int, Numbers, Numbers]:
        """The task is at its cut, with these counts; where it stands: records served, read and written."""
        note = self._noted(checkpoint)
        inputs, outputs = self.inputs[task], self.outputs[task]
        stands = int(self.ahead.served[task]) + served, self.ahead.read[inputs] + read, self.ahead.written[outputs] + written
        note.served[task], note.read[inputs], note.written[outputs] = stands
        note.late[task], note.known[task] = late, True
        return stands

    def keep(self, checkpoint: int, task: int, before: int) -> None:
        """The part of the task is the one that it has in a checkpoint before."""
        note, old, inputs, outputs = self._noted(checkpoint), self.of(before), self.inputs[task], self.outputs[task]
        note.served[task], note.late[task], note.known[task] = old.served[task], old.late[task], old.known[task]
        note.read[inputs], note.written[outputs] = old.read[inputs], old.written[outputs]

    def _noted(self, checkpoint: int) -> RecordTally:
        note = self.notes.get(checkpoint)
        if note is None:
            note = self.notes[checkpoint] = RecordTally.zero(len(self.inputs), len(self.ahead.read))
        return note

    def of(self, checkpoint: int) -> RecordTally:
        """Where the tasks stood at their cuts; without a note they begin."""
        note = self.notes.get(checkpoint)
        return RecordTally.zero(len(self.inputs), len(self.ahead.read)) if note is None else note

    def stand(self, tally: RecordTally, counted: RecordTally) -> None:
        """The tasks known to the counts have been started where the tally says."""
        which = counted.known
        read, written = which[self.ends[0]], which[self.ends[1]]
        self.ahead.served[which] = tally.served[which] - counted.served[which]
        self.ahead.read[read] = tally.read[read] - counted.read[read]
        self.ahead.written[written] = tally.written[written] - counted.written[written]

    def stands(self, counted: RecordTally) -> RecordTally:
        """Where tasks with these counts stand."""
        ahead = self.ahead
        sums = ahead.served + counted.served, counted.late, ahead.read + counted.read, ahead.written + counted.written
        return RecordTally(*sums, counted.known)

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Checkpoints that can neither complete nor be restored any more."""
        for checkpoint in [number for number in self.notes if gone(number)]:
            del self.notes[checkpoint]

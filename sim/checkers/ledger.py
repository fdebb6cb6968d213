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
    notes: dict[int, RecordTally] = field(default_factory=dict)  # by checkpoint; `of` gives one to read
    _fresh: dict[int, list[tuple[int, Numbers, Numbers]]] = field(default_factory=dict)  # by channel, and not in their note: few are read
    _moved: bool = False  # there is something ahead

    @classmethod
    def opened(cls, inputs: Sequence[Numbers | slice], outputs: Sequence[Numbers | slice], channels: int) -> Ledger:
        tally = RecordTally.zero(len(inputs), channels)
        readers, writers = np.zeros((2, len(tally.read)), np.int32)
        for task, (read, written) in enumerate(zip(inputs, outputs, strict=True)):
            readers[read], writers[written] = task, task
        return cls(inputs, outputs, (readers, writers), tally)

    def note(self, checkpoint: int, task: int, served: int, late: int, read: Numbers, written: Numbers) -> tuple[int, Numbers, Numbers]:
        """The task is at its cut, with these counts; where it stands: records served, read and written."""
        if self._moved:
            served += int(self.ahead.served[task])
            read, written = self.ahead.read[self.inputs[task]] + read, self.ahead.written[self.outputs[task]] + written
        note = self._noted(checkpoint)
        note.served[task], note.late[task], note.known[task] = served, late, True
        self._fresh.setdefault(checkpoint, []).append((task, read, written))
        return served, read, written

    def served(self, checkpoint: int, task: int) -> int:
        """The records that the task had served at its cut; without a note it begins."""
        note = self.notes.get(checkpoint)
        return 0 if note is None else int(note.served[task])

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
        if note is None:
            return RecordTally.zero(len(self.inputs), len(self.ahead.read))
        for task, read, written in self._fresh.pop(checkpoint, ()):
            note.read[self.inputs[task]], note.written[self.outputs[task]] = read, written
        return note

    def stand(self, tally: RecordTally, counted: RecordTally) -> None:
        """The tasks known to the counts have been started where the tally says."""
        self._moved = True
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
            self._fresh.pop(checkpoint, None)

"""The account of records: what tasks have done, kept apart from what checkpoints hold, and compared with it.

A job that begins from a snapshot of another one goes on with that one's account, dealt out anew if it has other parallelisms.
It reads the counts that no restart touches (rule P8 of the plane).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from sim.checkers.dealing import Shape, misdealt
from sim.checkers.last_word import emitted_afterwards, kept_back
from sim.checkers.ledger import RecordTally
from sim.checkers.returns import Written, held_by, misnoted, misplaced, owed, unanswered, unread, unwritten, up_to
from sim.checkers.violation import Violation
from sim.metrics.journal import Happening
from sim.metrics.stats import stopped_with
from sim.plane.seam.interface import Ship
from sim.protocol.options import Ending
from sim.runtime.accounts.account import EndOfRun, RunAccount, WatchedRun
from sim.runtime.accounts.cuts import CutAccount
from sim.runtime.contents import TaskSnapshot
from sim.runtime.context import Context


class RecordAccount(RunAccount):
    """Keeps the ledger: where tasks stood at their cuts, and must stand after a restart.

    `cuts`: says which cuts are not exact; `forget_all`: has all accounts forget checkpoints.
    """

    def __init__(self, watched: WatchedRun, cuts: CutAccount, forget_all: Callable[[Callable[[int], bool]], None]) -> None:
        super().__init__(watched)
        self.cuts = cuts
        self._forget_all = forget_all
        layout, edges = self.context.layout, self.context.spec.edges
        self._outputs = [
            Written(task, np.array(channels, np.int64), *edges[edge].fan_out, edges[edge].ship == Ship.BROADCAST)
            for task, edge, channels in layout.partitions
        ]
        self._surplus = [0] * len(self._outputs)  # what each of them held at the beginning beyond its rule
        self._shape = _shape(self.context)
        self._before: RecordAccount | None = None  # of the job this one began from, until everything of it stands somewhere
        self._rescaled: set[int] = set()  # vertices that had other parallelisms in this chain of jobs

    def go_on(self, before: RecordAccount, checkpoint: int) -> None:
        self._rescaled = set(before._rescaled)
        stood: RecordAccount = before if before._before is None else before._before  # a job that never stood has no account of its own
        if stood.context.names == self.context.names and stood._shape.channels_alike(self._shape):
            self.ledger.notes[checkpoint], self._surplus = stood.ledger.of(checkpoint), list(stood._surplus)
        else:
            self._before = stood
            self._rescaled |= stood._shape.resized(self._shape)

    # ------------------------------------------------------------------------------------------ while the job runs

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        if checkpoint not in self.ledger.notes:
            self._forget_all(lambda number: number in self.context.stats and self.context.stats[number].status == "FAILED")
        counted, position = self.context.plane.counted(task), part.position
        served, read, written = self.ledger.note(checkpoint, task, counted.served, position.late, counted.read, counted.written)
        if served == position.served and _same(read, position.records_out) and _same(written, position.records_in):
            return
        fact = (
            f"it says that {position.served} records were served, {int(position.records_out.sum())} read, "
            f"{int(position.records_in.sum())} written; {served}, {int(read.sum())}, {int(written.sum())} have been"
        )
        self.found.append(misnoted(self.now_ns, checkpoint, task, fact, self.teller))

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        self.ledger.keep(checkpoint, task, before)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        self._forget_all(lambda number: number < checkpoint and number not in retained and not self._is_savepoint(number))

    def _is_savepoint(self, number: int) -> bool:
        return number in self.context.stats and bool(self.context.stats[number].savepoint_format)

    def forget(self, gone: Callable[[int], bool]) -> None:
        self.ledger.forget(gone)

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        restored = self.context.journal.last(Happening.JOB_RESTORED)
        counted = self._counted(tasks)
        stands = self._standing(counted.known)
        if self._before is not None:
            self._begin_with(self._before, checkpoint, stands)
        expected = self.ledger.of(checkpoint)
        self.found.extend(misplaced(restored, self.ledger, expected, stands, self.teller, input_differs=checkpoint in self.cuts.surpluses))
        self.ledger.stand(stands, counted)
        again = [(row, surplus) for row, surplus in zip(self._outputs, self._surplus, strict=True) if expected.known[row.task]]
        when = f"at checkpoint {checkpoint}"
        rows, before = [row for row, _ in again], [surplus for _, surplus in again]
        self.found.extend(unwritten(restored.time_ns, rows, expected, before, when, self.teller))

    def _begin_with(self, before: RecordAccount, checkpoint: int, stands: RecordTally) -> None:
        """Tasks begin where the snapshot, dealt out anew, puts them: compared as soon as all of them stand."""
        note = self.ledger.notes[checkpoint] = self.ledger.of(checkpoint)
        fresh = stands.known & ~note.known
        read, written = fresh[self.ledger.ends[0]], fresh[self.ledger.ends[1]]
        note.served[fresh], note.late[fresh], note.known[fresh] = stands.served[fresh], stands.late[fresh], True
        note.read[read], note.written[written] = stands.read[read], stands.written[written]
        if note.known.all():
            self._before, old = None, (before._shape, before.ledger.of(checkpoint))
            number = before.context.instance
            where = f"job {number + 1}, begun from checkpoint {checkpoint} of job {number}"
            self.found.extend(misdealt(self.now_ns, where, old, (self._shape, note)))
            self._surplus = [held_by(row, note) - owed(row, note) for row in self._outputs]

    # ------------------------------------------------------------------------------------------ at the end

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        if not end.finished:
            return
        context = self.context
        tally = self.ledger.stands(self._counted(range(len(context.layout.vertex))))
        stopped = stopped_with(context.stats)
        if stopped:
            yield from emitted_afterwards(self.now_ns, max(stopped), self._emitted(max(stopped), tally), self.teller)
        yield from kept_back(self.now_ns, self.ends.in_use())
        ends = list(zip(context.layout.writer, context.layout.reader, strict=True))
        yield from unread(self.now_ns, ends, self._to_be_read(tally), [] if stopped else self._totals(), self.teller)
        yield from unwritten(self.now_ns, self._outputs, tally, self._surplus, "at the end", self.teller)
        vertices = context.scenario.job.vertices
        owing = (task for task, vertex in enumerate(context.layout.vertex) if vertices[vertex].owes_outputs and not self.ends.drops(task))
        yield from unanswered(self.now_ns, filter(self._drained, owing), tally, self.teller)

    def _emitted(self, savepoint: int, tally: RecordTally) -> Iterator[tuple[int, int, int]]:
        """(source, records at its cut, records in the end) of those that stopped with this savepoint."""
        note = self.ledger.of(savepoint)
        for task in range(len(self.ends)):
            if not self.context.layout.task_gates[task] and note.known[task] and self.ends.end(task).stop == savepoint:
                yield task, int(note.served[task]), int(tally.served[task])

    def _to_be_read(self, tally: RecordTally) -> RecordTally:
        """What must have been read.  What a task stopped without a drain wrote behind its cut is in the savepoint: read or not."""
        ends = [self.ends.end(task) for task in range(len(self.ends))]
        for stop in {end.stop for end in ends if end.stop is not None}:
            tasks = np.array([end.stop == stop and end.ending is Ending.NO_DRAIN for end in ends])
            tally = up_to(tally, self.ledger.of(stop), tasks[self.ledger.ends[1]])
        return tally

    def _drained(self, task: int) -> bool:
        return self.ends.end(task).drained

    def _totals(self) -> list[tuple[int, int]]:
        """(source, records it has), where they are bounded and were never dealt out anew."""
        vertices, layout = self.context.scenario.job.vertices, self.context.layout
        totals = (
            (task, vertices[vertex].total(subtask))
            for task, (vertex, subtask) in enumerate(zip(layout.vertex, layout.subtask, strict=True))
            if vertex not in self._rescaled
        )
        return [(task, total) for task, total in totals if total is not None]

    # ------------------------------------------------------------------------------------------ reading the plane

    def _counted(self, tasks: Iterable[int]) -> RecordTally:
        plane, ledger = self.context.plane, self.ledger
        tally = RecordTally.zero(len(ledger.inputs), len(ledger.ahead.read))
        for task in tasks:
            counted = plane.counted(task)
            tally.served[task], tally.late[task], tally.known[task] = counted.served, plane.position(task).late, True
            tally.read[ledger.inputs[task]], tally.written[ledger.outputs[task]] = counted.read, counted.written
        return tally

    def _standing(self, which: np.ndarray) -> RecordTally:
        """The counts of the plane's tables."""
        channels = self.context.plane.channels("records_in", "records_out")
        late = np.array([self.context.plane.position(task).late if known else 0 for task, known in enumerate(which.tolist())], np.int64)
        return RecordTally(self.context.plane.served(), late, channels["records_in"], channels["records_out"], which)


def _same(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two rows are equal.  Every cut is compared, and the bytes of a few numbers compare quickest."""
    return mine.tobytes() == theirs.tobytes()


def _shape(context: Context) -> Shape:
    layout, spec = context.layout, context.spec
    vertex, edge = np.array(layout.vertex, np.int64), np.array(layout.edge, np.int64)
    return Shape(
        tuple(row.name for row in spec.vertices),
        tuple(np.flatnonzero(vertex == number) for number in range(len(spec.vertices))),
        tuple((row.upstream, row.downstream) for row in spec.edges),
        tuple(np.flatnonzero(edge == number) for number in range(len(spec.edges))),
    )

"""Monitors of records: state of restored tasks, cuts of checkpoints, record positions, converted barriers, partitioning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from sim.invariants.checkpoints import leaked_resources, outputs_after_end
from sim.invariants.counts import (
    RecordTally,
    Route,
    Written,
    actual_output,
    expected_output,
    lost_pending_outputs,
    misrouted_records,
    output_errors,
    position_errors,
    snapshot_position_error,
    unread_records,
    up_to,
)
from sim.invariants.cuts import Cut, Cuts, unconverted_barriers
from sim.invariants.recovery import ONCE, Surplus, restore_errors, story_of_restore
from sim.invariants.state import (
    RESTORED,
    Kind,
    RestoredState,
    Shape,
    Stamp,
    redistribution_errors,
    restored_state_differences,
    state_redistribution_errors,
    union_errors,
)
from sim.invariants.violation import Violation
from sim.model.randomness import draw, stream
from sim.plane.interface import Ship, is_bare
from sim.protocol.options import Ending
from sim.results.journal import Happening
from sim.results.tables import stopped_with
from sim.runtime.context import Context, StateSnapshot, TaskSnapshot
from sim.runtime.monitors.monitor import ByCheckpoint, EndOfRun, InvariantMonitor, WatchedRun

# ---- State of each checkpoint, and whether restored tasks get all of it: snapshots carry stamps, which are listed here too.

_Part = dict[Kind, tuple[Stamp, int]]
"""Kind of state -> its stamp and its size [bytes]."""


class StateMonitor(InvariantMonitor):
    """Checks that restored tasks get exactly the state that their checkpoint contains."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.names = self.context.names
        self.parts = ByCheckpoint[int, _Part]()
        # checkpoint of another job instance -> (monitor of that instance, vertices that were rescaled since)
        self._rescaled_from: dict[int, tuple[StateMonitor, frozenset[str]]] = {}
        # task of a rescaled vertex -> state it has restored
        self._restored_parts: dict[int, Sequence[RestoredState]] = {}

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Stamp a snapshot with its owner, and record the sizes of its state."""
        stamp = snapshot.stamp = Stamp(self.context.instance, checkpoint, *self.names[task])
        sizes: dict[Kind, int] = {
            "keyed": snapshot.keyed.full_bytes,
            "windows": snapshot.window_bytes,
            "operator": snapshot.operator_bytes,
            "union": snapshot.union_bytes,
        }
        self.parts.setdefault(checkpoint, {})[task] = {
            kind: (stamp, size_bytes) for kind, size_bytes in sizes.items() if size_bytes
        }

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        self.parts.keep(checkpoint, before, task)

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Check the state that a task has restored, and how many records it contains."""
        vertex, index = self.names[task]
        where = f"{vertex}[{index}], restored from checkpoint {checkpoint}"
        served = self.ledger.served(checkpoint, task)
        if restored_parts and restored_record_count != served:
            fact = f"its state goes on as after {restored_record_count} records, its checkpoint holds what {served} records did"
            self.found.append(Violation(RESTORED, self.context.env.now, where, fact, self._story(checkpoint, task)))
        is_resized = checkpoint in self._rescaled_from and vertex in self._rescaled_from[checkpoint][1]
        taker = self._rescaled_from[checkpoint][0] if is_resized else self
        story = lambda: self._story(checkpoint, task)  # noqa: E731
        union = [part["union"] for part in taker.parts_of(checkpoint, vertex) if "union" in part]
        self.found.extend(
            union_errors(self.now_ns, where, union, [piece for piece in restored_parts if piece.kind == "union"], story)
        )
        restored_parts = [piece for piece in restored_parts if piece.kind != "union"]
        if is_resized:
            self._restored_parts[task] = restored_parts
            self._check_redistribution(checkpoint, self.context.layout.vertex[task])
            return
        part = dict(self.parts.get(checkpoint, {}).get(task, {}))
        part.pop("union", None)
        self.found.extend(restored_state_differences(self.now_ns, where, part, restored_parts, story))

    def parts_of(self, checkpoint: int, vertex: str) -> Iterator[_Part]:
        """Return the state that each subtask of a vertex has stored in a checkpoint."""
        return (part for task, part in self.parts.get(checkpoint, {}).items() if self.names[task][0] == vertex)

    def continue_from(self, before: StateMonitor, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint, which may have been taken by an earlier instance than `before`.

        Vertices that were rescaled since then get redistributed state.
        """
        taker, resized = before._rescaled_from.get(checkpoint, (before, frozenset[str]()))
        resized |= self.resized(before)
        number, self.parts[checkpoint] = {name: task for task, name in enumerate(self.names)}, {}
        for task, part in taker.parts.get(checkpoint, {}).items():
            if taker.names[task] in number:
                self.parts[checkpoint][number[taker.names[task]]] = part
        if resized:
            self._rescaled_from[checkpoint] = taker, resized

    def _story(self, checkpoint: int, task: int) -> tuple[str, ...]:
        """Return the journal rows about the checkpoint and its restore, for one task."""
        return story_of_restore(
            self.context.journal.last(Happening.JOB_RESTORED), {checkpoint}, (task,), self.formatter
        )

    def _check_redistribution(self, checkpoint: int, vertex: int) -> None:
        """Check the redistribution of a rescaled vertex, once all of its subtasks are restored."""
        tasks = [task for task, other in enumerate(self.context.layout.vertex) if other == vertex]
        if not all(task in self._restored_parts for task in tasks):
            return
        (taker, _), name = self._rescaled_from[checkpoint], self.names[tasks[0]][0]
        stamps: dict[Kind, list[Stamp]] = {"keyed": [], "windows": [], "operator": []}
        for part in taker.parts_of(checkpoint, name):
            for kind in stamps.keys() & part.keys():
                stamps[kind].append(part[kind][0])
        where = f"{name}, rescaled with checkpoint {checkpoint}"
        self.found.extend(
            state_redistribution_errors(
                self.context.env.now, where, name, stamps, [self._restored_parts.pop(task) for task in tasks]
            )
        )


# ---- The cuts of completed checkpoints: the data of each channel that a checkpoint contains.  Checked when it completes.


class CutMonitor(InvariantMonitor):
    """Checks that cuts are consistent, and reports restores from inconsistent ones, which lose or repeat data."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self.cuts = Cuts(self.context.layout.writer, self.context.layout.reader)
        self.surpluses: dict[int, Surplus] = {}  # checkpoint with an inconsistent cut -> the worst channel
        mean_bytes = [np.mean(edge.record_bytes) for edge in self.context.spec.edges]
        self._record_bytes = np.array([mean_bytes[edge] for edge in self.context.layout.edge])
        self._exactly_once = self.context.scenario.checkpoint.barriers.record.exactly_once

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check the cut of a completed checkpoint."""
        self._fill_cut(self.cuts.of(checkpoint), checkpoint)
        violation = self.cuts.violation(checkpoint, self.now_ns, self.formatter, exactly_once=self._exactly_once)
        if violation is not None:
            self.found.append(violation)
        if (worst := self.cuts.worst(checkpoint)) is not None:
            twice_bytes, lost_bytes, channel, account = worst
            twice_records = round(float(self.cuts.of(checkpoint).surplus.clip(0) @ (1 / self._record_bytes)))
            self.surpluses[checkpoint] = Surplus(
                twice_bytes, lost_bytes, self.cuts.ends(channel), account, twice_records
            )
        self.cuts.forget(lambda number: number <= checkpoint)

    def _fill_cut(self, cut: Cut, checkpoint: int) -> None:
        """Fill a cut from the content of its checkpoint, i.e. from what a restore would read."""
        for task, part in self.contents.checkpoints.get(checkpoint, {}).items():
            into, out = self.watched.inputs[task], self.watched.outputs[task]
            cut.consumed[into], cut.written[out] = part.position.consumed, part.position.written
            if not is_bare(part.position):
                cut.captured_input[into], cut.captured_output[out] = part.position.captured, part.position.overtaken

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        surpluses = (
            self.surpluses
            if self._exactly_once
            else {number: row for number, row in self.surpluses.items() if row.lost_bytes}
        )
        yield from restore_errors(end.events, surpluses, self._savepoints(), self.formatter, self.context.begun_from)

    def repetitions(self) -> tuple[Violation, ...]:
        """Return the restores after which records were processed twice, in at-least-once mode, where this is allowed.

        In exactly-once mode return nothing: such restores are violations (invariant 12).
        """
        if self._exactly_once:
            return ()
        surpluses = {number: row for number, row in self.surpluses.items() if not row.lost_bytes}
        violations = restore_errors(
            self.context.journal, surpluses, self._savepoints(), self.formatter, self.context.begun_from
        )
        return tuple(row for row in violations if row.law == ONCE)

    def _savepoints(self) -> set[int]:
        return {number for number, row in self.context.stats.items() if row.savepoint_format}


# ---- Record positions: the records that tasks have processed, counted independently of checkpoints and compared with them.
#
# A job that starts from a snapshot of another instance continues its counts, which are redistributed if the parallelism
# differs.  The monitor reads counters of the data plane that restarts do not reset (rule P8).


class RecordMonitor(InvariantMonitor):
    """Fills the ledger with the positions of tasks at their cuts, and checks the positions of restarted tasks.

    `cuts` tells which cuts are inconsistent.  `forget_all` lets all monitors drop the data of checkpoints.
    """

    def __init__(
        self, watched: WatchedRun, cuts: CutMonitor, forget_all: Callable[[Callable[[int], bool]], None]
    ) -> None:
        super().__init__(watched)
        self.cuts = cuts
        self._forget_all = forget_all
        layout, edges = self.context.layout, self.context.spec.edges
        self._outputs = [
            Written(task, np.array(channels, np.int64), *edges[edge].fan_out, edges[edge].ship == Ship.BROADCAST)
            for task, edge, channels in layout.partitions
        ]
        # records of each output at the start of this instance, in excess of its fan-out
        self._surplus = [0] * len(self._outputs)
        self._shape = _shape(self.context)
        # monitor of the instance that this one starts from, until all tasks are restored; then None
        self._before: RecordMonitor | None = None
        self._rescaled: set[int] = set()  # vertices that have been rescaled in any instance of the job

    def continue_from(self, before: RecordMonitor, checkpoint: int) -> None:
        self._rescaled = set(before._rescaled)
        # an instance that ended before all its tasks were restored has no counts of its own
        stood: RecordMonitor = before if before._before is None else before._before
        if stood.context.names == self.context.names and stood._shape.channels_alike(self._shape):
            self.ledger.notes[checkpoint], self._surplus = stood.ledger.of(checkpoint), list(stood._surplus)
        else:
            self._before = stood
            self._rescaled |= stood._shape.resized(self._shape)

    # ------------------------------------------------------------------------------------------ while the job runs

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record the position of a task at its cut, and check the position in its snapshot."""
        if checkpoint not in self.ledger.notes:
            self._forget_all(
                lambda number: number in self.context.stats and self.context.stats[number].status == "FAILED"
            )
        counted, position = self.context.plane.counted(task), part.position
        served, read, written = self.ledger.note(
            checkpoint, task, counted.served, position.late, counted.read, counted.written
        )
        if (
            served == position.served
            and _same(read, position.records_read)
            and _same(written, position.records_written)
        ):
            return
        fact = (
            f"it says that {position.served} records were served, {int(position.records_read.sum())} read, "
            f"{int(position.records_written.sum())} written; {served}, {int(read.sum())}, {int(written.sum())} have been"
        )
        self.found.append(snapshot_position_error(self.now_ns, checkpoint, task, fact, self.formatter))

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        self.ledger.keep(checkpoint, task, before)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Drop checkpoints that this one has subsumed."""
        self._forget_all(
            lambda number: number < checkpoint and number not in retained and not self._is_savepoint(number)
        )

    def _is_savepoint(self, number: int) -> bool:
        """Return whether a snapshot of this job instance is a savepoint."""
        return number in self.context.stats and bool(self.context.stats[number].savepoint_format)

    def forget(self, gone: Callable[[int], bool]) -> None:
        self.ledger.forget(gone)

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Check the positions of restarted tasks against those at their cuts, and the records in their outputs."""
        restored = self.context.journal.last(Happening.JOB_RESTORED)
        counted = self._tally(tasks)
        stands = self._current_positions(counted.known)
        if self._before is not None:
            self._record_redistributed(self._before, checkpoint, stands)
        expected = self.ledger.of(checkpoint)
        self.found.extend(
            position_errors(
                restored, self.ledger, expected, stands, self.formatter, input_differs=checkpoint in self.cuts.surpluses
            )
        )
        self.ledger.restart_at(stands, counted)
        again = [
            (row, surplus)
            for row, surplus in zip(self._outputs, self._surplus, strict=True)
            if expected.known[row.task]
        ]
        when = f"at checkpoint {checkpoint}"
        rows, before = [row for row, _ in again], [surplus for _, surplus in again]
        self.found.extend(output_errors(restored.time_ns, rows, expected, before, when, self.formatter))

    def _record_redistributed(self, before: RecordMonitor, checkpoint: int, stands: RecordTally) -> None:
        """Record the positions of tasks that start from a redistributed snapshot, and check them when all tasks are restored."""
        note = self.ledger.notes[checkpoint] = self.ledger.of(checkpoint)
        fresh = stands.known & ~note.known
        read, written = fresh[self.ledger.ends[0]], fresh[self.ledger.ends[1]]
        note.served[fresh], note.late[fresh], note.known[fresh] = stands.served[fresh], stands.late[fresh], True
        note.read[read], note.written[written] = stands.read[read], stands.written[written]
        if note.known.all():
            self._before, old = None, (before._shape, before.ledger.of(checkpoint))
            number = before.context.instance
            where = f"job {number + 1}, begun from checkpoint {checkpoint} of job {number}"
            self.found.extend(redistribution_errors(self.now_ns, where, old, (self._shape, note)))
            self._surplus = [actual_output(row, note) - expected_output(row, note) for row in self._outputs]

    # ------------------------------------------------------------------------------------------ at the end

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        """Yield the violations of a finished job: unread or missing records, pending outputs, resources in use."""
        if not end.finished:
            return
        context = self.context
        tally = self.ledger.stands(self._tally(context.tasks))
        stopped = stopped_with(context.stats)
        if stopped:
            yield from outputs_after_end(self.now_ns, max(stopped), self._emitted(max(stopped), tally), self.formatter)
        yield from leaked_resources(self.now_ns, self.ends.in_use())
        ends = list(zip(context.layout.writer, context.layout.reader, strict=True))
        yield from unread_records(
            self.now_ns, ends, self._to_be_read(tally), [] if stopped else self._totals(), self.formatter
        )
        yield from output_errors(self.now_ns, self._outputs, tally, self._surplus, "at the end", self.formatter)
        owing = (
            task
            for task in context.tasks
            if context.vertex(task).has_pending_outputs and not self.ends.drops(task) and self.ends.end(task).drained
        )
        yield from lost_pending_outputs(self.now_ns, owing, tally, self.formatter)

    def _emitted(self, savepoint: int, tally: RecordTally) -> Iterator[tuple[int, int, int]]:
        """Yield (source task, records at its cut, records at the end) of the sources that stopped with this savepoint."""
        note = self.ledger.of(savepoint)
        for task in range(len(self.ends)):
            if not self.context.layout.task_gates[task] and note.known[task] and self.ends.end(task).stop == savepoint:
                yield task, int(note.served[task]), int(tally.served[task])

    def _to_be_read(self, tally: RecordTally) -> RecordTally:
        """Return the records that must have been read at the end of the job.

        Records that a task wrote after its cut of a stop-with-savepoint without drain need not have been read.
        """
        ends = [self.ends.end(task) for task in range(len(self.ends))]
        for stop in {end.stop for end in ends if end.stop is not None}:
            tasks = np.array([end.stop == stop and end.ending is Ending.NO_DRAIN for end in ends])
            tally = up_to(tally, self.ledger.of(stop), tasks[self.ledger.ends[1]])
        return tally

    def _totals(self) -> list[tuple[int, int]]:
        """Return (source task, total records) of bounded sources that were never rescaled."""
        totals = (
            (task, self.context.vertex(task).total(subtask))
            for task, subtask in enumerate(self.context.layout.subtask)
            if self.context.layout.vertex[task] not in self._rescaled
        )
        return [(task, total) for task, total in totals if total is not None]

    # ------------------------------------------------------------------------------------------ reading the plane

    def _tally(self, tasks: Iterable[int]) -> RecordTally:
        """Return the counts of these tasks that restarts do not reset."""
        plane, ledger = self.context.plane, self.ledger
        tally = RecordTally.zero(len(ledger.inputs), len(ledger.ahead.read))
        for task in tasks:
            counted = plane.counted(task)
            tally.served[task], tally.late[task], tally.known[task] = counted.served, plane.position(task).late, True
            tally.read[ledger.inputs[task]], tally.written[ledger.outputs[task]] = counted.read, counted.written
        return tally

    def _current_positions(self, which: np.ndarray) -> RecordTally:
        """Return the current positions of the tasks in the mask `which`, from the tables of the data plane."""
        channels = self.context.plane.channels("records_in", "records_out")
        late = np.array(
            [self.context.plane.position(task).late if is_known else 0 for task, is_known in enumerate(which.tolist())],
            np.int64,
        )
        return RecordTally(self.context.plane.served(), late, channels["records_in"], channels["records_out"], which)


def _same(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether two arrays are equal.  It is called for every cut, and comparing bytes is the fastest for short arrays."""
    return mine.tobytes() == theirs.tobytes()


def _shape(context: Context) -> Shape:
    """Return the vertices and edges of a job with their tasks and channels."""
    layout, spec = context.layout, context.spec
    vertex, edge = np.array(layout.vertex, np.int64), np.array(layout.edge, np.int64)
    return Shape(
        tuple(row.name for row in spec.vertices),
        tuple(np.flatnonzero(vertex == number) for number in range(len(spec.vertices))),
        tuple((row.upstream, row.downstream) for row in spec.edges),
        tuple(np.flatnonzero(edge == number) for number in range(len(spec.edges))),
    )


# ---- Barriers that wait in output queues, and become unaligned there when they time out.


class ConversionMonitor(InvariantMonitor):
    """Checks that barriers which wait in output queues are converted after their alignment timeout."""

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__(watched)
        self._waiting: set[tuple[int, int]] = set()  # (checkpoint, task)
        self._late: set[tuple[int, int]] = set()  # (checkpoint, task): waiting, and the task has handled the timeout

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        """Record that barriers of a task wait in its output queues."""
        self._waiting.add((checkpoint, task))

    def barrier_left(self, checkpoint: int, task: int) -> None:
        """Record that the barriers have left the output queues."""
        self._waiting.discard((checkpoint, task))

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        """Record that the barriers were converted after the timeout."""
        self._waiting.discard((checkpoint, task))
        self._late.discard((checkpoint, task))

    def deadline_heard(self, checkpoint: int, task: int) -> None:
        """Record that the task has handled the alignment timeout of its waiting barriers."""
        if (checkpoint, task) in self._waiting:
            self._late.add((checkpoint, task))

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check a completed checkpoint.  Others are not checked: a task that has cancelled its snapshot converts nothing."""
        if self._late:
            violation = unconverted_barriers(
                self.now_ns, checkpoint, [task for number, task in self._late if number == checkpoint], self.formatter
            )
            self.report_once([] if violation is None else [violation])
        self.forget(lambda number: number <= checkpoint)

    def forget(self, gone: Callable[[int], bool]) -> None:
        for snapshots in (self._waiting, self._late):
            snapshots.difference_update([row for row in snapshots if gone(row[0])])


# ---- Partitioning: at the end of a run, the distribution of the records of each output is computed again and compared.

_CHOOSING = frozenset({Ship.HASH, Ship.REBALANCE, Ship.RESCALE})
"""Ship strategies that choose a channel per record.  Others send to all readers, or to the first one."""


class RouteMonitor(InvariantMonitor):
    """Checks that each record was sent to the right channel, except in jobs that start from a snapshot of another instance.

    In these, the position in the round robin is not known.
    """

    def at_the_end(self, end: EndOfRun) -> Iterator[Violation]:
        if self.context.origin is None:
            yield from misrouted_records(
                self.now_ns, self._routes(), self.context.plane.channels("records_out")["records_out"], self.formatter
            )

    def _routes(self) -> Iterator[Route]:
        """Yield the partitioner of each output that has a choice."""
        spec, layout = self.context.spec, self.context.layout
        for task, number, channels in layout.partitions:
            edge = spec.edges[number]
            if edge.ship not in _CHOOSING or len(channels) == 1:
                continue
            outputs = np.array(channels, np.int64)
            if edge.ship == Ship.HASH:
                keys = stream(spec.seed, "route", edge.name, layout.subtask[task])
                yield Route(task, outputs, keys, np.array(edge.weights, np.int64) if edge.weights else None)
            else:
                turn = (
                    draw(stream(spec.seed, "start", edge.name, layout.subtask[task]), 0)
                    if edge.ship == Ship.REBALANCE
                    else 0
                )
                yield Route(task, outputs, first=turn * len(outputs) >> 32)

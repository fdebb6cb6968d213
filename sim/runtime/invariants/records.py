"""Invariants of records: cuts of checkpoints, positions of restarted tasks, partitioning, and barriers in output queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sim.model.randomness import draw, draws, stream
from sim.plane.interface import EdgeSpec, Layout, Ship, has_no_captured_data
from sim.protocol.options import StopMode
from sim.results.journal import Entry, EventType
from sim.results.tables import stopped_with
from sim.results.violations import Violation, count_is, number_of
from sim.runtime.context import TaskSnapshot
from sim.runtime.invariants.invariant import Invariant, Numbers, RecordTally, Surplus

# ---- Consistent cut (invariant 8): data sent before a barrier is, exactly once, in the reader's snapshot or in in-flight data.
#
# Per checkpoint and channel, in bytes::
#
#     written before the barrier = consumed before the reader's snapshot + captured at the reader + captured at the writer
#
# "Captured" is the in-flight data that the checkpoint stores.  Aligned checkpoints capture nothing.  An at-least-once reader
# may have consumed more (invariant 12), but never less.  An inconsistent cut does harm when its checkpoint is restored.  A restart
# uses the latest completed checkpoint (invariant 24).

CONSISTENT_CUT = (
    "what was sent before a barrier is in the reader's snapshot or in the stored in-flight data, once (consistent cut)"
)
LATEST = "a restart restores the latest completed checkpoint"
ONCE = "every record takes effect on state once, whatever fails"
UNKNOWN = -1


class Cut(NamedTuple):
    """The cut of one checkpoint, by channel [bytes].

    A value is `UNKNOWN` if the task at that end of the channel has not taken its snapshot.
    """

    written: Numbers
    consumed: Numbers
    captured_input: Numbers
    captured_output: Numbers

    @property
    def surplus(self) -> Numbers:
        """The bytes in the checkpoint minus those sent before the barrier: positive if duplicated, negative if lost.

        A task that has taken no snapshot is restored at 0.
        """
        consumed, written = np.maximum(self.consumed, 0), np.maximum(self.written, 0)
        return consumed + self.captured_input + self.captured_output - written

    def account(self, channel: int) -> str:
        """Return the byte counts of a channel, for the evidence."""
        sent, consumed, at_reader, at_writer = (
            "not known" if column[channel] == UNKNOWN else str(column[channel]) for column in self
        )
        return (
            f"bytes sent before the barrier: {sent}; consumed before the reader's snapshot {consumed}, "
            f"captured at the reader {at_reader}, captured at the writer {at_writer}"
        )


class ConsistentCuts(Invariant):
    """Checks that cuts are consistent, and reports restores from inconsistent ones, which lose or repeat data.

    `repetitions` are the restores after which records were processed twice in at-least-once mode, where this is allowed.
    """

    def start(self) -> None:
        mean_bytes = np.array([np.mean(edge.record_bytes) for edge in self.context.spec.edges])
        self._record_bytes = mean_bytes[list(self.context.layout.edge)]
        self._exactly_once = self.context.scenario.checkpoint.barriers.record.exactly_once
        self.repetitions: list[Violation] = []

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check the cut of a completed checkpoint.  A violation is about the channel with the largest error."""
        cut = self.cut_of(checkpoint)
        surplus, unknown = cut.surplus, (cut.written == UNKNOWN) | (cut.consumed == UNKNOWN)
        bad = np.flatnonzero(unknown | (surplus < 0) | ((surplus > 0) & self._exactly_once))
        if len(bad):
            lost = bad[surplus[bad] < 0]
            worst = next(channels for channels in (bad[unknown[bad]], lost, bad) if len(channels))
            self._report_cut(checkpoint, cut, int(worst[np.argmax(np.abs(surplus[worst]))]), len(bad) - 1)
        if surplus.any():
            twice, channel = surplus.clip(0), int(np.argmax(np.abs(surplus)))
            self.run.surpluses[checkpoint] = Surplus(
                int(twice.sum()),
                int((twice - surplus).sum()),
                self._ends(channel),
                cut.account(channel),
                round(float(twice @ (1 / self._record_bytes))),
            )

    def cut_of(self, checkpoint: int) -> Cut:
        """Return the cut of a checkpoint according to its content, i.e. to what a restore would read."""
        channels = len(self.context.layout.writer)
        cut = Cut(*np.full((2, channels), UNKNOWN), *np.zeros((2, channels), np.int64))
        for task, part in self.contents.checkpoints.get(checkpoint, {}).items():
            into, out = self.ledger.inputs[task], self.ledger.outputs[task]
            cut.consumed[into], cut.written[out] = part.position.consumed, part.position.written
            if not has_no_captured_data(part.position):
                cut.captured_input[into], cut.captured_output[out] = part.position.captured, part.position.overtaken
        return cut

    def _ends(self, channel: int) -> tuple[int, int]:
        """Return (writer, reader) of a channel."""
        return self.context.layout.writer[channel], self.context.layout.reader[channel]

    def _report_cut(self, checkpoint: int, cut: Cut, channel: int, others: int) -> None:
        surplus, ends = int(cut.surplus[channel]), self._ends(channel)
        if UNKNOWN in (cut.written[channel], cut.consumed[channel]):
            fact = f"it completed although the {'writer' if cut.written[channel] == UNKNOWN else 'reader'} took no part"
        else:
            fact = f"{count_is(abs(surplus), 'byte')} {'lost' if surplus < 0 else 'held twice'}"
        self.report(
            CONSISTENT_CUT,
            fact + (f" (and {number_of(others, 'more channel')})" if others else ""),
            where=f"checkpoint {checkpoint}, channel {' -> '.join(map(self.formatter.task, ends))}",
            checkpoint=checkpoint,
            tasks=ends,
            notes=[cut.account(channel)],
        )

    def at_the_end(self) -> None:
        """Check that each restart restored the latest completed checkpoint that is not a savepoint, and that its cut is consistent."""
        stats, latest = self.stats, self.context.begun_from
        for row in self.run.events:
            checkpoint = row.checkpoint
            if row.event_type is EventType.COMPLETED:
                savepoint = checkpoint in stats and stats[checkpoint].savepoint_format
                latest = latest if savepoint else max(latest, checkpoint)
            elif row.event_type is EventType.JOB_RESTORED:
                if max(checkpoint, 0) != latest:
                    fact = f"checkpoint {checkpoint} is restored, the latest completed one is {latest}"
                    where = f"restart {row.number}"
                    self.report(LATEST, fact, where=where, time_ns=row.time_ns, checkpoints=(checkpoint, latest))
                if (surplus := self.run.surpluses.get(checkpoint)) is not None:
                    self._report_restore(row, surplus)
                    if not self._exactly_once and not surplus.lost_bytes:
                        self.repetitions.append(self.found.pop())

    def _report_restore(self, row: Entry, surplus: Surplus) -> None:
        """Report the restore of an inconsistent cut."""
        facts, twice = [], surplus.twice_bytes
        if (records := surplus.twice_records) and twice:
            verb = "is" if records == 1 else "are"
            facts.append(f"{number_of(records, 'record')} ({number_of(twice, 'byte')}) {verb} processed twice")
        elif twice:
            facts.append(f"{count_is(twice, 'byte')} processed twice")
        if surplus.lost_bytes:
            facts.append(f"{count_is(surplus.lost_bytes, 'byte')} never processed")
        self.report(
            ONCE,
            " and ".join(facts),
            where=f"restart {row.number} from checkpoint {row.checkpoint}",
            time_ns=row.time_ns,
            checkpoints=[row.checkpoint],
            tasks=surplus.channel,
            notes=[f"{' -> '.join(map(self.formatter.task, surplus.channel))}: {surplus.account}"],
        )


# ---- Record positions: the records that tasks have processed, counted independently of checkpoints and compared with them.
#
# Each restarted task continues from its position in the restored checkpoint.  A job that starts from a snapshot of another
# instance continues its counts, which are redistributed if the parallelism differs.  The invariant reads counters of the
# data plane that restarts do not reset (rule P8).

PLACE = "a restored task goes on where its checkpoint left it"
NOTED = "a snapshot says where its task stands"
OUTPUTS = "every record served leaves its outputs behind, once"
READ = "a job that has finished has read all that was written, and all its sources have"
DEALT = "a rescaled job restores everything in its checkpoint, once"
OWN_KEYS = "records in flight go to the readers that own their key groups"
NOTHING_AFTER_STOP = "after a stop-with-savepoint there is no periodic checkpoint, no restart and no record"
GIVEN_BACK = "a job that has finished has given back what it used: threads, and room on disks"

# facts about a task, for the actual and the expected position; `_check_positions` has the other values
_EMITTED = "it goes on with record {actual}, its checkpoint holds {expected}: {difference} {emitted}"
_SERVED = "it goes on after record {actual}, its checkpoint holds everything up to record {expected}"
_READ = "it goes on with record {actual} of an input, its checkpoint holds {expected}: {difference} {read}"
_WRITTEN = "it goes on with record {actual} of an output, in its checkpoint it had written {expected}"
_WAITING = "{waiting} waiting for outputs, {expected} in its checkpoint"


class Written(NamedTuple):
    """The number of records that a task must write to an output: `num` per `den` processed records.

    The number is that of each channel if `per_channel`, and otherwise the total over all `channels`.
    """

    task: int
    channels: Numbers
    num: int
    den: int
    per_channel: bool

    def counts(self, tally: RecordTally) -> tuple[int, int]:
        """Return (expected, actual) number of records in the output."""
        copies = int(tally.served[self.task] - tally.late[self.task]) * self.num // self.den
        return copies * len(self.channels) if self.per_channel else copies, int(tally.written[self.channels].sum())


class RecordPositions(Invariant):
    """Fills the ledger with the positions of tasks at their cuts, and checks the positions of restarted tasks."""

    def start(self) -> None:
        layout, edges = self.context.layout, self.context.spec.edges
        self._outputs = [
            Written(task, np.array(channels, np.int64), *edges[edge].fan_out, edges[edge].ship == Ship.BROADCAST)
            for task, edge, channels in layout.partitions
        ]
        # records of each output at the start of this instance, in excess of its fan-out
        self._surplus = [0] * len(self._outputs)
        # invariant of the instance that this one starts from, until all tasks are restored; then None
        self._before: RecordPositions | None = None
        # invariant of the instance from whose checkpoint this one starts; None: the first instance
        self._source: RecordPositions | None = None
        self._rescaled = frozenset[str]()  # vertices that have been rescaled in any instance of the job

    def continue_from(self, before: RecordPositions, checkpoint: int) -> None:
        source: RecordPositions = self._instance_to_compare(before, checkpoint)
        self._source, self._rescaled = source, before._rescaled
        if self._has_channels_of(source):
            self.ledger.notes[checkpoint], self._surplus = source.ledger.of(checkpoint), list(source._surplus)
        else:
            self._before = source
            self._rescaled |= self.resized(source)

    def _instance_to_compare(self, before: RecordPositions, checkpoint: int) -> RecordPositions:
        """Return the instance whose records this one begins with: `before`, or an earlier one that took the checkpoint.

        An instance that ended before all its tasks were restored has no counts of its own.  One that began from the same
        checkpoint with another parallelism has redistributed its records, which are redistributed from the checkpoint anew.
        """
        if before._source is None or before.context.begun_from != checkpoint:
            return before
        return before if before._before is None and self._has_channels_of(before) else before._source

    def _has_channels_of(self, other: RecordPositions) -> bool:
        """Return whether another instance has the same tasks and the same channels."""
        return other.context.names == self.context.names and Counter(other.context.layout.edge) == Counter(
            self.context.layout.edge
        )

    # ------------------------------------------------------------------------------------------ while the job runs

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Record the position of a task at its cut, and check the position in its snapshot."""
        stats = self.stats
        if checkpoint not in self.ledger.notes:
            self.run.forget(lambda number: number in stats and stats[number].status == "FAILED")
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
        self.report(NOTED, fact, checkpoint=checkpoint, task=task)

    def part_reused(self, checkpoint: int, task: int, before: int) -> None:
        self.ledger.keep(checkpoint, task, before)

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Drop checkpoints that this one has subsumed."""
        stats = self.stats
        self.run.forget(
            lambda number: (
                number < checkpoint
                and number not in retained
                and not (number in stats and stats[number].savepoint_format)
            )
        )

    def forget(self, gone: Callable[[int], bool]) -> None:
        self.ledger.forget(gone)

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Check the positions of restarted tasks against those at their cuts, and the records in their outputs."""
        counted = self._tally(tasks)
        stands = self._current_positions(counted.known)
        if self._before is not None:
            self._record_redistributed(self._before, checkpoint, stands)
        expected = self.ledger.of(checkpoint)
        self._check_positions(expected, stands)
        self.ledger.restart_at(stands, counted)
        self._check_outputs(expected, expected.known, f"at checkpoint {checkpoint}")

    def _check_positions(self, expected: RecordTally, stands: RecordTally) -> None:
        """Check that restarted tasks continue from the positions of their checkpoint.

        For each kind of position, the first task is reported, and the others are counted.
        """
        restored = self.context.journal.last(EventType.JOB_RESTORED)
        which, (readers, writers) = stands.known, self.ledger.ends
        tasks = np.arange(len(which))
        has_input = np.isin(tasks, readers)
        # if the cut is inconsistent, lost or repeated input is reported by `ConsistentCuts`
        compares_input = restored.checkpoint not in self.run.surpluses
        for column, mask, owners, fact in (
            ("served", which & ~has_input, tasks, _EMITTED),
            ("served", which & has_input, tasks, _SERVED),
            ("late", which, tasks, _WAITING),
            ("read", which[readers] & compares_input, readers, _READ),
            ("written", which[writers], writers, _WRITTEN),
        ):
            before, now = getattr(expected, column), getattr(stands, column)
            places = np.flatnonzero(mask & (before != now))
            if not len(places):
                continue
            position, actual, task = int(before[places[0]]), int(now[places[0]]), int(owners[places[0]])
            fact = fact.format(
                actual=actual,
                expected=position,
                difference=count_is(abs(actual - position), "record"),
                waiting=count_is(actual, "record"),
                emitted="never emitted" if actual > position else "emitted again",
                read="never read" if actual > position else "read again",
            )
            self.report(
                PLACE,
                fact + (f" (and {len(places) - 1} more)" if len(places) > 1 else ""),
                where=f"{self.formatter.task(task)}, restart {restored.number} from checkpoint {restored.checkpoint}",
                checkpoint=restored.checkpoint,
                task=task,
            )

    def _check_outputs(self, tally: RecordTally, which: Sequence[bool] | np.ndarray, when: str) -> None:
        """Check the number of records in each output of these tasks.  Report the first violation."""
        for output, surplus in zip(self._outputs, self._surplus, strict=True):
            expected, actual = output.counts(tally)
            if which[output.task] and actual - expected != surplus:
                fact = f"it should hold {number_of(expected + surplus, 'record')} and holds {actual} ({when})"
                self.report(OUTPUTS, fact, where=f"an output of {self.formatter.task(output.task)}")
                return

    def _record_redistributed(self, before: RecordPositions, checkpoint: int, stands: RecordTally) -> None:
        """Record the positions of tasks that start from a redistributed snapshot, and check them when all tasks are restored."""
        note = self.ledger.notes[checkpoint] = self.ledger.of(checkpoint)
        fresh = stands.known & ~note.known
        read, written = fresh[self.ledger.ends[0]], fresh[self.ledger.ends[1]]
        note.served[fresh], note.late[fresh], note.known[fresh] = stands.served[fresh], stands.late[fresh], True
        note.read[read], note.written[written] = stands.read[read], stands.written[written]
        if note.known.all():
            self._before = None
            self._check_redistribution(before, checkpoint, note)
            self._surplus = [actual - expected for expected, actual in (row.counts(note) for row in self._outputs)]

    def _check_redistribution(self, before: RecordPositions, checkpoint: int, new: RecordTally) -> None:
        """Check that a restart with another parallelism keeps all records: processed, with pending outputs, and in flight."""
        old, resized, spec = before.ledger.of(checkpoint), self.resized(before), self.context.spec
        was, now = before.context.layout, self.context.layout
        instance = before.context.instance
        where = f"job {instance + 1}, begun from checkpoint {checkpoint} of job {instance}"

        def compare(phrase: str, place: str, theirs: Numbers, own: Numbers) -> None:
            """Compare the numbers one by one if there are as many, and otherwise their sums."""
            which, counts = "", (int(theirs.sum()), int(own.sum()))
            if len(theirs) == len(own) > 1 and (theirs != own).any():
                first = int((theirs != own).argmax())
                which, counts = f" ({place} {first})", (int(theirs[first]), int(own[first]))
            if counts[0] != counts[1]:
                fact = f"{count_is(counts[0], 'record')} {phrase} in the checkpoint, {counts[1]} in the new {place}s{which}"
                self.report(DEALT, fact, where=where)

        for number, vertex in enumerate(spec.vertices):
            tasks = [np.flatnonzero(np.equal(layout.vertex, number)) for layout in (was, now)]
            compare(f"served by {vertex.name}", "task", old.served[tasks[0]], new.served[tasks[1]])
            compare(f"waiting for outputs of {vertex.name}", "task", old.late[tasks[0]], new.late[tasks[1]])
        for number, edge in enumerate(spec.edges):
            theirs, own = (np.flatnonzero(np.equal(layout.edge, number)) for layout in (was, now))
            names = [spec.vertices[vertex].name for vertex in (edge.upstream, edge.downstream)]
            between = f"between {' and '.join(names)}"
            if len(theirs) == len(own) and resized.isdisjoint(names):
                compare(f"written {between}", "channel", old.written[theirs], new.written[own])
                compare(f"read {between}", "channel", old.read[theirs], new.read[own])
                continue
            # negative if an at-least-once reader has read records after the barrier, which are sent again
            in_flight = [
                np.maximum((tally.written[channels] - tally.read[channels]).sum(keepdims=True), 0)
                for tally, channels in ((old, theirs), (new, own))
            ]
            compare(f"in flight {between}", "channel", *in_flight)
            if edge.ship in (Ship.HASH, Ship.GLOBAL):
                reader = self.context.scenario.job.vertices[edge.downstream]
                groups = 1 if edge.ship == Ship.GLOBAL else reader.max_parallelism
                former, restored = _unread(old, was, theirs), _unread(new, now, own)
                if fact := misplaced(former, restored, groups):
                    self.report(OWN_KEYS, f"{names[1]}{fact}", where=where)

    # ------------------------------------------------------------------------------------------ at the end

    def at_the_end(self) -> None:
        """Check that a finished job has read all records, has no pending outputs, and uses no resources."""
        if not self.run.finished:
            return
        context, task_name = self.context, self.formatter.task
        tally = self.ledger.stands(self._tally(context.tasks))
        if stopped := stopped_with(context.stats):
            self._check_stop(max(stopped), tally)
        for what in self.ends.in_use():
            self.report(GIVEN_BACK, f"it has finished, and {what}", once=True)
        due = self._to_be_read(tally)
        if len(left := np.flatnonzero(due.read != due.written)):
            writer, reader = context.layout.writer[left[0]], context.layout.reader[left[0]]
            counts = f"{count_is(int(due.written[left].sum()), 'record')} written and {int(due.read[left].sum())} read"
            fact = f"{counts}, on {number_of(len(left), 'channel')}"
            self.report(READ, fact, where=f"{task_name(writer)} -> {task_name(reader)}")
        for task, subtask in enumerate(context.layout.subtask):
            total = context.vertex(task).total(subtask)
            if not (stopped or total in (None, tally.served[task]) or context.names[task][0] in self._rescaled):
                fact = f"it has {number_of(total, 'record')} and has emitted {tally.served[task]}, each counted once"
                self.report(READ, fact, task=task, once="source")
        self._check_outputs(tally, tally.known, "at the end")
        for task in context.tasks:
            pending = context.vertex(task).has_pending_outputs and tally.late[task]
            if pending and not self.ends.drops(task) and self.ends.end(task).drained:
                lost = count_is(int(tally.late[task]), "record")
                fact = f"the job has finished and {lost} lost: the job did not wait for their outputs"
                self.report(OUTPUTS, fact, where=f"an output of {task_name(task)}")

    def _check_stop(self, savepoint: int, tally: RecordTally) -> None:
        """Check that sources of a stopped job emitted exactly the records before the savepoint (invariant 92)."""
        note = self.ledger.of(savepoint)
        for task in self.context.tasks:
            behind = int(tally.served[task] - note.served[task])
            if self.context.layout.task_gates[task] or not (note.known[task] and behind):
                continue
            if self.ends.end(task).stop == savepoint:
                how = "behind" if behind > 0 else "less than in"
                fact = f"{count_is(abs(behind), 'record')} emitted {how} savepoint {savepoint}"
                where = self.formatter.task(task)
                self.report(NOTHING_AFTER_STOP, fact, where=where, checkpoint=savepoint, task=task, once="source")

    def _to_be_read(self, tally: RecordTally) -> RecordTally:
        """Return the tally for comparing written with read records.

        Records that a task wrote after its cut of a stop-with-savepoint without drain need not have been read: on its
        channels, `written` is the number of read records, between the number at the cut and the number in total.
        """
        ends, written = [self.ends.end(task) for task in self.context.tasks], tally.written
        for stop in {end.stop for end in ends if end.stop is not None}:
            tasks = np.array([end.stop == stop and end.ending is StopMode.NO_DRAIN for end in ends])
            up_to_cut = np.clip(tally.read, self.ledger.of(stop).written, written)
            written = np.where(tasks[self.ledger.ends[1]], up_to_cut, written)
        return RecordTally(tally.served, tally.late, tally.read, written, tally.known)

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
        late = np.zeros(len(which), np.int64)
        for task in np.flatnonzero(which).tolist():
            late[task] = self.context.plane.position(task).late
        return RecordTally(self.context.plane.served(), late, channels["records_in"], channels["records_out"], which)


def _unread(tally: RecordTally, layout: Layout, channels: Numbers) -> list[int]:
    """Return the records in flight to each reader of an edge, whose channels are given."""
    readers = np.take(layout.subtask, np.take(layout.reader, channels))
    in_flight = np.bincount(readers, weights=tally.written[channels] - tally.read[channels])
    return [max(0, int(records)) for records in in_flight]


def misplaced(before: Sequence[int], after: Sequence[int], groups: int) -> str:
    """Return which reader gets too few or too many records in flight, or "".

    `before` and `after` have the records of each reader, which belong in equal parts to the key groups that it owns.
    """
    expected, partial = (
        [0.0] * len(after),
        [0] * len(after),
    )  # records, and former readers that share some of their groups
    for reader, records in enumerate(before):
        own = [group for group in range(groups) if group * len(before) // groups == reader]
        for new, common in Counter(group * len(after) // groups for group in own).items():
            expected[new] += records * common / len(own)
            partial[new] += common < len(own)
    for reader, (records, mean, rounded) in enumerate(zip(after, expected, partial, strict=True)):
        if abs(records - mean) > rounded:
            return f"[{reader}] gets {number_of(records, 'record')} in flight, its key groups have {mean:g}"
    return ""


def _same(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether two arrays are equal.  It is called for every cut, and comparing bytes is the fastest for short arrays."""
    return mine.tobytes() == theirs.tobytes()


# ---- Barriers leave output queues before the alignment timeout of their checkpoint, or become unaligned (invariant 120).
#
# Source: SubtaskCheckpointCoordinatorImpl#registerAlignmentTimer, PipelinedSubpartition#alignedBarrierTimeout
# (FLINK-27251).

LEFT_OR_CONVERTED = (
    "a barrier that still waits in an output at the deadline of its checkpoint overtakes what is in front of it"
)


class BarrierTimeouts(Invariant):
    """Checks that barriers which wait in output queues are converted after their alignment timeout."""

    def start(self) -> None:
        self._waiting: set[tuple[int, int]] = set()  # (checkpoint, task)
        self._late: set[tuple[int, int]] = set()  # (checkpoint, task): waiting, and the task has handled the timeout

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        self._waiting.add((checkpoint, task))

    def barrier_left(self, checkpoint: int, task: int) -> None:
        self._waiting.discard((checkpoint, task))

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        self._waiting.discard((checkpoint, task))
        self._late.discard((checkpoint, task))

    def deadline_announced(self, checkpoint: int, task: int) -> None:
        if (checkpoint, task) in self._waiting:
            self._late.add((checkpoint, task))

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Check a completed checkpoint.  Others are not checked: a task that has cancelled its snapshot converts nothing."""
        if late := [task for number, task in self._late if number == checkpoint]:
            task, others = min(late), f" (and {len(late) - 1} more)" if len(late) > 1 else ""
            fact = f"the deadline has passed while its barrier waited in an output, and the barrier was not converted{others}"
            where = f"{self.formatter.task(task)}, checkpoint {checkpoint}"
            self.report(LEFT_OR_CONVERTED, fact, where=where, checkpoint=checkpoint, task=task, once=True)
        self.forget(lambda number: number <= checkpoint)

    def forget(self, gone: Callable[[int], bool]) -> None:
        for snapshots in (self._waiting, self._late):
            snapshots.difference_update([row for row in snapshots if gone(row[0])])


# ---- Partitioning (invariant 119): at the end of a run, the distribution of the records of each output is computed again.
#
# Source: KeyGroupStreamPartitioner, RebalancePartitioner, RescalePartitioner, GlobalPartitioner.

CHOSEN = "each record goes to the reader that its edge chooses"
MAX_KEYED_RECORDS = 100_000
"""Maximum number of keyed records that are checked.  Outputs that would exceed it are skipped."""
_CHOOSING = frozenset({Ship.HASH, Ship.REBALANCE, Ship.RESCALE})
"""Ship strategies that choose a channel per record.  Others send to all readers, or to the first one."""


class Partitioning(Invariant):
    """Checks that each record was sent to the right channel, except in jobs that start from a snapshot of another instance.

    In these, the position in the round robin is not known.
    """

    def at_the_end(self) -> None:
        """Check the number of records on each channel of outputs.  Report the first violation."""
        if self.context.origin is not None:
            return
        written, left = self.context.plane.channels("records_out")["records_out"], MAX_KEYED_RECORDS
        for task, number, channels in self.context.layout.partitions:
            edge = self.context.spec.edges[number]
            if edge.ship not in _CHOOSING or len(channels) == 1 or self.context.spec.compares(edge.ship):
                continue
            own = written[list(channels)]
            records = int(own.sum())
            if edge.ship == Ship.HASH:
                if records > left:
                    continue
                left -= records
            expected = self._choose(edge, task, len(channels), records)
            if not np.array_equal(own, expected):
                place = int((own != expected).argmax())
                fact = f"its channel {place} has {number_of(int(own[place]), 'record')} of {records}, {expected[place]} choose it"
                self.report(CHOSEN, fact, where=f"an output of {self.formatter.task(task)}", once=True)

    def _choose(self, edge: EdgeSpec, task: int, channels: int, records: int) -> Numbers:
        """Return how many of the first `records` records of an output are sent to each of its channels."""
        seed, subtask = self.context.spec.seed, self.context.layout.subtask[task]
        if edge.ship != Ship.HASH:
            turn = draw(stream(seed, "start", edge.name, subtask), 0) if edge.ship == Ship.REBALANCE else 0
            turns = (np.arange(channels) - (turn * channels >> 32)) % channels
            return (records - turns + channels - 1) // channels
        keys = draws(stream(seed, "route", edge.name, subtask), records)
        if edge.weights:  # channel of each slice of the key range
            return np.bincount(np.array(edge.weights)[keys * len(edge.weights) >> 32], minlength=channels)
        return np.bincount(keys * channels >> 32, minlength=channels)

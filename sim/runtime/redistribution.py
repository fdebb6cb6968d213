"""Rescaling: redistribute the state of a checkpoint over the tasks of the same job with another parallelism.

As in Flink (StateAssignmentOperation, InflightDataRescalingDescriptor):

* Keyed state is assigned by key group.
* In-flight data is assigned to the subtask that now reads the channel.  A subtask restores the channel state of every
  former subtask with which it shares key groups, and discards the records of other key groups.
* Pending asynchronous requests and the contents of windows are split evenly, like operator list state
  (OperatorStateHandle.Mode.SPLIT_DISTRIBUTE).

A channel between two vertices of unchanged parallelism keeps its position.  Every other channel restarts at 0 with a
part of the edge's in-flight records.  Those of a hashed edge stay in the key groups of their reader, which all have as
many of them (a hot key is not known); others are split evenly.  Records that a transactional sink has read but not
written are part of its state, so they count as read from the new channel.

In this module, "before" and "old" refer to the job that took the checkpoint, "after" and "new" to the job that is
restored from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sim.model.job import key_groups, overlap, owners
from sim.model.randomness import draw, stream
from sim.model.scenario import Scenario
from sim.plane.interface import EdgeSpec, PlaneSpec, Position, Ship, channels_in, channels_out, create_layout
from sim.runtime.context import TaskSnapshot, Uncommitted
from sim.runtime.plane_spec import plane_spec

_TASK_FIELDS = ("served", "late")
_INPUT_FIELDS = ("consumed", "records_read", "captured")
_OUTPUT_FIELDS = ("written", "records_written", "overtaken")
"""Fields of a `Position` that have one value, a value per input channel, and a value per output channel."""


def redistribute(
    snapshots: Mapping[int, TaskSnapshot], old_spec: PlaneSpec, scenario: Scenario
) -> dict[int, TaskSnapshot]:
    """Return the snapshot that each task of `scenario` is restored from, by task.

    `snapshots` has the snapshot of each task in the checkpoint, which was taken with the data plane `old_spec`.
    """
    before, after = _Positions(old_spec), _Positions(plane_spec(scenario))
    for task, snapshot in snapshots.items():
        before.load(task, snapshot)
    _redistribute_served(before, after)
    groups = [vertex.max_parallelism for vertex in scenario.job.vertices]
    _redistribute_channels(before, after, groups)
    return {
        task: _snapshot_for_task(task, snapshots, before, after, groups[vertex])
        for task, vertex in enumerate(after.layout.vertex)
    }


def served_before(served: np.ndarray, old_spec: PlaneSpec, scenario: Scenario) -> np.ndarray:
    """Return the number of records served before the restart, by task of `scenario`.

    `served` has the counts by task of the data plane `old_spec`.  The total of a rescaled vertex is split evenly among its
    tasks.
    """
    before, after = _Positions(old_spec), _Positions(plane_spec(scenario))
    before.served[:] = served
    _redistribute_served(before, after)
    return after.served


class _Positions:
    """The positions of all tasks of a job, as arrays.

    `served` and `late` have one entry per task, all other arrays one per channel.  The names are those of `Position`.
    `held_back` are the records of each channel that a transactional sink has read but not written.
    """

    def __init__(self, spec: PlaneSpec) -> None:
        self.spec = spec
        self.layout = create_layout(spec)
        task_count, channel_count = len(self.layout.vertex), len(self.layout.writer)
        self.served, self.late = np.zeros((2, task_count), np.int64)
        self.consumed, self.records_read, self.captured, self.written, self.records_written, self.overtaken = np.zeros(
            (6, channel_count), np.int64
        )
        self.held_back = np.zeros(channel_count, np.int64)
        self.inputs = [np.array(channels_in(self.layout, task), np.int64) for task in range(task_count)]
        self.outputs = [np.array(channels_out(self.layout, task), np.int64) for task in range(task_count)]

    def load(self, task: int, snapshot: TaskSnapshot) -> None:
        """Copy the position of a task from its snapshot into the arrays."""
        inputs, outputs = self.inputs[task], self.outputs[task]
        self.held_back[inputs] = snapshot.held_back or 0
        for index, names in ((task, _TASK_FIELDS), (inputs, _INPUT_FIELDS), (outputs, _OUTPUT_FIELDS)):
            for name in names:
                getattr(self, name)[index] = getattr(snapshot.position, name)

    def position(self, task: int) -> Position:
        """Return the position of a task from the arrays."""
        columns = {name: getattr(self, name)[self.inputs[task]] for name in _INPUT_FIELDS}
        columns |= {name: getattr(self, name)[self.outputs[task]] for name in _OUTPUT_FIELDS}
        return Position(int(self.served[task]), late=int(self.late[task]), **columns)

    def held_back_of(self, task: int) -> tuple[int, ...]:
        """Return the records that this task, a transactional sink, has read but not written, by input channel."""
        return tuple(self.held_back[self.inputs[task]].tolist())

    def tasks(self, vertex: int) -> range:
        """Return the numbers of the tasks of a vertex."""
        first = self.layout.first_task[vertex]
        return range(first, first + self.spec.vertices[vertex].parallelism)

    def channels(self, edge: int) -> np.ndarray:
        """Return the numbers of the channels of an edge."""
        return np.flatnonzero(np.array(self.layout.edge) == edge)


def _merge_uncommitted(transactions: list[Uncommitted]) -> Uncommitted | None:
    """Merge the uncommitted transactions of several former committers for one new committer.  Return None if there are none."""
    if not transactions:
        return None
    committables = tuple(row for uncommitted in transactions for row in uncommitted.committables)
    in_flight = tuple(row for uncommitted in transactions for row in uncommitted.in_flight)
    return Uncommitted(transactions[0].checkpoint, committables, in_flight)


def _redistribute_served(before: _Positions, after: _Positions) -> None:
    """Set `served` and `late` of each task in `after`.

    A vertex of unchanged parallelism keeps the counts of its tasks.  The totals of a rescaled vertex are split evenly.
    """
    for vertex in range(len(after.spec.vertices)):
        old, new = before.tasks(vertex), after.tasks(vertex)
        for name in _TASK_FIELDS:
            counts = getattr(before, name)[old]
            getattr(after, name)[new] = counts if len(old) == len(new) else _split_evenly(int(counts.sum()), len(new))


def _redistribute_channels(before: _Positions, after: _Positions, groups: Sequence[int]) -> None:
    """Set the channel arrays of `after`, edge by edge.  `groups`: number of key groups of each vertex.

    The channels of an edge keep their positions if neither end is rescaled.  Otherwise they restart at 0 and share the
    edge's in-flight records.
    """
    for number, edge in enumerate(after.spec.edges):
        old, new = before.channels(number), after.channels(number)
        unchanged = all(len(before.tasks(end)) == len(after.tasks(end)) for end in (edge.upstream, edge.downstream))
        if unchanged and len(old) == len(new):  # a forward edge that has become a rebalance has other channels
            for name in (*_INPUT_FIELDS, *_OUTPUT_FIELDS, "held_back"):
                getattr(after, name)[new] = getattr(before, name)[old]
            continue
        after.held_back[new] = after.records_read[new] = _split_held_back(before, after, edge.downstream, old, new)
        in_flight = _split_in_flight(before, after, edge, old, new, groups[edge.downstream])
        captured, overtaken = int(before.captured[old].sum()), int(before.overtaken[old].sum())
        # the share of in-flight data in output queues; the last records of each new channel are in its output queue again
        overtaken_share = Fraction(overtaken, captured + overtaken) if captured + overtaken else Fraction(0)
        for channel, records in zip(new, in_flight, strict=True):
            read = int(after.records_read[channel])
            sizes = _sizes(after, edge, int(channel), range(read, read + int(records)))
            last = round(records * overtaken_share)
            after.records_written[channel], after.written[channel] = read + records, sum(sizes)
            after.overtaken[channel] = sum(sizes[len(sizes) - last :])
            after.captured[channel] = after.written[channel] - after.overtaken[channel]


def _split_held_back(
    before: _Positions, after: _Positions, vertex: int, old: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Return the held-back records of each new channel of an edge, whose channels are `old` and `new`.

    If the parallelism of the reading `vertex` is unchanged, the records of each reader stay with it and are split evenly
    over its channels.  Otherwise the edge's total is split evenly over all channels.
    """
    held_back = before.held_back[old]
    if len(before.tasks(vertex)) != len(after.tasks(vertex)):
        return _split_evenly(int(held_back.sum()), len(new))
    old_readers, new_readers = np.array(before.layout.reader)[old], np.array(after.layout.reader)[new]
    split = np.zeros(len(new), np.int64)
    for old_reader, new_reader in zip(before.tasks(vertex), after.tasks(vertex), strict=True):
        channels = np.flatnonzero(new_readers == new_reader)
        split[channels] = _split_evenly(int(held_back[old_readers == old_reader].sum()), len(channels))
    return split


def _split_evenly(total: int, parts: int) -> np.ndarray:
    """Split a total evenly into integers.  The first `total % parts` of them are larger by 1."""
    return total // parts + (np.arange(parts) < total % parts)


def _split_in_flight(
    before: _Positions, after: _Positions, edge: EdgeSpec, old: np.ndarray, new: np.ndarray, groups: int
) -> np.ndarray:
    """Return the in-flight records of each new channel of an edge, whose channels are `old` and `new`.

    Records of a hashed edge go to the new readers of the key groups of their reader (SubtaskStateMapper.RANGE), and are
    split evenly over the channels of each.
    """
    # With at-least-once the difference can be negative: a reader may have counted records from behind the barrier, which
    # will be sent again.  No record is in flight then.
    in_flight = before.records_written[old] - before.records_read[old]
    total = max(0, int(in_flight.sum()))
    if edge.ship not in (Ship.HASH, Ship.GLOBAL):
        return _split_evenly(total, len(new))
    parallelism = len(before.tasks(edge.downstream)), len(after.tasks(edge.downstream))
    by_reader = np.zeros(parallelism[1], np.int64)
    if edge.ship == Ship.GLOBAL:
        by_reader[0] = total
    else:
        old_readers, new_owners = _readers(before, old), np.array(owners(parallelism[1], groups))
        for reader in range(parallelism[0]):
            records = max(0, int(in_flight[old_readers == reader].sum()))
            own = key_groups(reader, parallelism[0], groups)
            cumulative = np.cumsum(np.bincount(new_owners[own.start : own.stop], minlength=parallelism[1]))
            by_reader += np.diff(records * cumulative // len(own), prepend=0)
    split, new_readers = np.zeros(len(new), np.int64), _readers(after, new)
    for reader, records in enumerate(by_reader.tolist()):
        channels = np.flatnonzero(new_readers == reader)
        split[channels] = _split_evenly(records, len(channels))
    return split


def _readers(positions: _Positions, channels: np.ndarray) -> np.ndarray:
    """Return the subtask that reads each of these channels."""
    return np.take(positions.layout.subtask, np.take(positions.layout.reader, channels))


def _sizes(positions: _Positions, edge: EdgeSpec, channel: int, records: range) -> list[int]:
    """Return the size of each of these records of a channel in bytes (B1 in ``sim/plane/RULES.md``)."""
    plan, table = positions.layout, edge.record_bytes
    writer, reader = plan.subtask[plan.writer[channel]], plan.subtask[plan.reader[channel]]
    key = stream(positions.spec.seed, "size", edge.name, writer, reader)
    return [table[draw(key, i) * len(table) >> 32] for i in records]


def _feature_state(snapshots: Sequence[TaskSnapshot], subtask: int, parallelism: int) -> dict[str, Any]:
    """Return the state of each task feature for one new subtask; each feature redistributes its own state.

    `snapshots` are those of all former subtasks.  Tasks that had finished have no such state.
    """
    features = {name: state for snapshot in snapshots for name, state in snapshot.kept.items()}
    return {name: state.redistribute(snapshots, subtask, parallelism) for name, state in features.items()}


def _read_bytes(readers: Iterable[TaskSnapshot], writers: Iterable[TaskSnapshot]) -> int:
    """Return the bytes of channel state that a restore reads: input of the former `readers`, output of the former `writers`."""
    return sum(int(snapshot.position.captured.sum()) for snapshot in readers) + sum(
        int(snapshot.position.overtaken.sum()) for snapshot in writers
    )


def _snapshot_for_task(
    task: int, snapshots: Mapping[int, TaskSnapshot], before: _Positions, after: _Positions, groups: int
) -> TaskSnapshot:
    """Return the snapshot that one task of the rescaled job is restored from.

    `snapshots` are those of all former tasks.  `groups` is the maximum parallelism of the task's vertex.
    """
    vertex, subtask, position = after.layout.vertex[task], after.layout.subtask[task], after.position(task)
    old, new = before.tasks(vertex), after.tasks(vertex)
    if len(old) == len(new) and old[subtask] in snapshots:
        former = snapshots[old[subtask]]
        restored = replace(former, position=position, held_back=after.held_back_of(task) if former.held_back else ())
        # a record split by the barrier is one record now, so the in-flight bytes may differ from those captured
        return replace(restored, inlined_bytes=restored.in_flight_bytes if former.inlined_bytes else 0)
    shares = overlap(subtask, len(new), len(old), groups)
    sharing = [(snapshots[old[i]], share) for i, share in shares.items() if old[i] in snapshots]
    # output channel state and committables are not split: those of former subtask i go to new subtask i % len(new)
    undivided = [snapshots[old[i]] for i in range(subtask, len(old), len(new)) if old[i] in snapshots]
    return TaskSnapshot(
        max((snapshot.checkpoint for snapshot in snapshots.values()), default=0),
        position,
        sum(int(snapshot.state_bytes * share) for snapshot, share in sharing),
        held_back=after.held_back_of(task) if any(snapshot.held_back for snapshot, _ in sharing) else (),
        committables=_merge_uncommitted(
            [snapshot.committables for snapshot in undivided if snapshot.committables is not None]
        ),
        kept=_feature_state([snapshots[former] for former in old if former in snapshots], subtask, len(new)),
        parts=tuple((part, part_share * share) for snapshot, share in sharing for part, part_share in snapshot.parts),
        read_bytes=_read_bytes([snapshot for snapshot, _ in sharing], undivided),
        inlined_bytes=_read_bytes(
            [snapshot for snapshot, _ in sharing if snapshot.inlined_bytes],
            [snapshot for snapshot in undivided if snapshot.inlined_bytes],
        ),
    )

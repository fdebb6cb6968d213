"""Rescaling: redistribute the state of a checkpoint over the tasks of the same job with another parallelism.

As in Flink (StateAssignmentOperation, InflightDataRescalingDescriptor):

* Keyed state is assigned by key group.
* In-flight data is assigned to the subtask that now reads the channel.  A subtask restores the channel state of every
  former subtask with which it shares key groups, and discards the records of other key groups.
* Pending asynchronous requests and the contents of windows are split evenly, like operator list state
  (OperatorStateHandle.Mode.SPLIT_DISTRIBUTE).

A channel between two vertices of unchanged parallelism keeps its position.  Every other channel restarts at 0 with a
part of the edge's in-flight records, which are distributed like new records.  Records that a transactional sink has
read but not written are part of its state, so they count as read from the new channel.

In this module, "before" and "old" refer to the job that took the checkpoint, "after" and "new" to the job that is
restored from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sim.model.job import overlap
from sim.model.randomness import draw, stream
from sim.model.scenario import Scenario
from sim.plane.interface import Position
from sim.plane.spec import EdgeSpec, PlaneSpec, layout
from sim.runtime.context import TaskSnapshot, Uncommitted
from sim.runtime.lowering import plane_spec


def redistributed(
    parts: Mapping[int, TaskSnapshot], old: PlaneSpec, new: PlaneSpec, key_groups: tuple[int, ...]
) -> dict[int, TaskSnapshot]:
    """Return the snapshot that each task of the rescaled job is restored from, by task.

    `parts` has the snapshot of each task in the checkpoint.  `old` and `new` are the data planes before and after
    rescaling.  `key_groups` is the number of key groups (maximum parallelism) of each vertex.
    """
    before, after = _Streams(old), _Streams(new)
    for task, part in parts.items():
        before.take(task, part)
    _deal_records(before, after)
    _deal_streams(before, after)
    return {task: _share(task, parts, before, after, key_groups) for task in range(len(after.layout.vertex))}


def rescaled(parts: Mapping[int, TaskSnapshot], before: PlaneSpec, scenario: Scenario) -> dict[int, TaskSnapshot]:
    """Return the snapshot that each task of `scenario` is restored from, by task.

    `parts` has the snapshot of each task in the checkpoint, which was taken with the data plane `before`.
    """
    return redistributed(
        parts, before, plane_spec(scenario), tuple(vertex.max_parallelism for vertex in scenario.job.vertices)
    )


def served_before(served: np.ndarray, before: PlaneSpec, scenario: Scenario) -> np.ndarray:
    """Return the number of records served before the restart, by task of `scenario`.

    `served` has the counts by task of the data plane `before`.  The total of a rescaled vertex is split evenly among its
    tasks.
    """
    spec = plane_spec(scenario)
    here = np.zeros(sum(vertex.parallelism for vertex in spec.vertices), np.int64)
    old, new = layout(before).first_task, layout(spec).first_task
    for vertex, stopped, first, began in zip(spec.vertices, before.vertices, new, old, strict=True):
        own = served[began : began + stopped.parallelism]
        same = vertex.parallelism == stopped.parallelism
        here[first : first + vertex.parallelism] = own if same else _even(int(own.sum()), vertex.parallelism)
    return here


class _Streams:
    """The positions of all tasks of a job, as arrays.

    `served` and `late` have one entry per task, all other arrays one per channel.  The names are those of `Position`:
    `records_in` were written to the channel, `records_out` were read from it.  `held_back` are the records of each channel
    that a transactional sink has read but not written.
    """

    def __init__(self, spec: PlaneSpec) -> None:
        self.spec = spec
        self.layout = layout(spec)
        tasks, channels = len(self.layout.vertex), len(self.layout.writer)
        self.served, self.late = np.zeros((2, tasks), np.int64)
        self.inputs = [_flat(self.layout.gates[g][2] for g in self.layout.task_gates[t]) for t in range(tasks)]
        self.outputs = [
            _flat(self.layout.partitions[p][2] for p in self.layout.task_partitions[t]) for t in range(tasks)
        ]
        self.consumed, self.records_out, self.captured, self.written, self.records_in, self.overtaken = np.zeros(
            (6, channels), np.int64
        )
        self.held_back = np.zeros(channels, np.int64)

    def take(self, task: int, part: TaskSnapshot) -> None:
        """Copy the position of a task from its snapshot into the arrays."""
        into, out, position = self.inputs[task], self.outputs[task], part.position
        self.held_back[into] = part.held_back or 0
        self.served[task], self.late[task] = position.served, position.late
        self.consumed[into], self.records_out[into], self.captured[into] = (
            position.consumed,
            position.records_out,
            position.captured,
        )
        self.written[out], self.records_in[out], self.overtaken[out] = (
            position.written,
            position.records_in,
            position.overtaken,
        )

    def position(self, task: int) -> Position:
        """Return the position of a task from the arrays."""
        into, out = self.inputs[task], self.outputs[task]
        return Position(
            int(self.served[task]),
            self.consumed[into],
            self.records_out[into],
            self.captured[into],
            self.written[out],
            self.records_in[out],
            self.overtaken[out],
            int(self.late[task]),
        )

    def kept_by(self, task: int) -> tuple[int, ...]:
        """Return the records that this task, a transactional sink, has read but not written, by input channel."""
        return tuple(self.held_back[self.inputs[task]].tolist())

    def tasks(self, vertex: int) -> range:
        """Return the numbers of the tasks of a vertex."""
        first = self.layout.first_task[vertex]
        return range(first, first + self.spec.vertices[vertex].parallelism)

    def channels(self, edge: int) -> np.ndarray:
        """Return the numbers of the channels of an edge."""
        return np.flatnonzero(np.array(self.layout.edge) == edge)


def _together(several: list[Uncommitted]) -> Uncommitted | None:
    """Merge the uncommitted transactions of several former committers for one new committer.  Return None if there are none."""
    if not several:
        return None
    committables = tuple(row for uncommitted in several for row in uncommitted.committables)
    behind = tuple(row for uncommitted in several for row in uncommitted.in_flight)
    return Uncommitted(several[0].checkpoint, committables, behind)


def _flat(groups: object) -> np.ndarray:
    """Return the channels of all groups as one array."""
    return np.array([channel for group in groups for channel in group], np.int64)  # type: ignore[attr-defined]  # any iterable of them


def _deal_records(before: _Streams, after: _Streams) -> None:
    """Set `served` and `late` of each task in `after`.

    A vertex of unchanged parallelism keeps the counts of its tasks.  The totals of a rescaled vertex are split evenly.
    """
    for vertex in range(len(after.spec.vertices)):
        old, new = before.tasks(vertex), after.tasks(vertex)
        for column in ("served", "late"):
            own = getattr(before, column)[old]
            getattr(after, column)[new] = own if len(old) == len(new) else _even(int(own.sum()), len(new))


def _deal_streams(before: _Streams, after: _Streams) -> None:
    """Set the channel arrays of `after`, edge by edge.

    The channels of an edge keep their positions if neither end is rescaled.  Otherwise they restart at 0 and share the
    edge's in-flight records.
    """
    for number, edge in enumerate(after.spec.edges):
        old, new = before.channels(number), after.channels(number)
        same = all(len(before.tasks(end)) == len(after.tasks(end)) for end in (edge.upstream, edge.downstream))
        if same and len(old) == len(new):  # not if a forward edge has become a rebalance, which has other channels
            for column in ("consumed", "records_out", "captured", "written", "records_in", "overtaken", "held_back"):
                getattr(after, column)[new] = getattr(before, column)[old]
            continue
        after.held_back[new] = after.records_out[new] = _dealt_by_reader(before, after, edge.downstream, (old, new))
        # With at-least-once the difference can be negative: a reader may have counted records from behind the barrier,
        # which will be sent again.  No record is in flight then.
        in_flight = max(0, int((before.records_in[old] - before.records_out[old]).sum()))
        captured, overtaken = int(before.captured[old].sum()), int(before.overtaken[old].sum())
        # the share of in-flight data in output queues; the last records of each new channel are in its output queue again
        unsent = Fraction(overtaken, captured + overtaken) if captured + overtaken else Fraction(0)
        for channel, records in zip(new, _dealt(in_flight, after, edge, new), strict=True):
            read = int(after.records_out[channel])
            sizes = _sizes(after, edge, int(channel), range(read, read + int(records)))
            last = round(records * unsent)
            after.records_in[channel], after.written[channel] = read + records, sum(sizes)
            after.overtaken[channel] = sum(sizes[len(sizes) - last :])
            after.captured[channel] = after.written[channel] - after.overtaken[channel]


def _dealt_by_reader(
    before: _Streams, after: _Streams, vertex: int, channels: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the held-back records of each new channel of an edge; `channels` are its old and new channels.

    If the parallelism of the reading `vertex` is unchanged, the records of each reader stay with it and are split evenly
    over its channels.  Otherwise the edge's total is split evenly over all channels.
    """
    old, new = channels
    dealt = np.zeros(len(new), np.int64)
    first = (before.layout.first_task[vertex], after.layout.first_task[vertex])
    of_old, of_new = (
        np.array(s.layout.reader)[c] - begin for s, c, begin in zip((before, after), channels, first, strict=True)
    )
    same = len(before.tasks(vertex)) == len(after.tasks(vertex))
    for reader in range(len(after.tasks(vertex))) if same else (None,):
        from_, to = (
            np.flatnonzero(np.ones(len(of), bool) if reader is None else of == reader) for of in (of_old, of_new)
        )
        dealt[to] = _even(int(before.held_back[old[from_]].sum()), len(to))
    return dealt


def _even(total: int, parts: int) -> np.ndarray:
    """Split a total evenly into integers.  The first `total % parts` of them are larger by 1."""
    shares = np.full(parts, total // parts, np.int64)
    shares[: total % parts] += 1
    return shares


def _dealt(records: int, streams: _Streams, edge: EdgeSpec, channels: np.ndarray) -> np.ndarray:
    """Split in-flight records among the new channels of an edge.  Return the number of records of each channel.

    The split is proportional to the weight of each channel's reader; without weights it is even.
    """
    if not edge.weights:
        return _even(records, len(channels))
    readers = [streams.layout.subtask[streams.layout.reader[channel]] for channel in channels]
    ends = np.cumsum(np.bincount(edge.weights, minlength=max(readers) + 1)[readers])
    return np.diff(records * ends // ends[-1], prepend=0)


def _sizes(streams: _Streams, edge: EdgeSpec, channel: int, records: range) -> list[int]:
    """Return the size of each of these records of a channel in bytes (B1 in ``sim/plane/RULES.md``)."""
    plan, table = streams.layout, edge.record_bytes
    writer, reader = plan.subtask[plan.writer[channel]], plan.subtask[plan.reader[channel]]
    key = stream(streams.spec.seed, "size", edge.name, writer, reader)
    return [table[draw(key, i) * len(table) >> 32] for i in records]


def _kept(parts: Sequence[TaskSnapshot], own: int, tasks: int) -> dict[str, Any]:
    """Return the state of each task feature for subtask `own` of `tasks`; each feature redistributes its own state.

    `parts` are the snapshots of all former subtasks.  Tasks that had finished have no such state.
    """
    keepers = {name: kept for part in parts for name, kept in part.kept.items()}
    return {name: kept.dealt(parts, own, tasks) for name, kept in keepers.items()}


def _read_bytes(readers: Iterable[TaskSnapshot], writers: Iterable[TaskSnapshot]) -> int:
    """Return the bytes of channel state that a restore reads: input of the former `readers`, output of the former `writers`."""
    return sum(int(part.position.captured.sum()) for part in readers) + sum(
        int(part.position.overtaken.sum()) for part in writers
    )


def _share(
    task: int, parts: Mapping[int, TaskSnapshot], before: _Streams, after: _Streams, key_groups: tuple[int, ...]
) -> TaskSnapshot:
    """Return the snapshot that one task of the rescaled job is restored from; see `redistributed` for `parts`."""
    vertex = after.layout.vertex[task]
    own, old, new = after.layout.subtask[task], before.tasks(vertex), after.tasks(vertex)
    position = after.position(task)
    if len(old) == len(new) and old[own] in parts:
        part = parts[old[own]]
        here = replace(part, position=position, held_back=after.kept_by(task) if part.held_back else ())
        # a record split by the barrier is one record now, so the in-flight bytes may differ from those captured
        return replace(here, inlined_bytes=here.in_flight_bytes if part.inlined_bytes else 0)
    shares = overlap(own, len(new), len(old), key_groups[vertex])
    mine = [(parts[old[i]], share) for i, share in shares.items() if old[i] in parts]
    # output channel state and committables are not split: those of former subtask i go to new subtask i % len(new)
    dealt = [parts[old[i]] for i in range(own, len(old), len(new)) if old[i] in parts]
    return TaskSnapshot(
        max((part.checkpoint for part in parts.values()), default=0),
        position,
        sum(int(part.state_bytes * share) for part, share in mine),
        held_back=after.kept_by(task) if any(part.held_back for part, _ in mine) else (),
        committables=_together([part.committables for part in dealt if part.committables is not None]),
        kept=_kept([parts[task] for task in old if task in parts], own, len(new)),
        parts=tuple((snapshot, known * share) for part, share in mine for snapshot, known in part.parts),
        read_bytes=_read_bytes([part for part, _ in mine], dealt),
        inlined_bytes=_read_bytes(
            [part for part, _ in mine if part.inlined_bytes], [part for part in dealt if part.inlined_bytes]
        ),
    )

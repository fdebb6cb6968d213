"""A checkpoint dealt out anew: the same job with another parallelism goes on from what it holds.

Keyed state goes by key groups, in-flight data to the subtask that reads it now (InflightDataRescalingDescriptor,
StateAssignmentOperation).  A subtask reads the channel state of every old one whose keys it shares, and drops the
records that are not its own.  Streams between vertices that keep their parallelism stand where they stood; the others
begin anew with what was in flight, spread like new records.  They count the records that their reader holds back in its
state as read: it will write them.  Requests under way and records in windows are dealt out in equal parts, as list
state is (OperatorStateHandle.Mode.SPLIT_DISTRIBUTE).
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
    """What each task of the new parallelism begins with; `key_groups`: of each vertex."""
    before, after = _Streams(old), _Streams(new)
    for task, part in parts.items():
        before.take(task, part)
    _deal_records(before, after)
    _deal_streams(before, after)
    return {task: _share(task, parts, before, after, key_groups) for task in range(len(after.layout.vertex))}


def rescaled(parts: Mapping[int, TaskSnapshot], before: PlaneSpec, scenario: Scenario) -> dict[int, TaskSnapshot]:
    """What the tasks of this scenario begin with."""
    return redistributed(
        parts, before, plane_spec(scenario), tuple(vertex.max_parallelism for vertex in scenario.job.vertices)
    )


def served_before(served: np.ndarray, before: PlaneSpec, scenario: Scenario) -> np.ndarray:
    """Return the records served before the restart, by task of `scenario`.  Counts of a rescaled vertex are split evenly."""
    spec = plane_spec(scenario)
    here = np.zeros(sum(vertex.parallelism for vertex in spec.vertices), np.int64)
    old, new = layout(before).first_task, layout(spec).first_task
    for vertex, stopped, first, began in zip(spec.vertices, before.vertices, new, old, strict=True):
        own = served[began : began + stopped.parallelism]
        same = vertex.parallelism == stopped.parallelism
        here[first : first + vertex.parallelism] = own if same else _even(int(own.sum()), vertex.parallelism)
    return here


class _Streams:
    """The positions of all tasks, as columns of channels."""

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
        """Return the records that this task, a transactional sink, has read and not written yet, by input channel."""
        return tuple(self.held_back[self.inputs[task]].tolist())

    def tasks(self, vertex: int) -> range:
        first = self.layout.first_task[vertex]
        return range(first, first + self.spec.vertices[vertex].parallelism)

    def channels(self, edge: int) -> np.ndarray:
        return np.flatnonzero(np.array(self.layout.edge) == edge)


def _together(several: list[Uncommitted]) -> Uncommitted | None:
    """The transactions that one committer takes over from several."""
    if not several:
        return None
    committables = tuple(row for uncommitted in several for row in uncommitted.committables)
    behind = tuple(row for uncommitted in several for row in uncommitted.in_flight)
    return Uncommitted(several[0].checkpoint, committables, behind)


def _flat(groups: object) -> np.ndarray:
    return np.array([channel for group in groups for channel in group], np.int64)  # type: ignore[attr-defined]  # any iterable of them


def _deal_records(before: _Streams, after: _Streams) -> None:
    """Records served so far, and those that wait for their outputs: as they were, or the sums in equal parts."""
    for vertex in range(len(after.spec.vertices)):
        old, new = before.tasks(vertex), after.tasks(vertex)
        for column in ("served", "late"):
            own = getattr(before, column)[old]
            getattr(after, column)[new] = own if len(old) == len(new) else _even(int(own.sum()), len(new))


def _deal_streams(before: _Streams, after: _Streams) -> None:
    for number, edge in enumerate(after.spec.edges):
        old, new = before.channels(number), after.channels(number)
        same = all(len(before.tasks(end)) == len(after.tasks(end)) for end in (edge.upstream, edge.downstream))
        if same and len(old) == len(new):  # forward that became rebalance in between has other channels
            for column in ("consumed", "records_out", "captured", "written", "records_in", "overtaken", "held_back"):
                getattr(after, column)[new] = getattr(before, column)[old]
            continue
        after.held_back[new] = after.records_out[new] = _dealt_by_reader(before, after, edge.downstream, (old, new))
        # at-least-once: readers have counted records that are behind the barrier, which are sent again: none is in flight
        in_flight = max(0, int((before.records_in[old] - before.records_out[old]).sum()))
        captured, overtaken = int(before.captured[old].sum()), int(before.overtaken[old].sum())
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
    """Return the records held back by new channel of an edge.

    A reader keeps its own, split evenly over its channels; if the number of readers changes, all are split evenly.
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
    shares = np.full(parts, total // parts, np.int64)
    shares[: total % parts] += 1
    return shares


def _dealt(records: int, streams: _Streams, edge: EdgeSpec, channels: np.ndarray) -> np.ndarray:
    """Records of each channel: by what its reader gets of them."""
    if not edge.weights:
        return _even(records, len(channels))
    readers = [streams.layout.subtask[streams.layout.reader[channel]] for channel in channels]
    ends = np.cumsum(np.bincount(edge.weights, minlength=max(readers) + 1)[readers])
    return np.diff(records * ends // ends[-1], prepend=0)


def _sizes(streams: _Streams, edge: EdgeSpec, channel: int, records: range) -> list[int]:
    """Bytes of these records of a channel (rule B1)."""
    plan, table = streams.layout, edge.record_bytes
    writer, reader = plan.subtask[plan.writer[channel]], plan.subtask[plan.reader[channel]]
    key = stream(streams.spec.seed, "size", edge.name, writer, reader)
    return [table[draw(key, i) * len(table) >> 32] for i in records]


def _kept(parts: Sequence[TaskSnapshot], own: int, tasks: int) -> dict[str, Any]:
    """What features keep: each deals out its own.  Tasks that had finished keep nothing."""
    keepers = {name: kept for part in parts for name, kept in part.kept.items()}
    return {name: kept.dealt(parts, own, tasks) for name, kept in keepers.items()}


def _read_bytes(readers: Iterable[TaskSnapshot], writers: Iterable[TaskSnapshot]) -> int:
    """In-flight data: input of the former readers, output of the former writers."""
    return sum(int(part.position.captured.sum()) for part in readers) + sum(
        int(part.position.overtaken.sum()) for part in writers
    )


def _share(
    task: int, parts: Mapping[int, TaskSnapshot], before: _Streams, after: _Streams, key_groups: tuple[int, ...]
) -> TaskSnapshot:
    vertex = after.layout.vertex[task]
    own, old, new = after.layout.subtask[task], before.tasks(vertex), after.tasks(vertex)
    position = after.position(task)
    if len(old) == len(new) and old[own] in parts:
        part = parts[old[own]]
        here = replace(part, position=position, held_back=after.kept_by(task) if part.held_back else ())
        # records cut in two are whole again
        return replace(here, inlined_bytes=here.in_flight_bytes if part.inlined_bytes else 0)
    shares = overlap(own, len(new), len(old), key_groups[vertex])
    mine = [(parts[old[i]], share) for i, share in shares.items() if old[i] in parts]
    # output and committables: one new subtask each
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

"""Which channels exist, and where each task, partition, gate and channel stands (rules N1-N4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.plane.seam.spec import PlaneSpec, Ship


def targets(ship: Ship, writer: int, p_up: int, p_down: int) -> range:
    """Reader subtasks of one writer subtask.

    Forward and rescale follow Flink's pointwise map (VertexInputInfoComputationUtils), everything else is all-to-all.
    """
    if ship not in (Ship.FORWARD, Ship.RESCALE):
        return range(p_down)
    if p_up >= p_down:  # consumer j reads producers [j*p_up/p_down, (j+1)*p_up/p_down)
        reader = next(j for j in range(writer * p_down // p_up, p_down) if (j + 1) * p_up // p_down > writer)
        return range(reader, reader + 1)
    return range((writer * p_down + p_up - 1) // p_up, ((writer + 1) * p_down + p_up - 1) // p_up)


@dataclass(frozen=True, slots=True)
class Layout:
    """Plain lists, indexed by the numbers of N1-N3."""

    first_task: tuple[int, ...]  # by vertex
    vertex: tuple[int, ...]  # by task
    subtask: tuple[int, ...]
    partitions: tuple[tuple[int, int, range], ...]  # (task, edge, channels), by task then edge
    gates: tuple[tuple[int, int, Sequence[int]], ...]  # (task, edge, channels by writer), by task then edge
    task_partitions: tuple[range, ...]  # by task: its numbers in `partitions`
    task_gates: tuple[range, ...]
    writer: tuple[int, ...]  # by channel: task
    reader: tuple[int, ...]
    edge: tuple[int, ...]
    partition: tuple[int, ...]  # by channel: number in `partitions`
    gate: tuple[int, ...]
    local: tuple[bool, ...]


def layout(spec: PlaneSpec) -> Layout:
    """Number the tasks, partitions, gates and channels of a specification."""
    first_task: list[int] = []
    vertex: list[int] = []
    subtask: list[int] = []
    for v, stage in enumerate(spec.vertices):
        first_task.append(len(vertex))
        vertex += [v] * stage.parallelism
        subtask += range(stage.parallelism)
    outputs: list[list[tuple[int, range]]] = [[] for _ in vertex]
    inputs: list[list[tuple[int, Sequence[int]]]] = [[] for _ in vertex]
    every = list(range(len(vertex)))  # each number once: there are many channels per task
    writer: list[int] = []
    reader: list[int] = []
    edge: list[int] = []
    for e, row in enumerate(spec.edges):
        up, down = spec.vertices[row.upstream], spec.vertices[row.downstream]
        first = len(writer)
        readers = range(first_task[row.downstream], first_task[row.downstream] + down.parallelism)
        numbers = every[readers.start : readers.stop]
        for i in range(up.parallelism):
            w, begin = first_task[row.upstream] + i, len(writer)
            reached = targets(row.ship, i, up.parallelism, down.parallelism)
            reader += numbers[reached.start : reached.stop]
            writer += [w] * len(reached)
            outputs[w].append((e, range(begin, len(writer))))
        edge += [e] * (len(writer) - first)
        for j, members in enumerate(_inputs(reader, first, readers)):
            inputs[readers[j]].append((e, members))
    partitions: list[tuple[int, int, range]] = []
    task_partitions, partition = [], [0] * len(writer)
    for t, rows in enumerate(outputs):
        task_partitions.append(range(len(partitions), len(partitions) + len(rows)))
        for e, channels in rows:
            partition[channels.start : channels.stop] = [len(partitions)] * len(channels)
            partitions.append((t, e, channels))
    gates: list[tuple[int, int, Sequence[int]]] = []
    task_gates, gate = [], [0] * len(writer)
    for t, gate_rows in enumerate(inputs):
        task_gates.append(range(len(gates), len(gates) + len(gate_rows)))
        for e, members in gate_rows:
            number = len(gates)
            for c in members:
                gate[c] = number
            gates.append((t, e, members))
    local = tuple(spec.hosts[w] == spec.hosts[r] for w, r in zip(writer, reader, strict=True))
    return Layout(
        tuple(first_task),
        tuple(vertex),
        tuple(subtask),
        tuple(partitions),
        tuple(gates),
        tuple(task_partitions),
        tuple(task_gates),
        tuple(writer),
        tuple(reader),
        tuple(edge),
        tuple(partition),
        tuple(gate),
        local,
    )


def _inputs(reader: list[int], first: int, readers: range) -> list[Sequence[int]]:
    """The channels of each reader, by writer, among those from `first` on; all-to-all they are evenly spaced, and need no list."""
    n = len(reader) - first
    if n % len(readers) == 0 and all(
        reader[begin : begin + len(readers)] == list(readers) for begin in range(first, first + n, len(readers))
    ):
        return [range(first + j, first + n, len(readers)) for j in range(len(readers))]
    members: list[list[int]] = [[] for _ in readers]
    for c in range(first, len(reader)):
        members[reader[c] - readers.start].append(c)
    return [tuple(channels) for channels in members]

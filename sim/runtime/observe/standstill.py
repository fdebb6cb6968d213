"""Tasks that wait for each other in a circle: why a checkpoint can hang although nothing is slow.

A barrier may reach one vertex early, as it overtakes, and wait behind data in front of another, where it is forced to align.  A vertex that
reads both and aligns blocks the early input until the late barrier comes.  If that one is behind data which only the blocked input would
let through, nothing moves any more.  Real Flink 2.3 stands still alike, also after the checkpoint has expired: only a restart helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sim.model.job import Vertex
from sim.plane.seam.interface import DataPlane, ThreadState
from sim.plane.seam.layout import Layout
from sim.plane.seam.positions import channels_in
from sim.runtime.context import Context
from sim.runtime.ports import TaskPort

Tasks = frozenset[int]


class Blocked(NamedTuple):
    """One task of a circle of waiting tasks, with what holds it up.  All fields are task numbers."""

    aligning: int  # has barriers, waits for others
    early: int  # its barrier is here: nothing more is read from it
    late: int  # its barrier is missing
    full: int  # its output is full, which holds the missing barrier up: `late`, or a task before it


def standstill(context: Context, tasks: Iterable[TaskPort]) -> str:
    """A sentence about the tasks that wait for each other in a circle.  Empty: there is no circle."""
    names = [name for name, _ in context.names]
    late = frozenset(number for number, vertex in enumerate(context.scenario.job.vertices) if _is_let_go(vertex))
    let_go = frozenset(task for task, vertex in enumerate(context.layout.vertex) if vertex in late)
    storing = frozenset(task.task for task in tasks if task.storing)
    circular = circle(context.plane, context.layout, flushes=context.spec.buffer_timeout_ns >= 0, let_go=let_go, storing=storing)
    parts = [
        f"'{names[blocked.aligning]}' reads no more from '{names[blocked.early]}' until the barrier of '{names[blocked.late]}' comes,"
        f" and {_held_up(names[blocked.late], names[blocked.full])} until '{names[after.aligning]}' reads on"
        for blocked, after in zip(circular, [*circular[1:], *circular[:1]], strict=True)
    ]
    return ", and ".join(dict.fromkeys(parts))


def _is_let_go(vertex: Vertex) -> bool:
    """Whether late outputs wait for others: for a checkpoint that completes, or for watermarks from all inputs."""
    emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
    return emits_on_commit or (vertex.window is not None and vertex.window.time == "event")


def _held_up(late: str, full: str) -> str:
    return f"'{late}' cannot send it, as its output is full" if late == full else f"it cannot come, as the output of '{full}' is full"


def circle(
    plane: DataPlane, layout: Layout, *, flushes: bool = True, let_go: Tasks = frozenset(), storing: Tasks = frozenset()
) -> Sequence[Blocked]:
    """The alignments that wait for each other, in order: each for the next one, the last for the first.

    `flushes`: buffers are sent before they are full, after a time.
    `let_go`: tasks whose late outputs wait for a checkpoint or a watermark.
    `storing`: tasks some of whose buffers are kept until they are in storage, and come back from there.
    """
    queues = _Queues(plane, layout, flushes=flushes, let_go=let_go, storing=storing)
    stuck = queues.stuck()
    path: list[Blocked] = []
    early = -1  # not known of the first one yet
    aligning = next((task for task in sorted(stuck) if queues.aligns(task)), None)
    while aligning is not None:
        seen = [blocked.aligning for blocked in path]
        if aligning in seen:
            first = seen.index(aligning)
            return [path[first]._replace(early=early), *path[first + 1 :]]
        late = queues.late(aligning, stuck)
        full, channel = queues.held_up(late, stuck)
        path.append(Blocked(aligning, early, late, full))
        early, aligning = layout.writer[channel], layout.reader[channel]
    return []


class _Queues:
    """The queues and buffers of the plane at one instant, and which tasks they keep waiting."""

    def __init__(self, plane: DataPlane, layout: Layout, *, flushes: bool, let_go: Tasks, storing: Tasks) -> None:
        channels = plane.channels("written", "sent", "arrived", "consumed", "queued", "received", "blocked")
        self._plane, self._layout = plane, layout
        self._let_go, self._storing = let_go, storing
        self.blocked = channels["blocked"]
        unsent = channels["written"] > channels["sent"]
        leaves = unsent if flushes else unsent & (channels["queued"] > 1)  # a buffer that is not full waits for more
        self._coming = leaves | (channels["sent"] > channels["arrived"]) | (channels["received"] > 0)
        unread = channels["written"] > channels["consumed"]
        self._kept = unsent | (np.array(layout.local, bool) & unread)  # a local reader keeps its writer's
        self._available = plane.partitions()["available"]
        self._state = plane.tasks("state")["state"]

    def inputs(self, task: int) -> list[int]:
        """The input channels of a task."""
        return channels_in(self._layout, task)

    def aligns(self, task: int) -> bool:
        """Whether the task has some barriers of a checkpoint, and waits for the others."""
        return self._state[task] == ThreadState.IDLE and any(self.blocked[c] for c in self.inputs(task))

    def stuck(self) -> frozenset[int]:
        """The largest set of tasks of which each waits for others of the set only."""
        if not np.any((self.blocked != 0) & self._kept):
            return frozenset()
        waiting = frozenset(np.flatnonzero(np.isin(self._state, (ThreadState.IDLE, ThreadState.SOFT, ThreadState.HARD))).tolist())
        while (left := frozenset(task for task in waiting if self._waits(task, waiting))) != waiting:
            waiting = left
        return waiting

    def late(self, aligning: int, stuck: frozenset[int]) -> int:
        """A stuck task whose barrier an aligning one waits for."""
        writers = [self._layout.writer[c] for c in self.inputs(aligning) if not self.blocked[c]]
        return next(task for task in writers if task in stuck)

    def held_up(self, task: int, stuck: frozenset[int]) -> tuple[int, int]:
        """(the task whose full output holds this one's barrier up, the blocked channel that would have to be read on).

        A reader that aligns may have a full output itself.  What follows that output holds it up, whatever its other inputs bring.
        """
        while self._state[task] == ThreadState.IDLE:
            task = self.late(task, stuck)
        full = task
        while True:
            channel = next(c for p in self._jammed(task, stuck) for c in self._holding(p))
            task = self._layout.reader[channel]
            if self.blocked[channel] and self._state[task] == ThreadState.IDLE:
                return full, channel

    def _waits(self, task: int, others: frozenset[int]) -> bool:
        """Whether the task can go on only after one of the others has."""
        if task in self._storing:
            return False
        if self._state[task] != ThreadState.IDLE:
            return bool(self._jammed(task, others))
        open_ = [c for c in self.inputs(task) if not self.blocked[c]]
        if any(self._coming[c] for c in open_) or (task not in self._let_go and self._plane.position(task).late):
            return False  # it has a record to serve
        writers = [self._layout.writer[c] in others for c in open_]
        return any(writers) if self.aligns(task) else bool(writers) and all(writers)

    def _jammed(self, task: int, others: frozenset[int]) -> list[int]:
        """The full outputs of a task whose every buffer waits for one of the others."""
        return [
            p
            for p in self._layout.task_partitions[task]
            if not self._available[p] and self._holding(p) and all(self._layout.reader[c] in others for c in self._holding(p))
        ]

    def _holding(self, partition: int) -> list[int]:
        """Channels that hold buffers of the partition until their readers go on.  A channel whose reader waits for more data is none."""
        return [c for c in self._layout.partitions[partition][2] if self._kept[c] and not self._starved(c)]

    def _starved(self, channel: int) -> bool:
        """Whether the reader is idle, and nothing comes to it on this channel."""
        reads = not self.blocked[channel] and self._state[self._layout.reader[channel]] == ThreadState.IDLE
        return reads and not self._coming[channel]

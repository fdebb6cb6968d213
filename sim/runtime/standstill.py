"""Jobs that stand still, or never end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sim.model.job import Vertex
from sim.plane.interface import DataPlane, ThreadState, channels_in
from sim.plane.spec import Layout
from sim.protocol.recovery import Restarted, find_restart_loop
from sim.results.tables import EXPIRED, TOO_MANY_FAILED, RecoveryStats
from sim.runtime.context import Context
from sim.runtime.ports import TaskPort

# ---- What the end of a run says about a job that restarts and gets nowhere: how often, from where, why, and what to change.

RESTARTING_FOR_EVER = "RESTARTING FOR EVER"
_OF_THE_JOB = ("task", "checkpoints")  # kinds of restarts that the job causes itself ...
_INJECTED = "killed"  # ... but this one
_CHANGE = {
    "flush": "write less per checkpoint, or give a request more time or attempts (storage.retry)",
    "restore": "give a request more time or attempts (storage.retry)",
    EXPIRED: "give checkpoints more time (checkpoint.timeout) or tolerate failures (tolerable-failed)",
}
_CHANGE |= dict.fromkeys(
    ("CHECKPOINT_ASYNC_EXCEPTION", "IO_EXCEPTION", "FINALIZE_CHECKPOINT_FAILURE"),
    "ask storage for less at once, or give a request more time or attempts (storage.retry)",
)
_HANGS = "more time does not help, as tasks wait for each other: take aligned barriers"


def endless(context: Context, recoveries: Iterable[RecoveryStats]) -> str | None:
    """The sentence about a job that restarts forever.  None: it does not, or an injected fault began it."""
    done = [row.completed_ns for row in context.stats.values() if row.status == "COMPLETED"]
    commits = (row.time_ns for row in context.commits if row.committed)
    progress_ns = max((*done, *commits, context.storage.attempts.down_until_ns), default=0)
    begun = list(recoveries)
    restarts = list(_restored(begun))
    found = find_restart_loop(
        [Restarted(row.failed_ns, row.checkpoint, is_caused_by_job=_own(origin)) for row, origin in restarts],
        progress_ns,
    )
    if found is None:
        return None
    if begun[-1].running_ns >= 0 and _outlived([row for row, _ in restarts[-found.times :]], context.env.now):
        return None
    where = f"from checkpoint {found.checkpoint}" if found.checkpoint else "from the beginning"
    reasons = [origin.what for _, origin in restarts[-found.times :]]
    hung = any(row.standstill for row in list(context.stats.values())[-found.times :])
    why, change = _causes(reasons), _HANGS if hung else _changes(reasons)
    return f"{RESTARTING_FOR_EVER}: {found.times} times in a row {where} because of {why}, with nothing completed in between; {change}"


def _restored(begun: Iterable[RecoveryStats]) -> Iterator[tuple[RecoveryStats, RecoveryStats]]:
    """Each restart that went back to a checkpoint, and the one it all began with.

    What fails while a job restarts takes its restart over: a task that does not stop loses its TaskManager, for one.
    """
    origin = None
    for row in begun:
        origin = origin or row
        if row.checkpoint >= 0:
            yield row, origin
            origin = None


def _causes(reasons: Sequence[str]) -> str:
    """The causes of restarts, the most frequent first, each in its latest wording.  Causes that differ only in numbers count as one."""
    last = {_plain(reason): reason for reason in reasons}
    if len(last) == 1:
        return f"'{reasons[-1]}'"
    return " and ".join(f"{times} x '{last[plain]}'" for plain, times in Counter(map(_plain, reasons)).most_common())


def _changes(reasons: Iterable[str]) -> str:
    known = [
        _CHANGE.get(reason.removeprefix(f"{TOO_MANY_FAILED}: ").partition(":")[0], "mend what fails")
        for reason, _ in Counter(map(_plain, reasons)).most_common()
    ]
    return ", and ".join(dict.fromkeys(known))


def _outlived(row: Sequence[RecoveryStats], now_ns: int) -> bool:
    """Whether the job has run since the last of these restarts for longer than ever between two, and as long again: it goes on."""
    lasted_ns = [after.failed_ns - before.running_ns for before, after in pairwise(row) if before.running_ns >= 0]
    return row[-1].running_ns >= 0 and now_ns - row[-1].running_ns > 2 * max(lasted_ns, default=0)


def _own(row: RecoveryStats) -> bool:
    return row.kind in _OF_THE_JOB and row.what != _INJECTED


def _plain(reason: str) -> str:
    """The cause without its numbers, which differ between restarts."""
    return re.sub(r"\d+(\.\d+)?", "#", reason)


# ---- Tasks that wait for each other in a circle: why a checkpoint can hang although nothing is slow.
#
# A barrier may reach one vertex early, as it overtakes, and wait behind data in front of another, where it is forced to
# align.  A vertex that reads both and aligns blocks the early input until the late barrier comes.  If that one is
# behind data which only the blocked input would let through, nothing moves any more.  Real Flink 2.3 stands still
# alike, also after the checkpoint has expired: only a restart helps.

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
    late = frozenset(number for number, vertex in enumerate(context.scenario.job.vertices) if _has_late_outputs(vertex))
    late_tasks = frozenset(task for task, vertex in enumerate(context.layout.vertex) if vertex in late)
    storing = frozenset(task.task for task in tasks if task.storing)
    circular = find_alignment_deadlock(
        context.plane,
        context.layout,
        flushes=context.spec.buffer_timeout_ns >= 0,
        late_tasks=late_tasks,
        storing=storing,
    )
    parts = [
        f"'{names[blocked.aligning]}' reads no more from '{names[blocked.early]}' until the barrier of '{names[blocked.late]}' comes,"
        f" and {_held_up(names[blocked.late], names[blocked.full])} until '{names[after.aligning]}' reads on"
        for blocked, after in zip(circular, [*circular[1:], *circular[:1]], strict=True)
    ]
    return ", and ".join(dict.fromkeys(parts))


def _has_late_outputs(vertex: Vertex) -> bool:
    """Whether late outputs wait for others: for a checkpoint that completes, or for watermarks from all inputs."""
    emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
    return emits_on_commit or (vertex.window is not None and vertex.window.time == "event")


def _held_up(late: str, full: str) -> str:
    return (
        f"'{late}' cannot send it, as its output is full"
        if late == full
        else f"it cannot come, as the output of '{full}' is full"
    )


def find_alignment_deadlock(
    plane: DataPlane,
    layout: Layout,
    *,
    flushes: bool = True,
    late_tasks: Tasks = frozenset(),
    storing: Tasks = frozenset(),
) -> Sequence[Blocked]:
    """The alignments that wait for each other, in order: each for the next one, the last for the first.

    `flushes`: buffers are sent before they are full, after a time.
    `late_tasks`: tasks whose late outputs wait for a checkpoint or a watermark.
    `storing`: tasks some of whose buffers are kept until they are in storage, and come back from there.
    """
    queues = _Queues(plane, layout, flushes=flushes, late_tasks=late_tasks, storing=storing)
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

    def __init__(self, plane: DataPlane, layout: Layout, *, flushes: bool, late_tasks: Tasks, storing: Tasks) -> None:
        channels = plane.channels("written", "sent", "arrived", "consumed", "queued", "received", "blocked")
        self._plane, self._layout = plane, layout
        self._late_tasks, self._storing = late_tasks, storing
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
        waiting = frozenset(
            np.flatnonzero(np.isin(self._state, (ThreadState.IDLE, ThreadState.SOFT, ThreadState.HARD))).tolist()
        )
        while (left := frozenset(task for task in waiting if self._waits(task, waiting))) != waiting:
            waiting = left
        return waiting

    def late(self, aligning: int, stuck: frozenset[int]) -> int:
        """A stuck task whose barrier an aligning one waits for."""
        writers = [self._layout.writer[c] for c in self.inputs(aligning) if not self.blocked[c]]
        return next(task for task in writers if task in stuck)

    def held_up(self, task: int, stuck: frozenset[int]) -> tuple[int, int]:
        """(the task whose full output holds this one's barrier up, the blocked channel that would have to be read on).

        A reader that aligns may have a full output itself.  What follows that output holds it up, whatever its other
        inputs bring.
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
        if any(self._coming[c] for c in open_) or (task not in self._late_tasks and self._plane.position(task).late):
            return False  # it has a record to serve
        writers = [self._layout.writer[c] in others for c in open_]
        return any(writers) if self.aligns(task) else bool(writers) and all(writers)

    def _jammed(self, task: int, others: frozenset[int]) -> list[int]:
        """The full outputs of a task whose every buffer waits for one of the others."""
        return [
            p
            for p in self._layout.task_partitions[task]
            if not self._available[p]
            and self._holding(p)
            and all(self._layout.reader[c] in others for c in self._holding(p))
        ]

    def _holding(self, partition: int) -> list[int]:
        """Channels that hold buffers of the partition until their readers go on.  A channel whose reader waits for more data is none."""
        return [c for c in self._layout.partitions[partition][2] if self._kept[c] and not self._starved(c)]

    def _starved(self, channel: int) -> bool:
        """Whether the reader is idle, and nothing comes to it on this channel."""
        reads = not self.blocked[channel] and self._state[self._layout.reader[channel]] == ThreadState.IDLE
        return reads and not self._coming[channel]

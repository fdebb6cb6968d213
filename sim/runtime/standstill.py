"""Explain jobs that make no progress.

* `endless`: a job that fails and restarts again and again without a completed checkpoint or commit
* `standstill`: a checkpoint that cannot complete because tasks wait for each other in a cycle
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sim.model.job import Vertex
from sim.model.text import listed
from sim.plane.interface import Layout, ThreadState, channels_in
from sim.results.tables import EXPIRED, TOO_MANY_FAILED, RecoveryStats
from sim.runtime.context import Context
from sim.runtime.task.host import TaskHost

if TYPE_CHECKING:
    from sim.plane.kernel import KernelPlane

# ---- Restart loops: how often the job restarted, from which checkpoint, why, and what to change.

RESTARTING_FOR_EVER = "RESTARTING FOR EVER"
MIN_RESTARTS = 5
"""Consecutive restarts that count as a loop.  Flink restarts such a job without end if its strategy has no limit."""
_OF_THE_JOB = ("task", "checkpoints")  # kinds of restarts that the job causes itself,
_INJECTED = "killed"  # except for this reason
_CHANGE = {
    "flush": "write less per checkpoint, or give a request more time or attempts (storage.retry)",
    "restore": "give a request more time or attempts (storage.retry)",
    EXPIRED: "give checkpoints more time (checkpoint.timeout) or, if later ones complete, tolerate failures (tolerable-failed)",
}
_CHANGE |= dict.fromkeys(
    ("CHECKPOINT_ASYNC_EXCEPTION", "IO_EXCEPTION", "FINALIZE_CHECKPOINT_FAILURE"),
    "ask storage for less at once, or give a request more time or attempts (storage.retry)",
)
_HANGS = "more time does not help, as tasks wait for each other: take aligned barriers"


def endless(context: Context, recoveries: Iterable[RecoveryStats]) -> str | None:
    """Return a sentence about the restart loop that the job is in at the end of the run.

    Return None if there is no restart loop, or if an injected fault caused it.
    """
    done = [row.completed_ns for row in context.stats.values() if row.status == "COMPLETED"]
    commits = (row.time_ns for row in context.commits if row.committed)
    faults_ns = (until_ns or 0 for until_ns in context.failing_commits.values())
    progress_ns = max((*done, *commits, *faults_ns, context.storage.attempts.down_until_ns), default=0)
    recorded = list(recoveries)
    loop: list[tuple[RecoveryStats, RecoveryStats]] = []  # the latest restarts, all from the same checkpoint
    for row, origin in reversed(list(_effective_restarts(recorded))):
        is_caused_by_job = origin.kind in _OF_THE_JOB and origin.what != _INJECTED
        if row.failed_ns <= progress_ns or not is_caused_by_job or (loop and row.checkpoint != loop[0][0].checkpoint):
            break
        loop.insert(0, (row, origin))
    if len(loop) < MIN_RESTARTS:
        return None
    if recorded[-1].running_ns >= 0 and _has_ended_loop([row for row, _ in loop], context.env.now):
        return None
    checkpoint, reasons = loop[0][0].checkpoint, [origin.what for _, origin in loop]
    where = f"from checkpoint {checkpoint}" if checkpoint else "from the beginning"
    hung = any(row.standstill for row in list(context.stats.values())[-len(loop) :])
    why, change = _causes(reasons), _HANGS if hung else _proposed_changes(reasons)
    return f"{RESTARTING_FOR_EVER}: {len(loop)} times in a row {where} because of {why}, with nothing completed in between; {change}"


def _effective_restarts(recorded: Iterable[RecoveryStats]) -> Iterator[tuple[RecoveryStats, RecoveryStats]]:
    """Yield each restart that restored the job, with the restart that was its original cause.

    A failure during a restart replaces that restart.  For example, a task that cannot be cancelled makes its TaskManager
    fail.  The cause is the first failure.
    """
    origin = None
    for row in recorded:
        origin = origin or row
        if row.checkpoint >= 0:
            yield row, origin
            origin = None


def _causes(reasons: Sequence[str]) -> str:
    """Return the causes of restarts, most frequent first, each with its latest message.

    Messages that differ only in numbers count as one cause.
    """
    last = {_without_numbers(reason): reason for reason in reasons}
    if len(last) == 1:
        return f"'{reasons[-1]}'"
    return " and ".join(
        f"{times} x '{last[plain]}'" for plain, times in Counter(map(_without_numbers, reasons)).most_common()
    )


def _proposed_changes(reasons: Iterable[str]) -> str:
    """Return the changes of the scenario that may help, for the most frequent cause first."""
    changes = [
        _CHANGE.get(reason.removeprefix(f"{TOO_MANY_FAILED}: ").partition(":")[0], "mend what fails")
        for reason, _ in Counter(map(_without_numbers, reasons)).most_common()
    ]
    return ", and ".join(dict.fromkeys(changes))


def _has_ended_loop(row: Sequence[RecoveryStats], now_ns: int) -> bool:
    """Return whether the job has recovered from a series of restarts.

    It has if, since the last restart, it has run for more than twice the longest time between two of them.
    """
    lasted_ns = [after.failed_ns - before.running_ns for before, after in pairwise(row) if before.running_ns >= 0]
    return row[-1].running_ns >= 0 and now_ns - row[-1].running_ns > 2 * max(lasted_ns, default=0)


def _without_numbers(reason: str) -> str:
    """Return the message with each number replaced by #, because numbers differ between restarts."""
    return re.sub(r"\d+(\.\d+)?", "#", reason)


# ---- Alignment deadlocks: tasks wait for each other in a cycle, so that a checkpoint hangs although nothing is slow.
#
#   m1 -------------------> m3    m3 aligns: it has received the barrier of m2, so it reads nothing more from m2 until the
#     \                   ^       barrier of m1 arrives.
#      +-----> m2 -------+        m1 cannot send its barrier: its output to m2 is full, m2 cannot read because its own
#                                 output to m3 is full, and m3 does not read from m2.
#
# This happens with unaligned checkpoints if the barrier of m2 overtakes data and is early, while m1 and m3 are forced to
# align because each has a pointwise input: the barrier that m1 needs is behind data that m1 cannot process.  Flink 2.3 has
# the same deadlock.  It persists after the checkpoint has expired: only a restart resolves it.

Tasks = frozenset[int]


def standstill(context: Context, tasks: Iterable[TaskHost]) -> str:
    """Return a clause that names the vertices whose tasks align and wait for each other, or "" if there is no deadlock."""
    queues = Queues(
        context.plane,
        context.layout,
        flushes=context.spec.buffer_timeout_ns >= 0,
        late_tasks=frozenset(task for task in context.tasks if _has_late_outputs(context.vertex(task))),
        storing=frozenset(task.task for task in tasks if task.storing),
    )
    vertices = dict.fromkeys(f"'{context.names[task][0]}'" for task in queues.deadlocked())
    if not vertices:
        return ""
    wait = "waits" if len(vertices) == 1 else "wait"
    return (
        f"{listed(vertices)} {wait} for barriers behind full outputs, which nobody reads before these barriers arrive"
    )


def _has_late_outputs(vertex: Vertex) -> bool:
    """Return whether pending outputs of a vertex wait for other tasks: for a completed checkpoint, or for watermarks of all inputs."""
    emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
    return emits_on_commit or (vertex.window is not None and vertex.window.time == "event")


class Queues:
    """The queues and buffers of the data plane at one instant, and the tasks that wait because of them.

    `flushes`: whether buffers are also sent after the buffer timeout, before they are full.
    `late_tasks`: tasks whose pending outputs wait for a checkpoint or a watermark.
    `storing`: tasks that get buffers back when these are in storage, so that they do not wait for other tasks.
    """

    def __init__(
        self,
        plane: KernelPlane,
        layout: Layout,
        *,
        flushes: bool = True,
        late_tasks: Tasks = frozenset(),
        storing: Tasks = frozenset(),
    ) -> None:
        channels = plane.channels("written", "sent", "arrived", "consumed", "queued", "received", "blocked")
        self._plane, self._layout = plane, layout
        self._late_tasks, self._storing = late_tasks, storing
        self.blocked = channels["blocked"]
        unsent = channels["written"] > channels["sent"]
        # without a timeout, the last buffer of a queue waits until it is full
        leaves = unsent if flushes else unsent & (channels["queued"] > 1)
        self._coming = leaves | (channels["sent"] > channels["arrived"]) | (channels["received"] > 0)
        unread = channels["written"] > channels["consumed"]
        self._kept = unsent | (np.array(layout.local, bool) & unread)  # a local reader reads the buffers of its writer
        self._available = plane.partitions()["available"]
        self._state = plane.tasks("state")["state"]

    def deadlocked(self) -> list[int]:
        """Return the aligning tasks that wait for each other, directly or through other tasks; without a deadlock none."""
        return [task for task in sorted(self.stuck()) if self.aligns(task)]

    def inputs(self, task: int) -> list[int]:
        """Return the input channels of a task."""
        return channels_in(self._layout, task)

    def aligns(self, task: int) -> bool:
        """Return whether the task has received some barriers of a checkpoint and waits for the others."""
        return self._state[task] == ThreadState.IDLE and any(self.blocked[c] for c in self.inputs(task))

    def stuck(self) -> frozenset[int]:
        """Return the largest set of tasks that can continue only after another task of the set has.

        It is computed by removing tasks that can continue from the set of waiting tasks until none is left to remove.
        """
        if not np.any((self.blocked != 0) & self._kept):
            return frozenset()
        waiting = frozenset(
            np.flatnonzero(np.isin(self._state, (ThreadState.IDLE, ThreadState.SOFT, ThreadState.HARD))).tolist()
        )
        while (left := frozenset(task for task in waiting if self._waits(task, waiting))) != waiting:
            waiting = left
        return waiting

    def _waits(self, task: int, others: frozenset[int]) -> bool:
        """Return whether the task can continue only after one of the `others` has."""
        if task in self._storing:
            return False
        if self._state[task] != ThreadState.IDLE:
            return bool(self._blocked_outputs(task, others))
        open_ = [c for c in self.inputs(task) if not self.blocked[c]]
        if any(self._coming[c] for c in open_) or (task not in self._late_tasks and self._plane.position(task).late):
            return False  # it has a record to serve
        writers = [self._layout.writer[c] in others for c in open_]
        return any(writers) if self.aligns(task) else bool(writers) and all(writers)

    def _blocked_outputs(self, task: int, others: frozenset[int]) -> list[int]:
        """Return the full outputs (partitions) of a task whose buffers are all held by readers in `others`."""
        return [
            p
            for p in self._layout.task_partitions[task]
            if not self._available[p]
            and self._holding(p)
            and all(self._layout.reader[c] in others for c in self._holding(p))
        ]

    def _holding(self, partition: int) -> list[int]:
        """Return the channels that hold buffers of the partition until their readers continue.

        A channel whose reader only waits for more data on it is left out.
        """
        return [c for c in self._layout.partitions[partition][2] if self._kept[c] and not self._starved(c)]

    def _starved(self, channel: int) -> bool:
        """Return whether the channel is not blocked, its reader is idle, and no data will arrive on it."""
        reads = not self.blocked[channel] and self._state[self._layout.reader[channel]] == ThreadState.IDLE
        return reads and not self._coming[channel]

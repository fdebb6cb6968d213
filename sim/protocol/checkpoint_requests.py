"""Checkpoint requests and their order, the plan of a checkpoint, and pending checkpoints."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from sim.protocol.machine import replace, value_class
from sim.protocol.messages import Plan, RequestKind, Savepoint
from sim.protocol.options import FailureReason

# ---- The queue of requests, and which one may run now (CheckpointRequestDecider).
#
# As in Flink, periodic requests are not merged: if checkpoints take longer than the interval, requests pile up and run
# back to back.

MAX_WAITING = 1000
"""Limit of the queue (CheckpointRequestDecider: DEFAULT_MAX_QUEUED_REQUESTS)."""


@value_class
class TriggerRequest:
    """A request for a checkpoint."""

    kind: RequestKind
    request_ns: int
    forced: bool = False  # obeys neither min-pause nor max-concurrent
    savepoint: Savepoint | None = None
    serial: int = 0  # breaks ties: first in, first out

    @property
    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Sort key: savepoints first, then forced requests, then others, then periodic ones; by time within each."""
        kind = self.kind
        return (
            kind is not RequestKind.SAVEPOINT,
            not self.forced,
            kind is RequestKind.PERIODIC,
            self.request_ns,
            self.serial,
        )


_rank = attrgetter("rank")


@value_class
class NextRequest:
    """What to do with the first request: run it, postpone it, or (both None) let it wait."""

    run: TriggerRequest | None = None
    postpone: TriggerRequest | None = None  # a periodic request that min-pause forbids: drop it ...
    until_ns: int = 0  # ... and arm the periodic timer for this time


@value_class
class WaitingRequests:
    """The queue of requests, and the limits that apply to them."""

    max_concurrent: int
    min_pause_ns: int
    waiting: tuple[TriggerRequest, ...] = ()  # by rank
    serial: int = 0

    def with_request(self, request: TriggerRequest) -> tuple[WaitingRequests, TriggerRequest | None]:
        """Add a request.  Also return the one dropped if the queue is full: this request, or the last periodic one."""
        if len(self.waiting) >= MAX_WAITING and self.waiting[-1].kind is not RequestKind.PERIODIC:
            return self, request
        request = replace(request, serial=self.serial)
        place = bisect_left(self.waiting, request.rank, key=_rank)
        waiting = (*self.waiting[:place], request, *self.waiting[place:])
        dropped = waiting[-1] if len(waiting) > MAX_WAITING else None
        return replace(self, waiting=waiting[:MAX_WAITING], serial=self.serial + 1), dropped

    def choose(
        self, now: int, *, triggering: bool, pending: int, cleaning: int, last_completion_ns: int | None
    ) -> tuple[WaitingRequests, NextRequest]:
        """Choose what to do with the first request (CheckpointRequestDecider#chooseQueuedRequest).

        `pending` and `cleaning` are the numbers of pending checkpoints and of deletions in progress, which both delay it.
        """
        if triggering or not self.waiting or cleaning > self.max_concurrent:
            return self, NextRequest()
        first = self.waiting[0]
        rest = replace(self, waiting=self.waiting[1:])
        if pending >= self.max_concurrent:
            return (rest, NextRequest(run=first)) if first.forced else (self, NextRequest())
        if first.kind is RequestKind.PERIODIC and not first.forced and last_completion_ns is not None:
            earliest_ns = last_completion_ns + self.min_pause_ns
            if earliest_ns > now:
                return rest, NextRequest(postpone=first, until_ns=earliest_ns)
        return rest, NextRequest(run=first)

    def cleared(self) -> tuple[WaitingRequests, tuple[TriggerRequest, ...]]:
        """Return the empty queue, and the requests that were in it."""
        return replace(self, waiting=()), self.waiting


# ---- The plan of a checkpoint: which tasks to trigger and to wait for (DefaultCheckpointPlanCalculator, FLIP-147).
#
# Running tasks without running predecessors are triggered; all running tasks must acknowledge.


@value_class
class VertexLink:
    """An edge between two vertices."""

    upstream: int
    downstream: int
    # pointwise: upstream subtasks of each downstream subtask; None: all-to-all
    predecessors: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of a job and the edges between its vertices.

    Tasks are numbered by vertex, then by subtask.  Vertices are in topological order.
    """

    vertices: tuple[range, ...]  # the tasks of each vertex
    links: tuple[VertexLink, ...]

    @cached_property
    def tasks(self) -> frozenset[int]:
        """All tasks of the job."""
        return frozenset(task for vertex in self.vertices for task in vertex)

    @cached_property
    def sources(self) -> frozenset[int]:
        """The tasks of vertices without inputs."""
        fed = {link.downstream for link in self.links}
        return frozenset(task for number, vertex in enumerate(self.vertices) if number not in fed for task in vertex)

    def partial(self, ended: frozenset[int]) -> frozenset[int]:
        """Return the vertices of which some tasks, but not all, have ended."""
        return frozenset(
            n for n, vertex in enumerate(self.vertices) if 0 < len(ended.intersection(vertex)) < len(vertex)
        )


_NOBODY: frozenset[int] = frozenset()


def plan(
    graph: TaskGraph, finished: frozenset[int], not_running: frozenset[int] = _NOBODY, *, after_finish: bool = True
) -> Plan | None:
    """Return the plan of a checkpoint, or None if a required task is not running or no task is left.

    `after_finish` is whether checkpoints continue after tasks have finished (ENABLE_CHECKPOINTS_AFTER_TASKS_FINISH).
    """
    if not_running - finished or (finished and not after_finish) or finished == graph.tasks:
        return None
    if not finished:
        return Plan(graph.sources, graph.tasks)
    running = graph.tasks - finished
    trigger = frozenset(task for vertex in range(len(graph.vertices)) for task in _triggered(graph, vertex, running))
    return Plan(trigger, running, finished)


def _triggered(graph: TaskGraph, vertex: int, running: frozenset[int]) -> list[int]:
    """Return the running tasks of one vertex that no barrier will reach.

    There are none downstream of an all-to-all edge with a running upstream task, or of a pointwise edge with all upstream
    tasks running.
    """
    tasks, links = graph.vertices[vertex], [link for link in graph.links if link.downstream == vertex]
    for link in links:
        writers = graph.vertices[link.upstream]
        enough = any if link.predecessors is None else all
        if enough([writer in running for writer in writers]):
            return []
    pointwise = [link.predecessors for link in links if link.predecessors is not None]
    return [
        task
        for i, task in enumerate(tasks)
        if task in running and not any(writer in running for predecessors in pointwise for writer in predecessors[i])
    ]


# ---- A set of tasks that is cheap to copy: the coordinator copies it at every acknowledgement.


@value_class
class TaskSet:
    """An immutable set of task numbers, as the bits of an integer.

    A copy takes one bit per task.  A frozenset takes 70 bytes: 30,000 acknowledgements copied about 40 GB.
    """

    bits: int = 0

    def __contains__(self, task: int) -> bool:
        return bool(self.bits >> task & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __iter__(self) -> Iterator[int]:
        return (task for task in range(self.bits.bit_length()) if task in self)


# ---- A pending checkpoint (PendingCheckpoint).


@value_class
class PendingCheckpoint:
    """A checkpoint that has been triggered and has neither completed nor failed."""

    checkpoint: int
    kind: RequestKind
    trigger_ns: int
    plan: Plan
    acknowledged: TaskSet = TaskSet()
    latest_ack_ns: int = -1
    savepoint: Savepoint | None = None
    expires_ns: int = 0

    @property
    def stops(self) -> bool:
        """Whether it is a stop-with-savepoint."""
        return self.savepoint is not None and self.savepoint.stop is not None

    @property
    def writes_metadata(self) -> bool:
        """Whether all tasks have acknowledged.  While metadata is written, no checkpoint expires or completes (the lock is held)."""
        return len(self.acknowledged) == len(self.plan.wait_for)

    def with_acknowledgement(self, task: int, now: int) -> PendingCheckpoint:
        """Add the acknowledgement of a task."""
        return replace(self, acknowledged=TaskSet(self.acknowledged.bits | 1 << task), latest_ack_ns=now)


# ---- Union list state and finished tasks: all tasks of a vertex with such state must have finished, or none.
#
# Every task is restored with the whole union, from which the part of a finished task would be missing.  Therefore a
# checkpoint with a partially finished vertex fails (PartialFinishingNotSupportedByStateException).


@value_class
class UnionState:
    """The vertices with union list state, and the finished tasks of each checkpoint."""

    graph: TaskGraph
    vertices: frozenset[int]  # with union list state
    # checkpoint -> tasks whose operators have finished
    finished: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def begun(self, checkpoint: int, finished: frozenset[int]) -> UnionState:
        """Add a checkpoint, with the tasks that have finished before it."""
        return replace(self, finished={**self.finished, checkpoint: finished}) if self.vertices else self

    def finished_in(self, task: int, checkpoint: int) -> UnionState:
        """Add a task that takes part in a checkpoint after its operators have finished."""
        if not self.vertices:
            return self
        return replace(self, finished={**self.finished, checkpoint: self.finished[checkpoint] | {task}})

    def refusal(self, checkpoint: int) -> FailureReason | None:
        """Return why the checkpoint cannot be completed, or None if it can."""
        if self.vertices and not self.vertices.isdisjoint(self.graph.partial(self.finished[checkpoint])):
            return FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING
        return None

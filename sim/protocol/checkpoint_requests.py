"""Requests for checkpoints, which is executed next, and the checkpoints that are pending."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter

from sim.protocol.coordinator_messages import Plan, RecordCompleted, RecordFailed, RequestKind, Savepoint
from sim.protocol.machine import value_class
from sim.protocol.options import FailureReason

# ---- Requests waiting for their checkpoint, and which one may run now (CheckpointRequestDecider).
#
# The wish list is not de-duplicated: with checkpoints longer than the interval, periodic requests pile up and run back
# to back.

MAX_WAITING = 1000
"""DEFAULT_MAX_QUEUED_REQUESTS."""


@value_class
class TriggerRequest:
    """A request for a checkpoint."""

    kind: RequestKind
    request_ns: int
    forced: bool = False  # obeys neither min-pause nor max-concurrent
    savepoint: Savepoint | None = None
    serial: int = 0  # ties: first come, first served

    @property
    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Savepoints first, then forced ones, then all but the periodic ones."""
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
    """The request that runs or is postponed next.  Both None: no request is due."""

    run: TriggerRequest | None = None
    postpone: TriggerRequest | None = None  # drop this periodic request ...
    until_ns: int = 0  # ... and wake the timer up then


@value_class
class WaitingRequests:
    """The requests that wait for their checkpoint, by rank."""

    max_concurrent: int
    min_pause_ns: int
    waiting: tuple[TriggerRequest, ...] = ()  # by rank
    serial: int = 0

    def with_one(self, request: TriggerRequest) -> tuple[WaitingRequests, TriggerRequest | None]:
        """Add a request.  Also returns the request for which there was no room, if any: this one, or the last periodic one."""
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
        """The head of the list, if it may run now.  Too much cleaning holds it back, too (CheckpointRequestDecider#chooseQueuedRequest)."""
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

    def emptied(self) -> tuple[WaitingRequests, tuple[TriggerRequest, ...]]:
        return replace(self, waiting=()), self.waiting


# ---- The tasks that take part in a checkpoint when others have finished (DefaultCheckpointPlanCalculator, FLIP-147).
#
# Triggered are the running tasks without running predecessors; all running tasks must acknowledge.  Pure over a
# description of the job's tasks: the caller knows which run and which have finished.


@value_class
class VertexLink:
    """An edge between two vertices."""

    upstream: int
    downstream: int
    # pointwise: of each downstream subtask; None: all upstream subtasks
    predecessors: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of a job and the edges between its vertices.

    Tasks are numbered by vertex, then by subtask; vertices stand in topological order.
    """

    vertices: tuple[range, ...]  # the tasks of each vertex
    links: tuple[VertexLink, ...]

    @cached_property
    def tasks(self) -> frozenset[int]:
        return frozenset(task for vertex in self.vertices for task in vertex)

    @cached_property
    def sources(self) -> frozenset[int]:
        fed = {link.downstream for link in self.links}
        return frozenset(task for number, vertex in enumerate(self.vertices) if number not in fed for task in vertex)

    def partial(self, ended: frozenset[int]) -> frozenset[int]:
        """Vertices of which some tasks, and not all, are among the ended ones."""
        return frozenset(
            n for n, vertex in enumerate(self.vertices) if 0 < len(ended.intersection(vertex)) < len(vertex)
        )


_NOBODY: frozenset[int] = frozenset()


def plan(
    graph: TaskGraph, finished: frozenset[int], not_running: frozenset[int] = _NOBODY, *, after_finish: bool = True
) -> Plan | None:
    """The plan, or None if a required task does not run.  `after_finish`: checkpoints go on when tasks have finished."""
    if not_running - finished or (finished and not after_finish) or finished == graph.tasks:
        return None
    if not finished:
        return Plan(graph.sources, graph.tasks)
    running = graph.tasks - finished
    trigger = frozenset(task for vertex in range(len(graph.vertices)) for task in _triggered(graph, vertex, running))
    return Plan(trigger, running, finished)


def partial_plan(graph: TaskGraph, full_plan: Plan, kept: frozenset[int]) -> Plan:
    """The same checkpoint without new parts of these tasks, if any other takes part.

    ValueError: data goes between one of them and one of the others, which would be in neither part or in both.
    """
    kept &= full_plan.wait_for
    if not kept or kept == full_plan.wait_for:
        return full_plan
    for link in graph.links:
        readers, writers = graph.vertices[link.downstream], graph.vertices[link.upstream]
        for number, reader in enumerate(readers):
            read = writers if link.predecessors is None else link.predecessors[number]
            if torn := [
                writer for writer in read if (writer in kept) != (reader in kept) and writer in full_plan.wait_for
            ]:
                raise ValueError(f"tasks {torn[0]} and {reader} exchange data: both keep their parts, or none")
    return replace(full_plan, trigger=full_plan.trigger - kept, wait_for=full_plan.wait_for - kept, kept=kept)


def _triggered(graph: TaskGraph, vertex: int, running: frozenset[int]) -> list[int]:
    """The tasks of one vertex that no barrier will reach.

    No task is triggered behind an all-to-all edge with one running writer, or behind a pointwise edge all of whose
    writers run.
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


# ---- A set of tasks that costs little to make again with one task more, as a machine does at every acknowledgement.


@value_class
class TaskSet:
    """A set of task numbers, as the bits of an integer.

    A copy takes an eighth of a byte per task.  A frozenset takes 70 bytes: 30,000 acknowledgements copied some 40 GB.
    """

    bits: int = 0

    def __contains__(self, task: int) -> bool:
        return bool(self.bits >> task & 1)

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __iter__(self) -> Iterator[int]:
        return (task for task in range(self.bits.bit_length()) if task in self)

    def with_task(self, task: int) -> TaskSet:
        return TaskSet(self.bits | 1 << task)


# ---- One checkpoint under way, as the coordinator sees it (PendingCheckpoint).


class PendingState(Enum):
    """While metadata is written the lock is taken: nothing expires and no other checkpoint completes."""

    WAITING_FOR_ACKNOWLEDGEMENTS = "waiting-for-acknowledgements"
    WRITING_METADATA = "writing-metadata"  # all have acknowledged; it still holds its slot


@value_class
class PendingCheckpoint:
    """A checkpoint that has been triggered and has neither completed nor failed."""

    checkpoint: int
    kind: RequestKind
    trigger_ns: int
    plan: Plan
    acknowledged: TaskSet = TaskSet()
    latest_ack_ns: int = -1
    state: PendingState = PendingState.WAITING_FOR_ACKNOWLEDGEMENTS
    savepoint: Savepoint | None = None

    @property
    def stops(self) -> bool:
        """Whether the job stops with it (a synchronous savepoint)."""
        return self.savepoint is not None and self.savepoint.stop is not None

    def with_acknowledgement(self, task: int, now: int) -> PendingCheckpoint:
        acknowledged = self.acknowledged.with_task(task)
        all_here = len(acknowledged) == len(self.plan.wait_for)
        state = PendingState.WRITING_METADATA if all_here else PendingState.WAITING_FOR_ACKNOWLEDGEMENTS
        return replace(self, acknowledged=acknowledged, latest_ack_ns=now, state=state)

    def completed(self, now: int) -> RecordCompleted:
        return RecordCompleted(self.checkpoint, self.kind, self.trigger_ns, self.latest_ack_ns, now)

    def failed(self, reason: FailureReason, now: int) -> RecordFailed:
        return RecordFailed(
            self.checkpoint, self.kind, reason, self.trigger_ns, self.latest_ack_ns, now, frozenset(self.acknowledged)
        )


# ---- Union list state and finished tasks: a vertex with such state must have all of its tasks finished, or none.
#
# Every task is restored with the whole union.  If the operators of some tasks have finished, their part is missing, and
# a checkpoint with such a part cannot be completed (PartialFinishingNotSupportedByStateException).


@value_class
class UnionState:
    """The vertices with union list state, and their finished tasks by checkpoint."""

    graph: TaskGraph
    vertices: frozenset[int]  # those that keep union list state
    # by checkpoint: tasks whose operators have finished
    finished: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def begun(self, checkpoint: int, finished: frozenset[int]) -> UnionState:
        """A checkpoint begins without those who have finished."""
        return replace(self, finished={**self.finished, checkpoint: finished}) if self.vertices else self

    def finished_in(self, task: int, checkpoint: int) -> UnionState:
        """A task takes part whose operators have finished."""
        if not self.vertices:
            return self
        return replace(self, finished={**self.finished, checkpoint: self.finished[checkpoint] | {task}})

    def refusal(self, checkpoint: int) -> FailureReason | None:
        """Why the checkpoint cannot be completed; None: it can."""
        if self.vertices and not self.vertices.isdisjoint(self.graph.partial(self.finished[checkpoint])):
            return FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING
        return None

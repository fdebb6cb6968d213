"""The tasks that take part in a checkpoint when others have finished (DefaultCheckpointPlanCalculator, FLIP-147).

Triggered are the running tasks without running predecessors; all running tasks must acknowledge.  Pure over a description of
the job's tasks: the caller knows which run and which have finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sim.protocol.machine import changed
from sim.protocol.value_class import value_class
from sim.protocol.vocabulary import Plan


@value_class
class VertexLink:
    """An edge between two vertices."""

    upstream: int
    downstream: int
    predecessors: tuple[tuple[int, ...], ...] | None = None  # pointwise: of each downstream subtask; None: all upstream subtasks


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
        return frozenset(n for n, vertex in enumerate(self.vertices) if 0 < len(ended.intersection(vertex)) < len(vertex))


_NOBODY: frozenset[int] = frozenset()


def plan(graph: TaskGraph, finished: frozenset[int], not_running: frozenset[int] = _NOBODY, *, after_finish: bool = True) -> Plan | None:
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
            if torn := [writer for writer in read if (writer in kept) != (reader in kept) and writer in full_plan.wait_for]:
                raise ValueError(f"tasks {torn[0]} and {reader} exchange data: both keep their parts, or none")
    return changed(full_plan, trigger=full_plan.trigger - kept, wait_for=full_plan.wait_for - kept, kept=kept)


def _triggered(graph: TaskGraph, vertex: int, running: frozenset[int]) -> list[int]:
    """The tasks of one vertex that no barrier will reach.

    No task is triggered behind an all-to-all edge with one running writer, or behind a pointwise edge all of whose writers run.
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

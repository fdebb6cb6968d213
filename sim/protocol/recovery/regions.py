"""Failover regions: tasks that fail together because they exchange data (RestartPipelinedRegionFailoverStrategy).

A region is a connected component over pipelined edges, task by task: one all-to-all edge joins all subtasks of its two vertices,
pointwise edges (forward, rescale) leave slices apart.  All edges of a streaming job are pipelined, so no region consumes another.
"""

from __future__ import annotations

from collections.abc import Iterable


def regions(tasks: int, exchanges: Iterable[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    """The regions of a job of so many tasks, by their first task; `exchanges` are (writing task, reading task)."""
    leader = list(range(tasks))

    def find(task: int) -> int:
        while leader[task] != task:
            leader[task] = leader[leader[task]]
            task = leader[task]
        return task

    for writer, reader in exchanges:
        first, second = sorted((find(writer), find(reader)))
        leader[second] = first
    members: dict[int, list[int]] = {}
    for task in range(tasks):
        members.setdefault(find(task), []).append(task)
    return tuple(frozenset(group) for _, group in sorted(members.items()))


def restarted_with(failed: Iterable[int], of: tuple[frozenset[int], ...]) -> frozenset[int]:
    """Everything that restarts when these tasks fail."""
    tasks = frozenset(failed)
    return frozenset().union(*(region for region in of if region & tasks))

"""The graph of a recorded job: its vertices and their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class RecordedEdge(Protocol):
    """An input of a vertex."""

    @property
    def upstream(self) -> str: ...

    @property
    def exchange(self) -> str: ...


class RecordedVertex(Protocol):
    """A vertex of a recorded job."""

    @property
    def id(self) -> str: ...

    @property
    def parallelism(self) -> int: ...

    @property
    def inputs(self) -> Sequence[RecordedEdge]: ...

    @property
    def commits(self) -> bool:
        """Whether it commits output when a checkpoint completes."""
        ...

    @property
    def is_even(self) -> bool:
        """Whether it sends equal shares to the subtasks of its readers, or the shares are unknown."""
        ...


def is_read(vertices: Iterable[RecordedVertex], name: str) -> bool:
    """Whether any vertex reads this one; others are sinks."""
    return any(edge.upstream == name for vertex in vertices for edge in vertex.inputs)


def check_graph(vertices: Iterable[RecordedVertex]) -> None:
    """ValueError: two vertices share a name, or a vertex reads one that does not stand before it."""
    known: set[str] = set()
    for vertex in vertices:
        if vertex.id in known:
            raise ValueError(f"two nodes are called '{vertex.id}'")
        for edge in vertex.inputs:
            if edge.upstream not in known:
                raise ValueError(f"node '{vertex.id}' reads '{edge.upstream}', which does not stand before it")
        known.add(vertex.id)

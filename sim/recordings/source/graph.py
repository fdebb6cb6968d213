"""The graph of a recorded job, whoever recorded it: its vertices, and who reads whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

__all__ = ["Edge", "Vertex", "check_graph", "is_read"]


class Edge(Protocol):
    """An input of a vertex."""

    @property
    def upstream(self) -> str: ...

    @property
    def exchange(self) -> str: ...


class Vertex(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def parallelism(self) -> int: ...

    @property
    def inputs(self) -> Sequence[Edge]: ...

    @property
    def commits(self) -> bool:
        """Whether it commits output when a checkpoint completes."""
        ...

    @property
    def is_even(self) -> bool:
        """Whether it gives no subtask of its readers more than another, as far as anybody knows."""
        ...


def is_read(vertices: Iterable[Vertex], name: str) -> bool:
    """Whether any vertex reads this one; the others are sinks."""
    return any(edge.upstream == name for vertex in vertices for edge in vertex.inputs)


def check_graph(vertices: Iterable[Vertex]) -> None:
    """ValueError: two vertices share a name, or one reads what does not stand before it."""
    known: set[str] = set()
    for vertex in vertices:
        if vertex.id in known:
            raise ValueError(f"two nodes are called '{vertex.id}'")
        for edge in vertex.inputs:
            if edge.upstream not in known:
                raise ValueError(f"node '{vertex.id}' reads '{edge.upstream}', which does not stand before it")
        known.add(vertex.id)

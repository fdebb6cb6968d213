"""Job graphs in charts: a box per vertex with notes, shaded by back-pressure, below the vertices that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sim.model.job import SHIPPING
from sim.model.text import one_line
from sim.plane.spec import Ship, targets
from sim.results.charts import INK, ChartAxis, Panel

_LINE, _AROUND, _GAP = 15.0, 12.0, 26.0
"""Pixels: height of a line of text, padding of a box, and gap between two rows of boxes."""
NODES = "vertex, darker for more back-pressure"
EDGES = "exchange"


@dataclass(frozen=True, slots=True)
class GraphVertex:
    """A vertex of a job graph."""

    name: str
    parallelism: int
    notes: tuple[str, ...] = ()  # a line each
    back_pressured: float | None = None  # share of time in [0, 1]; None: unknown


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of a job graph."""

    upstream: str
    downstream: str
    ship: str  # a key of SHIPPING in any case


@dataclass(frozen=True, slots=True)
class JobGraph:
    """A job graph; vertices are in topological order."""

    vertices: tuple[GraphVertex, ...]
    edges: tuple[GraphEdge, ...]

    def layers(self) -> list[list[int]]:
        """Return the vertex indices of each row; a vertex is below all vertices that it reads."""
        number = {vertex.name: place for place, vertex in enumerate(self.vertices)}
        row = [0] * len(self.vertices)
        for place, vertex in enumerate(self.vertices):
            above = [
                row[number[edge.upstream]]
                for edge in self.edges
                if edge.downstream == vertex.name and edge.upstream in number
            ]
            row[place] = 1 + max(above, default=-1)
        return [[place for place, at in enumerate(row) if at == layer] for layer in range(max(row, default=-1) + 1)]

    def writers(self, vertex: str, index: int) -> Iterator[tuple[str, range]]:
        """Yield (upstream vertex, range of its subtasks) that a subtask reads."""
        parallelism = {row.name: row.parallelism for row in self.vertices}
        for edge in self.edges:
            if edge.downstream != vertex or edge.upstream not in parallelism:
                continue
            ways = SHIPPING.get(edge.ship.lower())
            ship = Ship[ways.routing] if ways is not None else Ship.REBALANCE
            senders = range(parallelism[edge.upstream])
            found = [writer for writer in senders if index in targets(ship, writer, len(senders), parallelism[vertex])]
            if found:
                yield edge.upstream, range(found[0], found[-1] + 1)


def places(graph: JobGraph) -> list[dict[str, float]]:
    """Return the box of each vertex: x and width as shares of the panel width, top and bottom in pixels from its lower edge."""
    found: dict[int, dict[str, float]] = {}
    layers = graph.layers()
    top = graph_height(graph)
    for layer in layers:
        height = _height(graph, layer)
        for k, place in enumerate(layer):
            width = min(0.9, 0.94 / len(layer))
            left = (k + 0.5) / len(layer) - width / 2
            found[place] = {"x": left, "width": width, "top": top, "bottom": top - height}
        top -= height + _GAP
    return [found[place] for place in range(len(graph.vertices))]


def graph_height(graph: JobGraph) -> float:
    layers = graph.layers()
    return sum(_height(graph, layer) for layer in layers) + _GAP * (len(layers) - 1)


def _height(graph: JobGraph, layer: Sequence[int]) -> float:
    return _AROUND + _LINE * max(1 + len(graph.vertices[place].notes) for place in layer)


def graph_panel(graph: JobGraph, title: str) -> Panel:
    height = graph_height(graph)
    return Panel(
        title,
        ChartAxis(low=0.0, high=1.0, is_hidden=True),
        ChartAxis(low=-2.0, high=height + 2.0, is_hidden=True),
        height=height + 4,
    )


def short_name(vertex: str) -> str:
    """Return the name of a vertex as charts show it: those of real jobs may be long."""
    return one_line(vertex, 40)


def graph_marks(graph: JobGraph) -> Iterator[dict[str, Any]]:
    """Yield the marks of a job graph; edges first, so that boxes cover their ends."""
    boxes = places(graph)
    number = {vertex.name: place for place, vertex in enumerate(graph.vertices)}
    for edge in graph.edges:
        if edge.upstream in number and edge.downstream in number:
            start, end = boxes[number[edge.upstream]], boxes[number[edge.downstream]]
            yield {
                "panel": 0,
                "series": EDGES,
                "shape": "edge",
                "x": start["x"] + start["width"] / 2,
                "y": start["bottom"],
                "x2": end["x"] + end["width"] / 2,
                "y2": end["top"],
            }
    for vertex, box in zip(graph.vertices, boxes, strict=True):
        head = f"{short_name(vertex.name)}, {vertex.parallelism} subtask{'s' if vertex.parallelism > 1 else ''}"
        yield {
            "panel": 0,
            "series": NODES,
            "shape": "node",
            "x": box["x"],
            "y": box["bottom"],
            "x2": box["x"] + box["width"],
            "y2": box["top"],
            "shade": vertex.back_pressured or 0.0,
            "words": "\n".join([head, *vertex.notes]),
            "text": "; ".join([head, *vertex.notes]),
        }


COLOURS = {EDGES: INK, NODES: 1}

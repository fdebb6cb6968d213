"""The time of a checkpoint, split along the path of its slowest barrier.

A barrier reaches a vertex when the slowest upstream vertex has forwarded it: at its last barrier if checkpoints align, else at its
first (FLIP-76).  The time until the vertex gets its first barrier is waiting behind data; from the first to the last one it is
alignment.  Then come the phases of the subtask that acknowledges last.  All values are medians over checkpoints [ms].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

__all__ = ["NOWHERE", "Path", "path"]


@dataclass(frozen=True, slots=True)
class Path:
    """The parts of an end-to-end duration [ms]; NaN: not measured."""

    queue_ms: Annotated[float, "behind data, summed over the hops"]
    queue_vertex: Annotated[str, "the hop where most of it passes: in front of this vertex; a source: before its task thread answers"]
    queue_vertex_ms: Annotated[float, "what passes there"]
    queue_at_source: Annotated[bool, "whether that is a source"]
    alignment_ms: Annotated[float, "from first to last barrier, summed over the vertices that align one after the other"]
    alignment_vertex: Annotated[str, "the vertex where most of it passes"]
    alignment_vertex_ms: Annotated[float, "what passes there"]
    pre_barrier_ms: Annotated[float, "prepareSnapshotPreBarrier, summed likewise"]
    sync_ms: Annotated[float, "synchronous parts, summed likewise"]
    async_ms: Annotated[float, "of the subtask that acknowledges last"]


NOWHERE = Path(
    queue_ms=np.nan, queue_vertex="", queue_vertex_ms=np.nan, queue_at_source=False, alignment_ms=np.nan, alignment_vertex="",
    alignment_vertex_ms=np.nan, pre_barrier_ms=np.nan, sync_ms=np.nan, async_ms=np.nan,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Stop:
    """A vertex on the path, with its slowest subtask per checkpoint [ms]."""

    vertex: str
    first_ms: float  # trigger -> first barrier
    alignment_ms: float  # on the path only if barriers are forwarded after the last one
    forwarded_ms: float  # trigger -> barrier leaves for the next vertex
    pre_barrier_ms: float


def path(subtasks: pd.DataFrame, edges: Sequence[tuple[str, str]]) -> Path:
    """The path, from the rows of subtasks that acknowledged; `edges` are (upstream, downstream)."""
    done = subtasks[(subtasks["status"] == "completed") & (subtasks["start_delay"] >= 0)]
    if done.empty:
        return NOWHERE
    aligned = float(done["unaligned_checkpoint"].mean()) < 0.05
    stops = {str(name): _stop(str(name), rows, aligned=aligned) for name, rows in done.groupby("vertex", sort=False)}
    last = done.loc[done.groupby("id")["ack_timestamp"].idxmax()]
    way, hops = _way(str(last["vertex"].mode().iloc[0]), stops, edges), []
    for i, stop in enumerate(way):
        before_ms = way[i + 1].forwarded_ms if i + 1 < len(way) else 0.0
        hops.append(max(0.0, stop.first_ms - before_ms))
    queue, align = int(np.argmax(hops)), max(way, key=lambda stop: stop.alignment_ms)
    return Path(
        queue_ms=sum(hops),
        queue_vertex=way[queue].vertex,
        queue_vertex_ms=hops[queue],
        queue_at_source=queue == len(way) - 1,
        alignment_ms=sum(stop.alignment_ms for stop in (way if aligned else way[:1])),
        alignment_vertex=align.vertex,
        alignment_vertex_ms=align.alignment_ms,
        pre_barrier_ms=sum(stop.pre_barrier_ms for stop in way),
        sync_ms=float(last["sync_duration"].median()),
        async_ms=float(last["async_duration"].median()),
    )


def _stop(vertex: str, rows: pd.DataFrame, *, aligned: bool) -> _Stop:
    reached = rows["start_delay"] + (rows["alignment_duration"] if aligned else 0.0)
    slowest = rows.loc[reached.groupby(rows["id"]).idxmax()]
    first_ms, alignment_ms = float(slowest["start_delay"].median()), float(slowest["alignment_duration"].median())
    pre_barrier_ms = float(slowest["x_pre_barrier"].median())
    forwarded_ms = first_ms + pre_barrier_ms + (alignment_ms if aligned else 0.0)
    return _Stop(vertex, first_ms, alignment_ms, forwarded_ms, pre_barrier_ms)


def _way(last: str, stops: dict[str, _Stop], edges: Sequence[tuple[str, str]]) -> list[_Stop]:
    """The path back from the last vertex: each step goes to the upstream vertex that forwarded latest."""
    way = [stops[last]]
    while before := [stops[up] for up, down in edges if down == way[-1].vertex and up in stops]:
        way.append(max(before, key=lambda stop: stop.forwarded_ms))
    return way

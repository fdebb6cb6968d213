"""The size of the records on an edge, and of those a vertex emits on most of its edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sim.recordings.infer.edges.counted import Edge, Place, outputs_of
from sim.recordings.infer.edges.sums import AmountRange
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a record on the wire [bytes], with a source's timestamp."""

    likely: int
    range: AmountRange  # exact: counters tell it
    source: str


def size_counted(flow: Flows, way: str) -> Size | None:
    """The size by the counters of a vertex that reads or writes a single edge."""
    size, records = flow.total(f"bytes_{way}"), flow.total(f"records_{way}")
    if not (records > 0 and size > 0):
        return None
    counted = max(1, round(size / records))
    return Size(counted, AmountRange(counted, counted), f"{size:,.0f} bytes / {records:,.0f} records {way}, {flow.source}")


def edge_size(job: RestJob, place: Place, flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]) -> Size | None:
    """The size on one edge.  None: unknown."""
    reader, edge = place[0], edges.get(place)
    if len(job.vertex(reader).inputs) == 1:
        return size_counted(flowed[reader], "in")
    if edge is None or math.isnan(edge.likely_size):
        return None
    if edge.copies == 1 and len(outputs_of(job, edge.upstream)) == 1:
        return size_counted(flowed[edge.upstream], "out")
    return Size(
        max(1, round(edge.likely_size)),
        edge.size,
        f"{edge.likely_bytes:,.4g} B/s / {edge.likely_records * edge.copies:,.4g}/s: {edge.source}",
    )


def emitted_size(job: RestJob, writer: str, flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]) -> Size | None:
    """The size on the edge that carries most records, of those where it is known.  None: it has no readers, or all sizes are unknown."""
    places = outputs_of(job, writer)
    found = [(size, edges[place].likely_records) for place in places if place in edges and (size := edge_size(job, place, flowed, edges))]
    return max(found, key=lambda pair: (pair[0].range.is_exact, pair[1]))[0] if found else None

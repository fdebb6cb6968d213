"""The amount of records on each edge, where a vertex feeds several readers: a writer counts all its outputs together.

Flink increments `numRecordsOut` once per record, for any number of outputs that it reaches.  A reader of a single vertex counts its edge
exactly.  One with several inputs counts their sum: an edge of it follows if all the others are known, else it has bounds only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob, RestVertex

__all__ = ["Edge", "edge_flows", "unbalanced"]

TOLERANCE = 0.05
"""Windows of two vertices begin and end at different moments: counters that differ by less agree."""
CHANCE = 3  # standard deviations of a count

Pair = tuple[str, str]  # writer, reader


@dataclass(frozen=True, slots=True)
class Edge:
    """Records per second; NaN: only the bounds are known."""

    per_second: float
    at_most: float
    source: str  # where from, for people


def edge_flows(job: RestJob, flowed: Mapping[str, Flows]) -> dict[Pair, Edge]:
    """The edges of writers with several readers.  Where counters are missing there is no edge."""
    known: dict[Pair, float] = {}
    pairs = [(upstream, vertex) for vertex in job.vertices for upstream in _upstreams(vertex)]
    for upstream, vertex in pairs:
        if len(job.readers(upstream)) == 1:
            known[upstream, vertex.name] = flowed[upstream].per_second("records_out")
    for vertex in _in_order_of_inputs(job):
        unknown = [upstream for upstream in _upstreams(vertex) if (upstream, vertex.name) not in known]
        read = flowed[vertex.name].per_second("records_in") / _copies(vertex)
        if len(unknown) == 1:
            others = math.fsum(known[upstream, vertex.name] for upstream in _upstreams(vertex) if upstream != unknown[0])
            known[unknown[0], vertex.name] = max(read - others, 0.0)
    found = {}
    for upstream, vertex in pairs:
        read = flowed[vertex.name].per_second("records_in") / _copies(vertex)
        if len(job.readers(upstream)) > 1 and not math.isnan(read):
            most = min(read, flowed[upstream].per_second("records_out"))
            rate = known.get((upstream, vertex.name), math.nan)
            less = "" if len(_upstreams(vertex)) == 1 else " less what its other inputs carry"
            origin = f"{read:,.4g}/s into '{vertex.name}'{less}, {flowed[vertex.name].source}"
            found[upstream, vertex.name] = Edge(rate, most, origin)
    return found


def unbalanced(job: RestJob, flowed: Mapping[str, Flows]) -> Iterator[str]:
    """A phrase per vertex whose readers count other records than it writes."""
    for vertex in job.vertices:
        readers = job.readers(vertex.name)
        written = flowed[vertex.name].per_second("records_out")
        counted = [flowed[reader.name].per_second("records_in") / _copies(reader) for reader in readers]
        alone = all(len(_upstreams(reader)) == 1 for reader in readers)
        if not readers or math.isnan(written) or any(map(math.isnan, counted)):
            continue
        slack, writes = _slack(flowed[vertex.name], written), f"'{vertex.name}' writes {written:,.4g} records/s"
        most = max(counted)
        if alone and most > written + slack:
            yield f"{writes} and '{readers[counted.index(most)].name}' reads {most:,.4g}/s"
        elif math.fsum(counted) < written - slack:
            yield f"{writes} and its readers read {math.fsum(counted):,.4g}/s together"


def _slack(flow: Flows, per_second: float) -> float:
    """Records per second that counters of two vertices may differ by."""
    elapsed_s = flow.total("elapsed_ms") / max(len(flow.subtasks), 1) / 1000
    return TOLERANCE * per_second + CHANCE * math.sqrt(max(per_second * elapsed_s, 1.0)) / max(elapsed_s, 1.0)


def _upstreams(vertex: RestVertex) -> list[str]:
    """The writers it reads, each once: of several edges between two vertices one is kept."""
    return list(dict.fromkeys(edge.upstream for edge in vertex.inputs))


def _in_order_of_inputs(job: RestJob) -> list[RestVertex]:
    """Readers of a single vertex first: what they count makes more edges known."""
    return sorted((vertex for vertex in job.vertices if vertex.inputs), key=lambda vertex: len(_upstreams(vertex)))


def _copies(vertex: RestVertex) -> int:
    """How often a broadcast record is read."""
    return vertex.parallelism if any(edge.ship == "BROADCAST" for edge in vertex.inputs) and len(_upstreams(vertex)) == 1 else 1

"""The inputs of a vertex: their names, how records are sent, and what each edge carries of what its writer emits."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

from sim.model.catalogs.shipping import SHIPPING
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.edges.counted import Edge, Place, outputs_of
from sim.recordings.infer.edges.names import input_names
from sim.recordings.infer.edges.shares import Shares, keyed_shares
from sim.recordings.infer.edges.sizes import edge_size, emitted_size
from sim.recordings.infer.edges.sums import AmountRange
from sim.recordings.infer.flows import Flows, series
from sim.recordings.source.rest.job import RestInput, RestJob, RestVertex
from sim.units import format_number, format_size

ALIKE = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a partitioner of its own")}
"""Ship strategies that a scenario lacks -> (the nearest one, a description)."""
ALIKE_SHARE = 0.03  # an edge that carries nearly all that its writer writes is no edge of its own; so are records of nearly that size


@dataclass(frozen=True, slots=True)
class EdgeFlows:
    """The flows of the vertices of a job and over its edges."""

    vertices: Mapping[str, Flows]
    edges: Mapping[Place, Edge]
    contradicted: Collection[Place] = ()  # edges whose two ends count otherwise


def infer_inputs(draft: Draft, job: RestJob, vertex: RestVertex, flowed: EdgeFlows) -> None:
    """Set `input` and `combine`."""
    names = input_names([edge.upstream for edge in vertex.inputs], [other.name for other in job.vertices])
    ways = [SHIPPING[_taken_as(edge.ship)[0]] for edge in vertex.inputs]
    shares = keyed_shares(job, vertex, ways, flowed.vertices, flowed.edges)
    for i, (edge, name) in enumerate(zip(vertex.inputs, names, strict=True)):
        path = f"input.{name}"
        ship, origin = _ship(draft, vertex, edge)
        if name == edge.upstream and i not in shares:
            draft.put(path, ship, origin, job=vertex.name)
        else:
            if name != edge.upstream:
                draft.put(f"{path}.from", edge.upstream, job=vertex.name)
            draft.put(f"{path}.ship", ship, origin, job=vertex.name)
        if i in shares:
            _weights(draft, vertex.name, f"{path}.weights", shares[i])
        _amounts(draft, job, (vertex.name, i), path, flowed)
    if len(vertex.inputs) > 1:
        _combine(draft, job, vertex)


def _taken_as(in_plan: str) -> tuple[str, str]:
    """The nearest ship strategy of a scenario for a name in Flink's plan, and what it really is; empty: just that."""
    if (ship := next((name for name in SHIPPING if name.upper() == in_plan), "")) != "":
        return ship, ""
    return ALIKE.get(in_plan, ("rebalance", f"sent by '{in_plan}', which is unknown here" if in_plan else "sent in an unknown way"))


def _ship(draft: Draft, vertex: RestVertex, edge: RestInput) -> tuple[str, str]:
    """A ship strategy of a scenario, and its origin."""
    if not edge.is_pipelined:
        draft.not_modelled.append(f"'{vertex.name}' reads '{edge.upstream}' only when that is done (a blocking exchange)")
    ship, what = _taken_as(edge.ship)
    if not what:
        return ship, f"{edge.ship} in the plan"
    draft.not_modelled.append(f"records from '{edge.upstream}' to '{vertex.name}' are {what}: taken as {ship}")
    return ship, f"{edge.ship or 'nothing'} in the plan, taken as {ship}"


def _amounts(draft: Draft, job: RestJob, place: Place, path: str, flowed: EdgeFlows) -> None:
    """Set fan-out and record size of an edge that carries other records than its writer writes on the whole."""
    edge, reader = flowed.edges.get(place), place[0]
    if edge is None:
        return
    flow, has_inputs = flowed.vertices[edge.upstream], bool(job.vertex(edge.upstream).inputs)
    base, written = flow.per_second("records_in" if has_inputs else "records_out"), flow.per_second("records_out")
    contradicted, several = place in flowed.contradicted, len(outputs_of(job, edge.upstream)) > 1
    if not base > 0 or not written > 0 or not (several or contradicted):
        return
    question = f"How many records does '{edge.upstream}' send it per record that it {'reads' if has_inputs else 'emits'}?"
    read = flowed.vertices[reader].per_second("records_in") / edge.copies
    writes_outside = any("writer" in name.lower() for name in job.vertex(edge.upstream).chain)
    if contradicted and writes_outside and len(job.vertex(reader).inputs) == 1 and 0 < read < written:
        # what a reader of one input counts came over this edge; a sink's writer counts what it writes to the outside, too (FLIP-33)
        _as_section(draft, reader, path)
        draft.put(f"{path}.fan-out", _number(read / base), (
            f"{read:,.4g}/s into '{reader}', which reads nothing else / {base:,.4g}/s {'into' if has_inputs else 'out of'} "
            f"'{edge.upstream}'; that counts {written:,.4g}/s out, with what its writer writes to the outside"
        ), job=reader)  # fmt: skip
        question = ""
    elif contradicted:
        bounds = AmountRange(min(written, read, edge.likely_records), max(written, min(read, edge.likely_records)))
        value = bounds.nearest(edge.likely_records) / base
        why = f"{_between(bounds, base)}, the counters of its two ends contradict each other."
    elif not edge.records.is_exact:
        value, why = edge.likely_records / base, f"what fulfils all sums; {_between(edge.records, base)}, nothing tells its outputs apart."
    else:
        if abs(edge.likely_records / written - 1) > ALIKE_SHARE:
            origin = f"{edge.source} / {base:,.4g}/s {'into' if has_inputs else 'out of'} '{edge.upstream}'"
            _as_section(draft, reader, path)
            draft.put(f"{path}.fan-out", _number(edge.likely_records / base), origin, job=reader)
        question = ""
    if question:
        _as_section(draft, reader, path)
        draft.ask(f"{path}.fan-out", _number(value), question, why, job=reader)
    if several:
        _size(draft, job, place, path, flowed)


def _size(draft: Draft, job: RestJob, place: Place, path: str, flowed: EdgeFlows) -> None:
    """Set the size of an edge's records, unless it is that of its writer's."""
    found = edge_size(job, place, flowed.vertices, flowed.edges)
    emitted = emitted_size(job, flowed.edges[place].upstream, flowed.vertices, flowed.edges)
    if found is None or emitted is None:
        return
    if found.range.is_exact and abs(found.likely / emitted.likely - 1) > ALIKE_SHARE:
        _as_section(draft, place[0], path)
        draft.put(f"{path}.record", format_size(found.likely), found.source, job=place[0])
    elif not found.range.is_exact:
        _as_section(draft, place[0], path)
        most = f"at most {format_size(round(found.range.most))}" if found.range.most < math.inf else "without an upper bound"
        why = f"what the bytes of all its inputs leave; at least {format_size(max(1, round(found.range.least)))}, {most}."
        draft.ask(f"{path}.record", format_size(found.likely), "How large are the records of this edge on the wire?", why, job=place[0])


def _between(bounds: AmountRange, base: float) -> str:
    return f"between {bounds.least / base:.4g} and {bounds.most / base:.4g}"


def _number(value: float) -> str:
    """A number in four digits."""
    return format_number(Fraction(f"{value:.4g}"))


def _as_section(draft: Draft, reader: str, path: str) -> None:
    """`upstream: hash` becomes `upstream: {ship: hash}`; its comment goes with it."""
    inputs, name = draft.document["job"][reader]["input"], path.removeprefix("input.")
    if isinstance(inputs[name], str):
        place = f"job.{reader}.{path}"
        inputs[name] = {"ship": inputs[name]}
        if place in draft.comments:
            draft.comments[f"{place}.ship"] = draft.comments.pop(place)


def _combine(draft: Draft, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine`.  The plan draws a union like an operator of two inputs; some versions of Flink give the latter a watermark each."""
    question, first = "Are its inputs joined, or one stream?", vertex.chain[0] if vertex.chain else ""
    watermarks = ".currentInput2Watermark" in series(job, vertex)
    if watermarks or re.search(r"join|\bco-|\bcoprocess", first, re.IGNORECASE):
        if len(vertex.inputs) > 2:
            assumed = "none, each takes a turn of its own; write union: left at both of them."
            draft.ask("combine", "join", "Which of its edges are a union, one input of the join?", assumed, job=vertex.name)
        else:
            origin = "an operator of its chain has a metric currentInput2Watermark" if watermarks else "by its name"
            draft.put("combine", "join", origin, job=vertex.name)
    elif any(edge.ship == "HASH" for edge in vertex.inputs):
        draft.ask("combine", "join", question, "joined, because they are keyed.", job=vertex.name)
    else:
        draft.ask("combine", "union", question, "one stream, because none is keyed.", job=vertex.name)


def _weights(draft: Draft, reader: str, path: str, shares: Shares) -> None:
    draft.put(f"{path}.counted", list(shares.per_mille), shares.source, job=reader)
    if shares.doubt:
        draft.doubt(f"{path}.counted", *shares.doubt, job=reader)

"""Infer the edges of a job: names, record rates, record sizes, and the shares of downstream subtasks.

Flink counts the records and bytes of a task, not of an edge.  Where a task has several inputs or outputs, the rates of
its edges are computed from the counters on both sides.  What they leave open becomes a question to the user.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import numpy as np

from sim.jobs.infer.draft import Draft, Section
from sim.jobs.source.rest_job import Flows, RestInput, RestJob, RestVertex
from sim.model.job import SHIPPING, Shipping
from sim.model.units import format_number, format_size

# ---- Names of the inputs of a vertex in a scenario.  Several edges from the same upstream vertex need different names.


def input_names(upstreams: Sequence[str], vertices: Collection[str]) -> list[str]:
    """Return a name for each input: that of the upstream vertex, or `upstream-2`, `upstream-3` for further edges from it.

    `vertices` are the names that are taken.
    """
    names: list[str] = []
    for upstream in upstreams:
        name, number = upstream, 1
        while name in names or (name != upstream and name in vertices):
            number += 1
            name = f"{upstream}-{number}"
        names.append(name)
    return names


# ---- Records on each edge, and their size.  Flink has one counter for all outputs of a task, and one for all its inputs.
#
# `numRecordsOut` is incremented once per record, regardless of the number of outputs that the record is sent to.
# `numRecordsIn` counts the records of all inputs.  Bytes are counted once per downstream subtask that they are sent to.
#
#                          reader has one input    reader has several inputs
# writer has one output    records out of the writer
# writer has several       records in of the       records in of the reader less its other inputs; of several such
#                          reader                  inputs, in proportion to what their writers emit (asked)

EdgeId = tuple[str, int]  # (downstream vertex, index of its input)
RELATIVE_TOLERANCE = 0.05
"""Relative difference up to which two counters count as equal, because they are not sampled at the same time."""
MAX_COUNT_DEVIATIONS = 3  # number of standard deviations by which counts may differ by chance


@dataclass(frozen=True, slots=True)
class Edge:
    """The records per second over an edge."""

    upstream: str
    copies: int  # copies of each record on the wire: the parallelism of the reader for a broadcast, otherwise 1
    per_second: float  # a record that is broadcast counts once
    is_measured: bool  # False if several edges are counted together
    source: str  # origin of the record rate, as text


@dataclass(frozen=True, slots=True)
class Size:
    """The mean size of a record on the wire [bytes], including the timestamp of a source."""

    bytes: int
    source: str  # origin, as text


@dataclass(frozen=True, slots=True)
class EdgeFlows:
    """The flows over the edges of a job."""

    job: RestJob
    edges: Mapping[EdgeId, Edge]  # only edges whose reader has a record counter
    unbalanced: Mapping[str, str]  # vertex -> how its counter contradicts those of its upstreams

    def edge_size(self, edge_id: EdgeId) -> Size | None:
        """Return the size of the records on an edge, or None if they are counted together with those of other edges."""
        reader, edge = self.job.vertex(edge_id[0]), self.edges.get(edge_id)
        if len(reader.inputs) == 1:
            return measured_size(self.job.flows[reader.name], "in")
        if edge is not None and edge.copies == 1 and len(outputs_of(self.job, edge.upstream)) == 1:
            return measured_size(self.job.flows[edge.upstream], "out")
        return None

    def emitted_size(self, writer: str) -> Size | None:
        """Return the record size on the output of `writer` with the highest rate, or None if no output has a known size."""
        sizes = [
            (self.edges[edge].per_second, size)
            for edge in outputs_of(self.job, writer)
            if edge in self.edges and (size := self.edge_size(edge))
        ]
        return max(sizes, key=itemgetter(0))[1] if sizes else None


def edge_flows(job: RestJob) -> EdgeFlows:
    """Return the flows over all edges, computed from the counters of the vertices."""
    edges = {(vertex.name, i): edge for vertex in job.vertices for i, edge in enumerate(_edges_into(job, vertex))}
    return EdgeFlows(job, edges, dict(find_unbalanced(job)))


def _edges_into(job: RestJob, reader: RestVertex) -> Iterator[Edge]:
    """Yield the edges into a vertex, in the order of its inputs; nothing if its records are not counted."""
    flow = job.flows[reader.name]
    read = flow.per_second("records_in")
    if math.isnan(read):
        return
    written, copies = _written(job, reader), [_copies(reader, i) for i in range(len(reader.inputs))]
    rates = [
        rate if len(outputs_of(job, edge.upstream)) == 1 else math.nan
        for edge, rate in zip(reader.inputs, written, strict=True)
    ]
    unknown = [i for i, rate in enumerate(rates) if math.isnan(rate)]
    rest = max(read - math.fsum(rate * many for rate, many in zip(rates, copies, strict=True) if rate >= 0), 0.0)
    weights = [written[i] * copies[i] if written[i] > 0 else 0.0 for i in unknown]  # False for NaN, too
    for i, weight in zip(unknown, weights, strict=True):
        share = weight / sum(weights) if sum(weights) > 0 else 1 / len(unknown)
        rates[i] = rest * share / copies[i]
    less = "" if len(reader.inputs) == 1 else " less what its other inputs carry"
    origin = f"{read:,.4g}/s into '{reader.name}'{less}, {flow.source}"
    for i, edge in enumerate(reader.inputs):
        yield Edge(edge.upstream, copies[i], rates[i], i not in unknown or len(unknown) == 1, origin)


def find_unbalanced(job: RestJob) -> Iterator[tuple[str, str]]:
    """Yield (vertex, contradiction between the records that it reads and those that its upstream vertices write).

    For example "'map' reads 50 records/s and upstreams that feed only it write 100/s".  It may read more than all of them
    write, or less than those of its upstreams that feed no other vertex.
    """
    for reader in job.vertices:
        flow = job.flows[reader.name]
        read = flow.per_second("records_in")
        rates = [rate * _copies(reader, i) for i, rate in enumerate(_written(job, reader))]
        if not rates or math.isnan(read) or any(map(math.isnan, rates)):
            continue
        total, reads_text = math.fsum(rates), f"'{reader.name}' reads {read:,.4g} records/s"
        exclusive = math.fsum(
            rate for edge, rate in zip(reader.inputs, rates, strict=True) if len(outputs_of(job, edge.upstream)) == 1
        )
        # sampling times, and random arrivals
        counted, elapsed_s = max(max(read, total) * flow.elapsed_s, 1.0), max(flow.elapsed_s, 1.0)
        slack = RELATIVE_TOLERANCE * max(read, total) + MAX_COUNT_DEVIATIONS * math.sqrt(counted) / elapsed_s
        if read > total + slack:
            yield reader.name, f"{reads_text} and its inputs write {total:,.4g}/s"
        elif read < exclusive - slack:
            yield reader.name, f"{reads_text} and upstreams that feed only it write {exclusive:,.4g}/s"


def outputs_of(job: RestJob, writer: str) -> list[EdgeId]:
    """Return the outputs of a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _written(job: RestJob, reader: RestVertex) -> list[float]:
    """Return the records per second that the upstream vertex of each input writes, or NaN if they are not counted."""
    return [job.flows[edge.upstream].per_second("records_out") for edge in reader.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """Return how many subtasks of `vertex` receive each record of its input `i`: all for a broadcast, otherwise 1."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1


def measured_size(flow: Flows, direction: str) -> Size | None:
    """Return the mean size of the records that a vertex reads ("in") or writes ("out"), or None if it was not measured."""
    size, records = flow.total(f"bytes_{direction}"), flow.total(f"records_{direction}")
    if not (records > 0 and size > 0):
        return None
    return Size(max(1, round(size / records)), f"{size:,.0f} bytes / {records:,.0f} records {direction}, {flow.source}")


# ---- Share of a keyed edge's records that each subtask of its reader receives.
#
# A subtask has one counter for the records of all its inputs.  Each subtask receives all records of a broadcast, and an
# even share of a rebalance.  The remaining records are keyed.  Two keyed inputs are assumed to have the same skew.

MIN_SKEW = 1.1
"""Minimum records of the most loaded subtask / mean of all subtasks to ask for the skew of two keyed inputs."""


def keyed_shares(
    vertex: RestVertex, shippings: Sequence[Shipping], flow: Flows, edges: Mapping[EdgeId, Edge]
) -> tuple[list[int], str, tuple[str, str] | None] | None:
    """Return (share of each subtask of `vertex` in the records of its keyed inputs [per mille], origin, question and assumption).

    Return None if no share differs from the mean by more than `MAX_COUNT_DEVIATIONS` standard deviations (Poisson), or if
    they cannot be computed.  `shippings` has the ship
    strategy of each input.  A difference of a few per cent matters: under back-pressure, the channels to subtasks with a
    smaller share run empty, and contain no in-flight data.
    """
    rates = flow.rates("records_in")
    unkeyed = {i: edges.get((vertex.name, i)) for i, shipping in enumerate(shippings) if not shipping.keyed}
    keyed_inputs = len(shippings) - len(unkeyed)
    to_each = math.fsum(_rate_of_each_reader(edge, shippings[i], vertex.parallelism) for i, edge in unkeyed.items())
    if not keyed_inputs or vertex.parallelism < 2 or len(rates) < 2 or np.isnan([*rates, to_each]).any():
        return None
    keyed = (rates - to_each).clip(min=0.0)
    counts, total = keyed * flow.elapsed_s, keyed.sum()
    if not total > 0 or (abs(counts - counts.mean()) <= MAX_COUNT_DEVIATIONS * math.sqrt(counts.mean())).all():
        return None
    question = None
    if keyed_inputs > 1 and keyed.max() > MIN_SKEW * keyed.mean():
        question = (
            "Do the keys of its inputs have the same skew?",
            "yes; each subtask counts the records of all its inputs together.",
        )
    elif any(edge is not None and not edge.is_measured for edge in unkeyed.values()):
        question = "What are the record rates of its unkeyed inputs?", "in proportion to what their writers emit."
    less = ", less those of its other inputs" if unkeyed else ""
    source = f"records in of each subtask{less}, {flow.source}"
    return np.rint(1000 * keyed / total).astype(int).tolist(), source, question


def _rate_of_each_reader(edge: Edge | None, shipping: Shipping, readers: int) -> float:
    """Return the records per second that each subtask reads from an unkeyed input, or NaN if subtasks may read different rates."""
    if edge is None or shipping.to_one or shipping.one_to_one:
        return math.nan
    return edge.per_second / (1 if shipping.copies else readers)


# ---- The `input:` section of a vertex: name, ship strategy, key skew, fan-out and record size of each edge.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a custom partitioner")}
"""Ship strategies of Flink that scenarios do not have -> (the most similar one, a description of the difference)."""
MAX_SHARE_DIFFERENCE = 0.03
"""Relative difference between an edge and its upstream vertex up to which fan-out and record size are not set."""


def infer_inputs(draft: Draft, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    """Set the `input:` section of a vertex, and `combine` if it has several inputs."""
    section, job = draft.vertex(vertex.name), edge_flows.job
    names = input_names([edge.upstream for edge in vertex.inputs], [other.name for other in job.vertices])
    shippings = [SHIPPING[_nearest_shipping(edge.ship)[0]] for edge in vertex.inputs]
    shares = keyed_shares(vertex, shippings, job.flows[vertex.name], edge_flows.edges)
    for i, (edge, name) in enumerate(zip(vertex.inputs, names, strict=True)):
        path = f"input.{name}"
        if name != edge.upstream:
            section.put(f"{path}.from", edge.upstream)
        ship, origin = _infer_shipping(draft, vertex, edge)
        section.put(f"{path}.ship", ship)
        if shares is not None and shippings[i].keyed:
            per_mille, source, question = shares
            section.put(f"{path}.weights.counted", per_mille, source)
            if question:
                section.add_question(f"{path}.weights.counted", *question)
        _infer_amounts(section, (vertex.name, i), path, edge_flows)
        has_only_ship = section.values["input"][name].keys() == {"ship"}  # `upstream: hash`
        section.put(path if has_only_ship else f"{path}.ship", ship, origin)
    if len(vertex.inputs) > 1:
        _infer_combine(section, job, vertex)


def _nearest_shipping(in_plan: str) -> tuple[str, str]:
    """Return the ship strategy of a scenario for that of Flink's plan, and a description of the difference.

    The description is "" if they are the same.
    """
    if in_plan.lower() in SHIPPING:
        return in_plan.lower(), ""
    unknown = f"sent by the unknown ship strategy '{in_plan}'" if in_plan else "sent by an unknown ship strategy"
    return NEAREST_SHIPPING.get(in_plan, ("rebalance", unknown))


def _infer_shipping(draft: Draft, vertex: RestVertex, edge: RestInput) -> tuple[str, str]:
    """Return the ship strategy of an edge in a scenario, and its origin.  Notes in the draft what is not modelled."""
    if not edge.is_pipelined:
        draft.not_modelled.append(
            f"'{vertex.name}' reads '{edge.upstream}' only after that has finished (a blocking exchange)"
        )
    ship, difference = _nearest_shipping(edge.ship)
    if not difference:
        return ship, f"{edge.ship} in the plan"
    draft.not_modelled.append(
        f"records from '{edge.upstream}' to '{vertex.name}' are {difference}: simulated as {ship}"
    )
    return ship, f"{edge.ship or 'no ship strategy'} in the plan, simulated as {ship}"


def _infer_amounts(section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows) -> None:
    """Set fan-out and record size of an edge if they differ from those of its upstream vertex, or if counters contradict."""
    edge = edge_flows.edges.get(edge_id)
    if edge is None:
        return
    has_siblings = len(outputs_of(edge_flows.job, edge.upstream)) > 1
    is_contradicted = edge_id[0] in edge_flows.unbalanced
    if has_siblings or is_contradicted:
        _infer_fan_out(section, edge_id, path, edge_flows, is_contradicted=is_contradicted)
    size, emitted = edge_flows.edge_size(edge_id), edge_flows.emitted_size(edge.upstream)
    if has_siblings and size and emitted and abs(size.bytes / emitted.bytes - 1) > MAX_SHARE_DIFFERENCE:
        section.put(f"{path}.record", format_size(size.bytes), size.source)


def _infer_fan_out(
    section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows, *, is_contradicted: bool
) -> None:
    """Set the fan-out of an edge: records on the edge / records that its upstream vertex reads (or emits, if a source).

    * If the counters contradict each other because the upstream vertex also writes to an external system, the reader's
      counter is used.
    * If they contradict each other for another reason, or count several edges together, the user is asked.
    * Otherwise the fan-out is set if it differs from that of the upstream vertex.
    """
    edge, job = edge_flows.edges[edge_id], edge_flows.job
    reader, writer, flow = job.vertex(edge_id[0]), job.vertex(edge.upstream), job.flows[edge.upstream]
    base, written = flow.per_second("records_in" if writer.inputs else "records_out"), flow.per_second("records_out")
    if not base > 0 or not written > 0:
        return
    per_second = f"{base:,.4g}/s {'into' if writer.inputs else 'out of'} '{writer.name}'"
    read = job.flows[reader.name].per_second("records_in") / edge.copies
    value, origin, assumed = edge.per_second, "", ""
    writes_outside = any("writer" in name.lower() for name in writer.chain)
    if is_contradicted and writes_outside and len(reader.inputs) == 1 and 0 < read < written:
        # The reader has one input, so its counter is that of this edge.  The upstream counter also has the records that a
        # sink writer writes to the external system (FLIP-33).
        value = read
        origin = (
            f"{read:,.4g}/s into '{reader.name}', which reads nothing else / {per_second}, whose {written:,.4g}/s out "
            "include those of its sink writer to the external system"
        )
    elif is_contradicted:
        least, most = min(written, read, value), max(written, min(read, value))
        value = min(value, most)
        between = f"between {least / base:.4g} and {most / base:.4g}"
        assumed = f"{between}; the counters of its two ends contradict each other."
    elif not edge.is_measured:
        assumed = "in proportion to what the upstreams of its reader write: these edges are counted together."
    elif abs(value / written - 1) > MAX_SHARE_DIFFERENCE:
        origin = f"{edge.source} / {per_second}"
    else:
        return
    fan_out = format_number(Fraction(f"{value / base:.4g}"))
    if origin:
        section.put(f"{path}.fan-out", fan_out, origin)
    else:
        per = f"per record that '{writer.name}' {'reads' if writer.inputs else 'emits'}"
        question = f"How many records does '{writer.name}' send over this edge {per}?"
        section.ask(f"{path}.fan-out", fan_out, question, assumed)


def _infer_combine(section: Section, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine` to join or union, which look the same in Flink's plan.

    A join is recognized by its watermark metric per input, which some Flink versions have, or by the name of the operator.
    Otherwise the user is asked.
    """
    has_watermarks = ".currentInput2Watermark" in job.series[vertex.name].values
    if has_watermarks or re.search(r"join|\bco-|\bcoprocess", vertex.chain[0] if vertex.chain else "", re.IGNORECASE):
        if len(vertex.inputs) > 2:
            assumed = (
                "none: each edge is a join input of its own. If two edges form one input, set `union: left` on both."
            )
            section.ask("combine", "join", "Which of its edges are a union, one input of the join?", assumed)
        else:
            metric = "an operator of its chain has a metric currentInput2Watermark"
            section.put("combine", "join", metric if has_watermarks else "by its name")
        return
    is_keyed = any(edge.ship == "HASH" for edge in vertex.inputs)
    kind, why = (
        ("join", "joined, because they are keyed.") if is_keyed else ("union", "one stream, because none is keyed.")
    )
    section.ask("combine", kind, "Are its inputs joined (two inputs) or a union (one stream)?", why)

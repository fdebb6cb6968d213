"""Infer the edges of a job: names, record rates, record sizes, and the shares of downstream subtasks.

Flink counts the records and bytes of a task, not of an edge.  Where a task has several inputs or outputs, the rates of
its edges are computed from the counters on both sides, or bounded by them.  The rest becomes a question to the user.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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


# ---- Bounds on rates when only their sums are measured, by interval propagation.
#
#   equations   f1 * a1 + f2 * a2 + ... = total    (or >= total, if `total_is_lower_bound`)
#   bounds      least <= a <= most                 (`propagate_bounds`)

EdgeId = tuple[str, int]  # (downstream vertex, index of its input)
RELATIVE_TOLERANCE = 0.05
"""Relative difference up to which two counters count as equal, because they are not sampled at the same time."""


@dataclass(frozen=True, slots=True)
class AmountRange:
    """The range in which an amount (a rate of records or bytes) can be.  It is not negative, and may be unlimited."""

    least: float = 0.0
    most: float = math.inf

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    @property
    def middle(self) -> float:
        """The middle of the bounds, or the lower bound if there is no upper one.

        The middles of two amounts of which only the sum is known add up to that sum.
        """
        return self.least if self.most == math.inf else (self.least + self.most) / 2


@dataclass(frozen=True, slots=True)
class Sum:
    """An equation: the sum of the amounts, each multiplied by its factor, equals the total."""

    factors: Mapping[EdgeId, float]
    total: float
    total_is_lower_bound: bool = False

    def implied_range(self, amounts: Mapping[EdgeId, AmountRange], key: EdgeId) -> AmountRange:
        """Return the range of the amount `key` that this equation implies, given the ranges of its other amounts."""
        others = [(factor, amounts[other]) for other, factor in self.factors.items() if other != key]
        least = self.total - math.fsum(factor * amount.most for factor, amount in others)
        most = (
            math.inf if self.total_is_lower_bound else self.total - math.fsum(f * amount.least for f, amount in others)
        )
        return AmountRange(max(least, 0.0) / self.factors[key], max(most, 0.0) / self.factors[key])


def propagate_bounds(amounts: Mapping[EdgeId, AmountRange], sums: Iterable[Sum]) -> dict[EdgeId, AmountRange]:
    """Return `amounts`, narrowed by all equations.  Equations with an unknown total (NaN) are ignored.

    Exact amounts are not changed, even if an equation contradicts them.  Contradictions are reported separately, by
    `find_unbalanced`.
    """
    narrowed = dict(amounts)
    equations = sorted((each for each in sums if not math.isnan(each.total)), key=lambda each: len(each.factors))
    for _ in range(len(narrowed) + 1):
        before = dict(narrowed)
        for equation in equations:
            for key in equation.factors:
                if not narrowed[key].is_exact:
                    narrowed[key] = _intersect(narrowed[key], equation.implied_range(narrowed, key))
        if narrowed == before:
            break
    return narrowed


def _intersect(before: AmountRange, implied: AmountRange) -> AmountRange:
    """Narrow the range `before` by an implied range.

    An exact implied value replaces `before`, even if they contradict each other.  An intersection that is narrower than
    `RELATIVE_TOLERANCE`, or empty, becomes an exact value: the middle of its ends.
    """
    if implied.is_exact:
        return implied
    least, most = max(before.least, implied.least), min(before.most, implied.most)
    if most < math.inf and most - least <= RELATIVE_TOLERANCE * most:
        return AmountRange(middle := (least + most) / 2, middle)
    return AmountRange(least, most)


# ---- Records and bytes on each edge.  Flink has one counter for all outputs of a task, and one for all its inputs.
#
# `numRecordsOut` is incremented once per record, regardless of the number of outputs that the record is sent to.
# `numRecordsIn` counts the records of all inputs.  Bytes are counted once per downstream subtask that they are sent to.
# So the counters are sums over edges.  They determine the records and bytes of some edges exactly, and bound the others.

MAX_COUNT_DEVIATIONS = 3  # number of standard deviations by which counts may differ by chance


@dataclass(frozen=True, slots=True)
class Edge:
    """The records and bytes per second over an edge."""

    upstream: str
    copies: int  # copies of each record on the wire: the parallelism of the reader for a broadcast, otherwise 1
    records: AmountRange  # a record that is broadcast counts once
    bytes: AmountRange  # of all copies
    source: str  # origin of the record rate, as text

    @property
    def size(self) -> AmountRange:
        """The range of the bytes per record."""
        least, most = self.records.least * self.copies, self.records.most * self.copies
        return AmountRange(
            self.bytes.least / most if most > 0 else 0.0, self.bytes.most / least if least > 0 else math.inf
        )

    @property
    def likely_size(self) -> float:
        """Estimated bytes per record, or NaN if unknown."""
        copies = self.records.middle * self.copies
        return self.bytes.middle / copies if copies > 0 and self.bytes.middle > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Unbalanced:
    """A contradiction between the record counters of neighbouring vertices."""

    phrase: str  # for example "'map' writes 100 records/s and its readers read 50/s together"
    edges: tuple[EdgeId, ...]  # edges whose record rate is uncertain because of it


@dataclass(frozen=True, slots=True)
class EdgeFlows:
    """The flows over the edges of a job."""

    job: RestJob
    edges: Mapping[EdgeId, Edge]  # only edges whose reader has a record counter
    unbalanced: Sequence[Unbalanced]

    @property
    def contradicted(self) -> set[EdgeId]:
        """The edges whose upstream and downstream counters contradict each other."""
        return {edge for contradiction in self.unbalanced for edge in contradiction.edges}

    def edge_size(self, edge_id: EdgeId) -> Size | None:
        """Return the size of the records on an edge, or None if it is unknown.

        It is measured if the edge is the only input of its reader or, without a broadcast, the only output of its writer.
        Otherwise it is estimated from the rates of records and bytes.
        """
        reader, edge = edge_id[0], self.edges.get(edge_id)
        if len(self.job.vertex(reader).inputs) == 1:
            return measured_size(self.job.flows[reader], "in")
        if edge is None or math.isnan(edge.likely_size):
            return None
        if edge.copies == 1 and len(outputs_of(self.job, edge.upstream)) == 1:
            return measured_size(self.job.flows[edge.upstream], "out")
        rates = f"{edge.bytes.middle:,.4g} B/s / {edge.records.middle * edge.copies:,.4g}/s"
        return Size(max(1, round(edge.likely_size)), edge.size, f"{rates}: {edge.source}")

    def emitted_size(self, writer: str) -> Size | None:
        """Return the record size on the output of `writer` with the highest rate, or None if no output has a known size.

        A measured size is preferred to an estimate.
        """
        sizes = [
            (size, self.edges[edge].records.middle)
            for edge in outputs_of(self.job, writer)
            if edge in self.edges and (size := self.edge_size(edge))
        ]
        return max(sizes, key=lambda pair: (pair[0].range.is_exact, pair[1]))[0] if sizes else None


def edge_flows(job: RestJob) -> EdgeFlows:
    """Return the flows over all edges, computed from the counters of the vertices."""
    records: dict[EdgeId, AmountRange] = {}
    record_sums, byte_sums = list[Sum](), list[Sum]()
    for vertex in job.vertices:
        inputs = {(vertex.name, i): float(_copies(vertex, i)) for i in range(len(vertex.inputs))}
        outputs, flow = dict.fromkeys(outputs_of(job, vertex.name), 1.0), job.flows[vertex.name]
        written = flow.per_second("records_out")
        # An output carries all records of its writer if it is the only one, otherwise at most those.
        amount = AmountRange() if math.isnan(written) else AmountRange(written if len(outputs) == 1 else 0.0, written)
        records |= dict.fromkeys(outputs, amount)
        record_sums += [Sum(inputs, flow.per_second("records_in")), Sum(outputs, written, total_is_lower_bound=True)]
        byte_sums += [
            Sum(dict.fromkeys(inputs, 1.0), flow.per_second("bytes_in")),
            Sum(outputs, flow.per_second("bytes_out")),
        ]
    sizes = propagate_bounds(dict.fromkeys(records, AmountRange()), byte_sums)
    records = propagate_bounds(records, record_sums)
    edges = {}
    for reader in job.vertices:
        read = job.flows[reader.name].per_second("records_in")
        less = "" if len(reader.inputs) == 1 else " less what its other inputs carry"
        origin = f"{read:,.4g}/s into '{reader.name}'{less}, {job.flows[reader.name].source}"
        for i, upstream in enumerate([] if math.isnan(read) else _upstreams(reader)):
            edge = reader.name, i
            edges[edge] = Edge(upstream, _copies(reader, i), records[edge], sizes[edge], origin)
    return EdgeFlows(job, edges, list(find_unbalanced(job)))


def find_unbalanced(job: RestJob) -> Iterator[Unbalanced]:
    """Yield contradictions between the records that vertices write and the records that downstream vertices read."""
    for vertex in job.vertices:
        yield from _unbalanced_outputs(job, vertex)
        if len(set(_upstreams(vertex))) > 1:
            yield from _unbalanced_inputs(job, vertex)


def _unbalanced_outputs(job: RestJob, vertex: RestVertex) -> Iterator[Unbalanced]:
    """Yield a contradiction if one reader reads more than the vertex writes, or all readers together read less."""
    written, outputs = job.flows[vertex.name].per_second("records_out"), outputs_of(job, vertex.name)
    read = {output: _per_edge(job, *output) for output in outputs}
    if not outputs or math.isnan(written) or any(map(math.isnan, read.values())):
        return
    slack, writes_text = _slack(job.flows[vertex.name], written), f"'{vertex.name}' writes {written:,.4g} records/s"
    largest, total = max(outputs, key=read.__getitem__), math.fsum(read.values())
    have_no_other_input = all(len(set(_upstreams(job.vertex(reader)))) == 1 for reader, _ in outputs)
    if have_no_other_input and read[largest] > written + slack:
        yield Unbalanced(f"{writes_text} and '{largest[0]}' reads {read[largest]:,.4g}/s", (largest,))
    elif total < written - slack:
        yield Unbalanced(f"{writes_text} and its readers read {total:,.4g}/s together", tuple(outputs))


def _unbalanced_inputs(job: RestJob, vertex: RestVertex) -> Iterator[Unbalanced]:
    """Yield a contradiction between the records that a vertex reads and those that its upstream vertices write.

    It may read more than all of them write, or less than those of its upstreams that feed no other vertex.
    """
    read, upstreams = job.flows[vertex.name].per_second("records_in"), _upstreams(vertex)
    written = [job.flows[name].per_second("records_out") * _copies(vertex, i) for i, name in enumerate(upstreams)]
    if math.isnan(read) or any(map(math.isnan, written)):
        return
    slack, reads_text = _slack(job.flows[vertex.name], read), f"'{vertex.name}' reads {read:,.4g} records/s"
    edges, total = tuple((vertex.name, i) for i in range(len(upstreams))), math.fsum(written)
    exclusive = math.fsum(
        rate for name, rate in zip(upstreams, written, strict=True) if len(outputs_of(job, name)) == 1
    )
    # If a single upstream writes more than is read, `_unbalanced_outputs` reports it.
    no_single_writer_exceeds = read > max(written) - slack
    if read > total + slack:
        yield Unbalanced(f"{reads_text} and its inputs write {total:,.4g}/s together", edges)
    elif read < exclusive - slack and no_single_writer_exceeds:
        yield Unbalanced(f"{reads_text} and upstreams that feed only it write {exclusive:,.4g}/s", edges)


def outputs_of(job: RestJob, writer: str) -> list[EdgeId]:
    """Return the outputs of a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _per_edge(job: RestJob, name: str, i: int) -> float:
    """Return the records per second on input `i` of a vertex.

    All inputs of the reader are assumed to come from the same upstream vertex, and to carry the same rate.
    """
    reader = job.vertex(name)
    parallel_inputs = [j for j, edge in enumerate(reader.inputs) if edge.upstream == reader.inputs[i].upstream]
    return job.flows[name].per_second("records_in") / sum(_copies(reader, j) for j in parallel_inputs)


def _slack(flow: Flows, per_second: float) -> float:
    """Return the difference [records/s] that two counters may have by chance: sampling times, and random arrivals."""
    counted = max(per_second * flow.elapsed_s, 1.0)
    return RELATIVE_TOLERANCE * per_second + MAX_COUNT_DEVIATIONS * math.sqrt(counted) / max(flow.elapsed_s, 1.0)


def _upstreams(vertex: RestVertex) -> list[str]:
    """Return the upstream vertex of each input."""
    return [edge.upstream for edge in vertex.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """Return how many subtasks of `vertex` receive each record of its input `i`: all for a broadcast, otherwise 1."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1


# ---- Size of the records on an edge, and of the records that a vertex emits.


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a record on the wire [bytes], including the timestamp of a source."""

    likely: int  # measured or estimated size
    range: AmountRange  # exact if it was measured
    source: str  # origin, as text


def measured_size(flow: Flows, direction: str) -> Size | None:
    """Return the mean size of the records that a vertex reads ("in") or writes ("out"), or None if it was not measured."""
    size, records = flow.total(f"bytes_{direction}"), flow.total(f"records_{direction}")
    if not (records > 0 and size > 0):
        return None
    mean = max(1, round(size / records))
    return Size(mean, AmountRange(mean, mean), f"{size:,.0f} bytes / {records:,.0f} records {direction}, {flow.source}")


# ---- Share of a keyed edge's records that each subtask of its reader receives.
#
# A subtask has one counter for the records of all its inputs.  Each subtask receives all records of a broadcast, and an
# even share of a rebalance.  The remaining records are keyed.  Two keyed inputs are assumed to have the same skew.

MIN_SKEW = 1.1
"""Minimum records of the most loaded subtask / mean of all subtasks to ask for the skew of two keyed inputs."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each subtask of a vertex in the records of its keyed inputs."""

    per_mille: tuple[int, ...]  # by subtask
    source: str  # origin, as text
    question: tuple[str, str] | None  # (open question, assumption)


def keyed_shares(
    vertex: RestVertex, shippings: Sequence[Shipping], flow: Flows, edges: Mapping[EdgeId, Edge]
) -> Shares | None:
    """Return the shares of the subtasks of `vertex` in the records of its keyed inputs.

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
    elif math.fsum((edge.records.most - edge.records.least) * edge.copies for edge in unkeyed.values() if edge) > (
        RELATIVE_TOLERANCE * total
    ):
        question = "What are the record rates of its unkeyed inputs?", "the middle of what the counters allow."
    less = ", less those of its other inputs" if unkeyed else ""
    source = f"records in of each subtask{less}, {flow.source}"
    return Shares(tuple(np.rint(1000 * keyed / total).astype(int).tolist()), source, question)


def _rate_of_each_reader(edge: Edge | None, shipping: Shipping, readers: int) -> float:
    """Return the records per second that each subtask reads from an unkeyed input, or NaN if subtasks may read different rates."""
    if edge is None or shipping.to_one or shipping.one_to_one:
        return math.nan
    return edge.records.middle / (1 if shipping.copies else readers)


# ---- The `input:` section of a vertex: name, ship strategy, key skew, fan-out and record size of each edge.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a custom partitioner")}
"""Ship strategies of Flink that scenarios do not have -> (the most similar one, a description of the difference)."""
MAX_SHARE_DIFFERENCE = 0.03
"""Relative difference between an edge and its upstream vertex up to which fan-out and record size are not set."""


def infer_inputs(draft: Draft, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    """Set the `input:` section of a vertex, and `combine` if it has several inputs."""
    section, job = draft.vertex(vertex.name), edge_flows.job
    names = input_names(_upstreams(vertex), [other.name for other in job.vertices])
    shippings = [SHIPPING[_nearest_shipping(edge.ship)[0]] for edge in vertex.inputs]
    shares = keyed_shares(vertex, shippings, job.flows[vertex.name], edge_flows.edges)
    for i, (edge, name) in enumerate(zip(vertex.inputs, names, strict=True)):
        path = f"input.{name}"
        if name != edge.upstream:
            section.put(f"{path}.from", edge.upstream)
        ship, origin = _infer_shipping(draft, vertex, edge)
        section.put(f"{path}.ship", ship)
        if shares is not None and shippings[i].keyed:
            section.put(f"{path}.weights.counted", list(shares.per_mille), shares.source)
            if shares.question:
                section.add_question(f"{path}.weights.counted", *shares.question)
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
    if has_siblings or edge_id in edge_flows.contradicted:
        _infer_fan_out(section, edge_id, path, edge_flows)
        if has_siblings:
            _infer_size(section, edge_id, path, edge_flows)


def _infer_fan_out(section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows) -> None:
    """Set the fan-out of an edge: records on the edge / records that its upstream vertex reads (or emits, if a source).

    * If the counters contradict each other because the upstream vertex also writes to an external system, the reader's
      counter is used.
    * If they contradict each other for another reason, or determine only a range, the user is asked.
    * Otherwise the fan-out is set if it differs from that of the upstream vertex.
    """
    edge, job = edge_flows.edges[edge_id], edge_flows.job
    reader, writer, flow = job.vertex(edge_id[0]), job.vertex(edge.upstream), job.flows[edge.upstream]
    base, written = flow.per_second("records_in" if writer.inputs else "records_out"), flow.per_second("records_out")
    if not base > 0 or not written > 0:
        return
    per_second = f"{base:,.4g}/s {'into' if writer.inputs else 'out of'} '{writer.name}'"
    read = job.flows[reader.name].per_second("records_in") / edge.copies
    value, origin, assumed = edge.records.middle, "", ""
    contradicted = edge_id in edge_flows.contradicted
    writes_outside = any("writer" in name.lower() for name in writer.chain)
    if contradicted and writes_outside and len(reader.inputs) == 1 and 0 < read < written:
        # The reader has one input, so its counter is that of this edge.  The upstream counter also has the records that a
        # sink writer writes to the external system (FLIP-33).
        value = read
        origin = (
            f"{read:,.4g}/s into '{reader.name}', which reads nothing else / {per_second}, whose {written:,.4g}/s out "
            "include those of its sink writer to the external system"
        )
    elif contradicted:
        bounds = AmountRange(min(written, read, value), max(written, min(read, value)))
        value = min(max(value, bounds.least), bounds.most)
        assumed = f"{_between(bounds, base)}; the counters of its two ends contradict each other."
    elif not edge.records.is_exact:
        assumed = (
            f"the middle of what the counters allow, {_between(edge.records, base)}: its outputs are counted together."
        )
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


def _infer_size(section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows) -> None:
    """Set the record size of an edge if it differs from that of its upstream vertex.  If it is an estimate, ask the user."""
    size, emitted = edge_flows.edge_size(edge_id), edge_flows.emitted_size(edge_flows.edges[edge_id].upstream)
    if size is None or emitted is None:
        return
    if not size.range.is_exact:
        least, most = format_size(max(1, round(size.range.least))), size.range.most
        upper = f"at most {format_size(round(most))}" if most < math.inf else "without an upper bound"
        why = f"estimated from the bytes of all its inputs; at least {least}, {upper}."
        section.ask(
            f"{path}.record", format_size(size.likely), "How large are the records of this edge on the wire?", why
        )
    elif abs(size.likely / emitted.likely - 1) > MAX_SHARE_DIFFERENCE:
        section.put(f"{path}.record", format_size(size.likely), size.source)


def _between(bounds: AmountRange, base: float) -> str:
    """Return the range of a fan-out as text: `bounds` are rates on the edge, `base` is the rate that they are divided by."""
    return f"between {bounds.least / base:.4g} and {bounds.most / base:.4g}"


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

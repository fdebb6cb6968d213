"""Infer the edges of a job: names, record rates, record sizes, and shares of subtasks."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from sim.jobs.infer.draft import Draft, Section
from sim.jobs.infer.flows import Flows, series
from sim.jobs.source.rest_job import RestInput, RestJob, RestVertex
from sim.model.job import SHIPPING, Shipping
from sim.model.units import format_number, format_size

# ---- Names of a vertex's inputs in a scenario.  Several edges from the same vertex need different names.


def input_names(upstreams: Sequence[str], vertices: Collection[str]) -> list[str]:
    """Return a name for each input: the upstream vertex for the first edge from it, `upstream-2` and so on for others."""
    names: list[str] = []
    for upstream in upstreams:
        name, number = upstream, 1
        while name in names or (name != upstream and name in vertices):
            number += 1
            name = f"{upstream}-{number}"
        names.append(name)
    return names


# ---- Bounds of amounts of which only sums are known, by interval propagation.
#
#   equations   f1 * a1 + f2 * a2 + ... = total    (or >= total)
#   bounds      least <= a <= most (`propagate_bounds`)

K = TypeVar("K", bound=Hashable)
TOLERANCE = 0.05
"""Counters that differ by less agree: two vertices are not measured at exactly the same times."""


@dataclass(frozen=True, slots=True)
class AmountRange:
    """The bounds of an amount."""

    least: float = 0.0
    most: float = math.inf

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    @property
    def middle(self) -> float:
        """The middle of the bounds; of two amounts with one sum the middles add up to it."""
        return self.least if self.most == math.inf else (self.least + self.most) / 2


@dataclass(frozen=True, slots=True)
class Sum(Generic[K]):
    """An equation: the sum of amounts, each multiplied by its factor, equals the total."""

    factors: Mapping[K, float]
    total: float
    is_least: bool = False  # the sum may be larger than the total

    def without(self, amounts: Mapping[K, AmountRange], key: K) -> AmountRange:
        """Return the bounds of one amount that follow from the bounds of the other amounts."""
        others = [(factor, amounts[other]) for other, factor in self.factors.items() if other != key]
        least = math.fsum(factor * amount.least for factor, amount in others)
        most = math.fsum(factor * amount.most for factor, amount in others)
        lower = max(self.total - most, 0.0) / self.factors[key] if most < math.inf else 0.0
        return AmountRange(lower, math.inf if self.is_least else max(self.total - least, 0.0) / self.factors[key])


def propagate_bounds(amounts: Mapping[K, AmountRange], sums: Iterable[Sum[K]]) -> dict[K, AmountRange]:
    """Return the bounds of amounts if all sums hold, by interval propagation.  Sums with an unknown total are ignored.

    Exact amounts are not changed, even if a sum contradicts them.
    """
    found = dict(amounts)
    equations = sorted((each for each in sums if not math.isnan(each.total)), key=lambda each: len(each.factors))
    for _ in range(len(found) + 1):
        before = dict(found)
        for equation in equations:
            for key in equation.factors:
                if not found[key].is_exact:
                    found[key] = _intersect(found[key], equation.without(found, key))
        if found == before:
            break
    return found


def _intersect(before: AmountRange, implied: AmountRange) -> AmountRange:
    """Return the intersection of two ranges, as an exact value if its ends differ by less than `TOLERANCE`; an exact one wins."""
    if implied.is_exact:
        return implied
    least, most = max(before.least, implied.least), min(before.most, implied.most)
    if most < math.inf and most - least <= TOLERANCE * most:
        return AmountRange(middle := (least + most) / 2, middle)
    return AmountRange(least, most)


# ---- Records and bytes on each edge.  Flink counts the outputs of a task in one counter, and its inputs in another.
#
# `numRecordsOut` is incremented once per record, regardless of the number of outputs that the record is sent to;
# `numRecordsIn` counts the records of all inputs.  Bytes are counted once per subtask that they are sent to.  These
# counters are sums over edges.  They determine the records and bytes of some edges exactly, and bound the others.

MAX_COUNT_DEVIATIONS = 3  # standard deviations by which counts may differ by chance

EdgeId = tuple[str, int]  # reader, index of its input


@dataclass(frozen=True, slots=True)
class Edge:
    """The records and bytes per second over an edge."""

    upstream: str
    copies: int  # of each record on the wire: the parallelism of the reader for a broadcast, otherwise 1
    records: AmountRange  # without copies
    bytes: AmountRange  # with all copies
    source: str  # of the record count, as text

    @property
    def size(self) -> AmountRange:
        """Bounds of the bytes per record."""
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
    """Counters of vertices that contradict each other."""

    phrase: str
    edges: tuple[EdgeId, ...]  # whose records are uncertain for this reason


@dataclass(frozen=True, slots=True)
class EdgeFlows:
    """The flows through the vertices of a job and over its edges."""

    job: RestJob
    vertices: Mapping[str, Flows]
    edges: Mapping[EdgeId, Edge]  # whose readers count records
    unbalanced: Sequence[Unbalanced]

    @property
    def contradicted(self) -> set[EdgeId]:
        """The edges whose two ends have contradicting counters."""
        return {edge for found in self.unbalanced for edge in found.edges}

    def edge_size(self, place: EdgeId) -> Size | None:
        """Return the size of the records on one edge, or None if it is unknown."""
        reader, edge = place[0], self.edges.get(place)
        if len(self.job.vertex(reader).inputs) == 1:
            return size_counted(self.vertices[reader], "in")
        if edge is None or math.isnan(edge.likely_size):
            return None
        if edge.copies == 1 and len(outputs_of(self.job, edge.upstream)) == 1:
            return size_counted(self.vertices[edge.upstream], "out")
        return Size(
            max(1, round(edge.likely_size)),
            edge.size,
            f"{edge.bytes.middle:,.4g} B/s / {edge.records.middle * edge.copies:,.4g}/s: {edge.source}",
        )

    def emitted_size(self, writer: str) -> Size | None:
        """Return the size on the edge from `writer` that carries most records, or None if no edge with a known size exists.

        Measured sizes are preferred to estimates.
        """
        found = [
            (size, self.edges[edge].records.middle)
            for edge in outputs_of(self.job, writer)
            if edge in self.edges and (size := self.edge_size(edge))
        ]
        return max(found, key=lambda pair: (pair[0].range.is_exact, pair[1]))[0] if found else None


def edge_flows(job: RestJob, flowed: Mapping[str, Flows]) -> EdgeFlows:
    """Return the flows over all edges, from the counters of the vertices."""
    records, sizes, record_sums, byte_sums = dict[EdgeId, AmountRange](), dict[EdgeId, AmountRange](), [], []
    for vertex in job.vertices:
        into = {(vertex.name, i): float(_copies(vertex, i)) for i in range(len(vertex.inputs))}
        out, flow = outputs_of(job, vertex.name), flowed[vertex.name]
        written = flow.per_second("records_out")
        # An output carries all records of its writer if it is the only one, otherwise at most those.
        amount = AmountRange() if math.isnan(written) else AmountRange(written if len(out) == 1 else 0.0, written)
        records |= dict.fromkeys(out, amount)
        sizes |= dict.fromkeys(out, AmountRange())
        readers, writers = dict.fromkeys(into, 1.0), dict.fromkeys(out, 1.0)
        record_sums += [Sum(into, flow.per_second("records_in")), Sum(writers, written, is_least=True)]
        byte_sums += [Sum(readers, flow.per_second("bytes_in")), Sum(writers, flow.per_second("bytes_out"))]
    records, sizes = propagate_bounds(records, record_sums), propagate_bounds(sizes, byte_sums)
    found = {}
    for reader in job.vertices:
        read = flowed[reader.name].per_second("records_in")
        less = "" if len(reader.inputs) == 1 else " less what its other inputs carry"
        origin = f"{read:,.4g}/s into '{reader.name}'{less}, {flowed[reader.name].source}"
        for i, upstream in enumerate([] if math.isnan(read) else _upstreams(reader)):
            edge = reader.name, i
            found[edge] = Edge(upstream, _copies(reader, i), records[edge], sizes[edge], origin)
    return EdgeFlows(job, flowed, found, list(find_unbalanced(job, flowed)))


def find_unbalanced(job: RestJob, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """Yield contradictions between the records that vertices read and the records that others write."""
    for vertex in job.vertices:
        yield from _unbalanced_outputs(job, vertex, flowed)
        if len(set(_upstreams(vertex))) > 1:
            yield from _unbalanced_inputs(job, vertex, flowed)


def _unbalanced_outputs(job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """Yield a contradiction if one reader reads more than a vertex writes, or all its readers together read less."""
    written, out = flowed[vertex.name].per_second("records_out"), outputs_of(job, vertex.name)
    read = [_per_edge(job.vertex(reader), i, flowed) for reader, i in out]
    if not out or math.isnan(written) or any(map(math.isnan, read)):
        return
    slack, writes = _slack(flowed[vertex.name], written), f"'{vertex.name}' writes {written:,.4g} records/s"
    most = max(range(len(out)), key=read.__getitem__)
    have_no_other_input = all(len(set(_upstreams(job.vertex(reader)))) == 1 for reader, _ in out)
    if have_no_other_input and read[most] > written + slack:
        yield Unbalanced(f"{writes} and '{out[most][0]}' reads {read[most]:,.4g}/s", (out[most],))
    elif math.fsum(read) < written - slack:
        yield Unbalanced(f"{writes} and its readers read {math.fsum(read):,.4g}/s together", tuple(out))


def _unbalanced_inputs(job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """Yield a contradiction if a vertex reads more than all its upstreams write, or less than those without other readers."""
    read, upstreams = flowed[vertex.name].per_second("records_in"), _upstreams(vertex)
    written = [flowed[upstream].per_second("records_out") * _copies(vertex, i) for i, upstream in enumerate(upstreams)]
    if math.isnan(read) or any(map(math.isnan, written)):
        return
    slack, reads = _slack(flowed[vertex.name], read), f"'{vertex.name}' reads {read:,.4g} records/s"
    edges = tuple((vertex.name, i) for i in range(len(upstreams)))
    exclusive = math.fsum(
        most for upstream, most in zip(upstreams, written, strict=True) if len(outputs_of(job, upstream)) == 1
    )
    if read > math.fsum(written) + slack:
        yield Unbalanced(f"{reads} and its inputs write {math.fsum(written):,.4g}/s together", edges)
    elif (
        read < exclusive - slack and read > max(written) - slack
    ):  # otherwise `_unbalanced_outputs` reports that writer
        yield Unbalanced(f"{reads} and its inputs write {exclusive:,.4g}/s for it alone", edges)


def outputs_of(job: RestJob, writer: str) -> list[EdgeId]:
    """Return the edges that lead from a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _per_edge(reader: RestVertex, i: int, flowed: Mapping[str, Flows]) -> float:
    """Return the records that an edge carries if all edges from the same upstream carry the same number."""
    same = [j for j, edge in enumerate(reader.inputs) if edge.upstream == reader.inputs[i].upstream]
    return flowed[reader.name].per_second("records_in") / sum(_copies(reader, j) for j in same)


def _slack(flow: Flows, per_second: float) -> float:
    """Return the records per second by which the counters of two vertices may differ by chance."""
    elapsed_s = flow.total("elapsed_ms") / max(len(flow.subtasks), 1) / 1000
    return TOLERANCE * per_second + MAX_COUNT_DEVIATIONS * math.sqrt(max(per_second * elapsed_s, 1.0)) / max(
        elapsed_s, 1.0
    )


def _upstreams(vertex: RestVertex) -> list[str]:
    return [edge.upstream for edge in vertex.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """Return how often each record of an edge is read."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1


# ---- Size of the records on an edge, and of the records that a vertex emits.


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a record on the wire [bytes], including the timestamp of a source."""

    likely: int
    range: AmountRange  # exact if it was measured
    source: str


def size_counted(flow: Flows, direction: str) -> Size | None:
    """Return the mean size of the records of a vertex, `direction` "in" or "out", or None if it was not measured."""
    size, records = flow.total(f"bytes_{direction}"), flow.total(f"records_{direction}")
    if not (records > 0 and size > 0):
        return None
    counted = max(1, round(size / records))
    return Size(
        counted, AmountRange(counted, counted), f"{size:,.0f} bytes / {records:,.0f} records {direction}, {flow.source}"
    )


# ---- Share of a keyed edge's records that each subtask of its reader receives.
#
# A subtask counts the records of all its inputs in one counter.  Those of a broadcast come to each in full, those of a
# rebalance in equal parts; the rest is keyed.  Two keyed inputs are taken to have the same skew.

MIN_SKEW = 1.1
"""If no subtask reads more than this factor times the mean, the skew of two keyed inputs is not asked for."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a reader's subtasks in the records of one input."""

    per_mille: tuple[int, ...]
    source: str
    doubt: tuple[str, str] | tuple[()] = ()  # open question and assumption


def keyed_shares(
    vertex: RestVertex, shippings: Sequence[Shipping], flow: Flows, edges: Mapping[EdgeId, Edge]
) -> dict[int, Shares]:
    """Return the shares by input, without inputs whose subtasks do not differ significantly.

    `shippings` has the ship strategy of each input.  A difference of a few per cent matters: under back-pressure the
    channels to subtasks with a smaller share run empty, and contain no in-flight data.
    """
    keyed = [i for i, shipping in enumerate(shippings) if shipping.keyed]
    read = [_per_second(own.records_in, own.elapsed_ms) for own in flow.subtasks]
    if not keyed or vertex.parallelism < 2 or len(read) < 2 or any(map(math.isnan, read)):
        return {}
    others = [i for i in range(len(shippings)) if i not in keyed]
    unkeyed = math.fsum(
        _rate_of_each_reader(edges.get((vertex.name, i)), shippings[i], vertex.parallelism) for i in others
    )
    if math.isnan(unkeyed):
        return {}
    rest = [max(own - unkeyed, 0.0) for own in read]
    source = f"records in of each subtask{', less those of its other inputs' if others else ''}, {flow.source}"
    doubt = _question_about_unkeyed_rates(vertex, others, edges, math.fsum(rest))
    if len(keyed) > 1 and max(rest) > MIN_SKEW * math.fsum(rest) / len(rest):
        doubt = (
            "Do the keys of its inputs have the same skew?",
            "yes; each subtask counts the records of all its inputs together.",
        )
    elapsed_s = math.fsum(own.elapsed_ms for own in flow.subtasks) / len(flow.subtasks) / 1000
    if not _differ_significantly([value * elapsed_s for value in rest]):
        return {}
    shares = Shares(tuple(round(1000 * value / math.fsum(rest)) for value in rest), source, doubt)
    return dict.fromkeys(keyed, shares)


def _differ_significantly(counts: Sequence[float]) -> bool:
    """Return whether counts differ by more than `MAX_COUNT_DEVIATIONS` standard deviations."""
    mean = math.fsum(counts) / len(counts)
    return mean > 0 and any(abs(count - mean) > MAX_COUNT_DEVIATIONS * math.sqrt(mean) for count in counts)


def _rate_of_each_reader(edge: Edge | None, shipping: Shipping, readers: int) -> float:
    """Return the records per second that each subtask reads from an input without keys, or NaN if they may differ."""
    if edge is None or shipping.to_one or shipping.one_to_one:
        return math.nan
    return edge.records.middle / (1 if shipping.copies else readers)


def _question_about_unkeyed_rates(
    vertex: RestVertex, others: Sequence[int], edges: Mapping[EdgeId, Edge], keyed: float
) -> tuple[str, str] | tuple[()]:
    """Return a question and an assumption if the uncertainty of the other inputs is large compared to the `keyed` rate."""
    uncertainty = math.fsum(
        (edge.records.most - edge.records.least) * edge.copies for i in others if (edge := edges.get((vertex.name, i)))
    )
    if uncertainty <= TOLERANCE * keyed:
        return ()
    return ("How many records do its inputs without keys have?", "the middle of what the counters allow.")


def _per_second(count: float, elapsed_ms: float) -> float:
    return count / elapsed_ms * 1000 if elapsed_ms > 0 else math.nan


# ---- The `input:` section of a vertex: names, ship strategies, and fan-out and record size of single edges.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a custom partitioner")}
"""Ship strategies that a scenario lacks -> (the nearest one, a description)."""
# Fan-out and record size of an edge are set only if they differ by more than this share from those of its writer.
MAX_SHARE_DIFFERENCE = 0.03


def infer_inputs(draft: Draft, vertex: RestVertex, flowed: EdgeFlows) -> None:
    """Set `input` and `combine`."""
    section, job = draft.vertex(vertex.name), flowed.job
    names = input_names(_upstreams(vertex), [other.name for other in job.vertices])
    shippings = [SHIPPING[_nearest_shipping(edge.ship)[0]] for edge in vertex.inputs]
    shares = keyed_shares(vertex, shippings, flowed.vertices[vertex.name], flowed.edges)
    for i, (edge, name) in enumerate(zip(vertex.inputs, names, strict=True)):
        path = f"input.{name}"
        if name != edge.upstream:
            section.put(f"{path}.from", edge.upstream)
        ship, origin = _infer_shipping(draft, vertex, edge)
        section.put(f"{path}.ship", ship)
        if i in shares:
            section.put(f"{path}.weights.counted", list(shares[i].per_mille), shares[i].source)
            if shares[i].doubt:
                section.doubt(f"{path}.weights.counted", *shares[i].doubt)
        _infer_amounts(section, (vertex.name, i), path, flowed)
        has_only_ship = section.values["input"][name].keys() == {"ship"}  # `upstream: hash`
        section.put(path if has_only_ship else f"{path}.ship", ship, origin)
    if len(vertex.inputs) > 1:
        _infer_combine(section, job, vertex)


def _nearest_shipping(in_plan: str) -> tuple[str, str]:
    """Return the nearest ship strategy of a scenario to that of Flink's plan, and a description if it is not the same."""
    if in_plan.lower() in SHIPPING:
        return in_plan.lower(), ""
    unknown = f"sent by the unknown ship strategy '{in_plan}'" if in_plan else "sent by an unknown ship strategy"
    return NEAREST_SHIPPING.get(in_plan, ("rebalance", unknown))


def _infer_shipping(draft: Draft, vertex: RestVertex, edge: RestInput) -> tuple[str, str]:
    """Return a ship strategy of a scenario, and its origin."""
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


def _infer_amounts(section: Section, place: EdgeId, path: str, flowed: EdgeFlows) -> None:
    """Set fan-out and record size of an edge if they differ from those of all records that its writer emits."""
    edge = flowed.edges.get(place)
    if edge is None:
        return
    several = len(outputs_of(flowed.job, edge.upstream)) > 1
    if several or place in flowed.contradicted:
        _infer_fan_out(section, place, path, flowed)
        if several:
            _infer_size(section, place, path, flowed)


def _infer_fan_out(section: Section, place: EdgeId, path: str, flowed: EdgeFlows) -> None:
    edge, reader, writer = flowed.edges[place], place[0], flowed.job.vertex(flowed.edges[place].upstream)
    flow, has_inputs = flowed.vertices[writer.name], bool(writer.inputs)
    base, written = flow.per_second("records_in" if has_inputs else "records_out"), flow.per_second("records_out")
    if not base > 0 or not written > 0:
        return
    per_second = f"{base:,.4g}/s {'into' if has_inputs else 'out of'} '{writer.name}'"
    read = flowed.vertices[reader].per_second("records_in") / edge.copies
    value, origin, assumed = edge.records.middle, "", ""
    contradicted = place in flowed.contradicted
    writes_outside = any("writer" in name.lower() for name in writer.chain)
    if contradicted and writes_outside and len(flowed.job.vertex(reader).inputs) == 1 and 0 < read < written:
        # A reader with one input counts exactly this edge.  A sink writer also counts records written to the external system (FLIP-33).
        value = read
        origin = (
            f"{read:,.4g}/s into '{reader}', which reads nothing else / {per_second}, whose {written:,.4g}/s out include "
            "those of its sink writer to the external system"
        )
    elif contradicted:
        bounds = AmountRange(min(written, read, value), max(written, min(read, value)))
        value = min(max(value, bounds.least), bounds.most)
        assumed = f"{_between(bounds, base)}; the counters of its two ends contradict each other."
    elif not edge.records.is_exact:
        allowed = f"the middle of what the counters allow, {_between(edge.records, base)}"
        assumed = f"{allowed}: its outputs are counted together."
    elif abs(value / written - 1) > MAX_SHARE_DIFFERENCE:
        origin = f"{edge.source} / {per_second}"
    else:
        return
    fan_out = format_number(Fraction(f"{value / base:.4g}"))
    if origin:
        section.put(f"{path}.fan-out", fan_out, origin)
    else:
        verb = "reads" if has_inputs else "emits"
        question = f"How many records does '{writer.name}' send it per record that it {verb}?"
        section.ask(f"{path}.fan-out", fan_out, question, assumed)


def _infer_size(section: Section, place: EdgeId, path: str, flowed: EdgeFlows) -> None:
    """Set the size of an edge's records if it differs from the size of all records that its writer emits."""
    found, emitted = flowed.edge_size(place), flowed.emitted_size(flowed.edges[place].upstream)
    if found is None or emitted is None:
        return
    size = format_size(found.likely)
    if not found.range.is_exact:
        least, most = format_size(max(1, round(found.range.least))), found.range.most
        upper = f"at most {format_size(round(most))}" if most < math.inf else "without an upper bound"
        why = f"estimated from the bytes of all its inputs; at least {least}, {upper}."
        section.ask(f"{path}.record", size, "How large are the records of this edge on the wire?", why)
    elif abs(found.likely / emitted.likely - 1) > MAX_SHARE_DIFFERENCE:
        section.put(f"{path}.record", size, found.source)


def _between(bounds: AmountRange, base: float) -> str:
    return f"between {bounds.least / base:.4g} and {bounds.most / base:.4g}"


def _infer_combine(section: Section, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine` to join or union, which look the same in the plan.  Some Flink versions have a watermark metric per join input."""
    question, first = "Are its inputs joined, or one stream?", vertex.chain[0] if vertex.chain else ""
    watermarks = ".currentInput2Watermark" in series(job, vertex)
    if watermarks or re.search(r"join|\bco-|\bcoprocess", first, re.IGNORECASE):
        if len(vertex.inputs) > 2:
            assumed = "none, each is an input of the join. Otherwise write union: left at both of them."
            section.ask("combine", "join", "Which of its edges are a union, one input of the join?", assumed)
        else:
            origin = "an operator of its chain has a metric currentInput2Watermark" if watermarks else "by its name"
            section.put("combine", "join", origin)
    elif any(edge.ship == "HASH" for edge in vertex.inputs):
        section.ask("combine", "join", question, "joined, because they are keyed.")
    else:
        section.ask("combine", "union", question, "one stream, because none is keyed.")

"""Infer the edges of a job: names, record rates, record sizes, and the shares of downstream subtasks.

Flink counts the records and bytes of a task, not of an edge.  Where a task has several inputs or outputs, the rates of
its edges are computed from the counters on both sides, or bounded by them.  The rest becomes a question to the user.
"""

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
#   equations   f1 * a1 + f2 * a2 + ... = total    (or >= total, if `is_least`)
#   bounds      least <= a <= most                 (`propagate_bounds`)

K = TypeVar("K", bound=Hashable)
TOLERANCE = 0.05
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
class Sum(Generic[K]):
    """An equation: the sum of the amounts, each multiplied by its factor, equals the total."""

    factors: Mapping[K, float]
    total: float
    is_least: bool = False  # whether the total is only a lower bound of the sum

    def without(self, amounts: Mapping[K, AmountRange], key: K) -> AmountRange:
        """Return the range of the amount `key` that this equation implies, given the ranges of its other amounts."""
        others = [(factor, amounts[other]) for other, factor in self.factors.items() if other != key]
        least = math.fsum(factor * amount.least for factor, amount in others)
        most = math.fsum(factor * amount.most for factor, amount in others)
        lower = max(self.total - most, 0.0) / self.factors[key] if most < math.inf else 0.0
        return AmountRange(lower, math.inf if self.is_least else max(self.total - least, 0.0) / self.factors[key])


def propagate_bounds(amounts: Mapping[K, AmountRange], sums: Iterable[Sum[K]]) -> dict[K, AmountRange]:
    """Return `amounts`, narrowed by all equations.  Equations with an unknown total (NaN) are ignored.

    Exact amounts are not changed, even if an equation contradicts them.  Contradictions are reported separately, by
    `find_unbalanced`.
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
    """Narrow the range `before` by an implied range.

    An exact implied value replaces `before`, even if they contradict each other.  An intersection that is narrower than
    `TOLERANCE`, or empty, becomes an exact value: the middle of its ends.
    """
    if implied.is_exact:
        return implied
    least, most = max(before.least, implied.least), min(before.most, implied.most)
    if most < math.inf and most - least <= TOLERANCE * most:
        return AmountRange(middle := (least + most) / 2, middle)
    return AmountRange(least, most)


# ---- Records and bytes on each edge.  Flink has one counter for all outputs of a task, and one for all its inputs.
#
# `numRecordsOut` is incremented once per record, regardless of the number of outputs that the record is sent to.
# `numRecordsIn` counts the records of all inputs.  Bytes are counted once per downstream subtask that they are sent to.
# So the counters are sums over edges.  They determine the records and bytes of some edges exactly, and bound the others.

MAX_COUNT_DEVIATIONS = 3  # number of standard deviations by which counts may differ by chance

EdgeId = tuple[str, int]  # (downstream vertex, index of its input)


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
    """The flows through the vertices of a job and over its edges."""

    job: RestJob
    vertices: Mapping[str, Flows]
    edges: Mapping[EdgeId, Edge]  # only edges whose reader has a record counter
    unbalanced: Sequence[Unbalanced]

    @property
    def contradicted(self) -> set[EdgeId]:
        """The edges whose upstream and downstream counters contradict each other."""
        return {edge for found in self.unbalanced for edge in found.edges}

    def edge_size(self, place: EdgeId) -> Size | None:
        """Return the size of the records on an edge, or None if it is unknown.

        It is measured if the edge is the only input of its reader or, without a broadcast, the only output of its writer.
        Otherwise it is estimated from the rates of records and bytes.
        """
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
        """Return the record size on the output of `writer` with the highest rate, or None if no output has a known size.

        A measured size is preferred to an estimate.
        """
        found = [
            (size, self.edges[edge].records.middle)
            for edge in outputs_of(self.job, writer)
            if edge in self.edges and (size := self.edge_size(edge))
        ]
        return max(found, key=lambda pair: (pair[0].range.is_exact, pair[1]))[0] if found else None


def edge_flows(job: RestJob, flowed: Mapping[str, Flows]) -> EdgeFlows:
    """Return the flows over all edges, computed from the counters of the vertices (`flowed`, by vertex)."""
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
    """Yield contradictions between the records that vertices write and the records that downstream vertices read."""
    for vertex in job.vertices:
        yield from _unbalanced_outputs(job, vertex, flowed)
        if len(set(_upstreams(vertex))) > 1:
            yield from _unbalanced_inputs(job, vertex, flowed)


def _unbalanced_outputs(job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """Yield a contradiction if one reader reads more than the vertex writes, or all readers together read less."""
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
    """Yield a contradiction between the records that a vertex reads and those that its upstream vertices write.

    It may read more than all of them write, or less than those write that feed no other vertex.
    """
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
    """Return the outputs of a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _per_edge(reader: RestVertex, i: int, flowed: Mapping[str, Flows]) -> float:
    """Return the records per second on input `i` of `reader`.

    All inputs of the reader are assumed to come from the same upstream vertex, and to carry the same rate.
    """
    same = [j for j, edge in enumerate(reader.inputs) if edge.upstream == reader.inputs[i].upstream]
    return flowed[reader.name].per_second("records_in") / sum(_copies(reader, j) for j in same)


def _slack(flow: Flows, per_second: float) -> float:
    """Return the difference [records/s] that two counters may have by chance: sampling times, and random arrivals."""
    elapsed_s = flow.total("elapsed_ms") / max(len(flow.subtasks), 1) / 1000
    return TOLERANCE * per_second + MAX_COUNT_DEVIATIONS * math.sqrt(max(per_second * elapsed_s, 1.0)) / max(
        elapsed_s, 1.0
    )


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


def size_counted(flow: Flows, direction: str) -> Size | None:
    """Return the mean size of the records that a vertex reads ("in") or writes ("out"), or None if it was not measured."""
    size, records = flow.total(f"bytes_{direction}"), flow.total(f"records_{direction}")
    if not (records > 0 and size > 0):
        return None
    counted = max(1, round(size / records))
    return Size(
        counted, AmountRange(counted, counted), f"{size:,.0f} bytes / {records:,.0f} records {direction}, {flow.source}"
    )


# ---- Share of a keyed edge's records that each subtask of its reader receives.
#
# A subtask has one counter for the records of all its inputs.  Each subtask receives all records of a broadcast, and an
# even share of a rebalance.  The remaining records are keyed.  Two keyed inputs are assumed to have the same skew.

MIN_SKEW = 1.1
"""Minimum records of the most loaded subtask / mean of all subtasks to ask a question about the skew of two keyed inputs."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each subtask of a vertex in the records of one input."""

    per_mille: tuple[int, ...]  # by subtask
    source: str  # origin, as text
    doubt: tuple[str, str] | tuple[()] = ()  # (open question, assumption)


def keyed_shares(
    vertex: RestVertex, shippings: Sequence[Shipping], flow: Flows, edges: Mapping[EdgeId, Edge]
) -> dict[int, Shares]:
    """Return the shares of the subtasks of `vertex`, by index of its keyed inputs.

    The result is empty if the shares do not differ significantly, or if they cannot be computed.  `shippings` has the ship
    strategy of each input.  A difference of a few per cent matters: under back-pressure, the channels to subtasks with a
    smaller share run empty, and contain no in-flight data.
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
    """Return whether a count differs from the mean by more than `MAX_COUNT_DEVIATIONS` standard deviations (Poisson)."""
    mean = math.fsum(counts) / len(counts)
    return mean > 0 and any(abs(count - mean) > MAX_COUNT_DEVIATIONS * math.sqrt(mean) for count in counts)


def _rate_of_each_reader(edge: Edge | None, shipping: Shipping, readers: int) -> float:
    """Return the records per second that each subtask reads from an unkeyed input, or NaN if subtasks may read different rates."""
    if edge is None or shipping.to_one or shipping.one_to_one:
        return math.nan
    return edge.records.middle / (1 if shipping.copies else readers)


def _question_about_unkeyed_rates(
    vertex: RestVertex, others: Sequence[int], edges: Mapping[EdgeId, Edge], keyed: float
) -> tuple[str, str] | tuple[()]:
    """Return (question, assumption) if the rates of the unkeyed inputs (`others`) are too uncertain, otherwise ().

    Their uncertainty is compared with `keyed`, the rate of the keyed inputs [records/s].
    """
    uncertainty = math.fsum(
        (edge.records.most - edge.records.least) * edge.copies for i in others if (edge := edges.get((vertex.name, i)))
    )
    if uncertainty <= TOLERANCE * keyed:
        return ()
    return ("How many records do its inputs without keys have?", "the middle of what the counters allow.")


def _per_second(count: float, elapsed_ms: float) -> float:
    """Return a rate per second, or NaN if no time has elapsed."""
    return count / elapsed_ms * 1000 if elapsed_ms > 0 else math.nan


# ---- The `input:` section of a vertex: name, ship strategy, key skew, fan-out and record size of each edge.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a custom partitioner")}
"""Ship strategies of Flink that scenarios do not have -> (the most similar one, a description of the difference)."""
MAX_SHARE_DIFFERENCE = 0.03
"""Relative difference between an edge and its upstream vertex up to which fan-out and record size are not set."""


def infer_inputs(draft: Draft, vertex: RestVertex, flowed: EdgeFlows) -> None:
    """Set the `input:` section of a vertex, and `combine` if it has several inputs."""
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
                section.add_question(f"{path}.weights.counted", *shares[i].doubt)
        _infer_amounts(section, (vertex.name, i), path, flowed)
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


def _infer_amounts(section: Section, place: EdgeId, path: str, flowed: EdgeFlows) -> None:
    """Set fan-out and record size of an edge if they differ from those of its upstream vertex, or if counters contradict."""
    edge = flowed.edges.get(place)
    if edge is None:
        return
    several = len(outputs_of(flowed.job, edge.upstream)) > 1
    if several or place in flowed.contradicted:
        _infer_fan_out(section, place, path, flowed)
        if several:
            _infer_size(section, place, path, flowed)


def _infer_fan_out(section: Section, place: EdgeId, path: str, flowed: EdgeFlows) -> None:
    """Set the fan-out of an edge: records on the edge / records that its upstream vertex reads (or emits, if a source).

    * If the counters contradict each other because the upstream vertex also writes to an external system, the reader's
      counter is used.
    * If they contradict each other for another reason, or determine only a range, the user is asked.
    * Otherwise the fan-out is set if it differs from that of the upstream vertex.
    """
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
        # The reader has one input, so its counter is that of this edge.  The upstream counter also has the records that a
        # sink writer writes to the external system (FLIP-33).
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
    """Set the record size of an edge if it differs from that of its upstream vertex.  If it is an estimate, ask the user."""
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
    """Return the range of a fan-out as text: `bounds` are rates on the edge, `base` is the rate that they are divided by."""
    return f"between {bounds.least / base:.4g} and {bounds.most / base:.4g}"


def _infer_combine(section: Section, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine` to join or union, which look the same in Flink's plan.

    A join is recognized by its watermark metric per input, which some Flink versions have, or by the name of the operator.
    Otherwise the user is asked.
    """
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

"""Edges of a job: names, shares, records and bytes that they carry."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.flows import Flows, series
from sim.jobs.source.rest_job import RestInput, RestJob, RestVertex
from sim.model.job import SHIPPING, Shipping
from sim.model.units import format_number, format_size

# ---- The names of a vertex's inputs in a scenario: several edges may lead from one vertex to it, and each needs a name of its own.


def input_names(upstreams: Sequence[str], vertices: Collection[str]) -> list[str]:
    """The first edge from a vertex has its name; a further one the name with its number, unless a vertex is called so."""
    names: list[str] = []
    for upstream in upstreams:
        name, number = upstream, 1
        while name in names or (name != upstream and name in vertices):
            number += 1
            name = f"{upstream}-{number}"
        names.append(name)
    return names


# ---- Amounts of which only sums are counted: what follows for each of them, exactly or as bounds, and values that fulfil every sum.

TOLERANCE = 0.05
"""Windows of two vertices begin and end at different moments: counters that differ by less agree."""
BISECTION_STEPS = 60  # of the level at which open amounts fill a sum


@dataclass(frozen=True, slots=True)
class AmountRange:
    """A range in which an amount lies."""

    least: float = 0.0
    most: float = math.inf

    @property
    def is_exact(self) -> bool:
        return self.least == self.most

    def nearest(self, value: float) -> float:
        """The value of the range that is nearest to a given one."""
        return min(max(value, self.least), self.most)


@dataclass(frozen=True, slots=True)
class Sum:
    """A known total of amounts, each with its factor."""

    factors: Mapping[int, float]
    total: float
    is_least: bool = False  # the total or more

    def without(self, rows: Sequence[AmountRange], i: int) -> AmountRange:
        """The range that the others leave of the total for amount `i`, without its factor."""
        others = [(factor, rows[j]) for j, factor in self.factors.items() if j != i]
        least, most = (math.fsum(factor * end for factor, end in ends) for ends in _ends(others))
        left = max(self.total - most, 0.0) / self.factors[i] if most < math.inf else 0.0
        return AmountRange(left, math.inf if self.is_least else max(self.total - least, 0.0) / self.factors[i])


def narrowed(rows: Sequence[AmountRange], sums: Sequence[Sum]) -> list[AmountRange]:
    """The ranges that are left when all sums hold, by interval propagation.  What is exact stays, even where a sum contradicts it."""
    found = list(rows)
    for _ in range(len(found) + 1):
        before = list(found)
        for equation in sorted(sums, key=lambda equation: len(equation.factors)):
            for i in equation.factors:
                if not found[i].is_exact:
                    found[i] = _both(found[i], equation.without(found, i))
        if found == before:
            break
    return found


def alike(rows: Sequence[AmountRange], sums: Sequence[Sum]) -> list[float]:
    """A value for each amount, so that all sums hold: what a sum leaves open is as even as the ranges allow."""
    found = narrowed(rows, sums)
    for equation in sums:
        free = [i for i in equation.factors if not found[i].is_exact]
        if free and not equation.is_least:
            rest = max(
                equation.total
                - math.fsum(factor * found[i].least for i, factor in equation.factors.items() if i not in free),
                0.0,
            )
            level = _level([(equation.factors[i], found[i]) for i in free], rest)
            for i in free:
                found[i] = AmountRange(value := found[i].nearest(level), value)
            found = narrowed(found, sums)
    return [row.least if row.is_exact or row.most == math.inf else (row.least + row.most) / 2 for row in found]


def _both(before: AmountRange, left: AmountRange) -> AmountRange:
    """The values in both ranges; one value where both ends differ by less than the error of the counters."""
    if left.is_exact:
        return left
    least, most = max(before.least, left.least), min(before.most, left.most)
    if most < math.inf and most - least <= TOLERANCE * most:
        return AmountRange(middle := (least + most) / 2, middle)
    return AmountRange(least, most)


def _level(parts: Sequence[tuple[float, AmountRange]], rest: float) -> float:
    """The height at which these parts hold the rest."""
    low, high = 0.0, max(rest / factor for factor, _ in parts)
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        filled = math.fsum(factor * part.nearest(middle) for factor, part in parts)
        low, high = (middle, high) if filled < rest else (low, middle)
    return high


def _ends(parts: Sequence[tuple[float, AmountRange]]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [(factor, part.least) for factor, part in parts], [(factor, part.most) for factor, part in parts]


# ---- The records and bytes on each edge: a writer counts its outputs together, a reader its inputs.
#
# Flink increments `numRecordsOut` once per record, for any number of outputs that it reaches, and `numRecordsIn` for
# all inputs.  Bytes are counted once per subtask that they are sent to.  What follows from these sums is known, the
# rest has bounds.

COUNT_STANDARD_ERRORS = 3  # standard deviations of a count

Place = tuple[str, int]  # reader, which of its inputs


@dataclass(frozen=True, slots=True)
class Edge:
    """The flow over an edge per second: records as they are written, bytes of all their copies.

    Values are known, or as even as the bounds allow.
    """

    upstream: str
    copies: int  # of each record, on the wire
    records: AmountRange
    bytes: AmountRange
    likely_records: float
    likely_bytes: float
    source: str  # where the records are counted, for people

    @property
    def size(self) -> AmountRange:
        """Bytes of a record."""
        least, most = self.records.least * self.copies, self.records.most * self.copies
        return AmountRange(
            self.bytes.least / most if most > 0 else 0.0, self.bytes.most / least if least > 0 else math.inf
        )

    @property
    def likely_size(self) -> float:
        """NaN: nothing tells."""
        copies = self.likely_records * self.copies
        return self.likely_bytes / copies if copies > 0 and self.likely_bytes > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Unbalanced:
    """Counters of vertices that contradict each other."""

    phrase: str
    edges: tuple[Place, ...]  # that may carry more or less than was counted


def edge_flows(job: RestJob, flowed: Mapping[str, Flows]) -> dict[Place, Edge]:
    """All edges whose readers count records.  The lists have a value for each edge of the job, in the order of `places`."""
    places = [(vertex.name, i) for vertex in job.vertices for i in range(len(vertex.inputs))]
    position = {place: k for k, place in enumerate(places)}
    upstreams = [job_input.upstream for vertex in job.vertices for job_input in vertex.inputs]
    copies = [_copies(vertex, i) for vertex in job.vertices for i in range(len(vertex.inputs))]
    record_sums, byte_sums = _sums(job, flowed, position, copies)
    records = [
        _at_most(flowed[upstream].per_second("records_out"), is_exact=upstreams.count(upstream) == 1)
        for upstream in upstreams
    ]
    sizes = [AmountRange() for _ in places]
    known_records, known_bytes = narrowed(records, record_sums), narrowed(sizes, byte_sums)
    likely_records, likely_bytes = alike(records, record_sums), alike(sizes, byte_sums)
    found = {}
    for k, (reader, i) in enumerate(places):
        read = flowed[reader].per_second("records_in")
        if not math.isnan(read):
            less = "" if len(job.vertex(reader).inputs) == 1 else " less what its other inputs carry"
            origin = f"{read:,.4g}/s into '{reader}'{less}, {flowed[reader].source}"
            found[reader, i] = Edge(
                upstreams[k], copies[k], known_records[k], known_bytes[k], likely_records[k], likely_bytes[k], origin
            )
    return found


def unbalanced(job: RestJob, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """Vertices that read more or less than others write, as far as both count."""
    for vertex in job.vertices:
        yield from _unbalanced_outputs(job, vertex, flowed)
        if len(set(_upstreams(vertex))) > 1:
            yield from _unbalanced_inputs(job, vertex, flowed)


def _unbalanced_outputs(job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """A vertex one of whose readers reads more than it writes, or whose readers read less together."""
    written, out = flowed[vertex.name].per_second("records_out"), outputs_of(job, vertex.name)
    read = [_per_edge(job.vertex(reader), i, flowed) for reader, i in out]
    if not out or math.isnan(written) or any(map(math.isnan, read)):
        return
    slack, writes = _slack(flowed[vertex.name], written), f"'{vertex.name}' writes {written:,.4g} records/s"
    most = max(range(len(out)), key=read.__getitem__)
    read_nothing_else = all(len(set(_upstreams(job.vertex(reader)))) == 1 for reader, _ in out)
    if read_nothing_else and read[most] > written + slack:
        yield Unbalanced(f"{writes} and '{out[most][0]}' reads {read[most]:,.4g}/s", (out[most],))
    elif math.fsum(read) < written - slack:
        yield Unbalanced(f"{writes} and its readers read {math.fsum(read):,.4g}/s together", tuple(out))


def _unbalanced_inputs(job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> Iterator[Unbalanced]:
    """A vertex of several inputs that reads more than all its writers write, or less than its exclusive writers write."""
    read, upstreams = flowed[vertex.name].per_second("records_in"), _upstreams(vertex)
    written = [flowed[upstream].per_second("records_out") * _copies(vertex, i) for i, upstream in enumerate(upstreams)]
    if math.isnan(read) or any(map(math.isnan, written)):
        return
    slack, reads = _slack(flowed[vertex.name], read), f"'{vertex.name}' reads {read:,.4g} records/s"
    edges = tuple((vertex.name, i) for i in range(len(upstreams)))
    own = math.fsum(
        most for upstream, most in zip(upstreams, written, strict=True) if len(outputs_of(job, upstream)) == 1
    )
    if read > math.fsum(written) + slack:
        yield Unbalanced(f"{reads} and its inputs write {math.fsum(written):,.4g}/s together", edges)
    elif read < own - slack and read > max(written) - slack:  # else the outputs of that writer are unbalanced
        yield Unbalanced(f"{reads} and its inputs write {own:,.4g}/s for it alone", edges)


def _sums(
    job: RestJob, flowed: Mapping[str, Flows], position: Mapping[Place, int], copies: list[int]
) -> tuple[list[Sum], list[Sum]]:
    """What Flink counts together: sums of the records of edges, and sums of their bytes."""
    records, sizes = [], []
    for vertex in job.vertices:
        into = [position[vertex.name, i] for i in range(len(vertex.inputs))]
        out = [position[place] for place in outputs_of(job, vertex.name)]
        flow = flowed[vertex.name]
        records += [
            Sum({k: float(copies[k]) for k in into}, flow.per_second("records_in")),
            Sum(dict.fromkeys(out, 1.0), flow.per_second("records_out"), is_least=True),
        ]
        sizes += [
            Sum(dict.fromkeys(into, 1.0), flow.per_second("bytes_in")),
            Sum(dict.fromkeys(out, 1.0), flow.per_second("bytes_out")),
        ]
    return _known_sums(records), _known_sums(sizes)


def _known_sums(sums: list[Sum]) -> list[Sum]:
    return [total for total in sums if total.factors and not math.isnan(total.total)]


def _at_most(written: float, *, is_exact: bool) -> AmountRange:
    """An output has every record of its writer if it is the only one, else that many at most."""
    return AmountRange() if math.isnan(written) else AmountRange(written if is_exact else 0.0, written)


def outputs_of(job: RestJob, writer: str) -> list[Place]:
    """The edges that lead from a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _per_edge(reader: RestVertex, i: int, flowed: Mapping[str, Flows]) -> float:
    """Records that an edge carries if a vertex reads alike from all its edges."""
    same = [j for j, edge in enumerate(reader.inputs) if edge.upstream == reader.inputs[i].upstream]
    return flowed[reader.name].per_second("records_in") / sum(_copies(reader, j) for j in same)


def _slack(flow: Flows, per_second: float) -> float:
    """Records per second that counters of two vertices may differ by."""
    elapsed_s = flow.total("elapsed_ms") / max(len(flow.subtasks), 1) / 1000
    return TOLERANCE * per_second + COUNT_STANDARD_ERRORS * math.sqrt(max(per_second * elapsed_s, 1.0)) / max(
        elapsed_s, 1.0
    )


def _upstreams(vertex: RestVertex) -> list[str]:
    return [edge.upstream for edge in vertex.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """How often a record of an edge is read."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1


# ---- The size of the records on an edge, and of those a vertex emits on most of its edges.


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
    return Size(
        counted, AmountRange(counted, counted), f"{size:,.0f} bytes / {records:,.0f} records {way}, {flow.source}"
    )


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
    found = [
        (size, edges[place].likely_records)
        for place in places
        if place in edges and (size := edge_size(job, place, flowed, edges))
    ]
    return max(found, key=lambda pair: (pair[0].range.is_exact, pair[1]))[0] if found else None


# ---- The share of a keyed edge's records that each subtask of its reader gets, solved from counters of all its inputs together.
#
# A subtask counts the records of all its inputs in one number.  What it reads from inputs without keys is known: all of
# a broadcast, its part of what goes round, what the task before it forwards.  The rest is keyed.  Two keyed inputs are
# told apart by bytes if their records are of different sizes.  Otherwise nothing tells them apart.

APART = 1.5
"""Sizes of records that differ by a smaller factor do not tell two inputs apart."""

SKEWED = 1.1
"""A subtask that reads less than so many times the mean is not worth a question."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of a reader's subtasks.  `doubt`: a question that counters leave open, with an assumption; empty: none."""

    per_mille: tuple[int, ...]
    source: str
    doubt: tuple[str, str] | tuple[()] = ()


def keyed_shares(
    job: RestJob, vertex: RestVertex, ways: Sequence[Shipping], flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]
) -> dict[int, Shares]:
    """Input -> shares of the subtasks; inputs whose subtasks differ by no more than chance are left out.

    `ways`: how each input is sent.

    A few per cent matter: under back-pressure the channels to subtasks with a smaller share run empty, and hold no
    in-flight data.
    """
    flow = flowed[vertex.name]
    keyed = [i for i, way in enumerate(ways) if way.keyed]
    read = [_per_second(own.records_in, own.elapsed_ms) for own in flow.subtasks]
    if not keyed or vertex.parallelism < 2 or len(read) < 2 or any(map(math.isnan, read)):
        return {}
    others = [i for i in range(len(ways)) if i not in keyed]
    known = [_unkeyed(job, vertex, i, ways[i], flowed, edges) for i in others]
    if None in known:
        return {}
    rest = [max(all_ - math.fsum(of[s] for of in known if of is not None), 0.0) for s, all_ in enumerate(read)]
    source = f"records in of each subtask{', less what its other inputs bring' if others else ''}, {flow.source}"
    doubt = _amounts_of_shares(vertex, others, edges, math.fsum(rest))
    found: dict[int, Sequence[float]] = dict.fromkeys(keyed, rest)
    if len(keyed) == 2 and not others and (split := _by_size(vertex, keyed, flow, edges)) is not None:
        found = dict(zip(keyed, split, strict=True))
        source = f"records and bytes in of each subtask, whose inputs have records of different sizes, {flow.source}"
    elif len(keyed) > 1 and max(rest) > SKEWED * math.fsum(rest) / len(rest):
        doubt = (
            "Do the keys of its inputs spread alike?",
            "alike, because each subtask counts all its inputs together.",
        )
    elapsed_s = math.fsum(own.elapsed_ms for own in flow.subtasks) / len(flow.subtasks) / 1000
    return {
        i: Shares(tuple(round(1000 * value / math.fsum(values)) for value in values), source, doubt)
        for i, values in found.items()
        if _differ([value * elapsed_s for value in values])
    }


def _differ(counts: Sequence[float]) -> bool:
    """Whether shares differ by more than chance."""
    mean = math.fsum(counts) / len(counts)
    return mean > 0 and any(abs(count - mean) > COUNT_STANDARD_ERRORS * math.sqrt(mean) for count in counts)


def _unkeyed(
    job: RestJob, vertex: RestVertex, i: int, way: Shipping, flowed: Mapping[str, Flows], edges: Mapping[Place, Edge]
) -> list[float] | None:
    """Records per second that each subtask reads from an input without keys; None: nothing tells."""
    edge, readers = edges.get((vertex.name, i)), vertex.parallelism
    if edge is None:
        return None
    if way.copies:
        return [edge.likely_records] * readers
    if way.to_one:
        return [edge.likely_records] + [0.0] * (readers - 1)
    writers = flowed[edge.upstream].subtasks
    if way.one_to_one and job.vertex(edge.upstream).parallelism == readers == len(writers):
        written = [_per_second(own.records_out, own.elapsed_ms) for own in writers]
        total = math.fsum(written)
        return [edge.likely_records * own / total for own in written] if total > 0 else None
    return [edge.likely_records / readers] * readers


def _amounts_of_shares(
    vertex: RestVertex, others: Sequence[int], edges: Mapping[Place, Edge], keyed: float
) -> tuple[str, str] | tuple[()]:
    """A doubt if the other inputs may carry so much more or less that it matters."""
    apart = math.fsum(
        (edge.records.most - edge.records.least) * edge.copies for i in others if (edge := edges.get((vertex.name, i)))
    )
    if apart <= TOLERANCE * keyed:
        return ()
    return ("How many records do its inputs without keys bring?", "what fulfils all sums; the rest has keys.")


def _by_size(
    vertex: RestVertex, keyed: Sequence[int], flow: Flows, edges: Mapping[Place, Edge]
) -> tuple[Sequence[float], Sequence[float]] | None:
    """Records per second of both keyed inputs, by subtask: two equations each.  None: the sizes or the sums do not tell them apart."""
    first, second = (edges.get((vertex.name, i)) for i in keyed)
    if first is None or second is None:
        return None
    sizes = (first.likely_size, second.likely_size)
    if not (first.size.is_exact or first.records.is_exact) or not min(sizes) > 0 or max(sizes) < APART * min(sizes):
        return None
    parts: tuple[list[float], list[float]] = ([], [])
    for own in flow.subtasks:
        records, size = _per_second(own.records_in, own.elapsed_ms), _per_second(own.bytes_in, own.elapsed_ms)
        first_records = (size - sizes[1] * records) / (sizes[0] - sizes[1])
        if math.isnan(first_records):
            return None
        parts[0].append(min(max(first_records, 0.0), records))
        parts[1].append(records - parts[0][-1])
    counted = zip(parts, (first, second), strict=True)
    return (
        parts
        if all(abs(math.fsum(part) - edge.likely_records) <= TOLERANCE * edge.likely_records for part, edge in counted)
        else None
    )


def _per_second(count: float, elapsed_ms: float) -> float:
    return count / elapsed_ms * 1000 if elapsed_ms > 0 else math.nan


# ---- The inputs of a vertex: their names, how records are sent, and what each edge carries of what its writer emits.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a partitioner of its own")}
"""Ship strategies that a scenario lacks -> (the nearest one, a description)."""
# an edge that carries nearly all that its writer writes is not a edge of its own; so are records of nearly that size
ALIKE_SHARE = 0.03


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
    return NEAREST_SHIPPING.get(
        in_plan, ("rebalance", f"sent by '{in_plan}', which is unknown here" if in_plan else "sent in an unknown way")
    )


def _ship(draft: Draft, vertex: RestVertex, edge: RestInput) -> tuple[str, str]:
    """A ship strategy of a scenario, and its origin."""
    if not edge.is_pipelined:
        draft.not_modelled.append(
            f"'{vertex.name}' reads '{edge.upstream}' only when that is done (a blocking exchange)"
        )
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
    question = (
        f"How many records does '{edge.upstream}' send it per record that it {'reads' if has_inputs else 'emits'}?"
    )
    read = flowed.vertices[reader].per_second("records_in") / edge.copies
    writes_outside = any("writer" in name.lower() for name in job.vertex(edge.upstream).chain)
    if contradicted and writes_outside and len(job.vertex(reader).inputs) == 1 and 0 < read < written:
        # what a reader of one input counts came over this edge; a sink's writer counts what it writes to the outside, too (FLIP-33)
        _as_section(draft, reader, path)
        draft.put(
            f"{path}.fan-out",
            _number(read / base),
            (
                f"{read:,.4g}/s into '{reader}', which reads nothing else / {base:,.4g}/s {'into' if has_inputs else 'out of'} "
                f"'{edge.upstream}'; that counts {written:,.4g}/s out, with what its writer writes to the outside"
            ),
            job=reader,
        )
        question = ""
    elif contradicted:
        bounds = AmountRange(min(written, read, edge.likely_records), max(written, min(read, edge.likely_records)))
        value = bounds.nearest(edge.likely_records) / base
        why = f"{_between(bounds, base)}, the counters of its two ends contradict each other."
    elif not edge.records.is_exact:
        value, why = (
            edge.likely_records / base,
            f"what fulfils all sums; {_between(edge.records, base)}, nothing tells its outputs apart.",
        )
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
        most = (
            f"at most {format_size(round(found.range.most))}"
            if found.range.most < math.inf
            else "without an upper bound"
        )
        why = (
            f"what the bytes of all its inputs leave; at least {format_size(max(1, round(found.range.least)))}, {most}."
        )
        draft.ask(
            f"{path}.record",
            format_size(found.likely),
            "How large are the records of this edge on the wire?",
            why,
            job=place[0],
        )


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
            draft.ask(
                "combine", "join", "Which of its edges are a union, one input of the join?", assumed, job=vertex.name
            )
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

"""The records and bytes on each edge: a writer counts its outputs together, a reader its inputs.

Flink increments `numRecordsOut` once per record, for any number of outputs that it reaches, and `numRecordsIn` for all inputs.  Bytes are
counted once per subtask that they are sent to.  What follows from these sums is known, the rest has bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim.recordings.infer.edges.sums import TOLERANCE, AmountRange, Sum, alike, narrowed
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob, RestVertex

CHANCE = 3  # standard deviations of a count

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
        return AmountRange(self.bytes.least / most if most > 0 else 0.0, self.bytes.most / least if least > 0 else math.inf)

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
    records = [_at_most(flowed[upstream].per_second("records_out"), is_exact=upstreams.count(upstream) == 1) for upstream in upstreams]
    sizes = [AmountRange() for _ in places]
    known_records, known_bytes = narrowed(records, record_sums), narrowed(sizes, byte_sums)
    likely_records, likely_bytes = alike(records, record_sums), alike(sizes, byte_sums)
    found = {}
    for k, (reader, i) in enumerate(places):
        read = flowed[reader].per_second("records_in")
        if not math.isnan(read):
            less = "" if len(job.vertex(reader).inputs) == 1 else " less what its other inputs carry"
            origin = f"{read:,.4g}/s into '{reader}'{less}, {flowed[reader].source}"
            found[reader, i] = Edge(upstreams[k], copies[k], known_records[k], known_bytes[k], likely_records[k], likely_bytes[k], origin)
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
    own = math.fsum(most for upstream, most in zip(upstreams, written, strict=True) if len(outputs_of(job, upstream)) == 1)
    if read > math.fsum(written) + slack:
        yield Unbalanced(f"{reads} and its inputs write {math.fsum(written):,.4g}/s together", edges)
    elif read < own - slack and read > max(written) - slack:  # else the outputs of that writer are unbalanced
        yield Unbalanced(f"{reads} and its inputs write {own:,.4g}/s for it alone", edges)


def _sums(job: RestJob, flowed: Mapping[str, Flows], position: Mapping[Place, int], copies: list[int]) -> tuple[list[Sum], list[Sum]]:
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
        sizes += [Sum(dict.fromkeys(into, 1.0), flow.per_second("bytes_in")), Sum(dict.fromkeys(out, 1.0), flow.per_second("bytes_out"))]
    return _counted(records), _counted(sizes)


def _counted(sums: list[Sum]) -> list[Sum]:
    return [total for total in sums if total.factors and not math.isnan(total.total)]


def _at_most(written: float, *, is_exact: bool) -> AmountRange:
    """An output has every record of its writer if it is the only one, else that many at most."""
    return AmountRange() if math.isnan(written) else AmountRange(written if is_exact else 0.0, written)


def outputs_of(job: RestJob, writer: str) -> list[Place]:
    """The edges that lead from a vertex."""
    return [(reader.name, i) for reader in job.readers(writer) for i, edge in enumerate(reader.inputs) if edge.upstream == writer]


def _per_edge(reader: RestVertex, i: int, flowed: Mapping[str, Flows]) -> float:
    """Records that an edge carries if a vertex reads alike from all its edges."""
    same = [j for j, edge in enumerate(reader.inputs) if edge.upstream == reader.inputs[i].upstream]
    return flowed[reader.name].per_second("records_in") / sum(_copies(reader, j) for j in same)


def _slack(flow: Flows, per_second: float) -> float:
    """Records per second that counters of two vertices may differ by."""
    elapsed_s = flow.total("elapsed_ms") / max(len(flow.subtasks), 1) / 1000
    return TOLERANCE * per_second + CHANCE * math.sqrt(max(per_second * elapsed_s, 1.0)) / max(elapsed_s, 1.0)


def _upstreams(vertex: RestVertex) -> list[str]:
    return [edge.upstream for edge in vertex.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """How often a record of an edge is read."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1

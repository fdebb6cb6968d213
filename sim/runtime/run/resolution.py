"""How many records a run takes for one at each vertex, and what becomes of its counts.

A run with several records as one is several times faster and tells the same times, if a buffer still holds many of them when it leaves.
`python -m benchmarks.coarse` compares such runs with exact ones; docs/truth.md has its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sim.model.resolution.coarse import not_coarse, single_records

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.job import Input, Job, Vertex
    from sim.model.scenario import Scenario

__all__ = ["LEAST_IN_A_BUFFER", "Resolution", "marked", "resolution"]

LEAST_IN_A_BUFFER = 30
"""So many of the records of a coarse run are in a buffer when it leaves: with fewer, durations are wrong by a fifth."""
LONGEST_SERVICE_NS = 3_000_000
"""Records that are one are served in no more, for barriers wait meanwhile."""
_SECOND = 1_000_000_000
_COUNTS = {
    "tasks": ("numRecordsIn",),
    "series": ("numRecordsInPerSecond", "backlog"),
    "commits": ("records", "lost_records"),
}
"""Table -> its columns that count what a vertex reads or, a source, emits."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """`chosen`: no number was given."""

    as_one: Mapping[str, int] = field(default_factory=dict)  # vertex -> records that it takes for one
    why: str = ""  # there are no more
    chosen: bool = False

    def __str__(self) -> str:
        """Empty where there is nothing to say."""
        if self.records == 1:
            return f"simulated exactly: {self.why}" if self.chosen else ""
        numbers = set(self.as_one.values())
        where = "" if len(numbers) == 1 else " at " + ", ".join(name for name, k in self.as_one.items() if k == self.records)
        fewer = [f"{k} at {name}" for name, k in self.as_one.items() if k < self.records]
        return (
            f"{self.records} records are simulated as one{where}"
            + (f" ({', '.join(fewer)})" if fewer else "")
            + (f": {self.why}" if self.why else "")
        )

    @property
    def records(self) -> int:
        """Simulated as one, where they are most; 1: the run is exact."""
        return max(self.as_one.values(), default=1)

    @property
    def mark(self) -> int | dict[str, int]:
        """What tables carry: the number, or the numbers by vertex."""
        return self.records if len(set(self.as_one.values())) <= 1 else dict(self.as_one)


class _Edge(NamedTuple):
    name: str
    inlet: Input
    reader: Vertex
    fill: float  # records in a buffer that leaves


def resolution(scenario: Scenario) -> Resolution:
    """What `run.resolution` comes to.  A number is taken as it is: the reader of the file has refused what cannot be."""
    names = [vertex.name for vertex in scenario.job.vertices]
    if scenario.run.resolution:
        return Resolution(dict.fromkeys(names, scenario.run.resolution))
    exact = dict.fromkeys(names, 1)
    for reason in not_coarse(scenario):
        return Resolution(exact, reason, chosen=True)
    edges = list(_edges(scenario))
    as_one = _as_one(scenario, edges)
    reasons = [reason for _, reason in single_records(scenario)]
    if edges:
        least = min(edges, key=lambda edge: edge.fill)
        reasons.append(f"{least.name}: a buffer leaves with {least.fill:.3g} records")
    if max(as_one.values()) == 1 and edges and least.fill < 2 * LEAST_IN_A_BUFFER:
        reasons[-1] += f", and must leave with {2 * LEAST_IN_A_BUFFER}"
    return Resolution(as_one, reasons[0] if reasons else "no edge", chosen=True)


def _as_one(scenario: Scenario, edges: list[_Edge]) -> dict[str, int]:
    """By vertex: as many as leave enough in each buffer that it reads, and that it writes at once.  A source: as many as its readers."""
    job = scenario.job
    single = {name for name, _ in single_records(scenario)}
    as_one: dict[str, int] = {}
    for vertex in reversed(job.vertices):
        read = [edge.fill / LEAST_IN_A_BUFFER for edge in edges if edge.reader is vertex]
        written = [_written(job, edge, vertex, as_one[edge.reader.name]) for edge in edges if edge.inlet.upstream == vertex.name]
        most = min([*read, *written], default=1.0)
        k = 1 if vertex.name in single else max(1, int(most + 1e-9))
        as_one[vertex.name] = min(k, max(1, LONGEST_SERVICE_NS // max(1, _slowest_ns(vertex))))
    return {vertex.name: as_one[vertex.committer_of or vertex.name] for vertex in job.vertices}


def _written(job: Job, edge: _Edge, writer: Vertex, read: int) -> float:
    """As many of its records as may be one for this edge, whose reader takes `read` for one."""
    if writer.source is not None:
        return float(read / (job.fan_out(edge.inlet) or 1))
    return max(1.0, edge.fill / LEAST_IN_A_BUFFER) / (_on_a_channel(job, edge.inlet, edge.reader) or 1.0)


def marked(tables: Mapping[str, pd.DataFrame], how: Resolution, job: Job) -> None:
    """Counts of records are given back their size, and each table says how many were simulated as one.  `job`: as it is described."""
    for name, table in tables.items():
        for column in set(_COUNTS.get(name, ())) & set(table):
            table[column] *= table["vertex"].map(how.as_one).astype(table[column].dtype)
        table.attrs["records_as_one"] = how.mark
    written = {vertex.name: _emitted(job, vertex, how.as_one) for vertex in job.vertices}
    tasks = tables["tasks"]
    tasks["numRecordsOut"] = (tasks["numRecordsOut"] * tasks["vertex"].map(written)).round().astype(tasks["numRecordsOut"].dtype)


def _emitted(job: Job, writer: Vertex, as_one: Mapping[str, int]) -> float:
    """How many records each group that a vertex writes is on the mean: its edges have the same inputs, and their fan-outs divide them."""
    edges = [
        (inlet, reader) for reader in job.vertices for inlet in reader.inputs if inlet.upstream == writer.name and not reader.committer_of
    ]
    copies = [job.fan_out(inlet) * (reader.parallelism if inlet.shipping.copies else 1) for inlet, reader in edges]
    groups = sum(number / as_one[reader.name] for number, (_, reader) in zip(copies, edges, strict=True))
    return float(sum(copies) / groups) if groups else 1.0


def _edges(scenario: Scenario) -> Iterator[_Edge]:
    """All edges, but for those that carry no records."""
    job, network = scenario.job, scenario.cluster.network
    flow: dict[str, float] = {}  # records a subtask takes or emits per second, where they are fewest
    for vertex in job.vertices:
        coming = sum(flow[inlet.upstream] * _share(job, inlet, vertex) for inlet in vertex.inputs)
        flow[vertex.name] = min(_SECOND / max(1, _slowest_ns(vertex)), coming if vertex.inputs else min(_offered(vertex)))
        for inlet in vertex.inputs:
            if vertex.committer_of:
                continue
            room = network.segment_bytes / inlet.record_bytes.mean
            passing = flow[inlet.upstream] * _on_a_channel(job, inlet, vertex) * network.buffer_timeout_ns / _SECOND
            yield _Edge(f"{inlet.upstream} -> {vertex.name}", inlet, vertex, room if network.buffer_timeout_ns < 0 else min(room, passing))


def _offered(vertex: Vertex) -> list[float]:
    """The rates of a source, but for pauses."""
    return [float(rate.per_second) for rate in (vertex.source.rates if vertex.source else ()) if rate.per_second] or [float("inf")]


def _slowest_ns(vertex: Vertex) -> int:
    """The longest mean time of a record, at its slowest subtask."""
    slowest = max([inlet.service.mean for inlet in vertex.inputs] or [vertex.service.mean])
    return int(slowest * max([Fraction(1), *(factor for _, factor in vertex.service_factors)]))


def _share(job: Job, inlet: Input, reader: Vertex) -> float:
    """Records that come to a reader from all subtasks upstream, per record that one of these takes."""
    writer = job.vertex(inlet.upstream)
    passing = float(job.fan_out(inlet)) * writer.parallelism
    return passing if inlet.shipping.copies else passing / reader.parallelism


def _on_a_channel(job: Job, inlet: Input, reader: Vertex) -> float:
    """Records on the thinnest channel in use, per record that its writer takes."""
    copies, shipping = float(job.fan_out(inlet)), inlet.shipping
    if shipping.copies or shipping.one_to_one or shipping.to_one:
        return copies
    if shares := reader.shares(inlet):
        return copies * float(min(share for share in shares if share))
    channels = reader.parallelism
    if shipping.pointwise:
        channels = max(1, -(-reader.parallelism // job.vertex(inlet.upstream).parallelism))
    return copies / channels

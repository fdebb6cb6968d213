"""How many records a run takes for one, and what becomes of its counts.

A run with k records as one is several times faster and tells the same times, if a buffer still holds many of them when it leaves.
`python -m benchmarks.coarse` compares such runs with exact ones; docs/truth.md has its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sim.model.resolution.coarse import not_coarse

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.job import Input, Job, Vertex
    from sim.model.scenario import Scenario

__all__ = ["LEAST_IN_A_BUFFER", "Resolution", "marked", "resolution"]

LEAST_IN_A_BUFFER = 30
"""So many of the records of a coarse run are in a buffer when it leaves: with fewer, durations are wrong by a fifth."""
_SECOND = 1_000_000_000
_COUNTS = {
    "tasks": ("numRecordsIn", "numRecordsOut"),
    "series": ("numRecordsInPerSecond", "backlog"),
    "commits": ("records", "lost_records"),
    "recoveries": ("replayed_records", "served_again"),
}
"""Table -> its columns that count records."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """`chosen`: nobody gave a number."""

    records: int = 1  # simulated as one; 1: the run is exact
    why: str = ""  # it is no other number
    chosen: bool = False

    def __str__(self) -> str:
        """Empty where there is nothing to say."""
        if self.records > 1:
            return f"{self.records} records are simulated as one" + (f": {self.why}" if self.why else "")
        return f"simulated exactly: {self.why}" if self.chosen else ""


def resolution(scenario: Scenario) -> Resolution:
    """What `run.resolution` comes to.  A number is taken as it is: the reader of the file has refused what cannot be."""
    if scenario.run.resolution:
        return Resolution(scenario.run.resolution)
    for reason in not_coarse(scenario):
        return Resolution(why=reason, chosen=True)
    fill, where = min(_fills(scenario), default=(0.0, "no edge"))
    records = int(fill / LEAST_IN_A_BUFFER)
    if records < 2:
        needed = 2 * LEAST_IN_A_BUFFER
        return Resolution(why=f"{where}: a buffer leaves with {fill:.3g} records, and must leave with {needed}", chosen=True)
    return Resolution(records, f"{where}: a buffer leaves with {fill:.3g}", chosen=True)


def marked(tables: Mapping[str, pd.DataFrame], records: int) -> None:
    """Counts of records are given back their size, and each table says how many were simulated as one."""
    for name, table in tables.items():
        for column in set(_COUNTS.get(name, ())) & set(table):
            table[column] *= records
        table.attrs["records_as_one"] = records


def _fills(scenario: Scenario) -> Iterator[tuple[float, str]]:
    """By edge: the records in a buffer that leaves, and the name of the edge."""
    job, network = scenario.job, scenario.cluster.network
    flow: dict[str, float] = {}  # records a subtask takes or emits per second, where they are fewest
    for vertex in job.vertices:
        coming = sum(flow[inlet.upstream] * _share(job, inlet, vertex) for inlet in vertex.inputs)
        slowest = _capacity(vertex) / float(max([Fraction(1), *(factor for _, factor in vertex.service_factors)]))
        flow[vertex.name] = min(slowest, coming if vertex.inputs else min(_offered(vertex)))
        for inlet in vertex.inputs:
            if vertex.committer_of:
                continue
            room = network.segment_bytes / inlet.record_bytes.mean
            passing = flow[inlet.upstream] * _on_a_channel(job, inlet, vertex) * network.buffer_timeout_ns / _SECOND
            yield (room if network.buffer_timeout_ns < 0 else min(room, passing)), f"{inlet.upstream} -> {vertex.name}"


def _offered(vertex: Vertex) -> list[float]:
    """The rates of a source, but for pauses."""
    return [float(rate.per_second) for rate in (vertex.source.rates if vertex.source else ()) if rate.per_second] or [float("inf")]


def _capacity(vertex: Vertex) -> float:
    slowest_ns = max([inlet.service.mean for inlet in vertex.inputs] or [vertex.service.mean])
    return _SECOND / slowest_ns if slowest_ns else float("inf")


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
    if inlet.weights:
        return copies * float(min(weight for weight in inlet.weights if weight) / sum(inlet.weights))
    channels = reader.parallelism
    if shipping.pointwise:
        channels = max(1, -(-reader.parallelism // job.vertex(inlet.upstream).parallelism))
    return copies / channels

"""The load of a job against its capacity: the busiest subtask's share of time at the highest rate of the sources."""

from __future__ import annotations

from fractions import Fraction

from sim.model.job import Input, Job, Vertex
from sim.model.key_groups import key_groups
from sim.model.scenario import Scenario
from sim.units import SECOND

_LOW = Fraction(4, 5)
"""Above it, queues of a server with some randomness are no longer short."""


def loads_of(scenario: Scenario) -> list[str]:
    """Words for the load: whether it changes, and its greatest level.  A source without a limit is more than any capacity."""
    sources = [vertex.source for vertex in scenario.job.vertices if vertex.source is not None]
    changing = ["changing rates"] if any(len(source.rates) > 1 for source in sources) else []
    busiest = utilisation(scenario.job)
    if busiest is None or busiest > 1:
        return [*changing, "more than can be served"]
    return [*changing, "below 80 %" if busiest < _LOW else "80 to 100 %"]


def utilisation(job: Job) -> Fraction | None:
    """The utilisation of the busiest subtask; above 1, sources are throttled.  None: a source has no limit of its own."""
    rates: dict[str, Fraction] = {}  # records read, or emitted by a source
    busiest = Fraction(0)
    for vertex in job.vertices:
        if vertex.source is not None:
            if not vertex.source.rates:
                return None
            own = max(rate.per_second for rate in vertex.source.rates)
            rates[vertex.name] = own * vertex.emitting
            continue
        coming = [
            (inlet, rates[inlet.upstream] * job.fan_out(inlet) * (vertex.parallelism if inlet.shipping.copies else 1))
            for inlet in vertex.inputs
        ]
        work = [(rate * vertex.largest_work(_shares(inlet, vertex)), inlet.service.mean) for inlet, rate in coming]
        busy = sum((records * each_ns / SECOND for records, each_ns in work), Fraction(0))
        if vertex.async_io is not None:
            offered = sum((rate * max(_shares(inlet, vertex)) for inlet, rate in coming), Fraction(0))
            busy = max(busy, offered * vertex.async_io.latency.mean / SECOND / vertex.async_io.capacity)
        if vertex.window is not None:
            busy += sum((records for records, _ in work), Fraction(0)) * vertex.fan_out * vertex.window.fire_ns / SECOND
        busiest = max(busiest, busy)
        rates[vertex.name] = sum((rate for _, rate in coming), Fraction(0))
    return busiest


def _shares(inlet: Input, vertex: Vertex) -> list[Fraction]:
    """The share of an input's records that each subtask reads."""
    if inlet.shipping.to_one:
        return [Fraction(1)]
    if shares := vertex.shares(inlet):
        return list(shares)
    groups = vertex.max_parallelism if inlet.shipping.keyed else vertex.parallelism  # the owner of most key groups reads most
    return [Fraction(len(key_groups(i, vertex.parallelism, groups)), groups) for i in range(vertex.parallelism)]

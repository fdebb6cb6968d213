"""A scenario with several records as one: fewer and larger records, the same bytes, rates and times of service.

`sim.runtime.run.resolution` says how far that may go, and gives counts of records back their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from sim.model.job import Backlog, Distribution, Input, Job, Rate, Source, Vertex
from sim.model.scenario import Scenario
from sim.model.state import State

__all__ = ["coarse", "not_coarse", "single_records"]


def coarse(scenario: Scenario, as_one: Mapping[str, int]) -> Scenario:
    """The same job; each vertex reads, or emits if it is a source, so many records as one.

    Where two vertices differ, the edge between them has the fan-out that turns groups of one into groups of the other.
    Only of vertices where `not_coarse` and `single_records` find nothing.
    """
    if set(as_one.values()) == {1}:
        return scenario
    job = scenario.job
    return replace(scenario, job=replace(job, vertices=tuple(_vertex(job, vertex, as_one) for vertex in job.vertices)))


def not_coarse(scenario: Scenario) -> Iterator[str]:
    """What such a run would tell wrongly, however many are one at whichever vertex."""
    network = scenario.cluster.network
    if network.buffer_timeout_ns == 0:
        yield "cluster.network.buffer-timeout is 0: every record leaves in a buffer of its own"
    if network.debloat is not None:
        yield "cluster.network.debloat is on: a shrunk buffer may hold few records"
    for vertex in scenario.job.vertices:
        if vertex.window is not None and vertex.window.time == "event":
            yield f"job.{vertex.name}.window: event time counts single records"
        if vertex.source is not None and vertex.source.total is not None:
            yield f"job.{vertex.name}.source: it ends with a certain record"


def single_records(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Vertices that must read or emit single records, and why."""
    for vertex in scenario.job.vertices:
        if vertex.async_io is not None:
            yield vertex.name, f"job.{vertex.name}.async-io: every record is a request of its own"
        if vertex.window is not None:
            yield vertex.name, f"job.{vertex.name}.window: it fires single records"
        if vertex.joined:
            yield vertex.name, f"job.{vertex.name}: a join reads its inputs record by record"
        if vertex.commit is not None and (vertex.commit.holds_back or vertex.commit.emits == "on-commit"):
            yield vertex.name, f"job.{vertex.name}.commit: it keeps single records"
        if vertex.source is not None and vertex.source.waits == "poll":
            yield vertex.name, f"job.{vertex.name}.source: checkpoints wait for single records"


def _vertex(job: Job, vertex: Vertex, as_one: Mapping[str, int]) -> Vertex:
    k = as_one[vertex.name]
    return replace(
        vertex,
        source=None if vertex.source is None else _source(vertex.source, k),
        inputs=tuple(_input(job, inlet, as_one[inlet.upstream], k) for inlet in vertex.inputs),
        service=_sum(vertex.service, k),
        state=None if vertex.state is None else _state(vertex.state, k),
        records_as_one=k,
    )


def _source(source: Source, k: int) -> Source:
    rates = tuple(Rate(rate.start_ns, rate.per_second / k) for rate in source.rates)
    history = source.backlog and source.backlog.records
    backlog = Backlog(records=-(-history // k)) if history else source.backlog
    return replace(source, rates=rates, backlog=backlog)


def _input(job: Job, inlet: Input, written: int, read: int) -> Input:
    fan_out = inlet.fan_out if written == read else job.fan_out(inlet) * Fraction(written, read)
    return replace(inlet, service=_sum(inlet.service, read), record_bytes=_sum(inlet.record_bytes, read), fan_out=fan_out)


def _state(state: State, k: int) -> State:
    return replace(state, value_bytes=state.value_bytes * k, growth_bytes=state.growth_bytes * k)


def _sum(law: Distribution, k: int) -> Distribution:
    return replace(law, mean=law.mean * k, terms=law.terms * k)

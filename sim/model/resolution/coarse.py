"""A scenario with k records as one: fewer and larger records, the same bytes, rates and times of service.

`sim.runtime.run.resolution` says how far that may go, and gives counts of records back their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sim.model.job import Backlog, Distribution, Input, Rate, Source, Vertex
from sim.model.scenario import Scenario
from sim.model.state import State

__all__ = ["coarse", "not_coarse"]


def coarse(scenario: Scenario, k: int) -> Scenario:
    """The same job with `k` records as one.  Only of scenarios where `not_coarse` finds nothing."""
    if k == 1:
        return scenario
    job = replace(scenario.job, vertices=tuple(_vertex(vertex, k) for vertex in scenario.job.vertices))
    return replace(scenario, job=job)


def not_coarse(scenario: Scenario) -> Iterator[str]:
    """What such a run would tell wrongly, whatever k is: what happens to single records."""
    network = scenario.cluster.network
    if network.buffer_timeout_ns == 0:
        yield "cluster.network.buffer-timeout is 0: every record leaves in a buffer of its own"
    if network.debloat is not None:
        yield "cluster.network.debloat is on: a shrunk buffer may hold few records"
    for vertex in scenario.job.vertices:
        if vertex.async_io is not None:
            yield f"job.{vertex.name}.async-io: every record is a request of its own"
        if vertex.window is not None:
            yield f"job.{vertex.name}.window: it fires single records"
        if vertex.joined:
            yield f"job.{vertex.name}: a join reads its inputs record by record"
        if vertex.commit is not None and (vertex.commit.holds_back or vertex.commit.emits == "on-commit"):
            yield f"job.{vertex.name}.commit: it keeps single records"
        if vertex.source is not None and vertex.source.waits == "poll":
            yield f"job.{vertex.name}.source: checkpoints wait for single records"
        if vertex.source is not None and vertex.source.total is not None:
            yield f"job.{vertex.name}.source: it ends with a certain record"


def _vertex(vertex: Vertex, k: int) -> Vertex:
    return replace(
        vertex,
        source=None if vertex.source is None else _source(vertex.source, k),
        inputs=tuple(_input(inlet, k) for inlet in vertex.inputs),
        service=_sum(vertex.service, k),
        state=None if vertex.state is None else _state(vertex.state, k),
        records_as_one=k,
    )


def _source(source: Source, k: int) -> Source:
    rates = tuple(Rate(rate.start_ns, rate.per_second / k) for rate in source.rates)
    history = source.backlog and source.backlog.records
    backlog = Backlog(records=-(-history // k)) if history else source.backlog
    return replace(source, rates=rates, backlog=backlog)


def _input(inlet: Input, k: int) -> Input:
    return replace(inlet, service=_sum(inlet.service, k), record_bytes=_sum(inlet.record_bytes, k))


def _state(state: State, k: int) -> State:
    return replace(state, value_bytes=state.value_bytes * k, growth_bytes=state.growth_bytes * k)


def _sum(law: Distribution, k: int) -> Distribution:
    return replace(law, mean=law.mean * k, terms=law.terms * k)

"""The imported job, simulated with another load or other sizes of state: whether that explains what checkpoints take now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sim.runtime.run.simulate import simulate

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario

CHECKPOINTS = 25
"""As many in one run as percentiles of a tenth take; the first is left out."""
BUDGET_S = 10.0
"""Processor time of one run."""


class TooSlowError(Exception):
    """The job takes too long to simulate."""


class NoneCompletesError(TooSlowError):
    """No checkpoint completes in the simulation."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Percentiles of the durations of simulated checkpoints."""

    p50_ms: float
    p90_ms: float


def changed(scenario: Scenario, load: Mapping[str, float], state: Mapping[str, float]) -> Scenario:
    """`load`: factors of the sources' rates; `state`: bytes.  Both by vertex; what the job has not is left out."""
    vertices = tuple(_changed(vertex, load.get(vertex.name, 1.0), state.get(vertex.name)) for vertex in scenario.job.vertices)
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


def _changed(vertex: Vertex, load: float, state_bytes: float | None) -> Vertex:
    if vertex.source is not None and load != 1:
        rates = tuple(replace(rate, per_second=rate.per_second * round(load * 1000) / 1000) for rate in vertex.source.rates)
        vertex = replace(vertex, source=replace(vertex.source, rates=rates))
    if vertex.state is not None and state_bytes is not None:
        vertex = replace(vertex, state=replace(vertex.state, bytes=round(state_bytes)))
    return vertex


def simulated(scenario: Scenario) -> Simulated:
    """TooSlowError: it takes too long.  NoneCompletesError: no checkpoint completes."""
    interval_ns = scenario.checkpoint.interval_ns
    if interval_ns is None:
        raise TooSlowError("the job has no interval of checkpoints")
    begun_s = time.process_time()

    def stop_late(_simulated_ns: int) -> None:
        if time.process_time() - begun_s > BUDGET_S:
            raise TooSlowError(f"it takes more than {BUDGET_S:g} s of processor time")

    run = replace(scenario.run, duration_ns=CHECKPOINTS * interval_ns, warmup_ns=0, cold_start_ns=0)
    rows = simulate(replace(scenario, run=run), check=False, progress=stop_late).checkpoints
    done = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)]["end_to_end_duration"]
    if done.empty:
        raise NoneCompletesError("no checkpoint completes")
    p50, p90 = (float(value) for value in np.quantile(done, [0.5, 0.9]))
    return Simulated(p50, p90)

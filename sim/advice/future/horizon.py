"""State that grows: how large it is when a trial begins, so that every trial ends at the end of the time that advice is about.

A trial lasts minutes, and advice has to hold for longer.  The state of a trial is as large as it will be then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from sim.cells.plan import baseline
from sim.sweeps.file.design import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario

__all__ = ["AHEAD_NS", "GrowingState", "Horizon", "horizon", "served"]

_S = 1_000_000_000
AHEAD_NS = 7200 * _S
"""For so long advice holds, unless another time is asked for."""
OBSERVED_NS = 60 * _S
"""A run without checkpoints that shows how many records a vertex serves."""


@dataclass(frozen=True, slots=True)
class GrowingState:
    """The state of one vertex."""

    vertex: str
    now_bytes: int  # at the end of the history, or at the beginning of a scenario without one
    per_second: float  # bytes
    ttl_s: float = inf  # of its keys

    def after(self, seconds: float) -> int:
        """Keys have all ages up to their time to live: those of now leave evenly, and new ones come at the rate."""
        left = 1 - min(seconds / self.ttl_s, 1.0)
        return round(self.now_bytes * left + self.per_second * min(seconds, self.ttl_s))


@dataclass(frozen=True, slots=True)
class Horizon:
    """For how long advice has to hold, and what grows until then."""

    ahead_ns: int = AHEAD_NS
    states: tuple[GrowingState, ...] = ()

    def trial(self, length_ns: int) -> Point:
        """The change of a scenario by which a trial of this length ends at the horizon.  A longer one begins now."""
        return self.at(max(self.ahead_ns - length_ns, 0) / _S)

    def at(self, seconds: float) -> Point:
        """The change of a scenario by which it begins so much later than now."""
        return {f"job.{state.vertex}.state.size": f"{state.after(seconds)} B" for state in self.states}


def horizon(scenarios: Sequence[Scenario], backtest: Backtest | None, ahead_ns: int) -> Horizon:
    """`scenarios`: the job in all worlds that are tried.  Their mean rate of records counts."""
    growing = [
        (vertex.name, vertex.state) for vertex in scenarios[0].job.vertices if vertex.state is not None and vertex.state.growth_bytes
    ]
    if not growing:
        return Horizon(ahead_ns)
    rates = [served(scenario) for scenario in scenarios]
    known_s = _history_s(scenarios[0], backtest)
    begun = [
        GrowingState(
            name, state.bytes, state.growth_bytes * fmean(rate[name] for rate in rates),
            inf if state.ttl is None or state.update_share > 0 else state.ttl.after_ns / _S,  # keys that are rewritten stay young
        )
        for name, state in growing
    ]  # fmt: skip
    return Horizon(ahead_ns, tuple(replace(state, now_bytes=state.after(known_s)) for state in begun))


def _history_s(scenario: Scenario, backtest: Backtest | None) -> float:
    """From the beginning of an imported scenario to the last checkpoint of its history.

    It begins an interval before the first checkpoint, which a backtest leaves out.
    """
    if backtest is None or scenario.checkpoint.interval_ns is None:
        return 0.0
    return (backtest.checkpoints + 1) * scenario.checkpoint.interval_ns / _S


def served(scenario: Scenario, observed_ns: int = OBSERVED_NS) -> dict[str, float]:
    """Records per second that each vertex serves, and each source emits, without checkpoints and faults."""
    from sim.runtime.run.simulate import simulate

    bare = baseline(replace(scenario, faults=(), run=replace(scenario.run, duration_ns=observed_ns, warmup_ns=0)))
    records = simulate(bare, check=False).tables["tasks"].groupby("vertex")["numRecordsIn"].sum()
    return {str(vertex): float(count) / (observed_ns / _S) for vertex, count in records.items()}

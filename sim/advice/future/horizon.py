"""State that grows: how large it is at the end of the time that advice is about.  Every trial of a setting is about that state.

A trial lasts minutes, or hours if it confirms; advice has to hold at the horizon.  So state has its size at the horizon throughout a
trial.  Records rewrite as many of its bytes as they add and rewrite in the job.  Then a short trial and a long one are about the same
checkpoints, and so are the rows of a comparison.  How growth goes on is a question of its own: `sim.advice.lasting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf
from statistics import fmean
from typing import TYPE_CHECKING

from sim.cells.plan import baseline
from sim.scenario.overrides import key_of
from sim.state.expiry import Expiry
from sim.sweeps.file.design import Point
from sim.units import SECOND, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario
    from sim.model.state import State

AHEAD_NS = 7200 * SECOND
"""The default horizon: advice holds for so long."""
OBSERVED_NS = 60 * SECOND
"""A run without checkpoints that shows how many records a vertex serves."""


@dataclass(frozen=True, slots=True)
class GrowingState:
    """The state of one vertex that grows or expires."""

    vertex: str
    now_bytes: int  # at the end of the history, or at the beginning of a scenario without one
    per_second: float  # bytes of new keys
    ttl_s: float = inf  # of its keys
    rewritten_per_second: float = 0.0  # entries
    entry_bytes: int = 1000
    checked_per_second: float = inf  # bytes that the heap's cleanup looks at; inf: snapshots hold no expired entries
    written_per_record: Fraction = Fraction(0)  # bytes: new keys and rewritten ones
    limit_bytes: float = inf  # what all of its keys take

    def after(self, seconds: float) -> int:
        """Bytes that a snapshot holds then.  Keys of now have all ages up to their time to live; new ones come at the rate."""
        live = self._live_after(seconds)
        return live + self._left_behind(live, seconds)

    def change(self, seconds: float) -> Point:
        """The change of a scenario by which the state has that size throughout, with as many bytes written per record."""
        entry_bytes = max(self.entry_bytes, -(-self.written_per_record.numerator // self.written_per_record.denominator))
        state = {
            "size": f"{self.after(seconds)} B", "growth": "0 B", "ttl": "0 s",
            "update": format_share(Fraction(f"{float(self.written_per_record / entry_bytes):.6g}")), "value": f"{entry_bytes} B",
        }  # fmt: skip
        return {key_of(("job", self.vertex, "state", name)): value for name, value in state.items()}

    def _live_after(self, seconds: float) -> int:
        if self.limit_bytes < inf:  # keys stay, and new ones come ever less often
            left = max(self.limit_bytes - self.now_bytes, 0)
            return round(self.now_bytes + left * (1 - exp(-self.per_second * seconds / self.limit_bytes)))
        if not self.rewritten_per_second or self.ttl_s == inf:
            left = 1 - min(seconds / self.ttl_s, 1.0)
            return round(self.now_bytes * left + self.per_second * min(seconds, self.ttl_s))
        expiry = Expiry(round(self.ttl_s * SECOND), self.now_bytes, self.entry_bytes)  # which keys are rewritten decides which ones go
        return expiry.advance(
            round(self.per_second * seconds), round(self.rewritten_per_second * seconds), round(seconds * SECOND)
        ).live_bytes

    def _left_behind(self, live: int, seconds: float) -> int:
        """Expired entries that the cleanup has not met yet, on average half a round of it: the balance of `sim.state.hashmap`."""
        expires = live / self.ttl_s
        if not expires or self.checked_per_second == inf:
            return 0
        ahead = 2 * self.checked_per_second - expires
        return round(min(expires * live / ahead if ahead > 0 else inf, expires * seconds))


@dataclass(frozen=True, slots=True)
class Horizon:
    """The time for which advice has to hold, and the state that grows until then."""

    ahead_ns: int = AHEAD_NS
    states: tuple[GrowingState, ...] = ()

    def change(self, seconds: float | None = None) -> Point:
        """The change of a scenario by which its state stays as large as it is at the horizon, or so many seconds from now."""
        ahead_s = self.ahead_ns / SECOND if seconds is None else seconds
        return {key: value for state in self.states for key, value in state.change(ahead_s).items()}


def horizon(scenarios: Sequence[Scenario], backtest: Backtest | None, ahead_ns: int) -> Horizon:
    """`scenarios`: the job in all worlds that are tried.  Their mean rate of records counts."""
    turning = [(vertex.name, vertex.state) for vertex in scenarios[0].job.vertices if vertex.state is not None and vertex.state.turns_over]
    if not turning:
        return Horizon(ahead_ns)
    rates = [served(scenario) for scenario in scenarios]
    known_s = _history_s(scenarios[0], backtest)
    begun = [_of_vertex(name, state, fmean(rate[name] for rate in rates)) for name, state in turning]
    return Horizon(ahead_ns, tuple(replace(state, now_bytes=state.after(known_s)) for state in begun))


def _of_vertex(name: str, state: State, records_per_second: float) -> GrowingState:
    ttl = state.ttl
    waits = ttl is not None and not state.kind.keeps_files and not ttl.filters_snapshots
    return GrowingState(
        name, state.bytes, state.growth_bytes * records_per_second, inf if ttl is None else ttl.after_ns / SECOND,
        float(state.update_share) * records_per_second, state.value_bytes,
        ttl.checks * records_per_second * state.value_bytes if ttl is not None and waits else inf,
        state.growth_bytes * state.new_share + state.update_share * state.value_bytes,
        inf if state.limit_bytes is None else state.limit_bytes,
    )  # fmt: skip


def _history_s(scenario: Scenario, backtest: Backtest | None) -> float:
    """From the beginning of an imported scenario to the last checkpoint of its history.

    It begins an interval before the first checkpoint, which a backtest leaves out.
    """
    if backtest is None or scenario.checkpoint.interval_ns is None:
        return 0.0
    return (backtest.checkpoints + 1) * scenario.checkpoint.interval_ns / SECOND


def served(scenario: Scenario, observed_ns: int = OBSERVED_NS) -> dict[str, float]:
    """Records per second that each vertex serves, and each source emits, without checkpoints and faults."""
    from sim.runtime.run.simulate import simulate

    bare = baseline(replace(scenario, faults=(), run=replace(scenario.run, duration_ns=observed_ns, warmup_ns=0)))
    records = simulate(bare, check=False).tables["tasks"].groupby("vertex")["numRecordsIn"].sum()
    return {str(vertex): float(count) / (observed_ns / SECOND) for vertex, count in records.items()}

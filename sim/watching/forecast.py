"""The forecast: what checkpoints of the job as it was imported take, and within which factors that holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sim.analysis.number_texts import ms_text
from sim.evidence.what_ifs.changes import AS_IT_IS
from sim.evidence.what_ifs.factors import factors_of

if TYPE_CHECKING:
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario


WANDERS = 2.0
"""Checkpoints of a job that is as it was may be off by a smaller factor for a while: other work of its machines.  A doubling is news."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a job did while some checkpoints were taken.  Keys are vertices, but those of `parts_ms` are parts of the critical path."""

    load: Mapping[str, float] = field(default_factory=dict)  # records per second of each source
    busy: Mapping[str, float] = field(default_factory=dict)  # share of the time of its threads
    pressed: Mapping[str, float] = field(default_factory=dict)  # share of the time that they are back-pressured
    state: Mapping[str, float] = field(default_factory=dict)  # bytes
    parts_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast of the durations of completed checkpoints."""

    made_ms: int
    job: str
    p50_ms: float
    p90_ms: float
    factors: tuple[float, float]  # of p50 and p90
    history: int  # checkpoints of the backtest that the factors are from
    usual: Circumstances  # when it was made

    @property
    def longest_p50_ms(self) -> float:
        return self.p50_ms * self.factors[0]

    @property
    def shortest_p50_ms(self) -> float:
        return self.p50_ms / self.factors[0]

    @property
    def longest_p90_ms(self) -> float:
        return self.p90_ms * self.factors[1]

    def wandered(self, p50_ms: float, p90_ms: float) -> Forecast | None:
        """The forecast that allows for these percentiles too.  None: they are further off than a job wanders by itself."""
        off = max(p50_ms / self.p50_ms, self.p50_ms / p50_ms)
        if not off < WANDERS:
            return None
        return replace(self, factors=(max(self.factors[0], off), max(self.factors[1], p90_ms / self.p90_ms)))

    def __str__(self) -> str:
        return (
            f"p50 {ms_text(self.p50_ms)} within a factor of {self.factors[0]:.2g}, p90 {ms_text(self.p90_ms)} within {self.factors[1]:.2g}"
        )


class NoForecastError(Exception):
    """The import gives no forecast; the message says why."""


def forecast_of(backtest: Backtest | None, made_ms: int, job: str, usual: Circumstances) -> Forecast:
    """NoForecastError: there was no history to compare with, or nothing completes, or the factors are without bound."""
    row = None if backtest is None else backtest.of("end-to-end")
    factors = None if backtest is None else factors_of(backtest, AS_IT_IS)
    if backtest is None or row is None or factors is None:
        raise NoForecastError("no simulation could be held to its history")
    if not row.predicted.count:
        raise NoForecastError("no checkpoint completes in the simulation")
    if not math.isfinite(factors.p50) or not math.isfinite(factors.p90):
        raise NoForecastError("the simulation is off from the history by a factor without bound")
    return Forecast(made_ms, job, row.predicted.p50, row.predicted.p90, (factors.p50, factors.p90), backtest.checkpoints, usual)


def interval_ms(scenario: Scenario) -> float | None:
    """Between two checkpoints; None: the job takes none by itself."""
    return None if scenario.checkpoint.interval_ns is None else scenario.checkpoint.interval_ns / 1e6

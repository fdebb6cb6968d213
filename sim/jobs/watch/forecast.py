"""Forecast checkpoint durations, and detect when checkpoints leave the forecast."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sim.jobs.evidence.what_ifs import AS_IT_IS, factors_of
from sim.results.formats import ms_text
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.model.scenario import Backtest, Scenario


# ---- Simulate the imported job with other loads or state sizes, to see whether they explain the observed durations.

CHECKPOINTS_PER_RUN = 25
"""Checkpoints in a run, enough for a p90.  The first one is not counted."""
BUDGET_S = 10.0
"""Maximum CPU time of one run."""


class TooSlowError(Exception):
    """The simulation takes too long, or completes no checkpoint."""


def with_circumstances(scenario: Scenario, load: Mapping[str, float], state: Mapping[str, float]) -> Scenario:
    """Return the scenario with changed loads and state sizes.

    Args:
        scenario: The imported job.
        load: Source -> factor by which its rate is multiplied.
        state: Vertex -> state size [bytes].  Vertices without state are ignored.
    """
    vertices = tuple(
        _with_circumstances(vertex, load.get(vertex.name, 1.0), state.get(vertex.name))
        for vertex in scenario.job.vertices
    )
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


def _with_circumstances(vertex: Vertex, load: float, state_bytes: float | None) -> Vertex:
    if vertex.source is not None and load != 1:
        rates = tuple(
            replace(rate, per_second=rate.per_second * round(load * 1000) / 1000) for rate in vertex.source.rates
        )
        vertex = replace(vertex, source=replace(vertex.source, rates=rates))
    if vertex.state is not None and state_bytes is not None:
        vertex = replace(vertex, state=replace(vertex.state, bytes=round(state_bytes)))
    return vertex


def simulate_durations(scenario: Scenario) -> tuple[float, float]:
    """Simulate a scenario, and return p50 and p90 of the durations of its checkpoints [ms].

    Raises `TooSlowError` if it has no checkpoint interval, exceeds `BUDGET_S`, or completes no checkpoint.
    """
    interval_ns = scenario.checkpoint.interval_ns
    if interval_ns is None:
        raise TooSlowError("the job has no checkpoint interval")
    begun_s = time.process_time()

    def check_budget(_simulated_ns: int) -> None:
        if time.process_time() - begun_s > BUDGET_S:
            raise TooSlowError(f"it takes more than {BUDGET_S:g} s of CPU time")

    run = replace(scenario.run, duration_ns=CHECKPOINTS_PER_RUN * interval_ns, warmup_ns=0, cold_start_ns=0)
    rows = simulate(replace(scenario, run=run), check=False, progress=check_budget).checkpoints
    completed = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)][
        "end_to_end_duration"
    ]
    if completed.empty:
        raise TooSlowError("no checkpoint completes")
    p50, p90 = (float(value) for value in np.quantile(completed, [0.5, 0.9]))
    return p50, p90


# ---- The forecast: percentiles of checkpoint durations, and the factors by which the observed ones may differ.


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The load, utilization and state of a job during some checkpoints, by vertex."""

    load: Mapping[str, float] = field(default_factory=dict)  # records per second of each source
    busy: Mapping[str, float] = field(default_factory=dict)  # busy share of the time of task threads
    state: Mapping[str, float] = field(default_factory=dict)  # state size [bytes]
    parts_ms: Mapping[str, float] = field(default_factory=dict)  # time of each part of the critical path, by part


@dataclass(frozen=True, slots=True)
class Forecast:
    """A forecast of the durations of completed checkpoints."""

    made_ms: int  # time when it was made [epoch ms]
    job: str  # id
    p50_ms: float
    p90_ms: float
    factors: tuple[float, float]  # p50 and p90 are expected within these factors
    history: int  # number of checkpoints in the backtest that the factors are from
    usual: Circumstances  # circumstances when the forecast was made

    @property
    def limits_ms(self) -> dict[str, float]:
        """The duration [ms] at each bound of `DEPARTURES`, by the name of the bound."""
        p50, p90 = self.factors
        return {TAIL.name: self.p90_ms * p90, UPPER.name: self.p50_ms * p50, LOWER.name: self.p50_ms / p50}

    def __str__(self) -> str:
        return f"p50 {ms_text(self.p50_ms)} within a factor of {self.factors[0]:.2g}, p90 {ms_text(self.p90_ms)} within {self.factors[1]:.2g}"


class NoForecastError(Exception):
    """Raised if no forecast can be made from the import."""


def forecast_of(backtest: Backtest | None, made_ms: int, job: str, usual: Circumstances) -> Forecast:
    """Return the forecast that follows from a backtest.

    Raises `NoForecastError` if there is no backtest, no simulated checkpoint completes, or its deviation is unlimited.
    """
    row = None if backtest is None else backtest.of("end-to-end")
    factors = None if backtest is None else factors_of(backtest, AS_IT_IS)
    if backtest is None or row is None or factors is None:
        raise NoForecastError("the import has no backtest")
    if not row.predicted.count:
        raise NoForecastError("no checkpoint completes in the simulation")
    if not math.isfinite(factors.p50) or not math.isfinite(factors.p90):
        raise NoForecastError("the simulation deviates from the history by an unlimited factor")
    return Forecast(
        made_ms, job, row.predicted.p50, row.predicted.p90, (factors.p50, factors.p90), backtest.checkpoints, usual
    )


# ---- Detect that checkpoints have left a forecast: Page's test (CUSUM; Biometrika 41, 1954).
#
# A forecast allows a share of checkpoints beyond each bound: 10 % beyond p90, 50 % beyond p50.  Each checkpoint updates
# the likelihood ratio of two hypotheses: far more checkpoints than allowed are beyond the bound, or as many as allowed.
# If the ratio falls below 1, it is reset to 1.  The last reset is the estimate of when the change began.  With a
# threshold of n (`FALSE_ALARM_CHECKPOINTS`), there is on average at most one false alarm in n checkpoints (Lorden 1971).

FALSE_ALARM_CHECKPOINTS = 10_000
"""Threshold of the likelihood ratio: mean number of checkpoints between two false alarms."""


@dataclass(frozen=True, slots=True)
class ForecastBound:
    """A bound of checkpoint durations."""

    name: str
    allowed: float  # share of checkpoints beyond the bound that the forecast allows
    suspected: float  # share of checkpoints beyond the bound after a change

    def weight(self, *, beyond: bool) -> float:
        """Return the logarithm of the likelihood ratio of one checkpoint.  `beyond` says whether it is beyond the bound."""
        if beyond:
            return math.log(self.suspected / self.allowed)
        return math.log((1 - self.suspected) / (1 - self.allowed))


TAIL = ForecastBound("longer than p90", 0.1, 0.8)
UPPER = ForecastBound("longer than p50", 0.5, 0.95)
LOWER = ForecastBound("shorter than p50", 0.5, 0.95)
DEPARTURES = (TAIL, UPPER, LOWER)
RETURN = ForecastBound("within again", 0.2, 0.8)
"""The bound to detect that checkpoints are within the forecast again.  Here, "beyond" means within the forecast."""


@dataclass(frozen=True, slots=True)
class ForecastEvidence:
    """The evidence that more checkpoints than allowed are beyond a bound, since the last reset."""

    log_ratio: float = 0.0
    count: int = 0  # number of checkpoints since the reset
    beyond: int = 0  # number of them that are beyond the bound
    since_ms: int = 0  # trigger time of the first checkpoint since the reset

    def after(self, bound: ForecastBound, at_ms: int, *, beyond: bool) -> ForecastEvidence:
        """Return the evidence including one more checkpoint."""
        ratio = self.log_ratio + bound.weight(beyond=beyond)
        if ratio <= 0:
            return ForecastEvidence()
        first = not self.count
        return replace(
            self,
            log_ratio=ratio,
            count=self.count + 1,
            beyond=self.beyond + beyond,
            since_ms=at_ms if first else self.since_ms,
        )

    @property
    def is_sure(self) -> bool:
        """Whether the evidence exceeds the threshold."""
        return self.log_ratio >= math.log(FALSE_ALARM_CHECKPOINTS)

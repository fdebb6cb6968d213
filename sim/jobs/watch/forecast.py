"""Forecasts of the next checkpoints, and when one is a surprise."""

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
    from sim.model.backtest import Backtest
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario


# ---- The imported job, simulated with another load or other sizes of state: whether that explains what checkpoints take now.

CHECKPOINTS = 25
"""As many in one run as percentiles of a tenth take; the first is left out."""
BUDGET_S = 10.0
"""Processor time of one run."""


class TooSlowError(Exception):
    """The job takes too long to simulate, or none of its checkpoints completes."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Percentiles of the durations of simulated checkpoints."""

    p50_ms: float
    p90_ms: float


def changed(scenario: Scenario, load: Mapping[str, float], state: Mapping[str, float]) -> Scenario:
    """`load`: factors of the sources' rates; `state`: bytes.  Both by vertex; what the job has not is left out."""
    vertices = tuple(
        _changed(vertex, load.get(vertex.name, 1.0), state.get(vertex.name)) for vertex in scenario.job.vertices
    )
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


def _changed(vertex: Vertex, load: float, state_bytes: float | None) -> Vertex:
    if vertex.source is not None and load != 1:
        rates = tuple(
            replace(rate, per_second=rate.per_second * round(load * 1000) / 1000) for rate in vertex.source.rates
        )
        vertex = replace(vertex, source=replace(vertex.source, rates=rates))
    if vertex.state is not None and state_bytes is not None:
        vertex = replace(vertex, state=replace(vertex.state, bytes=round(state_bytes)))
    return vertex


def simulated(scenario: Scenario) -> Simulated:
    """TooSlowError: it takes too long, or no checkpoint completes."""
    interval_ns = scenario.checkpoint.interval_ns
    if interval_ns is None:
        raise TooSlowError("the job has no interval of checkpoints")
    begun_s = time.process_time()

    def stop_late(_simulated_ns: int) -> None:
        if time.process_time() - begun_s > BUDGET_S:
            raise TooSlowError(f"it takes more than {BUDGET_S:g} s of processor time")

    run = replace(scenario.run, duration_ns=CHECKPOINTS * interval_ns, warmup_ns=0, cold_start_ns=0)
    rows = simulate(replace(scenario, run=run), check=False, progress=stop_late).checkpoints
    done = rows[(rows["status"] == "COMPLETED") & (rows["savepointFormat"] == "") & (rows["id"] != 1)][
        "end_to_end_duration"
    ]
    if done.empty:
        raise TooSlowError("no checkpoint completes")
    p50, p90 = (float(value) for value in np.quantile(done, [0.5, 0.9]))
    return Simulated(p50, p90)


# ---- The forecast: what checkpoints of the job as it was imported take, and within which factors that holds.

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
        return f"p50 {ms_text(self.p50_ms)} within a factor of {self.factors[0]:.2g}, p90 {ms_text(self.p90_ms)} within {self.factors[1]:.2g}"


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
    return Forecast(
        made_ms, job, row.predicted.p50, row.predicted.p90, (factors.p50, factors.p90), backtest.checkpoints, usual
    )


def interval_ms(scenario: Scenario) -> float | None:
    """Between two checkpoints; None: the job takes none by itself."""
    return None if scenario.checkpoint.interval_ns is None else scenario.checkpoint.interval_ns / 1e6


# ---- When checkpoints have left a forecast: Page's test (Biometrika 41, 1954), checkpoint by checkpoint.
#
# A forecast allows a share of checkpoints on the wrong side of a line: a tenth beyond p90, half beyond p50.  Each
# checkpoint multiplies the likelihood ratio of "far more of them are" against "as many as allowed".  It never falls
# below 1, where the count begins again: that place is the estimate of when the change began.  A ratio of `ONE_IN` is a
# false alarm once in as many checkpoints on average (Lorden 1971).

ONE_IN = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and the shares of checkpoints beyond it: `allowed` by the forecast, and `suspected`."""

    name: str
    allowed: float
    suspected: float

    def weight(self, *, beyond: bool) -> float:
        """The logarithm of the likelihood ratio of one checkpoint."""
        if beyond:
            return math.log(self.suspected / self.allowed)
        return math.log((1 - self.suspected) / (1 - self.allowed))


TAIL = Line("longer than p90", 0.1, 0.8)
UPPER = Line("longer than p50", 0.5, 0.95)
LOWER = Line("shorter than p50", 0.5, 0.95)
RETURN = Line("within again", 0.2, 0.8)
"""The line of checkpoints that have left: as many are within by chance, and by then."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """The evidence against a line so far."""

    log_ratio: float = 0.0
    count: int = 0  # checkpoints since it last began
    beyond: int = 0  # of these
    since_ms: int = 0  # the trigger of the first of them

    def after(self, line: Line, at_ms: int, *, beyond: bool) -> Surprise:
        """The evidence with one more checkpoint."""
        ratio = self.log_ratio + line.weight(beyond=beyond)
        if ratio <= 0:
            return Surprise()
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
        return self.log_ratio >= math.log(ONE_IN)

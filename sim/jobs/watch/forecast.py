"""Forecast checkpoint durations, detect when checkpoints leave the forecast, and name what has changed since it was made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from sim.jobs.evidence.what_ifs import AS_IT_IS, factors_of
from sim.model.text import capitalised, listed
from sim.results.formats import bytes_text, ms_text, per_second_text, share_text

if TYPE_CHECKING:
    from sim.model.scenario import Backtest


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


# ---- Why checkpoints leave a forecast: what has changed since it was made.

EQUAL_LOAD_FACTOR = 1.3
"""Loads that differ by a smaller factor count as equal, because Flink's counters are up to 10 s old."""
MIN_STATE_FACTOR = 1.2
"""State sizes that differ by a smaller factor count as equal."""
_MIN_BUSY_DIFFERENCE = 0.2
"""Minimum difference between two busy shares that is reported."""
_MIN_PART_DIFFERENCE_MS = 20.0
"""Minimum difference of a part of the critical path.  A smaller one is noise."""
MAX_CAUSES = 3
"""Maximum causes of load and state."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference between two periods that may explain longer or shorter checkpoints."""

    text: str
    factor: float  # new / old load or state; 1 for other kinds
    vertex: str = ""
    kind: str = ""  # load, state, thread, or part


def causes(usual: Circumstances, now: Circumstances, sign: int = 1) -> list[Cause]:
    """Return the differences of load and state, then of the threads and of the part of checkpoints that grew most.

    A `sign` of -1 means that checkpoints have become shorter.  Then the threads and the part that shrank most are returned.
    """
    differences = [
        Cause(f"{kind} of '{name}' {times_text(factor)} ({text(was)} -> {text(is_)})", factor, name, kind)
        for kind, text, alike in (("load", per_second_text, EQUAL_LOAD_FACTOR), ("state", bytes_text, MIN_STATE_FACTOR))
        for name, was, is_, factor in _ratios(getattr(usual, kind), getattr(now, kind), alike)
    ][:MAX_CAUSES]
    busier = _largest_difference(usual.busy, now.busy, _MIN_BUSY_DIFFERENCE, sign, usual.busy.keys() & now.busy.keys())
    differences += [
        Cause(
            f"threads of '{name}' work {share_text(is_)} of the time on average (before: {share_text(was)})",
            1.0,
            name,
            "thread",
        )
        for name, was, is_ in busier
    ]
    parts = (usual.parts_ms.keys() | now.parts_ms.keys()) if usual.parts_ms and now.parts_ms else ()
    longer = _largest_difference(usual.parts_ms, now.parts_ms, _MIN_PART_DIFFERENCE_MS, sign, parts)
    verb = "grew" if sign > 0 else "shrank"
    differences += [
        Cause(f"of a checkpoint, {name} {verb} most: {ms_text(is_)} (before: {ms_text(was)})", 1.0, "", "part")
        for name, was, is_ in longer
    ]
    return differences


def reasons(usual: Circumstances, now: Circumstances, sign: int = 1) -> tuple[list[Cause], str]:
    """Return the `causes` of a deviation, and a sentence with them.

    Without any, the sentence names what is as it was, and what cannot be compared because it is unknown in one period.
    """
    if differences := causes(usual, now, sign):
        return differences, f"{capitalised('; '.join(cause.text for cause in differences))}."
    kinds = {"load": "load", "state": "state", "threads": "busy", "the parts of checkpoints": "parts_ms"}
    unknown = [name for name, kind in kinds.items() if not (getattr(usual, kind) and getattr(now, kind))]
    unchanged = [name for name in kinds if name not in unknown]
    clauses = [f"{listed(unchanged)} are as they were"] if unchanged else []
    clauses += [f"of {listed(unknown)} nothing is known"] if unknown else []
    return [], f"Why is not known: {'; '.join(clauses)}."


def times_text(factor: float) -> str:
    """Return a factor as a verb phrase, for example ``doubled``, ``is 1.4 times what it was`` or ``fell to nothing``."""
    if factor in (0, inf):
        return "grew from nothing" if factor else "fell to nothing"
    if 1.8 <= factor <= 2.2:
        return "doubled"
    if 1 / 2.2 <= factor <= 1 / 1.8:
        return "halved"
    return f"is {factor:.2g} times what it was" if factor < 99.5 else f"is {factor:.0f} times what it was"


def _ratios(
    usual: Mapping[str, float], now: Mapping[str, float], alike: float
) -> list[tuple[str, float, float, float]]:
    """Return (name, before, now, factor) of the values that differ by more than the factor `alike`, the largest first."""
    both = [(name, usual[name], value) for name, value in now.items() if name in usual and usual[name] != value]
    rows = [(name, was, value, value / was if was else inf) for name, was, value in both]
    return sorted(
        (row for row in rows if not 1 / alike < row[3] < alike),
        key=lambda row: -max(row[3], 1 / row[3] if row[3] else inf),
    )


def _largest_difference(
    usual: Mapping[str, float], now: Mapping[str, float], least: float, sign: int, names: Iterable[str]
) -> list[tuple[str, float, float]]:
    """Return (name, before, now) of the value that grew most by at least `least`, or shrank with a negative `sign`.

    The list is empty if there is none.
    """
    rows = [(name, usual.get(name, 0.0), now.get(name, 0.0)) for name in sorted(names)]
    return sorted((row for row in rows if sign * (row[2] - row[1]) >= least), key=lambda row: sign * (row[1] - row[2]))[
        :1
    ]


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

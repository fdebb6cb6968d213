"""Growth of a watched job, and why a checkpoint was a surprise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import theilslopes

from sim.jobs.evidence.what_ifs import factors_of, kinds_of
from sim.jobs.watch.forecast import Circumstances, Forecast, TooSlowError, changed, simulated
from sim.jobs.watch.look import Cause, SeenCheckpoint, causes, unknown
from sim.model.text import capitalised, listed
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.model.schema.study import ScenarioFile


# ---- State that grows, and when checkpoints pass a limit by it.
#
# The slope is that of Theil and Sen (the median of all slopes between two checkpoints), with its 95 % interval: single
# large checkpoints do not turn it.  How much longer checkpoints take with larger state is simulated, as a ratio: it
# scales what is observed now.

MIN_GROWTH_CHECKPOINTS = 12
"""Checkpoints that show a growth."""
MAX_GROWTH_CHECKPOINTS = 300
"""The latest checkpoints that are looked at."""
_MIN_GROWTH_SHARE = 0.03
"""State that grows by a smaller share over all of them stands still."""
_ANOTHER = 1.5
AHEAD_S = tuple(3600.0 * hours for hours in (0.25, 1, 4, 12, 24, 72, 168, 336, 720))
"""How far ahead is simulated: up to thirty days."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of one vertex's state."""

    vertex: str
    now_bytes: float
    per_second: float
    low: float  # bytes per second: 95 % interval
    high: float

    def after(self, seconds: float, per_second: float | None = None) -> float:
        return self.now_bytes + (self.per_second if per_second is None else per_second) * seconds


@dataclass(frozen=True, slots=True)
class Passing:
    """When p90 passes a limit [s from now]; infinite: not within `AHEAD_S`."""

    at_s: float
    earliest_s: float
    latest_s: float


def growths(points: Sequence[SeenCheckpoint]) -> list[Growth]:
    """The vertices whose state surely grows, the quickest first."""
    done = [point for point in points if point.status == "COMPLETED" and not point.is_savepoint and point.state][
        -MAX_GROWTH_CHECKPOINTS:
    ]
    found = [_growth(name, done) for name in dict.fromkeys(name for point in done for name in point.state)]
    return sorted((row for row in found if row is not None), key=lambda row: -row.per_second)


def _growth(vertex: str, points: Sequence[SeenCheckpoint]) -> Growth | None:
    rows = [(point.trigger_ms / 1e3, float(point.state[vertex])) for point in points if vertex in point.state]
    if len(rows) < MIN_GROWTH_CHECKPOINTS or rows[-1][0] <= rows[0][0]:
        return None
    times, sizes = np.array(rows).T
    if len(np.unique(times)) < MIN_GROWTH_CHECKPOINTS:
        return None
    slope, intercept, low, high = theilslopes(sizes, times - times[0])
    passed_s = times[-1] - times[0]
    now = intercept + slope * passed_s
    if low <= 0 or slope * passed_s < _MIN_GROWTH_SHARE * now:
        return None
    return Growth(vertex, float(now), float(slope), float(low), float(high))


def passing(
    rows: Sequence[Growth], now_ms: float, limit_ms: float, simulated_p90_ms: Callable[[Mapping[str, float]], float]
) -> Passing | None:
    """`now_ms`: p90 of checkpoints now; `simulated_p90_ms`: bytes by vertex -> p90 in a simulation.

    None: no checkpoint completes in the simulation of the state as it is, which shows nothing of larger state.
    """
    if now_ms >= limit_ms:
        return Passing(0.0, 0.0, 0.0)
    base = simulated_p90_ms({row.vertex: row.now_bytes for row in rows})
    if not 0 < base < inf:
        return None

    def p90_ms(seconds: float) -> float:
        return now_ms * simulated_p90_ms({row.vertex: row.after(seconds) for row in rows}) / base

    at_s = _crossed(p90_ms, now_ms, limit_ms)
    high, low = (max(row.high / row.per_second for row in rows), min(row.low / row.per_second for row in rows))
    return Passing(at_s, at_s / high, at_s / low)


def _crossed(p90_ms: Callable[[float], float], now_ms: float, limit_ms: float) -> float:
    """Where the curve passes the limit: between two of `AHEAD_S`, straight in the logarithm of durations.  Larger state takes longer."""
    low, before = 0.0, now_ms
    high, after = AHEAD_S[-1], p90_ms(AHEAD_S[-1])
    if after < limit_ms:
        return inf
    while between := [seconds for seconds in AHEAD_S if low < seconds < high]:
        middle = between[len(between) // 2]
        value = p90_ms(middle)
        low, before, high, after = (low, before, middle, value) if value >= limit_ms else (middle, value, high, after)
    share = 0.5 if after == inf else log(limit_ms / before) / log(after / before)  # infinite: no checkpoint completes
    return low + (high - low) * share


def is_news(before_s: float, now_s: float) -> bool:
    """Whether a time ahead is another one than was said: by half, or beyond what is simulated."""
    if (before_s == inf) != (now_s == inf):
        return True
    return before_s != inf and not 1 / _ANOTHER < max(now_s, 60.0) / max(before_s, 60.0) < _ANOTHER


# ---- Why checkpoints left a forecast: what is different about the job, and whether a simulation with that takes as long.


@dataclass(frozen=True, slots=True)
class Why:
    """What is different, and what a simulation says of that."""

    causes: tuple[Cause, ...]
    simulated: str  # a sentence; empty: nothing could be simulated
    unknown: tuple[str, ...] = ()  # what could not be compared
    explains: bool | None = None  # None: not simulated

    @property
    def is_unchanged(self) -> bool:
        """Whether load and state are as they were, as far as is known."""
        return not any(cause.kind in ("load", "state") for cause in self.causes) and not {"load", "state"} & {
            *self.unknown
        }

    @property
    def text(self) -> str:
        if not self.causes:
            alike = [
                name for name in ("load", "state", "threads", "the parts of checkpoints") if name not in self.unknown
            ]
            said = [f"{listed(alike)} are as they were"] * bool(alike) + [
                f"of {listed(self.unknown)} nothing is known"
            ] * bool(self.unknown)
            return f"Why is not known: {'; '.join(said)}."
        named = capitalised("; ".join(cause.text for cause in self.causes))
        return f"{named}. {self.simulated}".strip()

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "causes": [
                {"kind": cause.kind, "vertex": cause.vertex, "factor": cause.factor, "text": cause.text}
                for cause in self.causes
            ],
            "simulated": self.simulated,
            "explains": self.explains,
        }


def explained(
    forecast: Forecast, now: Circumstances, observed_ms: tuple[float, float], study: ScenarioFile | None
) -> Why:
    """`observed_ms`: p50 and p90 of the checkpoints that left."""
    is_shorter = observed_ms[0] < forecast.p50_ms
    found, missing = tuple(causes(forecast.usual, now, -1 if is_shorter else 1)), tuple(unknown(forecast.usual, now))
    load = {cause.vertex: cause.factor for cause in found if cause.kind == "load"}
    state = {cause.vertex: now.state[cause.vertex] for cause in found if cause.kind == "state"}
    if study is None or not (load or state) or {0.0, inf} & {*load.values()}:
        return Why(found, "", missing)
    scenario = study.scenarios[0]
    other = changed(scenario, load, state)
    kinds = kinds_of(scenario, other)
    factors = None if study.backtest is None else factors_of(study.backtest, kinds)
    if factors is None or not kinds:
        return Why(found, "", missing)
    what = " and ".join(filter(None, ["load" if load else "", "state" if state else ""]))
    try:
        result = simulated(other)
    except TooSlowError as why:
        return Why(found, f"Simulated with this {what}: {why}.", missing)
    explains = all(
        predicted / factor <= seen <= predicted * factor
        for predicted, seen, factor in zip(
            (result.p50_ms, result.p90_ms), observed_ms, (factors.p50, factors.p90), strict=True
        )
    )
    verdict = "that explains it" if explains else "that does not explain all of it"
    within = f"within factors of {factors.p50:.2g} and {factors.p90:.2g}"
    said = (
        f"Simulated with this {what}: p50 {ms_text(result.p50_ms)}, p90 {ms_text(result.p90_ms)}, {within}: {verdict}."
    )
    return Why(found, said, missing, explains)

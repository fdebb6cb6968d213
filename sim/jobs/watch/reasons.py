"""Explain why checkpoints left the forecast: what has changed, and whether a simulation with the changes confirms it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from sim.jobs.evidence.what_ifs import factors_of, kinds_of
from sim.jobs.watch.forecast import Circumstances, Forecast, TooSlowError, simulate_durations, with_circumstances
from sim.jobs.watch.observation import Cause, causes, unknown
from sim.model.text import capitalised, listed
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.model.schema.study import ScenarioFile


@dataclass(frozen=True, slots=True)
class DeviationReason:
    """Differences that may have caused a deviation from the forecast, and the result of simulating them."""

    causes: tuple[Cause, ...]
    simulated: str  # the result as a sentence; "" if nothing could be simulated
    unknown: tuple[str, ...] = ()  # circumstances that could not be compared
    explains: bool | None = None  # whether the simulation agrees with the observation; None if not simulated

    @property
    def text(self) -> str:
        """The reason in sentences."""
        if not self.causes:
            compared = ("load", "state", "threads", "the parts of checkpoints")
            unchanged = [name for name in compared if name not in self.unknown]
            clauses = [f"{listed(unchanged)} are as they were"] if unchanged else []
            clauses += [f"of {listed(self.unknown)} nothing is known"] if self.unknown else []
            return f"Why is not known: {'; '.join(clauses)}."
        named = capitalised("; ".join(cause.text for cause in self.causes))
        return f"{named}. {self.simulated}".strip()

    @property
    def plain(self) -> dict[str, Any]:
        """The reason as values for JSON."""
        return {
            "causes": [
                {"kind": cause.kind, "vertex": cause.vertex, "factor": cause.factor, "text": cause.text}
                for cause in self.causes
            ],
            "simulated": self.simulated,
            "explains": self.explains,
        }


def explain_deviation(
    forecast: Forecast, now: Circumstances, observed_ms: tuple[float, float], study: ScenarioFile | None
) -> DeviationReason:
    """Explain a deviation from the forecast.

    Args:
        forecast: The forecast, with the circumstances in which it was made.
        now: The current circumstances.
        observed_ms: p50 and p90 of the checkpoints that left the forecast.
        study: The imported job, to simulate the differences; if None, nothing is simulated.
    """
    is_shorter = observed_ms[0] < forecast.p50_ms
    differences, not_compared = (
        tuple(causes(forecast.usual, now, -1 if is_shorter else 1)),
        tuple(unknown(forecast.usual, now)),
    )
    load = {cause.vertex: cause.factor for cause in differences if cause.kind == "load"}
    state = {cause.vertex: now.state[cause.vertex] for cause in differences if cause.kind == "state"}
    if study is None or not (load or state) or {0.0, inf} & {*load.values()}:
        return DeviationReason(differences, "", not_compared)
    scenario = study.scenarios[0]
    changed = with_circumstances(scenario, load, state)
    kinds = kinds_of(scenario, changed)
    factors = None if study.backtest is None else factors_of(study.backtest, kinds)
    if factors is None or not kinds:
        return DeviationReason(differences, "", not_compared)
    change = " and ".join(filter(None, ["load" if load else "", "state" if state else ""]))
    try:
        p50, p90 = simulate_durations(changed)
    except TooSlowError as error:
        return DeviationReason(differences, f"Simulated with this {change}: {error}.", not_compared)
    explains = all(
        predicted / factor <= observed <= predicted * factor
        for predicted, observed, factor in zip((p50, p90), observed_ms, (factors.p50, factors.p90), strict=True)
    )
    verdict = "that explains it" if explains else "that does not explain all of it"
    within = f"within factors of {factors.p50:.2g} and {factors.p90:.2g}"
    sentence = f"Simulated with this {change}: p50 {ms_text(p50)}, p90 {ms_text(p90)}, {within}: {verdict}."
    return DeviationReason(differences, sentence, not_compared, explains)

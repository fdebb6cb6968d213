"""Why checkpoints left their forecast."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from sim.jobs.evidence.what_ifs import factors_of, kinds_of
from sim.jobs.watch.forecast import Circumstances, Forecast, TooSlowError, changed, simulated
from sim.jobs.watch.look import Cause, causes, unknown
from sim.model.text import capitalised, listed
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.model.schema.study import ScenarioFile


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

"""Why checkpoints left a forecast: what is different about the job, and whether a simulation with that takes as long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import ms_text
from sim.evidence.what_ifs.changes import kinds_of
from sim.evidence.what_ifs.factors import factors_of
from sim.prose import capitalised
from sim.watching.circumstances import Cause, causes
from sim.watching.forecast import Circumstances, Forecast
from sim.watching.simulated import TooSlowError, changed, simulated

if TYPE_CHECKING:
    from sim.scenario.study import ScenarioFile


@dataclass(frozen=True, slots=True)
class Why:
    """What is different, and what a simulation says of that."""

    causes: tuple[Cause, ...]
    simulated: str  # a sentence; empty: nothing could be simulated
    explains: bool | None = None  # None: not simulated

    @property
    def is_unchanged(self) -> bool:
        """Whether load and state are as they were."""
        return not any(cause.kind in ("load", "state") for cause in self.causes)

    @property
    def text(self) -> str:
        if not self.causes:
            return "Why is not known: load, state, threads and the parts of checkpoints are as they were."
        named = capitalised("; ".join(cause.text for cause in self.causes))
        return f"{named}. {self.simulated}".strip()

    @property
    def plain(self) -> dict[str, Any]:
        return {
            "causes": [{"kind": cause.kind, "vertex": cause.vertex, "factor": cause.factor, "text": cause.text} for cause in self.causes],
            "simulated": self.simulated, "explains": self.explains,
        }  # fmt: skip


def explained(forecast: Forecast, now: Circumstances, observed_ms: tuple[float, float], study: ScenarioFile | None) -> Why:
    """`observed_ms`: p50 and p90 of the checkpoints that left."""
    found = tuple(causes(forecast.usual, now))
    load = {cause.vertex: cause.factor for cause in found if cause.kind == "load"}
    state = {cause.vertex: now.state[cause.vertex] for cause in found if cause.kind == "state"}
    if study is None or not (load or state):
        return Why(found, "")
    scenario = study.scenarios[0]
    other = changed(scenario, load, state)
    kinds = kinds_of(scenario, other)
    factors = None if study.backtest is None else factors_of(study.backtest, kinds)
    if factors is None or not kinds:
        return Why(found, "")
    what = " and ".join(filter(None, ["load" if load else "", "state" if state else ""]))
    try:
        result = simulated(other)
    except TooSlowError as why:
        return Why(found, f"Simulated with this {what}: {why}.")
    explains = all(
        predicted / factor <= seen <= predicted * factor
        for predicted, seen, factor in zip((result.p50_ms, result.p90_ms), observed_ms, (factors.p50, factors.p90), strict=True)
    )
    verdict = "that explains it" if explains else "that does not explain all of it"
    within = f"within factors of {factors.p50:.2g} and {factors.p90:.2g}"
    return Why(
        found, f"Simulated with this {what}: p50 {ms_text(result.p50_ms)}, p90 {ms_text(result.p90_ms)}, {within}: {verdict}.", explains
    )

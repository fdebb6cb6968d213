"""State that grows: for how long a setting keeps its limits, and which one breaks first.

The setting is tried at ever later times until it breaks a limit, or at ever earlier ones until it keeps all; then the gap is halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sim.advice.future.horizon import Horizon
from sim.advice.judgement import Setting
from sim.advice.race import Race
from sim.advice.running.bounds import BudgetUsedError
from sim.advice.sensitivity import advise_if
from sim.advice.settings import Candidate
from sim.advice.texts import name_of, passes_text
from sim.advice.trials import Trial
from sim.analysis.number_texts import bytes_text, ms_text

LATER, EARLIER = (2.0, 4.0, 8.0, 16.0), (0.5, 0.25, 0.125, 0.0)
"""Times that are tried, as multiples of the horizon."""
HALVINGS = 2


@dataclass(frozen=True, slots=True)
class Lasting:
    """The time for which a setting keeps its limits [s], and a later time at which it breaks one; None: never, among the times tried."""

    setting: tuple[str, str]
    kept_s: float | None
    broken_s: float | None
    broken: Setting | None = None  # as it is then


def lasting(race: Race, planned: dict[Trial, int]) -> Lasting | None:
    """How long the chosen setting lasts, or the one nearest to the limits; None: no state grows, or nothing is limited."""
    ahead_s, limits = race.bench.horizon.ahead_ns / 1e9, race.limits.of_means()
    if not race.bench.horizon.states or not limits or not race.settings:
        return None
    chosen = race.chosen
    candidate = race.candidate_of(race.nearest.name if chosen is None else chosen.name)
    now = chosen or next(setting for setting in race.settings if setting.name == candidate.name)
    found = Lasting(candidate.name, ahead_s if chosen else None, None if chosen else ahead_s, None if chosen else now)
    try:
        for share in LATER if chosen else EARLIER:
            found = _tried(race, candidate, share * ahead_s, found, planned)
            if found.kept_s is not None and found.broken_s is not None:
                break
        for _ in range(HALVINGS):
            if found.kept_s is not None and found.broken_s is not None:
                found = _tried(race, candidate, (found.kept_s + found.broken_s) / 2, found, planned)
    except BudgetUsedError:
        race.noted("the times at which growing state breaks a limit", covered=False)
    return found


def _tried(race: Race, candidate: Candidate, seconds: float, found: Lasting, planned: dict[Trial, int]) -> Lasting:
    there = advise_if(race, [candidate], {}, planned, ahead_s=seconds)
    own = None if there is None else there[0]
    if own is None:
        return found
    if own.breaks or not own.completed:
        return Lasting(candidate.name, found.kept_s, seconds, own)
    return Lasting(candidate.name, seconds, found.broken_s, found.broken)


def horizon_sentence(horizon: Horizon) -> str:
    """``State changes as the job runs ...: that of count from 85 MB to 8.7 GB.``; empty: it is as large then as it is now."""
    ahead_s = horizon.ahead_ns / 1e9
    moved = [state for state in horizon.states if state.after(ahead_s) != state.now_bytes]
    if not moved:
        return ""
    sizes = ", ".join(f"that of {state.vertex} from {bytes_text(state.now_bytes)} to {bytes_text(state.after(ahead_s))}" for state in moved)
    judged = f"limits are judged with the state of {ms_text(1e3 * ahead_s)} from now, which every trial keeps"
    return f"State changes as the job runs, so {judged}: {sizes}."


def lasting_sentence(race: Race, found: Lasting | None) -> str:
    """When a limit breaks, and at which size; empty: that is unknown."""
    if found is None:
        return ""
    name = name_of(found.setting)
    if found.kept_s is None:
        return f"{name} breaks them with the state of today already."
    if found.broken_s is None or found.broken is None:
        return f"{name} keeps them for the next {_time(found.kept_s)} as well."
    sizes = ", ".join(f"{state.vertex} {bytes_text(state.after(found.broken_s))}" for state in race.bench.horizon.states)
    broken = f"{passes_text(found.broken, race.limits)} at {sizes}, in {_time(found.broken_s)}"
    return f"{name} keeps the limits for about {_time(found.kept_s)}, and then breaks them: {broken}."


def to_json(horizon: Horizon, found: Lasting | None) -> dict[str, Any]:
    """`growing`: bytes now, and at the horizon.  `lasting`: until when a setting keeps its limits."""
    ahead_s = horizon.ahead_ns / 1e9
    growing = {state.vertex: {"now_bytes": state.now_bytes, "then_bytes": state.after(ahead_s)} for state in horizon.states}
    return {"horizon_s": ahead_s, "growing": growing, "lasting": None if found is None else _times(horizon, found)}


def _times(horizon: Horizon, found: Lasting) -> dict[str, Any]:
    """With the sizes of state when a limit breaks."""
    broken_s = found.broken_s
    sizes = {} if broken_s is None else {state.vertex: state.after(broken_s) for state in horizon.states}
    return {"setting": found.setting, "kept_s": found.kept_s, "broken_s": broken_s, "broken_bytes": sizes}


def _time(seconds: float) -> str:
    return ms_text(1e3 * seconds)

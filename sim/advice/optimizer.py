"""The search: the next trials, longer ones, until a setting lasts."""

# Who calls whom.  `report.py` builds a Race and calls `run_until_sure`; everything that runs goes down to
# TrialRunner.
#
#   report.py --> optimizer.run_until_sure          which settings, in which order (this module)
#                   |            |
#                   |            +--> search.Levers     keys other than interval and barrier mode
#                   v                        |
#                 candidates.Race <----------+      what is known of each setting; `chosen`, `choice`
#                   |            \
#                   |             +--> judgement    rows -> Setting: cost, limits, which one is best
#                   v
#                 trials.Bench                      setting -> scenarios: undisturbed, with a failure
#                 trials.TrialRunner                bounds (`affords`), then sweeps.run -> Store -> rows
#
# The stages of `run_until_sure`, and the share of the budget up to which each may plan runs (trials.py):
#
#   try_intervals            all barrier modes at intervals from short to long       GRID       50 %
#   try_optimum              the interval that theory proposes                       CERTAINTY  65 %
#   round, at most AGAIN = 3:
#     try_neighbours, try_shorter    intervals next to the best one                  CERTAINTY  65 %
#     levers.pull            only while no setting keeps the limits with room        LEVERS     60 %
#     replicate_until_sure   more runs of the settings that may be best              CERTAINTY  65 %
#     repeat                 a second run of the choice and of today's setting       CERTAINTY  65 %
#     confirm                long runs, if the tail of checkpoints has a limit       RACE       85 %
#   levers.relax, if no setting keeps the limits                                     RACE       85 %, then ALL
#   fail_tasks               a failing task instead of a lost task manager           RACE       85 %
#
# There is another round only if this one made a long run and no setting keeps the limits with room: a long
# run may break a limit that short runs kept.  Every row is stored, so the same command resumes and runs
# nothing twice.
#
# The budget counts work, a function of what is simulated.  Processor time would buy fewer runs on a busy
# machine and change the answer (trials.py).  A frozen copy of the race for the texts was rejected: it would
# give each answer a second name (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sim.advice.candidates import CandidateSearch, LeftOut
from sim.advice.horizon import Horizon
from sim.advice.judgement import EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE, Setting
from sim.advice.settings import (
    NICE_NS,
    Candidate,
    Protocol,
    allowed,
    behind_the_barrier,
    candidate,
    intervals,
    todays_setting,
)
from sim.advice.texts import name_of, passes_text
from sim.advice.trials import CERTAINTY, GRID, BudgetUsedError, NothingRanError, TimeUpError
from sim.model.units import format_duration, parse_duration
from sim.results.estimates import renewal
from sim.results.formats import bytes_text, ms_text

# ---- The intervals that run: a ladder with today's in it, the one that theory proposes, and the neighbours of the best one.
#
# Intervals run from the shortest on, as long as longer ones can still keep the limits and pay off.  Long intervals are
# the most expensive to simulate.

CLEARLY = 1.15
"""Longer intervals are skipped once a limit is broken by this factor."""
COST_SHARE_TO_SKIP = 0.8
"""A longer interval is skipped if this part of its expected cost is already too much."""
MAX_REFINEMENTS = 3
"""So often the intervals beside the best one run: as long as they are better."""


def try_intervals(race: CandidateSearch) -> None:
    """Every protocol at every interval of the ladder that may keep the limits."""
    ladder = intervals(race.scenario, recovery_ms=race.limits.recovery_ms, visible_ms=race.limits.visible_ms)
    tried = _protocols(race)
    extra = [race.unbound] if race.unbound else []
    race.protocols = {protocol.name: protocol for protocol in (*tried, *extra)}
    if race.today is not None:
        race.replicate([race.today], 1)
    for place, interval_ns in enumerate(ladder):
        rest = [candidate(race.scenario, other, protocol) for other in ladder[place:] for protocol in tried]
        if reason := _not_worth(race, interval_ns):
            race.left_out.append(LeftOut(reason, tuple(own.name for own in rest)))
            return
        own = [*tried, *(extra if interval_ns == todays_setting(race.scenario)[0] else [])]
        settings = [candidate(race.scenario, interval_ns, protocol) for protocol in own]
        if place and not race.affords_runs(settings, 1, GRID):
            race.left_out.append(LeftOut(race.lack(), tuple(own.name for own in rest)))
            return
        race.replicate(settings, 1)
        if not race.trials:
            raise NothingRanError(f"every run failed: {race.rows['error'].iloc[0]}")
        if reason := race.levers.stuck(race):
            left = rest[len(tried) :]
            race.left_out += [LeftOut(reason, tuple(own.name for own in left))] if left else []
            return


def try_optimum(race: CandidateSearch) -> None:
    """Try the interval of the renewal argument as well, if checkpoints cost more than noise."""
    chosen, cost_s = race.chosen, race.cost_s
    if chosen is None or not cost_s:
        return
    optimum_s = renewal(cost_s, race.mtbf_s)
    nearest = min(NICE_NS, key=lambda interval_ns: abs(math.log(interval_ns / 1e9 / optimum_s)))
    _try(race, [candidate(race.scenario, nearest, _protocol_at(race, nearest, chosen.protocol))])


def try_neighbours(race: CandidateSearch) -> None:
    """The next shorter and the next longer interval beside the best setting so far, until it stays the best."""
    for _ in range(MAX_REFINEMENTS):
        if not race.settings:
            return
        best = race.chosen or race.nearest
        if best.protocol not in race.protocols or not _try(race, _neighbours(race, best.name)):
            return
        if (race.chosen or race.nearest).name == best.name:
            return


def try_shorter(race: CandidateSearch) -> None:
    """Ever shorter intervals below all that ran, while limits ask for them: they lose less work, and write smaller increments."""
    for interval_ns in reversed([other for other in NICE_NS if other < _shortest_ns(race)]):
        best = race.chosen or race.nearest
        if race.has_room or best.protocol not in race.protocols or parse_duration(best.interval) > _shortest_ns(race):
            return
        if not _try(race, [candidate(race.scenario, interval_ns, _protocol_at(race, interval_ns, best.protocol))]):
            return


def _protocol_at(race: CandidateSearch, interval_ns: int, name: str) -> Protocol:
    """A protocol at another interval: what binds today's interval binds others elsewhere, or not at all."""
    is_todays_own = (
        race.unbound is not None and name == race.unbound.name and interval_ns != todays_setting(race.scenario)[0]
    )
    return race.now if is_todays_own else race.protocols[name]


def _shortest_ns(race: CandidateSearch) -> int:
    return min((parse_duration(setting.interval) for setting in race.settings), default=0)


def _neighbours(race: CandidateSearch, name: tuple[str, str]) -> list[Candidate]:
    """The same protocol, one step to either side, as far as these steps have not run, and may keep the limits."""
    own_ns = parse_duration(name[0])
    shorter, longer = (
        [other for other in NICE_NS if other < own_ns][-1:],
        [other for other in NICE_NS if other > own_ns][:1],
    )
    worth = [other for other in (*shorter, *longer) if other < own_ns or not _not_worth(race, other)]
    found = [candidate(race.scenario, other, _protocol_at(race, other, name[1])) for other in worth]
    return [own for own in found if own not in race.runs]


def _try(race: CandidateSearch, settings: list[Candidate]) -> bool:
    """Whether any setting was left to run, and both bounds covered it."""
    if not settings:
        return False
    if not race.affords_runs(settings, 1, CERTAINTY):
        race.left_out.append(LeftOut(race.lack(), tuple(own.name for own in settings)))
        return False
    race.replicate(settings, 1)
    return True


def _protocols(race: CandidateSearch) -> list[Protocol]:
    """What the sinks allow, today's, and operators' files behind the barrier."""
    advised, behind = allowed(race.scenario), behind_the_barrier(race.scenario, race.now)
    own = [race.now] if race.now not in advised and not race.is_forbidden else []
    return [*advised, *own, *([behind] if behind else [])]


def _not_worth(race: CandidateSearch, interval_ns: int) -> str:
    """The reason to skip this interval and all longer ones; empty: it may pay off.  Recovery and visibility grow with the interval."""
    done = [
        setting
        for setting in race.settings
        if parse_duration(setting.interval) < interval_ns and race.has_named_interval(setting)
    ]
    if not done:
        return ""
    last = max(parse_duration(setting.interval) for setting in done)
    longest = [setting for setting in done if parse_duration(setting.interval) == last]
    for column, bound, what in (
        ("recovery_ms", race.limits.recovery_ms, "recovery"),
        ("visible_ms", race.limits.visible_ms, "output"),
    ):
        if bound is not None and min((getattr(setting, column) for setting in longest), default=0.0) > CLEARLY * bound:
            return f"{what} takes too long at {format_duration(last)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    recoveries = [setting.again_ms / 1e3 / race.mtbf_s / 2 * interval_ns / last for setting in longest]
    if kept and min(recoveries) * COST_SHARE_TO_SKIP > min(kept) * (1 + EQUAL_LOSS_RELATIVE) + EQUAL_LOSS_SHARE:
        return "a failure would cost more than all that fewer checkpoints save"
    return ""


# ---- State that grows: for how long a setting keeps its limits, and which one breaks first.
#
# The setting is tried at ever later times until it breaks a limit, or at ever earlier ones until it keeps all; then the
# gap is halved.

LATER, EARLIER = (2.0, 4.0, 8.0, 16.0), (0.5, 0.25, 0.125, 0.0)
"""Times that are tried, as multiples of the horizon."""
BISECTION_STEPS = 2


@dataclass(frozen=True, slots=True)
class Lasting:
    """The time for which a setting keeps its limits [s], and a later time at which it breaks one; None: never, among the times tried."""

    setting: tuple[str, str]
    kept_s: float | None
    broken_s: float | None
    broken: Setting | None = None  # as it is then


def lasting(race: CandidateSearch) -> Lasting | None:
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
            found = _tried(race, candidate, share * ahead_s, found)
            if found.kept_s is not None and found.broken_s is not None:
                break
        for _ in range(BISECTION_STEPS):
            if found.kept_s is not None and found.broken_s is not None:
                found = _tried(race, candidate, (found.kept_s + found.broken_s) / 2, found)
    except BudgetUsedError:
        race.noted("the times at which growing state breaks a limit", covered=False)
    return found


def _tried(race: CandidateSearch, candidate: Candidate, seconds: float, found: Lasting) -> Lasting:
    own = race.under_change(candidate, {}, ahead_s=seconds)
    if own is None:
        return found
    if not own.keeps_limits:
        return Lasting(candidate.name, found.kept_s, seconds, own)
    return Lasting(candidate.name, seconds, found.broken_s, found.broken)


def horizon_sentence(horizon: Horizon) -> str:
    """``State changes as the job runs ...: that of count from 85 MB to 8.7 GB.``; empty: it is as large then as it is now."""
    ahead_s = horizon.ahead_ns / 1e9
    moved = [state for state in horizon.states if state.after(ahead_s) != state.now_bytes]
    if not moved:
        return ""
    sizes = ", ".join(
        f"that of {state.vertex} from {bytes_text(state.now_bytes)} to {bytes_text(state.after(ahead_s))}"
        for state in moved
    )
    judged = f"limits are judged with the state of {ms_text(1e3 * ahead_s)} from now, which every trial keeps"
    return f"State changes as the job runs, so {judged}: {sizes}."


def lasting_sentence(race: CandidateSearch, found: Lasting | None) -> str:
    """When a limit breaks, and at which size; empty: that is unknown."""
    if found is None:
        return ""
    name = name_of(found.setting)
    if found.kept_s is None:
        return f"{name} breaks them with the state of today already."
    if found.broken_s is None or found.broken is None:
        return f"{name} keeps them for the next {_time(found.kept_s)} as well."
    sizes = ", ".join(
        f"{state.vertex} {bytes_text(state.after(found.broken_s))}" for state in race.bench.horizon.states
    )
    broken = f"{passes_text(found.broken, race.limits)} at {sizes}, in {_time(found.broken_s)}"
    return f"{name} keeps the limits for about {_time(found.kept_s)}, and then breaks them: {broken}."


def to_json(horizon: Horizon, found: Lasting | None) -> dict[str, Any]:
    """`growing`: bytes now, and at the horizon.  `lasting`: until when a setting keeps its limits."""
    ahead_s = horizon.ahead_ns / 1e9
    growing = {
        state.vertex: {"now_bytes": state.now_bytes, "then_bytes": state.after(ahead_s)} for state in horizon.states
    }
    return {"horizon_s": ahead_s, "growing": growing, "lasting": None if found is None else _times(horizon, found)}


def _times(horizon: Horizon, found: Lasting) -> dict[str, Any]:
    """With the sizes of state when a limit breaks."""
    broken_s = found.broken_s
    sizes = {} if broken_s is None else {state.vertex: state.after(broken_s) for state in horizon.states}
    return {"setting": found.setting, "kept_s": found.kept_s, "broken_s": broken_s, "broken_bytes": sizes}


def _time(seconds: float) -> str:
    return ms_text(1e3 * seconds)


# ---- The course of a race: barriers and intervals first, levers where they do not suffice, then more and longer runs of the best.

AGAIN = 3
"""Levers are pulled so often: a long run may break a limit that short ones kept."""


def run_until_sure(race: CandidateSearch) -> None:
    """Run everything that the choice needs, or what the bounds allow.  NothingRanError: they allow nothing."""
    try:
        try_intervals(race)
        try_optimum(race)
        for _ in range(AGAIN):
            try_neighbours(race)
            try_shorter(race)
            if not race.has_room:
                race.levers.pull(race)
            before = len(race.runs), len(race.longer_ms)
            race.replicate_until_sure()
            race.repeat()
            race.confirm()
            if race.has_room or before == (len(race.runs), len(race.longer_ms)):
                break  # no long run broke what short ones kept
        if race.chosen is None:
            race.levers.relax(race)
            race.repeat()
            race.confirm()
        race.fail_tasks()
    except TimeUpError:
        race.left_out.append(LeftOut(race.lack(), what="runs that were under way, and all that would have followed"))
    if not race.runs:
        raise NothingRanError("time was up before a single setting had run: give more with --within, or a shorter job")

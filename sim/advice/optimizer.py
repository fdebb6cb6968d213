"""The stages of the search: which settings run next, how often, and for how long the choice holds if state grows."""

# Call graph.  `report.py` creates a CandidateSearch and calls `run_until_sure`; every run goes through TrialRunner.
#
#   report.py --> optimizer.run_until_sure          which settings, in which order (this module)
#                   |            |
#                   |            +--> search            keys other than interval and barrier mode
#                   v                        |
#                 candidates.CandidateSearch <+     results of each setting; `chosen`, `choice`
#                   |            \
#                   |             +--> judgement    rows -> Setting: cost, limits, which one is best
#                   v
#                 trials.Bench                      setting -> scenarios: undisturbed, with a failure
#                 trials.TrialRunner                limits (`affords`), then sweeps.run -> Store -> rows
#
# The stages of `run_until_sure`, and the share of the budget up to which each may plan runs (trials.py):
#
#   try_intervals            all barrier modes at intervals from short to long       GRID       50 %
#   try_optimum              the interval that theory proposes                       CERTAINTY  65 %
#   round, at most AGAIN = 3:
#     try_neighbours, try_shorter    intervals next to the best one                  CERTAINTY  65 %
#     search.pull            only while no setting keeps the limits with room        LEVERS     60 %
#     try_between            longer intervals, up to the one that breaks the limits  CERTAINTY  65 %
#     replicate_until_sure   more runs of the settings that may be best              CERTAINTY  65 %
#     repeat                 a second run of the choice and of today's setting       CERTAINTY  65 %
#     confirm                long runs, if the tail of checkpoints has a limit       RACE       85 %
#   search.relax, if no setting keeps the limits                                     RACE       85 %, then ALL
#   fail_tasks               a failing task instead of a lost TaskManager            ALL       100 %
#
# If the choice is not confirmed after these rounds, they are repeated with what was kept for later stages: up to REST
# (95 %), or RACE if growing state needs further runs, or CERTAINTY if no setting keeps the limits yet.
#
# Another round follows only if this one tried a new setting or made a long run after `search.pull`, and no setting keeps
# the limits with room: a long run may break a limit that short runs kept.  Every row is stored, so the same command
# resumes and runs nothing twice.
#
# The budget counts work, a function of what is simulated.  A budget of CPU time would allow fewer runs on a busy
# machine, and so change the answer (trials.py).  We considered a frozen copy of the CandidateSearch for the texts and
# rejected it: every result would have two names (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sim.advice.candidates import CandidateSearch
from sim.advice.horizon import Horizon
from sim.advice.judgement import EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE, Setting
from sim.advice.search import pull, relax, stuck
from sim.advice.settings import (
    BETWEEN_NS,
    NICE_NS,
    Candidate,
    Protocol,
    SettingName,
    allowed,
    behind_the_barrier,
    candidate,
    intervals,
    writes_changes,
)
from sim.advice.texts import name_of, passes_text
from sim.advice.trials import CERTAINTY, GRID, RACE, REST, BudgetUsedError, NothingRanError, TimeUpError
from sim.model.units import format_duration, parse_duration
from sim.results.estimates import renewal
from sim.results.formats import bytes_text, ms_text

# ---- Intervals: a grid that includes the current one, the theoretical optimum, and the neighbours of the best one.
#
# Intervals are tried in ascending order, because long ones are the most expensive to simulate. The search stops at the first
# interval from which on no setting can keep the limits or save time.

CLEARLY = 1.15
"""Longer intervals are skipped once a limit is exceeded by this factor."""
COST_SHARE_TO_SKIP = 0.8
"""Longer intervals are skipped if already this share of the expected cost of failures exceeds the time lost by the best setting."""
MAX_REFINEMENTS = 3
"""Maximum number of times that the neighbours of the best interval are tried."""


def try_intervals(race: CandidateSearch) -> None:
    """Run every barrier mode at every interval of the grid that may keep the limits, in ascending order.

    Raises NothingRanError if every run fails.
    """
    ladder = intervals(race.scenario, recovery_ms=race.limits.recovery_ms, visible_ms=race.limits.visible_ms)
    tried = _protocols(race)
    if race.today is not None:
        race.replicate([race.today], 1)
    for place, interval_ns in enumerate(ladder):
        rest = [candidate(race.scenario, other, protocol) for other in ladder[place:] for protocol in tried]
        if reason := _not_worth(race, interval_ns):
            race.leave_out("", rest, reason)
            return
        settings = rest[: len(tried)]
        if race.unbound is not None and interval_ns == race.scenario.checkpoint.interval_ns:
            settings.append(candidate(race.scenario, interval_ns, race.unbound))
        if place and not race.affords_runs(settings, 1, GRID):
            race.leave_out("", rest)
            return
        race.replicate(settings, 1)
        if not race.trials:
            raise NothingRanError(f"every run failed: {race.rows['error'].iloc[0]}")
        if reason := stuck(race):
            if left := rest[len(tried) :]:
                race.leave_out("", left, reason)
            return


def try_optimum(race: CandidateSearch) -> None:
    """Run the chosen setting at the interval next to the theoretical optimum (`sim.results.estimates.renewal`).

    Do nothing if the cost of checkpoints is too small to be measured, because the optimum depends on it.
    """
    chosen, cost_s = race.chosen, race.cost_s
    if chosen is None or not cost_s:
        return
    optimum_s = renewal(cost_s, race.mtbf_s)
    nearest = min(NICE_NS, key=lambda interval_ns: abs(math.log(interval_ns / 1e9 / optimum_s)))
    _try(race, [race.at_interval(race.candidate_of(chosen.name), nearest)])


def try_neighbours(race: CandidateSearch) -> None:
    """Run the best setting so far at the next shorter and the next longer interval, until it stays the best."""
    for _ in range(MAX_REFINEMENTS):
        if not race.settings:
            return
        best = race.chosen or race.nearest
        if not _try(race, _neighbours(race, race.candidate_of(best.name))):
            return
        if (race.chosen or race.nearest).name == best.name:
            return


def try_shorter(race: CandidateSearch) -> None:
    """Run ever shorter intervals while no setting keeps the limits with room.

    With shorter intervals a failure loses less work, and incremental checkpoints are smaller.
    """
    for interval_ns in reversed([other for other in NICE_NS if other < _shortest_ns(race)]):
        best = race.candidate_of((race.chosen or race.nearest).name)
        if race.has_room or best.interval_ns > _shortest_ns(race):
            return
        if not _try(race, [race.at_interval(best, interval_ns)]):
            return


def try_between(race: CandidateSearch) -> bool:
    """Bisect between the chosen interval and the next longer one that does not keep the limits with room.

    An interval shorter than needed costs more checkpoints, bytes and commits.  Return True if any setting ran.
    """
    before = len(race.runs)
    while race.has_room and (chosen := race.chosen) is not None:
        own, now = race.candidate_of(chosen.name), race.current
        if now is not None and (not (now.breaks or now.tight) or now.interval == chosen.interval):
            break
        broken = [race.candidate_of(other.name) for other in race.settings if other.breaks or other.tight]
        longer_ns = min(
            (
                other.interval_ns
                for other in broken
                if other.interval_ns > own.interval_ns
                and race.at_interval(other, own.interval_ns).protocol == own.protocol
            ),
            default=0,
        )
        between = [
            found
            for interval_ns in BETWEEN_NS
            if own.interval_ns < interval_ns < longer_ns
            and (found := race.at_interval(own, interval_ns)) not in race.runs
        ]
        if not _try(race, between[len(between) // 2 :][:1]):
            break
    return len(race.runs) > before


def _shortest_ns(race: CandidateSearch) -> int:
    """Return the shortest interval that has run [ns], or 0 if nothing has run."""
    return min((parse_duration(setting.interval) for setting in race.settings), default=0)


def _neighbours(race: CandidateSearch, own: Candidate) -> list[Candidate]:
    """Return the candidate at the next shorter and the next longer interval, without those that have run or are not worth it."""
    shorter = [other for other in NICE_NS if other < own.interval_ns]
    longer = [other for other in NICE_NS if other > own.interval_ns]
    worth = [*shorter[-1:], *(other for other in longer[:1] if not _not_worth(race, other))]
    return [found for other in worth if (found := race.at_interval(own, other)) not in race.runs]


def _try(race: CandidateSearch, settings: list[Candidate]) -> bool:
    """Run the settings once.  Return False if there are none, or if budget or time limit do not cover them."""
    return bool(settings) and race.replicate_if_affordable(settings, CERTAINTY)


def _protocols(race: CandidateSearch) -> list[Protocol]:
    """Return the barrier modes to try: those that sinks allow, and today's unless sinks forbid it.

    If operators write files before the barrier, today's mode with files written after it is added (FLINK-37375).
    """
    advised, behind = allowed(race.scenario), behind_the_barrier(race.scenario, race.now)
    own = [race.now] if race.now not in advised and not race.is_forbidden else []
    return [*advised, *own, *([behind] if behind else [])]


def _not_worth(race: CandidateSearch, interval_ns: int) -> str:
    """Return the reason to skip this interval and all longer ones, or "" if it is worth a run.

    Recovery, and the time until output is visible, grow with the interval.  So if they clearly exceed a limit at the
    longest interval so far, or if recovery costs more than the best setting loses in all, longer intervals are not worth it.
    """
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
        if bound is not None and min(getattr(setting, column) for setting in longest) > CLEARLY * bound:
            return f"{what} takes too long at {format_duration(last)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    recoveries = [setting.again_ms / 1e3 / race.mtbf_s / 2 * interval_ns / last for setting in longest]
    if kept and min(recoveries) * COST_SHARE_TO_SKIP > min(kept) * (1 + EQUAL_LOSS_RELATIVE) + EQUAL_LOSS_SHARE:
        return "a failure would cost more than all that fewer checkpoints save"
    return ""


# ---- Growing state: how long a setting keeps the limits, and which limit breaks first.
#
# A setting that keeps the limits at the horizon is tried with the state of ever later times until it breaks one. A setting
# that does not keep them is tried with the state of ever earlier times until it keeps all. Then the time between is bisected.

LATER, EARLIER = (2.0, 4.0, 8.0, 16.0), (0.5, 0.25, 0.125, 0.0)
"""Times that are tried, as multiples of the horizon."""
BISECTION_STEPS = 2


@dataclass(frozen=True, slots=True)
class Lasting:
    """The time for which a setting keeps the limits while state grows.  Times count from now."""

    setting: SettingName
    kept_s: float | None  # latest tried time at which it keeps all limits; None if it never does
    broken_s: float | None  # earliest tried time at which it breaks a limit; None if it never does
    broken: Setting | None = None  # the judged setting at `broken_s`


def lasting(race: CandidateSearch) -> Lasting | None:
    """Return how long the chosen setting, or else the nearest one, keeps the limits.

    None if no state grows, there are no limits, or nothing has run.
    """
    ahead_s, limits = race.bench.horizon.ahead_ns / 1e9, race.limits.bounds
    if not race.bench.horizon.states or not limits or not race.settings:
        return None
    chosen = race.chosen
    now = chosen or race.nearest
    candidate = race.candidate_of(now.name)
    found = Lasting(now.name, ahead_s, None) if chosen else Lasting(now.name, None, ahead_s, now)
    try:
        for share in LATER if chosen else EARLIER:
            found = _tried(race, candidate, share * ahead_s, found)
            if found.kept_s is not None and found.broken_s is not None:
                break
        for _ in range(BISECTION_STEPS):
            if found.kept_s is not None and found.broken_s is not None:
                found = _tried(race, candidate, (found.kept_s + found.broken_s) / 2, found)
    except BudgetUsedError:
        race.leave_out("the times at which growing state breaks a limit")
    return found


def _tried(race: CandidateSearch, candidate: Candidate, seconds: float, found: Lasting) -> Lasting:
    """Return `found`, updated by a trial with the state in this many seconds, or unchanged if that does not count."""
    own = race.under_change(candidate, {}, ahead_s=seconds)
    if own is None:
        return found
    if not own.completed and any(
        writes_changes(race.bench.with_setting(candidate), state.vertex) for state in race.bench.horizon.states
    ):
        # the trial ended during its first upload, of the full state; a job whose state grew has uploaded most of it before
        return found
    if not own.keeps_limits:
        return Lasting(candidate.name, found.kept_s, seconds, own)
    return Lasting(candidate.name, seconds, found.broken_s, found.broken)


def horizon_sentence(horizon: Horizon) -> str:
    """Return ``State changes as the job runs ...: that of count from 85 MB to 8.7 GB.``, or "" if no size changes."""
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
    """Return a sentence on when a limit breaks and at which size of state, or "" if there is nothing to say."""
    if found is None:
        return ""
    name = name_of(found.setting)
    if found.kept_s is None:  # broken_s is 0 only if the setting was tried with the state of today
        return "" if found.broken_s else f"{name} breaks them with the state of today already."
    if found.broken_s is None or found.broken is None:
        return f"{name} keeps them for the next {ms_text(1e3 * found.kept_s)} as well."
    sizes = ", ".join(
        f"{state.vertex} between {bytes_text(state.after(found.kept_s))} and {bytes_text(state.after(found.broken_s))}"
        for state in race.bench.horizon.states
    )
    when = f"between {ms_text(1e3 * found.kept_s)} and {ms_text(1e3 * found.broken_s)} from now"
    return f"{name} keeps the limits until some time {when}: {passes_text(found.broken, race.limits)} with {sizes}."


def to_json(horizon: Horizon, found: Lasting | None) -> dict[str, Any]:
    """Return JSON data: `horizon_s`, `growing` (sizes now and at the horizon), `lasting` (how long a setting keeps the limits)."""
    ahead_s = horizon.ahead_ns / 1e9
    growing = {
        state.vertex: {"now_bytes": state.now_bytes, "then_bytes": state.after(ahead_s)} for state in horizon.states
    }
    times = None
    if found is not None:
        broken_s = found.broken_s
        sizes = {} if broken_s is None else {state.vertex: state.after(broken_s) for state in horizon.states}
        times = {"setting": found.setting, "kept_s": found.kept_s, "broken_s": broken_s, "broken_bytes": sizes}
    return {"horizon_s": ahead_s, "growing": growing, "lasting": times}


# ---- The stages of the search.

AGAIN = 3
"""Maximum number of rounds.  Another round is needed if a long run breaks a limit that short runs kept."""


def run_until_sure(race: CandidateSearch) -> None:
    """Run all stages, or as much of them as budget and time limit allow.  Raises NothingRanError if no setting has run."""
    try:
        try_intervals(race)
        try_optimum(race)
        _improve(race)
        if race.chosen is None:  # most of the rest is for relaxed keys, and for changes that would be enough
            race.spend_rest(CERTAINTY)
            _improve(race)
        elif not race.confirmed:
            race.spend_rest(RACE if race.bench.horizon.states else REST)
            _improve(race)
        if race.chosen is None:
            relax(race)
            race.repeat()
            race.confirm()
        race.fail_tasks()
    except TimeUpError:
        race.leave_out("runs that were under way, and all that would have followed")
    if not race.runs:
        raise NothingRanError("time was up before a single setting had run: give more with --within, or a shorter job")


def _improve(race: CandidateSearch) -> None:
    """Tune the best setting so far, and repeat its runs, until it keeps the limits with room or nothing new has run."""
    for _ in range(AGAIN):
        try_neighbours(race)
        try_shorter(race)
        if not race.has_room:
            pull(race)
        before = len(race.runs), len(race.longer_ms)
        race.replicate_until_sure()
        if try_between(race):
            race.replicate_until_sure()
        race.repeat()
        race.confirm()
        if race.has_room or before == (len(race.runs), len(race.longer_ms)):
            break  # no long run has broken a limit that short runs kept

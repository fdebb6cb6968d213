"""The stages of the search: which candidates run next, and how often."""

# Call graph.  `report.py` creates a CandidateSearch and calls `run_until_decided`; every run goes through TrialRunner.
#
#   report.py --> optimizer.run_until_decided       which candidates, in which order (this module)
#                   |
#                   v
#                 candidates.CandidateSearch        results of each setting; `chosen`, `choice`
#                   |            \
#                   |             +--> judgement    rows -> Setting: cost, limits, which one is best
#                   v
#                 trials.Bench                      setting -> scenarios: undisturbed, with a failure
#                 trials.TrialRunner                budget check (`affords`), then sweeps.run -> Store -> rows
#
# The stages of `run_until_decided`, and the share of the budget up to which each may plan runs (trials.py).  Methods of
# CandidateSearch are marked with +:
#
#   try_intervals            all barrier modes at intervals from short to long       GRID       50 %
#   try_optimum              the interval that theory proposes                       REPEAT     65 %
#   round, at most MAX_ROUNDS = 3:
#     try_neighbours         intervals next to the best one                          REPEAT     65 %
#     add_levers             only if no setting keeps the limits with margin         LEVER      60 %
#     confirm +              one long run, which may reject a setting at once        CONFIRM    85 %
#     replicate_until_decided +  more runs of the settings that may be best          REPEAT     65 %
#     try_neighbours         once more                                               REPEAT     65 %
#     repeat +               a second run of the choice and of today's setting       REPEAT     65 %
#     confirm +              long runs, if there is a limit on p99                   CONFIRM    85 %
#   relax_limiting_keys, if no setting keeps the limits                            REST       95 %, then all
#   add_levers_against_restarts, if failing checkpoints restart the job            all       100 %
#   simplify                 settings with fewer changes than the chosen one         REST       95 %
#   run_file                 the choice and today's setting with events of the file  all       100 %
#   measure_bytes +          a long run, if too few checkpoints show bytes written   CONFIRM    85 %
#
# If the choice is not confirmed after these rounds, they are repeated with the budget reserved for later stages: up to
# REST_SHARE (95 %), or CONFIRM_SHARE if growing state needs further runs, or if no setting keeps the limits yet.
#
# Another round follows only if this one tried a new setting or made a long run after `add_levers`, and no setting keeps the
# limits with margin: a long run may break a limit that short runs kept.  Once one does, levers are tried with long runs, and
# settings without a long run are not advised (`has_unseen_tail`), because short runs do not show p99.  Every row is stored, so
# the same command resumes and runs nothing twice.
#
# The budget counts work, a function of what is simulated.  A budget of CPU time would allow fewer runs on a busy
# machine, and so change the answer (trials.py).  We considered a frozen copy of the CandidateSearch for the functions that
# write the report, and rejected it: every result would have two names (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.advice.candidates import CandidateSearch, excess
from sim.advice.file_runs import run_file
from sim.advice.judgement import EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE
from sim.advice.levers import rank_levers, relaxations
from sim.advice.settings import (
    ROUND_INTERVALS_NS,
    BarrierSetting,
    Candidate,
    Change,
    Lever,
    allowed_protocols,
    intervals,
    make_candidate,
    neighbouring_intervals,
    with_files_after_barrier,
    writes_changes,
)
from sim.advice.situation import ASYNC_WORK, EXPIRY, FAILED_CHECKPOINTS, PARTS, SYNC, UPLOAD, situation_of
from sim.advice.trials import (
    CONFIRM_SHARE,
    FULL_BUDGET,
    GRID_SHARE,
    LEVER_SHARE,
    REPEAT_SHARE,
    REST_SHARE,
    TASK_MANAGER,
    NothingRanError,
    TimeUpError,
)
from sim.model.schema.text import ScenarioError
from sim.model.units import format_duration, parse_duration
from sim.results.estimates import renewal
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.advice.judgement import Setting
    from sim.model.scenario import Scenario


# ---- Greedy search over levers, for jobs in which barrier mode and interval alone do not keep the limits.
#
# Each step adds one lever to the best setting so far. Only levers are tried that can shorten the parts of a checkpoint or
# recovery that exceed a limit, and each resulting setting runs the same trials as any other. As soon as a setting keeps the
# limits, the search removes the changes that are not needed, because the user has to make each of them.
#
# Functions return little: results of trials are stored in the `CandidateSearch` (parameter `search`), whose `chosen`, `nearest`
# and `has_margin` change with every run.

MIN_RESTARTING_SHARE = 0.001
"""Minimum share of time lost to restarts by failing checkpoints for which levers against them are tried."""
MAX_COMBINED_LEVERS = 4
"""Maximum number of levers in one setting."""
MAX_REMAINING_EXCESS = 0.95
"""A further lever must reduce the excess (`sim.advice.candidates.excess`) to at most this share of it; else the search stops."""
UPLOAD_OVER_LIMIT = 1.15
"""Barrier modes and intervals cannot help if the upload of state alone takes more than this many times the limit on checkpoints."""

RELAXED = Lever("all limiting keys", costs="the protection that each of them gives")


def add_levers(search: CandidateSearch) -> None:
    """Add levers to the best setting so far until a setting keeps the limits with room, or no lever helps any more.

    That is the chosen one, which has run more often than others: one that seems nearer to the limits by a single run may have
    been lucky, and shows no part that exceeds them.

    At most `MAX_COMBINED_LEVERS` levers are combined; those that are not needed are removed again.
    """
    if search.has_margin or not search.settings:
        return
    base = search.chosen or search.nearest
    current = search.candidate_of(base.name)
    without_last = make_candidate(search.scenario, current.interval_ns, current.barriers, current.changes[:-1])
    # a long run has rejected the last lever, which had room in short ones: others may take its place
    if base.ran_long and base.breaks and (before_last := search.setting(without_last.name)) is not None:
        base, current = before_last, without_last
    for _ in range(MAX_COMBINED_LEVERS - len(current.changes)):
        before = excess(base, search.limits)
        best = _add_best_lever(search, current)
        if search.has_margin:
            simplify(search)
            return
        # where all limits are kept, any gain of room counts
        remaining = MAX_REMAINING_EXCESS if search.chosen is None else 1.0
        if best is None or excess(best, search.limits) > before * remaining:
            return
        base, current = best, search.candidate_of(best.name)


def add_levers_against_restarts(search: CandidateSearch) -> None:
    """Try levers against checkpoints that fail and restart the job with the chosen setting, until one ends that."""
    chosen = search.chosen
    if chosen is None or chosen.restarting < MIN_RESTARTING_SHARE:
        return
    current, found = search.candidate_of(chosen.name), situation_of(search, chosen.name)
    for lever, changes in rank_levers(replace(found, shares=dict.fromkeys((EXPIRY, FAILED_CHECKPOINTS), 1.0))):
        for candidate in (_apply(search, current, change) for change in changes):
            if not search.replicate_if_affordable([candidate], FULL_BUDGET, f"the lever '{lever.name}'"):
                return
            if search.chosen is not None and search.chosen.restarting < MIN_RESTARTING_SHARE:
                return


def relax_limiting_keys(search: CandidateSearch) -> None:
    """Try the setting nearest to the limits with every limiting Flink key relaxed; then drop the changes that are not needed.

    A key is limiting if its current value may delay checkpoints or make them fail, e.g. min-pause.  Other intervals are
    tried, too, if the setting exceeds a limit that depends on the interval.  Sets `search.relaxed` once all of this has run.
    """
    if not search.settings:
        return
    nearest = search.nearest
    base = search.candidate_of(nearest.name)
    changed_keys = {key for change in base.changes for key in change.point}
    scenario = search.bench.with_setting(base)
    relaxed = relaxations(scenario, nearest.breaks, fails=not math.isfinite(nearest.checkpoint_ms))
    by_key = {frozenset(change.point): change for change in relaxed if not changed_keys & set(change.point)}
    changes = list(by_key.values())
    points = {key: value for change in changes for key, value in change.point.items()}
    together = Change(RELAXED, f"{len(changes)} keys relaxed", points)
    limits = search.limits
    every = intervals(search.scenario, recovery_ms=limits.recovery_ms, visible_ms=limits.visible_ms)
    if not {"recovery_ms", "visible_ms", "loss"} & set(nearest.breaks):
        every = []
    for interval_ns in dict.fromkeys([base.interval_ns, *every]) if changes else ():
        at_interval = search.at_interval(base, interval_ns)
        description = "all limiting keys of Flink at values that do not limit"
        if not search.replicate_if_affordable([_apply(search, at_interval, together)], REST_SHARE, description):
            return
        if search.chosen is not None:
            _drop_unneeded_keys(search, at_interval, changes)
            simplify(search, FULL_BUDGET)
            break
    search.relaxed = tuple(f"{key} = {value}" for key, value in points.items())


def reason_for_levers(search: CandidateSearch) -> str:
    """Return why no barrier mode or interval can keep a limit, or "" if one may.

    The reason is that there are no slots for longer than the recovery may take, that rare checkpoints exceed the limit whatever the
    interval is, or that every checkpoint uploads the full state, and this alone clearly exceeds it.
    """
    bound_ms, recovery_ms = search.limits.checkpoint_ms, search.limits.recovery_ms
    nearest = search.nearest
    slots = search.slots_ms(nearest.name) if search.bench.failure == TASK_MANAGER else None
    if recovery_ms is not None and slots is not None and slots[0] > recovery_ms and "recovery_ms" in nearest.breaks:
        return f"there are no slots for {ms_text(slots[0])}, under any barriers and interval"
    if bound_ms is None or "checkpoint_ms" not in nearest.breaks:
        return ""
    if nearest.rare:
        return f"{nearest.rare}, under any barriers and interval"
    if not _writes_in_full(search.scenario):
        return ""
    spent_ms = situation_of(search, nearest.name).milliseconds
    own_ms = sum(spent_ms.get(part, 0.0) for part in (UPLOAD, SYNC, ASYNC_WORK))
    return (
        f"{PARTS[UPLOAD]} alone takes {ms_text(own_ms)} under any barriers"
        if own_ms > UPLOAD_OVER_LIMIT * bound_ms
        else ""
    )


def _apply(search: CandidateSearch, candidate: Candidate, *changes: Change) -> Candidate:
    """Return the candidate with further changes: of its barrier mode, or of other keys."""
    for change in changes:
        if change.protocol is not None:
            candidate = make_candidate(search.scenario, candidate.interval_ns, change.protocol, candidate.changes)
        else:
            candidate = make_candidate(
                search.scenario, candidate.interval_ns, candidate.barriers, (*candidate.changes, change)
            )
    return candidate


def _drop_unneeded_keys(search: CandidateSearch, base: Candidate, changes: Sequence[Change]) -> None:
    """Drop relaxed keys one at a time, where the limits are kept without, and with room if they are so with all of them.

    Stops early if the budget does not cover a run.
    """
    needed, has_margin = list(changes), search.has_margin
    for change in changes:
        fewer = _apply(search, base, *(other for other in needed if other is not change))
        if not _is_valid(search, fewer):
            continue
        if not search.replicate_if_affordable([fewer], FULL_BUDGET, f"all limiting keys except {change.name}"):
            return
        setting = search.setting(fewer.name)
        if setting is not None and setting.keeps_limits and not (has_margin and setting.tight):
            needed.remove(change)


def _add_best_lever(search: CandidateSearch, current: Candidate) -> Setting | None:
    """Try each remaining lever on top of `current`, until a setting keeps the limits with room.

    Returns the resulting setting with the smallest excess, or None if none completes a checkpoint or the budget is used up.
    """
    best: list[Setting] = []
    for lever, changes in rank_levers(situation_of(search, current.name)):
        if lever in {change.lever for change in current.changes}:
            continue
        candidates = [_apply(search, current, change) for change in changes]
        if not search.replicate_if_affordable(candidates, LEVER_SHARE, f"the lever '{lever.name}' and further ones"):
            return None
        if search.has_broken_tail:
            for name in [candidate.name for candidate in candidates]:
                setting = search.setting(name)
                is_open = setting is not None and setting.keeps_limits and not search.has_unseen_tail(name)
                if is_open and not search.run_for_long(name, 1, LEVER_SHARE):
                    return None
        if search.has_margin:
            break
        best += [setting for candidate in candidates if (setting := search.setting(candidate.name)) is not None]
    found_excess = [excess(setting, search.limits) for setting in best]
    least = min(found_excess, default=math.inf)
    return None if math.isinf(least) else best[found_excess.index(least)]


def simplify(search: CandidateSearch, share: float = LEVER_SHARE) -> None:
    """Run variants of the chosen setting that change less (see `_simpler`), if a share of the budget covers the runs.

    Those that change fewer keys, e.g. a lever at today's interval, may use `CONFIRM_SHARE`: the user has to make each change.
    """
    chosen = search.replaced and search.chosen
    if chosen is None:
        return
    candidate = search.candidate_of(chosen.name)
    for variant in dict.fromkeys(_simpler(search, candidate)):
        is_less = search.change_count(variant) < search.change_count(candidate)
        own_share = max(share, CONFIRM_SHARE) if is_less else share
        if not search.replicate_if_affordable([variant], own_share, "settings with fewer changes, and other intervals"):
            return
        own = search.setting(variant.name) if search.has_broken_tail and variant.name not in search.longer_ms else None
        if own is not None and own.keeps_limits and is_less:
            search.run_for_long(variant.name, 1, share)


def _writes_in_full(scenario: Scenario) -> bool:
    """Return True if the job has state, and each checkpoint writes all of it: neither incrementally nor by the changelog."""
    stateful = [vertex.name for vertex in scenario.job.vertices if vertex.state is not None]
    return bool(stateful) and not any(writes_changes(scenario, name) for name in stateful)


def _is_valid(search: CandidateSearch, candidate: Candidate) -> bool:
    """Return True if the scenario is valid with the candidate's keys; e.g. one delay may have to be longer than another."""
    try:
        search.bench.with_setting(candidate)
    except ScenarioError:
        return False
    return True


def _simpler(search: CandidateSearch, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidate with today's interval or barrier mode, with one lever less, and with the next intervals."""
    yield from search.simpler(candidate)
    shorter, longer = neighbouring_intervals(candidate.interval_ns)
    for other in (*shorter[:1], *longer[:2]):
        yield search.at_interval(candidate, other)


# ---- Intervals: a grid that includes the current one, the theoretical optimum, and the neighbours of the best one.
#
# Intervals are tried in ascending order, because long ones are the most expensive to simulate. The search stops at the first
# interval beyond which no setting can keep the limits or reduce lost time.

MIN_EXCESS_TO_STOP = 1.15
"""Longer intervals are skipped once a limit is exceeded by this factor."""
COST_SHARE_TO_SKIP = 0.8
"""Longer intervals are skipped if this share of their expected cost of failures exceeds the total loss of the best setting."""


def try_intervals(search: CandidateSearch) -> None:
    """Run every barrier mode at every interval of the grid that may keep the limits, in ascending order.

    Raises NothingRanError if every run fails.
    """
    grid = intervals(search.scenario, recovery_ms=search.limits.recovery_ms, visible_ms=search.limits.visible_ms)
    tried = _barrier_modes(search)
    if search.current_candidate is not None:
        search.replicate([search.current_candidate], 1)
        broken = () if search.current is None else search.current.breaks
        if broken == ("loss",):  # only throughput: shorter intervals would make it worse
            grid = [interval_ns for interval_ns in grid if interval_ns >= search.current_candidate.interval_ns]
        if broken and not {"recovery_ms", "visible_ms"} & set(broken):  # another mode at this interval may be enough
            at_current_interval = [
                make_candidate(search.scenario, search.current_candidate.interval_ns, mode) for mode in tried
            ]
            search.replicate_if_affordable(at_current_interval, GRID_SHARE)
    for i, interval_ns in enumerate(grid):
        remaining = [make_candidate(search.scenario, other, protocol) for other in grid[i:] for protocol in tried]
        if reason := _reason_to_skip(search, interval_ns):
            search.skip("", remaining, reason)
            return
        settings = remaining[: len(tried)]  # the first interval in all modes
        if i and not search.affords_runs(settings, 1, GRID_SHARE):
            search.skip("", remaining)
            return
        search.replicate(settings, 1)
        if not search.trials:
            raise NothingRanError(f"every run failed: {search.rows['error'].iloc[0]}")
        if reason := reason_for_levers(search):
            if skipped := remaining[len(tried) :]:
                search.skip("", skipped, reason)
            return


def try_optimum(search: CandidateSearch) -> None:
    """Run the chosen setting at the interval next to the theoretical optimum (`sim.results.estimates.renewal`).

    Do nothing if the cost of checkpoints is too small to be measured, because the optimum depends on it.
    """
    chosen, cost_s = search.chosen, search.cost_s
    if chosen is None or not cost_s:
        return
    optimum_s = renewal(cost_s, search.mtbf_s)
    nearest = min(ROUND_INTERVALS_NS, key=lambda interval_ns: abs(math.log(interval_ns / 1e9 / optimum_s)))
    _run_once(search, [search.at_interval(search.candidate_of(chosen.name), nearest)])


def try_neighbours(search: CandidateSearch) -> bool:
    """Run the best setting so far at the next shorter and the next longer interval, until it stays the best.

    An interval that is shorter than needed costs more checkpoints, bytes and commits.  Return True if any setting ran.
    """
    before = len(search.runs)
    for _ in ROUND_INTERVALS_NS if search.settings else ():
        best = search.chosen or search.nearest
        ran = _run_once(search, _neighbours(search, search.candidate_of(best.name)))
        if not ran or (search.chosen or search.nearest).name == best.name:
            break
    return len(search.runs) > before


def _neighbours(search: CandidateSearch, base: Candidate) -> list[Candidate]:
    """Return the candidate at the next shorter and the next longer interval, except those that have run or are skipped."""
    shorter, longer = neighbouring_intervals(base.interval_ns)
    worth = [*shorter[:1], *(other for other in longer[:1] if not _reason_to_skip(search, other))]
    return [neighbour for other in worth if (neighbour := search.at_interval(base, other)) not in search.runs]


def _run_once(search: CandidateSearch, settings: list[Candidate]) -> bool:
    """Run the settings once.  Return False if there are none, or if budget or time limit do not cover them."""
    return bool(settings) and search.replicate_if_affordable(settings, REPEAT_SHARE)


def _barrier_modes(search: CandidateSearch) -> list[BarrierSetting]:
    """Return the barrier modes to try: those that sinks allow, and today's unless sinks forbid it.

    If operators write files before the barrier, today's mode with files written after it is added (FLINK-37375).
    """
    allowed = allowed_protocols(search.scenario)
    after_barrier = with_files_after_barrier(search.scenario, search.current_barriers)
    current = [search.current_barriers] if search.current_barriers not in allowed and not search.is_forbidden else []
    return [*allowed, *current, *([after_barrier] if after_barrier else [])]


def _reason_to_skip(search: CandidateSearch, interval_ns: int) -> str:
    """Return the reason to skip this interval and all longer ones, or "" if it is worth a run.

    Recovery, and the time until output is visible, grow with the interval.  So if they clearly exceed a limit at the
    longest interval so far, or if recovery costs more than the best setting loses in all, longer intervals are not worth it.
    """
    done = [setting for setting in search.settings if setting.completed and search.period_ns(setting) < interval_ns]
    if not done:
        return ""
    longest_ns = max(parse_duration(setting.interval) for setting in done)
    at_longest = [setting for setting in done if parse_duration(setting.interval) == longest_ns]
    for column, bound, subject in (
        ("recovery_ms", search.limits.recovery_ms, "recovery"),
        ("visible_ms", search.limits.visible_ms, "output"),
    ):
        if bound is not None and min(getattr(setting, column) for setting in at_longest) > MIN_EXCESS_TO_STOP * bound:
            has_levers = any(search.candidate_of(setting.name).changes for setting in at_longest)
            without = "" if has_levers else "without levers "
            return f"{without}{subject} exceeds its limit at {format_duration(longest_ns)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    # `again_ms` is of a failure late in an interval; one at a random time costs half of it, and more with longer intervals
    failure_costs = [
        setting.again_ms / 1e3 / search.mtbf_s / 2 * interval_ns / search.period_ns(setting) for setting in at_longest
    ]
    if kept and min(failure_costs) * COST_SHARE_TO_SKIP > min(kept) * (1 + EQUAL_LOSS_RELATIVE) + EQUAL_LOSS_SHARE:
        return "failures would cost more than fewer checkpoints save"
    return ""


# ---- The stages of the search.

MAX_ROUNDS = 3
"""Maximum number of rounds.  Another round is needed if a long run breaks a limit that short runs kept."""


def run_until_decided(search: CandidateSearch) -> None:
    """Run all stages, or as much of them as budget and time limit allow.  Raises NothingRanError if no setting has run."""
    try:
        try_intervals(search)
        try_optimum(search)
        _refine(search)
        if search.chosen is None:  # most of the rest is for relaxed keys, and for changes that would be enough
            search.spend_rest(CONFIRM_SHARE)
            _refine(search)
        elif not search.confirmed:
            search.spend_rest(CONFIRM_SHARE if search.bench.horizon.states else REST_SHARE)
            _refine(search)
        if search.chosen is None:
            relax_limiting_keys(search)
            search.repeat()
            search.confirm()
        add_levers_against_restarts(search)
        simplify(search, REST_SHARE)
        search.repeat()
        search.confirm()
        for setting in (search.chosen, search.replaced):
            if setting is not None:
                run_file(search, setting)
        search.measure_bytes()
    except TimeUpError:
        search.skip("interrupted runs, and all later stages")
    search.is_over = True
    if not search.runs:
        raise NothingRanError(
            "time limit reached before any setting had run: increase --within, or shorten run.duration"
        )


def _refine(search: CandidateSearch) -> None:
    """Tune the best setting so far, and repeat its runs, until it keeps the limits with room or nothing new has run."""
    for _ in range(MAX_ROUNDS):
        try_neighbours(search)
        if not search.has_margin:
            add_levers(search)
        before = len(search.runs), len(search.longer_ms)
        search.confirm(runs=1)
        search.replicate_until_decided()
        if try_neighbours(search):
            search.replicate_until_decided()
        search.repeat()
        search.confirm()
        if search.has_margin or before == (len(search.runs), len(search.longer_ms)):
            break  # no long run has broken a limit that short runs kept

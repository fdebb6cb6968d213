"""Greedy search over levers, for jobs in which barrier mode and interval alone do not keep the limits.

Each step adds one lever to the best setting so far.  Only levers are tried that can shorten the parts of a checkpoint or
recovery that exceed a limit, and each resulting setting runs the same trials as any other.  As soon as a setting keeps the
limits, the search removes the changes that are not needed, because the user has to make each of them.

Functions return little: results of trials are stored in the `CandidateSearch` (parameter `search`), whose `chosen`, `nearest`
and `has_margin` change with every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.advice.candidates import excess
from sim.advice.constraints import relaxations
from sim.advice.levers import rank_levers
from sim.advice.settings import Change, Lever, intervals, make_candidate, neighbouring_intervals, writes_changes
from sim.advice.situation import (
    ASYNC_WORK,
    EXPIRY,
    FAILED_CHECKPOINTS,
    PARTS,
    SYNC,
    UPLOAD,
    situation_of,
)
from sim.advice.trials import CONFIRM_SHARE, FULL_BUDGET, LEVER_SHARE, REST_SHARE, TASK_MANAGER
from sim.model.schema.text import ScenarioError
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Setting
    from sim.advice.settings import Candidate
    from sim.model.scenario import Scenario

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

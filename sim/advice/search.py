"""Greedy search over levers, for jobs in which barrier mode and interval alone do not keep the limits.

Each step adds one lever to the best setting so far.  Only levers are tried that can shorten the parts of a checkpoint or
recovery that exceed a limit, and each resulting setting runs the same trials as any other.  As soon as a setting keeps the
limits, the search removes the changes that are not needed, because the user has to make each of them.

Functions return little: results of trials are stored in the `CandidateSearch` (parameter `race`), whose `chosen`, `nearest`
and `has_room` change with every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sim.advice.candidates import excess
from sim.advice.constraints import relaxations
from sim.advice.levers import ranked
from sim.advice.settings import NICE_NS, Change, Lever, candidate, intervals, writes_changes
from sim.advice.situation import ASYNC_WORK, PARTS, SYNC, UPLOAD, situation_of
from sim.advice.trials import ALL, LEVERS, RACE
from sim.model.schema.text import ScenarioError
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Setting
    from sim.advice.settings import Candidate
    from sim.model.scenario import Scenario

MAX_COMBINED_LEVERS = 4
"""Maximum number of levers in one setting."""
BETTER = 0.95
"""A further lever must reduce the excess (`sim.advice.candidates.excess`) to at most this share of it; else the search stops."""
CLEARLY = 1.15
"""Barrier modes and intervals cannot help if the upload of state alone takes more than this many times the limit on checkpoints."""

RELAXED = Lever("all keys that may bind", tuple(PARTS), lambda _: iter(()), costs="what each of them was set for")


def pull(race: CandidateSearch) -> None:
    """Add levers to the setting nearest to the limits until a setting keeps them with room, or no lever helps any more.

    If that setting has levers already, others are tried in place of its last one before.  At most `MAX_COMBINED_LEVERS`
    levers are combined.
    """
    if race.has_room or not race.settings or _replace_last(race):
        return
    current = race.candidate_of(race.nearest.name)
    for _ in range(MAX_COMBINED_LEVERS - len(current.changes)):
        before = excess(race.nearest, race.limits)
        best = _one_more(race, current)
        if race.has_room:
            _simplify(race)
            return
        if best is None or excess(best, race.limits) > before * (BETTER if race.chosen is None else 1):
            return
        current = race.candidate_of(best.name)


def relax(race: CandidateSearch) -> None:
    """Try the setting nearest to the limits with every limiting Flink key relaxed; then drop the changes that are not needed.

    A key is limiting if its current value may delay checkpoints or make them fail, e.g. min-pause.  Other intervals are
    tried, too, if the setting exceeds a limit that depends on the interval.  Sets `race.relaxed` once all of this has run.
    """
    if not race.settings:
        return
    nearest = race.nearest
    base = race.candidate_of(nearest.name)
    own = {key for change in base.changes for key in change.point}
    scenario = race.bench.with_setting(base)
    found = relaxations(scenario, nearest.breaks, fails=not math.isfinite(nearest.checkpoint_ms))
    by_key = {frozenset(change.point): change for change in found if not own & set(change.point)}
    changes = list(by_key.values())
    points = {key: value for change in changes for key, value in change.point.items()}
    together = Change(RELAXED, f"{len(changes)} keys relaxed", points)
    limits = race.limits
    every = intervals(race.scenario, recovery_ms=limits.recovery_ms, visible_ms=limits.visible_ms)
    if not {"recovery_ms", "visible_ms", "loss"} & set(nearest.breaks):
        every = []
    for interval_ns in dict.fromkeys([base.interval_ns, *every]) if changes else ():
        there = race.at_interval(base, interval_ns)
        what = "all keys of Flink that may bind, at values that do not"
        if not race.replicate_if_affordable([_with(race, there, together)], RACE, what):
            return
        if race.chosen is not None:
            _only_needed(race, there, changes, with_room=race.has_room)
            _simplify(race, ALL)
            break
    race.relaxed = tuple(f"{key} = {value}" for key, value in points.items())


def stuck(race: CandidateSearch) -> str:
    """Return why no barrier mode or interval can keep the limit on checkpoints, or "" if one may.

    The reason is that every checkpoint uploads the full state, and that this alone clearly exceeds the limit.
    """
    bound_ms = race.limits.checkpoint_ms
    nearest = race.nearest
    if bound_ms is None or "checkpoint_ms" not in nearest.breaks or not _writes_in_full(race.scenario):
        return ""
    spent_ms = situation_of(race, nearest.name).milliseconds
    own_ms = sum(spent_ms.get(part, 0.0) for part in (UPLOAD, SYNC, ASYNC_WORK))
    return f"{PARTS[UPLOAD]} alone takes {ms_text(own_ms)} under any barriers" if own_ms > CLEARLY * bound_ms else ""


def _with(race: CandidateSearch, own: Candidate, *changes: Change) -> Candidate:
    """Return the candidate with further changes: of its interval, its barrier mode, or other keys."""
    for change in changes:
        if change.interval_ns is not None:
            own = race.at_interval(own, change.interval_ns)
        elif change.protocol is not None:
            own = candidate(race.scenario, own.interval_ns, change.protocol, own.changes)
        else:
            own = candidate(race.scenario, own.interval_ns, own.barriers, (*own.changes, change))
    return own


def _only_needed(race: CandidateSearch, base: Candidate, changes: Sequence[Change], *, with_room: bool) -> None:
    """Run settings that relax fewer keys: each key by itself; if none of these is enough, drop keys one at a time.

    Stops early if the budget does not cover a run.  `with_room`: a smaller setting must keep the limits with room, as the
    one with all keys relaxed does.
    """
    alone = [own for change in changes if _is_possible(race, own := _with(race, base, change))]
    if not race.replicate_if_affordable(alone, ALL, "each key that may bind alone") or any(
        _keeps(race, own, with_room=with_room) for own in alone
    ):
        return
    needed = list(changes)
    for change in changes:
        fewer = _with(race, base, *(other for other in needed if other is not change))
        if not _is_possible(race, fewer):
            continue
        if not race.replicate_if_affordable([fewer], ALL, f"the keys that may bind without {change.name}"):
            return
        if _keeps(race, fewer, with_room=with_room):
            needed.remove(change)


def _one_more(race: CandidateSearch, current: Candidate) -> Setting | None:
    """Try each remaining lever on top of `current`, until a setting keeps the limits with room.

    Returns the resulting setting with the smallest excess, or None if none completes a checkpoint or the budget is used up.
    """
    best: list[Setting] = []
    for lever, changes in ranked(situation_of(race, current.name)):
        if lever in {change.lever for change in current.changes}:
            continue
        found = [_with(race, current, change) for change in changes]
        if not race.replicate_if_affordable(found, LEVERS, f"the lever '{lever.name}' and further ones"):
            return None
        if race.has_room:
            break
        best += [setting for own in found if (setting := race.setting(own.name)) is not None]
    found_excess = [excess(setting, race.limits) for setting in best]
    least = min(found_excess, default=math.inf)
    return None if math.isinf(least) else best[found_excess.index(least)]


def _replace_last(race: CandidateSearch) -> bool:
    """Replace the last lever of the setting nearest to the limits by others.  Return True if a setting keeps the limits with room.

    This is needed because a lever that had room in short trials may turn out too tight in a long run.
    """
    current = race.candidate_of(race.nearest.name)
    base = candidate(race.scenario, current.interval_ns, current.barriers, current.changes[:-1])
    if not current.changes or base.name not in race.trials:
        return False
    for lever, changes in ranked(situation_of(race, base.name)):
        untried = [own for change in changes if (own := _with(race, base, change)).name not in race.trials]
        if lever in {change.lever for change in base.changes} or not untried:
            continue
        if not race.replicate_if_affordable(
            untried, LEVERS, f"the lever '{lever.name}' in place of '{current.changes[-1].name}'"
        ):
            return False
        if race.has_room:
            _simplify(race)
            return True
    return False


def _simplify(race: CandidateSearch, share: float = LEVERS) -> None:
    """Run variants of the chosen setting (see `_simpler`), if it has levers and a share of the budget covers the runs."""
    chosen = race.chosen
    if chosen is not None and (own := race.candidate_of(chosen.name)).changes:
        found = list(dict.fromkeys(_simpler(race, own)))
        race.replicate_if_affordable(found, share, "simpler settings and other intervals with the same levers")


def _writes_in_full(scenario: Scenario) -> bool:
    """Return True if the job has state, and each checkpoint writes all of it: neither incrementally nor by the changelog."""
    stateful = [vertex.name for vertex in scenario.job.vertices if vertex.state is not None]
    return bool(stateful) and not any(writes_changes(scenario, name) for name in stateful)


def _keeps(race: CandidateSearch, own: Candidate, *, with_room: bool) -> bool:
    """Return True if a setting keeps the limits, and with room if `with_room`.  False if it has not run."""
    setting = race.setting(own.name)
    return setting is not None and setting.keeps_limits and not (with_room and setting.tight)


def _is_possible(race: CandidateSearch, own: Candidate) -> bool:
    """Return True if the scenario is valid with the candidate's keys; e.g. one delay may have to be longer than another."""
    try:
        race.bench.with_setting(own)
    except ScenarioError:
        return False
    return True


def _simpler(race: CandidateSearch, own: Candidate) -> Iterator[Candidate]:
    """Yield the candidate with today's barrier mode or interval, with one lever less, and with the next intervals."""
    if race.today is not None:
        yield candidate(race.scenario, race.today.interval_ns, race.now, own.changes)
    yield from race.simpler(own)
    shorter = [other for other in NICE_NS if other < own.interval_ns]
    longer = [other for other in NICE_NS if other > own.interval_ns]
    for other in (*shorter[-1:], *longer[:2]):
        yield race.at_interval(own, other)

"""The intervals that run: a ladder with today's in it, the one that theory proposes, and the neighbours of the best one.

Intervals run from the shortest on, as long as longer ones can still keep the limits and pay off.  Long intervals are the most expensive
to simulate.
"""

from __future__ import annotations

import math

from sim.advice.judgement import NEGLIGIBLE, SAME
from sim.advice.left_out import LeftOut
from sim.advice.race import Race
from sim.advice.running.bounds import CERTAINTY, GRID
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
from sim.analysis.theory import renewal
from sim.units import format_duration, parse_duration

CLEARLY = 1.15
"""Longer intervals are skipped once a limit is broken by this factor."""
SLACK = 0.8
"""A longer interval is skipped if this part of its expected cost is already too much."""
STEPS = 3
"""So often the intervals beside the best one run: as long as they are better."""


def try_intervals(race: Race) -> None:
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
        if reason := race.levers.stuck(race):
            left = rest[len(tried) :]
            race.left_out += [LeftOut(reason, tuple(own.name for own in left))] if left else []
            return


def try_optimum(race: Race) -> None:
    """Try the interval of the renewal argument as well, if checkpoints cost more than noise."""
    chosen, cost_s = race.chosen, race.cost_s
    if chosen is None or not cost_s:
        return
    optimum_s = renewal(cost_s, race.mtbf_s)
    nearest = min(NICE_NS, key=lambda interval_ns: abs(math.log(interval_ns / 1e9 / optimum_s)))
    _try(race, [candidate(race.scenario, nearest, _protocol_at(race, nearest, chosen.protocol))])


def try_neighbours(race: Race) -> None:
    """The next shorter and the next longer interval beside the best setting so far, until it stays the best."""
    for _ in range(STEPS):
        if not race.settings:
            return
        best = race.chosen or race.nearest
        if best.protocol not in race.protocols or not _try(race, _neighbours(race, best.name)):
            return
        if (race.chosen or race.nearest).name == best.name:
            return


def try_shorter(race: Race) -> None:
    """Ever shorter intervals below all that ran, while limits ask for them: they lose less work, and write smaller increments."""
    for interval_ns in reversed([other for other in NICE_NS if other < _shortest_ns(race)]):
        best = race.chosen or race.nearest
        if race.has_room or best.protocol not in race.protocols or parse_duration(best.interval) > _shortest_ns(race):
            return
        if not _try(race, [candidate(race.scenario, interval_ns, _protocol_at(race, interval_ns, best.protocol))]):
            return


def _protocol_at(race: Race, interval_ns: int, name: str) -> Protocol:
    """A protocol at another interval: what binds today's interval binds others elsewhere, or not at all."""
    is_todays_own = race.unbound is not None and name == race.unbound.name and interval_ns != todays_setting(race.scenario)[0]
    return race.now if is_todays_own else race.protocols[name]


def _shortest_ns(race: Race) -> int:
    return min((parse_duration(setting.interval) for setting in race.settings), default=0)


def _neighbours(race: Race, name: tuple[str, str]) -> list[Candidate]:
    """The same protocol, one step to either side, as far as these steps have not run, and may keep the limits."""
    own_ns = parse_duration(name[0])
    shorter, longer = [other for other in NICE_NS if other < own_ns][-1:], [other for other in NICE_NS if other > own_ns][:1]
    worth = [other for other in (*shorter, *longer) if other < own_ns or not _not_worth(race, other)]
    found = [candidate(race.scenario, other, _protocol_at(race, other, name[1])) for other in worth]
    return [own for own in found if own not in race.runs]


def _try(race: Race, settings: list[Candidate]) -> bool:
    """Whether any setting was left to run, and both bounds covered it."""
    if not settings:
        return False
    if not race.affords_runs(settings, 1, CERTAINTY):
        race.left_out.append(LeftOut(race.lack(), tuple(own.name for own in settings)))
        return False
    race.replicate(settings, 1)
    return True


def _protocols(race: Race) -> list[Protocol]:
    """What the sinks allow, today's, and operators' files behind the barrier."""
    advised, behind = allowed(race.scenario), behind_the_barrier(race.scenario, race.now)
    own = [race.now] if race.now not in advised and not race.is_forbidden else []
    return [*advised, *own, *([behind] if behind else [])]


def _not_worth(race: Race, interval_ns: int) -> str:
    """The reason to skip this interval and all longer ones; empty: it may pay off.  Recovery and visibility grow with the interval."""
    done = [setting for setting in race.settings if parse_duration(setting.interval) < interval_ns and race.has_named_interval(setting)]
    if not done:
        return ""
    last = max(parse_duration(setting.interval) for setting in done)
    longest = [setting for setting in done if parse_duration(setting.interval) == last]
    for column, bound, what in (("recovery_ms", race.limits.recovery_ms, "recovery"), ("visible_ms", race.limits.visible_ms, "output")):
        if bound is not None and min((getattr(setting, column) for setting in longest), default=0.0) > CLEARLY * bound:
            return f"{what} takes too long at {format_duration(last)} already"
    kept = [setting.lost for setting in done if not setting.breaks and math.isfinite(setting.lost)]
    recoveries = [setting.again_ms / 1e3 / race.mtbf_s / 2 * interval_ns / last for setting in longest]
    if kept and min(recoveries) * SLACK > min(kept) * (1 + SAME) + NEGLIGIBLE:
        return "a failure would cost more than all that fewer checkpoints save"
    return ""

"""Tuning with levers: those that shorten the exceeding parts are tried one after another, each in addition to the best so far.

Levers are tried by the same trials as any setting.  As soon as the limits are kept, the search removes all changes that are
not needed, because the user has to make each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sim.advice.candidates import NoTuning, excess
from sim.advice.constraints import relaxations
from sim.advice.levers import ROCKSDB, ranked
from sim.advice.settings import NICE_NS, Candidate, Protocol, candidate, intervals
from sim.advice.situation import ASYNC_WORK, PARTS, SYNC, UPLOAD, Change, Lever, situation_of
from sim.advice.trials import ALL, LEVERS, RACE
from sim.model.schema.text import ScenarioError
from sim.model.units import parse_duration
from sim.results.formats import ms_text

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.model.scenario import Scenario

MAX_COMBINED_LEVERS = 4
"""Maximum levers in a setting."""
BETTER = 0.95
"""A lever helps if it reduces the excess (`sim.advice.candidates.excess`) to at most this share."""
CLEARLY = 1.15
"""Barriers and intervals cannot help if the upload alone exceeds the limit by this factor."""

RELAXED = Lever("all keys that may bind", frozenset(PARTS), lambda _: iter(()), costs="what each of them was set for")


@dataclass(frozen=True, slots=True)
class Pulled:
    """A setting with the changes of levers."""

    interval_ns: int
    protocol: Protocol
    changes: tuple[Change, ...] = ()

    def with_change(self, change: Change) -> Pulled:
        if change.protocol is not None:
            return replace(self, protocol=change.protocol)
        if change.interval_ns is not None:
            return replace(self, interval_ns=change.interval_ns)
        return replace(self, changes=(*self.changes, change))

    def candidate(self, race: CandidateSearch) -> Candidate:
        """Return the setting as a candidate, and register its protocol in the search."""
        name = ", ".join([self.protocol.name, *(change.name for change in self.changes)])
        point = dict(self.protocol.point)
        for change in self.changes:
            point |= change.point
        is_configuration = self.protocol.is_configuration and all(
            change.lever.is_configuration for change in self.changes
        )
        race.protocols.setdefault(name, Protocol(name, point, self.protocol.aligned, is_configuration))
        return candidate(race.scenario, self.interval_ns, race.protocols[name])


class Levers(NoTuning):
    """Tuning by levers; keeps the settings that were tried with them."""

    def __init__(self) -> None:
        self.tried: dict[tuple[str, str], Pulled] = {}
        self.relaxed: tuple[str, ...] = ()  # keys that `relax` has set to non-binding values, with these
        self.has_relaxed = False  # `relax` has run all keys that may bind at non-binding values

    def pull(self, race: CandidateSearch) -> None:
        """Add levers until the limits are kept, or no further lever helps."""
        if race.has_room or not race.settings:
            return
        if self._replace_last(race, self._pulled(race, race.nearest.name)):
            return
        name = race.nearest.name
        current = self._pulled(race, name)
        for _ in range(MAX_COMBINED_LEVERS - len(current.changes)):
            before = excess(race.nearest, race.limits)
            best, best_excess = self._one_more(race, current, name)
            if race.has_room:
                self._simplify(race)
                return
            if best is None or best_excess > before * BETTER:
                return
            current, name = best, best.candidate(race).name

    def relax(self, race: CandidateSearch) -> None:
        """Set all Flink keys that may bind to non-binding values, at all intervals; then remove the changes that are not needed."""
        if not race.settings:
            return
        nearest = race.nearest
        base = self._pulled(race, nearest.name)
        own = {key for change in base.changes for key in change.point}
        scenario = race.bench.load({**race.bench.common, **base.candidate(race).point})
        found = relaxations(scenario, nearest.breaks, fails=not math.isfinite(nearest.checkpoint_ms))
        changes = [change for change in found if not own & set(change.point)]
        points = {key: value for change in changes for key, value in change.point.items()}
        together = Change(RELAXED, f"{len(changes)} keys relaxed", points)
        self.relaxed = tuple(change.name for change in changes)
        of_interval = {"recovery_ms", "visible_ms", "loss"} & set(nearest.breaks)
        every = [other for other in _intervals(race) if other != base.interval_ns] if of_interval else []
        for interval_ns in [base.interval_ns, *every] if changes else []:
            relaxed = replace(base, interval_ns=interval_ns, changes=(*base.changes, together))
            if not self._ran(race, [relaxed], "all keys of Flink that may bind, at values that do not", RACE):
                return
            if race.chosen is not None:
                self._only_needed(race, replace(base, interval_ns=interval_ns), changes, with_room=race.has_room)
                self._simplify(race, ALL)
                break
        self.has_relaxed = True

    def _only_needed(self, race: CandidateSearch, base: Pulled, changes: Sequence[Change], *, with_room: bool) -> None:
        """Find the keys that are needed: a single one if that is enough, else remove unneeded ones.  `with_room`: keep limits with room."""
        alone = [own for own in map(base.with_change, changes) if _is_possible(race, own)]
        if not self._ran(race, alone, "each key that may bind alone", ALL) or any(
            _keeps(race, own, with_room=with_room) for own in alone
        ):
            return
        needed = list(changes)
        for change in changes:
            fewer = replace(base, changes=(*base.changes, *(other for other in needed if other is not change)))
            if not _is_possible(race, fewer):
                continue
            if not self._ran(race, [fewer], f"the keys that may bind without {change.name}", ALL):
                return
            if _keeps(race, fewer, with_room=with_room):
                needed.remove(change)

    def _one_more(self, race: CandidateSearch, current: Pulled, name: tuple[str, str]) -> tuple[Pulled | None, float]:
        """Try each further lever on top of `current`: the best setting so, and by what factor it breaks the limits.

        It ends as soon as a setting keeps the limits with room.  None: no lever helps, or the budget is spent.
        """
        best, best_excess = None, float("inf")
        for lever, changes in ranked(situation_of(race, name)):
            if lever in {change.lever for change in current.changes}:
                continue
            found = [current.with_change(change) for change in changes]
            if not self._ran(race, found, f"the lever '{lever.name}' and further ones"):
                return None, float("inf")
            if race.has_room:
                break
            for pulled in found:
                own = _excess(race, pulled)
                if own < best_excess:
                    best, best_excess = pulled, own
        return best, best_excess

    def _replace_last(self, race: CandidateSearch, current: Pulled) -> bool:
        """Try other levers in place of the last one.  True: a setting keeps the limits with room.

        The first lever that kept them in short trials may have lost its room in a long run.
        """
        base = replace(current, changes=current.changes[:-1])
        name = base.candidate(race).name
        if not current.changes or name not in race.trials:
            return False
        for lever, changes in ranked(situation_of(race, name)):
            untried = [own for own in map(base.with_change, changes) if own.candidate(race).name not in race.trials]
            if lever in {change.lever for change in base.changes} or not untried:
                continue
            if not self._ran(race, untried, f"the lever '{lever.name}' in place of '{current.changes[-1].name}'"):
                return False
            if race.has_room:
                self._simplify(race)
                return True
        return False

    def stuck(self, race: CandidateSearch) -> str:
        """Return why no barrier mode and interval can keep the limit (the upload of full state alone exceeds it), or ""."""
        bound_ms = race.limits.checkpoint_ms
        nearest = race.nearest
        if bound_ms is None or "checkpoint_ms" not in nearest.breaks or not _writes_in_full(race.scenario):
            return ""
        spent_ms = situation_of(race, nearest.name).milliseconds
        own_ms = sum(spent_ms.get(part, 0.0) for part in (UPLOAD, SYNC, ASYNC_WORK))
        return (
            f"{PARTS[UPLOAD]} alone takes {ms_text(own_ms)} under any barriers" if own_ms > CLEARLY * bound_ms else ""
        )

    def _pulled(self, race: CandidateSearch, name: tuple[str, str]) -> Pulled:
        """Return a setting by its name, with the changes that its protocol includes."""
        found = self._of_protocol(name[1])
        if found is None:
            return Pulled(parse_duration(name[0]), race.protocols.get(name[1], race.now))
        return replace(found, interval_ns=parse_duration(name[0]))

    def changes(self, name: tuple[str, str]) -> tuple[Change, ...]:
        """Return the changes of a setting, also for intervals that other stages of the search have tried."""
        found = self._of_protocol(name[1])
        return () if found is None else found.changes

    def _of_protocol(self, protocol: str) -> Pulled | None:
        """Return a setting with these barriers and changes, whose names are part of its protocol's name."""
        return next((pulled for (_, own), pulled in self.tried.items() if own == protocol), None)

    def _ran(self, race: CandidateSearch, found: Sequence[Pulled], what: str, share: float = LEVERS) -> bool:
        """Run settings and return True, or return False if this share of the budget does not cover them."""
        candidates = [pulled.candidate(race) for pulled in found]
        if not race.covers(candidates, 1, share, what):
            return False
        race.replicate(candidates, 1)
        self.tried |= {own.name: pulled for own, pulled in zip(candidates, found, strict=True)}
        return True

    def _simplify(self, race: CandidateSearch, share: float = LEVERS) -> None:
        """Try simpler settings: current barriers and interval with the same levers, fewer levers, and neighbouring intervals."""
        chosen = race.chosen
        if chosen is not None and self.changes(chosen.name):
            found = dict.fromkeys(_simpler(race, self._pulled(race, chosen.name)))
            self._ran(race, list(found), "simpler settings and other intervals with the same levers", share)


def _writes_in_full(scenario: Scenario) -> bool:
    """Return True if each checkpoint writes full state: neither incremental nor with a changelog."""
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    incremental = scenario.checkpoint.state.incremental
    return bool(states) and not any(
        state.changelog is not None or (incremental and state.kind.keeps_files) for state in states
    )


def _excess(race: CandidateSearch, pulled: Pulled) -> float:
    """Return the excess of a setting, or inf if it has no result."""
    name = pulled.candidate(race).name
    return next((excess(setting, race.limits) for setting in race.settings if setting.name == name), float("inf"))


def _keeps(race: CandidateSearch, pulled: Pulled, *, with_room: bool) -> bool:
    """Return True if a setting keeps the limits."""
    name = pulled.candidate(race).name
    kept = (setting for setting in race.settings if setting.name == name and setting.completed and not setting.breaks)
    return any(not (with_room and setting.tight) for setting in kept)


def _is_possible(race: CandidateSearch, pulled: Pulled) -> bool:
    """Return True if the combination of keys is valid; e.g. one delay may have to be longer than another."""
    try:
        race.bench.load({**race.bench.common, **pulled.candidate(race).point})
    except ScenarioError:
        return False
    return True


def _intervals(race: CandidateSearch) -> list[int]:
    return intervals(race.scenario, recovery_ms=race.limits.recovery_ms, visible_ms=race.limits.visible_ms)


def _simpler(race: CandidateSearch, pulled: Pulled) -> Iterator[Pulled]:
    """Yield settings with fewer changes, and with the intervals next to the chosen one."""
    today_ns = None if race.today is None else parse_duration(race.today.interval)
    if today_ns is not None:
        yield replace(pulled, protocol=race.now, interval_ns=today_ns)
        yield replace(pulled, interval_ns=today_ns)
    yield replace(pulled, protocol=race.now)
    for i, change in enumerate(pulled.changes if len(pulled.changes) > 1 else ()):
        if not (change.lever is ROCKSDB and race.bench.horizon.states):  # growing state will not fit on the heap
            yield replace(pulled, changes=pulled.changes[:i] + pulled.changes[i + 1 :])
    shorter = [other for other in NICE_NS if other < pulled.interval_ns]
    longer = [other for other in NICE_NS if other > pulled.interval_ns]
    for other in (*shorter[-1:], *longer[:2]):
        yield replace(pulled, interval_ns=other)

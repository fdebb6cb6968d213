"""How much inputs that nobody knows matter: each is varied alone, and the advice made again among the settings in question.

The lines of a tornado diagram: first what would change the advice, then what moves the numbers most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sim.advice.judgement import Setting, Trials, choose, judged, measured
from sim.advice.race import Race
from sim.advice.settings import Candidate
from sim.advice.trials import UNDISTURBED, Trial
from sim.advice.unknowns import Unknown, plausible
from sim.advice.words import LIMITED, name_of, value_text
from sim.analysis.stored import Section
from sim.analysis.words import NONE
from sim.scenario import ScenarioError
from sim.sweep.file.design import Point
from sim.sweep.file.quantity import Quantity, QuantityError
from sim.units import parse_duration

__all__ = ["Sensitivity", "elsewhere", "section", "sensitivity", "shortlist"]

HALVINGS = 2
"""Trials between the assumed value and one that changes the advice: where about it does."""
SHORT = 6
QUANTITIES = ("checkpoint_ms", "recovery_ms", "loss", "visible_ms")
NOTICED = 0.1
"""A quantity that moves by less is not named."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Of one unknown; `ends`: value -> the setting advised so far, and what would be advised instead."""

    name: str
    question: str
    assumed: Any
    ends: tuple[tuple[Any, Setting | None, Setting | None], ...]
    base: Setting  # at the assumed value
    threshold: str = ""  # where about the advice changes

    @property
    def changes(self) -> bool:
        return any(other is None or other.name != self.base.name for _, _, other in self.ends)

    @property
    def moves(self) -> float:
        """The largest factor by which a quantity of the advised setting moves, as a logarithm."""
        return max((abs(moved) for _, setting, _ in self.ends for moved in _moved(self.base, setting).values()), default=0.0)


def shortlist(race: Race) -> list[Candidate]:
    """The advised setting, or the one nearest to the limits, and those it would most easily be exchanged for."""
    settings = race.settings
    chosen = race.chosen or race.nearest
    intervals = sorted({parse_duration(one.interval) for one in settings})
    at = intervals.index(parse_duration(chosen.interval))
    near = intervals[max(at - 1, 0) : at + 2]
    others = sorted(
        (one for one in settings if one.name != chosen.name and parse_duration(one.interval) in near),
        key=lambda one: (bool(one.breaks), one.interval != chosen.interval, one.protocol != chosen.protocol, one.lost),
    )
    names = [chosen.name, *([race.today.name] if race.today else []), *(one.name for one in others)]
    return [race.named(name) for name in list(dict.fromkeys(names))[:SHORT]]


def sensitivity(race: Race, asked: Sequence[Unknown], served: dict[str, float], planned: dict[Trial, int]) -> list[Sensitivity]:
    """The most important first; `planned` is told what was run."""
    listed = shortlist(race)
    alone = {one.name: {world: values[:1] for world, values in race.trials[one.name].items()} for one in listed}
    base = next(one for one in _judged(race, alone) if one.name == listed[0].name)
    found = []
    for unknown in asked:
        values = plausible(unknown, served.get(str(unknown.path[1]) if len(unknown.path) > 1 else "", 0.0))
        ends = tuple((value, *told) for value in values if (told := elsewhere(race, listed, {unknown.key: value}, planned)) is not None)
        if ends:
            one = Sensitivity(unknown.name, unknown.question, unknown.assumed, ends, base)
            own = choose(_judged(race, alone), race.changes)
            found.append(replace(one, threshold=_threshold(race, listed, unknown, one, own, planned)))
    return sorted(found, key=lambda one: (not one.changes, -one.moves))


def section(found: Sequence[Sensitivity]) -> Section:
    """A line each; a column for every quantity that moves."""
    moving = [column for column in QUANTITIES if any(_moves(one, column) for one in found)]
    header = ["input", "assumed", "varied", *(LIMITED[column] for column in moving), "advice"]
    rows = [
        [one.name, str(one.assumed), " ... ".join(str(value) for value, _, _ in one.ends), *(_quantity(one, column) for column in moving),
         _advice(one)]
        for one in found
    ]  # fmt: skip
    return Section("UNKNOWN inputs, each varied alone, the most important first; what it does to the setting advised", header, rows)


def _judged(race: Race, trials: Trials) -> tuple[Setting, ...]:
    return judged(trials, race.limits, race.mtbf_s, patience_ms=race.bench.patience_ns / 1e6)


def elsewhere(
    race: Race, listed: Sequence[Candidate], extra: Point, planned: dict[Trial, int]
) -> tuple[Setting | None, Setting | None] | None:
    """(the first of the settings, what would be advised) if the job were otherwise; None: it cannot be so."""
    trials = [trial for one in listed for trial in race.bench.trials(one, extra)]
    try:
        loaded = [(trial, race.bench.scenario(trial)) for trial in trials]
    except ScenarioError:
        return None
    planned |= dict.fromkeys(trials, 1)
    steady = [one for trial, one in loaded if trial.kind == UNDISTURBED]
    failing = [one for trial, one in loaded if trial.kind != UNDISTURBED]
    unlimited = any(vertex.source is not None and not vertex.source.rates for vertex in steady[0].job.vertices)
    settings = _judged(race, measured(race.run(steady, failing), now=race.now.name, unlimited=unlimited))
    own = next((one for one in settings if one.name == listed[0].name), None)
    return own, choose(settings, race.changes)


def _threshold(
    race: Race, listed: Sequence[Candidate], unknown: Unknown, one: Sensitivity, own: Setting | None, planned: dict[Trial, int]
) -> str:
    """``above about 4 GB``; empty: the advice holds, or between the values there is nothing."""
    told = []
    for value, _, other in one.ends:
        if _name(other) == _name(own):
            continue
        try:
            inside, outside = Quantity.parse(unknown.assumed), Quantity.parse(value)
        except QuantityError:
            continue
        less = outside.value < inside.value
        for _ in range(HALVINGS):
            middle = inside.between(outside, 0.5, log=True)
            if middle.value in (inside.value, outside.value):
                break
            if (there := elsewhere(race, listed, {unknown.key: middle.written()}, planned)) is None:
                break
            if _name(there[1]) == _name(own):
                inside = middle
            else:
                outside = middle
        middle = inside.between(outside, 0.5, log=True)
        about = Quantity(middle.kind, Fraction(f"{float(middle.value):.2g}")).written()
        told.append(f"{'below' if less else 'above'} about {about}")
    return " and ".join(told)


def _name(setting: Setting | None) -> tuple[str, str] | None:
    return None if setting is None else setting.name


def _moved(base: Setting, other: Setting | None) -> dict[str, float]:
    """By quantity: the logarithm of the factor; of a share of throughput, per cents count."""
    if other is None:
        return {}
    moved = {}
    for column in QUANTITIES:
        before, after = float(getattr(base, column)), float(getattr(other, column))
        if math.isnan(before) or math.isnan(after) or before == after:
            continue
        if column == "loss":
            moved[column] = (after - before) * 10
        elif math.isinf(after) or math.isinf(before) or before <= 0 or after <= 0:
            moved[column] = math.inf
        else:
            moved[column] = math.log(after / before)
    return moved


def _moves(one: Sensitivity, column: str) -> bool:
    return any(abs(_moved(one.base, setting).get(column, 0.0)) > NOTICED for _, setting, _ in one.ends)


def _quantity(one: Sensitivity, column: str) -> str:
    """``20 s ... 3 min``, if it moves."""
    if not _moves(one, column):
        return NONE
    return " ... ".join(value_text(column, getattr(setting, column)) for _, setting, _ in one.ends if setting is not None)


def _advice(one: Sensitivity) -> str:
    if not one.changes:
        return "holds"
    if one.threshold:
        others = {name_of(_name(other)) for _, _, other in one.ends if _name(other) != one.base.name}
        return f"changes {one.threshold}: {', '.join(sorted(others))}"
    told = [f"at {value}: {name_of(_name(other))}" for value, _, other in one.ends if _name(other) != one.base.name]
    return f"changes {', '.join(told)}"

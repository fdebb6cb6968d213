"""The effect of unknown inputs: each is varied alone, and the choice is made again among the nearest settings.

The rows are those of a tornado diagram: first inputs that change the advice, then those that move the numbers most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sim.advice.candidates import CandidateSearch
from sim.advice.judgement import Setting
from sim.advice.settings import Candidate
from sim.advice.texts import LIMITED, name_of, value_text
from sim.advice.trials import ALL, UNDISTURBED, BudgetUsedError, Trial
from sim.advice.unknowns import Unknown, plausible
from sim.model.scenario import Scenario
from sim.model.schema.text import ScenarioError
from sim.model.units import parse_duration
from sim.results.formats import MISSING, TextTable
from sim.studies.sweeps.design import ParsedQuantity, Point, QuantityError

HALVINGS = 2
"""Bisection steps between the assumed value and one that changes the advice."""
MAX_LISTED_INPUTS = 6
QUANTITIES = ("checkpoint_ms", "recovery_ms", "loss", "visible_ms")
NOTICED = 0.1
"""Smaller moves of a quantity are not listed."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The effect of one unknown on the advice.  `ends`: (value, setting advised so far, setting advised at that value)."""

    name: str
    question: str
    assumed: Any
    ends: tuple[tuple[Any, Setting | None, Setting | None], ...]
    base: Setting  # the first of the listed settings, at the assumed value
    advised: tuple[str, str] | None = None  # of the listed settings, at the assumed value
    threshold: str = ""  # where about the advice changes

    @property
    def changes_advice(self) -> bool:
        return any(_name(other) != self.advised for _, _, other in self.ends)

    @property
    def moves(self) -> bool:
        """Whether it changes the advice, or a quantity of the setting by more than is worth a mention."""
        return self.changes_advice or any(_moves(self, column) for column in QUANTITIES)

    @property
    def largest_move(self) -> float:
        """The largest factor by which a quantity of the advised setting moves, as a logarithm."""
        return max(
            (abs(moved) for _, setting, _ in self.ends for moved in _moved(self.base, setting).values()), default=0.0
        )


def shortlist(race: CandidateSearch) -> list[Candidate]:
    """The advised setting (or the one nearest to the limits) and its likeliest replacements."""
    settings = race.settings
    chosen = race.chosen or race.nearest
    intervals = sorted({parse_duration(setting.interval) for setting in settings})
    at = intervals.index(parse_duration(chosen.interval))
    near = intervals[max(at - 1, 0) : at + 2]
    others = sorted(
        (setting for setting in settings if setting.name != chosen.name and parse_duration(setting.interval) in near),
        key=lambda setting: (
            bool(setting.breaks),
            setting.interval != chosen.interval,
            setting.protocol != chosen.protocol,
            setting.lost,
        ),
    )
    names = [chosen.name, *([race.today.name] if race.today else []), *(setting.name for setting in others)]
    return [race.candidate_of(name) for name in list(dict.fromkeys(names))[:MAX_LISTED_INPUTS]]


def sensitivity(
    race: CandidateSearch, marked: Sequence[Unknown], served: dict[str, float], planned: dict[Trial, int]
) -> list[Sensitivity]:
    """A row per unknown, the most important first; `planned` collects the trials that run.

    Every value is tried by a single run of each listed setting, so the assumed value is judged by the first run of each
    as well.
    """
    listed, found, left_out = shortlist(race), [], []
    base, own = _at_assumed_values(race, listed)
    for unknown in marked:
        values = plausible(unknown, served.get(unknown.vertex, 0.0))
        try:
            ends = tuple(
                (value, *advised)
                for value in values
                if (advised := advise_if(race, listed, {unknown.key: value}, planned))
            )
        except BudgetUsedError:
            left_out.append(unknown.name)
            continue
        if ends:
            found.append(
                (unknown, Sensitivity(unknown.name, unknown.question, unknown.assumed, ends, base, _name(own)))
            )
    race.noted(f"other values of {', '.join(left_out)}", covered=not left_out)
    rows = [replace(row, threshold=_threshold(race, listed, unknown, row, own, planned)) for unknown, row in found]
    return sorted(rows, key=lambda row: (not row.changes_advice, -row.largest_move))


def _at_assumed_values(race: CandidateSearch, listed: Sequence[Candidate]) -> tuple[Setting, Setting | None]:
    """(the first of the listed settings, the setting to advise); these runs are there already."""
    steady = [scenario for scenario, kind in _first_runs(race, listed) if kind == UNDISTURBED]
    failing = [scenario for scenario, kind in _first_runs(race, listed) if kind != UNDISTURBED]
    settings = race.judged(race.measured(steady, failing, unlimited=race.unlimited))
    return next(setting for setting in settings if setting.name == listed[0].name), race.choose(settings)


def _first_runs(race: CandidateSearch, listed: Sequence[Candidate]) -> list[tuple[Scenario, str]]:
    """(scenario, kind of trial)."""
    return [(race.bench.scenario(trial), trial.kind) for candidate in listed for trial in race.bench.trials(candidate)]


def section(found: Sequence[Sensitivity]) -> TextTable:
    """A row per unknown; a column for every quantity that moves."""
    moving = [column for column in QUANTITIES if any(_moves(row, column) for row in found)]
    header = ["input", "assumed", "varied", *(LIMITED[column] for column in moving), "advice"]
    rows = [
        [
            row.name,
            str(row.assumed),
            " ... ".join(str(value) for value, _, _ in row.ends),
            *(_quantity(row, column) for column in moving),
            _advice(row),
        ]
        for row in found
    ]
    return TextTable(
        "UNKNOWN inputs, each varied alone, the most important first; what it does to the setting advised", header, rows
    )


def advise_if(
    race: CandidateSearch,
    listed: Sequence[Candidate],
    extra: Point,
    planned: dict[Trial, int],
    ahead_s: float | None = None,
    *,
    long: bool = False,
) -> tuple[Setting | None, Setting | None] | None:
    """(the first of the listed settings, the setting to advise) under a changed job; None: the change makes no scenario.

    `ahead_s`: with the state of that time.  `long`: long runs of the first one show its longest checkpoint.
    BudgetUsedError: the budget does not cover the runs.
    """
    try:
        longer = (
            [(trial, race.bench.scenario(trial)) for trial in race.bench.long_trials(listed[0], extra)] if long else []
        )
        trials = [trial for candidate in listed for trial in race.bench.trials(candidate, extra, ahead_s=ahead_s)]
        loaded = [(trial, race.bench.scenario(trial)) for trial in trials]
    except ScenarioError:
        return None
    steady = [scenario for trial, scenario in loaded if trial.kind == UNDISTURBED]
    failing = [scenario for trial, scenario in loaded if trial.kind != UNDISTURBED]
    long_runs = [scenario for _, scenario in longer]
    if not race.affords(steady, [*failing, *long_runs], ALL):
        raise BudgetUsedError
    planned |= dict.fromkeys([*trials, *(trial for trial, _ in longer)], 1)
    longer_ms = {listed[0].name: race.longest(long_runs, listed[0].name)[0]} if long else {}
    unlimited = any(vertex.source is not None and not vertex.source.rates for vertex in steady[0].job.vertices)
    settings = race.judged(race.measured(steady, failing, unlimited=unlimited, longer_ms=longer_ms))
    own = next((setting for setting in settings if setting.name == listed[0].name), None)
    return own, race.choose(settings)


def _threshold(
    race: CandidateSearch,
    listed: Sequence[Candidate],
    unknown: Unknown,
    found: Sensitivity,
    own: Setting | None,
    planned: dict[Trial, int],
) -> str:
    """The value where the advice changes: ``above about 4 GB``; empty: it never changes, or the range is too narrow to halve."""
    places = []
    for value, _, other in found.ends:
        if _name(other) == _name(own):
            continue
        try:
            near, far = ParsedQuantity.parse(unknown.assumed), ParsedQuantity.parse(value)
        except QuantityError:
            continue
        less = far.value < near.value
        for _ in range(HALVINGS):
            middle = near.between(far, 0.5, log=True)
            if middle.value in (near.value, far.value):
                break
            try:
                there = advise_if(race, listed, {unknown.key: middle.written()}, planned)
            except BudgetUsedError:
                break  # the range is wider, and still right
            if there is None:
                break
            if _name(there[1]) == _name(own):
                near = middle
            else:
                far = middle
        middle = near.between(far, 0.5, log=True)
        about = ParsedQuantity(middle.kind, Fraction(f"{float(middle.value):.2g}")).written()
        places.append(f"{'below' if less else 'above'} about {about}")
    return " and ".join(places)


def _name(setting: Setting | None) -> tuple[str, str] | None:
    return None if setting is None else setting.name


def _moved(base: Setting, other: Setting | None) -> dict[str, float]:
    """Quantity -> logarithm of the factor by which it moves; throughput loss moves by tenths."""
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


def _moves(found: Sensitivity, column: str) -> bool:
    return any(abs(_moved(found.base, setting).get(column, 0.0)) > NOTICED for _, setting, _ in found.ends)


def _quantity(found: Sensitivity, column: str) -> str:
    """``20 s ... 3 min``, if it moves."""
    if not _moves(found, column):
        return MISSING
    return " ... ".join(
        value_text(column, getattr(setting, column)) for _, setting, _ in found.ends if setting is not None
    )


def _advice(found: Sensitivity) -> str:
    if not found.changes_advice:
        return "holds"
    changed = [(value, _name(other)) for value, _, other in found.ends if _name(other) != found.advised]
    if found.threshold:
        return f"changes {found.threshold}: {', '.join(sorted({name_of(name) for _, name in changed}))}"
    return f"changes {', '.join(f'at {value}: {name_of(name)}' for value, name in changed)}"

"""No setting keeps the limits: the smallest change of storage, parallelism or operators with which the nearest setting would.

One part changes at a time.  The factor between one that is not enough and one that is gets halved, on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from sim.advice.levers.machines import more_subtasks
from sim.advice.levers.situation import situation_of
from sim.advice.race import Race
from sim.advice.running.bounds import BudgetUsedError
from sim.advice.sensitivity import advise_if
from sim.advice.texts import name_of
from sim.advice.trials import Trial
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import DocumentPath, Reading
from sim.sweeps.file.design import Point
from sim.sweeps.file.quantity import Quantity, QuantityError

__all__ = ["quantities", "requirements"]

MOST = 64.0
"""The largest factor that is tried."""
HALVINGS = 4
SUBTASKS = (2, 4, 8)
_STORAGE = ("bandwidth", "file-latency", "metadata-latency", "read-bandwidth", "latency", "nic")
_OPERATORS = ("service",)


def requirements(race: Race, planned: dict[Trial, int], assumed: dict[str, Any]) -> list[str]:
    """A sentence per part of the job.  `planned` collects the trials that run, `assumed` the present values of the changed keys."""
    plain = compose(read_text(race.bench.file), Reading(str(race.bench.file)))
    sentences = []
    for what, keys, section in (("checkpoint storage", _STORAGE, "storage"), ("operators", _OPERATORS, "job")):
        found = {key: value for key, value in quantities(plain.get(section, {}), (section,), keys) if key not in race.bench.common}
        if found:
            assumed |= {key: value.written() for key, value in found.items()}
            sentences.append(_smallest(race, what, found, planned))
    sentences += _subtasks(race, planned)
    return sentences


def quantities(plain: Any, path: DocumentPath, keys: tuple[str, ...]) -> Iterator[tuple[str, Quantity]]:
    """(key of an override, value) of every quantity below `path` that stands under one of `keys`."""
    if not isinstance(plain, Mapping):
        return
    for name, value in plain.items():
        here = (*path, name)
        if isinstance(value, Mapping):
            yield from quantities(value, here, keys)
        elif name in keys:
            try:
                yield ".".join(str(step) for step in here), Quantity.parse(value)
            except QuantityError:
                continue


def _keeps(race: Race, point: Point, planned: dict[Trial, int]) -> bool:
    """Whether the nearest setting keeps the limits in a job with this change.

    BudgetUsedError: the budget does not cover the runs.
    """
    nearest = race.candidate_of(race.nearest.name)
    there = advise_if(race, [nearest], {key: value for key, value in point.items() if key not in nearest.point}, planned)
    return there is not None and there[1] is not None


def _smallest(race: Race, what: str, found: Mapping[str, Quantity], planned: dict[Trial, int]) -> str:
    name = name_of(race.nearest.name)
    short, enough = 1.0, MOST
    try:
        if not _keeps(race, _faster(found, MOST), planned):
            return f"Even with {what} {MOST:g} times as fast {name} would not keep them."
        for _ in range(HALVINGS):
            middle = math.sqrt(short * enough)
            if _keeps(race, _faster(found, middle), planned):
                enough = middle
            else:
                short = middle
    except BudgetUsedError:
        if enough == MOST:
            return f"Not run: {what} {MOST:g} times as fast: {race.lack()}."
    return f"With {what} {enough:.2g} times as fast{_rates(found, enough)} {name} would keep the limits."


def _rates(found: Mapping[str, Quantity], factor: float) -> str:
    """`` (360 MB/s instead of 253 MB/s)``: for the first rate among the quantities."""
    for key, quantity in found.items():
        if quantity.kind == "byte rate" and key.endswith(".bandwidth"):
            faster = Quantity(quantity.kind, Fraction(f"{float(quantity.value) * factor:.2g}"))
            return f" ({faster.written()} instead of {quantity.written()})"
    return ""


def _subtasks(race: Race, planned: dict[Trial, int]) -> Iterator[str]:
    """More subtasks of the vertex that is full."""
    situation = situation_of(race, race.nearest.name)
    if not situation.full:
        return
    what = f"times the subtasks of '{situation.full}'"
    for factor in SUBTASKS:
        point = more_subtasks(situation, situation.full, factor)
        if not point:
            return
        try:
            if _keeps(race, point, planned):
                yield f"With {factor} {what} {name_of(race.nearest.name)} would keep the limits."
                return
        except BudgetUsedError:
            yield f"Not run: {factor} {what}: {race.lack()}."
            return
    yield f"Even with {SUBTASKS[-1]} {what} {name_of(race.nearest.name)} would not keep them."


def _faster(found: Mapping[str, Quantity], factor: float) -> Point:
    """Rates grow, times shrink."""
    exact = Fraction(factor).limit_denominator(1000)
    point: Point = {}
    for key, quantity in found.items():
        value = quantity.value / exact if quantity.kind == "duration" else quantity.value * exact
        point[key] = Quantity(quantity.kind, Fraction(max(round(value), 1))).written()
    return point

"""No setting keeps the limits: how much faster the storage or the operators would have to be.

One part changes at a time, by growing factors.  The first sufficient factor is reported, or that even the largest is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from sim.advice.race import Race
from sim.advice.running.bounds import BudgetUsedError
from sim.advice.sensitivity import advise_if, shortlist
from sim.advice.texts import name_of
from sim.advice.trials import Trial
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import DocumentPath, Reading
from sim.sweeps.file.design import Point
from sim.sweeps.file.quantity import Quantity, QuantityError

__all__ = ["quantities", "requirements"]

FASTER = (Fraction(3, 2), Fraction(2), Fraction(4), Fraction(10))
_STORAGE = ("bandwidth", "file-latency", "metadata-latency", "read-bandwidth")
_OPERATORS = ("service",)


def requirements(race: Race, planned: dict[Trial, int], assumed: dict[str, Any]) -> list[str]:
    """A sentence per part of the job.  `planned` collects the trials that run, `assumed` the present values of the changed keys."""
    plain = compose(read_text(race.bench.file), Reading(str(race.bench.file)))
    sentences = []
    for what, keys, section in (("checkpoint storage", _STORAGE, "storage"), ("operators", _OPERATORS, "job")):
        found = {key: value for key, value in quantities(plain.get(section, {}), (section,), keys) if key not in race.bench.common}
        if not found:
            continue
        assumed |= {key: value.written() for key, value in found.items()}
        sentences.append(_enough(race, what, found, planned))
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


def _enough(race: Race, what: str, found: Mapping[str, Quantity], planned: dict[Trial, int]) -> str:
    listed = shortlist(race)
    for factor in FASTER:
        try:
            there = advise_if(race, listed, _faster(found, factor), planned)
        except BudgetUsedError:
            return f"Not run: {what} {float(factor):g} times as fast: {race.lack()}."
        if there is not None and there[1] is not None:
            return f"With {what} {float(factor):g} times as fast {name_of(there[1].name)} would keep the limits."
    return f"Even with {what} {float(FASTER[-1]):g} times as fast none of the nearest settings would."


def _faster(found: Mapping[str, Quantity], factor: Fraction) -> Point:
    """Rates grow, times shrink."""
    point: Point = {}
    for key, quantity in found.items():
        value = quantity.value / factor if quantity.kind == "duration" else quantity.value * factor
        point[key] = Quantity(quantity.kind, Fraction(max(round(value), 1))).written()
    return point

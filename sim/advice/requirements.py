"""What the job would need, if no setting keeps the limits: faster storage or faster operators.

The module finds the smallest such change with which the setting nearest to the limits, or today's, would keep them.  One
part of the job is changed at a time; if none is enough by itself, storage and operators are changed together.

Each part is first tried at the largest factor (`MAX_SPEEDUP`), which shows what is never enough.  For the others, bisection
on a logarithmic scale finds the smallest factor that is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sim.advice.candidates import CandidateSearch
from sim.advice.settings import Candidate
from sim.advice.texts import name_of
from sim.advice.trials import BudgetUsedError
from sim.model import units
from sim.model.schema.text import DocumentPath
from sim.studies.sweeps.design import Point

MAX_SPEEDUP = 64.0
"""Largest factor that is tried."""
BISECTION_STEPS = 4
PHASES = 3
"""Number of times of the first checkpoint at which a change is tried."""
_OPERATORS = ("service", "fire", "pre-barrier", "sync", "async")
"""Keys of the times that task threads and snapshots of operators need."""
_STORAGE = ("bandwidth", "file-latency", "metadata-latency", "read-bandwidth", "read-latency", "latency", "nic")
_REQUESTS = "the request limit of checkpoint storage"


# ---- Quantities of a scenario. The unit of a value determines its kind, and so how it is scaled and written.

_WRITE: dict[str, Callable[[Any], str]] = {
    "duration": units.format_duration,
    "size": units.format_size,
    "byte rate": units.format_byte_rate,
    "rate": units.format_rate,
    "share": units.format_share,
}
_INTEGERS = ("duration", "size", "byte rate")


@dataclass(frozen=True, slots=True)
class ParsedQuantity:
    """A value of a scenario, in the base unit of its kind."""

    kind: str  # "duration", "size", "byte rate", "rate", ...: see `units.parse_quantity`
    value: Fraction

    @classmethod
    def parse(cls, text: object) -> ParsedQuantity | None:
        """Parse a number, or text with a unit.  Return None if `given` is neither, or "unlimited"."""
        try:
            kind, value = units.parse_quantity(text)
        except units.UnitError:
            return None
        return None if value is None else cls(kind, Fraction(value))

    def written(self) -> Any:
        """Return the value as it is written in a scenario file."""
        if self.kind in _WRITE:
            return _WRITE[self.kind](int(self.value) if self.kind in _INTEGERS else self.value)
        return int(self.value) if self.value.denominator == 1 else float(self.value)


# ---- The search.


def requirements(search: CandidateSearch) -> list[str]:
    """Return sentences: changes that would be enough; then one on all that would not be; then those that did not run."""
    plain = search.bench.document
    parts: dict[str, dict[str, ParsedQuantity]] = {}
    for part, section, keys in (
        (_REQUESTS, "storage", ("requests",)),
        ("checkpoint storage", "storage", _STORAGE),
        ("operators", "job", _OPERATORS),
    ):
        values = {
            key: value
            for key, value in quantities(plain.get(section, {}), (section,), keys)
            if key not in search.bench.common
        }
        if values:
            parts[part] = values
    enough, short, unknown = [], [], []

    def try_part(part: str, values: Mapping[str, ParsedQuantity]) -> None:
        largest = _times(part, MAX_SPEEDUP)
        try:
            if name := _setting_that_keeps(search, _faster(values, MAX_SPEEDUP)):
                enough.append(f"With {_smallest_factor(search, part, values, name)} would keep the limits.")
            else:
                short.append(largest)
        except BudgetUsedError:
            unknown.append(f"Not run: {largest}: {search.runner.lack}.")

    for part, values in parts.items():
        try_part(part, values)
    if not enough and len(short) > 1:
        together = {key: quantity for values in parts.values() for key, quantity in values.items()}
        try_part(f"{' and '.join(parts)} at once", together)
    if short:
        enough.append(f"Not enough for {' and '.join(map(name_of, _bases(search)))}: {'; '.join(short)}.")
    return enough + unknown


def quantities(plain: Any, path: DocumentPath, keys: tuple[str, ...]) -> Iterator[tuple[str, ParsedQuantity]]:
    """Yield (key, value) of every quantity below `path` whose key is one of `keys`."""
    if not isinstance(plain, Mapping):
        return
    for name, value in plain.items():
        key_path = (*path, name)
        if isinstance(value, Mapping):
            yield from quantities(value, key_path, keys)
        elif name in keys and (quantity := ParsedQuantity.parse(value)) is not None:
            yield ".".join(str(step) for step in key_path), quantity


def _bases(search: CandidateSearch) -> list[tuple[str, str]]:
    """Return the settings that are tried with a change: the nearest one, and today's if sinks allow it.

    Today's setting may need a smaller change, because its interval is another one.
    """
    now = [] if search.current is None or not search.permits(search.current.name) else [search.current.name]
    return list(dict.fromkeys([search.nearest.name, *now]))


def _setting_that_keeps(search: CandidateSearch, point: Point) -> str:
    """Return the name of a setting that keeps the limits in a job with this change at all of `_phases`, or "" if none does.

    A setting that has done long runs in the unchanged job must keep the limits in a long run.  Raises BudgetUsedError if
    the budget does not cover the runs.
    """
    for name in _bases(search):
        candidate = search.candidate_of(name)
        changed = {key: value for key, value in point.items() if key not in candidate.point}
        trials = [(changed | phase, False) for phase in _phases(search, candidate)]
        trials += [(changed, True)] * (name in search.longer_ms)
        settings = (search.under_change(candidate, extra, long=long) for extra, long in trials)
        if all(setting is not None and setting.keeps_limits for setting in settings):
            return name_of(name)
    return ""


def _phases(search: CandidateSearch, candidate: Candidate) -> Iterator[Point]:
    """Yield changes by which checkpoints meet other parts of all that is periodic: bursts, firings, what follows from a pause.

    In one trial they may always meet the same part, and a small change of any time moves them to another one: what seems to be
    enough, or not, would be chance.  Flink 1.x draws the time of the first checkpoint.
    """
    scenario = search.bench.with_setting(candidate)
    for i in range(PHASES):
        if not i:
            yield {}
        elif scenario.cluster.profile == "2.x":
            first_ns = scenario.overheads.first_trigger_ns + i * candidate.interval_ns // PHASES
            yield {"overheads.first-trigger": units.format_duration(first_ns)}
        else:
            yield {"run.seed": scenario.run.seed + i}


def _smallest_factor(search: CandidateSearch, part: str, values: Mapping[str, ParsedQuantity], name: str) -> str:
    """Return the smallest factor that is enough for a part, and a setting that keeps the limits then.

    For example ``checkpoint storage 2.2 times as fast (550 MB/s instead of 253 MB/s) aligned, every 10 s``.  `name`: the
    setting that keeps the limits with the largest factor.
    """
    short, enough = 1.0, MAX_SPEEDUP
    try:
        for _ in range(BISECTION_STEPS):
            middle = math.sqrt(short * enough)
            if keeper := _setting_that_keeps(search, _faster(values, middle)):
                enough, name = middle, keeper
            else:
                short = middle
    except BudgetUsedError:
        search.skip(f"factors between {short:.2g} and {enough:.2g} for {part}")
    return f"{_times(part, enough)}{_rates(values, enough)} {name}"


def _times(part: str, factor: float) -> str:
    return f"{part} {factor:.2g} times as {'high' if part == _REQUESTS else 'fast'}"


def _rates(values: Mapping[str, ParsedQuantity], factor: float) -> str:
    """Return e.g. `` (360 MB/s instead of 253 MB/s)`` for the first bandwidth or request limit in `values`; "" without one."""
    for key, quantity in values.items():
        if key.endswith((".bandwidth", ".requests")):
            faster = ParsedQuantity(quantity.kind, Fraction(f"{float(quantity.value) * factor:.2g}"))
            return f" ({faster.written()} instead of {quantity.written()})"
    return ""


def _faster(values: Mapping[str, ParsedQuantity], factor: float) -> Point:
    """Return the change that makes all quantities faster: durations are divided by `factor`, all others multiplied."""
    exact = Fraction(factor).limit_denominator(1000)
    point: Point = {}
    for key, quantity in values.items():
        value = quantity.value / exact if quantity.kind == "duration" else quantity.value * exact
        point[key] = ParsedQuantity(quantity.kind, Fraction(max(round(value), 1))).written()
    return point

"""The variations in a sweep file -> points: combinations of values, each a few overrides of the scenario.  It knows no key by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeVar

from sim.scenario.text.problems import DocumentPath, Reading
from sim.sweeps.file.document import Range, Sample
from sim.sweeps.file.quantity import ParsedQuantity, QuantityError

Point = dict[str, Any]
"""Key of the scenario -> value, as a scenario file has it."""
T = TypeVar("T")


def combinations(vary: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Every combination; the last key varies fastest."""
    return [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]


def together(group: Mapping[str, Sequence[Any]], here: DocumentPath, reading: Reading) -> list[Point]:
    """The points of keys that change together: the first values of all keys, then the second, and so on."""
    lengths = {key: len(values) for key, values in group.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        reading.wrong(here, f"keys that change together have equally many values: {counts}")
        return []
    return [dict(zip(group, values, strict=True)) for values in zip(*group.values(), strict=True)]


def sampled(sample: Sample, here: DocumentPath, reading: Reading) -> list[Point]:
    """Points spread evenly over the space of all keys (scipy.stats.qmc; Sobol points are scrambled)."""
    from scipy.stats import qmc

    seed = sample.seed or 1
    if sample.method == "latin-hypercube":
        engine: Any = qmc.LatinHypercube(len(sample.of), rng=seed)
    else:
        if sample.points & (sample.points - 1):
            reading.warn((*here, "points"), f"Sobol points are balanced in powers of two: {sample.points} is none")
        engine = qmc.Sobol(len(sample.of), rng=seed)
    choices = {key: _choice(given, (*here, "of", key), reading) for key, given in sample.of.items()}
    return [{key: choices[key](share) for key, share in zip(choices, row, strict=True)} for row in _rows(engine, sample.points)]


def override(key: str, value: Any) -> str:
    """``key=value`` for a scenario; YAML reads JSON."""
    return f"{key}={json.dumps(value, default=_plain)}"


def text_of(value: Any) -> str:
    """A value as a table shows it: ``{aligned-timeout: 1 s}`` -> ``aligned-timeout 1 s``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=_plain)


def _rows(engine: Any, count: int) -> Iterator[list[float]]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # our own message names the line
        yield from engine.random(count).tolist()


def _choice(given: Range | Sequence[Any], here: DocumentPath, reading: Reading) -> Callable[[float], Any]:
    """A function from a share (0 to 1) to a value."""
    if not isinstance(given, Range):
        return lambda share: given[min(int(share * len(given)), len(given) - 1)]
    try:
        low, high = _ends(given)
    except QuantityError as error:
        reading.wrong(here, str(error))
        return lambda _: given.from_
    return lambda share: low.between(high, share, log=given.scale == "log").written()


def _ends(given: Range) -> tuple[ParsedQuantity, ParsedQuantity]:
    low, high = ParsedQuantity.parse(given.from_), ParsedQuantity.parse(given.to)
    if {low.kind, high.kind} == {"count", "number"}:  # 0.5 to 2
        low, high = replace(low, kind="number"), replace(high, kind="number")
    if low.kind != high.kind or low.value >= high.value:
        raise QuantityError(f"expected a range of one kind, from less to more, not {text_of(given.from_)} to {text_of(given.to)}")
    if given.scale == "log" and low.value <= 0:
        raise QuantityError("a logarithmic range begins above 0")
    return low, high


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else str(value)

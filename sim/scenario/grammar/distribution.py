"""Distributions: a value alone, or one by name with its mean; as they are written, and as the model has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.model.job import Distribution
from sim.scenario.grammar.fields import Axis, Duration, Number, Size
from sim.scenario.grammar.section import MAP_OR_TEXT, Section
from sim.scenario.text.problems import DocumentPath, Reading

_KINDS = ("exponential", "uniform", "lognormal", "erlang", "shifted_exponential")

_HINTS_FOR_OTHER_NAMES = {"constant": "write the value alone, without a mapping", "normal": "write lognormal: {mean: ..., cv: ...}"}


class DurationSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Duration]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class SizeSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Size]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class DurationLaw(Section):
    """Exactly one of these distributions, by its name."""

    HINTS = _HINTS_FOR_OTHER_NAMES

    exponential: Axis[Duration] | None = None
    """Mean."""
    uniform: Axis[Duration] | None = None
    """Mean; from 0 to twice the mean."""
    lognormal: DurationSpread | None = None
    """A long tail."""
    erlang: DurationSpread | None = None
    """cv in (0, 1]: 1 / cv^2 stages."""
    shifted_exponential: DurationSpread | None = None
    """cv in (0, 1]: 1 - cv of the mean is constant, the rest exponential."""


class SizeLaw(Section):
    """Exactly one of these distributions, by its name.  A size that is drawn is at least 1 B, as every record has one."""

    HINTS = _HINTS_FOR_OTHER_NAMES

    exponential: Axis[Size] | None = None
    """Mean."""
    uniform: Axis[Size] | None = None
    """Mean; from 1 B to twice the mean."""
    lognormal: SizeSpread | None = None
    """A long tail."""
    erlang: SizeSpread | None = None
    """cv in (0, 1]: 1 / cv^2 stages."""


DurationField = Annotated[Annotated[Duration, Tag("text")] | Annotated[DurationLaw, Tag("map")], MAP_OR_TEXT]
SizeField = Annotated[Annotated[Size, Tag("text")] | Annotated[SizeLaw, Tag("map")], MAP_OR_TEXT]


def law(given: int | DurationLaw | SizeLaw | None, default: Distribution, here: DocumentPath, reading: Reading) -> Distribution:
    """The distribution that stands at `here`; mistakes go to `reading`."""
    if given is None:
        return default
    if isinstance(given, int):
        return Distribution(given)
    named = [kind for kind in _KINDS if getattr(given, kind, None) is not None]
    if len(named) != 1:
        known = [kind.replace("_", "-") for kind in _KINDS if hasattr(given, kind)]
        reading.wrong(here, f"write exactly one distribution: {', '.join(known[:-1])} or {known[-1]}")
        return default
    return _named(named[0], getattr(given, named[0]), here, reading)


def _named(kind: str, value: int | DurationSpread | SizeSpread, here: DocumentPath, reading: Reading) -> Distribution:
    kind = kind.replace("_", "-")
    if isinstance(value, int):
        return Distribution(value, kind)  # type: ignore[arg-type]  # a field's name
    most = 1 if kind in ("erlang", "shifted-exponential") else 100
    if not 0 < value.cv <= most:
        reading.wrong((*here, kind, "cv"), f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean")
    return Distribution(value.mean, kind, float(value.cv))  # type: ignore[arg-type]

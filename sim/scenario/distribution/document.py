"""Distributions as they are written: a value alone, or one by name with its mean."""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.scenario.grammar.fields import Axis, Duration, Number, Size
from sim.scenario.grammar.section import MAP_OR_TEXT, Section

__all__ = ["DurationField", "DurationLaw", "DurationSpread", "SizeField", "SizeLaw", "SizeSpread"]

_NO_PLAIN_LAW = {"constant": "write the value alone, without a mapping", "normal": "write lognormal: {mean: ..., cv: ...}"}


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
    """A distribution by name; exactly one."""

    HINTS = _NO_PLAIN_LAW

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
    """A distribution by name; exactly one.  A size that is drawn is at least 1 B, as every record has one."""

    HINTS = _NO_PLAIN_LAW

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

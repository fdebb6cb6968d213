"""A value of a scenario whose kind its unit tells, so that there are others between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sim import units

__all__ = ["Quantity", "QuantityError"]

_KINDS: tuple[tuple[str, Callable[[object], Any], Callable[[Any], str]], ...] = (
    ("duration", units.parse_duration, units.format_duration),
    ("size", units.parse_size, units.format_size),
    ("bytes per time", units.parse_byte_rate, units.format_byte_rate),
    ("records per time", units.parse_rate, units.format_rate),
    ("share", units.parse_share, units.format_share),
)
_WHOLE = ("duration", "size", "bytes per time")
_DIGITS = 4
"""Significant ones: nobody asks for 12.345678 s, and what is written can be read."""


class QuantityError(ValueError):
    """One line."""


@dataclass(frozen=True, slots=True)
class Quantity:
    kind: str
    value: Fraction

    @classmethod
    def parse(cls, given: object) -> Quantity:
        """A number, or text with a unit."""
        if isinstance(given, int) and not isinstance(given, bool):
            return cls("count", Fraction(given))
        for kind, parse, _ in _KINDS:
            try:
                value = parse(given)
            except units.UnitError:
                continue
            if value is not None:
                return cls(kind, Fraction(value))
        try:
            number = units.parse_number(given)
        except units.UnitError:
            raise QuantityError(f"'{given}' is neither a number nor a quantity such as '10 s'") from None
        return cls("count" if number.denominator == 1 else "number", number)

    def between(self, other: Quantity, share: float, *, log: bool) -> Quantity:
        """At `share` of the way to `other`, rounded to what one would write."""
        low, high = float(self.value), float(other.value)
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low))) if log else low + share * (high - low)
        if self.kind == "count":
            return Quantity(self.kind, Fraction(min(int(low + share * (high - low + 1)), int(high)) if not log else round(value)))
        rounded = Fraction(f"{value:.{_DIGITS}g}")
        return Quantity(self.kind, Fraction(round(rounded)) if self.kind in _WHOLE else rounded)

    def written(self) -> Any:
        """As it stands in a scenario."""
        for kind, _, write in _KINDS:
            if kind == self.kind:
                return write(int(self.value) if kind in _WHOLE else self.value)
        return int(self.value) if self.value.denominator == 1 else float(self.value)

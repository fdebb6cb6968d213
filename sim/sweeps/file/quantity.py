"""A value of a scenario with its kind, so that values between two of them exist.  Its unit tells the kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sim import units
from sim.foreign import Readable

_WRITE: dict[str, Callable[[Any], str]] = {
    "duration": units.format_duration, "size": units.format_size, "byte rate": units.format_byte_rate, "rate": units.format_rate,
    "share": units.format_share,
}  # fmt: skip
_INTEGERS = ("duration", "size", "byte rate")
_DIGITS = 4
"""Significant digits: more would be hard to read."""


class QuantityError(Readable, ValueError):
    """The text is no quantity, or one of another kind; one line."""


@dataclass(frozen=True, slots=True)
class ParsedQuantity:
    """A value of a scenario with its kind."""

    kind: str
    value: Fraction

    @classmethod
    def parse(cls, given: object) -> ParsedQuantity:
        """Parse a number, or text with a unit."""
        try:
            kind, value = units.parse_quantity(given)
        except units.UnitError:
            kind, value = "", None
        if value is None:  # or it is "unlimited"
            raise QuantityError(f"'{given}' is neither a number nor a quantity such as '10 s'")
        return cls("count" if kind == "number" and Fraction(value).denominator == 1 else kind, Fraction(value))

    def between(self, other: ParsedQuantity, share: float, *, log: bool) -> ParsedQuantity:
        """The value at `share` of the way to `other`, rounded to a few digits."""
        low, high = float(self.value), float(other.value)
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low))) if log else low + share * (high - low)
        if self.kind == "count":
            return ParsedQuantity(self.kind, Fraction(min(int(low + share * (high - low + 1)), int(high)) if not log else round(value)))
        rounded = Fraction(f"{value:.{_DIGITS}g}")
        return ParsedQuantity(self.kind, Fraction(round(rounded)) if self.kind in _INTEGERS else rounded)

    def written(self) -> Any:
        """The value as a scenario file has it."""
        if self.kind in _WRITE:
            return _WRITE[self.kind](int(self.value) if self.kind in _INTEGERS else self.value)
        return int(self.value) if self.value.denominator == 1 else float(self.value)

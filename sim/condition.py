"""A condition: a comparison and a bound, e.g. ``< 60 s``.  The caller knows the unit of the bound."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

_CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Condition(NamedTuple):
    """A comparison and a bound."""

    comparison: str  # <=, >=, ==, !=, < or >
    bound: str  # as written

    def __str__(self) -> str:
        return f"{self.comparison} {self.bound}"

    def holds(self, value: float, bound: float) -> bool:
        """Whether the value keeps the bound; both in the same unit."""
        return bool(_HOLDS[self.comparison](value, bound))


def parse_condition(text: str) -> Condition | None:
    """The condition in a text.  None: it is none."""
    match = _CONDITION.fullmatch(text)
    return None if match is None else Condition(match[1], match[2])

"""What a row of the list of rules says."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Rule"]


class Rule(NamedTuple):
    rule: str  # what holds
    file: str  # of the package
    text: str
    broken: str
    test: str  # must fail then

"""What a row of the list of rules says."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Rule"]


class Rule(NamedTuple):
    rule: str  # what holds
    file: str  # of the package, or of tests/
    text: str
    broken: str
    test: str  # must fail then

    @property
    def path(self) -> str:
        """From the root of the repository."""
        return self.file if self.file.startswith("tests/") else f"sim/{self.file}"

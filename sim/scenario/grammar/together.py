"""Keys of a section that depend on each other: which exclude each other, and which count beside another one only.

Reading, the JSON Schema and the reference of keys take it from here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sim.prose import listed


@dataclass(frozen=True, slots=True)
class OneOf:
    """Keys that exclude each other."""

    keys: Mapping[str, str]  # key -> what it says, where its name does not
    is_needed: bool = True  # False: none of them may stand there, too

    def mistake(self, written: Container[str]) -> str:
        """What is wrong with the keys that are written, in words.  Empty: nothing."""
        found = [key for key in self.keys if key in written]
        if len(found) == 1 or not (found or self.is_needed):
            return ""
        named = [f"{key} ({what})" if what else key for key, what in self.keys.items()]
        if len(named) == 1:
            return f"write {named[0]}"
        there = f": there are {listed(found)}" if 1 < len(found) < len(named) else ""
        return f"write {'exactly ' if self.is_needed else ''}one of {listed(named)}{there}"

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self.is_needed:
            return {"oneOf": [{"required": [key]} for key in self.keys]}
        return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(self.keys, 2)]}}


@dataclass(frozen=True, slots=True)
class OnlyWith:
    """Keys that need another one beside them."""

    keys: tuple[str, ...]
    others: tuple[str, ...]  # one of these
    why: str = ""

    @property
    def named(self) -> str:
        """The others as text."""
        *first, last = self.others
        return f"{', '.join(first)} or {last}" if first else last

    def mistakes(self, written: Container[str]) -> Iterator[tuple[str, str]]:
        """(key, mistake)."""
        if not any(other in written for other in self.others):
            yield from ((key, f"stands with {self.named}{self.why and f': {self.why}'}") for key in self.keys if key in written)

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        needed = {"anyOf": [{"required": [other]} for other in self.others]}
        return {"dependentSchemas": dict.fromkeys(self.keys, needed)}

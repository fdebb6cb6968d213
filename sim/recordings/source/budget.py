"""Foreign JSON, read in bounded memory: its size as Python values is estimated from the text before it is parsed.

Values may take thirty times the size of their text: ``{}`` and ``[]`` are two characters and 64 bytes.
"""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import numpy as np

from sim.units import format_size

MEMORY_BYTES = 1 << 30  # a million metric values, the most that are sampled, take 0.5 GiB by this estimate
DEEPEST = 100  # levels; Flink's answers and our recordings have ten
BYTES_OF_A_VALUE = 96  # an object with one entry, per bracket, colon and comma of its text
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_OPENING, _CLOSING = np.zeros(256, np.int8), np.zeros(256, np.int8)
_OPENING[list(b"[{")] = 1
_CLOSING[list(b"]}")] = 1


class BudgetError(ValueError):
    """The JSON would exceed the memory limit, or is nested too deeply."""

    def __init__(self, message: str, *, is_spent: bool = False) -> None:
        super().__init__(message)
        self.is_spent = is_spent  # True: no further reading is possible


class Budget:
    """The memory that a command may use for all foreign JSON.  Several threads may read."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.bytes_by_place: dict[str, int] = {}
        self.spent_bytes = 0  # the sum of these
        self._counting = threading.Lock()

    def parse(self, content: bytes, place: str) -> Any:
        """Parse the JSON.  It replaces what was read at the same place before.  BudgetError; ValueError, RecursionError: no JSON."""
        self.check(content, place)
        return json.loads(content)

    def check(self, content: bytes, place: str) -> None:
        """BudgetError: the JSON would take too much memory, or is nested too deeply."""
        with self._counting:
            if not self._count(place, _bytes(content)) and not self._count(place, _bytes(content, _TEXT.sub(b"", content))):
                self._count(place, 0)
                before = ", with what was read before" if self.spent_bytes else ""
                raise BudgetError(f"would take more than {format_size(self.memory_bytes)} of memory{before}", is_spent=True)
        if _depth(content) > DEEPEST and _depth(_TEXT.sub(b"", content)) > DEEPEST:
            raise BudgetError(f"is nested more than {DEEPEST} levels deep")

    def _count(self, place: str, size_bytes: int) -> bool:
        """Set what a place takes, instead of what it took before.  True: all places together fit."""
        self.spent_bytes += size_bytes - self.bytes_by_place.get(place, 0)
        self.bytes_by_place[place] = size_bytes
        return self.spent_bytes <= self.memory_bytes


def _bytes(content: bytes, bare: bytes | None = None) -> int:
    """An upper bound of the bytes; `bare` is the content without its texts, whose commas don't count."""
    character_bytes = 1 if content.isascii() and b"\\u" not in content else 4  # one wide character makes all of its text wide
    values = sum(map((content if bare is None else bare).count, (b"[", b"{", b":", b",")))
    return len(content) * character_bytes + values * BYTES_OF_A_VALUE


def _depth(content: bytes) -> int:
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return 0
    characters = np.frombuffer(content, np.uint8)
    return int(np.cumsum(_OPENING[characters] - _CLOSING[characters], dtype=np.int32).max(initial=0))

"""A value that a scenario leaves out and that decides its answer: what was tried instead, and what that moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.analysis.number_texts import bytes_text, ms_text
from sim.analysis.section import TextTable
from sim.prose import capitalised

WARM_UP = "run.warmup"
TIMEOUT = "checkpoint.timeout"


@dataclass(frozen=True, slots=True)
class DecidingAssumption:
    """An assumption that moves a result, with the value that was tried."""

    key: str  # of the scenario
    assumed: str  # in words, without its numbers
    tried: str  # in words
    moves: str  # ``checkpoint 1 (aligned)``, ``the median of aligned``
    before_ms: float
    after_ms: float
    is_bound: bool = False  # it had not ended: `after_ms` is what it takes at least
    bytes_per_second: float | None = None  # what the task managers write together, where nothing limits them
    count: int | None = None  # of task managers, or of files that wait for each other
    in_flight_bytes: tuple[float, float] | None = None  # stored as assumed, and as tried, where that moves and the duration does not

    def __str__(self) -> str:
        """``Assumed: files have no latency (storage.file-latency), and 12 wait for each other.  With 40 ms ... instead of ...``."""
        before, after = self._values
        if self.key == TIMEOUT:
            fate = f"is not complete after {ms_text(self.after_ms)} either" if self.is_bound else f"completes after {after}"
            return f"{capitalised(self.moves)} expires after {before}; with {self.tried} it {fate}."
        if self.key == WARM_UP:
            change = f"Without {self.tried}, {self.moves} is {after} instead of {before}."
        else:
            change = f"With {self.tried} {self.moves} {'takes' if self.in_flight_bytes is None else 'has'} {after} instead of {before}."
        return f"Assumed: {self.assumed}{self._numbers}. {change}"

    def row(self) -> list[str]:
        tried = f"without {self.tried}" if self.key == WARM_UP else self.tried
        return [f"{self.assumed}{self._numbers}", tried, self.moves, *self._values]

    @property
    def _values(self) -> tuple[str, str]:
        """As assumed, and as tried."""
        if self.in_flight_bytes is not None:
            before, after = map(bytes_text, self.in_flight_bytes)
            return before, f"{after} in flight"
        return ms_text(self.before_ms), f"{'more than ' if self.is_bound else ''}{ms_text(self.after_ms)}"

    @property
    def _numbers(self) -> str:
        if self.bytes_per_second is not None:
            return f": {bytes_text(self.bytes_per_second)}/s leave {self.count} of them"
        return "" if self.count is None else f", and {self.count} wait for each other"


def assumptions_table(found: Sequence[DecidingAssumption]) -> TextTable | None:
    """A row per assumption; None: none decides."""
    header = ["assumed", "tried instead", "of", "as assumed", "as tried"]
    return TextTable("Assumptions that decide", header, [own.row() for own in found]) if found else None

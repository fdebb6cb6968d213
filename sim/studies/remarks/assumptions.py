"""Values that a scenario omits, and that would change its answer."""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.text import capitalised
from sim.results.formats import bytes_text, ms_text

WARM_UP = "run.warmup"
TIMEOUT = "checkpoint.timeout"


@dataclass(frozen=True, slots=True)
class DecidingAssumption:
    """An assumption that changes a result: the value used, another value that was tried, and the result of both."""

    key: str  # key of the scenario
    assumed: str  # description of the assumed value, without numbers
    tried: str  # description of the tried value
    moves: str  # what changes: ``checkpoint 1 (aligned)``, ``the median of aligned``
    before_ms: float
    after_ms: float
    is_bound: bool = False  # `after_ms` is a lower bound
    bytes_per_second: float | None = None  # rate at which all TaskManagers write together, if nothing limits them
    count: int | None = None  # number of TaskManagers, or of files that are written one after another

    def __str__(self) -> str:
        """Return, e.g., ``Assumed: files have no latency (storage.file-latency).  With 40 ms ... instead of ...``."""
        before, after = self._values
        if self.key == TIMEOUT:
            outcome = (
                f"is not complete after {ms_text(self.after_ms)} either"
                if self.is_bound
                else f"completes after {after}"
                if after != before
                else f"completes {ms_text(self.after_ms - self.before_ms)} later"
            )
            return f"{capitalised(self.moves)} expires after {before}; with {self.tried} it {outcome}."
        if self.key == WARM_UP:
            change = f"Without {self.tried}, {self.moves} is {after} instead of {before}."
        else:
            change = f"With {self.tried}, {self.moves} takes {after} instead of {before}."
        return f"Assumed: {self.assumed}{self._numbers}. {change}"

    @property
    def _values(self) -> tuple[str, str]:
        """Return the texts of the result (as assumed, as tried)."""
        return ms_text(self.before_ms), f"{'more than ' if self.is_bound else ''}{ms_text(self.after_ms)}"

    @property
    def _numbers(self) -> str:
        """Return the clause with the write rate, or with the number of files, or ""."""
        if self.bytes_per_second is not None:
            return f": {bytes_text(self.bytes_per_second)}/s leave {self.count} of them"
        return "" if self.count is None else f", and {self.count} wait for each other"

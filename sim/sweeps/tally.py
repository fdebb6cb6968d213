"""A short text about the progress of a sweep."""

from __future__ import annotations

import time

from sim.cells.cell import Row


class RowTally:
    """Counts of rows as they come: failed ones, their rate, the slowest."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._done = self._failed = 0
        self._slowest: tuple[float, str] = (0.0, "")

    def seen(self, row: Row) -> None:
        self._done += 1
        self._failed += row["status"] != "ok"
        self._slowest = max(self._slowest, (row.get("wall_s") or 0.0, row["cell"]))

    def text(self) -> str:
        """``3 failed, 2.4/s, slowest 7.1 s (1f00...)``; empty before the first row."""
        if not self._done:
            return ""
        rate = self._done / max(time.monotonic() - self._begun, 1e-9)
        parts = [f"{self._failed} failed"] if self._failed else []
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        if self._slowest[1]:
            parts.append(f"slowest {self._slowest[0]:.1f} s ({self._slowest[1][:8]})")
        return ", ".join(parts)

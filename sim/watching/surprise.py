"""When checkpoints have left a forecast: Page's test (Biometrika 41, 1954), checkpoint by checkpoint.

A forecast allows a share of checkpoints on the wrong side of a line: a tenth beyond p90, half beyond p50.  Each checkpoint multiplies the
likelihood ratio of "far more of them are" against "as many as allowed".  It never falls below 1, where the count begins again: that place
is the estimate of when the change began.  A ratio of `ONE_IN` is a false alarm once in as many checkpoints on average (Lorden 1971).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

ONE_IN = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and the shares of checkpoints beyond it: `allowed` by the forecast, and `suspected`."""

    name: str
    allowed: float
    suspected: float

    def weight(self, *, beyond: bool) -> float:
        """The logarithm of the likelihood ratio of one checkpoint."""
        if beyond:
            return math.log(self.suspected / self.allowed)
        return math.log((1 - self.suspected) / (1 - self.allowed))


TAIL = Line("longer than p90", 0.1, 0.8)
UPPER = Line("longer than p50", 0.5, 0.95)
LOWER = Line("shorter than p50", 0.5, 0.95)
RETURN = Line("within again", 0.2, 0.8)
"""The line of checkpoints that have left: as many are within by chance, and by then."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """The evidence against a line so far."""

    log_ratio: float = 0.0
    count: int = 0  # checkpoints since it last began
    beyond: int = 0  # of these
    since_ms: int = 0  # the trigger of the first of them

    def after(self, line: Line, at_ms: int, *, beyond: bool) -> Surprise:
        """The evidence with one more checkpoint."""
        ratio = self.log_ratio + line.weight(beyond=beyond)
        if ratio <= 0:
            return Surprise()
        first = not self.count
        return replace(self, log_ratio=ratio, count=self.count + 1, beyond=self.beyond + beyond, since_ms=at_ms if first else self.since_ms)

    @property
    def is_sure(self) -> bool:
        return self.log_ratio >= math.log(ONE_IN)

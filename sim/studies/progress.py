"""Progress of long work, remaining time, and the signals that end a command.  Imports nothing heavy: `--help` loads it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a command: Ctrl-C, termination by a supervisor, a closed terminal."""


Progress = Callable[[int], None]
"""Called with the simulated time [ns]."""
Watch = Callable[[int, int], None]
"""Called with (number of finished items, simulated time of all items [ns])."""


def no_watch(finished: int, simulated_ns: int) -> None:
    """Ignore progress."""


# ---- The remaining time of long work, which is printed repeatedly.

Clock = Callable[[], float]
"""Returns monotonic time in seconds."""
LATE_SHARE = 0.1
"""Estimates may exceed the printed time by this share before it is corrected, since later work may make up for it."""


class TimeLeft:
    """Texts on the remaining time, which decreases; a later end than printed before is explained."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end_s: float | None = None  # the end that was printed last

    def text(self, estimate_s: float, why: Callable[[], str]) -> str:
        """Return ``at most 40 s left``; if the end is later than printed before, add by how much and `why`."""
        now_s = self._clock()
        promised_s = None if self._end_s is None else max(self._end_s - now_s, 0.0)
        if promised_s is None or estimate_s <= promised_s:
            self._end_s = now_s + estimate_s
            return left_text(estimate_s)
        if estimate_s <= promised_s * (1 + LATE_SHARE):
            return left_text(promised_s)
        self._end_s = now_s + estimate_s
        if round(estimate_s) <= round(promised_s):
            return left_text(estimate_s)
        return f"{left_text(estimate_s)}, {_seconds(estimate_s - promised_s)} more than promised: {why()}"


def left_text(seconds: float) -> str:
    """Return ``at most 2 min 5 s left``, or that it is less than a second."""
    return f"at most {_seconds(seconds)} left" if round(seconds) else "less than a second left"


def _seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

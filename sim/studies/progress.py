"""Progress of long work: watches, the time left, the signals that end a command.  It imports nothing heavy: `--help` loads it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, the request of a supervisor, a closed terminal."""


Progress = Callable[[int], None]
"""Called with the simulated time [ns]."""
Watch = Callable[[int, int], None]
"""Called with (number of finished items, simulated time of all items [ns])."""


def no_watch(finished: int, simulated_ns: int) -> None:
    """A watch without a display."""


# ---- How long work takes at most, as a line says it again and again: a promise that is kept, or broken with the reason.

Clock = Callable[[], float]
"""Seconds since some moment, never backwards."""
LATE_SHARE = 0.1
"""An estimate that is longer than the promise by a smaller share changes nothing: the rest of the work may make up for it."""


class TimeLeft:
    """The time left that is printed never grows by more than a tenth of what it was, unless the line says why."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._end_s: float | None = None  # promised

    def text(self, estimate_s: float, why: Callable[[], str]) -> str:
        """``at most 40 s left``, and ``, 30 s more than promised: <why>`` if the estimate breaks the last promise."""
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
    """``at most 2 min 5 s left``."""
    return f"at most {_seconds(seconds)} left"


def _seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

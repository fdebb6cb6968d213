"""Ctrl-C, SIGTERM and SIGHUP end a command alike: work stops, what is kept is said, the exit code is 128 + the signal's number."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from types import FrameType

from sim.cells.ending import ENDING

__all__ = ["exit_code", "is_told", "listen", "mark_told", "stopped_by"]

PATIENCE_S = 10.0
"""Stopping work takes a moment.  Whoever asks again later wants the end at any price."""

RETRY_S = 0.05
"""Until a signal that met an import is raised again."""

_first: tuple[int, float] | None = None  # signal and time [s] of the one that ends this command
_told = False


def listen() -> None:
    """From now on.  Signals that are ignored, as under `nohup`, stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def stopped_by() -> int | None:
    """The signal that ends this command."""
    return None if _first is None else _first[0]


def exit_code() -> int:
    """As shells count it."""
    return 128 + (stopped_by() or signal.SIGINT)


def mark_told() -> None:
    """What is kept was said: a signal on the way out would only change the exit code."""
    global _told  # noqa: PLW0603
    _told = True
    if _first is not None:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)


def is_told() -> bool:
    return _told


def _stop(number: int, frame: FrameType | None) -> None:
    """The first signal stops the work.  Later ones change nothing, so that the sentence about what is kept is said."""
    global _first  # noqa: PLW0603 - a signal handler has nowhere else to write
    if _first is None and _imports(frame):  # an exception there is lost in callbacks, or becomes another one
        again = threading.Timer(RETRY_S, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
    elif _first is None:
        _first = (number, time.monotonic())
        raise KeyboardInterrupt
    elif time.monotonic() - _first[1] > PATIENCE_S:
        with suppress(OSError):
            os.write(2, b"interrupted: ended at once; what was kept before stays\n")
        os._exit(128 + number)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being loaded."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

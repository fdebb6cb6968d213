"""Ctrl-C, SIGTERM and SIGHUP end a command alike: work stops, what is kept is said, the exit code is 128 + the signal's number.

A handler stops the work by an exception, and some callers swallow exceptions: finalisers, callbacks at a fork, a library's `except:`.
So a timer looks whether the work is really being stopped, and interrupts it again if it is not.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

from sim.cells.ending import ENDING

PATIENCE_S = 10.0
"""Stopping work takes a moment.  A signal after this time ends the command at once."""

AGAIN_S = 0.05
"""Between two looks whether the work is being stopped."""

_first: tuple[int, float] | None = None  # signal and time [s] of the one that ends this command
_raised: KeyboardInterrupt | None = None  # the last one
_reported = False


def listen() -> None:
    """Handle signals from now on.  Signals that are ignored, as under `nohup`, stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    signal.signal(signal.SIGALRM, _look_again)
    sys.unraisablehook = _silent_if_ours


def stopped_by() -> int | None:
    """The signal that ends this command."""
    return None if _first is None else _first[0]


def exit_code() -> int:
    """The exit code of a command that a signal ended, as shells count it."""
    return 128 + (stopped_by() or signal.SIGINT)


def mark_reported() -> None:
    """What is kept was said: a signal on the way out would only change the exit code."""
    global _reported  # noqa: PLW0603
    _reported = True
    if _first is not None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        # CPython kills a process at its end if a KeyboardInterrupt left the `exec` of a text, though caught; another text resets that
        exec("")  # noqa: S102


def is_reported() -> bool:
    return _reported


def _stop(number: int, frame: FrameType | None) -> None:
    """The first signal stops the work.  Later ones change nothing, so that the sentence about what is kept is said."""
    global _first  # noqa: PLW0603 - a signal handler has nowhere else to write
    if _first is None:
        _first = (number, time.monotonic())
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
        _interrupt(number, frame)
    elif time.monotonic() - _first[1] > PATIENCE_S:
        with suppress(OSError):
            os.write(2, b"interrupted: ended at once; what was kept before stays\n")
        os._exit(128 + number)


def _look_again(_number: int, frame: FrameType | None) -> None:
    if _first is not None and not _unwinds():
        _interrupt(_first[0], frame)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not while signals are held back or a module is being loaded: there it would become another error."""
    global _raised  # noqa: PLW0603
    deferred = signal.getsignal(number) is not _stop or number in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if not _reported and not deferred and not _imports(frame):
        _raised = KeyboardInterrupt()
        raise _raised


def _unwinds() -> bool:
    """Whether the interrupted code runs because of the exception: its `except` and `finally` blocks, also of what followed from it."""
    error = sys.exc_info()[1]
    while error is not None and error is not _raised:
        error = error.__context__
    return error is not None


def _silent_if_ours(lost: sys.UnraisableHookArgs) -> None:
    """Silence the report of an exception of ours that was swallowed: it is raised again."""
    if lost.exc_value is None or lost.exc_value is not _raised:
        sys.__unraisablehook__(lost)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being loaded."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

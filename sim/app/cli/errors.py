"""Exit codes: errors become one message each, signals stop the work cleanly."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType

import typer

from sim.app.cli.terminal import fitted
from sim.app.verbs.common import OptionError
from sim.app.verbs.options import flag_of
from sim.model.text import PrintableError, printable
from sim.studies.progress import ENDING

# ---- Ctrl-C, SIGTERM and SIGHUP are handled alike: work stops, a message says what is kept, and the exit code is 128 + the
# signal's number.
#
# The handler stops the work by raising KeyboardInterrupt. Some code swallows exceptions: finalizers, fork callbacks, a
# library's bare `except:`. A timer therefore checks whether the exception is still propagating, and raises it again if not.

PATIENCE_S = 10.0
"""A second signal after this time ends the process at once."""

AGAIN_S = 0.05
"""Interval between two checks whether the exception is still propagating."""

_first: tuple[int, float] | None = None  # number and time [s] of the first signal
_raised: KeyboardInterrupt | None = None  # the exception that was raised last
_reported = False


def listen() -> None:
    """Install the signal handlers.  Signals that are ignored, as under `nohup`, stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    signal.signal(signal.SIGALRM, _look_again)
    sys.unraisablehook = _silent_if_ours


def stopped_by() -> int | None:
    """Return the number of the signal that stops this command, or None."""
    return None if _first is None else _first[0]


def exit_code() -> int:
    """Return the exit code of a command stopped by a signal: 128 + its number, as in shells."""
    return 128 + (stopped_by() or signal.SIGINT)


def mark_reported() -> None:
    """Ignore signals from now on: the message about the interruption was printed, and only the exit code is missing."""
    global _reported
    _reported = True
    if _first is not None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        # If a KeyboardInterrupt has left exec(text), CPython kills the process at its end by SIGINT, even if the exception
        # was caught. Another exec clears that flag.
        exec("")


def is_reported() -> bool:
    return _reported


def _stop(number: int, frame: FrameType | None) -> None:
    """Handle a signal.  The first one stops the work; later ones are ignored for PATIENCE_S, so that the message is printed."""
    global _first
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
    """Raise KeyboardInterrupt.

    While the signal is blocked or a module is being imported, do nothing: there the exception would become another error.
    The timer tries again.
    """
    global _raised
    deferred = signal.getsignal(number) is not _stop or number in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if not _reported and not deferred and not _imports(frame):
        _raised = KeyboardInterrupt()
        raise _raised


def _unwinds() -> bool:
    """Return True if the interrupted code is handling `_raised`: in an `except` or `finally` block, or handling a later error."""
    error = sys.exc_info()[1]
    while error is not None and error is not _raised:
        error = error.__context__
    return error is not None


def _silent_if_ours(lost: sys.UnraisableHookArgs) -> None:
    """Suppress the report of a swallowed `_raised`: the timer raises it again."""
    if lost.exc_value is None or lost.exc_value is not _raised:
        sys.__unraisablehook__(lost)


def _imports(frame: FrameType | None) -> bool:
    """Return True if a module is being imported in this frame or a caller's."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


# ---- Errors that a user can correct have an `exit_code`, and are one line on stderr. A traceback means a defect of ckptsim.


class Code(IntEnum):
    """The exit codes of the command."""

    FINE = 0
    EXPECTATION_FAILED = 1
    VIOLATED = 1  # a run broke what checkpoints promise
    USAGE = 2
    INVALID_INPUT = 3
    CELLS_FAILED = 4  # or could not be kept
    MISSING_DEPENDENCY = 5
    OUR_MISTAKE = 70  # sysexits' EX_SOFTWARE: never mistaken for a failed expectation


class UserError(PrintableError):
    """An error that the user can correct, with its exit code."""

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.exit_code = code


def print_message(message: str) -> None:
    """Print a message on stderr.  On a terminal, wrap it between words."""
    print(fitted(printable(message), sys.stderr), file=sys.stderr, flush=True)


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Context of every verb: print errors as messages and raise typer.Exit with the exit code."""
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except BrokenPipeError:  # the reader, as in `ckptsim ... | head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Code.FINE) from None
    except KeyboardInterrupt as stopped:
        interrupted(str(stopped))
        raise typer.Exit(exit_code()) from None
    except Exception as error:  # noqa: BLE001 - outermost handler
        if stopped_by() is not None:  # the terminal was closed, or workers received the same signal
            interrupted()
            raise typer.Exit(exit_code()) from None
        mended = _mendable(error)
        if mended is None:
            import traceback

            print_message(traceback.format_exc().rstrip())
            raise typer.Exit(Code.OUR_MISTAKE) from None
        print_message(mended[0])
        raise typer.Exit(mended[1]) from None


def interrupted(kept: str = "") -> None:
    """Print that the command was interrupted, and what is kept.  After SIGHUP the terminal may be closed."""
    try:
        print_message(f"interrupted{f': {kept}' if kept else ''}")
        sys.stdout.flush()
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    mark_reported()


def _mendable(error: Exception) -> tuple[str, Code] | None:
    """Return (message, exit code) of an error that the user can correct, or None for a defect of ckptsim."""
    if (code := getattr(error, "exit_code", None)) is not None:
        return str(error), Code(code)
    match error:
        case OptionError():
            return f"{flag_of(error.option)}: {error.reason}", Code.USAGE
        case OSError() if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}:
            return f"cannot keep results: {_place(error)}{error.strerror}", Code.CELLS_FAILED
        case OSError() if error.strerror:
            return f"{_place(error)}{error.strerror}", Code.INVALID_INPUT
        case _:
            return None


def _place(error: OSError) -> str:
    return f"{error.filename}: " if error.filename else ""

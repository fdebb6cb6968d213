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
# The handler stops the work by raising KeyboardInterrupt, as Python does for Ctrl-C. Code that swallows exceptions (finalizers, a
# library's bare `except:`) may lose it; then a second signal, after PATIENCE_S, ends the process.

PATIENCE_S = 10.0
"""A second signal after this time ends the process at once."""

_first: tuple[int, float] | None = None  # number and time [s] of the first signal
_reported = False


def listen() -> None:
    """Install the signal handlers.  Signals that are ignored, as under `nohup`, stay ignored."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


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
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        # If a KeyboardInterrupt has left exec(text), CPython kills the process at its end by SIGINT, even if the exception
        # was caught. Another exec clears that flag.
        exec("")


def is_reported() -> bool:
    return _reported


def _stop(number: int, _: FrameType | None) -> None:
    """Handle a signal.  The first one stops the work; later ones are ignored for PATIENCE_S, so that the message is printed."""
    global _first
    if _first is None:
        _first = (number, time.monotonic())
        if not _reported:
            raise KeyboardInterrupt
    elif time.monotonic() - _first[1] > PATIENCE_S:
        with suppress(OSError):
            os.write(2, b"interrupted: ended at once; what was kept before stays\n")
        os._exit(128 + number)


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

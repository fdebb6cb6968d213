"""Errors and signals: one message, an exit code."""

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
from sim.app.verbs.common import OptionError, Stopped
from sim.app.verbs.options import flag_of
from sim.model.text import PrintableError, printable
from sim.studies.progress import ENDING

# ---- Ctrl-C, SIGTERM and SIGHUP end a command alike: work stops, what is kept is said, the exit code is 128 + the signal's number.
#
# A handler stops the work by an exception, and some callers swallow exceptions: finalisers, callbacks at a fork, a
# library's `except:`. So a timer looks whether the work is really being stopped, and interrupts it again if it is not.

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
    global _reported
    _reported = True
    if _first is not None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        # CPython kills a process at its end if a KeyboardInterrupt left the `exec` of a text, though caught; another text resets that
        exec("")


def is_reported() -> bool:
    return _reported


def _stop(number: int, frame: FrameType | None) -> None:
    """The first signal stops the work.  Later ones change nothing, so that the sentence about what is kept is said."""
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
    """Raise KeyboardInterrupt, but not while signals are held back or a module is being loaded: there it would become another error."""
    global _raised
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


# ---- Errors and exit codes: an error that a user can mend is one line on stderr; a traceback means a mistake of ours.

EXIT_CODES = {
    "sim.model.files.FolderInUseError": 2,
    "sim.model.schema.text.ScenarioError": 3,
    "sim.studies.run_folder.FolderError": 3,
    "sim.explain.explanation.NoCheckpointError": 2,
    "sim.model.schema.reference.UnknownKeyError": 2,
    "sim.jobs.source.recorded_job.RecordingError": 3,
    "sim.jobs.history.history.MissingCheckpointError": 2,
    "sim.studies.expectations.ExpectationError": 3,
    "sim.studies.traces.choices.ChoiceError": 2,
    "sim.studies.traces.parsing.TraceFileError": 3,
    "sim.jobs.watch.memory.MemoryFileError": 3,
    "sim.studies.local.WorkerDiedError": 4,
    "sim.studies.sweeps.run.TooManyFailuresError": 4,
    "sim.model.files.NotKeptError": 4,
    "sim.advice.trials.NothingRanError": 4,
    "sim.studies.sweeps.spark_rows.ClusterError": 4,
    "sim.studies.sweeps.spark_masters.MasterError": 2,
    "sim.studies.sweeps.spark_masters.MissingDependencyError": 5,
}
"""Class of an error whose message a user understands -> exit code.  Names, as importing all of them takes long."""


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
    """An error that the user can mend, with its exit code."""

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.code = code


def print_message(message: str) -> None:
    """Print a message on stderr.  On a terminal no word is broken."""
    print(fitted(printable(message), sys.stderr), file=sys.stderr, flush=True)


@contextmanager
def speaking() -> Iterator[None]:
    """The context of every verb: it turns errors into messages and exit codes."""
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except BrokenPipeError:  # `ckptsim ... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Code.FINE) from None
    except KeyboardInterrupt as stopped:
        interrupted(str(stopped))
        raise typer.Exit(exit_code()) from None
    except Exception as error:  # noqa: BLE001 - the last door
        if stopped_by() is not None:  # the terminal is gone, or workers met the same signal
            interrupted()
            raise typer.Exit(exit_code()) from None
        mended = _mendable(error)
        if mended is None:
            import traceback

            print_message(traceback.format_exc().rstrip())
            raise typer.Exit(Code.OUR_MISTAKE) from None
        print_message(mended[0])
        raise typer.Exit(mended[1]) from None


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """The context of work that can be interrupted.  `kept`: the sentence about results that stay."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(kept) from None


def interrupted(kept: str = "") -> None:
    """Report what is kept of the work.  After SIGHUP the terminal may be gone."""
    try:
        print_message(f"interrupted{f': {kept}' if kept else ''}")
        sys.stdout.flush()
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    mark_reported()


def _mendable(error: Exception) -> tuple[str, Code] | None:
    """(message, exit code) of an error that a user can mend; None: a mistake of ours."""
    named = next(
        (code for kind in type(error).__mro__ if (code := EXIT_CODES.get(f"{kind.__module__}.{kind.__name__}"))), None
    )
    if named is not None:
        return str(error), Code(named)
    match error:
        case UserError():
            return str(error), error.code
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

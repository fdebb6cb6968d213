"""Errors and exit codes: an error that a user can mend is one line on stderr; a traceback means a mistake of ours."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from sim.cli.console.stopping import exit_code, mark_reported, stopped_by
from sim.cli.console.terminal import fitted
from sim.foreign import Readable, printable
from sim.verbs.listener import Stopped
from sim.verbs.options import OptionError

NAMED = {
    "sim.folder_lock.FolderInUseError": 2,
    "sim.scenario.text.problems.ScenarioError": 3,
    "sim.explain.runs.FolderError": 3,
    "sim.explain.choice.NoCheckpointError": 2,
    "sim.scenario.reference.UnknownKeyError": 2,
    "sim.recordings.source.files.RecordingError": 3,
    "sim.history.choice.MissingCheckpointError": 2,
    "sim.comparison.expect.ExpectationError": 3,
    "sim.traces.choices.ChoiceError": 2,
    "sim.traces.lines.TraceFileError": 3,
    "sim.watching.memory.MemoryFileError": 3,
    "sim.cells.local.WorkerDiedError": 4,
    "sim.sweeps.runners.TooManyFailuresError": 4,
    "sim.whole_file.NotKeptError": 4,
    "sim.advice.running.bounds.NothingRanError": 4,
    "sim.sweeps.spark.rows.ClusterError": 4,
    "sim.sweeps.spark.masters.MasterError": 2,
    "sim.sweeps.spark.java.MissingDependencyError": 5,
}
"""Class of an error whose message a user understands -> exit code.  Names, as importing all of them takes long."""
OPTIONS = {
    "folder": "--out",
    "duration": "--for",
    "begin": "--from",
    "end": "--to",
    "changes": "--set",
    "headers": "--header",
    "sources": "SOURCE",
}
"""Option in Python -> its name on the command line, where that differs."""


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


class UserError(Readable):
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
    named = next((code for kind in type(error).__mro__ if (code := NAMED.get(f"{kind.__module__}.{kind.__name__}"))), None)
    if named is not None:
        return str(error), Code(named)
    match error:
        case UserError():
            return str(error), error.code
        case OptionError():
            option = OPTIONS.get(error.option, f"--{error.option.replace('_', '-')}")
            return f"{option}: {error.reason}", Code.USAGE
        case OSError() if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}:
            return f"cannot keep results: {_place(error)}{error.strerror}", Code.CELLS_FAILED
        case OSError() if error.strerror:
            return f"{_place(error)}{error.strerror}", Code.INVALID_INPUT
        case _:
            return None


def _place(error: OSError) -> str:
    return f"{error.filename}: " if error.filename else ""

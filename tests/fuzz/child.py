"""One command in a child of its own: what it prints, how it ends, what it costs."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import resource
import signal
import sys
import traceback
from typing import NamedTuple

PATIENCE_S = 6
"""CPU time after which a child is interrupted: it simulates for longer than it is given."""
CPU_LIMIT_S = 60
"""The kernel ends a child that takes more."""


class Ended(NamedTuple):
    code: int  # exit code; -N: ended by signal N
    output: str  # stdout and stderr
    cpu_s: float
    peak_mb: float  # resident, with what the parent had loaded


def preload():
    """Import the whole program and load the kernel, once, so that no child has to."""
    import matplotlib.pyplot  # noqa: F401, ICN001

    import sim
    from sim.plane import warm

    for module in pkgutil.walk_packages(sim.__path__, "sim."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # what needs an extra that is not installed
                importlib.import_module(module.name)
    warm()


def run(arguments, folder):
    """Fork, run the command line in `folder`, wait."""
    log = folder / "output.txt"
    child = os.fork()
    if child == 0:
        _run(arguments, folder, log)
    _, status, usage = os.wait4(child, 0)
    output = log.read_text(errors="replace") if log.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status), output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _run(arguments, folder, log):
    """In the child; never returns."""
    code = 70
    try:
        signal.signal(signal.SIGXCPU, _interrupt)
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_S, CPU_LIMIT_S))
        os.setsid()
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with log.open("wb") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        os.close(0)
        os.open(os.devnull, os.O_RDONLY)
        sys.stdout, sys.stderr = (
            os.fdopen(1, "w", buffering=1, errors="replace"),
            os.fdopen(2, "w", buffering=1, errors="replace"),
        )
        code = _call(arguments)
    except BaseException:  # noqa: BLE001 - a traceback is what is looked for
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _call(arguments):
    """The exit code, as a shell sees it."""
    from benchmarks.lab.__main__ import app
    from sim.app.cli import main

    sys.argv = ["ckptsim", *arguments]
    try:
        main(app)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _interrupt(number, _frame):
    """One interrupt, as Ctrl-C sends; the kernel repeats its signal every second."""
    signal.signal(number, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGINT)

"""One command in a child of its own: what it prints, how it ends, what it costs."""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

CPU_LIMIT_S = 60
"""The kernel ends a child that takes more."""


class Ended(NamedTuple):
    code: int  # exit code; -N: ended by signal N
    output: str  # stdout and stderr
    cpu_s: float
    peak_mb: float  # resident, with what the parent had loaded
    interrupted: bool  # it simulated for longer than it was given, and was asked to stop


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


def run(arguments, folder, patience_s=6):
    """Fork, run the command line in `folder`, wait.  After `patience_s` of processor time it gets one interrupt, as Ctrl-C sends."""
    log = folder / "output.txt"
    child = os.fork()
    if child == 0:
        _run(arguments, folder, log)
    interrupted = False
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if not interrupted and _cpu_s(child) > patience_s:
            os.kill(child, signal.SIGINT)
            interrupted = True
        time.sleep(0.01)
    cpu_s = usage.ru_utime + usage.ru_stime
    output = log.read_text(errors="replace") if log.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status), output, cpu_s, usage.ru_maxrss / 1024, interrupted)


def _run(arguments, folder, log):
    """In the child; never returns."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
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


def _cpu_s(child):
    """CPU seconds of a running child."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

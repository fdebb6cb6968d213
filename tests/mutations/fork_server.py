"""Runs tests in forks of a process that has the libraries loaded, and nothing of the package: their imports cost more than most tests."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from _pytest.config import default_plugins

PLUGINS = (
    *(f"_pytest.{name}" for name in default_plugins),
    "_hypothesis_pytestplugin",
    "xdist.plugin",
    "xdist.looponfail",
)
LIBRARIES = (
    *PLUGINS,
    "hypothesis",
    "http.server",
    "numpy",
    "pandas",
    "pdb",
    "pydantic",
    "ruamel.yaml",
    "simpy",
    "llvmlite.binding",
)
MEMORY = 3 << 30  # more than the server has; a broken loop may ask for all there is
EXPIRED = 124
"""Exit code of tests that took longer than the limit, as the command `timeout` has it."""


class Request(NamedTuple):
    """Tests of a copy of the repository."""

    folder: str
    arguments: list[str]  # of pytest
    limit_s: float


class Answer(NamedTuple):
    code: int
    """Exit code of pytest."""
    cpu_s: float


def answer(request):
    """Run the tests in a child."""
    before = _children_s()
    child = os.fork()
    if child == 0:
        _run(request)
    end = time.monotonic() + request.limit_s
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return Answer(os.waitstatus_to_exitcode(status), _children_s() - before)
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Answer(EXPIRED, _children_s() - before)
        time.sleep(0.01)


def _run(request):
    """What the child does; it never returns."""
    code = 1
    try:
        import pytest

        os.setpgid(0, 0)
        if (statm := Path("/proc/self/statm")).exists():
            size = int(statm.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
        os.chdir(request.folder)
        os.environ["PYTHONPATH"] = request.folder
        sys.path.insert(0, request.folder)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        code = int(pytest.main(request.arguments))
    finally:
        os._exit(code)


def _children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    """Requests and answers are lines of JSON."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(Request(*json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

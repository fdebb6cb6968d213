"""Tries changes one after the other: a fork of a process that has imported everything makes the change and runs the tests that reach it.

A change within a function replaces that function's code.  One that takes effect at import has the package and the tests
imported again.  A child that takes far longer than the tests did is ended: the change is noticed by the clock.  A
failure counts only where a control passes: another child runs the same tests in the same way without the change.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import mmap
import os
import resource
import signal
import sys
import time
import warnings
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest

from tests.mutations.changes import ROOT, Mutant, changed_tree

KILLED, SURVIVED, BY_THE_CLOCK, NOT_REACHED = "killed", "survived", "by the clock", "no test reaches it"
NO_CONTROL = "its tests fail without it as well"
LIVED, FELL = 0, 1  # exit codes of a child
SLOWER, AT_LEAST_S = 10, 3  # a test may take this much longer than it did, and this long
WALL_S = 240  # a child waits for nothing longer than this
MEMORY = 3 << 30  # more than the parent has
# a test of another package is asked as late as one that takes this much longer, a test of the file so much earlier
FAR = 10
PLUGINS = ("cacheprovider", "terminal", "xdist", "faulthandler")  # that a child can do without
OPTIONS = ["-x", "-s", "-m", "not slow", "-o", "addopts=--import-mode=importlib", "--rootdir", str(ROOT)]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is there before
OPTIONS += ["-W", "ignore::pytest.PytestUnknownMarkWarning"]  # the marks of xdist, which is left out
OPTIONS += [word for name in PLUGINS for word in ("-p", f"no:{name}")]


class Trial(NamedTuple):
    mutant: Mutant
    verdict: str
    test: str  # that noticed
    seconds: float

    @property
    def noticed(self):
        return self.verdict in {KILLED, BY_THE_CLOCK}


class TrialRequest(NamedTuple):
    mutant: Mutant
    tests: list[str]  # in this order
    at_import: bool  # it takes effect when its module is imported


def try_all(requests, receive, seconds):
    """In the order given.  `seconds`: how long a test took."""
    names = sorted({name for request in requests for name in request.tests})
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    files = sorted({str(ROOT / name.partition("::")[0]) for name in names})
    server = Server(requests, receive, seconds)
    code = pytest.main([*OPTIONS, *(file for file in files if Path(file).exists())], plugins=[server])
    if server.trials < len(requests):
        raise SystemExit(
            f"{server.trials} of {len(requests)} changes were tried: pytest ended with {code!r}.  Do all tests collect?"
        )


def asked_about(mutant, touched, budget_s):
    """The tests that reach it, the nearest and quickest first, as many as take so long together."""
    package = mutant.file.split("/")[1]
    own = f"tests/{package}/test_{Path(mutant.file).stem}.py::"

    def rank(name):
        far = 1 / FAR if name.startswith(own) else 1 if name.startswith((f"tests/{package}/", "tests/laws/")) else FAR
        return touched.seconds[name] * far, name

    chosen, total = [], 0.0
    for name in sorted(touched.tests_of(mutant), key=rank):
        total += touched.seconds[name]
        if total > budget_s and chosen:
            break
        chosen.append(name)
    return TrialRequest(mutant, chosen, touched.runs_at_import(mutant))


Functions = dict[tuple[str, str, int], list[FunctionType]]


class Watch:
    """A plugin of a child: says which test runs and gives it its time."""

    def __init__(self, seconds, board):
        self.board = board
        self.failed = False
        self.slowest = {}  # test of a file: another one may have to bring a shared fixture about
        for test, took in seconds.items():
            file = test.partition("::")[0]
            self.slowest[file] = max(took, self.slowest.get(file, 0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        self.board.seek(0)
        self.board.write(nodeid.encode()[:4000].ljust(4000, b"\0"))
        signal.setitimer(
            signal.ITIMER_VIRTUAL, max(AT_LEAST_S, SLOWER * self.slowest.get(nodeid.partition("::")[0], 0))
        )

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed


class Outcome(NamedTuple):
    """What became of a child."""

    verdict: str
    test: str  # that was running when it failed; empty where none was


class Server:
    """A plugin of pytest that forks instead of running tests."""

    def __init__(self, requests, receive, seconds):
        self.requests, self.receive, self.seconds = requests, receive, seconds
        self.board = mmap.mmap(-1, 4000)
        self.watch = Watch(seconds, self.board)
        self.trials = 0
        self.controls = {}
        # tests without a change, with what is there and imported again
        self.failing = {False: set(), True: set()}

    def pytest_runtestloop(self, session):
        from sim.plane import warm  # after the tests: pytest wants to rewrite what they import

        if session.testsfailed:
            raise session.Interrupted("some tests cannot be collected")
        session.config.pluginmanager.register(self.watch)
        items = {item.nodeid: item for item in session.items}
        functions = functions_by_place()
        warm()  # else every child would compile the kernel, and be ended by the clock
        gc.collect()
        gc.freeze()
        for request in self.requests:
            self.receive(self.try_one(request, [items[name] for name in request.tests if name in items], functions))
            self.trials += 1
        return True

    def try_one(self, request, items, functions):
        """Until the tests let the change live, or one of them fails that passes without it."""
        mutant = request.mutant
        if not items:
            return Trial(mutant, NOT_REACHED, "", 0)
        begun = time.monotonic()
        replacement = None if request.at_import else replacement_of(mutant, functions)
        changed = partial(replaced, replacement) if replacement else partial(found_changed, mutant)
        outcome = Outcome(NO_CONTROL, "")
        again = replacement is None
        while healthy := [item for item in items if item.nodeid not in self.failing[again]]:
            outcome = self.child(changed, healthy, again=again)
            if outcome.verdict == SURVIVED:
                break
            control = self.control(healthy, outcome.test, again=again)
            if control.verdict == SURVIVED:
                break
            outcome = Outcome(NO_CONTROL, control.test)
            if not control.test:
                break  # nothing can be said: the tests do not even begin
            self.failing[again].add(control.test)
        return Trial(mutant, *outcome, round(time.monotonic() - begun, 2))

    def control(self, items, failed, *, again):
        """What becomes of the same tests without the change: up to the one that failed, or all where collecting them again orders them."""
        names = [item.nodeid for item in items]
        count = names.index(failed) + 1 if failed in names and not again else len(names)
        key = again, tuple(names[:count])
        if key not in self.controls:
            self.controls[key] = self.child(unchanged, items[:count], again=again)
        return self.controls[key]

    def child(self, change, items, *, again):
        """The outcome in a fork that makes the change, then runs the tests, or imports everything and collects them again."""
        self.board.seek(0)
        self.board.write(bytes(4000))
        child = os.fork()
        if child == 0:
            code = FELL
            try:
                os.setpgid(0, 0)
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(WALL_S)
                size = (
                    int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                    if Path("/proc").exists()
                    else 0
                )
                resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
                code = FELL if self.noticed(change, items, again=again) else LIVED
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        ended_by_signal = os.WIFSIGNALED(status)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests started
        verdict = BY_THE_CLOCK if ended_by_signal else KILLED if os.WEXITSTATUS(status) == FELL else SURVIVED
        return Outcome(verdict, bytes(self.board[:]).rstrip(b"\0").decode() if verdict != SURVIVED else "")

    def noticed(self, change, items, *, again):
        """In the child."""
        change()
        if again:
            return imported_again([item.nodeid for item in items], Watch(self.seconds, self.board))
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.watch.failed:
                return True
        return False


def unchanged():
    """The change of a control."""


def functions_by_place():
    """(file, qualified name, first line) -> the functions of the package, wherever they are kept."""
    gc.unfreeze()  # what was collected is frozen (tests/conftest.py), and no frozen object is listed
    found = {}
    places = tuple(str(ROOT / place) for place in ("sim", "tests/oracle"))
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and (code := function.__code__).co_filename.startswith(places):
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(function)
    return found


def compiled(mutant):
    path = ROOT / mutant.file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(changed_tree(path, mutant.number), str(path), "exec", dont_inherit=True)


class Replacement(NamedTuple):
    functions: list[FunctionType]
    code: CodeType


def replacement_of(mutant, functions):
    """The changed code of a function, where it could be given to what is there."""
    inside = [
        code
        for code in codes_of(compiled(mutant))
        if code.co_qualname == mutant.where and code.co_firstlineno <= mutant.line
    ]
    code = max(inside, key=lambda code: code.co_firstlineno)  # a setter follows its property
    present = functions.get((code.co_filename, code.co_qualname, code.co_firstlineno), [])
    fits = all(len(function.__code__.co_freevars) == len(code.co_freevars) for function in present)
    return Replacement(present, code) if present and fits else None


def replaced(replacement):
    for function in replacement.functions:
        function.__code__ = replacement.code


def codes_of(code):
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_of(constant)


def found_changed(mutant):
    """By the next import of its module."""
    sys.meta_path.insert(0, Changed(mutant))


def imported_again(names, watch):
    for name in list(sys.modules):
        if name.partition(".")[0] in {"sim", "tests", "conftest"} and not name.startswith("tests.mutations"):
            del sys.modules[name]
    code = pytest.main([*OPTIONS, *map(node_id, names)], plugins=[watch])
    return code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def node_id(name):
    """The test on a command line.  A path would fold the // of a parameter."""
    return f"{ROOT}/{name}"


class Changed(MetaPathFinder):
    """Finds the changed module in place of the real one."""

    def __init__(self, mutant):
        self.mutant = mutant
        self.module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        file = ROOT / self.mutant.file
        places = [str(file.parent)] if file.name == "__init__.py" else None
        loader = ChangedLoader(name, str(file), self.mutant)
        return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=places)


class ChangedLoader(SourceFileLoader):
    def __init__(self, name, path, mutant):
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, fullname):
        return compiled(self.mutant)

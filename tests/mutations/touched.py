"""Which tests run which lines, and how long they take: recorded with coverage, kept in a folder that git ignores.

A file of tests is recorded again when its text changes; the others stay.

Lines count from the first one of their function, so that a recording outlives what moves.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from tests.mutations.changes import ROOT, text_of

PACKAGES = tuple(sorted({path.parent.name for path in (ROOT / "sim").glob("*/__init__.py")} - {"examples"}))
"""Of `sim`."""
PARTS = tuple(
    sorted(
        f"{package}/{path.name}"
        for package in PACKAGES
        for path in (ROOT / "tests" / package).glob("*/")
        if (ROOT / "sim" / package / path.name).is_dir()
    )
)
"""Folders of packages that have tests of their own."""
_FOLDERS = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
JUDGES = tuple(sorted(_FOLDERS - {"live", "mutations"}))
"""The folders whose tests are asked.  Those of `live` need a real Flink."""
KEPT = ROOT / ".mutants"
AT_IMPORT = "import"
QUICK_S = 0.05


class Function(NamedTuple):
    first: int
    last: int
    text: str  # a digest


class Ran(NamedTuple):
    """What a recording knows of a function."""

    texts: set[str]  # as it stood when the folders were recorded
    lines: dict[int, list[str]]  # from its first -> tests


class Touched(NamedTuple):
    seconds: dict[str, float]  # of a test
    functions: dict[tuple[str, str], Ran]  # by (file, outermost function)
    files: dict[str, list[str]]  # all tests that run some line of a file

    def tests_of(self, mutant):
        """Those that run the statement; of a function that changed since, all its tests.

        At the level of a module or class, and of a new function: those that run anything in its file, or live in its
        package.
        """
        function = self.functions.get((mutant.file, mutant.where))
        if not mutant.inside or function is None:
            near = f"tests/{mutant.file.split('/')[1]}/"
            return sorted({*self.files.get(mutant.file, ()), *(test for test in self.seconds if test.startswith(near))})
        now = functions_of(ROOT / mutant.file)[mutant.where]
        lines = range(mutant.line - now.first, mutant.last_line - now.first + 1)
        exact = (
            {test for line in lines for test in function.lines.get(line, ())} if function.texts == {now.text} else set()
        )
        found = (exact or {test for tests in function.lines.values() for test in tests}) - {AT_IMPORT}
        return sorted(found | self.quick_neighbours(found))

    def quick_neighbours(self, tests):
        """Quick tests of the same files: they may look at what a shared fixture ran, which is told of the first one that asked for it."""
        files = {file_of(test) for test in tests}
        return {test for test, seconds in self.seconds.items() if seconds < QUICK_S and file_of(test) in files}

    def runs_at_import(self, mutant):
        """Then replacing the code of the function would come too late."""
        function = self.functions.get((mutant.file, mutant.where))
        return (
            not mutant.inside
            or function is None
            or any(AT_IMPORT in tests for line, tests in function.lines.items() if line > 0)
        )


@cache
def functions_of(path):
    """The outermost functions of a file by qualified name."""

    def below(node, where):
        for statement in ast.iter_child_nodes(node):
            if isinstance(statement, ast.ClassDef):
                yield from below(statement, f"{where}{statement.name}.")
            elif isinstance(statement, ast.FunctionDef):
                digest = hashlib.blake2b(ast.unparse(statement).encode(), digest_size=6).hexdigest()
                yield (
                    where + statement.name,
                    Function(statement.lineno, statement.end_lineno or statement.lineno, digest),
                )

    return dict(below(ast.parse(text_of(path)), ""))


class Recorder:
    """A plugin of pytest that tells coverage which test runs."""

    def __init__(self, measured):
        self.measured = measured
        self.seconds = {}
        self.failed = set()
        self.shared = {}  # seconds of fixtures that several tests share, by (node, name)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.measured.switch_context(item.nodeid)
        begun, made_before = time.process_time(), sum(self.shared.values())
        try:
            return (yield)
        finally:
            own = time.process_time() - begun - (sum(self.shared.values()) - made_before)
            self.seconds[item.nodeid] = round(own + self.shared_s(item), 4)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        begun = time.process_time()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared[request.node.nodeid, fixturedef.argname] = time.process_time() - begun

    def shared_s(self, item):
        """What the shared fixtures of a test take: alone, in a child, it has to bring them about."""
        names = set(getattr(item, "fixturenames", ()))
        return sum(
            seconds for (node, name), seconds in self.shared.items() if name in names and item.nodeid.startswith(node)
        )


def record(folder, files):
    """Run the quick tests of some files once, or import everything.  In a process of its own: coverage sees no earlier imports."""
    KEPT.mkdir(exist_ok=True)
    os.environ["COVERAGE_CORE"] = "ctrace"  # the core of Python 3.14 knows no contexts
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"  # the examples that are tried later, and nothing is made small
    places = [str(ROOT / "sim" / package) for package in PACKAGES]
    measured = coverage.Coverage(data_file=str(KEPT / f"coverage-{folder}"), branch=False, source=places)
    measured.erase()
    recorder = Recorder(measured)
    measured.start()
    if folder == AT_IMPORT:
        measured.switch_context(AT_IMPORT)
        for package in PACKAGES:
            for path in sorted((ROOT / "sim" / package).rglob("*.py")):
                importlib.import_module(
                    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                )
    else:
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow",
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
        ]
        pytest.main([*options, *(str(ROOT / file) for file in files)], plugins=[recorder])
    measured.stop()
    # A test that fails anyway would seem to notice everything.
    seconds = {name: seconds for name, seconds in recorder.seconds.items() if name not in recorder.failed}
    keep(folder, files, measured.get_data(), seconds)
    measured.erase()


def keep(folder, files, data, seconds):
    """One recording for each file of tests."""
    tests = {file: sorted(name for name in seconds if file_of(name) == file) for file in files}
    numbers = {name: number for names in tests.values() for number, name in enumerate(names)}
    functions = {file: {} for file in files}
    for path in sorted(data.measured_files()):
        contexts = data.contexts_by_lineno(path)
        source = Path(path).relative_to(ROOT).as_posix()
        for name, (first, last, text) in functions_of(Path(path)).items():
            for line in range(first, last + 1):
                for test in sorted(contexts.get(line, ())):
                    if test in numbers or test == AT_IMPORT == folder:
                        of_file = functions[file_of(test)].setdefault(source, {})
                        of_file.setdefault(name, (text, {}))[1].setdefault(line - first, []).append(
                            numbers.get(test, -1)
                        )
    for file in files:
        row = {"text": text_digest(file), "tests": tests[file], "seconds": [seconds[name] for name in tests[file]]}
        row["functions"] = functions[file]
        recorded(folder, file).parent.mkdir(parents=True, exist_ok=True)
        recorded(folder, file).write_text(json.dumps(row))


def file_of(test):
    return test.partition("::")[0]


def text_digest(file):
    return hashlib.blake2b((ROOT / file).read_bytes(), digest_size=6).hexdigest() if file != AT_IMPORT else ""


def recorded(folder, file):
    return KEPT / "touched" / folder / (file.replace("/", ".") + ".json")


def test_files(folder):
    """Below the root of the repository; importing everything counts as one."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))] or [
        AT_IMPORT
    ]


def is_current(folder, file):
    """Whether the file of tests stands as it was when it was recorded.  What became of the package meanwhile, its functions tell."""
    path = recorded(folder, file)
    return path.exists() and json.loads(path.read_text())["text"] == text_digest(file)


def read(needed=JUDGES):
    """What is recorded.  Files of tests in the folders that are needed are recorded now where they are new or have changed."""
    places = tuple(f"tests/{place}/" for place in needed)
    seconds = {}
    functions = {}
    files = {}
    for folder in (AT_IMPORT, *JUDGES):
        current = [file for file in test_files(folder) if is_current(folder, file)]
        lacking = {*test_files(folder)} - {*current}
        if missing := sorted(file for file in lacking if folder == AT_IMPORT or file.startswith(places)):
            subprocess.run([sys.executable, "-m", "tests.mutations.touched", folder, *missing], cwd=ROOT, check=True)
            current += missing
        for kept in (json.loads(recorded(folder, file).read_text()) for file in current):
            names = dict(enumerate(kept["tests"])) | {-1: AT_IMPORT}
            seconds |= dict(zip(kept["tests"], kept["seconds"], strict=True))
            for file, of_file in kept["functions"].items():
                for function, (text, by_line) in of_file.items():
                    ran = functions.setdefault((file, function), Ran(set(), {}))
                    ran.texts.add(text)
                    for line, numbers in by_line.items():
                        ran.lines.setdefault(int(line), []).extend(names[number] for number in numbers)
                        if int(line) > 0:
                            files.setdefault(file, set()).update(names[number] for number in numbers if number >= 0)
    return Touched(seconds, functions, {file: sorted(tests) for file, tests in files.items()})


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2:])

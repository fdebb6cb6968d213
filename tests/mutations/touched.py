"""Which quick tests run which lines, and how long they take: recorded with coverage, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

import coverage
import pytest

from tests.mutations.changes import ROOT

FOLDER = ROOT / ".mutants"


class Touched(NamedTuple):
    seconds: dict[str, float]  # of each test that passes
    lines: dict[str, dict[str, list[str]]]  # file, from the root of the repository -> line -> tests that run it

    def tests_of(self, mutant):
        """Those that run the statement, or anything in its file if it takes effect at import; the quickest first."""
        by_line = self.lines.get(mutant.path, {})
        lines = map(str, range(mutant.line, mutant.last_line + 1))
        exact = {test for line in lines for test in by_line.get(line, ())}
        return sorted(exact or {test for tests in by_line.values() for test in tests}, key=self.seconds.__getitem__)


class Recorder:
    """A plugin of pytest that tells coverage which test runs."""

    def __init__(self, measured):
        self.measured = measured
        self.seconds = {}
        self.failed = set()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.measured.switch_context(item.nodeid)
        begun = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - begun


def read(folders):
    """Run the quick tests of these folders, and return which lines they run."""
    FOLDER.mkdir(exist_ok=True)
    environment = {**os.environ, "COVERAGE_CORE": "ctrace", "HYPOTHESIS_PROFILE": "mutants"}
    subprocess.run([sys.executable, "-m", "tests.mutations.touched", *folders], cwd=ROOT, env=environment, check=True)
    return Touched(*json.loads((FOLDER / "touched.json").read_text()))


def main(folders):
    """Record them."""
    measured = coverage.Coverage(data_file=None, branch=False, source=[str(ROOT / "sim")])
    recorder = Recorder(measured)
    with measured.collect():
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *folders], plugins=[recorder])
    # a test that fails anyway would seem to notice everything
    seconds = {test: seconds for test, seconds in recorder.seconds.items() if test not in recorder.failed}
    data = measured.get_data()
    lines = {
        path.removeprefix(f"{ROOT}/"): {
            line: [test for test in tests if test in seconds] for line, tests in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    (FOLDER / "touched.json").write_text(json.dumps([seconds, lines]))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Breaks one rule after the other in a copy of the package and runs the test that must notice."""

from __future__ import annotations

import ast
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests import cpu_seconds
from tests.mutations import fork_server
from tests.mutations.fork_server import Answer, Request
from tests.mutations.rules import RULES, Rule
from tests.places import ROOT
from tests.printing import print_line

TABLE = Path(__file__).with_name("README.md")
PASSED, FAILED = 0, 1  # pytest's exit codes
LOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # the server has loaded libraries that are plugins, too


class Outcome(NamedTuple):
    rule: Rule
    code: int

    @property
    def noticed(self):
        return self.code == FAILED

    @property
    def verdict(self):
        return {PASSED: "survives", FAILED: "fails"}.get(self.code, f"error {self.code}")


def mistakes(rule):
    """Why a rule's row cannot be used: its text has moved, its break does not compile, its test is gone."""
    path = ROOT / rule.path
    source = path.read_text() if path.exists() else ""
    if (count := len(rule.places(source))) != 1:
        yield f"{rule.rule}: its text stands {count} times in {rule.file}"
        return
    try:
        ast.parse(rule.broken_source(source))
    except SyntaxError as error:
        yield f"{rule.rule}: its break is no Python: {error}"
    file, _, name = rule.test.partition("::")
    tests = ROOT / file
    if not tests.exists() or f"def {name.rpartition('::')[2].partition('[')[0]}(" not in tests.read_text():
        yield f"{rule.rule}: there is no {rule.test}"


def run_each(try_one, items, jobs=2):
    """In their order."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(try_one, items))


def run(*tests, rule=None, limit_s=600):
    """Exit code of tests on a copy of the package, broken if a rule or a change is given."""
    if not hasattr(_own, "server"):
        _own.server, _own.copy = _start_server(), _make_copy()
    folder = _own.copy.name
    if rule is None:
        answer = _answer_of(folder, tests, limit_s)
    else:
        with _broken(Path(folder), rule):
            answer = _answer_of(folder, tests, limit_s)
    cpu_seconds.add(answer.cpu_s)
    return answer.code


_own = threading.local()
"""Each thread has a server of its own, that answers one request after the other, and a copy of the repository."""


def _make_copy():
    """With bytecode, which knows by time and size whether its source is still the same: each test would compile the package anew."""
    folder = tempfile.TemporaryDirectory(prefix="ckptsim-mutation-")
    for name in ("sim", "tests", "scenarios", "benchmarks"):
        shutil.copytree(ROOT / name, Path(folder.name) / name)
    shutil.copy(ROOT / "pyproject.toml", folder.name)
    compileall.compile_dir(Path(folder.name) / "sim", quiet=2)
    return folder


@contextmanager
def _broken(copy, rule):
    """The rule is broken in the copy, and whole again afterwards, with the time of its file."""
    path = copy / rule.path
    path.write_text(rule.broken_source(path.read_text()))
    try:
        yield
    finally:
        shutil.copy2(ROOT / rule.path, path)


def _start_server():
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "mutants"}
    environment.pop("PYTHONPATH", None)  # the copy is the only one there
    command = [sys.executable, "-P", fork_server.__file__]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _answer_of(folder, tests, limit_s):
    arguments = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *LOADED, "--rootdir", folder, *tests]
    _own.server.stdin.write(json.dumps(Request(folder, arguments, limit_s)) + "\n")
    _own.server.stdin.flush()
    return Answer(*json.loads(_own.server.stdout.readline()))


def table(outcomes):
    """What is committed beside the rules."""
    lines = [
        "# Broken rules and who notices",
        "",
        "Written by `make mutations`: each rule is broken by one line in a copy of the package, then the named test runs.",
        "",
        "| rule | file | test | with the rule broken |",
        "|---|---|---|---|",
    ]
    rows = [
        f"| {outcome.rule.rule} | {outcome.rule.file} | {_short(outcome.rule.test)} | {outcome.verdict} |"
        for outcome in outcomes
    ]
    noticed = sum(outcome.noticed for outcome in outcomes)
    return "\n".join([*lines, *rows, "", f"{noticed} of {len(outcomes)} broken rules are noticed."]) + "\n"


def _short(test):
    file, _, name = test.partition("::")
    return f"{Path(file).stem}::{name}"


def try_rule(rule):
    outcome = Outcome(rule, run(rule.test, rule=rule))
    print_line(f"{outcome.verdict:>10}  {rule.rule}")
    return outcome


def main():
    done = run_each(try_rule, RULES)
    TABLE.write_text(table(done))
    print_line(TABLE.read_text().splitlines()[-1])
    return 0 if all(outcome.noticed for outcome in done) else 1


if __name__ == "__main__":
    sys.exit(main())

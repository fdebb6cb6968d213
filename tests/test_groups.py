"""What belongs together runs in one process."""

import os

import pytest

from tests.places import ROOT
from tests.processes import run_python

TESTS = """\
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group("dear")
@pytest.mark.parametrize("number", range(6))
def test_dear(number):
    Path(f"{os.getpid()}-{number}").touch()
"""


@pytest.mark.slow
def test_a_group_has_one_process(tmp_path):
    """The tests are called as `make test-slow` calls them, with two processes."""
    (tmp_path / "test_dear.py").write_text(TESTS)
    options = ("-n", 2, "--dist", "loadgroup", "-p", "tests.groups", "-p", "no:cacheprovider")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_python("-m", "pytest", *options, "test_dear.py", cwd=tmp_path, env=environment)

    assert done.returncode == 0, done.stdout
    assert len({file.name.partition("-")[0] for file in tmp_path.glob("[0-9]*-*")}) == 1

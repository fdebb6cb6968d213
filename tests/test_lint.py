"""ruff and mypy are part of the suite, so that one summary says whether a change may go in."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.once


def findings(*command: str) -> str:
    """What a tool of this interpreter's environment complains about: a text, for pytest cuts lists."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed: pip install -e '.[test]'")
def test_ruff_finds_nothing():
    """Every rule of ruff holds but those that pyproject.toml argues away."""
    found = findings("ruff", "check", "--quiet", "--output-format=concise", ".")

    assert not found, found


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed: pip install -e '.[test]'")
def test_every_file_is_formatted():
    """`ruff format .` changes nothing."""
    found = findings("ruff", "format", "--check", "--quiet", ".")

    assert not found, found


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install -e '.[test]'")
def test_mypy_strict_finds_nothing():
    """The package is fully typed."""
    found = findings("mypy", "--no-error-summary")

    assert not found, found

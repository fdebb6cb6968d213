"""ruff and mypy are part of the suite, so that one summary says whether a change may go in."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def findings(*command: str) -> list[str]:
    """What a tool of this interpreter's environment complains about, line by line."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def fail_with(lines: list[str]) -> None:
    """Show every finding, not pytest's excerpt of a difference."""
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed: pip install -e '.[test]'")
def test_ruff_finds_nothing():
    """Every rule of ruff holds but those that pyproject.toml argues away."""
    fail_with(findings("ruff", "check", "--quiet", "--output-format=concise", "."))


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed: pip install -e '.[test]'")
def test_every_file_is_formatted():
    """`ruff format .` changes nothing."""
    fail_with(findings("ruff", "format", "--check", "--quiet", "."))


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install -e '.[test]'")
def test_mypy_strict_finds_nothing():
    """The package is fully typed."""
    fail_with(findings("mypy", "--no-error-summary"))

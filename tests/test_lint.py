"""ruff and mypy are part of the suite, so that one summary says whether a change may go in."""

import importlib.util

import pytest

from tests.processes import run_python

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "command",
    [
        "ruff check --quiet --output-format=concise .",  # every rule holds but those that pyproject.toml argues away
        "ruff format --check --quiet .",
        "mypy --no-error-summary",  # the package is fully typed
    ],
)
def test_a_tool_finds_nothing(command):
    tool = command.partition(" ")[0]
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed: pip install -e '.[test]'")
    done = run_python("-m", *command.split())

    assert done.returncode == 0, done.stdout + done.stderr

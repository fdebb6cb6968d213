"""Errors are tied to exit codes by the names of their classes: each of them is there."""

from importlib import import_module

import pytest

from sim.cli.errors import NAMED


@pytest.mark.parametrize("name", NAMED)
def test_every_named_error_exists(name):
    """Else its users would get a traceback, and the exit code of a mistake of ours."""
    module, _, error = name.rpartition(".")

    assert issubclass(getattr(import_module(module), error), Exception)

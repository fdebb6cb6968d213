"""A real Flink for the tests of this folder; where none can be installed they are skipped, and say why."""

import pytest

from benchmarks.flink.classes import MissingDependencyError, classpath


@pytest.fixture(scope="session", autouse=True)
def flink_is_here():
    """Compiles our job, too: once for all."""
    try:
        classpath()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))

"""Sweeps killed at random moments: `python -m benchmarks.kills`, a small share of it."""

import sys

import pytest

from tests.processes import run_python


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_stays_and_no_byte_differs():
    """Whoever is killed, and however: the command, a worker, the whole group."""
    # in a process that has no threads yet
    done = run_python("-m", "benchmarks.kills", "--count", 15, "--cells", 24, timeout=600)

    assert "wrong: 0" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0

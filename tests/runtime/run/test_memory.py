"""What many runs in one process leave behind."""

import gc
import resource
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sim.runtime.simulate import simulate


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
def test_a_thousand_runs_take_no_more_memory_than_a_hundred(capsys, study):
    """A thousand runs in one process, each with a seed of its own."""
    scenarios, curve = study.scenarios, {}
    for k in range(1000):
        scenario = scenarios[k % 2]
        simulate(replace(scenario, run=replace(scenario.run, seed=k)))
        if k % 100 == 99:
            gc.collect()
            curve[k + 1] = round(resident_mb(), 1)
    with capsys.disabled():
        sys.stdout.write(f"\nresident [MB] after so many runs: {curve}\n")

    assert curve[1000] - curve[100] < 5

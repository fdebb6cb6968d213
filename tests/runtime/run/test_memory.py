"""What many runs in one process leave behind."""

import gc
import tracemalloc
from dataclasses import replace

import pytest

from sim.runtime.simulate import simulate


@pytest.mark.slow
def test_runs_leave_no_memory_allocated(study):
    """Objects and arrays are counted, not pages of the process: what an allocator keeps is not ours."""
    bytes_per_run, runs = 1_000, 40

    def allocated_after(seeds):
        for seed in seeds:
            scenario = study.scenarios[seed % 2]
            simulate(replace(scenario, run=replace(scenario.run, seed=seed)))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = allocated_after(range(20))
        after = allocated_after(range(20, 20 + runs))
    finally:
        tracemalloc.stop()

    assert after - before < runs * bytes_per_run

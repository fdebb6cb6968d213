"""Work of a run: what it simulated, not what it took."""

from dataclasses import replace

import pytest

from sim.advice.trials import CELL_S, work_s
from sim.model.schema.study import loads
from tests.advice.made_up import JOB


def test_work_grows_with_what_is_simulated_and_with_nothing_else():
    """Tasks, time, checkpoints and records count; processor time, host and attempt do not."""
    job = loads(JOB).scenarios[0]
    longer = replace(job, run=replace(job.run, duration_ns=job.run.duration_ns * 10))
    row = {"completed": 3.0, "emitted_per_second": 400.0, "cpu_s": 1.0, "host": "a", "attempt": 0}

    assert CELL_S < work_s(row, job) < work_s(row, longer)
    assert work_s(row, job) < work_s(row | {"completed": 30.0}, job)
    assert work_s(row, job) < work_s(row | {"emitted_per_second": 1e6}, job)
    assert work_s(row | {"ended_s": job.run.duration_ns / 1e9}, job) == work_s(row, job)
    assert work_s(row | {"ended_s": job.run.duration_ns / 2e9}, job) < work_s(row, job), "it ended before its time"
    assert work_s(row, job) == work_s(row | {"cpu_s": 50.0, "host": "b", "attempt": 1}, job)


@pytest.mark.parametrize("row", [{}, {"completed": float("nan"), "emitted_per_second": None}])
def test_a_run_that_ended_in_an_error_is_work_too(row):
    job = loads(JOB).scenarios[0]

    assert CELL_S < work_s(row, job) < 2 * CELL_S

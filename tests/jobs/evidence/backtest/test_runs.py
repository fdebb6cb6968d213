"""How long and how often the job as it is is simulated."""

from dataclasses import replace

import pytest

from sim.jobs.evidence import backtest
from sim.jobs.evidence.backtest import TooLargeError, runs_within
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.reading import read_any
from tests.places import REST

PRESSED = REST / "pressed.zip"
S = 10**9


@pytest.fixture(scope="module")
def pressed():
    job = read_any(PRESSED)
    return job, scenario_of(job)


def test_a_job_that_is_slow_to_simulate_is_simulated_more_briefly(pressed, monkeypatch):
    """By the processor time that its first checkpoints took."""
    job, scenario = pressed
    patient = replace(scenario, run=replace(scenario.run, duration_ns=25 * S))
    monkeypatch.setattr(backtest, "PROBE_CHECKPOINTS", 2)
    ticks = iter(range(10**6))
    monkeypatch.setattr(backtest.time, "process_time", lambda: next(ticks) / 100)  # each look at the clock costs 10 ms
    found = runs_within(patient, job, budget_s=0.6)

    assert found
    assert all(result.scenario.run.duration_ns < 25 * S for result in found)


def test_a_job_that_is_too_large_has_no_backtest(pressed, monkeypatch):
    """Not even its first checkpoints fit, or it could not even be built."""
    job, scenario = pressed
    with pytest.raises(TooLargeError, match="CPU time"):
        runs_within(scenario, job, budget_s=0.0)
    monkeypatch.setattr(backtest, "MAX_CHANNELS", 7)
    with pytest.raises(TooLargeError, match="the job has 8 channels"):
        runs_within(scenario, job)

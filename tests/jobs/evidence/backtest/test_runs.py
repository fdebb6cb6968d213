"""How long and how often the job as it is is simulated."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from sim.jobs.evidence import backtest
from sim.jobs.evidence.backtest import TooLargeError, length_ns, runs_within
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.reading import read_any

PRESSED = Path(__file__).parents[3] / "data" / "rest" / "pressed.zip"
S = 10**9


@pytest.fixture(scope="module")
def pressed():
    job = read_any(PRESSED)
    return job, scenario_of(job)


def test_as_long_as_the_history(pressed):
    job, scenario = pressed

    assert scenario.run.duration_ns == length_ns(scenario, job)


def test_no_longer_than_its_checkpoints_need(pressed):
    """An hour in which four checkpoints are known says no more than the time of seven."""
    job, scenario = pressed
    points = job.checkpoints.list
    gaps = sorted(after.trigger_timestamp - before.trigger_timestamp for before, after in itertools.pairwise(points))
    patient = replace(scenario, run=replace(scenario.run, duration_ns=3600 * S))

    assert (len(points) + backtest.SPARE_CHECKPOINTS) * gaps[len(gaps) // 2] * 10**6 == length_ns(patient, job)


def test_three_runs_of_different_seeds(pressed):
    job, scenario = pressed
    shares = []
    found = runs_within(scenario, job, watch=shares.append)

    assert [result.scenario.run.seed for result in found] == [1, 2, 3]
    assert {scenario.run.duration_ns} == {result.scenario.run.duration_ns for result in found}
    assert sorted(shares) == shares
    assert 0.9 < shares[-1] <= 1


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

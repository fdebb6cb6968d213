"""Observed and predicted values: which differences are no repetition, and what is shown of several vertices."""

import math
from dataclasses import replace

import pytest

from sim.jobs.evidence import backtest
from sim.jobs.evidence.backtest import (
    MACHINE_FACTOR,
    TooLargeError,
    compare_quantities,
    other_settings,
    runs_within,
    sampling_factor,
)
from sim.jobs.evidence.prediction import observation_table, scenario_of
from sim.jobs.reading import read_any
from sim.model.scenario import ComparedQuantity, Quantiles
from tests.places import REST


def observations(quantity, values):
    return observation_table([(quantity, "", number, False, float(value)) for number, value in enumerate(values, 2)])


def off(quantity, observed, predicted):
    (row,) = compare_quantities(observations(quantity, observed), observations(quantity, predicted))
    return row.off


SPREAD = [1000 + 10 * i for i in range(24)]  # p50 1115, p90 1207


@pytest.mark.parametrize(
    ("what", "observed", "predicted", "expected"),
    [
        ("the same", SPREAD, SPREAD, ()),
        ("a median inside of what 24 samples allow", SPREAD, [1160] * 24, ()),
        (
            "a tail that the history has and the prediction has not",
            [200] * 12 + [1000] * 12,
            [200] * 13 + [210] * 11,
            ("p90",),
        ),
        ("a shift", SPREAD, [value / 2 for value in SPREAD], ("p50", "p90")),
        ("a shift below the noise of durations", [10] * 24, [60] * 24, ()),
        (
            "a shift below what repetitions differ by",
            [10_000 + i for i in range(24)],
            [10_300 + i for i in range(24)],
            (),
        ),
        ("nothing predicted", SPREAD, [], ("p50", "p90")),
        ("five checkpoints tell no quantile", [1000] * 5, [1200] * 5, ()),
    ],
)
def test_what_is_off(what, observed, predicted, expected):
    """By noise floor, by repetition, and by what as few samples can show."""
    assert expected == off("end_to_end_duration", observed, predicted), what


def test_chance_is_not_judged():
    """What is taken while aligning differs between two runs of one job; alignment may differ by a factor of two."""
    assert off("processed_data", [0] * 24, [10**6] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [1900] * 24) == ()
    assert off("alignment_duration", [1000] * 24, [450] * 24) == ("p50", "p90")


# ---- How far other settings may be off, as far as a history of so many checkpoints tells.


ALIKE = [1000.0] * 20
FEW = [100.0] * 17 + [1000.0] * 2


def row(p50, p90, *off):
    """Whole checkpoints of which 1 s was observed."""
    return ComparedQuantity("end-to-end", Quantiles(1000.0, 1000.0, 1000.0, 20), Quantiles(p50, p90, p90, 60), off=off)


def test_checkpoints_that_take_equally_long_leave_the_machine():
    assert (sampling_factor(ALIKE, 0.5), sampling_factor(ALIKE, 0.9)) == (1.0, 1.0)
    assert pytest.approx(other_settings(ALIKE, row(1000.0, 1000.0)).p90) == MACHINE_FACTOR


def test_two_slow_ones_of_nineteen_decide_a_quantile_by_chance():
    """Another run has none of them, or four: a factor of ten.  Of 950 checkpoints both have as many."""
    assert pytest.approx(sampling_factor(FEW, 0.9), rel=0.05) == 10.0
    assert sampling_factor(FEW, 0.5) == 1.0
    assert sampling_factor([100.0 + i for i in range(1000)], 0.9) < 1.05


def test_what_the_backtest_is_off_by_comes_on_top():
    """Predicted 400 ms for 1 s: 2.5 times; a level that is not off adds nothing."""
    found = other_settings(ALIKE, row(1000.0, 400.0, "p90"))

    assert (pytest.approx(found.p50), pytest.approx(found.p90)) == (MACHINE_FACTOR, 2.5 * MACHINE_FACTOR)


def test_nothing_is_known_where_nothing_was_predicted():
    nothing = ComparedQuantity("end-to-end", Quantiles(1.0, 1.0, 1.0, 20), Quantiles(), off=("p50", "p90"))

    assert math.isinf(other_settings(ALIKE, nothing).p50)


def test_the_same_history_says_the_same():
    assert other_settings(FEW, None) == other_settings(FEW, None)


# ---- How long and how often the job as it is is simulated.


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

"""How far other settings may be off, as far as a history of so many checkpoints tells."""

import math

import pytest

from sim.jobs.evidence.backtest import MACHINE_FACTOR, other_settings, sampling_factor
from sim.model.scenario import ComparedQuantity, Quantiles

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

"""Runs are judged over whole checkpoints, once they have settled."""

from __future__ import annotations

import numpy as np
import pytest

from sim.jobs.observations import growth, steady


def test_from_trigger_to_trigger_behind_the_first_quarter():
    assert steady(0, 100, [10, 30, 60, 90, 110]) == (30.0, 90.0)


def test_too_few_checkpoints_leave_the_rest_of_the_run():
    """None, one, or two that cover less than half of it."""
    for triggers in ([], [50], [50, 80]):
        assert steady(0, 100, triggers) == (25.0, 100.0)


def test_a_counter_that_stands_still_in_every_checkpoint_has_its_mean_rate():
    """5 in 5 ms, then nothing for 5 ms: 0.5 over whole periods, whatever the samples."""
    times = np.arange(0.0, 101.0, 2.5)
    counted = np.floor(times / 10) * 5 + np.minimum(times % 10, 5)

    assert pytest.approx(0.5) == growth(times, counted, (30.0, 90.0))
    assert pytest.approx(0.5) == growth(times, counted, (33.0, 93.0))


def test_two_samples_make_a_rate():
    assert growth(np.array([5.0, 50.0]), np.array([0.0, 9.0]), (10.0, 40.0)) is None
    assert growth(np.array([]), np.array([]), (0.0, 1.0)) is None

"""Runs are judged over whole checkpoints, once they have settled."""

import numpy as np

from sim.jobs.evidence.prediction import growth_per_ms, steady_window


def test_too_few_checkpoints_leave_the_rest_of_the_run():
    """None, one, or two that cover less than half of it."""
    for triggers in ([], [50], [50, 80]):
        assert steady_window(0, 100, triggers) == (25.0, 100.0)


def test_two_samples_make_a_rate():
    assert growth_per_ms(np.array([5.0, 50.0]), np.array([0.0, 9.0]), (10.0, 40.0)) is None
    assert growth_per_ms(np.array([]), np.array([]), (0.0, 1.0)) is None

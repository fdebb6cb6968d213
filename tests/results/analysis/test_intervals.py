"""Confidence intervals of means."""

import math

import numpy as np
import pytest

from sim.results.estimates import critical, half_width


def test_half_width():
    """Student's t with one degree of freedom is 12.706 at 97.5 %; one value says nothing about the spread."""
    assert pytest.approx(half_width([9.0, 11.0]), rel=1e-4) == 12.706
    assert math.inf == half_width([1.0])


def test_nineteen_of_twenty_hold_the_mean():
    """Over many samples, as promised."""
    random = np.random.default_rng(3)
    samples = random.normal(7, 2, size=(2000, 6))

    covered = np.mean([abs(sample.mean() - 7) <= half_width(sample) for sample in samples])

    assert pytest.approx(covered, abs=0.015) == 0.95


def test_the_interval_is_wider_where_more_is_asked_of_it():
    """Student's t of two degrees: 4.303 for 95 %, 9.925 for 99 %.  Two to four have a deviation of 1 and an error of 1 / sqrt(3)."""
    assert pytest.approx(critical(3, 0.95), rel=1e-3) == 4.303
    assert [4.303 / math.sqrt(3), 9.925 / math.sqrt(3)] == pytest.approx(
        [half_width([2, 3, 4], 0.95), half_width([2, 3, 4], 0.99)], rel=1e-3
    )
    assert math.inf == critical(1, 0.95) == half_width([])

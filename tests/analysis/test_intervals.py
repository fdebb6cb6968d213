"""Confidence intervals of means."""

import math

import numpy as np
import pytest

from sim.analysis.intervals import half_width


def test_half_width():
    """Student's t with one degree of freedom is 12.706 at 97.5 %; one value says nothing about the spread."""
    assert 12.706 == pytest.approx(half_width([9.0, 11.0]), rel=1e-4)
    assert math.inf == half_width([1.0])


def test_nineteen_of_twenty_hold_the_mean():
    """Over many samples, as promised."""
    random = np.random.default_rng(3)
    samples = random.normal(7, 2, size=(2000, 6))

    covered = np.mean([abs(sample.mean() - 7) <= half_width(sample) for sample in samples])

    assert 0.95 == pytest.approx(covered, abs=0.015)

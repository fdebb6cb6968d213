"""Confidence intervals of means."""

import numpy as np
import pytest

from sim.results.estimates import half_width


def test_nineteen_of_twenty_hold_the_mean():
    """Over many samples, as promised."""
    random = np.random.default_rng(3)
    samples = random.normal(7, 2, size=(2000, 6))

    covered = np.mean([abs(sample.mean() - 7) <= half_width(sample) for sample in samples])

    assert pytest.approx(covered, abs=0.015) == 0.95

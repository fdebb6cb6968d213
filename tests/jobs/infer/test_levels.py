"""Where a history of sizes stops to rise."""

import random

import pytest

from sim.jobs.infer.state import fit_level

SECONDS = [5.0 * rank for rank in range(20)]


def sizes(rise, noise=0.0):
    """`rise(second)`, each with so much noise of its own."""
    rng = random.Random(7)
    return [rise(second) * (1 + noise * rng.uniform(-1, 1)) for second in SECONDS]


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("ends_s", [30, 50, 65])
def test_a_rise_that_ends_is_a_level(ends_s, noise):
    """1 MB/s from 2 MB on, then as many keys leave as come."""
    level = fit_level(SECONDS, sizes(lambda second: 2e6 + 1e6 * min(second, ends_s), noise))

    assert ends_s == pytest.approx(SECONDS[level.first], abs=5)
    assert 2e6 + 1e6 * ends_s == pytest.approx(level.size_bytes, rel=0.02)
    assert pytest.approx(level.per_second, rel=0.1) == 1e6

"""Where a history of sizes stops to rise."""

import math
import random

import pytest

from sim.jobs.infer.state import level_of

SECONDS = [5.0 * rank for rank in range(20)]


def sizes(rise, noise=0.0):
    """`rise(second)`, each with so much noise of its own."""
    rng = random.Random(7)
    return [rise(second) * (1 + noise * rng.uniform(-1, 1)) for second in SECONDS]


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("ends_s", [30, 50, 65])
def test_a_rise_that_ends_is_a_level(ends_s, noise):
    """1 MB/s from 2 MB on, then as many keys leave as come."""
    level = level_of(SECONDS, sizes(lambda second: 2e6 + 1e6 * min(second, ends_s), noise))

    assert ends_s == pytest.approx(SECONDS[level.first], abs=5)
    assert 2e6 + 1e6 * ends_s == pytest.approx(level.size_bytes, rel=0.02)
    assert pytest.approx(level.per_second, rel=0.1) == 1e6


@pytest.mark.parametrize(
    "rise",
    [
        lambda second: 2e6 + 1e6 * second,
        lambda second: 2e6 + 1e6 * math.sqrt(second),
        lambda _: 2e6,
        lambda second: 2e6 + 1e6 * min(second, 80),
        lambda second: 2e6 + (1e6 * second if second < 50 else 3e5 * second + 35e6),
        lambda second: 2e6 + 1e6 * (second % 35),
        lambda second: 50e6 - 1e6 * min(second, 50),
        lambda second: 2e6 + (1e6 * second if second < 50 else 20e6),
    ],
    ids=[
        "a line",
        "slower and slower",
        "constant",
        "ends too late to tell",
        "slower",
        "a saw",
        "falls",
        "falls at once",
    ],
)
def test_any_other_history_has_none(rise):
    assert None is level_of(SECONDS, sizes(rise, 0.01))


def test_a_short_history_has_none():
    assert None is level_of(SECONDS[:9], [min(second, 20.0) for second in SECONDS[:9]])

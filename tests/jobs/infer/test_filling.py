"""Where a history of sizes that rises ever more slowly will end."""

import math
import random

import pytest

from sim.jobs.infer.state import filling_of

SECONDS = [5.0 * rank for rank in range(20)]


def sizes(rise, noise=0.0):
    rng = random.Random(7)
    return [rise(second) * (1 + noise * rng.uniform(-1, 1)) for second in SECONDS]


@pytest.mark.parametrize("noise", [0.0, 0.005])
@pytest.mark.parametrize("constant_s", [20, 40, 80])
def test_keys_that_are_ever_less_new_come_to_a_limit(constant_s, noise):
    """50 MB of keys, all equally likely, of which 5 MB were there at the beginning."""
    found = filling_of(SECONDS, sizes(lambda second: 50e6 - 45e6 * math.exp(-second / constant_s), noise))

    assert pytest.approx(found.limit_bytes, rel=0.1) == 50e6
    assert 50e6 / constant_s == pytest.approx(found.per_second, rel=0.15)
    assert pytest.approx(found.at(0.0), rel=0.2) == 5e6


@pytest.mark.parametrize(
    "rise",
    [
        lambda second: 2e6 + 1e6 * second,
        lambda _: 2e6,
        lambda second: 2e6 + 1e6 * (second % 35),
        lambda second: 1e6 * 1.03**second,
        lambda second: 50e6 - 45e6 * math.exp(-second / 400),
        lambda second: 50e6 - 1e5 * second,
    ],
    ids=["a line", "constant", "a saw", "faster and faster", "hardly bent", "falls"],
)
def test_any_other_history_tells_no_limit(rise):
    assert None is filling_of(SECONDS, sizes(rise, 0.01))


def test_a_short_history_tells_no_limit():
    assert None is filling_of(SECONDS[:7], [50e6 - 45e6 * math.exp(-second / 10) for second in SECONDS[:7]])

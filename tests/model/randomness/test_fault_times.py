"""Laws of the time between faults."""

from math import sqrt
from statistics import mean, stdev

import pytest

from sim.model.faults import FaultLaw, gap_ns
from sim.model.randomness import stream

HOUR = 3_600_000_000_000
N = 4000


@pytest.mark.parametrize(
    ("law", "cv"),
    [
        (FaultLaw(HOUR), 0),
        (FaultLaw(HOUR, "exponential"), 1),
        (FaultLaw(HOUR, "weibull", shape=1.0), 1),
        (FaultLaw(HOUR, "weibull", shape=2.0), 0.5227),
        (FaultLaw(HOUR, "weibull", shape=0.7), 1.4624),
        (FaultLaw(HOUR, "lognormal", cv=0.5), 0.5),
    ],
)
def test_mean_and_spread_are_those_of_the_law(law, cv):
    """Mean within four standard errors; coefficient of variation within 10 %."""
    gaps = [gap_ns(law, stream(1, "faults", law.kind), k) for k in range(N)]

    assert abs(mean(gaps) / HOUR - 1) <= 4 * cv / sqrt(N)
    assert cv == pytest.approx(stdev(gaps) / mean(gaps), rel=0.1)


def test_times_are_a_function_of_seed_and_number():
    law = FaultLaw(HOUR, "exponential")

    assert gap_ns(law, stream(3, "a"), 7) == gap_ns(law, stream(3, "a"), 7)
    assert gap_ns(law, stream(3, "a"), 7) != gap_ns(law, stream(4, "a"), 7)

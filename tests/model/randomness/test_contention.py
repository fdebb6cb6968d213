"""How much longer threads take where more of them want to run than there are cores."""

import pytest

from sim.model.randomness import slowdown


@pytest.mark.parametrize(
    ("busy", "cores", "expected"),
    [
        ([1.0, 1.0, 1.0], 2, 1.5),
        ([1.0, 1.0], 2, 1.0),
        ([0.5, 0.5], 1, 1 / 0.75),  # both at once for a quarter of the time: 1.0 wanted, 0.75 done
        ([0.5, 0.5, 0.0], 1, 1 / 0.75),
        ([], 1, 1.0),
        ([0.0, 0.0, 0.0], 2, 1.0),
        ([1.2, -0.1, 1.0], 1, 2.0),  # what gauges round
    ],
)
def test_cores_do_the_work_of_as_many_threads(busy, cores, expected):
    assert expected == pytest.approx(slowdown(busy, cores))

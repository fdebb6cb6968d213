"""Several causes slow a task at once: their product, in numbers the plane takes."""

from fractions import Fraction

import pytest

from sim.runtime.host_loop import Speed


class Plane:
    def scale(self, task, num, den):
        self.last_scale = (task, num, den)


@pytest.mark.parametrize(
    "factors",
    [
        (2, 3),
        (Fraction(4, 3), 7),
        (1_000_000, Fraction(10_000, 6_667)),
        (999_999, Fraction(1000, 667)),
        (10**6, 10**6),
    ],
)
def test_causes_multiply_within_what_the_plane_takes(factors):
    plane = Plane()
    speed, product = Speed(plane), Fraction(1)
    for cause, factor in enumerate(factors):
        speed.set_factor(3, str(cause), Fraction(factor))
        product *= factor
    task, num, den = plane.last_scale

    assert task == 3
    assert 1 <= num <= 1 << 20
    assert 1 <= den <= 1 << 20
    assert Fraction(num, den) == pytest.approx(float(min(product, 1 << 20)), rel=1e-3)

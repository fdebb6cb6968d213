"""Values that stand for "unknown"."""

from fractions import Fraction

import pytest

from sim.model.series.columns import is_known

LEAST, LARGEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1.0,
        LEAST,
        LARGEST,
        float(LARGEST),
        LARGEST // 1,
        Fraction(-1),
        float("nan"),
        float("inf"),
        None,
        "",
        "NaN",
        True,
    ],
)
def test_stand_ins_are_not_known(value):
    assert not is_known(value)

"""The names of columns: which is the time, and which the rate."""

from fractions import Fraction

import pytest

from sim.model.series.columns import time_unit_in_name


@pytest.mark.parametrize(
    ("column", "unit"),
    [("t_ms", 1000), ("Time (ms)", 1000), ("epoch_s", 1), ("ts_ns", 10**9), ("ms", None), ("t", None)],
)
def test_a_name_tells_the_unit_of_times(column, unit):
    assert (None if unit is None else Fraction(1, unit)) == time_unit_in_name(column)

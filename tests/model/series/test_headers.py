"""The names of columns: which is the time, and which the rate."""

from fractions import Fraction

import pytest

from sim.model.series.tables import RATES, TIMES, first_of, unit_of_times


@pytest.mark.parametrize(
    ("columns", "time", "rate"),
    [
        (["Time", "value"], "Time", "value"),
        (["rate", "t_s"], "t_s", "rate"),
        (["@timestamp", "Requests"], "@timestamp", "Requests"),
        (["Time (ms)", "records/s"], "Time (ms)", None),
        (["a", "b"], None, None),
    ],
)
def test_columns_are_found_by_their_names(columns, time, rate):
    assert (time, rate) == (first_of(TIMES, columns), first_of(RATES, columns))


@pytest.mark.parametrize(
    ("column", "unit"),
    [("t_ms", 1000), ("Time (ms)", 1000), ("epoch_s", 1), ("ts_ns", 10**9), ("ms", None), ("t", None)],
)
def test_a_name_tells_the_unit_of_times(column, unit):
    assert (None if unit is None else Fraction(1, unit)) == unit_of_times(column)

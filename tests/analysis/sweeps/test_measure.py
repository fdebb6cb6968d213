"""Columns of results: their units are the ends of their names."""

import math

import pytest

from sim.analysis.sweeps.answers import Limit
from sim.analysis.sweeps.measure import MeasureError, limit, text


@pytest.mark.parametrize(
    ("column", "condition", "expected"),
    [
        ("end_to_end_p99_ms", "< 60 s", Limit("end_to_end_p99_ms", at_most=60_000)),
        ("lag_s", "<= 2 min", Limit("lag_s", at_most=120)),
        ("throughput_per_second", "> 2k/s", Limit("throughput_per_second", at_least=2000)),
        ("persisted_bytes", "< 1 MB", Limit("persisted_bytes", at_most=10**6)),
        ("busy_share", "< 90 %", Limit("busy_share", at_most=0.9)),
        ("throughput_change", ">= -3 %", Limit("throughput_change", at_least=-0.03)),
        ("completed", "> 10", Limit("completed", at_least=10)),
    ],
)
def test_bounds_are_read_in_the_unit_of_the_column(column, condition, expected):
    assert expected == limit(column, condition)


@pytest.mark.parametrize(
    ("column", "condition"), [("end_to_end_p99_ms", "< 60"), ("lag_s", "60 s"), ("completed", "> 3 s"), ("lag_s", "== 1 s")]
)
def test_bounds_that_do_not_fit(column, condition):
    with pytest.raises(MeasureError):
        limit(column, condition)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("end_to_end_p99_ms", 61_000.0, "61 s"),
        ("end_to_end_p99_ms", -0.3, "-0.3 ms"),
        ("throughput_change", -0.031, "-3.1 %"),
        ("completed", 12.0, "12"),
        ("busy_share", 0.5, "50 %"),
        ("busy_share", 2.2e-17, "0 %"),
        ("busy_share", -2.2e-17, "0 %"),
        ("end_to_end_p99_ms", -0.01, "0 ms"),
        ("lag_s", math.nan, "-"),
        ("lag_s", math.inf, "-"),
    ],
)
def test_values_as_people_read_them(column, value, expected):
    assert expected == text(column, value)

"""Columns of results: their units are the ends of their names."""

import math

import pytest

from sim.results.columns import text, text_beside, unit_of_ticks
from sim.results.sweep_answers import Limit, MeasureError, limit, limit_text


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
    ("column", "condition"),
    [("end_to_end_p99_ms", "< 60"), ("lag_s", "60 s"), ("completed", "> 3 s"), ("lag_s", "== 1 s")],
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
        ("busy_share", 5e-7, "5e-05 %"),
        ("busy_share", 4.9e-7, "0 %"),
        ("busy_share", -2.2e-17, "0 %"),
        ("end_to_end_p99_ms", -0.01, "0 ms"),
        ("lag_s", math.nan, "-"),
        ("lag_s", math.inf, "-"),
    ],
)
def test_values_as_people_read_them(column, value, expected):
    assert expected == text(column, value)


@pytest.mark.parametrize(
    ("column", "units"),
    [
        ("downtime_ms", [(1, " ms"), (1e3, " s"), (60e3, " min"), (3.6e6, " h")]),
        ("lag_s", [(1e-3, " ms"), (1, " s"), (60, " min"), (3600, " h")]),
        ("persisted_bytes", [(1, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB"), (1e12, " TB")]),
        ("persisted_bytes_per_hour", [(1, " B/h"), (1e3, " kB/h"), (1e6, " MB/h"), (1e9, " GB/h"), (1e12, " TB/h")]),
        ("throughput_per_second", [(1, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")]),
        ("commits_per_hour", [(1, "/h"), (1e3, "k/h"), (1e6, "M/h")]),
        ("cost_per_month", [(1, " a month")]),
        ("busy_share", [(0.01, " %")]),
        ("throughput_change", [(0.01, " %")]),
        ("completed", [(1, ""), (1e3, "k"), (1e6, "M")]),
    ],
)
def test_axes_have_the_largest_unit_of_which_two_fit(column, units):
    """A tick is its value divided by the size beside its unit."""
    for (size, ending), (following, _) in zip(units, [*units[1:], (math.inf, "")], strict=True):
        assert (ending, pytest.approx(size, rel=1e-12)) == unit_of_ticks(column, 2 * size)
        assert (ending, pytest.approx(size, rel=1e-12)) == unit_of_ticks(column, min(1.99 * following, 1e3 * size))
    assert unit_of_ticks(column, 0.0) == unit_of_ticks(column, 2 * units[0][0])


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        ("end_to_end_p99_ms", "at most 60 s"),
        ("lag_s", "at most 2 min"),
        ("throughput_per_second", "at least 2k/s"),
        ("busy_share", "at most 90 %"),
    ],
)
def test_a_limit_is_said_in_the_unit_of_its_column(column, condition):
    sign = "<" if "most" in condition else ">"

    assert f"{column} {condition}" == limit_text(
        limit(column, f"{sign} {condition.removeprefix('at most ').removeprefix('at least ')}")
    )


def test_a_value_beside_its_bound_has_the_digits_that_tell_them_apart():
    assert (text_beside("downtime_ms", 1041, 1000), text_beside("lag_s", 1.041, 1.0), text("lag_s", 1.041)) == (
        "1.04 s",
        "1.04 s",
        "1 s",
    )

"""A column of times means the same to scenarios, sweeps and traces; names of columns."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.series.columns import TimeFormat, detect_time_format, time_unit_in_name
from sim.studies.traces.parsing import seconds

# A column of times means the same to scenarios, sweeps and traces: one definition, cell by cell and as a whole.


NOON = 1_699_963_200  # 2023-11-14T12:00:00Z


@pytest.mark.parametrize(
    ("column", "cells", "description", "expected"),
    [
        ("t", ["0", "10", "20"], "seconds", [0, 10, 20]),
        ("t", [f"{NOON}", f"{NOON + 1}"], "epoch seconds", [NOON, NOON + 1]),
        ("Time", [f"{NOON}000", f"{NOON}500"], "epoch milliseconds", [NOON, NOON + Fraction(1, 2)]),
        ("Time", [f"{NOON}000001"], "epoch microseconds", [NOON + Fraction(1, 10**6)]),
        ("Time", [f"{NOON}000000001"], "epoch nanoseconds", [NOON + Fraction(1, 10**9)]),
        ("t_ms", ["0", "1500"], "milliseconds", [0, Fraction(3, 2)]),
        ("Time (ms)", ["0", "1500"], "milliseconds", [0, Fraction(3, 2)]),
        ("epoch_s", [f"{NOON}000"], "epoch milliseconds", [NOON]),  # the name errs: no job ran in the year 55,000
        ("t", ["2023-11-14T12:00:00Z", "2023-11-14T13:00:01.5+01:00"], "ISO 8601", [NOON, NOON + Fraction(3, 2)]),
        ("t", ["2023-11-14 12:00", "2023-11-14"], "ISO 8601 without a zone, taken as UTC", [NOON, NOON - 12 * 3600]),
        ("t", ["2023-11-14 12:00:00,250 UTC"], "ISO 8601", [NOON + Fraction(1, 4)]),
        ("t", ["2023-11-14T12:00:00.123456789Z"], "ISO 8601", [NOON + Fraction(123456789, 10**9)]),
    ],
)
def test_how_a_column_is_read(column, cells, description, expected):
    time_format = detect_time_format(column, cells)

    assert description == str(time_format)
    assert expected == [time_format.seconds(cell) for cell in cells]
    assert pytest.approx([float(at) for at in expected]) == seconds(pd.Series(cells, name=column), time_format).tolist()


def test_a_unit_that_is_given_goes_before_all():
    assert [Fraction(3, 2)] == [detect_time_format("t_s", ["1500"], Fraction(1, 1000)).seconds("1500")]


@pytest.mark.parametrize(
    "cell", ["14.11.2023", "11/14/2023 10:00", "2023/11/14", "noon", "2023-02-30", "2023-11-14 25:00", "", "-5", "nan"]
)
def test_what_is_no_time(cell):
    """Neither in a column of numbers nor in one of dates."""
    for others in (["5", "6"], ["2023-11-14", "2023-11-15"]):
        time_format = detect_time_format("t", others)

        assert time_format.seconds(cell) is None
    assert detect_time_format("t", [cell]).seconds(cell) is None


def test_a_column_that_is_no_time_shows_one_of_its_cells():
    assert detect_time_format("t", ["", "14.11.2023", "15.11.2023"]).unreadable == "14.11.2023"


def test_the_first_cells_decide_and_the_others_follow():
    """Not each for itself: the unit of a column does not change on the way."""
    time_format = detect_time_format("t", ["0", "", "5", *["7"] * 997, "1700000000000"])

    assert str(time_format) == "seconds"
    assert time_format.seconds("1700000000000") == 1_700_000_000_000


BETWEEN = datetime(1971, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - Hypothesis adds the zone


@given(st.datetimes(*BETWEEN), st.sampled_from(["Z", "+00:00", " UTC", "+0530", "-03:00", ""]))
def test_dates_agree_with_the_library(moment, zone):
    """Cell by cell, as a column, and datetime's own reading."""
    written = moment.isoformat() + zone
    expected = datetime.fromisoformat(written.replace(" UTC", "Z"))
    expected = expected if expected.tzinfo else expected.replace(tzinfo=UTC)
    time_format = detect_time_format("t", [written])

    exact = time_format.seconds(written)
    assert Fraction((expected - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), 10**6) == exact
    assert pytest.approx(float(exact), abs=1e-6) == seconds(pd.Series([written], name="t"), time_format)[0]


def test_a_column_of_nothing_is_read_as_seconds():
    assert TimeFormat() == detect_time_format("t", ["", " "])


# The names of columns: which is the time, and which the rate.


@pytest.mark.parametrize(
    ("column", "unit"),
    [("t_ms", 1000), ("Time (ms)", 1000), ("epoch_s", 1), ("ts_ns", 10**9), ("ms", None), ("t", None)],
)
def test_a_name_tells_the_unit_of_times(column, unit):
    assert (None if unit is None else Fraction(1, unit)) == time_unit_in_name(column)

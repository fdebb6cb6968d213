"""The names of columns: which is the time, which the rate, and which is by its name something else."""

from fractions import Fraction

import pytest

from sim.series.headers import RATES, TIMES, first_of, other_than_records, unit_of_times


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
    ("column", "unit"), [("t_ms", 1000), ("Time (ms)", 1000), ("epoch_s", 1), ("ts_ns", 10**9), ("ms", None), ("t", None)]
)
def test_a_name_tells_the_unit_of_times(column, unit):
    assert (None if unit is None else Fraction(1, unit)) == unit_of_times(column)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ("cpu_percent", "per cent"),
        ("load %", "per cent"),
        ("cpuUtilization", "per cent"),
        ("bytes_per_5min", "bytes"),
        ("MB/s", "bytes"),
        ("latency_ms", "a time"),
        ("requests per minute", "per minute"),
        ("numRecordsIn", "a count from the start on, no rate"),
        ("http_requests_total", "a count from the start on, no rate"),
    ],
)
def test_a_name_tells_that_values_are_no_records_per_second(column, what):
    assert what == other_than_records(column)


@pytest.mark.parametrize("column", [*RATES, "v", "load", "numRecordsInPerSecond", "events/s", "msg_rate", "offered load", "1"])
def test_other_names_are_taken_as_records_per_second(column):
    assert other_than_records(column) is None

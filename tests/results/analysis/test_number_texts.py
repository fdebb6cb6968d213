"""Numbers as people read them and as JSON has them; closed forms, intervals of means, differences of pairs."""

import math

import numpy as np
import pytest

from sim.results.columns import numbers_of, text, text_unlike, unit_of_ticks
from sim.results.estimates import PairedChange, half_width, renewal
from sim.results.formats import (
    amount_text,
    apart_text,
    bare_text,
    bytes_text,
    change_text,
    count_text,
    json_ready,
    ms_text,
    per_second_text,
    share_text,
)
from sim.results.sweep_answers import Limit, MeasureError, limit, limit_text

# Numbers as people read them.


MS = {
    "0 ms": [0, 0.049],
    "0.1 ms": [0.05],
    "0.9 ms": [0.94],
    "1 ms": [0.96],
    "7 ms": [7],
    "9.5 ms": [9.46],
    "70 ms": [70.4],
    "994 ms": [994.4],
    "1 s": [995],
    "5.7 s": [5743.2],
    "64 s": [64_000],
    "119 s": [119_400],
    "2 min": [119_500],
    "7.6 min": [456_000],
    "119 min": [7.14e6],
    "2 h": [7.15e6],
    "7.5 h": [2.7e7],
    "240 h": [8.64e8],
    "-": [math.nan],
    "not ended": [math.inf],
}
BYTES = {
    "0 B": [0],
    "994 B": [994],
    "1 kB": [995],
    "12 kB": [12_300],
    "994 kB": [994_000],
    "1 MB": [995_000],
    "7.6 MB": [7_612_000],
    "1 GB": [0.995e9],
    "1 TB": [0.995e12],
    "2500 TB": [2.5e15],
    "-": [math.nan],
}
CHANGES = {
    "±0 %": [0.0, -0.0001],
    "+0.1 %": [5.1e-4],
    "-0.3 %": [-0.003],
    "+2.5 %": [0.025],
    "+9.9 %": [0.0994],
    "+10 %": [0.0995],
    "-9.9 %": [-0.0994],
    "-10 %": [-0.0996],
    "-40 %": [-0.4],
    "-": [math.nan],
}
COMMON = {"999k": [999_400], "1M": [999_500], "1.23G": [1.234e9], "1G": [0.9995e9], "-": [math.nan]}
RATES = {f"{text}/s" if text != "-" else text: numbers for text, numbers in COMMON.items()} | {
    "0/s": [-4.5e-13],
    "0.001/s": [0.001],
    "0.25/s": [0.25],
    "2/s": [2],
    "999/s": [999.4],
    "1k/s": [999.5],
    "19.8k/s": [19_834],
}
COUNTS = COMMON | {
    "0": [0],
    "0.5": [0.5],
    "7": [7],
    "12.3": [12.34],
    "99.9": [99.94],
    "100": [99.96],
    "1000": [999.6],
    "3250": [3250.4],
    "9999": [9_999.4],
    "10k": [9_999.6],
    "52.3k": [52_340],
}
BARE = {
    "1,234": [1234.5],
    "10": [10.4],
    "9.9": [9.94],
    "7": [7.0],
    "-12": [-12.3],
    "-1.2": [-1.23],
    "0.25": [0.25],
    "-": [math.inf],
}


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (ms_text, MS),
        (bytes_text, BYTES),
        (change_text, CHANGES),
        (per_second_text, RATES),
        (count_text, COUNTS),
        (bare_text, BARE),
        (share_text, {"99 %": [0.987], "-": [math.nan]}),
    ],
)
def test_numbers(write, texts):
    """Two digits of durations and sizes, three of rates and large counts; a unit begins where rounding reaches it."""
    assert {text: [write(number) for number in numbers] for text, numbers in texts.items()} == {
        text: [text] * len(numbers) for text, numbers in texts.items()
    }


def test_more_digits_where_they_are_asked_for():
    texts = [
        ms_text(ms, digits)
        for ms, digits in ((0.52, 3), (5743.2, 3), (5743.2, 4), (64_200, 3), (150_480, 4), (9.036e6, 3))
    ]

    assert texts == ["0.52 ms", "5.74 s", "5.743 s", "64.2 s", "2.508 min", "2.51 h"]


def test_an_amount_is_written_as_its_kind_is():
    assert [amount_text(1500, kind) for kind in ("duration", "size", "rate")] == ["1.5 s", "1.5 kB", "1.5k/s"]


def test_a_value_has_the_digits_that_tell_it_from_its_bound():
    """Two at least, seven at most; equal ones have equal texts."""
    pairs = [(1000.0, 1000.0), (900.0, 1000.0), (1041.0, 1000.0), (1000.2, 1000.0), (1000.0001, 1000.0)]

    assert [apart_text(value, bound, ms_text) for value, bound in pairs] == [
        "1 s",
        "900 ms",
        "1.04 s",
        "1.0002 s",
        "1 s",
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["16 s", "2 s", "500 ms"], ("key_ms", [16_000.0, 2000.0, 500.0])),
        (["32 KiB", "1 MB"], ("key_bytes", [32_768.0, 1e6])),
        (["20k/s", "unlimited"], ("key_per_second", [20_000.0, math.inf])),
        (["100 MB/s", "8 kbit/s"], ("key_bytes_per_second", [1e8, 1000.0])),
        (["30 %"], ("key_share", [0.3])),
        (["4", "16"], ("key", [4.0, 16.0])),
        (["aligned", "16 s"], None),
        (["16 s", "1 MB"], None),
        ([], None),
    ],
)
def test_values_of_a_key_are_numbers_with_its_unit(values, expected):
    """Texts do not sort by size.  What is no quantity, or of two kinds, has none."""
    found = numbers_of("key", values)

    assert (found and (found[0], list(found[1].values()))) == expected


# Values as JSON has them.


def test_numbers_that_are_none_become_null_however_deep_they_stand():
    """Keys are texts, tuples are lists, and all else stays as it is."""
    value = {
        ("30 s", "aligned"): (math.nan, 1.5, -math.inf),
        7: [{"a": math.inf, "b": None, "c": "x", "d": True, "e": 3}],
    }

    assert json_ready(value) == {
        "('30 s', 'aligned')": [None, 1.5, None],
        "7": [{"a": None, "b": None, "c": "x", "d": True, "e": 3}],
    }


def test_the_renewal_optimum_is_that_of_young_where_checkpoints_are_cheap():
    """sqrt(2 C M) (CACM 17, 1974)."""
    assert renewal(1, 1e6) == pytest.approx(math.sqrt(2e6), rel=2e-3)


# Confidence intervals of means.


def test_nineteen_of_twenty_hold_the_mean():
    """Over many samples, as promised."""
    random = np.random.default_rng(3)
    samples = random.normal(7, 2, size=(2000, 6))

    covered = np.mean([abs(sample.mean() - 7) <= half_width(sample) for sample in samples])

    assert pytest.approx(covered, abs=0.015) == 0.95


# Differences of pairs, and their texts.


@pytest.mark.parametrize(
    ("value", "half_width", "text", "is_sure"),
    [
        (3100.0, 400.0, "+3.1 s ± 400 ms", True),
        (-3100.0, 400.0, "-3.1 s ± 400 ms", True),
        (400.0, 400.0, "+400 ms ± 400 ms", False),
        (3100.0, 0.0, "+3.1 s", True),
        (3100.0, math.inf, "+3.1 s", True),
        (0.0, 0.0, "0 ms", False),
        (0.0, math.inf, "0 ms", False),
        (0.0, 5.0, "0 ms ± 5 ms", False),
        (-0.01, 5.0, "0 ms ± 5 ms", False),
        (math.nan, math.nan, "-", False),
        (math.inf, 3.0, "-", True),
    ],
)
def test_a_change_is_sure_if_its_interval_leaves_out_zero(value, half_width, text, is_sure):
    """A single pair has no interval, and its difference is exact for its seed."""
    change = PairedChange(value, half_width)

    assert (text, is_sure) == (change.text(ms_text), change.is_sure)


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
    assert (text_unlike("downtime_ms", 1041, 1000), text_unlike("lag_s", 1.041, 1.0), text("lag_s", 1.041)) == (
        "1.04 s",
        "1.04 s",
        "1 s",
    )

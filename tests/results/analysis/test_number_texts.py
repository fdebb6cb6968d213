"""Numbers as people read them."""

import math

import pytest

from sim.results.formats import (
    amount_text,
    apart_text,
    bare_text,
    bytes_text,
    change_text,
    count_text,
    ms_text,
    per_second_text,
    share_text,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0 ms", 0.01),
        ("0.5 ms", 0.5),
        ("7 ms", 7),
        ("70 ms", 70.4),
        ("994 ms", 994),
        ("1 s", 995.1),
        ("5.7 s", 5743.2),
        ("64 s", 64_000),
        ("2 min", 119_600),
        ("10 min", 600_000),
        ("2 h", 7.2e6),
        ("-", math.nan),
        ("not ended", math.inf),
    ],
)
def test_durations(text, ms):
    """Two digits, the unit that keeps them short."""
    assert text == ms_text(ms)


@pytest.mark.parametrize(
    ("text", "count"), [("0 B", 0), ("7.6 MB", 7_612_000), ("1 GB", 1e9), ("12 kB", 12_300), ("-", math.nan)]
)
def test_sizes(text, count):
    """Decimal units."""
    assert text == bytes_text(count)


@pytest.mark.parametrize(
    ("text", "change"),
    [("-0.3 %", -0.003), ("+2.5 %", 0.025), ("-40 %", -0.4), ("±0 %", 0.0), ("±0 %", -0.0001), ("-", math.nan)],
)
def test_changes(text, change):
    """Signed, and no minus before a zero."""
    assert text == change_text(change)


def test_rates_and_shares():
    """Throughputs differ by little: three digits."""
    rates = 19_834, 2, 1_500_000, -4.5e-13, 0.001
    assert [per_second_text(rate) for rate in rates] == ["19.8k/s", "2/s", "1.5M/s", "0/s", "0.001/s"]
    assert [share_text(share) for share in (0.987, math.nan)] == ["99 %", "-"]


def test_counts():
    """Small ones in full."""
    assert [count_text(count) for count in (7, 0.5, 9_999, 9_999.9, 52_340, math.nan)] == [
        "7",
        "0.5",
        "9999",
        "10k",
        "52.3k",
        "-",
    ]
    assert [count_text(mean) for mean in (99.94, 99.96, 3250.4)] == ["99.9", "100", "3250"]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0 ms", 0.0),
        ("0 ms", 0.049),
        ("0.1 ms", 0.05),
        ("0.9 ms", 0.94),
        ("1 ms", 0.96),
        ("9.5 ms", 9.46),
        ("994 ms", 994.4),
        ("1 s", 995.0),
        ("119 s", 119_400),
        ("2 min", 119_500),
        ("7.6 min", 456_000),
        ("119 min", 7.14e6),
        ("2 h", 7.15e6),
        ("7.5 h", 2.7e7),
        ("240 h", 8.64e8),
    ],
)
def test_a_unit_begins_where_rounding_reaches_it(text, ms):
    """995 ms are a second, 119.5 s two minutes, and seven million ms two hours."""
    assert text == ms_text(ms)


def test_more_digits_where_they_are_asked_for():
    texts = [
        ms_text(ms, digits)
        for ms, digits in ((0.52, 3), (5743.2, 3), (5743.2, 4), (64_200, 3), (150_480, 4), (9.036e6, 3))
    ]

    assert texts == ["0.52 ms", "5.74 s", "5.743 s", "64.2 s", "2.508 min", "2.51 h"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("994 B", 994),
        ("1 kB", 995),
        ("994 kB", 994_000),
        ("1 MB", 995_000),
        ("1 GB", 0.995e9),
        ("1 TB", 0.995e12),
        ("2500 TB", 2.5e15),
    ],
)
def test_a_unit_of_sizes_begins_half_a_per_cent_early(text, count):
    assert text == bytes_text(count)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(999.4, "999"), (9_999.6, "10k"), (999_400, "999k"), (999_500, "1M"), (1.234e9, "1.23G"), (0.9995e9, "1G")],
)
def test_rates_and_counts_have_three_digits(amount, text):
    assert [f"{text}/s", text] == [per_second_text(amount), count_text(amount)]


def test_counts_below_ten_thousand_are_written_in_full_and_rates_are_not():
    assert [per_second_text(rate) for rate in (999.5, 0.25, math.nan)] == ["1k/s", "0.25/s", "-"]
    assert [count_text(count) for count in (9_999.4, 999.6, 0, 12.34)] == ["9999", "1000", "0", "12.3"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234.5),
        ("10", 10.4),
        ("9.9", 9.94),
        ("7", 7.0),
        ("-12", -12.3),
        ("-1.2", -1.23),
        ("0.25", 0.25),
        ("-", math.inf),
    ],
)
def test_numbers_whose_unit_stands_beside_them(text, number):
    """Two digits below ten, thousands set apart."""
    assert text == bare_text(number)


def test_an_amount_is_written_as_its_kind_is():
    assert [amount_text(1500, kind) for kind in ("duration", "size", "rate")] == ["1.5 s", "1.5 kB", "1.5k/s"]


@pytest.mark.parametrize(
    ("text", "change"),
    [("+9.9 %", 0.0994), ("+10 %", 0.0995), ("-9.9 %", -0.0994), ("-10 %", -0.0996), ("+0.1 %", 5.1e-4)],
)
def test_changes_below_a_tenth_have_a_decimal(text, change):
    assert text == change_text(change)


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

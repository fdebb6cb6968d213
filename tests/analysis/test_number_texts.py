"""Numbers as people read them."""

import math

import pytest

from sim.analysis.number_texts import bytes_text, change_text, count_text, ms_text, per_second_text, share_text


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0 ms", 0.01), ("0.5 ms", 0.5), ("7 ms", 7), ("70 ms", 70.4), ("994 ms", 994), ("1 s", 995.1), ("5.7 s", 5743.2), ("64 s", 64_000),
     ("2 min", 119_600), ("10 min", 600_000), ("2 h", 7.2e6), ("-", math.nan), ("not ended", math.inf)],
)  # fmt: skip
def test_durations(text, ms):
    """Two digits, the unit that keeps them short."""
    assert text == ms_text(ms)


@pytest.mark.parametrize(("text", "count"), [("0 B", 0), ("7.6 MB", 7_612_000), ("1 GB", 1e9), ("12 kB", 12_300), ("-", math.nan)])
def test_sizes(text, count):
    """Decimal units."""
    assert text == bytes_text(count)


@pytest.mark.parametrize(
    ("text", "change"), [("-0.3 %", -0.003), ("+2.5 %", 0.025), ("-40 %", -0.4), ("±0 %", 0.0), ("±0 %", -0.0001), ("-", math.nan)]
)
def test_changes(text, change):
    """Signed, and no minus before a zero."""
    assert text == change_text(change)


def test_rates_and_shares():
    """Throughputs differ by little: three digits."""
    assert ["19.8k/s", "2/s", "1.5M/s"] == [per_second_text(rate) for rate in (19_834, 2, 1_500_000)]
    assert ["99 %", "-"] == [share_text(share) for share in (0.987, math.nan)]


def test_counts():
    """Small ones in full."""
    assert ["7", "0.5", "9999", "10k", "52.3k", "-"] == [count_text(count) for count in (7, 0.5, 9_999, 9_999.9, 52_340, math.nan)]
    assert ["99.9", "100", "3250"] == [count_text(mean) for mean in (99.94, 99.96, 3250.4)]

"""What backtests say of other settings, held to the recordings of these."""

import pytest

from benchmarks.backtest_verdicts import BEGIN, END, HEADER, Verdict, factor, table, verdicts_of
from benchmarks.blind import PAGE


def verdict(p90_ms, within=1.5):
    return Verdict("R1-aligned", "R1-unaligned", (1000.0, 2000.0), (1100.0, p90_ms), (1.3, within))


def test_a_verdict_is_right_if_both_quantiles_lie_within_what_it_names():
    assert [True, False, True] == [verdict(2800.0).is_right, verdict(3200.0).is_right, verdict(3200.0, 2.5).is_right]
    assert (1.1, 1.6) == pytest.approx(verdict(3200.0).factors)


def test_the_noise_of_a_machine_is_no_factor():
    assert 1 == factor(70.0, 11.0)
    assert 2 == factor(200.0, 100.0)


def test_right_ones_are_counted_and_those_that_say_much():
    """A verdict that names a factor of 2.5 is easily right, and counts apart."""
    text = table([verdict(2100.0), verdict(3200.0), verdict(3200.0, 2.5)])

    assert "| R1-aligned | R1-unaligned | 1 s, 1.1 s | 2 s, 3.2 s | 1.3, 1.5 | 1.1, 1.6 | WRONG |" in text
    assert "2 of 3 verdicts (67%) are right about the other run, 1 of the 2 that name factors below 2." in text
    assert len(HEADER) == len(verdict(2100.0).row())


def test_nine_of_ten_are_right():
    """The page has what `python -m benchmarks.backtest_verdicts --write` found."""
    share = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].rpartition("verdicts (")[2].partition("%")[0]

    assert int(share) >= 90


def test_a_recording_predicts_its_siblings():
    """Two of J4; their durations are those of the recordings, whatever is predicted."""
    found = list(verdicts_of("J4-pressed-aligned-r1"))

    assert ["J4-pressed-timeout500-r1", "J4-pressed-unaligned-r1"] == [verdict.other for verdict in found]
    assert all(verdict.is_right and min(verdict.within) > 1 for verdict in found)

"""Restart strategies, which tasks fail together, and restarts in a row that lead nowhere."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Restart
from sim.protocol.recovery import (
    regions,
    restart_strategy,
    tasks_to_restart,
)

# Restart strategies, after Flink's tests of RestartBackoffTimeStrategy.


SECOND = 1_000_000_000
MIDDLE = 1 << 31  # the draw without jitter


def delays(options, failures, draw=MIDDLE):
    """What the strategy answers to failures at these times."""
    strategy, answers = restart_strategy(options), []
    for now in failures:
        strategy, delay_ns = strategy.failed(now, draw)
        answers.append(delay_ns)
    return answers


def exponential(**options):
    return Restart(
        initial_ns=1000, max_ns=5000, multiplier=Fraction(2), jitter=Fraction(0), reset_ns=100_000, **options
    )


def test_no_restart():
    assert delays(Restart("none"), [5]) == [None]


def test_fixed_delay_gives_up_after_its_attempts():
    """NumberOfRestartAttempts is how often it restarts."""
    assert delays(Restart("fixed-delay", delay_ns=7, attempts=2), [1, 2, 3]) == [7, 7, None]
    assert delays(Restart("fixed-delay", delay_ns=7), range(5)) == [7] * 5


def test_exponential_delay_grows_to_its_maximum():
    assert delays(exponential(), [0, 10_000, 20_000, 30_000, 40_000]) == [
        1000,
        2000,
        4000,
        5000,
        5000,
    ]


def test_failures_before_the_restart_are_merged_into_it():
    """They make no attempt of their own and wait for the same moment (FLIP-364)."""
    assert delays(exponential(), [0, 400, 1000, 1001]) == [1000, 600, 0, 2000]


def test_a_quiet_time_resets_the_delay():
    """RecordCounts from the restart, not from the failure."""
    assert delays(exponential(), [0, 1000 + 99_999]) == [1000, 2000]
    assert delays(exponential(), [0, 1000 + 100_000]) == [1000, 1000]


def test_exponential_delay_gives_up_after_its_attempts_unless_it_was_reset():
    assert delays(exponential(attempts=1), [0, 5000]) == [1000, None]
    assert delays(exponential(attempts=1), [0, 200_000]) == [1000, 1000]


@pytest.mark.parametrize(("draw", "delay_ns"), [(0, 1800), (MIDDLE, 2000), (2**32 - 1, 2200)])
def test_a_large_draw_is_a_long_delay(draw, delay_ns):
    options = replace(exponential(), jitter=Fraction(1, 10))

    assert delay_ns == delays(options, [0, 10_000], draw)[1]


@given(draw=st.integers(0, 2**32 - 1), failures=st.integers(1, 20))
def test_jitter_stays_within_its_share_and_the_bounds(draw, failures):
    options = Restart("exponential-delay", jitter=Fraction(1, 10))
    last = delays(options, [i * 120 * SECOND for i in range(failures)], draw)[-1]
    without = min(SECOND * Fraction(3, 2) ** (failures - 1), 60 * SECOND)

    assert max(SECOND, without * Fraction(9, 10)) - 1 <= last <= min(60 * SECOND, without * Fraction(11, 10)) + 1


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 1, 2], [7, 7, None]),
        ([0, 1, 101], [7, 7, 7]),  # the first one is out of the interval
        ([0, 50, 100], [7, 7, None]),  # ... and here it is not
        ([1000, 1050, 1100], [7, 7, None]),  # wherever the interval begins
    ],
)
def test_failure_rate_counts_within_its_interval(times, expected):
    """More than `rate` failures within the interval fail the job."""
    answers = delays(Restart("failure-rate", delay_ns=7, rate=2, rate_interval_ns=100), times)

    assert expected == answers


# Which tasks fail together.


def test_an_all_to_all_edge_makes_one_region():
    """Two writers, two readers, everybody connected."""
    assert (frozenset(range(4)),) == regions(4, [(0, 2), (0, 3), (1, 2), (1, 3)])


def test_pointwise_edges_leave_slices_apart():
    """A chain of forward edges per subtask; an unconnected task is a region of its own."""
    assert (frozenset({0, 2}), frozenset({1, 3}), frozenset({4})) == regions(5, [(0, 2), (1, 3)])


def test_a_later_edge_joins_what_earlier_ones_left_apart():
    assert (frozenset({0, 1, 2, 3}),) == regions(4, [(0, 2), (1, 3), (2, 3)])


def test_a_failure_restarts_its_whole_region_only():
    apart = regions(4, [(0, 2), (1, 3)])

    assert frozenset({1, 3}) == tasks_to_restart([3], apart)
    assert frozenset({0, 1, 2, 3}) == tasks_to_restart([0, 3], apart)
    assert frozenset() == tasks_to_restart([], apart)

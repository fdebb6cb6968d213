"""Heartbeats: when a lost task manager is missed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.recovery import Heartbeats


@pytest.mark.parametrize(
    ("lost", "missed"),
    [
        (1, 13),  # heartbeats of 3 and 13 are refused
        (3, 13),  # the process is gone in that very moment
        (4, 23),
        (13, 23),
    ],
)
def test_heartbeats_that_are_refused_in_a_row_count(lost, missed):
    """The default: two of them, 10 s apart."""
    assert missed == Heartbeats(10, 50, 2, 3).missed_ns(lost, silent=False)


@pytest.mark.parametrize(("lost", "missed"), [(3, 43), (4, 53), (12, 53), (13, 53)])
def test_silence_counts_from_the_last_heartbeat_that_was_answered(lost, missed):
    assert missed == Heartbeats(10, 50, 2, 3).missed_ns(lost, silent=True)
    assert missed == Heartbeats(10, 50, None, 3).missed_ns(lost, silent=False), "refusals do not count"
    assert missed == Heartbeats(10, 50, 9, 3).missed_ns(lost, silent=False), "the timeout comes first"


@given(st.integers(0, 10**6), st.integers(1, 1000), st.integers(0, 2000), st.integers(1, 4), st.booleans())
def test_the_phase_is_a_range(lost, interval, phase, failures, silent):
    """Whenever heartbeats are sent, an interval lies between the earliest and the latest time."""
    beats = Heartbeats(interval, 5 * interval, failures, phase)
    waited = beats.missed_ns(lost, silent=silent) - lost

    first = 4 * interval if silent else (failures - 1) * interval
    assert first <= waited <= first + interval

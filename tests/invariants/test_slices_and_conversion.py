"""Laws 120 and 123: what waits in outputs at a deadline, and what sliding windows keep."""

import pytest

from sim.invariants.cuts import (
    LEFT_OR_CONVERTED,
    missing_records_error,
    records_in_state,
    redistribute_ends,
    unconverted_barriers,
)
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Journal

NAMES = [("map", 0), ("map", 1)]


@pytest.mark.parametrize(
    ("ends", "once", "copies"),
    [((), 4, 12), ((10,), 4 + 10, 12 + 20), ((10, 15), 4 + 15, 12 + 10 + 10), ((10, 15, 21), 4 + 11, 12 + 12 + 5)],
)
def test_records_stay_until_their_last_window_has_ended(ends, once, copies):
    """Each record belongs to three windows; four records have left at no end."""
    assert once == records_in_state(4, ends, 3, copies=False)
    assert copies == records_in_state(4, ends, 3, copies=True)


def test_a_record_of_one_window_leaves_with_it():
    assert 4 == records_in_state(4, (10, 20), 1, copies=False) == records_in_state(4, (10, 20), 1, copies=True)


def test_ends_are_dealt_out_in_equal_parts():
    """A task that has heard of fewer ends counts what had left it."""
    assert redistribute_ends([(4, 7), (6,), ()], [9, 9, 4], 2) == [(7, 9), (7, 8)]  # 4 + 6 + 4 and 7 + 6 + 4 records
    assert redistribute_ends([(), ()], [5, 6], 3) == [(), (), ()]


def test_state_with_too_few_records():
    assert missing_records_error(300, 3, 100) is None
    assert (
        missing_records_error(299, 3, 100) == "it has 299 bytes for 3 records whose last window has not ended, 100 each"
    )


def test_a_barrier_that_stays_in_an_output_is_told():
    formatter = JournalFormatter(Journal(), NAMES)
    found = unconverted_barriers(7, 3, {0, 1}, formatter)

    assert (found.law, found.time_ns, found.where) == (LEFT_OR_CONVERTED, 7, "map[0], checkpoint 3")
    assert found.fact.startswith("the deadline has passed while its barrier waited in an output")
    assert found.fact.endswith("was not converted (and 1 more)")
    assert unconverted_barriers(7, 3, {1}, formatter).fact.endswith("converted")
    assert unconverted_barriers(7, 3, set(), formatter) is None

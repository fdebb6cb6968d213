"""Laws 119, 120 and 123: the reader of each record, what waits in outputs at a deadline, what sliding windows keep."""

import numpy as np
import pytest

from sim.invariants.counts import CHOSEN, MAX_KEYED_RECORDS, Route, chosen, misrouted_records
from sim.invariants.cuts import (
    LEFT_OR_CONVERTED,
    missing_records_error,
    records_in_state,
    redistribute_ends,
    unconverted_barriers,
)
from sim.invariants.violation import JournalFormatter
from sim.model.randomness import draw, stream
from sim.results.journal import Journal

# Law 119: which reader each record goes to, chosen once more.


NAMES = [("source", 0), ("source", 1)]
KEYS = stream(7, "route", "edge", 0)


def channels(*numbers):
    return np.array(numbers, np.int64)


def violations_of(routes, *written):
    return list(misrouted_records(5, routes, channels(*written), JournalFormatter(Journal(), NAMES)))


@pytest.mark.parametrize(("first", "expected"), [(0, (3, 2, 2)), (1, (2, 3, 2)), (2, (2, 2, 3))])
def test_channels_take_turns(first, expected):
    assert expected == tuple(chosen(Route(0, channels(4, 5, 6), first=first), 7))


def test_a_key_has_its_channel():
    counts = chosen(Route(0, channels(4, 5, 6), KEYS), 50)

    assert [sum(draw(KEYS, k) * 3 >> 32 == place for k in range(50)) for place in range(3)] == counts.tolist()


def test_slices_of_keys_belong_to_channels():
    weights = channels(0, 0, 0, 1)
    counts = chosen(Route(0, channels(0, 1), KEYS, weights), 50)

    assert [sum(weights[draw(KEYS, k) * 4 >> 32] == place for k in range(50)) for place in range(2)] == counts.tolist()
    assert counts[0] > counts[1]


def test_a_record_that_takes_another_channel_is_told():
    (violation,) = violations_of([Route(0, channels(0, 1)), Route(1, channels(2, 3))], 3, 3, 4, 2)

    assert (violation.law, violation.time_ns, violation.where) == (CHOSEN, 5, "an output of source[1]")
    assert violation.fact == "its channel 0 has 4 records of 6, 3 choose it"


def test_a_long_run_is_judged_by_its_first_outputs():
    own = [1, MAX_KEYED_RECORDS - 1]

    assert len(violations_of([Route(0, channels(0, 1), KEYS)], *own)) == 1, "as many as are drawn"
    assert violations_of([Route(0, channels(0, 1), KEYS)], 2, MAX_KEYED_RECORDS - 1) == [], "one more"
    first = [Route(1, channels(2, 3), KEYS), Route(0, channels(0, 1), KEYS)]
    assert violations_of(first, *own, *chosen(Route(1, own, KEYS), 60).tolist()) == [], "the first output has 60"


def test_the_first_channel_that_differs_is_told():
    (violation,) = violations_of([Route(0, channels(0, 1, 2))], 3, 4, 2)

    assert violation.fact == "its channel 1 has 4 records of 9, 3 choose it"


# Laws 120 and 123: what waits in outputs at a deadline, and what sliding windows keep.


OUTPUT_NAMES = [("map", 0), ("map", 1)]


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
    formatter = JournalFormatter(Journal(), OUTPUT_NAMES)
    found = unconverted_barriers(7, 3, {0, 1}, formatter)

    assert (found.law, found.time_ns, found.where) == (LEFT_OR_CONVERTED, 7, "map[0], checkpoint 3")
    assert found.fact.startswith("the deadline has passed while its barrier waited in an output")
    assert found.fact.endswith("was not converted (and 1 more)")
    assert unconverted_barriers(7, 3, {1}, formatter).fact.endswith("converted")
    assert unconverted_barriers(7, 3, set(), formatter) is None

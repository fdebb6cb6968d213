"""Law 119: which reader each record goes to, chosen once more."""

import numpy as np
import pytest

from sim.invariants.counts import CHOSEN, MAX_KEYED_RECORDS, Route, chosen, misrouted_records
from sim.invariants.violation import JournalFormatter
from sim.model.randomness import draw, stream
from sim.results.journal import Journal

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

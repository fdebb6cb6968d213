"""Laws 121 and 122: how far sources that keep in step may read, and that they read no further."""

import pytest

from sim.invariants.event_time import UNLIMITED, LimitedReading, wrong_limit

S = 1_000_000_000


def test_the_limit_is_the_least_watermark_and_the_drift():
    assert wrong_limit(5 * S, {0: 3 * S, 1: 8 * S}, 2 * S) is None
    assert (
        wrong_limit(10 * S, {0: 3 * S, 1: 8 * S}, 2 * S)
        == "it announces a limit of 10 s, the least watermark and the drift are 5 s"
    )


@pytest.mark.parametrize("reported", [{}, {0: UNLIMITED}])
def test_where_no_source_is_waited_for_there_is_no_limit(reported):
    assert wrong_limit(UNLIMITED, reported, 2 * S) is None
    assert (
        wrong_limit(2 * S, reported, 2 * S) == "it announces a limit of 2 s, the least watermark and the drift are none"
    )


def test_a_source_beyond_its_limit_ends_the_record_under_way():
    own = LimitedReading.of(0)

    assert own.limit(4 * S, 10) is None
    assert own.sample(5 * S, 20) is None, "it did not know"
    assert own.sample(5 * S, 21) is None
    assert own.sample(6 * S, 23) == "its watermark 5 s is beyond its limit 4 s, and it reads 3 records"


def test_a_source_that_stays_beyond_its_limit_reads_one_record_in_all():
    own = LimitedReading.of(0)
    own.limit(4 * S, 10)
    own.sample(5 * S, 20)

    assert own.limit(3 * S, 21) is None
    assert own.sample(6 * S, 22).endswith("it reads 2 records")


def test_a_limit_that_rises_is_heard():
    own = LimitedReading.of(0)
    own.limit(4 * S, 10)
    own.sample(5 * S, 20)

    assert own.limit(5 * S, 20) is None
    assert own.sample(6 * S, 40) is None, "at its limit it reads"
    assert own.limit(5 * S, 42).endswith("it reads 2 records"), "that is since the sample before"


def test_a_limit_judges_the_sample_of_some_intervals_ago():
    own = LimitedReading.of(2)
    own.limit(4 * S, 0)
    own.sample(5 * S, 10)

    assert own.sample(6 * S, 20) is None, "one sample is too few"
    assert own.sample(7 * S, 30) is not None


def test_a_source_without_a_limit_reads():
    own = LimitedReading.of(0)
    own.sample(5 * S, 10)

    assert own.sample(6 * S, 90) is None

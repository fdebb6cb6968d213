"""What a log holds: the inverse of when a record is due."""

from hypothesis import given
from hypothesis import strategies as st

from sim.plane.spec import RateSegment, SourceSpec
from sim.runtime.sampling import due_records

TWO_RATES = SourceSpec((RateSegment(0, 0, 1, 10), RateSegment(5, 100, 1, 3)))  # every 10 ns from 0, every 3 ns from 100


def test_records_are_due_from_their_time_on():
    assert [due_records(TWO_RATES, now) for now in (0, 9, 10, 49)] == [1, 1, 2, 5]


def test_nothing_is_due_between_two_segments():
    """The first rate would have gone on; the second begins with record 5 at 100."""
    assert [due_records(TWO_RATES, now) for now in (50, 99, 100, 103)] == [5, 5, 6, 7]


def test_a_bounded_log_ends():
    assert due_records(SourceSpec(TWO_RATES.segments, total=6), 1000) == 6


def test_nothing_waits_for_an_unlimited_source_or_before_the_beginning():
    assert due_records(SourceSpec(), 1000) == 0
    assert due_records(SourceSpec((RateSegment(0, 50, 1, 10),)), 49) == 0


@given(st.integers(0, 40), st.integers(1, 7), st.integers(1, 30))
def test_a_record_is_due_when_it_is_counted(record, num, den_ns):
    source = SourceSpec((RateSegment(0, 20, num, den_ns), RateSegment(20, 20 + 20 * den_ns, 1, 5)))
    at = source.due(record)

    assert due_records(source, at) > record
    assert record >= due_records(source, at - 1)

"""The least watermark of a task's channels, and the records that came before it."""

import pytest

from sim.protocol.event_time import Valve, WindowContents, last_end, next_end


@pytest.mark.parametrize(("time", "last", "following"), [(0, 0, 3), (2, 0, 3), (3, 3, 13), (12, 3, 13), (13, 13, 23)])
def test_windows_of_ten_end_at_three_and_every_ten(time, last, following):
    assert (last, following) == (last_end(10, 3, time), next_end(10, 3, time))


def test_the_least_watermark_counts():
    """Nothing before all channels have one; then the slowest channel says how far event time has come."""
    valve = Valve([4, 7])

    assert (False, 0) == (valve.advance(4, 30), valve.time_ns)
    assert (True, 20) == (valve.advance(7, 20), valve.time_ns)
    assert (False, 20) == (valve.advance(4, 40), valve.time_ns)
    assert (True, 40) == (valve.advance(7, 50), valve.time_ns)


def test_an_older_watermark_changes_nothing():
    valve = Valve([0])
    valve.advance(0, 30)

    assert (False, 30) == (valve.advance(0, 20), valve.time_ns)


def test_records_behind_a_watermark_belong_to_the_next_window():
    """Two are still held: 12 and 9 records are read, 10 and 9 of them came before the watermarks of 10."""
    contents = WindowContents(10, 0, [0, 1])
    contents.note(0, 10, 10)
    contents.note(1, 10, 9)

    assert 2 == contents.fire(10, {0: 12, 1: 9})


def test_a_channel_that_is_ahead_keeps_the_ends_it_has_passed():
    """Channel 0 has brought two ends, channel 1 one: the second window of channel 0 waits."""
    contents = WindowContents(10, 0, [0, 1])
    contents.note(0, 10, 5)
    contents.note(0, 20, 11)
    contents.note(1, 10, 4)
    assert 9 == contents.fire(10, {0: 14, 1: 4})
    contents.note(1, 20, 8)

    assert 3 == contents.fire(20, {0: 14, 1: 8})


def test_a_watermark_between_two_ends_fires_nothing_again():
    contents = WindowContents(10, 0, [0])
    contents.note(0, 10, 5)
    assert 0 == contents.fire(10, {0: 5})
    contents.note(0, 17, 8)

    assert contents.fire(17, {0: 8}) is None

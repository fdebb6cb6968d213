"""The least watermark of a task's channels, and the records that came before it."""

import pytest

from sim.protocol.event_time import Idleness, Slices, StatusWatermarkValve, WindowContents, last_end, next_end


@pytest.mark.parametrize(("time", "last", "following"), [(0, 0, 3), (2, 0, 3), (3, 3, 13), (12, 3, 13), (13, 13, 23)])
def test_windows_of_ten_end_at_three_and_every_ten(time, last, following):
    assert (last, following) == (last_end(10, 3, time), next_end(10, 3, time))


def test_the_least_watermark_counts():
    """Nothing before all channels have one; then the slowest channel says how far event time has come."""
    valve = StatusWatermarkValve([4, 7])

    assert (valve.advance(4, 30), valve.time_ns) == (False, 0)
    assert (valve.advance(7, 20), valve.time_ns) == (True, 20)
    assert (valve.advance(4, 40), valve.time_ns) == (False, 20)
    assert (valve.advance(7, 50), valve.time_ns) == (True, 40)


def test_an_older_watermark_changes_nothing():
    valve = StatusWatermarkValve([0])
    valve.advance(0, 30)

    assert (valve.advance(0, 20), valve.time_ns) == (False, 30)


def test_an_idle_channel_does_not_count():
    """The least of the others rises at once, if it was the idle one that held it back."""
    valve = StatusWatermarkValve([0, 1, 2])
    valve.advance(0, 30)
    valve.advance(1, 50)

    assert (valve.fall_idle(2), valve.time_ns) == (True, 30)
    assert (valve.fall_idle(0), valve.time_ns) == (True, 50)
    assert not valve.idle


def test_a_channel_that_did_not_hold_the_others_back_changes_nothing():
    valve = StatusWatermarkValve([0, 1])
    valve.advance(0, 30)
    valve.advance(1, 50)

    assert (valve.fall_idle(1), valve.time_ns, valve.is_idle(1)) == (False, 30, True)


def test_with_the_last_channel_all_watermarks_count():
    """Whichever is the last one: nobody will advance any more."""
    valve = StatusWatermarkValve([0, 1])
    valve.advance(0, 30)
    valve.advance(1, 50)
    valve.fall_idle(1)

    assert (valve.fall_idle(0), valve.time_ns) == (True, 50)
    assert valve.idle


def test_a_channel_that_comes_back_behind_does_not_pull_the_others_back():
    """It counts when it has caught up."""
    valve = StatusWatermarkValve([0, 1])
    valve.advance(0, 30)
    valve.fall_idle(1)
    valve.wake(1)

    assert (valve.advance(1, 10), valve.time_ns) == (False, 30)
    assert (valve.advance(0, 40), valve.time_ns) == (True, 40)
    assert (valve.advance(1, 45), valve.time_ns) == (False, 40)
    assert (valve.advance(0, 60), valve.time_ns) == (True, 45)


def test_the_watermark_of_an_idle_channel_is_ignored():
    valve = StatusWatermarkValve([0, 1])
    valve.advance(0, 30)
    valve.fall_idle(1)

    assert (valve.advance(1, 90), valve.time_ns) == (False, 30)
    valve.wake(1)
    assert (valve.advance(0, 40), valve.time_ns) == (True, 40)


def test_a_source_is_idle_by_the_looks_that_find_nothing():
    """The first of them starts the clock, and more than the timeout must pass."""
    idleness = Idleness(50, 7)

    assert [idleness.check(7, clock) for clock in (100, 120, 150, 151)] == [False, False, False, True]
    assert [idleness.check(8, clock) for clock in (160, 170, 220, 221)] == [False, False, False, True]


def test_records_of_an_idle_channel_belong_to_the_window_that_ends_next():
    """Nine came before it was idle, two since: those belong to a later window, as the four of the other channel behind its watermark."""
    contents = WindowContents(10, 0, [0, 1])
    contents.note(0, 10, 6)
    contents.fall_idle(1, 0, 9)

    assert contents.fire(10, {0: 10, 1: 11}) == 4 + 2


def test_records_of_a_channel_that_came_back_behind_leave_as_they_come():
    contents = WindowContents(10, 0, [0, 1])
    contents.fall_idle(1, 0, 9)
    contents.wake(1)
    contents.note(0, 20, 6)

    assert contents.fire(20, {0: 10, 1: 11}) == 4


def test_records_behind_a_watermark_belong_to_the_next_window():
    """Two are still held: 12 and 9 records are read, 10 and 9 of them came before the watermarks of 10."""
    contents = WindowContents(10, 0, [0, 1])
    contents.note(0, 10, 10)
    contents.note(1, 10, 9)

    assert contents.fire(10, {0: 12, 1: 9}) == 2


def test_a_channel_that_is_ahead_keeps_the_ends_it_has_passed():
    """Channel 0 has brought two ends, channel 1 one: the second window of channel 0 waits."""
    contents = WindowContents(10, 0, [0, 1])
    contents.note(0, 10, 5)
    contents.note(0, 20, 11)
    contents.note(1, 10, 4)
    assert contents.fire(10, {0: 14, 1: 4}) == 9
    contents.note(1, 20, 8)

    assert contents.fire(20, {0: 14, 1: 8}) == 3


def test_a_watermark_between_two_ends_fires_nothing_again():
    contents = WindowContents(10, 0, [0])
    contents.note(0, 10, 5)
    assert contents.fire(10, {0: 5}) == 0
    contents.note(0, 17, 8)

    assert contents.fire(17, {0: 8}) is None


def test_a_session_waits_for_its_gap_behind_each_watermark():
    """Gap 5: at 17 those leave that came before the watermark of 12."""
    contents = WindowContents(1, 0, [0], hold_ns=5)
    for time, records in ((10, 4), (12, 7), (14, 8), (17, 9)):
        contents.note(0, time, records)

    assert contents.fire(17, {0: 10}) == 3


def test_what_was_restored_waits_for_a_whole_gap():
    """Nobody knows since when: nothing leaves before the first watermark is a gap old."""
    contents = WindowContents(1, 0, [0, 1], hold_ns=5)
    contents.note(0, 10, 4)
    contents.note(1, 11, 4)
    contents.note(0, 15, 6)
    contents.note(1, 15, 6)
    assert contents.fire(15, {0: 6, 1: 6}) is None
    contents.note(0, 16, 6)
    contents.note(1, 16, 6)

    assert contents.fire(16, {0: 6, 1: 6}) == 2 + 2


def test_what_an_idle_channel_brought_waits_no_longer_than_its_window():
    """Windows of 10 that end 5 later: 4 records came before 10, 3 more before channel 1 was idle at 12, so they leave at 25 and not before."""
    contents = WindowContents(10, 0, [0, 1], hold_ns=5)
    for channel in (0, 1):
        contents.note(channel, 10, 4)
    contents.fall_idle(1, 12, 7)
    assert contents.fire(15, {0: 4, 1: 7}) == 3
    contents.note(0, 20, 6)

    assert contents.fire(25, {0: 6, 1: 7}) == 0


@pytest.mark.parametrize(("copies", "kept"), [(False, [10, 14, 15, 18]), (True, [30, 38, 32, 37])])
def test_slices_stay_until_their_last_window_ends(copies, kept):
    """Windows of three slides; the records that left at the ends: 4, 9, 16, 22."""
    slices, seen = Slices(3, copies=copies), []
    for left, open_records in ((0, 10), (4, 10), (9, 6), (16, 6)):
        if left:
            slices.end(left)
        seen.append(slices.records(open_records))

    assert kept == seen


def test_slices_are_restored_with_their_ends():
    slices = Slices(2, copies=True)
    for left in (4, 9, 16):
        slices.end(left)

    assert slices.records(3) == Slices(2, copies=True, ends=tuple(slices.ends)).records(3) == 2 * 3 + 7

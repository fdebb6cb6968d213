"""Laws 88 to 90: the least watermark of a task's inputs, windows, and timers of processing time."""

from sim.invariants.event_time import ACTIVE, IDLE, Inputs, OpenWindows, Timers

# Laws 88 and 89: the least watermark of a task's inputs, and which windows records belong to.


def heard(*signals):
    """(channel, what it says), one after the other, on two channels."""
    inputs = Inputs.of([4, 5])
    return inputs, [inputs.on_watermark(channel, number) for channel, number in signals]


def test_the_least_watermark_counts():
    inputs, risen = heard((4, 30), (5, 10), (5, 50))

    assert risen == [False, True, True]
    assert inputs.time_ns == 30
    assert inputs.is_active_again


def test_an_idle_channel_does_not_count_until_it_has_caught_up():
    inputs, _ = heard((4, 30), (5, 10), (5, IDLE))
    assert inputs.time_ns == 30

    inputs.on_watermark(5, ACTIVE)
    inputs.on_watermark(4, 40)
    assert inputs.time_ns == 40, "it is behind, and does not hold the others back"

    inputs.on_watermark(5, 45)
    inputs.on_watermark(4, 60)
    assert inputs.time_ns == 45


def test_the_last_channel_that_falls_idle_lets_all_watermarks_count():
    inputs, _ = heard((4, 30), (5, 10), (4, IDLE), (5, IDLE))

    assert inputs.all_idle
    assert not inputs.is_active_again
    assert inputs.time_ns == 30


def test_records_behind_a_watermark_belong_to_later_windows():
    """Windows of 100: on channel 4 seven of ten records came before its watermark, channel 5 has not come so far."""
    windows = OpenWindows.of(100, 0, 0, [4, 5])
    windows.on_watermark(4, 100, 7, 0)
    windows.on_watermark(4, 130, 9, 0)
    windows.on_watermark(5, 210, 20, 0)

    assert windows.later_records(90, {4: 10, 5: 21}) is None
    assert windows.later_records(100, {4: 10, 5: 21}) == 3 + 1
    assert windows.later_records(150, {4: 10, 5: 21}) is None, "it has ended before"
    assert windows.later_records(200, {4: 10, 5: 21}) == 0 + 1, (
        "those of an active channel without a watermark came too late"
    )


def test_records_of_an_idle_channel_leave_up_to_its_silence():
    windows = OpenWindows.of(100, 0, 0, [4])
    windows.on_watermark(4, IDLE, 5, 0)

    assert windows.later_records(100, {4: 8}) == 3


def test_records_of_sessions_wait_behind_their_watermark():
    """A gap of 50: what came before the watermark of 100 leaves at 150."""
    windows = OpenWindows.of(1, 0, 50, [4])
    windows.on_watermark(4, 100, 7, 0)
    windows.on_watermark(4, 150, 9, 0)

    assert windows.later_records(149, {4: 9}) is None
    assert windows.later_records(150, {4: 9}) == 2


def test_records_of_an_idle_channel_wait_for_their_own_window_only():
    """Windows of 100 that end 50 later."""
    windows = OpenWindows.of(100, 0, 50, [4, 5])
    for channel in (4, 5):
        windows.on_watermark(channel, 100, 4, 0)
    windows.on_watermark(5, IDLE, 7, 120)
    assert windows.later_records(150, {4: 4, 5: 7}) == 3
    windows.on_watermark(4, 200, 6, 120)

    assert windows.later_records(250, {4: 6, 5: 7}) == 0


def test_windows_may_begin_anywhere():
    """Windows of 100 that end at 30, 130 and so on."""
    windows = OpenWindows.of(100, 30, 0, [4])

    assert [windows.end_until(time) for time in (29, 30, 129, 130)] == [0, 30, 30, 130]


def test_a_channel_whose_data_has_ended_goes_on_no_more():
    inputs = Inputs.of([4, 5])
    inputs.on_watermark(4, 30, last=True)
    assert inputs.is_active_again

    inputs.on_watermark(5, IDLE)
    assert not inputs.is_active_again


def test_an_idle_channel_says_nothing():
    inputs, risen = heard((4, 30), (5, IDLE), (5, 90))

    assert [inputs.time_ns == 30, risen[2]] == [True, False]
    inputs.on_watermark(5, ACTIVE)
    inputs.on_watermark(4, 60)
    assert inputs.time_ns == 60


def test_a_channel_has_caught_up_at_the_time_of_the_task():
    inputs, _ = heard((4, 30), (5, 10), (5, IDLE), (5, ACTIVE), (5, 30), (4, 60))

    assert inputs.time_ns == 30, "it counts again"


def test_a_channel_that_was_never_behind_counts_at_once():
    inputs, _ = heard((4, 30), (5, 30), (5, IDLE), (5, ACTIVE), (4, 60))

    assert inputs.time_ns == 30


# Law 90: timers of processing time fire once, when they are due, and in order.


S = 1_000_000_000


def timers(**fields):
    return Timers(10 * S, 0, 0, **fields)


def test_windows_that_end_and_fire():
    own = timers()

    assert own.window_ended(10 * S, 5) is None
    assert own.fire(11 * S, 10 * S, 5) is None, "the thread was busy"
    assert own.silent(20 * S) is None
    assert own.kept(21 * S, 8) == ((30 * S, 8),)


def test_a_window_that_ends_at_another_time():
    assert timers().window_ended(12 * S, 5) == "a window ends at 12 s, windows of 10 s do not"


def test_a_window_that_has_no_timer():
    own = timers(begun_ns=3 * S)
    own.window_ended(10 * S, 5)

    assert own.silent(21 * S) == "the window that ended at 20 s has no timer; the last one was set at 10 s"
    assert timers(begun_ns=25 * S).silent(29 * S) is None


def test_a_timer_that_fires_too_early():
    own = timers(pending=[(10 * S, 5)])

    assert own.fire(9 * S, 10 * S, 5) == "the timer of 10 s fires at 9 s"


def test_a_restored_timer_that_was_forgotten():
    own = timers(pending=[(10 * S, 5)], begun_ns=12 * S)
    own.window_ended(20 * S, 9)

    assert own.fire(20 * S, 20 * S, 9) == "the timer of 10 s has not fired, that of 20 s fires; 1 were forgotten"


def test_a_timer_that_fires_twice():
    own = timers(pending=[(10 * S, 5)])
    own.fire(10 * S, 10 * S, 5)

    assert own.fire(10 * S, 10 * S, 5).startswith("a timer of 10 s fires that was never set")


def test_a_session_sets_no_second_timer_for_the_same_records():
    own = Timers(1 * S, 0, 5 * S)
    own.window_ended(1 * S, 5)
    own.window_ended(2 * S, 5)

    assert own.pending == [(6 * S, 5)]


def test_a_timer_at_its_time_and_a_window_at_its_end():
    timers = Timers(10, 0, 0)
    timers.window_ended(10, 4)

    assert timers.fire(10, 10, 4) is None, "neither early nor late"
    assert timers.pending == []
    assert timers.silent(20) is None, "it ends in this instant"
    assert timers.silent(21) == "the window that ended at 2e-08 s has no timer; the last one was set at 1e-08 s"


def test_timers_of_a_snapshot_are_those_that_wait_and_the_next_one():
    """Windows of 10 that end at 3, 13 and so on; sessions wait 5 longer."""
    timers = Timers(10, 3, 5, pending=[(18, 4)])

    assert timers.kept(13, 9) == ((18, 4), (28, 9))
    assert timers.kept(12, 9) == ((18, 4), (18, 9))


def test_what_a_session_lets_go_is_set_once():
    timers = Timers(10, 0, 5)
    timers.window_ended(10, 4)
    timers.window_ended(20, 4)
    timers.window_ended(30, 6)

    assert timers.pending == [(15, 4), (35, 6)]

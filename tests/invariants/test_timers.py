"""Law 90: timers of processing time fire once, when they are due, and in order."""

from sim.invariants.event_time import Timers

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

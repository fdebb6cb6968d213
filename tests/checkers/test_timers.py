"""Law 90: timers of processing time fire once, when they are due, and in order."""

from sim.checkers.timers import Timers

S = 1_000_000_000


def timers(**fields):
    return Timers(10 * S, 0, 0, **fields)


def test_windows_that_end_and_fire():
    own = timers()

    assert own.window_ended(10 * S, 5) is None
    assert own.fire(11 * S, 10 * S, 5) is None, "the thread was busy"
    assert own.silent(20 * S) is None
    assert ((30 * S, 8),) == own.kept(21 * S, 8)


def test_a_window_that_ends_at_another_time():
    assert "a window ends at 12 s, windows of 10 s do not" == timers().window_ended(12 * S, 5)


def test_a_window_that_has_no_timer():
    own = timers(begun_ns=3 * S)
    own.window_ended(10 * S, 5)

    assert "the window that ended at 20 s has no timer; the last one was set at 10 s" == own.silent(21 * S)
    assert timers(begun_ns=25 * S).silent(29 * S) is None


def test_a_timer_that_fires_too_early():
    own = timers(pending=[(10 * S, 5)])

    assert "the timer of 10 s fires at 9 s" == own.fire(9 * S, 10 * S, 5)


def test_a_restored_timer_that_was_forgotten():
    own = timers(pending=[(10 * S, 5)], begun_ns=12 * S)
    own.window_ended(20 * S, 9)

    assert "the timer of 10 s has not fired, that of 20 s fires; 1 were forgotten" == own.fire(20 * S, 20 * S, 9)


def test_a_timer_that_fires_twice():
    own = timers(pending=[(10 * S, 5)])
    own.fire(10 * S, 10 * S, 5)

    assert own.fire(10 * S, 10 * S, 5).startswith("a timer of 10 s fires that was never set")


def test_a_session_sets_no_second_timer_for_the_same_records():
    own = Timers(1 * S, 0, 5 * S)
    own.window_ended(1 * S, 5)
    own.window_ended(2 * S, 5)

    assert [(6 * S, 5)] == own.pending

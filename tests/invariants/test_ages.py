"""Law 87: how old keys are, and which have expired."""

from fractions import Fraction

from sim.invariants.checkpoints import bytes_written_after, split_cohorts, ttl_errors

S = 1_000_000_000
TTL = 10 * S
KEYS = ((0, 5 * S, 50_000), (5 * S, 6 * S, 20_000))


def fact(after, *, before=KEYS, before_s=6, now_s=12, added=0, rewritten=0):
    return ttl_errors(before, before_s * S, after, now_s * S, TTL, added, rewritten)


def test_keys_that_are_young_again():
    assert (
        fact(((11 * S, 12 * S, 50_000),), added=1_000)
        == "keys are young again: 50000 bytes count as written since 6 s, at most 1303 were"
    )


def test_keys_that_do_not_expire():
    """They are told by their age; where their age was changed, by their number."""
    assert fact(KEYS) == "keys are there that were last written 12 s ago, and live for 10 s"
    assert fact(((5 * S, 6 * S, 95_000),)).startswith("keys that must have expired are there: 95000 bytes")


def test_whole_bytes_expire():
    """A cohort may begin before the horizon by what is less than two bytes of it."""
    assert fact(((2 * S - 60_000, 5 * S, 30_000), (5 * S, 6 * S, 20_000))) is None
    assert fact(((2 * S - 220_000, 5 * S, 30_000), (5 * S, 6 * S, 20_000))).startswith("keys are there")


def test_a_nanosecond_of_much_state_is_rounded_off():
    """30 B per nanosecond: one is 30 B, and 303 of them are let pass."""
    large = ((0, 5 * S, 150 * S),)

    assert fact(((2 * S - 1, 5 * S, 90 * S + 30),), before=large) is None
    assert fact(((2 * S - 2, 5 * S, 90 * S + 60),), before=large).startswith("keys are there")
    assert fact(((2 * S, 5 * S, 90 * S - 30 * 302),), before=large) is None
    assert fact(((2 * S, 5 * S, 90 * S - 30 * 302 - 1),), before=large).startswith("keys have expired too early")


def test_a_subtask_gets_its_shares():
    half = Fraction(1, 2)
    assert split_cohorts([(((S, 2 * S, 40),), half), (((0, S, 100),), half)]) == ((0, S, 50), (S, 2 * S, 20))


def test_what_is_rounded_off_is_let_pass_to_the_byte():
    """300 times of a byte, and one for each cohort before and now."""
    slack = 300 + 2 + 1

    assert fact(((2 * S, 6 * S, 50_000 - slack),)) is None
    assert fact(((2 * S, 6 * S, 50_000 - slack - 1),)).startswith("keys have expired too early")
    assert fact(((5 * S, 6 * S, 50_000 + 20_000 + slack),)) is None
    assert fact(((5 * S, 6 * S, 50_000 + 20_000 + slack + 1),)).startswith("keys that must have expired")


def test_what_is_written_counts_once_and_what_is_rewritten_twice():
    """An entry that is rewritten may be larger than the others."""
    most = 1_000 + 2 * 100 + 300 + 2 + 3
    left = (2 * S, 5 * S, 30_000), (5 * S, 6 * S, 20_000)

    assert fact((*left, (6 * S, 12 * S, most)), added=1_000, rewritten=100) is None
    assert fact((*left, (6 * S, 12 * S, most + 1)), added=1_000, rewritten=100).startswith("keys are young again")


def test_a_cohort_goes_in_proportion():
    assert [bytes_written_after(((S, 5 * S, 40),), horizon * S) for horizon in (0, 1, 4, 5, 9)] == [40, 40, 10, 0, 0]

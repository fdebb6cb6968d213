"""Stamps, ages and files of restored state: whose it must be, all of it, once (laws 85 to 87)."""

from fractions import Fraction

from sim.invariants.checkpoints import bytes_written_after, split_cohorts, ttl_errors
from sim.invariants.cuts import gap, missing_log_error, missing_state_error
from sim.invariants.state import RESTORED, RestoredState, Stamp, restored_state_differences, union_errors

# Stamps of restored state: whose it must be, all of it, once.


OWN, OTHER = Stamp(0, 3, "map", 1), Stamp(1, 2, "map", 0)
ALL, HALF = Fraction(1), Fraction(1, 2)


def facts(*restored_parts, stored=None):
    stored = {"keyed": (OWN, 100)} if stored is None else stored
    found = list(restored_state_differences(7, "restart 1", stored, restored_parts, lambda: ("story",)))

    for violation in found:
        assert (violation.law, violation.time_ns, violation.where, violation.story) == (
            RESTORED,
            7,
            "restart 1",
            ("story",),
        )
    return [violation.fact for violation in found]


def keyed(stamp=OWN, share=ALL, size_bytes=100, copied_from=None):
    return RestoredState("keyed", stamp, share, size_bytes, copied_from)


def test_state_that_is_missing_is_told():
    assert facts() == ["its keyed state is not restored: 100 bytes in the checkpoint"]


def test_state_in_parts_is_told():
    """Half of it, all of it twice, or one whole in two halves: a task that was not rescaled gets its state in one piece."""
    assert facts(keyed(share=HALF)) == ["its keyed state comes back 0.5 times, in 1 part"]
    assert facts(keyed(), keyed()) == ["its keyed state comes back 2 times, in 2 parts"]
    assert facts(keyed(share=HALF), keyed(share=HALF)) == ["its keyed state comes back 1 times, in 2 parts"]


def test_state_of_somebody_else_is_told():
    assert facts(keyed(OTHER)) == [
        "its keyed state is that of map[0] at checkpoint 2 of job 1, the checkpoint holds that of map[1] at checkpoint 3"
    ]


def test_state_of_another_size_is_told():
    assert facts(keyed(size_bytes=99)) == ["its keyed state comes back with 99 bytes, the checkpoint holds 100"]


def test_a_copy_of_something_else_is_told():
    assert facts(keyed(copied_from=("map", 1, 2))) == [
        "its keyed state is read from a local copy of another one, ('map', 1, 2)"
    ]


def test_state_that_no_checkpoint_holds_is_told():
    """Each kind of state on its own."""
    operator = RestoredState("operator", OWN, ALL, 5)

    assert facts(keyed(), operator) == [
        "it gets operator state, that of map[1] at checkpoint 3, and its checkpoint holds none"
    ]
    assert facts(keyed(), operator, stored={"keyed": (OWN, 100), "operator": (OWN, 5)}) == []


def union_facts(*pieces):
    stored = [(OWN, 60), (Stamp(0, 3, "map", 0), 60)]
    found = union_errors(
        7, "restart 1", stored, [RestoredState("union", *piece) for piece in pieces], lambda: ("story",)
    )
    return [violation.fact for violation in found]


def test_union_list_state_comes_back_as_it_was_written_by_all():
    first, second = (OWN, ALL, 60), (Stamp(0, 3, "map", 0), ALL, 60)

    assert union_facts(second, first) == []
    for wrong in (
        [first],
        [first, first],
        [first, second, second],
        [first, (OTHER, ALL, 60)],
        [first, (*second[:1], HALF, 60)],
    ):
        (fact,) = union_facts(*wrong)
        assert fact.endswith("the checkpoint holds 2 parts, 120 bytes")


# Law 87: how old keys are, and which have expired.


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


# Laws 85 and 86: files that hold a snapshot's state.


def test_a_log_goes_on_from_the_materialisation_to_the_cut():
    """The first file may begin earlier; order does not matter."""
    assert gap([(30, 10), (20, 15)], 10, 30) is None
    assert gap([], 10, 10) is None


def test_the_first_gap_of_a_log():
    assert gap([(30, 10)], 10, 30) == (10, 20), "its oldest file"
    assert gap([(20, 10), (30, 5)], 10, 30) == (20, 25), "one in the middle"
    assert gap([(25, 15)], 10, 30) == (25, 30), "its tail"
    assert gap([], 0, 30) == (0, 30)


def test_the_gap_is_told_in_bytes():
    fact = missing_log_error((10, 20), 10)

    assert (
        fact
        == "10 bytes of its changelog are in no file: the positions 10 to 20 (the materialisation holds everything before 10)"
    )


def test_files_hold_the_live_bytes():
    """Merged tables have expected sizes, and the last entries are rounded off."""
    assert missing_state_error(900, 1000, 0) is None
    assert missing_state_error(700, 1000, 100) is None
    assert missing_state_error(699, 1000, 100) == "its files hold 699 bytes for 1000 of state"

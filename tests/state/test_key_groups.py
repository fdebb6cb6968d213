"""Key groups before and after rescaling."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sim.state.key_groups import key_groups, overlap


def test_key_groups_are_dealt_as_flink_does_in_ranges():
    """5 groups over 3 subtasks are 0-1, 2-3, 4."""
    assert [range(2), range(2, 4), range(4, 5)] == [key_groups(i, 3, 5) for i in range(3)]


def test_four_subtasks_from_two_take_half_each():
    assert [{0: Fraction(1, 2)}, {0: Fraction(1, 2)}, {1: Fraction(1, 2)}, {1: Fraction(1, 2)}] == [overlap(i, 4, 2, 128) for i in range(4)]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(40, 200))
def test_every_key_group_goes_somewhere_once(before, after, groups):
    """The shares taken of each old subtask are all of it."""
    taken = [sum(overlap(i, after, before, groups).get(old, Fraction(0)) for i in range(after)) for old in range(before)]

    assert [1] * before == taken

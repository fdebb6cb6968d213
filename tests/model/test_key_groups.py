"""Key groups before and after rescaling."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import default_max_parallelism, key_groups, overlap, owners, redistribute_shares


def test_key_groups_are_dealt_as_flink_does_in_ranges():
    """5 groups over 3 subtasks are 0-1, 2-3, 4."""
    assert [range(2), range(2, 4), range(4, 5)] == [key_groups(i, 3, 5) for i in range(3)]


@given(st.integers(1, 40), st.integers(40, 200))
def test_a_group_has_one_owner(parallelism, groups):
    """Who owns it is the same whichever way it is asked for."""
    owned = owners(parallelism, groups)

    assert [list(key_groups(i, parallelism, groups)) for i in range(parallelism)] == [
        [group for group in range(groups) if owned[group] == i] for i in range(parallelism)
    ]


@pytest.mark.parametrize(
    ("parallelism", "groups"),
    [(1, 128), (4, 128), (85, 128), (86, 256), (128, 256), (171, 256), (172, 512), (30000, 32768)],
)
def test_there_are_as_many_key_groups_as_flink_makes(parallelism, groups):
    """One and a half times the parallelism, up to the next power of two, within 128 and 32768."""
    assert groups == default_max_parallelism(parallelism)


def test_four_subtasks_from_two_take_half_each():
    assert [{0: Fraction(1, 2)}, {0: Fraction(1, 2)}, {1: Fraction(1, 2)}, {1: Fraction(1, 2)}] == [
        overlap(i, 4, 2, 128) for i in range(4)
    ]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(40, 200))
def test_every_key_group_goes_somewhere_once(before, after, groups):
    """The shares taken of each old subtask are all of it."""
    shares = [
        sum(overlap(i, after, before, groups).get(old, Fraction(0)) for i in range(after)) for old in range(before)
    ]

    assert [1] * before == shares


def test_a_hot_key_keeps_its_records_at_twice_the_parallelism():
    """A third for one subtask, two thirds for the other: the second third is one key, in one of the four."""
    third, sixth = Fraction(1, 3), Fraction(1, 6)

    assert (sixth, sixth, sixth, sixth + third) == redistribute_shares((third, 2 * third), 4, 128)
    assert (sixth, sixth, third, third) == redistribute_shares((third, 2 * third), 4, 128, "key-groups")


def test_fewer_subtasks_read_what_their_key_groups_bring():
    """Groups that come together bring their hot keys with them."""
    shares = tuple(Fraction(part, 10) for part in (1, 4, 2, 3))

    assert (
        (Fraction(1, 2), Fraction(1, 2))
        == redistribute_shares(shares, 2, 128)
        == redistribute_shares(shares, 2, 128, "key-groups")
    )


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any),
    st.integers(1, 40),
    st.integers(40, 200),
    st.booleans(),
)
def test_shares_are_dealt_out_whole(weights, parallelism, groups, one_key):
    """Nobody's records are lost; at the parallelism where they were counted they are what was counted."""
    shares, excess = tuple(map(Fraction, weights)), "one-key" if one_key else "key-groups"
    after = redistribute_shares(shares, parallelism, groups, excess)

    assert (1, parallelism) == (sum(after), len(after))
    assert min(after) >= 0
    assert [share / sum(shares) for share in shares] == list(redistribute_shares(shares, len(shares), groups, excess))

"""One wrong time costs one row, wherever it stands."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.studies.traces.parsing import AHEAD, BACK, out_of_order

START = float("-inf")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1, 2, 3], {}),
        ([1, 9, 2, 3], {1: AHEAD}),
        ([1, 2, 3, 0, 4], {3: BACK}),
        ([1, 2, 2, 3], {2: BACK}),
        ([5, 1, 2, 3], {0: AHEAD}),
        ([], {}),
    ],
)
def test_the_row_that_is_wrong_is_named(times, expected):
    assert expected == out_of_order(times, START, strictly=True)


def test_equal_times_may_be_asked_for():
    """Two requests arrive in one instant."""
    assert out_of_order([1, 1, 2], 1, strictly=False) == {}
    assert out_of_order([1, 1, 2], 1, strictly=True) == {0: BACK, 1: BACK}


@given(st.lists(st.integers(0, 9), max_size=8), st.booleans())
def test_as_many_rows_as_possible_stay(times, strictly):
    """Against trying all selections."""

    def goes_on(chosen):
        return all(a < b if strictly else a <= b for a, b in pairwise(chosen))

    reasons = out_of_order(times, START, strictly=strictly)

    assert goes_on([time for i, time in enumerate(times) if i not in reasons])
    best = max(size for size in range(len(times) + 1) for chosen in combinations(times, size) if goes_on(chosen))
    assert best == len(times) - len(reasons)

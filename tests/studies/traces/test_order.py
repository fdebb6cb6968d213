"""One wrong time costs one row, wherever it stands."""

import numpy as np
import pytest

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
        ([1, 8, 9, 2, 3, 10], {3: BACK, 4: BACK}),
        ([], {}),
    ],
)
def test_the_row_that_is_wrong_is_named(times, expected):
    reasons = out_of_order(np.array(times, dtype=float), START, strictly=True)

    assert expected == {i: str(reason) for i, reason in enumerate(reasons) if reason}


def test_equal_times_may_be_asked_for():
    """Two requests arrive in one instant."""
    times = np.array([1.0, 1.0, 2.0])

    assert out_of_order(times, 1, strictly=False).tolist() == ["", "", ""]
    assert out_of_order(times, 1, strictly=True).tolist() == [BACK, BACK, ""]

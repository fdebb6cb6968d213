"""A column of numbers: what is added stays, however much room there was."""

import numpy as np
import pytest

from sim.results import journal
from sim.results.journal import GrowingColumn


@pytest.mark.parametrize("room", [0, 1, 4, 100])
def test_numbers_stay_whatever_the_room(room):
    grown = GrowingColumn(np.int64, room)
    for first in range(0, 30, 3):
        grown.extend(range(first, first + 3))
        assert first + 3 == len(grown)

    assert list(range(30)) == grown.cells.tolist()
    assert np.int64 is grown.kind


def test_what_was_cut_is_written_anew():
    curve = GrowingColumn(np.float64, 3)
    curve.extend([1.0, 2.0, 3.0])
    curve.cut(1)
    curve.extend(np.array([5.5]))

    assert curve.cells.tolist() == [1.0, 5.5]


def test_whole_numbers_become_reals():
    """The column that they come from is left as it was."""
    integers = GrowingColumn(np.int64, 10)
    integers.extend([1, 2])
    reals = integers.of_reals()
    reals.extend([0.5])

    assert reals.cells.tolist() == [1.0, 2.0, 0.5]
    assert integers.cells.tolist() == [1, 2]


def test_a_number_that_the_type_does_not_hold_is_refused():
    with pytest.raises(OverflowError):
        GrowingColumn(np.int64).extend([2**63])


def test_no_more_room_is_taken_than_is_likely_to_be_used(monkeypatch):
    monkeypatch.setattr(journal, "MAX_ROOM", 8)

    assert len(GrowingColumn(np.int64, 10**15)._cells) == 8

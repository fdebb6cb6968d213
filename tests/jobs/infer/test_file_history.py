"""What the sizes of files tell of the state in them: expected values from histories made by hand."""

import math

import pytest

from sim.jobs.infer.file_history import Point, below_log, files_of, rewritten_bytes


def history(*sizes):
    """A checkpoint every 5 s."""
    return [Point(number, 5.0 * number, size) for number, size in enumerate(sizes, 1)]


CYCLES = [100, 110, 120, 130, 110, 120, 130, 140, 110, 120, 130, 140, 110]


def test_state_is_what_files_hold_right_after_a_merge_without_the_increment():
    files = files_of(history(*CYCLES))

    assert (files.increment_bytes, files.size_bytes, files.bytes_per_second, files.every) == (10, 100, 0.0, 4)
    assert [point.checkpoint for point in files.falls] == [5, 9, 13]


def test_a_merge_is_a_fall_even_if_the_files_grow_a_little():
    """The state grows faster than overwritten entries are left behind: 102 would have been 110."""
    assert [point.checkpoint for point in files_of(history(90, 100, 102, 112, 122)).falls] == [3]


def test_state_that_grows_is_told_from_cycle_to_cycle():
    """20 bytes in 20 s, so it was 100 bytes at 25 s and none 100 s before."""
    files = files_of(history(*(size + 20 * (number // 4) for number, size in enumerate(CYCLES))))

    assert pytest.approx(files.bytes_per_second) == 1
    assert pytest.approx(files.size_at(25.0)) == 120
    assert files.size_at(-1000.0) == 0


@pytest.mark.parametrize(
    "sizes", [(100, 110, 150, 160, 110, 120, 110), (200, 210, 190, 200, 150, 160, 110, 120, 110, 120, 110)]
)
def test_state_that_has_grown_before_or_shrinks_does_not_grow(sizes):
    assert files_of(history(*sizes)).bytes_per_second == 0


@pytest.mark.parametrize("sizes", [(), (100,), (100, 100, 100), (100, 110, 120)])
def test_files_that_never_grow_or_never_fall_tell_nothing(sizes):
    assert files_of(history(*sizes)) is None


def test_one_fall_tells_no_cycle():
    assert math.isnan(files_of(history(100, 110, 100)).every)


def test_an_increment_has_each_key_once():
    """1000 B of state, 1000 B rewritten: 1 - 1/e of it is in the increment."""
    assert pytest.approx(rewritten_bytes(1000 * (1 - math.exp(-1)), 1000)) == 1000
    assert pytest.approx(rewritten_bytes(5, 10**9)) == 5
    assert rewritten_bytes(20, 10) == 20, "more than there is: all that can be told"


def test_a_materialisation_holds_overwritten_entries_of_rocksdb():
    """State of 100 B, rewritten once over between two: 100 (2 - 1/e) right after the first, and 10 B of log."""
    first = 100 * (2 - math.exp(-1))
    files = files_of(history(first + 20, first - 10, first, first + 10, first + 20, first + 10, first + 20, first + 15))

    assert pytest.approx(below_log(files, 100)) == 100

"""Amounts behind sums: exact where they follow, bounded where they do not, and assumptions that fulfil every sum."""

import math

import pytest

from sim.jobs.infer.edges import AmountRange, Sum, alike, narrowed

OPEN = AmountRange()


def exact(value):
    return AmountRange(value, value)


def test_the_last_amount_of_a_sum_follows():
    """Each with its factor: 300 = 200 + 2 * 50; then 90 = 50 + 40."""
    sums = [Sum({1: 1.0, 2: 1.0}, 90.0), Sum({0: 1.0, 1: 2.0}, 300.0)]

    assert [exact(200.0), exact(50.0), exact(40.0)] == narrowed([exact(200.0), OPEN, OPEN], sums)


def test_amounts_that_fill_their_bounds_are_known():
    """Both inputs of a join of a stream with itself read all of it."""
    assert [exact(1000.0), exact(1000.0)] == narrowed([AmountRange(0.0, 1000.0)] * 2, [Sum({0: 1.0, 1: 1.0}, 2000.0)])


def test_what_no_sum_tells_has_bounds():
    assert [AmountRange(200.0, 1000.0)] * 2 == narrowed([AmountRange(0.0, 1000.0)] * 2, [Sum({0: 1.0, 1: 1.0}, 1200.0)])
    assert [AmountRange(600.0, 900.0), AmountRange(200.0, 500.0)] == narrowed(
        [AmountRange(0.0, 900.0), AmountRange(100.0, 500.0)], [Sum({0: 1.0, 1: 1.0}, 1100.0, is_least=True)]
    )


def test_a_sum_that_contradicts_takes_nothing_back():
    assert [exact(100.0), exact(0.0)] == narrowed([exact(100.0), OPEN], [Sum({0: 1.0, 1: 1.0}, 60.0)])


@pytest.mark.parametrize(
    ("rows", "sums", "expected"),
    [
        ([OPEN, OPEN], [Sum({0: 1.0, 1: 1.0}, 60.0)], [30.0, 30.0]),
        ([AmountRange(0.0, 10.0), OPEN], [Sum({0: 1.0, 1: 1.0}, 60.0)], [10.0, 50.0]),
        ([OPEN, OPEN, OPEN], [Sum({0: 1.0, 1: 1.0}, 60.0), Sum({1: 1.0, 2: 4.0}, 70.0)], [30.0, 30.0, 10.0]),
        ([AmountRange(2.0, 4.0)], [], [3.0]),
        ([AmountRange(2.0, math.inf)], [], [2.0]),
    ],
)
def test_assumptions_fulfil_every_sum(rows, sums, expected):
    assert expected == pytest.approx(alike(rows, sums))

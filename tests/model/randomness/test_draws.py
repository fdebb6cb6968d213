"""Draws: streams that do not know of each other, residuals of a history, and how much longer threads take on few cores."""

from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.model.randomness import MASK32, Residual, Residuals, Stream, chance, draw, drawn_ns, mix32, slowdown, stream

# Draws as functions: bijective mixing, streams that do not know of each other, products an int64 can hold.


integers = st.integers(0, MASK32)
INVERSE = pow(0x45D9F3B, -1, 2**32)


def unmixed(x):
    """mix32 backwards; x ^ (x >> 16) is its own inverse."""
    for _ in range(2):
        x = (x ^ (x >> 16)) * INVERSE & MASK32
    return x ^ (x >> 16)


@given(integers)
def test_mixing_is_a_bijection(x):
    """Every 32-bit integer has one image and is one image: no value of a stream is likelier than another."""
    assert x == unmixed(mix32(x))
    assert 0 <= mix32(x) <= MASK32


def test_mixing_is_pinned():
    """A change of these numbers changes every run: it is a new version of everything."""
    assert [mix32(x) for x in (0, 1, 2, MASK32)] == [0, 824515495, 1722258072, 539527247]
    assert Stream(stride=77784649, offset=478988236) == stream(7, "service", "map", 3)
    assert [draw(stream(7, "service", "map", 3), k) for k in (0, 10**9)] == [3741617941, 3166369277]


class Int64(int):
    """An integer that refuses to grow beyond what the compiled engine can hold."""

    def kept(self, value):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(value)
        return Int64(value)

    def __add__(self, other):
        return self.kept(int(self) + int(other))

    def __mul__(self, other):
        return self.kept(int(self) * int(other))

    def __xor__(self, other):
        return self.kept(int(self) ^ int(other))

    def __and__(self, other):
        return self.kept(int(self) & int(other))

    def __rshift__(self, other):
        return self.kept(int(self) >> int(other))

    __radd__, __rmul__, __rxor__, __rand__ = __add__, __mul__, __xor__, __and__


@given(st.integers(0, MASK32), st.integers(0, 2**30 - 1).map(lambda n: 2 * n + 1), integers)
@example(MASK32, 2**31 - 1, MASK32)
def test_no_step_of_a_draw_leaves_int64(offset, stride, k):
    """Compiled integers wrap at 2**63, interpreted ones do not: no intermediate result may get there, however large the index."""
    key, far = Stream(Int64(stride), Int64(offset)), k + 2**62

    assert draw(Stream(stride, offset), k) == draw(key, Int64(k))
    assert draw(Stream(stride, offset), far) == draw(key, Int64(far))


@given(st.integers(0, 2**63), st.text(max_size=8))
def test_keys_keep_within_their_bounds(seed, name):
    """An odd stride below 2**31 and an offset below 2**32 are what the products above rely on."""
    key = stream(seed, name)

    assert 0 < key.stride < 2**31
    assert key.stride % 2 == 1
    assert 0 <= key.offset <= MASK32


def test_streams_are_uniform_and_uncorrelated():
    """Mean 1/2, and neighbouring subtasks' streams agree on the upper half as often as coins do."""
    n = 20_000
    a, b = ([draw(stream(1, "service", "map", i), k) / 2**32 for k in range(n)] for i in (0, 1))
    agreeing = fmean((x < 0.5) == (y < 0.5) for x, y in zip(a, b, strict=True))

    assert abs(fmean(a) - 0.5) < 0.01
    assert abs(agreeing - 0.5) < 0.015


def test_a_chance_is_a_share_of_the_draws():
    """Never at 0, always at 1, and about as often as it says in between; the same k, the same answer."""
    key = stream(7, "chance")
    often = [chance(Fraction(1, 4), key, k) for k in range(4000)]

    assert not any(chance(Fraction(0), key, k) for k in range(100))
    assert all(chance(Fraction(1), key, k) for k in range(100))
    assert 0.22 < sum(often) / len(often) < 0.28
    assert often[17] == chance(Fraction(1, 4), key, 17)


# A simulated checkpoint draws one checkpoint of the history, for all its subtasks.


RESIDUALS = Residuals(
    4, (Residual("map", "sync", ((0, 1, 2, 3), (10, 11, 12, 13))), Residual("sink", "async", ((20, 21, 22, 23),)))
)


def row(checkpoint, seed=1):
    return drawn_ns(RESIDUALS, "sync", "map", 0, checkpoint, seed)


def test_all_subtasks_and_parts_take_the_same_checkpoint():
    for checkpoint in range(1, 50):
        drawn = row(checkpoint)

        assert 10 + drawn == drawn_ns(RESIDUALS, "sync", "map", 1, checkpoint, 1)
        assert 20 + drawn == drawn_ns(RESIDUALS, "async", "sink", 0, checkpoint, 1)


def test_further_subtasks_take_those_of_the_history_in_turn():
    assert [row(7), 10 + row(7), row(7)] == [drawn_ns(RESIDUALS, "sync", "map", subtask, 7, 1) for subtask in (2, 3, 4)]


def test_each_checkpoint_of_the_history_is_drawn_once_before_any_is_drawn_again():
    drawn = [row(checkpoint) for checkpoint in range(4000)]

    assert all({0, 1, 2, 3} == set(drawn[begin : begin + 4]) for begin in range(0, 4000, 4))
    assert all(900 < drawn[::4].count(value) * 4 < 1100 for value in range(4)), "in any order"


def test_another_seed_draws_others_and_the_same_seed_the_same():
    first, again, other = ([row(checkpoint, seed) for checkpoint in range(30)] for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_nothing_is_drawn_where_the_history_has_nothing():
    assert [drawn_ns(RESIDUALS, "async", "map", 0, 1, 1), drawn_ns(Residuals(), "sync", "map", 0, 1, 1)] == [0, 0]


# How much longer threads take where more of them want to run than there are cores.


@pytest.mark.parametrize(
    ("busy", "cores", "expected"),
    [
        ([1.0, 1.0, 1.0], 2, 1.5),
        ([1.0, 1.0], 2, 1.0),
        ([0.5, 0.5], 1, 1 / 0.75),  # both at once for a quarter of the time: 1.0 wanted, 0.75 done
        ([0.5, 0.5, 0.0], 1, 1 / 0.75),
        ([], 1, 1.0),
        ([0.0, 0.0, 0.0], 2, 1.0),
        ([1.2, -0.1, 1.0], 1, 2.0),  # what gauges round
    ],
)
def test_cores_do_the_work_of_as_many_threads(busy, cores, expected):
    assert expected == pytest.approx(slowdown(busy, cores))

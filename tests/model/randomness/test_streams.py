"""Draws as functions: bijective mixing, streams that do not know of each other, products an int64 can hold."""

from fractions import Fraction
from statistics import fmean

from hypothesis import example, given
from hypothesis import strategies as st

from sim.model.randomness import MASK32, Stream, chance, draw, mix32, stream

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

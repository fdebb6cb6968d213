"""Packed records behave as a tuple of the same records."""

import pickle
from dataclasses import dataclass
from fractions import Fraction

import pytest

from sim.model.job import Rate
from sim.model.packed_records import PackedRecords


@dataclass(frozen=True)
class Pair:
    a: int
    b: int


PAIRS = (Pair(1, -5), Pair(4, 7), Pair(9, 0))
PACKED = PackedRecords(Pair, ((pair.a, pair.b) for pair in PAIRS))


def test_they_equal_the_tuple_in_every_way_of_looking():
    assert PAIRS == PACKED
    assert tuple(PACKED) == PAIRS
    assert (3, PAIRS[0], PAIRS[-1], list(PAIRS[1:])) == (len(PACKED), PACKED[0], PACKED[-1], PACKED[1:])
    assert hash(PAIRS) == hash(PACKED)
    assert repr(PAIRS) == repr(PACKED)
    assert pickle.loads(pickle.dumps(PACKED)) == PACKED


def test_other_records_are_not_equal():
    assert PAIRS[:2] != PACKED
    assert PackedRecords(Pair, [(1, -5)]) != PACKED


def test_none_is_a_series_too():
    empty = PackedRecords(Pair)
    assert (len(empty), list(empty), empty.last_until(0, 5)) == (0, [], -1)
    assert not empty
    with pytest.raises(IndexError):
        empty[0]


def test_the_last_record_up_to_a_limit_is_found():
    assert [PACKED.last_until(0, limit) for limit in (0, 1, 3, 4, 9, 100)] == [-1, 0, 0, 1, 2, 2]


def test_numbers_beyond_64_bits_stay_what_they_are():
    assert (Pair(2**70, 1),) == PackedRecords(Pair, [(2**70, 1)])


def test_rates_are_made_of_their_integers():
    assert (Rate(5, Fraction(1, 3)),) == PackedRecords(Rate.of_integers, [(5, 1, 3)])


def test_a_record_of_a_day_takes_its_integers_and_no_more():
    packed = PackedRecords(Rate.of_integers, ((i, i, 7) for i in range(10_000)))
    assert len(pickle.dumps(packed)) < 10_000 * 3 * 8 + 1000

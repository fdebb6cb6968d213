"""How much records add to state."""

from fractions import Fraction

import pytest

from sim.model.state import State


def test_with_a_limit_ever_fewer_keys_are_new():
    """1,000 keys of 1 kB, each record with one of them: after 1,000 records 1 - 1/e of them have come, and in the end all."""
    state = State(0, growth_bytes=1000, limit_bytes=1_000_000)

    assert [pytest.approx(state.added_bytes(0, records), rel=0.001) for records in (0, 1000, 20_000)] == [
        0,
        632_000,
        1_000_000,
    ]
    first = state.added_bytes(0, 1000)
    assert state.added_bytes(0, 3000) == pytest.approx(first + state.added_bytes(first, 2000), abs=2)


def test_a_part_of_the_keys_comes_to_its_part_of_the_limit():
    """A quarter of the key groups; what is above the limit already stays."""
    state = State(0, growth_bytes=1000, limit_bytes=1_000_000)

    assert pytest.approx(state.added_bytes(0, 100_000, Fraction(1, 4)), rel=0.001) == 250_000
    assert state.added_bytes(250_001, 100_000, Fraction(1, 4)) == 0


def test_each_record_brings_a_key_or_meets_one_that_is_there():
    state = State(0, growth_bytes=100, limit_bytes=1_000_000, update_share=Fraction(1), value_bytes=100)

    assert state.rewrites(0, 10_000) + state.added_bytes(0, 10_000) // 100 == 10_000


def test_half_of_the_records_that_meet_a_key_rewrite_it():
    state = State(0, growth_bytes=100, limit_bytes=1_000_000, update_share=Fraction(1, 2), value_bytes=100)

    assert state.rewrites(1_000_000, 1000) == 500
    assert state.rewrites(0, 1000) < 50


def test_without_a_limit_records_rewrite_and_bring_keys():
    assert State(0, growth_bytes=100, update_share=Fraction(1)).rewrites(0, 1000) == 1000

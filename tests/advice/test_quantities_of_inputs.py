"""Values of a scenario with their kinds, and as a person would write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.advice.requirements import ParsedQuantity


@pytest.mark.parametrize("written", ["10 s", "2 MB", "2 MB/s", "2k/s", "20 %", 3, 0.75])
def test_what_is_read_is_written_again(written):
    assert written == ParsedQuantity.parse(written).written()


@given(st.integers(7 * 10**6, 780 * 10**9))
def test_what_is_written_is_read_again(duration_ns):
    quantity = ParsedQuantity("duration", duration_ns)

    assert quantity == ParsedQuantity.parse(quantity.written())


@pytest.mark.parametrize("given", ["fast", "10 parsecs", True, None, ["1 s"], "unlimited"])
def test_what_has_no_kind(given):
    assert ParsedQuantity.parse(given) is None

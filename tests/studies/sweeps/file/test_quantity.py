"""Values between two values, of the same kind and written as a person would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.studies.sweeps.design import ParsedQuantity, QuantityError


@pytest.mark.parametrize(
    ("low", "high", "share", "log", "expected"),
    [
        ("5 s", "15 s", 0.5, False, "10 s"),
        ("1 s", "100 s", 0.5, True, "10 s"),
        ("1 MB", "3 MB", 0.5, False, "2 MB"),
        ("1 MB/s", "3 MB/s", 0.5, False, "2 MB/s"),
        ("1k/s", "3k/s", 0.5, False, "2k/s"),
        ("10 %", "30 %", 0.5, False, "20 %"),
        (1, 4, 0.0, False, 1),
        (1, 4, 0.999, False, 4),
        (1, 4, 0.5, False, 3),
        (0.5, 1.5, 0.25, False, 0.75),
        (1, 1000, 0.5, True, 32),
        (0.25, 0.75, 0.5, False, 0.5),
        (0, 10, 1.0, False, 10),
        (0.5, 1.5, 0.123456, False, 0.6235),
        ("0 s", "1 s", 0.123456, False, "123.5 ms"),
        ("0 B", "1 MB", 0.123456, False, "123.5 kB"),
    ],
)
def test_between(low, high, share, log, expected):
    """Counts are as likely one as the other, ends included."""
    assert expected == ParsedQuantity.parse(low).between(ParsedQuantity.parse(high), share, log=log).written()


@given(st.floats(0, 1), st.booleans())
def test_what_is_written_is_read_again(share, log):
    """And lies between the two, to the digits written."""
    between = ParsedQuantity.parse("7 ms").between(ParsedQuantity.parse("13 min"), share, log=log)

    assert between == ParsedQuantity.parse(between.written())
    assert 0.999 * 7e6 <= between.value <= 1.001 * 13 * 60e9


@pytest.mark.parametrize("given", ["fast", "10 parsecs", True, None, ["1 s"]])
def test_what_has_no_kind(given):
    with pytest.raises(QuantityError, match="neither a number nor a quantity"):
        ParsedQuantity.parse(given)

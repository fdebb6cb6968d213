"""Differences of pairs, and their texts."""

import math

import pytest

from sim.results.estimates import PairedChange
from sim.results.formats import ms_text


@pytest.mark.parametrize(
    ("value", "half_width", "text", "is_sure"),
    [
        (3100.0, 400.0, "+3.1 s ± 400 ms", True),
        (-3100.0, 400.0, "-3.1 s ± 400 ms", True),
        (400.0, 400.0, "+400 ms ± 400 ms", False),
        (3100.0, 0.0, "+3.1 s", True),
        (3100.0, math.inf, "+3.1 s", True),
        (0.0, 0.0, "0 ms", False),
        (0.0, math.inf, "0 ms", False),
        (0.0, 5.0, "0 ms ± 5 ms", False),
        (math.nan, math.nan, "-", False),
        (math.inf, 3.0, "-", True),
    ],
)
def test_a_change_is_sure_if_its_interval_leaves_out_zero(value, half_width, text, is_sure):
    """A single pair has no interval, and its difference is exact for its seed."""
    change = PairedChange(value, half_width)

    assert (text, is_sure) == (change.text(ms_text), change.is_sure)

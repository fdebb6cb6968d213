"""Differences of pairs, and their texts."""

import math

import numpy as np
import pytest

from sim.results.estimates import PairedChange, paired_change
from sim.results.formats import change_text, ms_text


def test_a_change_of_changes_has_one_sign():
    """The text of a relative change has a sign already."""
    assert PairedChange(-0.007, 0.002).text(change_text) == "-0.7 % ± 0.2 %"
    assert PairedChange(0.007, 0.0).text(change_text) == "+0.7 %"


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


def test_the_change_is_the_mean_of_the_differences():
    """1, 2 and 3 differ by 2 +- t(2) / sqrt(3); what all pairs share cancels."""
    change = paired_change(np.array([10.0, 50.0, 90.0]), np.array([11.0, 52.0, 93.0]))

    assert (2.0, pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)) == (change.value, change.half_width)
    assert (1.0, math.inf) == (
        paired_change(np.array([1.0]), np.array([2.0])).value,
        paired_change(np.array([1.0]), np.array([2.0])).half_width,
    )


@pytest.mark.parametrize(
    ("before", "after"), [([], []), ([1.0, math.nan], [2.0, 3.0]), ([math.inf, 1.0], [math.inf, 2.0])]
)
def test_a_pair_without_a_value_makes_the_change_unknown(before, after):
    change = paired_change(np.array(before), np.array(after))

    assert math.isnan(change.value)
    assert math.isnan(change.half_width)

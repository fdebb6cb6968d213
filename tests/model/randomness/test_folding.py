"""Sums of independent values have the law that they have on paper."""

import math
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, pstdev

import pytest

from sim.model.job import Distribution
from sim.model.randomness import SLICES, folded, quantile_table

MEAN = 1_000_000
LAWS = [
    (Distribution(MEAN, "constant"), 0.0),
    (Distribution(MEAN, "exponential"), 1.0),
    (Distribution(MEAN, "uniform"), 1 / math.sqrt(3)),
    (Distribution(MEAN, "erlang", 0.5), 0.5),
    (Distribution(MEAN, "shifted-exponential", 0.3), 0.3),
    (Distribution(MEAN, "lognormal", 0.8), 0.8),
]


@pytest.mark.parametrize(("term", "cv"), LAWS, ids=[law.kind for law, _ in LAWS])
@pytest.mark.parametrize("terms", [2, 10])
def test_the_mean_stays_and_the_spread_falls_with_the_root(term, cv, terms):
    table = quantile_table(replace(term, mean=terms * MEAN, terms=terms))

    assert terms * MEAN == pytest.approx(fmean(table), rel=1e-6)
    assert cv / math.sqrt(terms) == pytest.approx(pstdev(table) / fmean(table), rel=0.03)
    assert list(table) == sorted(table)


def test_folding_finds_the_law_that_is_known():
    """The sum of exponential terms has an Erlang law, entry by entry."""
    exponential = folded(lambda u: u + (1 - u) * math.log1p(-u) if u < 1 else 1.0, 10)
    found = [SLICES * (b - a) for a, b in pairwise([exponential(i / SLICES) for i in range(SLICES)] + [1.0])]
    known = quantile_table(Distribution(10 * MEAN, "exponential", terms=10))

    assert [entry / (10 * MEAN) for entry in known[:-4]] == pytest.approx(found[:-4], rel=4e-3)


def test_sums_of_two_uniform_values_are_a_triangle():
    """Its quantiles are known: below the middle, the root of half the chance."""
    table = quantile_table(Distribution(2 * MEAN, "uniform", terms=2))  # of two values between 0 and 2 means

    assert [4 * MEAN * math.sqrt(u / 2) for u in (0.1, 0.25, 0.5)] == pytest.approx(
        [table[round(u * SLICES)] for u in (0.1, 0.25, 0.5)], rel=2e-3
    )

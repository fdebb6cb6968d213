"""Distributions: as tables, as sums of independent values, and as times between faults."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from statistics import fmean, mean, pstdev, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import gap_ns
from sim.model.job import Distribution
from sim.model.randomness import SLICES, quantile_table, share_table, size_table, stream

# Distributions as tables: the mean is kept, the order ascends, the spread is the one asked for.


MS = 1_000_000
SPREAD = [  # (law, standard deviation / mean)
    (Distribution(MS, "uniform"), 3**-0.5),
    (Distribution(MS, "exponential"), 1),
    (Distribution(MS, "lognormal", 0.3), 0.3),
    (Distribution(MS, "lognormal", 1.5), 1.5),
    (Distribution(MS, "shifted-exponential", 0.3), 0.3),
    (Distribution(MS, "erlang", 1.0), 1),
    (Distribution(MS, "erlang", 0.5), 0.5),
    (Distribution(MS, "erlang", 0.1), 0.1),
    (Distribution(MS, "erlang", 0.03), 0.03),  # more than a thousand stages: exp(-x) is not a number any more
    (Distribution(MS, "erlang", 0.001), 0.001),
]
laws = pytest.mark.parametrize(("law", "cv"), SPREAD, ids=[f"{law.kind} {cv:.3g}" for law, cv in SPREAD])


@laws
def test_the_mean_is_kept(law, cv):
    """Slices telescope: all that is left is what rounding 4096 entries to integers leaves."""
    assert fmean(quantile_table(law)) == pytest.approx(MS, abs=0.05)


@laws
def test_entries_ascend(law, cv):
    table = quantile_table(law)

    assert len(table) == SLICES
    assert all(0 <= a <= b for a, b in pairwise(table))


@laws
def test_the_spread_is_the_one_asked_for(law, cv):
    """The tail beyond 4095/4096 is one slice: a law with a heavy one loses a little."""
    assert pstdev(quantile_table(law)) / MS == pytest.approx(cv, rel=0.02)


@given(st.integers(0, 50), st.sampled_from(["uniform", "exponential", "lognormal"]))
def test_small_means_are_kept_too(mean, kind):
    """Where an entry is a few units, rounding moves the mean by less than half of one."""
    table = quantile_table(Distribution(mean, kind, 0.5))

    assert abs(fmean(table) - mean) < 0.5


def test_one_stage_is_exponential():
    """Erlang with cv 1 is the exponential law, entry by entry."""
    pairs = zip(
        quantile_table(Distribution(MS, "erlang", 1.0)), quantile_table(Distribution(MS, "exponential")), strict=True
    )

    assert all(abs(a - b) <= 1 for a, b in pairs)


@pytest.mark.parametrize("cv", [0.5, 0.1, 0.03])
def test_erlang_leans_as_it_should(cv):
    """Skewness is 2 cv: that is what tells it from a lognormal law (3 cv and more) or a normal one."""
    table = quantile_table(Distribution(MS, "erlang", cv))

    assert fmean(((x - MS) / (cv * MS)) ** 3 for x in table) == pytest.approx(2 * cv, rel=0.05)


@given(st.lists(st.integers(0, 100).map(Fraction), min_size=1, max_size=40).filter(any))
def test_shares_add_up(shares):
    """Whatever is rounded: every entry belongs to somebody, nobody is off by more than one entry."""
    table, total = share_table(shares), sum(shares)
    entries = Counter(table)

    assert len(table) == SLICES
    assert tuple(sorted(table)) == table
    assert all(abs(entries[i] - SLICES * share / total) <= 1 for i, share in enumerate(shares))


@pytest.mark.parametrize("mean", [1, 3, 1000])
@pytest.mark.parametrize("kind", ["exponential", "uniform", "lognormal", "erlang"])
def test_every_record_has_a_byte(mean, kind):
    """What rounds to nothing is one byte, everything else stays as it was drawn."""
    law = Distribution(mean, kind, 1.0)

    assert [max(1, size) for size in quantile_table(law)] == list(size_table(law))
    assert min(size_table(law)) >= 1


# Laws of the time between faults.


HOUR = 3_600_000_000_000
N = 4000


@pytest.mark.parametrize(
    ("law", "cv"),
    [
        (Distribution(HOUR), 0),
        (Distribution(HOUR, "exponential"), 1),
        (Distribution(HOUR, "lognormal", cv=0.5), 0.5),
    ],
)
def test_mean_and_spread_are_those_of_the_law(law, cv):
    """Mean within four standard errors; coefficient of variation within 10 %."""
    gaps = [gap_ns(law, stream(1, "faults", law.kind), k) for k in range(N)]

    assert abs(mean(gaps) / HOUR - 1) <= 4 * cv / sqrt(N)
    assert cv == pytest.approx(stdev(gaps) / mean(gaps), rel=0.1)


def test_times_are_a_function_of_seed_and_number():
    law = Distribution(HOUR, "exponential")

    assert gap_ns(law, stream(3, "a"), 7) == gap_ns(law, stream(3, "a"), 7)
    assert gap_ns(law, stream(3, "a"), 7) != gap_ns(law, stream(4, "a"), 7)

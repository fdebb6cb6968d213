"""Durations of which some did not end."""

import numpy as np
import pytest

from sim.results.estimates import median_of_few, quantile, quantiles


@pytest.mark.parametrize(
    ("ended", "unfinished", "expected"),
    [
        ([11.0], [], (11.0, False)),
        ([11.0], [10.0], (10.5, True)),  # the second failure came ten seconds before the end: both count
        ([11.0, 12.0, 13.0], [2.0], (11.5, True)),
        ([11.0, 12.0, 13.0], [40.0, 50.0], (13.0, False)),  # the median is known, whatever the others take
        ([], [7.0], (7.0, True)),
        ([], [], (np.nan, False)),
    ],
)
def test_median_of_failures(ended, unfinished, expected):
    """Those that did not end count with the time so far; it is a bound if they could move it."""
    value, is_bound = median_of_few(np.array(ended), np.array(unfinished))

    assert (pytest.approx(expected[0], nan_ok=True), expected[1]) == (value, is_bound)


@pytest.mark.parametrize(
    ("ended", "unfinished", "share", "expected"),
    [
        ([5.0] * 9, [1.0], 0.99, (5.0, False)),  # under way when the run ended, and no later than the others
        ([5.0] * 9, [600.0], 0.5, (5.0, False)),  # one of ten expired
        ([5.0] * 9, [600.0], 1.0, (600.0, True)),
        ([5.0] * 9, [600.0], 0.99, (pytest.approx(546.45), True)),
        ([1.0, 2.0], [600.0, 600.0], 0.5, (pytest.approx(301.0), True)),
        ([], [600.0], 0.5, (600.0, True)),
        ([], [], 0.5, (pytest.approx(np.nan, nan_ok=True), False)),
    ],
)
def test_quantiles_of_checkpoints(ended, unfinished, share, expected):
    """Those that expired are beyond all others; those that are under way say nothing until they are late."""
    assert expected == tuple(quantile(np.array(ended), np.array(unfinished), share))


def test_a_quantile_is_a_bound_if_a_lower_one_is():
    """One that waits for 60.2 s counts beyond the median of 60 s, and not beyond the longest, 60.5 s: that may grow as well."""
    ended, unfinished = np.array([60.0, 60.0, 60.5]), np.array([60.2, 60.2, 60.2])

    assert [(pytest.approx(60.2), True), (60.5, True)] == quantiles(ended, unfinished, 0.5, 1.0)


def test_hiding_slow_ones_never_makes_a_quantile_smaller():
    """A checkpoint that expires at its timeout instead of completing before it."""
    chance = np.random.default_rng(1)
    for _ in range(300):
        durations = np.sort(chance.lognormal(3, 1, chance.integers(1, 30)))
        count, share = chance.integers(0, len(durations) + 1), chance.choice([0.5, 0.9, 0.99, 1.0])
        kept, hidden = np.split(durations, [len(durations) - count])
        timeout = np.full(len(hidden), durations.max() * 1.5)

        assert quantile(kept, timeout, share).value >= quantile(durations, np.array([]), share).value - 1e-9
        assert median_of_few(kept, timeout).value >= median_of_few(durations, np.array([])).value - 1e-9

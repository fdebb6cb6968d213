"""Choices among settings, on tables that can be counted on paper."""

from math import nan

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_answers import (
    TIE_TOLERANCE,
    Limit,
    _cap_bounds,
    choose,
    counts,
    observed,
    pooled_samples,
    smallest_sample_of,
    surely_worse,
)
from tests.results.analysis.sweeps.made_up import rows_of

COLUMN = "caught_up_ms"


def chosen(rows, *limits, **options):
    return choose(rows, ["checkpoint.interval"], COLUMN, limits, **options)


@pytest.mark.parametrize(
    ("limit", "broken", "unsure", "exceeded"),
    [
        (Limit("lag_s", at_most=2.0), (), ("lag_s",), [("w2", 3.0)]),
        (Limit("lag_s", at_least=2.0), (), ("lag_s",), [("w0", 1.0)]),
        (Limit("lag_s", at_most=1.9), ("lag_s",), ("lag_s",), [("w2", 3.0), ("w1", 2.0)]),
        (Limit("lag_s", at_least=2.5), ("lag_s",), ("lag_s",), [("w0", 1.0), ("w1", 2.0)]),
        (Limit("lag_s", at_most=4.6), (), (), []),
        (Limit("lag_s", at_most=4.4), (), ("lag_s",), []),
    ],
)
def test_a_limit_is_about_the_mean_and_windows_that_break_it_are_named(limit, broken, unsure, exceeded):
    """The mean of 1, 2 and 3 is 2, off by 2.48 with 95 %; the worst window stands first."""
    rows = rows_of({"10 s": [1.0, 2.0, 3.0]}).assign(lag_s=[1.0, 2.0, 3.0])
    (standing,) = chosen(rows, limit).standings

    assert (broken, unsure, exceeded) == (
        standing.broken,
        standing.unsure,
        [(own.window, own.value) for own in standing.exceeded],
    )
    assert ("lag_s",) * len(exceeded) == tuple(own.column for own in standing.exceeded)


def test_the_fewest_changes_decide_among_equals():
    """Today's has another interval and another way; both others change, one of them one thing only."""
    rows = rows_of({"10 s": [5.0, 9.0], "30 s": [5.2, 8.9], "60 s": [50.0, 60.0]})
    rows.insert(0, "way", rows["checkpoint.interval"].map({"10 s": "a", "30 s": "b", "60 s": "b"}))

    def of(reference):
        found = choose(rows, ["checkpoint.interval", "way"], COLUMN, (), reference)
        return found.advised, found.reason

    assert of(("90 s", "b")) == (("30 s", "b"), "changes")
    assert of(("7 s", "c")) == (("10 s", "a"), "least")
    assert of(()) == (("10 s", "a"), "least")
    assert of(("30 s", "b")) == (("30 s", "b"), "reference")


def test_a_mean_above_zero_is_sure_by_students_t():
    """Two differences: t is 12.7 at 95 % of both sides; 1 and 2 have a mean of 1.5 and an error of 0.5."""
    apart = np.array([[1.0, 1.0, 3.0, 0.0, nan], [2.0, 1.1, 3.0, 0.0, 5.0]])

    settings = np.column_stack([apart, np.zeros(2)])  # each column against the last one
    unfinished = np.zeros(settings.shape, dtype=bool)
    found = {share: surely_worse(settings, unfinished, share)[:-1, -1].tolist() for share in (0.95, 0.85, 0.75)}
    assert found[0.95] == found[0.85] == [False, True, True, False, False]  # t is 4.17
    assert found[0.75] == [True, True, True, False, False]  # t is 2.41


def test_a_window_in_which_a_setting_did_not_run():
    rows = rows_of({"10 s": [1.0, 2.0], "30 s": [0.0, 0.0]})
    found = chosen(rows[(rows["checkpoint.interval"] == "10 s") | (rows["window"] == "w0")])

    assert (found.standing(("30 s",)).absent, found.standing(("30 s",)).eligible, found.advised) == (
        1,
        False,
        ("10 s",),
    )


def test_values_that_agree_to_nine_digits_are_a_tie():
    values = 1e6 * np.array([[1 + 2 * TIE_TOLERANCE, 1.0], [1 + 2 * TIE_TOLERANCE, 1.0]])

    assert surely_worse(values, np.zeros((2, 2), dtype=bool), 0.95)[0, 1]
    close = 1e6 * np.array([[1 + TIE_TOLERANCE / 2, 1.0], [1 + TIE_TOLERANCE / 2, 1.0]])
    assert not surely_worse(close, np.zeros((2, 2), dtype=bool), 0.95).any()


def test_a_bound_counts_no_more_than_makes_differences_clearest():
    """For 1 and 3 that is 10 / 4; without others, or where these speak against it, it counts as it is."""
    late = np.array([False, False, True])

    assert _cap_bounds(np.array([1.0, 3.0, 99.0]), late).tolist() == [1.0, 3.0, 2.5]
    assert _cap_bounds(np.array([1.0, 3.0, 2.0]), late).tolist() == [1.0, 3.0, 2.0]
    assert _cap_bounds(np.array([-1.0, 1.0, 99.0]), late).tolist() == [-1.0, 1.0, 99.0]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (Limit("x", at_most=5), [True, True, False, False]),
        (Limit("x", at_least=5), [False, True, True, False]),
    ],
)
def test_a_limit_includes_its_bound(limit, kept):
    """A missing mean breaks it."""
    assert kept == [limit.kept(value) for value in (4, 5, 6, nan)]


@pytest.mark.parametrize(
    ("axes", "sample"),
    [
        ({"window": ["a", "a", "b", "b"], "replication": [0, 1, 0, 1]}, "windows"),
        ({"load": ["a", "a", "b", "b"], "replication": [0, 1, 0, 1]}, "worlds"),
        ({"window": ["a"] * 4, "replication": [0, 1, 2, 3]}, "seeds"),
        ({"window": ["a"] * 4, "run.seed": [1, 1, 1, 1]}, "windows"),
    ],
)
def test_the_sample_is_what_varies_beside_the_settings(axes, sample):
    rows = pd.DataFrame(axes | {"interval": "10 s", "strategy": "x", "status": "ok", "y": [1.0, 2.0, 3.0, 4.0]})
    seen = observed(rows, ["interval"], "y")

    assert sample == seen.sample
    assert {"windows": 2, "worlds": 2, "seeds": 4}.get(sample) in (
        len(seen.scores),
        *([2] if len(seen.scores) == 1 else []),
    )


def test_samples_of_percentiles_are_pooled():
    """Runs that failed have none."""
    rows = rows_of({"10 s": [1.0, 2.0], "30 s": [3.0, 4.0]}, column="end_to_end_p99_ms").assign(
        completed=[40, 70, 5, 6]
    )
    rows.loc[3, "status"] = "error"

    assert pooled_samples(rows, ["checkpoint.interval"], "end_to_end_p99_ms") == {("10 s",): 110, ("30 s",): 5}
    assert (
        {}
        == pooled_samples(rows, ["checkpoint.interval"], COLUMN)
        == pooled_samples(rows.drop(columns="completed"), ["checkpoint.interval"], "end_to_end_p99_ms")
    )
    assert (
        smallest_sample_of("end_to_end_p99_ms"),
        smallest_sample_of("end_to_end_p90_ms"),
        smallest_sample_of("lag_s"),
    ) == (100, 10, 1)
    assert counts(rows, "lag_s").empty

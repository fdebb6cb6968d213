"""Choices among settings, on tables that can be counted on paper."""

from math import nan, sqrt

import numpy as np
import pandas as pd
import pytest

from sim.results.estimates import critical
from sim.results.sweep_answers import (
    TIE_TOLERANCE,
    Limit,
    _cap_bounds,
    _surely_above_zero,
    choose,
    counts,
    pooled_samples,
    smallest_sample_of,
    surely_worse,
)
from sim.results.sweep_values import numbered, observed
from tests.results.analysis.sweeps.made_up import rows_of

COLUMN = "caught_up_ms"


def chosen(rows, *limits, **options):
    return choose(rows, ["checkpoint.interval"], COLUMN, limits, **options)


def test_a_standing_counts_windows():
    """The mean of 1, 2 and 3 and its interval; one bound that another setting has not, one run that failed, one window not run."""
    rows = rows_of(
        {"10 s": [1.0, 2.0, 3.0], "30 s": [5.0, 5.0, 9.0], "60 s": [7.0, 8.0, 9.0]}, bounds=[("30 s", 2)], lag_s=4.0
    )
    rows.loc[(rows["checkpoint.interval"] == "60 s") & (rows["window"] == "w0"), "status"] = "error"
    rows = rows[~((rows["checkpoint.interval"] == "60 s") & (rows["window"] == "w2"))]
    found = chosen(rows, Limit("lag_s", at_most=4.5))
    best, behind, failed = (found.standing((name,)) for name in ("10 s", "30 s", "60 s"))

    assert (2.0, pytest.approx(critical(3, 0.95) / sqrt(3)), 0, 0, 0, (), ()) == (
        best.value,
        best.half_width,
        best.behind,
        best.failed,
        best.absent,
        best.broken,
        best.exceeded,
    )
    assert (behind.behind, behind.failed, behind.eligible) == (1, 0, True)
    assert (failed.failed, failed.absent, failed.eligible) == (1, 1, False)
    assert found.advised == ("10 s",)
    assert (
        found.windows,
        found.sample,
        found.hopeless,
        found.failed,
        found.compared,
        found.unmeasured,
        found.needed,
    ) == (("w0", "w1", "w2"), "windows", (), (), 3, (), 1)
    assert [standing.setting[0] for standing in found.standings] == ["10 s", "30 s", "60 s"]


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


def test_windows_in_which_all_fail_tell_nothing():
    rows = rows_of({"10 s": [1.0, 9.0, 1.0], "30 s": [2.0, 9.0, 2.0]})
    rows.loc[rows["window"] == "w1", "status"] = "error"
    found = chosen(rows)

    assert (found.failed, found.compared, found.standing(("10 s",)).value, found.standing(("10 s",)).failed) == (
        ("w1",),
        2,
        1.0,
        0,
    )


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

    assert _surely_above_zero(apart, 0.95).tolist() == [False, True, True, False, False]
    assert _surely_above_zero(apart, 0.75).tolist() == [True, True, True, False, False]  # t is 2.41
    assert _surely_above_zero(apart, 0.99).tolist() == [False, False, True, False, False]  # t is 63.7
    assert _surely_above_zero(-apart[:, :1], 0.5).tolist() == [False]


def test_comparisons_of_all_pairs_share_the_error():
    """With one pair 0.05 are left for it, with three a third: t of one degree is 12.7, and 38.2."""
    own, best = np.array([1.0, 1.1]), np.zeros(2)
    of_two, of_three = np.column_stack([own, best]), np.column_stack([own, best, best + 50])
    ends = np.zeros((2, 3), dtype=bool)

    assert surely_worse(of_two, ends[:, :2])[0, 1]
    assert not surely_worse(of_three, ends)[0, 1]
    assert surely_worse(of_three, ends)[2].tolist() == [True, True, False]


def test_nothing_is_worse_than_what_had_not_ended():
    values, unfinished = np.array([[9.0, 1.0], [9.0, 1.0], [9.0, 1.0]]), np.zeros((3, 2), dtype=bool)
    unfinished[0, 1] = True

    assert surely_worse(values, unfinished).tolist() == [[False, False], [False, False]]
    unfinished[0, 0] = True
    assert surely_worse(values, unfinished).tolist() == [[False, True], [False, False]]
    missing = np.where([[True, True], [False, False], [False, False]], nan, values)
    assert surely_worse(missing, np.array([[False, True], [False, False], [False, False]]))[0, 1]


def test_values_that_agree_to_nine_digits_are_a_tie():
    values = 1e6 * np.array([[1 + 2 * TIE_TOLERANCE, 1.0], [1 + 2 * TIE_TOLERANCE, 1.0]])

    assert surely_worse(values, np.zeros((2, 2), dtype=bool))[0, 1]
    close = 1e6 * np.array([[1 + TIE_TOLERANCE / 2, 1.0], [1 + TIE_TOLERANCE / 2, 1.0]])
    assert not surely_worse(close, np.zeros((2, 2), dtype=bool)).any()


def test_a_bound_counts_no_more_than_makes_differences_clearest():
    """For 1 and 3 that is 10 / 4; without others, or where these speak against it, it counts as it is."""
    late = np.array([False, False, True])

    assert _cap_bounds(np.array([1.0, 3.0, 99.0]), late).tolist() == [1.0, 3.0, 2.5]
    assert _cap_bounds(np.array([1.0, 3.0, 2.0]), late).tolist() == [1.0, 3.0, 2.0]
    assert _cap_bounds(np.array([-1.0, 1.0, 99.0]), late).tolist() == [-1.0, 1.0, 99.0]


@pytest.mark.parametrize(
    ("limit", "kept", "known"),
    [
        (Limit("x", at_most=5), [True, True, False, False], [False, False]),
        (Limit("x", at_least=5), [False, True, True, False], [False, True]),
    ],
)
def test_a_limit_includes_its_bound(limit, kept, known):
    """A missing mean breaks it; what had not ended keeps no upper one."""
    assert kept == [limit.kept(value) for value in (4, 5, 6, nan)]
    assert known == [limit.keeps(4, is_bound=True), limit.keeps(6, is_bound=True)]
    assert limit.keeps(5, is_bound=False)


def test_seeds_are_averaged_within_windows():
    """Two seeds of 1 and 3 are a window of 2; what had not ended counts as the longest known in its world."""
    rows = rows_of({"10 s": [[1.0, 3.0], [5.0, 7.0]], "30 s": [[2.0, 2.0], [9.0, 9.0]]})
    seen = observed(rows, ["checkpoint.interval"], COLUMN)
    early = observed(rows.assign(unfinished=[COLUMN] + [""] * 7), ["checkpoint.interval"], COLUMN)

    assert seen.scores.to_numpy().tolist() == [[2.0, 2.0], [6.0, 9.0]]
    assert seen.runs.to_numpy().tolist() == [[2, 2], [2, 2]]
    assert early.scores.iloc[0].tolist() == [2.5, 2.0]  # 2 ms are known of the first seed's world
    assert [[True, False], [False, False]] == early.unfinished.to_numpy().tolist() == early.behind.to_numpy().tolist()
    assert not seen.hopeless.any()


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


def test_combinations_are_numbered_in_their_order():
    rows = pd.DataFrame({"a": ["x", "y", "x", None], "b": [1, 1, 2, 1]})

    assert (
        numbered(rows, ["a", "b"])[0],
        numbered(rows, ["a", "b"])[1].tolist(),
    ) == ([("x", "1"), ("y", "1"), ("x", "2"), ("", "1")], [0, 1, 2, 3])
    assert (numbered(rows, [])[0], numbered(rows, [])[1].tolist()) == ([()], [0, 0, 0, 0])
    assert numbered(rows[:0], ["a"])[0] == []


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

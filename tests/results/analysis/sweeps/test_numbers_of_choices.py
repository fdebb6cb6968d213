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
    is_significantly_worse,
    observed,
    pooled_samples,
    smallest_sample_of,
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
    found = {
        share: is_significantly_worse(settings, unfinished, share)[:-1, -1].tolist() for share in (0.95, 0.85, 0.75)
    }
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

    assert is_significantly_worse(values, np.zeros((2, 2), dtype=bool), 0.95)[0, 1]
    close = 1e6 * np.array([[1 + TIE_TOLERANCE / 2, 1.0], [1 + TIE_TOLERANCE / 2, 1.0]])
    assert not is_significantly_worse(close, np.zeros((2, 2), dtype=bool), 0.95).any()


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


LOAD = 10 * np.random.default_rng(1).random(8)
NOISE = np.random.default_rng(2).standard_normal((5, 8))


def advised(rows, *limits, reference=(), **keys):
    return choose(rows, ["checkpoint.interval"], COLUMN, limits, reference, **keys)


HIDDEN = {
    "a bound": lambda rows, hidden: rows.assign(unfinished=rows["unfinished"].mask(hidden, COLUMN)),
    "a bound that is cut off early": lambda rows, hidden: rows.assign(
        unfinished=rows["unfinished"].mask(hidden, COLUMN), **{COLUMN: rows[COLUMN].mask(hidden, 1.0)}
    ),
    "no value": lambda rows, hidden: rows.assign(**{COLUMN: rows[COLUMN].mask(hidden)}),
    "a dead job": lambda rows, hidden: rows.assign(job_status=rows["job_status"].mask(hidden, "FAILED: killed")),
    "a cell without a result": lambda rows, hidden: rows.assign(
        status=rows["status"].mask(hidden, "error"), **{COLUMN: rows[COLUMN].mask(hidden)}
    ),
    "no row": lambda rows, hidden: rows[~hidden],
}


@pytest.mark.parametrize("way", HIDDEN)
def test_hiding_the_worst_runs_never_helps(way):
    """A permutation test: whichever setting hides how many of its worst windows, its rank and its place in the set get no better."""
    chance = np.random.default_rng(7)
    for _ in range(20):
        scores = {f"{i} s": 50 + LOAD + chance.uniform(0, 6) + 3 * chance.standard_normal(8) for i in range(1, 5)}
        rows = rows_of(dict(sorted(scores.items(), key=lambda _: chance.random())))
        setting, count = str(chance.choice(list(scores))), int(chance.integers(1, 7))
        worst = [f"w{i}" for i in np.argsort(scores[setting])[-count:]]
        hidden = (rows["checkpoint.interval"] == setting) & rows["window"].isin(worst)
        before, after = advised(rows), advised(HIDDEN[way](rows, hidden))
        rank = [[standing.setting for standing in found.standings].index((setting,)) for found in (before, after)]

        assert rank[1] >= rank[0]
        assert (setting,) not in after.best or (setting,) in before.best or after.standing((setting,)).behind
        assert after.advised != (setting,) or before.advised == (setting,) or (setting,) in before.best


def checkpoints(*, p99_and_count, **others):
    """`p99_and_count`: setting -> its 99th percentile, and the checkpoints of a run."""
    rows = rows_of(
        {setting: LOAD + p99 for setting, (p99, _) in p99_and_count.items()}, column="end_to_end_p99_ms", **others
    )
    return rows.assign(
        completed=rows["checkpoint.interval"].map({setting: count for setting, (_, count) in p99_and_count.items()})
    )


def least_p99(rows, *limits):
    return choose(rows, ["checkpoint.interval"], "end_to_end_p99_ms", limits)


def test_a_percentile_ranks_only_settings_with_its_sample():
    """The sample is pooled over all runs: 13 in each of 8 windows are 104."""
    found = least_p99(checkpoints(p99_and_count={"5 min": (20, 1), "10 s": (40, 13), "5 s": (60, 26)}))

    assert (found.advised, list(found.best)) == (("10 s",), [("10 s",)])
    assert [(*standing.setting, standing.sample, standing.ranked) for standing in found.standings] == [
        ("10 s", 104, True),
        ("5 s", 208, True),
        ("5 min", 8, False),
    ]


def test_a_limit_of_a_percentile_is_known_with_its_sample():
    """Behind those that are known to keep it, before those that break it; where none is known all are compared."""
    rows = rows_of({"5 min": LOAD + 20, "10 s": LOAD + 40, "1 s": LOAD}, end_to_end_p99_ms=5.0)
    rows["completed"] = rows["checkpoint.interval"].map({"5 min": 1, "10 s": 13, "1 s": 100})
    rows.loc[rows["checkpoint.interval"] == "1 s", "end_to_end_p99_ms"] = 9.0
    limit = Limit("end_to_end_p99_ms", at_most=6)
    found = advised(rows, limit)

    assert [standing.setting[0] for standing in found.standings] == ["10 s", "5 min", "1 s"]
    assert list(found.best) == [("10 s",)]
    assert found.standing(("5 min",)).unknown == {"end_to_end_p99_ms": 8}
    assert advised(rows.assign(completed=2), limit).advised == ("5 min",)
    assert advised(rows.drop(columns="completed"), limit).advised == ("5 min",)

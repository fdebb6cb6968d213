"""A value per window and setting, from the rows of a sweep."""

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_effects import ended, has_no_result, observed, scored
from tests.results.analysis.sweeps.made_up import rows_of

SETTINGS, COLUMN = ["checkpoint.interval"], "caught_up_ms"


def of(rows, column=COLUMN):
    return observed(rows, SETTINGS, column)


def test_windows_and_settings_stay_in_the_order_of_the_plan():
    seen = of(rows_of({"2 min": [1.0] * 12, "10 s": [2.0] * 12}))

    assert (["2 min", "10 s"], [f"w{i}" for i in range(12)]) == (list(seen.scores.columns), list(seen.scores.index))
    assert {1.0} == set(seen.scores["2 min"])


def test_what_did_not_end_counts_with_the_longest_time_known():
    """Cut off early it would look quicker than a setting that was seen for longer in the same world."""
    seen = of(rows_of({"10 s": [30.0, 9.0], "30 s": [70.0, 8.0]}, bounds=[("10 s", 0)]))

    assert seen.scores.to_numpy().tolist() == [[70.0, 70.0], [9.0, 8.0]]
    assert seen.unfinished.to_numpy().tolist() == [[True, False], [False, False]]
    assert seen.behind.sum().tolist() == [1, 0]


def test_windows_in_which_nothing_ends():
    seen = of(rows_of({"10 s": [30.0, 9.0], "30 s": [30.0, 8.0]}, bounds=[("10 s", 0), ("30 s", 0)]))

    assert seen.hopeless.tolist() == [True, False]
    assert seen.behind.sum().tolist() == [0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"status": "error", COLUMN: np.nan},
        {"job_status": "FAILED: killed"},
        {"job_status": "RESTARTING FOR EVER: slots"},
        {COLUMN: np.nan},
    ],
)
def test_a_run_that_fails_is_lost(change):
    """So is a value that is missing where another setting has one: it is never left out silently."""
    rows = rows_of({"10 s": [30.0, 9.0], "30 s": [30.0, 8.0]})
    rows.loc[0, list(change)] = list(change.values())
    seen = of(rows)

    assert seen.lost.to_numpy().tolist() == [[True, False], [False, False]]
    assert np.isnan(seen.scores.iloc[0, 0])


@pytest.mark.parametrize("others", [["30 s"], ["30 s", "90 s"]])
def test_a_setting_that_fails_says_nothing_about_another_one_without_a_value(others):
    """Where no setting has a value, only those are lost whose own runs failed."""
    rows = rows_of({"10 s": [np.nan, 9.0], **{setting: [np.nan, 8.0] for setting in others}})
    rows.loc[rows["checkpoint.interval"].isin(others) & (rows["window"] == "w0"), "job_status"] = "FAILED: killed"
    seen = of(rows)

    assert [[False, *[True] * len(others)], [False] * (1 + len(others))] == seen.lost.to_numpy().tolist()


def test_nothing_to_measure_is_no_loss():
    """No failure, nothing to recover from; a window in which no setting has a value tells nothing of any."""
    rows = rows_of({"10 s": [np.nan, np.nan], "30 s": [np.nan, 8.0]}).assign(nothing=[COLUMN, COLUMN, COLUMN, ""])
    no_marks = rows.drop(columns=["nothing", "unfinished", "job_status"])

    assert not of(rows).lost.to_numpy().any()
    assert of(no_marks).lost.to_numpy().tolist() == [[False, False], [True, False]]


def test_the_sample_is_what_differs():
    """Windows; without them what else varies; of a single window its seeds."""
    rows = rows_of({"10 s": [[1.0, 2.0]], "30 s": [[3.0, 4.0]]})
    varied = rows_of({"10 s": [1.0, 2.0], "30 s": [3.0, 4.0]}).rename(columns={"window": "faults.0.from"})

    assert (of(rows).sample, of(rows).scores.to_numpy().tolist()) == ("seeds", [[1.0, 3.0], [2.0, 4.0]])
    assert (of(varied).sample, len(of(varied).scores)) == ("worlds", 2)
    assert (of(rows[rows["seed"] == 0]).sample, len(of(rows[rows["seed"] == 0]).scores)) == ("windows", 1)


def test_windows_may_stand_in_any_column_before_the_strategy():
    """Also in the last one."""
    rows = rows_of({"10 s": [1.0, 3.0], "30 s": [2.0, 4.0]})
    others = [name for name in rows if name != "window"]
    place = others.index("strategy")

    assert of(rows).scores.equals(of(rows[[*others[:place], "window", *others[place:]]]).scores)


def test_other_axes_repeat_within_windows():
    """Two rates of each window are no further windows."""
    rows = pd.concat([rows_of({"10 s": [1.0, 3.0]}).assign(scale=scale) for scale in ("1", "2")])
    rows = rows[["scale", *(name for name in rows if name != "scale")]]

    assert len(of(rows).scores) == 2


def test_rows_of_jobs_without_checkpoints_do_not_count():
    rows = rows_of({"10 s": [1.0, 3.0]})

    assert of(rows).scores.equals(of(pd.concat([rows, rows.assign(strategy="none", caught_up_ms=99.0)])).scores)


def test_rows_one_by_one():
    rows = rows_of({"10 s": [1.0, 3.0, 5.0]}, bounds=[("10 s", 1)])
    rows.loc[2, "job_status"] = "FAILED: killed"

    assert has_no_result(rows).tolist() == [False, False, True]
    assert ended(rows, COLUMN).dropna().tolist() == [1.0, 5.0]
    assert scored(rows, COLUMN)[["value", "unfinished", "lost"]].to_numpy().tolist()[:2] == [
        [1.0, False, False],
        [3.0, True, False],
    ]

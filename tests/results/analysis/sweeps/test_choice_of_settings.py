"""Hiding bad runs never helps a setting, and percentiles need their sample."""

import numpy as np
import pytest

from sim.results.sweep_answers import Limit, choose
from tests.results.analysis.sweeps.made_up import rows_of

COLUMN = "caught_up_ms"
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

"""What a sweep answers."""

import math
from itertools import product

import pandas as pd
import pytest

from sim.results.sweep_answers import differences, means

SETTINGS = ["interval", "barriers"]
WORLDS = {"quiet": 0.0, "busy": 40.0, "night": -10.0}
COST = {("10 s", "aligned"): 9.0, ("10 s", "unaligned"): 4.0, ("30 s", "aligned"): 6.0, ("30 s", "unaligned"): 5.0}


def results(noise=None, **others):
    """Every setting in every world, twice; worlds weigh much more than settings."""
    noise = noise or (lambda *_: 0.0)
    rows = [
        {
            "cell": "x",
            "scenario": "s",
            "replication": k,
            "seed": k,
            "window": window,
            "interval": interval,
            "barriers": barriers,
            "strategy": barriers,
            "status": "ok",
            "cost": COST[interval, barriers] + load + noise(window, k, interval, barriers),
            **{name: value(interval, barriers) for name, value in others.items()},
        }
        for k, (window, load), (interval, barriers) in product((0, 1), WORLDS.items(), COST)
    ]
    return pd.DataFrame(rows)


def test_means_and_how_well_they_are_known():
    """Three windows; what they have in common is in the interval."""
    table = means(results(), SETTINGS, ["cost"])

    assert len(table) == 4
    assert {key: value + 10 for key, value in COST.items()} == pytest.approx(table["cost"].to_dict())
    assert (table["cost ±"] > 20).all()


def test_differences_are_taken_world_by_world():
    """What all settings meet alike cancels: the differences are known although the means are not."""
    table = differences(results(), SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"})

    assert {key: value - 9 for key, value in COST.items()} == pytest.approx(table["difference"].to_dict())
    assert pytest.approx(list(table["±"])) == [0.0] * 4
    assert list(table["windows"]) == [3] * 4


def test_a_setting_that_fails_somewhere_has_no_mean_and_no_difference():
    """Its other windows would flatter it: those in which it fails are the hard ones."""
    table = results()
    reference = (table["interval"] == "10 s") & (table["barriers"] == "aligned")
    table.loc[reference & (table["window"] == "busy"), "status"] = "error"
    found, apart = (
        means(table, SETTINGS, ["cost"]),
        differences(table, SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"}),
    )

    assert list(found["cost lost"]) == [1, 0, 0, 0]
    assert list(found["cost"].isna()) == [True, False, False, False]
    assert apart["difference"].isna().all()


def test_a_bound_counts_as_the_longest_and_is_marked():
    """A mean of what ended alone would be shorter."""
    table = results().assign(unfinished="")
    late = (table["interval"] == "10 s") & (table["barriers"] == "unaligned") & (table["window"] == "busy")
    table.loc[late, "unfinished"] = "cost"
    found = means(table, SETTINGS, ["cost"]).loc[("10 s", "unaligned")]

    assert pytest.approx((found["cost"], found["cost unfinished"], found["cost n"])) == ((4 + 49 - 6) / 3, 1, 3)
    table.loc[table["interval"] == "10 s", "unfinished"] = "cost"
    # nothing ended: how far it is, is open
    assert math.isinf(means(table, SETTINGS, ["cost"]).loc[("10 s", "unaligned"), "cost ±"])


def test_seeds_are_no_windows():
    """Twenty seeds of two windows know no more of windows than one seed does."""
    once = results()[lambda table: (table["replication"] == 0) & (table["window"] != "night")]
    often = pd.concat([once.assign(replication=k) for k in range(20)])

    assert means(once, SETTINGS, ["cost"])["cost ±"].to_numpy() == pytest.approx(
        means(often, SETTINGS, ["cost"])["cost ±"].to_numpy()
    )


def test_differences_hold_together():
    """Three settings against a reference: each interval is as wide as 98.3 % asks for."""
    table = results(noise=lambda window, k, interval, _: 1.0 if (window, interval) == ("busy", "30 s") else 0.0)
    found = differences(table, SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"})
    alone = differences(
        table[table["barriers"] == "aligned"], SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"}
    )

    assert pytest.approx(alone.loc[("30 s", "aligned"), "±"], rel=0.001) == 4.303 / 3  # Student's t of three windows
    assert pytest.approx(found.loc[("30 s", "aligned"), "±"], rel=0.001) == 7.649 / 3  # at 98.3 %


def test_rows_of_jobs_without_checkpoints_do_not_count():
    table = results()
    bare = table.assign(strategy="none", interval=None, barriers=None, cost=-1e9)[:3]

    assert means(table, SETTINGS, ["cost"]).equals(means(pd.concat([table, bare]), SETTINGS, ["cost"]))


def test_an_unknown_reference():
    with pytest.raises(KeyError):
        differences(results(), SETTINGS, "cost", {"interval": "1 min", "barriers": "aligned"})

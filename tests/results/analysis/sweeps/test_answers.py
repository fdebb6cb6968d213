"""What a sweep answers."""

from itertools import product

import pandas as pd
import pytest

from sim.results.sweep_answers import differences, means

SETTINGS = ["interval", "barriers"]
WORLDS = {"quiet": 0.0, "busy": 40.0, "night": -10.0}
COST = {("10 s", "aligned"): 9.0, ("10 s", "unaligned"): 4.0, ("30 s", "aligned"): 6.0, ("30 s", "unaligned"): 5.0}


def results():
    """Every setting in every world, twice; worlds weigh much more than settings."""
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
            "cost": COST[interval, barriers] + load,
        }
        for k, (window, load), (interval, barriers) in product((0, 1), WORLDS.items(), COST)
    ]
    return pd.DataFrame(rows)


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

"""What a sweep answers."""

import math
from itertools import product

import pandas as pd
import pytest

from sim.analysis.sweeps.answers import Limit, best, differences, means

SETTINGS = ["interval", "barriers"]
WORLDS = {"quiet": 0.0, "busy": 40.0, "night": -10.0}
COST = {("10 s", "aligned"): 9.0, ("10 s", "unaligned"): 4.0, ("30 s", "aligned"): 6.0, ("30 s", "unaligned"): 5.0}


def results(noise=None, **others):
    """Every setting in every world, twice; worlds weigh much more than settings."""
    noise = noise or (lambda *_: 0.0)
    rows = [
        {"cell": "x", "scenario": "s", "replication": k, "seed": k, "window": window, "interval": interval, "barriers": barriers,
         "strategy": barriers, "status": "ok", "cost": COST[interval, barriers] + load + noise(window, k, interval, barriers),
         **{name: value(interval, barriers) for name, value in others.items()}}
        for k, (window, load), (interval, barriers) in product((0, 1), WORLDS.items(), COST)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_means_and_how_well_they_are_known():
    """Six worlds; what they have in common is in the interval."""
    table = means(results(), SETTINGS, ["cost"])

    assert 4 == len(table)
    assert {key: value + 10 for key, value in COST.items()} == pytest.approx(table["cost"].to_dict())
    assert (table["cost ±"] > 20).all()


def test_differences_are_taken_world_by_world():
    """What all settings meet alike cancels: the differences are known although the means are not."""
    table = differences(results(), SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"})

    assert {key: value - 9 for key, value in COST.items()} == pytest.approx(table["difference"].to_dict())
    assert [0.0] * 4 == pytest.approx(list(table["±"]))
    assert [6] * 4 == list(table["worlds"])


def test_only_worlds_with_both_values_are_compared():
    """The reference came to no end in the busy world: the others' large values there say nothing about the difference."""
    table = results()
    reference = (table["interval"] == "10 s") & (table["barriers"] == "aligned")
    table.loc[reference & (table["window"] == "busy"), "cost"] = math.nan
    found = differences(table, SETTINGS, "cost", {"interval": "10 s", "barriers": "aligned"})

    assert {key: value - 9 for key, value in COST.items()} == pytest.approx(found["difference"].to_dict())
    assert [4] * 4 == list(found["worlds"])


def test_rows_that_failed_and_baselines_do_not_count():
    table = results()
    failed = table.assign(status="error", cost=1e9)[:3]
    bare = table.assign(strategy="none", interval=None, barriers=None, cost=-1e9)[:3]

    assert means(table, SETTINGS, ["cost"]).equals(means(pd.concat([table, failed, bare]), SETTINGS, ["cost"]))


def test_an_unknown_reference():
    with pytest.raises(KeyError):
        differences(results(), SETTINGS, "cost", {"interval": "1 min", "barriers": "aligned"})


def test_the_best_setting_within_limits():
    """The cheapest, unless it breaks a limit; of those left the next."""
    table = results(duration=lambda interval, barriers: 50.0 if (interval, barriers) == ("10 s", "unaligned") else 5.0)

    free, limited = best(table, SETTINGS, "cost"), best(table, SETTINGS, "cost", [Limit("duration", at_most=10)])

    assert ({"interval": "10 s", "barriers": "unaligned"}, 14.0, 1.0) == (free.setting, free.value, free.confidence)
    assert ({"interval": "30 s", "barriers": "unaligned"}, 3, 4) == (limited.setting, limited.within_limits, limited.settings)


def test_no_setting_keeps_the_limits():
    nothing = best(results(), SETTINGS, "cost", [Limit("cost", at_most=1)])

    assert (None, 0, 4) == (nothing.setting, nothing.within_limits, nothing.settings)
    assert math.isnan(nothing.value)


def test_a_lead_by_one_world_is_no_certainty():
    """Better by one in five worlds, worse by four in one: on the mean ahead, in many resamples not."""

    def lucky(window, k, interval, barriers):
        return {("quiet", 0): 4.2}.get((window, k), 0.0) if (interval, barriers) == ("10 s", "unaligned") else 0.0

    found = best(results(noise=lucky), SETTINGS, "cost")

    assert {"interval": "10 s", "barriers": "unaligned"} == found.setting
    assert 0.5 < found.confidence < 0.95


def test_a_setting_without_a_value_is_never_best():
    """Nothing completes: no duration is not a short one."""
    table = results()
    table.loc[(table["interval"] == "10 s") & (table["barriers"] == "unaligned"), "cost"] = math.nan

    assert {"interval": "30 s", "barriers": "unaligned"} == best(table, SETTINGS, "cost").setting


def test_a_setting_without_a_value_where_others_have_one_is_the_worst():
    """What was not caught up within the run took longer than all that were; its mean over the other worlds is no better for it."""
    table = results()
    table.loc[(table["window"] == "busy") & (table["interval"] == "10 s"), "cost"] = math.nan

    found = best(table, SETTINGS, "cost", [Limit("cost", at_most=100)])

    assert ({"interval": "30 s", "barriers": "unaligned"}, 15.0, 2) == (found.setting, found.value, found.within_limits)
    assert {4: 2, 6: 2} == means(table, SETTINGS, ["cost"])["cost n"].value_counts().to_dict()
    assert {6} == set(means(table, SETTINGS, ["cost"])["worlds"])


def test_where_much_is_wanted_a_missing_value_is_the_least():
    """A setting without any throughput in one world does not keep 'at least', though its mean of the others would."""
    table = results(throughput=lambda interval, _: 100.0 if interval == "30 s" else 200.0)
    cheapest = (table["interval"] == "10 s") & (table["barriers"] == "unaligned")
    table.loc[cheapest & (table["window"] == "busy"), "throughput"] = math.nan
    found = best(table, SETTINGS, "cost", [Limit("throughput", at_least=50.0)])

    assert {"interval": "30 s", "barriers": "unaligned"} == found.setting
    assert 3 == found.within_limits


def test_where_no_setting_has_a_value_none_is_worse():
    """A world in which nothing happens, e.g. a window without failure, tells nothing of any of them."""
    table = results()
    table.loc[table["window"] == "busy", "cost"] = math.nan

    assert {"interval": "10 s", "barriers": "unaligned"} == best(table, SETTINGS, "cost").setting

"""Settings that are surely not the best are recognised; others stay in the race."""

import numpy as np
import pandas as pd
import pytest

from sim.analysis.sweeps.answers import Limit
from sim.analysis.sweeps.losers import Rule, behind

WORLDS = 12


def rows(**values):
    """Rows of a sweep: by setting, the value of `lag_s` in each world, and `lost_share` beside it."""
    found = [
        {"cell": f"{setting} {world}", "scenario": "s", "seed": 1, "window": f"{world}", "interval": setting, "strategy": "aligned",
         "status": "ok", "lag_s": value, "lost_share": value / 100}
        for setting, of_worlds in values.items() for world, value in enumerate(of_worlds)
    ]  # fmt: skip
    return pd.DataFrame(found)


def out(results, *limits, comparisons=10):
    racing = [(setting,) for setting in results["interval"].unique()]
    return behind(results, Rule(("interval",), "lag_s", limits, comparisons), racing)


LOAD = 10 * np.random.default_rng(1).random(WORLDS)
NOISE = 0.3 * np.random.default_rng(2).standard_normal(WORLDS)


def test_a_difference_in_every_world_is_sure():
    """Although worlds differ more from each other than settings do: they are compared world by world."""
    assert {("b",): "lag_s"} == out(rows(a=LOAD, b=LOAD + 1 + NOISE))


def test_what_may_be_chance_stays():
    assert {} == out(rows(a=LOAD, b=LOAD + 0.1 + NOISE))
    assert {} == out(rows(a=LOAD, b=LOAD))


def test_more_comparisons_need_clearer_differences():
    close = rows(a=LOAD, b=LOAD + 0.3 + NOISE)

    assert {("b",): "lag_s"} == out(close, comparisons=1)
    assert {} == out(close, comparisons=1000)


def test_a_broken_limit_is_sure():
    """The leader of the column breaks the limit; the one behind it keeps it, and stays."""
    assert {("a",): "lost_share"} == out(rows(a=LOAD, b=LOAD + 20), Limit("lost_share", at_least=0.15))


@pytest.mark.parametrize("limit", [Limit("lost_share", at_most=0.055), Limit("lost_share", at_least=0.055)])
def test_nothing_loses_to_a_setting_that_may_break_a_limit(limit):
    """The mean is near the limit: whether the leader may win is open."""
    assert {} == out(rows(a=LOAD, b=LOAD + 0.5 + NOISE / 10), limit)


def test_nothing_loses_to_a_setting_without_a_value_in_some_world():
    """It did not get so far there, which is worse than any value."""
    gap = LOAD.copy()
    gap[3] = np.nan

    assert {} == out(rows(a=gap, b=LOAD + 1 + NOISE))
    assert {("a",): "lag_s"} == out(rows(a=gap + 2 + NOISE, b=LOAD))


def test_a_setting_without_any_value_stays():
    """Its runs may have failed; nobody knows what it gives."""
    assert {} == out(rows(a=LOAD, b=np.full(WORLDS, np.nan)))


def test_only_those_that_race_are_judged():
    results = rows(a=LOAD, b=LOAD + 1 + NOISE, c=LOAD - 5)

    assert {("b",): "lag_s"} == behind(results, Rule(("interval",), "lag_s", (), 10), [("a",), ("b",)])

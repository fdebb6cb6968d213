"""Settings that are surely not the best are recognised; others stay in the race."""

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_answers import Limit, Rule, losers_of

WORLDS = 12


def rows(**values):
    """Rows of a sweep: by setting, the value of `lag_s` in each world, and `lost_share` beside it."""
    found = [
        {
            "cell": f"{setting} {world}",
            "scenario": "s",
            "seed": 1,
            "window": f"{world}",
            "interval": setting,
            "strategy": "aligned",
            "status": "ok",
            "lag_s": value,
            "lost_share": value / 100,
        }
        for setting, of_worlds in values.items()
        for world, value in enumerate(of_worlds)
    ]
    return pd.DataFrame(found)


def out(results, *limits, comparisons=10):
    racing = [(setting,) for setting in results["interval"].unique()]
    return losers_of(results, Rule(("interval",), "lag_s", limits, comparisons), racing)


LOAD = 10 * np.random.default_rng(1).random(WORLDS)
NOISE = 0.3 * np.random.default_rng(2).standard_normal(WORLDS)


@pytest.mark.parametrize("limit", [Limit("lost_share", at_most=0.055), Limit("lost_share", at_least=0.055)])
def test_nothing_loses_to_a_setting_that_may_break_a_limit(limit):
    """The mean is near the limit: whether the leader may win is open."""
    assert out(rows(a=LOAD, b=LOAD + 0.5 + NOISE / 10), limit) == {}


def test_a_setting_that_is_lost_somewhere_is_out():
    """It cannot be chosen any more, and no missing value protects it: neither a mean of other windows, nor that there is none."""
    gap = LOAD.copy()
    gap[3] = np.nan

    assert out(rows(a=gap, b=LOAD + 1 + NOISE)) == {("a",): "lag_s"}
    assert out(rows(a=LOAD, b=np.full(WORLDS, np.nan))) == {("b",): "lag_s"}
    assert out(rows(a=np.full(WORLDS, np.nan), b=np.full(WORLDS, np.nan))) == {}


def test_a_dead_job_is_out():
    """Its lag is short because it is dead."""
    results = rows(a=LOAD, b=LOAD + 5).assign(job_status="RUNNING")
    results.loc[results["interval"] == "a", "job_status"] = "FAILED: killed"

    assert out(results) == {("a",): "lag_s"}


def test_bounds_lose_and_protect_nothing():
    """What did not end is no less than what did; where a limit wants less, it is broken."""
    results = rows(a=LOAD + 5, b=LOAD).assign(unfinished="")
    results.loc[(results["interval"] == "a") & (results["window"] == "3"), ["lag_s", "unfinished"]] = [1e6, "lag_s"]
    early = results.assign(unfinished=["lag_s" if cell == "b 3" else "" for cell in results["cell"]])

    assert out(results) == {("a",): "lag_s"}
    assert out(early) == {}  # what b would have taken there is open
    assert out(early, Limit("lag_s", at_most=1e7)) == {("b",): "lag_s"}


def test_a_limit_that_is_not_known_to_be_kept_puts_nothing_out():
    """A leader keeps all limits surely, which for a percentile takes its sample."""
    results = rows(a=LOAD, b=LOAD + 1 + NOISE).assign(end_to_end_p99_ms=5.0)
    rule = Rule(("interval",), "lag_s", (Limit("end_to_end_p99_ms", at_most=6),), 10)

    assert losers_of(results.assign(completed=1), rule, [("a",), ("b",)]) == {}
    assert losers_of(results.assign(completed=120), rule, [("a",), ("b",)]) == {("b",): "lag_s"}

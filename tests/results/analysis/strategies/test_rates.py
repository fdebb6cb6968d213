"""Records per second: what failures repeat is no throughput, and a job that cannot keep up is told from one that failed."""

import math

import pandas as pd
import pytest

from sim.results.rates import falls_behind, keeping_up


def restarts(*rows):
    return pd.DataFrame(rows, columns=["failed", "replayed_records", "served_again"])


def test_a_backlog_that_grows_is_overload(made, edges):
    """100/s of 150/s, before the failure and without one; the failure itself, which stops the sources, is none."""
    growing = made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * second).tables()
    after = made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * max(0, second - 12)).tables()

    assert pytest.approx(keeping_up([growing], edges)[:2]) == (100, 150)
    assert pytest.approx(keeping_up([growing | {"recoveries": restarts((12_000.0, 0, 0))}], edges)[:3]) == (
        100,
        150,
        12,
    )
    assert keeping_up([after | {"recoveries": restarts((12_000.0, 0, 0))}], edges) is None
    assert keeping_up([after], edges, faults_s=[12.0]) is None


@pytest.mark.parametrize(
    ("backlog", "triggers_s", "expected"),
    [
        (lambda second: 50 * second, (), True),
        (lambda second: 50 * max(0, second - 10), (15, 20, 25), True),
        (lambda second: 50 * max(0, second - 10), (15,), False),
        (lambda second: 50 * max(0, second - 32), (15, 20, 25), False),
        (lambda second: 0, (), False),
        (lambda second: 50 * max(0, min(second, 24 - second)), (), False),
        (lambda second: 50 * (second if second < 12 else 6), (), True),
    ],
    ids=[
        "before the failure",
        "since it caught up",
        "one checkpoint may raise it",
        "the load rises later",
        "none",
        "worked off after a rescale",
        "less than before, and not worked off",
    ],
)
def test_a_backlog_that_grows_for_good(made, edges, backlog, triggers_s, expected):
    """A failure after 9 s, caught up after 10 s."""
    tables = made().load(busy=(0, 0, 1), seconds=40, backlog=backlog).tables()
    tables |= {"recoveries": pd.DataFrame({"failed": [9_000.0], "caught_up": [10_000.0]})}
    tables |= {"checkpoints": pd.DataFrame({"trigger_timestamp": [1e3 * second for second in triggers_s or (5,)]})}

    assert falls_behind(tables, edges) == expected


def test_of_several_runs_the_one_that_falls_short_most_is_told(made, edges):
    slow, slower = (
        made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second, n=n: n * second).tables() for n in (20, 80)
    )

    assert pytest.approx(keeping_up([slow, slower, slow], edges)[:2]) == (100, 180)
    assert keeping_up([made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: second).tables()], edges) is None


def test_a_fault_in_the_last_second_is_one_after_the_run(made, edges):
    """It did not happen before anything was looked at: until when is not said."""
    growing = made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * second).tables()

    assert [math.isnan(keeping_up([growing], edges, faults_s=[at]).until_s) for at in (21.0, 20.0, 19.0)] == [
        True,
        True,
        False,
    ]
    assert keeping_up([growing], edges, warmup_s=12.0) is not None
    assert keeping_up([growing], edges, warmup_s=13.0) is None, "seven seconds tell nothing"

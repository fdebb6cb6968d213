"""Records per second: what failures repeat is no throughput, and a job that cannot keep up is told from one that failed."""

import math

import pandas as pd
import pytest

from sim.results.rates import falls_behind, keeping_up
from tests.results.analysis.runs_by_hand import EDGES, Made


def restarts(*rows):
    return pd.DataFrame(rows, columns=["failed", "replayed_records", "served_again"])


def test_a_backlog_that_grows_is_overload():
    """100/s of 150/s, before the failure and without one; the failure itself, which stops the sources, is none."""
    growing = Made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * second).tables()
    after = Made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * max(0, second - 12)).tables()

    assert pytest.approx(keeping_up([growing], EDGES)[:2]) == (100, 150)
    assert pytest.approx(keeping_up([growing | {"recoveries": restarts((12_000.0, 0, 0))}], EDGES)[:3]) == (
        100,
        150,
        12,
    )
    assert keeping_up([after | {"recoveries": restarts((12_000.0, 0, 0))}], EDGES) is None
    assert keeping_up([after], EDGES, faults_s=[12.0]) is None


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
def test_a_backlog_that_grows_for_good(backlog, triggers_s, expected):
    """A failure after 9 s, caught up after 10 s."""
    tables = Made().load(busy=(0, 0, 1), seconds=40, backlog=backlog).tables()
    tables |= {"recoveries": pd.DataFrame({"failed": [9_000.0], "caught_up": [10_000.0]})}
    tables |= {"checkpoints": pd.DataFrame({"trigger_timestamp": [1e3 * second for second in triggers_s or (5,)]})}

    assert falls_behind(tables, EDGES) == expected


def test_of_several_runs_the_one_that_falls_short_most_is_told():
    slow, slower = (
        Made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second, n=n: n * second).tables() for n in (20, 80)
    )

    assert pytest.approx(keeping_up([slow, slower, slow], EDGES)[:2]) == (100, 180)
    assert keeping_up([Made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: second).tables()], EDGES) is None


def test_a_fault_in_the_last_second_is_one_after_the_run():
    """It did not happen before anything was looked at: until when is not said."""
    growing = Made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 50 * second).tables()

    assert [math.isnan(keeping_up([growing], EDGES, faults_s=[at]).until_s) for at in (21.0, 20.0, 19.0)] == [
        True,
        True,
        False,
    ]
    assert keeping_up([growing], EDGES, warmup_s=12.0) is not None
    assert keeping_up([growing], EDGES, warmup_s=13.0) is None, "seven seconds tell nothing"

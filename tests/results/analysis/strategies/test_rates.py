"""Records per second: what failures repeat is no throughput, and a job that cannot keep up is told from one that failed."""

import math

import pandas as pd
import pytest

from sim.results.rates import falls_behind, keeping_up
from sim.results.summary import summarize


def restarts(*rows):
    return pd.DataFrame(rows, columns=["failed", "replayed_records", "served_again"])


def test_what_is_served_again_is_no_throughput(made, edges):
    """Four seconds of 100/s of which 120 records were served before: 70/s.  Failures of the warm-up are not of the time observed."""
    run = made().load(busy=(0, 0, 0)).tables() | {"recoveries": restarts((2000.0, 80, 120), (500.0, 4, 4))}

    row = summarize([run], edges)
    warm = summarize([run], edges, warmup_s=1.0)

    assert (row.throughput_per_second, row.emitted_per_second, row.offered_per_second) == (69.0, 79.0, 79.0)
    assert pytest.approx(warm.throughput_per_second) == 60.0


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


def test_the_second_of_the_failure_itself_counts(made, edges):
    """10 s^2 records wait after s seconds: 1440 in the 12 s before the failure, so 120/s more are due than are emitted."""
    growing = made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 10 * second**2).tables()
    failing = growing | {"recoveries": restarts((12_000.0, 0, 0), (15_000.0, 0, 0))}

    assert pytest.approx(keeping_up([failing], edges)[:3]) == (100, 220, 12)
    assert pytest.approx(keeping_up([failing], edges, warmup_s=3.0)[:3]) == (100, 100 + (1440 - 90) / 9, 12)
    assert pytest.approx(keeping_up([failing], edges, faults_s=[11.0])[:3]) == (100, 100 + 10 * 11, 11)


def test_of_several_runs_the_one_that_falls_short_most_is_told(made, edges):
    slow, slower = (
        made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second, n=n: n * second).tables() for n in (20, 80)
    )

    assert pytest.approx(keeping_up([slow, slower, slow], edges)[:2]) == (100, 180)
    assert keeping_up([made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: second).tables()], edges) is None


def test_a_backlog_that_is_worked_off_is_none(made, edges):
    """Checkpoints hold sources up now and then; of a few seconds nothing is said."""
    waves = made().load(busy=(0, 0, 1), seconds=20, backlog=lambda second: 300 * (second % 5 == 0)).tables()
    short = made().load(busy=(0, 0, 1), seconds=7, backlog=lambda second: 50 * second).tables()

    assert keeping_up([waves], edges) is None
    assert keeping_up([short], edges) is None


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

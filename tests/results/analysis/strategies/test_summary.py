"""One row per strategy: what counts, where a checkpoint's time goes, records per second."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sim.results.critical_path import PathKind
from sim.results.not_completed import PARTS
from sim.results.rates import falls_behind, keeping_up
from sim.results.summary import _load, bottleneck, summarize
from tests.results.analysis.runs_by_hand import EDGES, Made

# One row per strategy: what counts, what does not.


def test_means_of_a_long_series_take_less_memory_than_the_series():
    """They are made at the end of a run, when there is most beside them."""
    columns = ("busy", "backPressured", "numRecordsInPerSecond", "lag", "x_latency", "backlog")
    time = np.repeat(np.arange(20_000.0), 2)
    series = pd.DataFrame(
        {"time": time, "vertex": ["source", "sink"] * 20_000} | dict.fromkeys(columns, time + 0.5), copy=False
    )
    _load([{"series": series}], 0.0)  # what pandas loads when it is first asked is not counted
    tracemalloc.start()
    _load([{"series": series}], 0.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < series.memory_usage(index=False).sum()


def test_throughput_of_replications_is_their_mean():
    """With warm-up and committers."""
    runs = [Made().load(busy=(0, 0, 0), records=(100, served, 7), seconds=3).tables() for served in (40, 60)]
    runs[0]["series"].loc[runs[0]["series"]["time"] <= 1, "numRecordsInPerSecond"] = 1000

    known = {"edges": [("source", "map"), ("map", "sink")], "warmup_s": 1.0, "without_records": ["sink"]}

    assert summarize(runs, **known).throughput_per_second == 57


def test_replications_are_pooled():
    """Checkpoint 1 of two runs is two checkpoints."""
    runs = [
        Made().checkpoint(0, ms).subtask("sink", ack=ms, asynchronous=ms).load(busy=(0, 0, 0)).tables()
        for ms in (100, 300)
    ]

    row = summarize(runs, EDGES)

    assert (row.completed, row.end_to_end_p50_ms, row.async_ms) == (2, 200, 200)


def test_a_job_that_is_over_before_the_first_sample():
    """Its totals say who was busy; nothing tells through time."""
    row = summarize([Made().task("source", 0.5).checkpoint().subtask("source", ack=100).tables()], EDGES)

    assert (row.bottleneck, row.completed) == ("source", 1)
    assert math.isnan(row.busy_share)
    assert math.isnan(row.throughput_per_second)


def test_subtasks_of_two_parallelisms_are_different_ones():
    """Before a rescale subtask 0 is hot, afterwards 1: the mean over equal numbers is nobody's load."""
    shares = {(0, 0): 0.8, (0, 1): 0.4, (1, 0): 0.2, (1, 1): 0.7, (1, 2): 0.2}
    rows = [
        {
            "x_job": job,
            "vertex": "agg",
            "index": index,
            "accumulateBusyTimeMs": 1e3 * share,
            "accumulateIdleTimeMs": 1e3 * (1 - share),
            "x_softBackPressuredTimeMs": 0.0,
            "x_hardBackPressuredTimeMs": 0.0,
        }
        for (job, index), share in shares.items()
    ]

    assert bottleneck(pd.DataFrame(rows)) == ("agg", 0, pytest.approx(0.8))
    assert bottleneck(pd.DataFrame(rows[2:])) == ("agg", 1, pytest.approx(0.7))


# Where a checkpoint's time goes, from the table of critical paths.


AFTER = {PathKind.FINALISATION, PathKind.NOTIFICATION, PathKind.COMMIT}


def test_every_part_of_the_table_is_counted_once():
    """A new kind of wait must say where it belongs; what follows the acknowledgement is in no duration, and no run has parts without times."""
    assert {kind.value for kind in set(PathKind) - AFTER - {PathKind.UNREPORTED}} == set(PARTS)


# Records per second: what failures repeat is no throughput, and a job that cannot keep up is told from one that failed.


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

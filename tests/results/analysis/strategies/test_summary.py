"""One row per strategy: what counts, where a checkpoint's time goes, records per second."""

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sim.model.faults import Restart
from sim.model.scenario import AUTO_WARM_UP, Run
from sim.results.critical_path import PathKind
from sim.results.estimates import median_of_few, quantile, quantiles
from sim.results.not_completed import PARTS
from sim.results.rates import falls_behind, keeping_up
from sim.results.summary import WarmUpEnd, _mean_load, bottleneck, cold_start, drained_after, summarize, warm_up
from tests.results.analysis.runs_by_hand import EDGES, Made

# One row per strategy: what counts, what does not.


def test_means_of_a_long_series_take_less_memory_than_the_series():
    """They are made at the end of a run, when there is most beside them."""
    columns = ("busy", "backPressured", "numRecordsInPerSecond", "lag", "x_latency", "backlog")
    time = np.repeat(np.arange(20_000.0), 2)
    series = pd.DataFrame(
        {"time": time, "vertex": ["source", "sink"] * 20_000} | dict.fromkeys(columns, time + 0.5), copy=False
    )
    _mean_load([{"series": series}], 0.0)  # what pandas loads when it is first asked is not counted
    tracemalloc.start()
    _mean_load([{"series": series}], 0.0)
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


def run(*checkpoints, queues=(), lag=(), served=(), failed=(), warmup_ns=AUTO_WARM_UP):
    """A checkpoint is (trigger [ms], duration, size); queues and lag have a value per second."""
    rows = [
        {
            "status": "COMPLETED",
            "savepointFormat": "",
            "trigger_timestamp": float(at),
            "end_to_end_duration": float(ms),
            "checkpointed_size": float(size),
        }
        for at, ms, size in checkpoints
    ]
    seconds = max(len(queues), len(lag), len(served))
    series = pd.DataFrame(
        {
            "time": [float(k + 1) for k in range(seconds)],
            "vertex": ["it"] * seconds,
            "inputQueueSize": list(queues) or [0] * seconds,
            "outputQueueSize": [0] * seconds,
            "lag": list(lag) or [0.0] * seconds,
            "numRecordsInPerSecond": list(served) or [100.0] * seconds,
        }
    )
    columns = ["status", "savepointFormat", "trigger_timestamp", "end_to_end_duration", "checkpointed_size"]
    tables = {
        "checkpoints": pd.DataFrame(rows, columns=columns),
        "series": series,
        "recoveries": pd.DataFrame({"failed": np.array(failed, dtype=float)}),
    }
    return SimpleNamespace(tables=tables, scenario=SimpleNamespace(run=Run(3600 * 10**9, warmup_ns)))


def ms_of(*checkpoints, **others):
    return warm_up([run(*checkpoints, **others)]).ns / 1e6


STEADY = [(10_000 * k, 500 + (k * 7) % 5, 10 + k % 3) for k in range(1, 12)]
"""Checkpoints that only vary."""


def test_the_first_full_upload_is_left_out():
    """It writes all state; the next one counts."""
    found = warm_up([run((21, 9000, 4000), *STEADY)])

    assert WarmUpEnd(9_999_000_000, "the size of checkpoints") == found
    assert str(found) == "10 s, until the size of checkpoints settled"


def test_a_drift_does_not_hide_the_first_upload():
    """Metadata grows by a few bytes with each checkpoint."""
    drift = [(10_000 * k, 500, 1000 + k) for k in range(1, 12)]

    assert ms_of((21, 9000, 40_000), *drift) == 9999.0
    assert ms_of(*drift) == 0.0


def test_a_failure_is_no_warm_up():
    """What follows from it, and the backlog after it, are results."""
    fills = [1, 3, 6, 9, 20, 19, 18, 17, 16, 15]

    assert ms_of(queues=fills, failed=[3500.0]) == 0.0
    assert ms_of(queues=[1, 2, 3, 9, 5, 9, 4, 8, 9, 5], failed=[60_000.0]) == 3000.0


def test_replications_leave_out_the_longest():
    first, second = run(queues=[1, 3, 6, 9, 8, 9, 10, 8, 9, 8]), run((21, 9000, 4000), *STEADY)

    assert warm_up([first, second]).ns == 9_999_000_000


FULL, WAVES = [1000.0] * 20, [100.0, 120.0, 80.0] * 12
"""A queue that is full, and one that checkpoints let rise and fall."""


@pytest.mark.parametrize(
    ("values", "after"),
    [
        (WAVES, 0),
        (FULL + WAVES, 20),
        ([*np.linspace(1000, 100, 20), *WAVES], 20),
        (WAVES[:9] + FULL + WAVES, 29),
        (list(np.linspace(1000, 1, 40)), 40),
        (WAVES[:9], 0),
    ],
)
def test_a_queue_that_the_start_has_left_is_worked_off_where_it_stays_low(values, after):
    """Within the samples of a mean; all values, if it is still being worked off at the end; 0 of few."""
    assert after == pytest.approx(drained_after(np.array(values)), abs=5)


def started(queues=(), start_s=2, warm_up_s=3, **others):
    result = run(queues=queues, **others)
    result.scenario.run = Run(3600 * 10**9, cold_start_ns=start_s * 10**9)
    result.scenario.restart = Restart(warm_up_ns=warm_up_s * 10**9)
    return result


def test_a_cold_start_ends_when_tasks_are_warm_and_queues_are_worked_off():
    """The longest of the replications."""
    assert cold_start([started(WAVES), started(FULL + WAVES)]).cause == "data in queues"
    assert cold_start([started(WAVES)]).ns == 5 * 10**9
    assert WarmUpEnd(9 * 10**9, "throughput") == cold_start([started(served=[50.0] * 9 + [100.0, 95.0] * 20)])
    assert WarmUpEnd(0) == cold_start([started(FULL + WAVES, start_s=0)])


@pytest.mark.parametrize(
    ("ended", "unfinished", "expected"),
    [
        ([11.0], [], (11.0, False)),
        ([11.0], [10.0], (10.5, True)),  # the second failure came ten seconds before the end: both count
        ([11.0, 12.0, 13.0], [2.0], (11.5, True)),
        ([11.0, 12.0, 13.0], [40.0, 50.0], (13.0, False)),  # the median is known, whatever the others take
        ([], [7.0], (7.0, True)),
        ([], [], (np.nan, False)),
    ],
)
def test_median_of_failures(ended, unfinished, expected):
    """Those that did not end count with the time so far; it is a bound if they could move it."""
    value, is_bound = median_of_few(np.array(ended), np.array(unfinished))

    assert (pytest.approx(expected[0], nan_ok=True), expected[1]) == (value, is_bound)


@pytest.mark.parametrize(
    ("ended", "unfinished", "share", "expected"),
    [
        ([5.0] * 9, [1.0], 0.99, (5.0, False)),  # under way when the run ended, and no later than the others
        ([5.0] * 9, [600.0], 0.5, (5.0, False)),  # one of ten expired
        ([5.0] * 9, [600.0], 1.0, (600.0, True)),
        ([5.0] * 9, [600.0], 0.99, (pytest.approx(546.45), True)),
        ([1.0, 2.0], [600.0, 600.0], 0.5, (pytest.approx(301.0), True)),
        ([], [600.0], 0.5, (600.0, True)),
        ([], [], 0.5, (pytest.approx(np.nan, nan_ok=True), False)),
    ],
)
def test_quantiles_of_checkpoints(ended, unfinished, share, expected):
    """Those that expired are beyond all others; those that are under way say nothing until they are late."""
    assert expected == tuple(quantile(np.array(ended), np.array(unfinished), share))


def test_a_quantile_is_a_bound_if_a_lower_one_is():
    """One that waits for 60.2 s counts beyond the median of 60 s, and not beyond the longest, 60.5 s: that may grow as well."""
    ended, unfinished = np.array([60.0, 60.0, 60.5]), np.array([60.2, 60.2, 60.2])

    assert [(pytest.approx(60.2), True), (60.5, True)] == quantiles(ended, unfinished, 0.5, 1.0)


def test_hiding_slow_ones_never_makes_a_quantile_smaller():
    """A checkpoint that expires at its timeout instead of completing before it."""
    chance = np.random.default_rng(1)
    for _ in range(300):
        durations = np.sort(chance.lognormal(3, 1, chance.integers(1, 30)))
        count, share = chance.integers(0, len(durations) + 1), chance.choice([0.5, 0.9, 0.99, 1.0])
        kept, hidden = np.split(durations, [len(durations) - count])
        timeout = np.full(len(hidden), durations.max() * 1.5)

        assert quantile(kept, timeout, share).value >= quantile(durations, np.array([]), share).value - 1e-9
        assert median_of_few(kept, timeout).value >= median_of_few(durations, np.array([])).value - 1e-9

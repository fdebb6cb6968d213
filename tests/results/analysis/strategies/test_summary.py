"""One row per strategy: what counts, what does not."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sim.results.summary import bottleneck, summarize, throughput
from tests.results.analysis.runs_by_hand import EDGES, Made


def test_means_of_a_long_series_take_less_memory_than_the_series():
    """They are made at the end of a run, when there is most beside them."""
    columns = ("busy", "backPressured", "numRecordsInPerSecond", "lag", "x_latency", "backlog")
    time = np.repeat(np.arange(20_000.0), 2)
    series = pd.DataFrame(
        {"time": time, "vertex": ["source", "sink"] * 20_000} | dict.fromkeys(columns, time + 0.5), copy=False
    )
    throughput([{"series": series}], [("source", "sink")])  # what pandas loads when it is first asked is not counted
    tracemalloc.start()
    throughput([{"series": series}], [("source", "sink")])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < series.memory_usage(index=False).sum()


def test_throughput_alone_is_that_of_the_summary():
    """With warm-up, committers and replications."""
    runs = [Made().load(busy=(0, 0, 0), records=(100, served, 7), seconds=3).tables() for served in (40, 60)]
    runs[0]["series"].loc[runs[0]["series"]["time"] <= 1, "numRecordsInPerSecond"] = 1000

    known = {"edges": [("source", "map"), ("map", "sink")], "warmup_s": 1.0, "without_records": ["sink"]}

    assert 57 == throughput(runs, **known) == summarize(runs, **known).throughput_per_second


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
    assert math.isnan(throughput([Made().tables()], EDGES))


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

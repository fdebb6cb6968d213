"""One row per strategy: what counts, what does not."""

import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from sim.results.summary import bottleneck, summarize, throughput


def test_percentiles_are_over_completed_checkpoints(made, edges):
    """Failed and pending checkpoints are counted, their durations are not."""
    run = (
        made()
        .checkpoint(0, 100)
        .checkpoint(1000, 300)
        .checkpoint(2000, 9000, status="FAILED", failure="late")
        .checkpoint(3000, -1, status="IN_PROGRESS")
    )

    row = summarize([run.load(busy=(0, 0, 0)).tables()], edges)

    assert (row.completed, row.failed, row.in_progress, row.failure) == (2, 1, 1, "late")
    assert (row.end_to_end_p50_ms, row.end_to_end_max_ms) == (200, 300)


def test_the_warm_up_does_not_count(made, edges):
    """Neither its checkpoints nor its seconds."""
    run = (
        made()
        .checkpoint(500, 1)
        .subtask("sink", ack=1, start_delay=1)
        .checkpoint(2000, 70)
        .subtask("sink", ack=70, start_delay=7)
    )
    run.load(busy=(1, 1, 1), records=(1, 1, 1), seconds=1)
    run.series += [
        {**row, "time": row["time"] + 1} for row in made().load(busy=(0, 0, 0.5), records=(9, 9, 9), seconds=3).series
    ]

    row = summarize([run.tables()], edges, warmup_s=1.0)

    assert (row.completed, row.end_to_end_p50_ms, row.start_delay_ms) == (1, 70, 7)
    assert (row.throughput_per_second, row.busy_share) == (9, 0.5)


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


def test_throughput_alone_is_that_of_the_summary(made):
    """With warm-up, committers and replications."""
    runs = [made().load(busy=(0, 0, 0), records=(100, served, 7), seconds=3).tables() for served in (40, 60)]
    runs[0]["series"].loc[runs[0]["series"]["time"] <= 1, "numRecordsInPerSecond"] = 1000

    known = {"edges": [("source", "map"), ("map", "sink")], "warmup_s": 1.0, "without_records": ["sink"]}

    assert 57 == throughput(runs, **known) == summarize(runs, **known).throughput_per_second


def test_a_share_of_time_is_the_same_in_a_run_of_any_length(made, edges):
    """A quarter of a millisecond, or a second."""
    tables = made().load(busy=(0.2, 0.8, 0.3)).tables()
    short = tables | {
        "tasks": tables["tasks"].apply(lambda column: column / 4000 if column.name.endswith("TimeMs") else column)
    }

    rows = [summarize([own], edges) for own in (tables, short)]
    assert [(row.bottleneck, pytest.approx(row.busiest_subtask_share)) for row in rows] == [("map", 0.8)] * 2


def test_of_equally_busy_vertices_the_last_is_the_bottleneck(made, edges):
    """It holds the others up."""
    row = summarize([made().load(busy=(0.99, 0.3, 0.98), waiting=(0.0, 0.6, 0.0)).tables()], edges)

    assert (row.bottleneck, row.busy_share, row.most_backpressured, row.most_backpressured_share) == (
        "sink",
        0.98,
        "map",
        0.6,
    )


def test_a_backlog_that_comes_and_goes_does_not_grow(made, edges):
    """A job that falls behind has more to do in the second half of what is observed."""
    rows = [
        summarize([made().load(busy=(0, 0, 0), seconds=8, backlog=law).tables()], edges, warmup_s=2.0)
        for law in (lambda second: 50 * (second % 3), lambda second: 10 * second)
    ]

    assert [row.backlog_growth for row in rows] == [0, 30]


def test_alignment_is_the_slowest_subtask_start_delay_the_median_one(made, edges):
    """A skewed input shows in one subtask only."""
    run = made().checkpoint(0, 900).load(busy=(0, 0, 0))
    for index, alignment in enumerate((0, 0, 800)):
        run.subtask("sink", ack=900, start_delay=10 + index, alignment=alignment, index=index)

    row = summarize([run.tables()], edges)

    assert (row.alignment_ms, row.start_delay_ms, row.start_delay_vertex) == (800, 11, "sink")


def test_replications_are_pooled(made, edges):
    """Checkpoint 1 of two runs is two checkpoints."""
    runs = [
        made().checkpoint(0, ms).subtask("sink", ack=ms, asynchronous=ms).load(busy=(0, 0, 0)).tables()
        for ms in (100, 300)
    ]

    row = summarize(runs, edges)

    assert (row.completed, row.end_to_end_p50_ms, row.async_ms) == (2, 200, 200)


def test_a_burst_shows_in_the_mean_of_what_was_stored(made, edges):
    """Two of three checkpoints met no back-pressure."""
    run = made().load(busy=(0, 0, 0))
    for at, stored in ((0, 0), (1000, 600), (2000, 0)):
        run.checkpoint(at, 10, persisted=stored)

    row = summarize([run.tables()], edges)

    assert (row.persisted_bytes, row.persisted_mean_bytes) == (0, 200)


def test_no_checkpoint_at_all(made, edges):
    """A baseline has a throughput and no durations."""
    row = summarize([made().load(busy=(0.1, 0.2, 0.3)).tables()], edges)

    assert (row.completed, row.throughput_per_second) == (0, 100)
    assert all(
        math.isnan(value)
        for value in (row.end_to_end_p99_ms, row.start_delay_ms, row.persisted_bytes, row.path.queue_ms)
    )


def test_a_job_that_is_over_before_the_first_sample(made, edges):
    """Its totals say who was busy; nothing tells through time."""
    row = summarize([made().task("source", 0.5).checkpoint().subtask("source", ack=100).tables()], edges)

    assert (row.bottleneck, row.completed) == ("source", 1)
    assert math.isnan(row.busy_share)
    assert math.isnan(row.throughput_per_second)
    assert math.isnan(throughput([made().tables()], edges))


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

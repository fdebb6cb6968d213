"""Rows of strategies and single checkpoints: which number stands where."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from sim.model.quantities import S3_STANDARD
from sim.results.end_of_job import finish, last_trigger_s
from sim.results.not_completed import not_completed
from sim.results.rates import KeepingUp, backlog_per_second, emitted_per_second, served_per_second
from sim.results.side_by_side import Single, Singles, StrategyRow, singles, table, texts
from sim.results.stored import storage_use, storage_use_table
from sim.results.summary import durations_of_checkpoints, settled_after, summarize
from sim.results.tables import first_uploads
from tests.results.analysis.runs_by_hand import EDGES, Made, saturated


@pytest.fixture
def summary():
    return summarize([saturated(5700, 3100, persisted=7_600_000, times=12).tables()], EDGES)


def row_of(summary, **others):
    return StrategyRow("aligned", (("barriers", "aligned"),), "", "RUNNING", summary, **others)


def cells(*lines):
    header, rows = texts(lines)
    return dict(zip(header, rows[0], strict=True))


def test_a_row_for_a_terminal(summary):
    """Twelve checkpoints have a p90 and no p99; nobody works before the barrier, all sources emit what is due."""
    assert cells(row_of(summary)) == {
        "strategy": "aligned",
        "completed (n)": "12",
        "p50": "5.7 s",
        "p90": "5.7 s",
        "max": "5.7 s",
        "written": "1 kB",
        "start delay": "3.1 s",
        "alignment": "0 ms",
        "sync": "0 ms",
        "async": "0 ms",
        "in flight": "7.6 MB",
        "throughput": "100/s",
        "vs none": "-",
        "busiest": "sink 99 %",
        "back-pressured": "source 90 %",
    }


def test_cells_that_say_more(summary):
    """Failures without interruptions, until when it ran, what falls short, what it costs, of which vertices throughput is."""
    worse = replace(
        summary,
        failed=5,
        interrupted=2,
        emitted_per_second=98.4,
        offered_per_second=100.0,
        most_backpressured_share=0.004,
    )
    found = cells(
        row_of(worse, failed=True, until_s=90.0, baseline_per_second=110.0, sinks=("sink",), sources=("a", "b"))
    )

    assert tuple(
        found[name]
        for name in ("completed (n)", "throughput (sink)", "emitted (2 vertices)", "vs none", "back-pressured")
    ) == ("12, 3 failed, 2 interrupted, job failed", "100/s until 90 s", "98.4/s of 100/s", "-9.1 %", "-")
    assert cells(row_of(replace(summary, failed=2, interrupted=2)))["completed (n)"] == "12, 2 interrupted"
    assert cells(row_of(replace(summary, most_backpressured_share=0.005)))["back-pressured"] == "source 0 %"


@pytest.mark.parametrize(("before_ms", "cell"), [(0.4, None), (0.5, "0.5 ms"), (40.0, "40 ms")])
def test_work_before_the_barrier_has_a_column_where_there_is_any(summary, before_ms, cell):
    assert cell == cells(row_of(replace(summary, path=replace(summary.path, pre_barrier_ms=before_ms)))).get(
        "pre-barrier"
    )


@pytest.mark.parametrize(
    ("mean", "share", "is_named"),
    [(0.5, 0.61, True), (0.5, 0.59, False), (0.9, 0.984, True), (0.9, 0.958, False), (0.99, 1.0, False)],
)
def test_a_subtask_is_named_that_is_busier_than_its_vertex_by_a_tenth_or_half_as_idle(summary, mean, share, is_named):
    row = row_of(replace(summary, busy_share=mean, busiest_subtask_share=share))

    assert row.busiest == (("sink[0]", share) if is_named else ("sink", mean))


def test_who_falls_short_and_who_is_over(summary):
    """By more than 1.5 %; a job that restarted is judged before its first fault."""
    short = replace(summary, emitted_per_second=98.4, offered_per_second=100.0)
    overload = KeepingUp(80.0, 100.0, 12.0)

    assert (98.4, 100.0) == row_of(short).shortfall == row_of(short, overload=overload).shortfall
    assert row_of(replace(short, emitted_per_second=98.6)).shortfall is None
    assert row_of(short, steady=False).shortfall is None
    assert row_of(short, steady=False, overload=overload).shortfall == (80.0, 100.0)
    assert [
        row_of(short).is_over,
        row_of(short, until_s=3.0).is_over,
        replace(row_of(short), status="FINISHED").is_over,
    ] == [False, True, True]
    assert [row_of(short).short_name, row_of(short, name="it").short_name] == ["aligned", "it"]
    assert math.isnan(row_of(short, baseline_per_second=0.0).throughput_change)
    assert tuple(row_of(short, baseline_per_second=base).throughput_change for base in (200.0, 50.0)) == (-0.5, 1.0)
    assert [KeepingUp(emitted, 100.0, 1.0).falls_short for emitted in (98.4, 98.6)] == [True, False]


def test_a_table_for_machines(summary):
    """A percentile without its sample is missing; what finishes has three columns of its own."""
    run = Made().checkpoint(2000, 40).load(busy=(0, 0, 0)).tables()
    run["checkpoints"]["x_finalization"] = 10.0
    ended = finish([run], [9.0], 100.0)
    plain, full = table(
        [row_of(summary), row_of(summary, finish=ended, overload=KeepingUp(80.0, 100.0, 12.0))]
    ).to_dict("records")

    assert (plain["barriers"], plain["status"], plain["end_to_end_p90_ms"]) == ("aligned", "RUNNING", 5700.0)
    assert math.isnan(plain["end_to_end_p99_ms"])
    assert tuple(full[f"overload_{name}"] for name in ("emitted_per_second", "due_per_second", "until_s")) == (
        80.0,
        100.0,
        12.0,
    )
    assert (full["finish_idle_s"], full["finish_checkpoints"]) == (5.0, 0.0)
    assert all(math.isnan(full[name]) for name in ("final_checkpoint_ms", "last_trigger_s", "baseline_per_second"))
    assert math.isnan(plain["finish_idle_s"])


def test_the_end_of_several_runs_is_their_mean():
    """Both have their last record at 4 s, and end at 10 s and 14 s with a checkpoint that takes 50 ms; one has two of them."""
    runs = [
        Made().checkpoint(5000, 40).load(busy=(0, 0, 0)).tables(),
        Made().checkpoint(4000, 30).checkpoint(9000, 40).load(busy=(0, 0, 0)).tables(),
    ]
    for run in runs:
        run["checkpoints"]["x_finalization"] = 10.0
        run["tasks"]["x_finalCheckpoint"] = 1
    found = finish(runs, [10.0, 14.0], 7.0)

    assert (found.at_s, found.idle_s, found.checkpoints, found.final, found.of, found.final_ms, found.committed) == (
        12.0,
        8.0,
        1.5,
        1,
        " of replication 0",
        50.0,
        7.0,
    )
    runs[0]["checkpoints"]["x_job"] = 2
    assert (finish(runs[:1], [10.0], 7.0).of, finish(runs, [10.0, 14.0], 7.0).of) == (
        " of job 2",
        " of job 2 of replication 0",
    )
    early = finish(runs[1:], [3.0], 0.0)
    assert (early.idle_s, early.checkpoints) == (0.0, 2)  # the job was over before its last second was
    idle = Made().checkpoint(500, 40).load(busy=(0, 0, 0), records=(0, 0, 0)).tables()
    idle["checkpoints"]["x_finalization"] = 0.0
    assert finish([idle], [5.0], 0.0).idle_s == 5.0


@pytest.mark.parametrize(
    ("restarts", "end_s", "expected"),
    [
        ([], 10.1, 4.0),
        ([], 10.0, math.nan),
        ([(1000.0, 6000.0)], 12.1, 4.0),
        ([(1000.0, 6000.0)], 12.0, math.nan),
        ([(1000.0, 0.0)], 10.1, 4.0),
        ([(1000.0, -1.0)], 99.0, math.nan),
    ],
)
def test_checkpoints_have_ended_after_three_intervals_of_silence(restarts, end_s, expected):
    """Each lasts two seconds; it counts since the last trigger at 4 s or since the job runs again."""
    run = Made().checkpoint(2000, 40).checkpoint(4000, 40).tables() | {
        "recoveries": pd.DataFrame(restarts, columns=["failed", "running"])
    }

    assert expected == pytest.approx(last_trigger_s([run], [end_s], 2.0), nan_ok=True)
    assert last_trigger_s([Made().tables() | {"recoveries": run["recoveries"][:0]}], [7.0], 2.0) == 0.0


def test_failures_in_a_row_end_with_a_completed_checkpoint():
    """What a restart interrupted is no failure, and the longest of all runs counts."""
    first, second = Made(), Made()
    for i, failure in enumerate(
        ["CHECKPOINT_EXPIRED", "", "CHECKPOINT_EXPIRED", "JOB_FAILOVER_REGION", "CHECKPOINT_EXPIRED", ""]
    ):
        first.checkpoint(1000 * i, 200, status="FAILED" if failure else "COMPLETED", failure=failure)
    second.checkpoint(1000, 200, status="FAILED", failure="CHECKPOINT_EXPIRED")

    assert (singles([first.tables(), second.tables()]).in_a_row, singles([second.tables()]).in_a_row) == (2, 1)


def test_single_checkpoints_are_those_that_exist():
    """The median of four is the second quickest; of two runs the replication is named; an interrupted one is nobody's failure."""
    first, second = Made(), Made()
    for ms in (100, 400, 210):
        first.checkpoint(1000, ms, size=ms, persisted=7).part("sync", "sink", ms - 10)
    second.checkpoint(1000, 200).part("sync", "sink", 150)
    second.checkpoint(2000, 900, status="FAILED", failure="JOB_FAILOVER_REGION")
    second.checkpoint(3000, 800, status="FAILED", failure="CHECKPOINT_EXPIRED").part("sync", "sink", 5).part(
        "finalisation", "", 700
    )
    found = singles([first.tables(), second.tables()])

    assert str(found.median) == "checkpoint 1 of replication 1"
    assert (found.median.duration_ms, found.median.path.sync_ms) == (200.0, 150.0)
    assert (
        found.slowest.number,
        found.slowest.replication,
        found.slowest.duration_ms,
        found.slowest.written_bytes,
        found.slowest.persisted_bytes,
        found.slowest.path.sync_ms,
        found.slowest.cut_off,
    ) == (2, 0, 400.0, 400.0, 7.0, 390.0, "")
    assert (found.failed.number, found.failed.replication, found.failed.cut_off, found.failed.path.sync_ms) == (
        3,
        1,
        "finalisation",
        5.0,
    )
    assert found.first_upload is None
    assert singles([first.tables()], warmup_s=1.001) == Singles(None, None, None)
    assert (
        singles([first.tables()], warmup_s=1.0).median.number - 2,
        singles([first.tables()]).median.replication,
    ) == (1, None)


def test_a_checkpoint_of_a_chain_names_its_job():
    """Ids go on from job to job, and paths are those of the same job."""
    run = Made().checkpoint(0, 100).part("sync", "sink", 90).tables()
    both = {
        name: pd.concat(
            [run[name].assign(x_job=job, **({"duration": job * 10**6} if name == "path" else {})) for job in (1, 2)]
        )
        if name in ("checkpoints", "path")
        else run[name]
        for name in run
    }
    found = singles([both]).median

    assert (str(found), found.path.sync_ms) == ("checkpoint 1 of job 1", 1.0)
    assert str(Single(7, None, None, 1.0, 1.0, 1.0, found.path)) == "checkpoint 7"


@pytest.mark.parametrize(("slower", "number"), [(1100, 2), (3000, 3)])
def test_the_slower_one_of_the_two_in_the_middle_if_they_differ(slower, number):
    """Its cause explains a median that is above the faster one."""
    run = Made()
    for duration in (100, 1000, slower, 5000):
        run.checkpoint(0, duration)

    assert singles([run.tables()]).median.number == number


def test_summaries_have_each_quantile_in_its_place():
    """They take 100 to 1100 ms: the median is 600, nine in ten take at most 1000, the longest 1100."""
    run = Made()
    for k in range(11):
        run.checkpoint(1000 * k, 100 * (k + 1), size=10 * k, persisted=k).part("upload", "sink", 100 * (k + 1))
    run.checkpoint(20_000, 5, status="FAILED", failure="late").checkpoint(
        21_000, 5, status="FAILED", failure="JOB_FAILOVER_REGION"
    )
    run.checkpoint(22_000, 5, status="FAILED", failure="JOB_FAILOVER_REGION")
    row = summarize([run.load(busy=(0.2, 0.2, 0.2)).tables()], EDGES)

    assert (
        row.end_to_end_p50_ms,
        row.end_to_end_p90_ms,
        pytest.approx(row.end_to_end_p99_ms),
        row.end_to_end_max_ms,
    ) == (600, 1000, 1090, 1100)
    assert (row.persisted_bytes, row.persisted_mean_bytes, row.checkpointed_bytes) == (5, 5, 50)
    assert (row.failed, row.interrupted, row.failure) == (3, 2, "late")
    assert (row.path.upload_ms, row.tail.upload_ms) == (600, 1050)  # the slowest tenth: 1000 and 1100
    assert (row.throughput_per_second, row.emitted_per_second, row.offered_per_second) == (100, 100, 100)


@pytest.mark.parametrize(
    ("shares", "vertex"), [((0.5, 0.48, 0.1), "map"), ((0.5, 0.479, 0.1), "source"), ((0.5, 0.1, 0.48), "sink")]
)
def test_within_two_per_cent_the_last_vertex_is_the_bottleneck(shares, vertex):
    assert vertex == summarize([Made().load(busy=shares).tables()], EDGES).bottleneck


def test_the_hottest_subtask_is_found():
    """A subtask that has no time at all counts as idle."""
    run = Made().load(busy=(0.1, 0.2, 0.3)).task("map", 0.9, index=3).task("map", 0.4, index=1)
    run.tasks.append(dict.fromkeys(run.tasks[0], 0.0) | {"vertex": "sink", "index": 5})
    row = summarize([run.tables()], EDGES)

    assert ("map", 3, pytest.approx(0.9)) == (row.bottleneck, row.busiest_subtask, row.busiest_subtask_share)


def test_rates_are_of_sinks_and_of_sources():
    load = pd.DataFrame({"numRecordsInPerSecond": [100.0, 40.0, 7.0]}, index=["source", "map", "sink"])

    assert (
        served_per_second(load, EDGES, ()),
        served_per_second(load, EDGES, ["sink"]),
        emitted_per_second(load, EDGES),
    ) == (7.0, 47.0, 100.0)
    assert math.isnan(served_per_second(load[:0], EDGES, ()))
    assert math.isnan(emitted_per_second(load[:0], EDGES))
    series = Made().load(busy=(0, 0, 0), seconds=10, backlog=lambda second: 7 * second).tables()["series"]
    assert (backlog_per_second(series, 0.0), backlog_per_second(series, 4.0), backlog_per_second(series, 10.0)) == (
        7.0,
        7.0,
        0.0,
    )


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([1, 5], 0),
        ([9, 5, 5], 1),
        ([5.5, 5, 5], 0),
        ([5.6, 5, 5], 1),
        ([4.5, 5, 5], 0),
        ([4.4, 5, 5], 1),
        ([9, 8, 5, 5], 2),
        ([9, 8, 7, 5], 0),
    ],
)
def test_an_extreme_by_more_than_a_tenth_is_left_out(values, count):
    """At the beginning, and not beyond the first half."""
    assert count == settled_after(pd.Series(values, dtype=float).to_numpy())


def test_durations_that_did_not_end_are_bounds():
    """100 to 1000 ms of completed ones after the warm-up; one failed after 2 s, one is under way for 5 s."""
    run = Made().checkpoint(0, 9_999)
    for k in range(1, 11):
        run.checkpoint(1000 * k, 100 * k)
    run.checkpoint(11_000, 2000, status="FAILED").checkpoint(15_000, -1, status="IN_PROGRESS")
    found = durations_of_checkpoints(run.tables()["checkpoints"], 20_000.0, 1000.0)

    assert {column: tuple(found[column]) for column in ("end_to_end_p50_ms", "end_to_end_max_ms")} == {
        "end_to_end_p50_ms": (650.0, False),
        "end_to_end_max_ms": (5000.0, True),
    }
    assert (pytest.approx(found["end_to_end_p90_ms"].value), found["end_to_end_p90_ms"].is_bound) == (1900.0, True)
    assert 2000 < found["end_to_end_p99_ms"].value < 5000
    completed = durations_of_checkpoints(run.tables()["checkpoints"][:11], 20_000.0, 1000.0)
    assert [(pytest.approx(own.value), own.is_bound) for own in completed.values()] == [
        (550.0, False),
        (910.0, False),
        (991.0, False),
        (1000.0, False),
    ]


def firsts(*sizes, lasts=100, persisted=0):
    """Which of these checkpoints, a second apart, are first uploads.  `sizes`: written, and referred to; others: of the first."""
    run = Made().checkpoint(0, lasts, size=sizes[0][0], state=sizes[0][1], persisted=persisted)
    for k, (size, state) in enumerate(sizes[1:], 1):
        run.checkpoint(1000 * k, 100, size=size, state=state)
    return first_uploads(run.tables()["checkpoints"]).tolist()


@pytest.mark.parametrize(
    ("size", "later", "expected"),
    [(900, 100, True), (899, 100, False), (900, 450, False), (900, 449, True), (0, 0, False)],
)
def test_a_first_upload_writes_nine_tenths_and_more_than_twice_what_later_ones_do(size, later, expected):
    """It refers to 1000 bytes, and so do later ones."""
    assert firsts((size, 1000), *[(later, 1000)] * 3) == [expected, False, False, False]


@pytest.mark.parametrize(("lasts", "expected"), [(1000, False), (1001, True)])
def test_what_is_triggered_before_the_first_is_acknowledged_uploads_everything_too(lasts, expected):
    """It has nothing to build on.  A compaction later writes as much, and is what checkpoints of this job are like."""
    sizes = [(size, 1000) for size in (1000, 1000, 10, 10, 1000, 10)]

    assert firsts(*sizes, lasts=lasts) == [True, expected, *[False] * 4]


def test_what_a_later_job_uploads_is_no_first_upload():
    """One that is rescaled, or begins from a snapshot without claiming it; it shows that the only one before is a first upload."""
    run = Made()
    for k, size in enumerate((1000, 1000, 10, 10)):
        run.checkpoint(1000 * k, 100, size=size, state=1000)
    rows = run.tables()["checkpoints"].assign(x_job=[0, 1, 1, 1])

    assert first_uploads(rows).tolist() == [True, False, False, False]
    assert not first_uploads(rows[:1]).any()


@pytest.mark.parametrize(("referred", "expected"), [(200, False), (201, True)])
def test_later_checkpoints_refer_to_more_than_twice_what_they_write(referred, expected):
    assert expected == firsts((1000, 1000), *[(100, referred)] * 3)[0]


def test_data_in_flight_is_no_state():
    """150 of the 1000 bytes that the first one writes: what is left are less than nine tenths of its state."""
    for persisted in (0, 150):
        assert firsts((850 + persisted, 900 + persisted), (10, 900), (10, 900), persisted=persisted)[0]
    assert not firsts((950, 1050), (10, 900), persisted=150)[0]


def test_bounds_of_those_that_did_not_complete():
    """The median of two, the longest, the parts up to then; an end that came as soon as completed ones take says nothing."""
    run = (
        Made()
        .checkpoint(0, 300)
        .checkpoint(1000, 500, status="FAILED", failure="CHECKPOINT_EXPIRED")
        .part("behind data", "sink", 400)
    )
    run.part("sync", "sink", 100).checkpoint(2000, 900, status="FAILED", failure="CHECKPOINT_EXPIRED").part(
        "behind data", "sink", 900
    )
    run.checkpoint(3000, 100, status="FAILED", failure="other").checkpoint(9600, -1, status="IN_PROGRESS")
    expired, failed = not_completed([run.tables()], [10_000.0 - 5])

    assert (expired.fate, expired.count, expired.median_ms, expired.longest_ms) == ("expired", 2, 700.0, 900.0)
    assert expired.parts_ms == {"start delay": 650.0, "alignment": 0.0, "pre-barrier": 0.0, "sync": 50.0, "async": 0.0}
    assert (expired.cut_off, failed.fate, failed.parts_ms) == ("sync", "failed", {})
    assert [found.fate for found in not_completed([run.tables()], [10_001.0])][2:] == ["under way at the end"]
    assert [found.fate for found in not_completed([run.tables()], [10_000.0], warmup_s=3.0)][:1] == ["failed"]


REQUESTS = pd.DataFrame(
    [(0.0, 10, 1, 2, 9, 5e9, 0.0, 1e9), (10.0, 20, 2, 4, 3, 1e9, 2e9, 3e9), (30.0, 40, 0, 0, 0, 0.0, 1e9, 5e9)],
    columns=["time", "put", "list", "get", "refused", "written", "read", "stored"],
)


def stored(requests):
    return {**Made().tables(), "requests": requests}


def test_a_first_upload_is_not_extrapolated():
    """It ends at 9 s, and is left out with its 10 PUT.  Three intervals follow, of 10 s each, with 60 PUT."""
    run = Made().checkpoint(0, 9000, size=1000, state=1000)
    for k, size in enumerate((10, 10, 1000, 10)):
        run.checkpoint(10_000 * (k + 1), 100, size=size, state=1000)
    tables = {**run.tables(), "requests": REQUESTS}
    chain = {**tables, "checkpoints": tables["checkpoints"].assign(x_job=[0, 0, 0, 1, 1])}

    assert [storage_use([own], [50.0]).put_requests_per_hour for own in (tables, chain)] == [
        pytest.approx(60 * 3600 / 30)
    ] * 2


def test_a_run_of_one_interval_has_the_rates_of_one():
    """Checkpoints at 0 s and 30 s, and an end at 36 s: 40 PUT in the second one, which begins when the interval ends."""
    tables = {**Made().checkpoint(0, 100).checkpoint(30_000, 100).tables(), "requests": REQUESTS}

    assert storage_use([tables], [36.0]).put_requests_per_hour == pytest.approx(30 * 3600 / 30)
    assert storage_use([tables], [100.0]).put_requests_per_hour == pytest.approx(70 * 3600 / 100)


@pytest.mark.parametrize(
    ("kinds", "saves", "put"),
    [
        ([], 0, 60 * 3600 / 40),
        (["instance"], 0, 20 * 3600 / 34),  # from 29 s until its first checkpoint is complete, at 35 s
        (["rescale", "instance"], 0, 20 * 3600 / 34),
        (["task-manager"], 0, 20 * 3600 / 34),
        (["task", "task"], 0, 60 * 3600 / 40),
        ([], 1, 20 * 3600 / 39),  # from 30 s to 31 s
        ([], 2, 60 * 3600 / 40),
    ],
)
def test_what_happened_once_is_not_extrapolated(kinds, saves, put):
    """Planned restarts, and the only failure or savepoint.  What happened twice has a rate."""
    run = Made().checkpoint(1000, 100).checkpoint(34_000, 500)
    for _ in range(saves):
        run.checkpoint(30_000, 600)
    tables = {**run.tables(), "requests": REQUESTS}
    tables["checkpoints"]["savepointFormat"] = ["", "", *["CANONICAL"] * saves]
    restarts = pd.DataFrame({"kind": kinds, "failed": [29_500.0] * len(kinds)})

    found = storage_use([{**tables, "recoveries": restarts}], [50.0], warmup_s=10.0)
    assert found.put_requests_per_hour == pytest.approx(put)


def test_an_object_store_is_asked_so_often_an_hour():
    """From 10 s to 50 s, a ninetieth of an hour, it answers 60 PUT, 2 LIST and 4 GET, and refuses 3.

    First it holds 3 GB, then 5 GB, and moves 4 GB."""
    use = storage_use([stored(REQUESTS)], [50.0], warmup_s=10.0)

    assert pytest.approx(
        [
            use.put_requests_per_hour,
            use.list_requests_per_hour,
            use.get_requests_per_hour,
            use.refused_requests_per_hour,
            use.stored_bytes,
            use.moved_bytes_per_hour,
        ]
    ) == [60 * 90, 2 * 90, 4 * 90, 3 * 90, 4e9, 4e9 * 90]
    several = storage_use([stored(REQUESTS), stored(REQUESTS[:1])], [50.0, 50.0])
    assert pytest.approx((several.put_requests_per_hour, several.stored_bytes)) == (
        (70 + 10) * 72 / 2,
        (1e9 * 10 + 3e9 * 20 + 5e9 * 20) / 50 / 2 + 0.5e9,
    )
    assert not storage_use([stored(REQUESTS[:0])], [50.0]).has_requests
    assert not storage_use([stored(REQUESTS)], [10.0], warmup_s=10.0).has_requests


def test_the_table_of_an_object_store():
    """Strategies without one have no numbers; without any there is no table."""
    known, unknown = (
        storage_use([stored(REQUESTS)], [50.0], warmup_s=10.0),
        storage_use([stored(REQUESTS[:0])], [50.0]),
    )
    found = storage_use_table({"a": known, "b": unknown}, S3_STANDARD)
    cost = 730 * ((5400 + 180) * 0.005 + 360 * 0.0004) / 1000 + 4 * 0.023

    assert [["a", "5400", "180", "360", "270", "4 GB", "360 GB", f"{cost:.2f} USD"], ["b", *["-"] * 7]] == found.rows
    assert len(found.header) == 8
    assert storage_use_table({"b": unknown}, S3_STANDARD) is None

"""Where the time of a setting goes, on rows whose parts can be added up on paper."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from sim.advice.levers import (
    ASYNC_CAPACITY,
    CHANGELOG,
    CORES,
    FILE_MERGING,
    HEARTBEATS,
    LOCAL_RECOVERY,
    PARALLELISM,
    PREFIXES,
    RESTARTS,
    ROCKSDB,
    SEGMENTS,
    SPARE,
    TIMEOUT,
    TRANSFER_THREADS,
    rank_levers,
)
from sim.advice.settings import BarrierSetting, Lever, RareCheckpoints
from sim.advice.situation import (
    ALIGNMENT,
    CHANNEL_STATE,
    COLUMNS,
    EXPIRY,
    HICCUPS,
    LOSS,
    MESSAGES,
    OUTAGE,
    PRE_BARRIER,
    QUEUE,
    REPLACEMENT,
    REPLAY,
    RESTORE,
    SYNC,
    UPLOAD,
    _checkpoint_parts,
    _shares,
    dominant,
    recovery_causes,
    recovery_parts,
)
from sim.studies.sweeps.design import override
from sim.studies.work import work_s
from tests.advice.levers.test_levers import JOB, situation
from tests.advice.made_up import JOB as SMALL
from tests.scenarios import read_scenario

S = 10**9
DELAYED = read_scenario(f"{JOB}restart: {{strategy: fixed-delay, delay: 5 s}}\n")
DFS = "dfs: {nodes: 6, bandwidth: 100 MB/s, slow: {share: 2 %, factor: 20, lasts: 1 min}}"
SLOW = read_scenario(JOB.replace("bandwidth: 100 MB/s", DFS))
FIRING = RareCheckpoints(17_400.0, "windows of 'win' fire for 18 s", "win")


def parts_of(rows, *, has_residuals=False):
    return {part: ms for part, ms in _checkpoint_parts(pd.DataFrame(rows), has_residuals=has_residuals).items() if ms}


def test_parts_are_means_over_runs_and_some_are_joined():
    """The alignment timeout is a wait behind data, and an asynchronous thread at other work one for uploads."""
    first = {column: float(i) for i, column in enumerate(COLUMNS.values(), 1)}
    second = {column: 3 * ms for column, ms in first.items()}

    assert parts_of([first, second]) == {
        QUEUE: 2 * (1 + 2),
        ALIGNMENT: 6,
        "pre-barrier": 8,
        SYNC: 10,
        "asynchronous work": 12,
        UPLOAD: 2 * (7 + 8),
        CHANNEL_STATE: 18,
        MESSAGES: 20,
    }
    assert parts_of([{"tail_queue_ms": 5.0, "tail_sync_ms": math.nan}]) == {QUEUE: 5.0}
    assert parts_of([]) == {}


def test_hiccups_are_what_slow_checkpoints_spend_beyond_the_usual():
    """In parts that residuals of a history make longer, and only where there are any."""
    row = {
        "tail_messages_ms": 50.0,
        "path_messages_ms": 20.0,
        "tail_sync_ms": 5.0,
        "path_sync_ms": 9.0,
        "tail_queue_ms": 7.0,
        "path_queue_ms": 1.0,
    }

    assert parts_of([row], has_residuals=True) == {MESSAGES: 20.0, HICCUPS: 30.0, SYNC: 5.0, QUEUE: 7.0}
    assert parts_of([row]) == {MESSAGES: 50.0, SYNC: 5.0, QUEUE: 7.0}
    assert parts_of([{"tail_messages_ms": 50.0}], has_residuals=True) == {MESSAGES: 50.0}


def setting(*breaks, completed=1.0, interval="10 s"):
    return SimpleNamespace(breaks=breaks, tight=(), completed=completed, interval=interval)


def shares(*breaks, parts=None, expired=False, completed=1.0):
    own = {UPLOAD: 30.0, SYNC: 10.0} if parts is None else parts
    return _shares(setting(*breaks, completed=completed), own, {}, expired=expired)


def test_each_broken_limit_counts_alike():
    """Checkpoints are three quarters upload; with a loss beside them all of that is half."""
    assert {UPLOAD: 0.75, SYNC: 0.25} == shares("checkpoint_ms") == shares("visible_ms")
    assert shares("loss") == {LOSS: 1.0}
    assert shares("checkpoint_ms", "loss") == {UPLOAD: 0.375, SYNC: 0.125, LOSS: 0.5}
    assert shares("checkpoint_ms", expired=True) == {EXPIRY: 0.5, UPLOAD: 0.375, SYNC: 0.125}
    assert {} == shares() == shares("checkpoint_ms", parts={})
    assert shares(completed=0.0) == {EXPIRY: 1.0}
    assert shares("loss", completed=0.0) == {LOSS: 1.0}


@pytest.mark.parametrize(
    ("times", "rescales", "parts"),
    [
        ((30.0, 20.0, 15.0), False, (15.0, 0.0, 5.0, 10.0)),
        ((30.0, 20.0, 15.0, 12.0), False, (3.0, 12.0, 5.0, 10.0)),
        ((30.0, 20.0, 15.0, 18.0), False, (0.0, 15.0, 5.0, 10.0)),
        ((30.0, 20.0, 99.0), False, (20.0, 0.0, 0.0, 10.0)),
        ((0.0, 0.0, 9.0), False, (0.0, 0.0, 0.0, 0.0)),
        # the job runs with fewer slots after 5 s, and does not catch up before they are back
        ((90.0, 5.0, 60.0, 50.0), True, (10.0, 50.0, 0.0, 30.0)),
        ((30.0, 5.0, 60.0), True, (5.0, 0.0, 0.0, 25.0)),
    ],
)
def test_parts_of_a_recovery_follow_one_another(times, rescales, parts):
    """Seconds: of the recovery, the downtime, without slots, and until a new task manager has started."""
    found = recovery_parts(*times, rescales=rescales)

    assert found == dict(zip((OUTAGE, REPLACEMENT, RESTORE, REPLAY), parts, strict=True))


def test_an_outage_causes_its_share_of_what_is_caught_up():
    """15 s without slots, 12 of them for a new task manager, 5 s to restart, and 9 s of work: of 29 s each causes its share."""
    causes = recovery_causes(recovery_parts(30.0, 20.0, 15.0, 12.0), 10.0)

    assert causes == pytest.approx(
        {OUTAGE: 3 + 10 * 3 / 29, REPLACEMENT: 12 + 10 * 12 / 29, RESTORE: 5.0, REPLAY: 10 * 14 / 29}
    )
    assert recovery_parts(30.0, 20.0, math.inf) == {OUTAGE: 1.0}
    assert recovery_causes({OUTAGE: 1.0}, 10.0)[REPLAY] == 0.0


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"milliseconds": {QUEUE: 18_000.0, UPLOAD: 2000.0}}, "18 s of 20 s: barriers wait behind data"),
        (
            {"milliseconds": {QUEUE: 18_000.0, UPLOAD: 2000.0}, "full": "sink"},
            "18 s of 20 s: barriers wait behind data ('sink' is full)",
        ),
        ({"milliseconds": {SYNC: 18_000.0}, "full": "sink"}, "18 s of 18 s: synchronous parts"),
        (
            {"milliseconds": {UPLOAD: 2000.0}, "uploaded_bytes": 4e9, "checkpoint_ms": 1900.0},
            "2 s of 2 s: upload of state (4 GB at 2 GB/s)",
        ),
        (
            {"milliseconds": {UPLOAD: 702.0}, "uploaded_bytes": 2.5e6, "checkpoint_ms": 90.0},
            "702 ms of 702 ms: upload of state (the median checkpoint writes 2.5 MB)",
        ),
        ({"milliseconds": {UPLOAD: 2000.0}}, "2 s of 2 s: upload of state"),
        (
            {"breaks": ("recovery_ms",), "recovery": {OUTAGE: 9000.0, REPLAY: 1000.0}, "milliseconds": {SYNC: 1.0}},
            "9 s of 10 s of recovery: until a lost task manager's slots are replaced",
        ),
        (
            {
                "breaks": ("recovery_ms",),
                "recovery": {OUTAGE: 4000.0, REPLAY: 63_000.0},
                "busiest": "'sink' is 90 % busy",
            },
            "63 s of 67 s of recovery: catching up ('sink' is 90 % busy)",
        ),
        (
            {"breaks": ("recovery_ms",), "recovery": {OUTAGE: 9000.0, REPLAY: 1000.0}, "scenario": DELAYED},
            "9 s of 10 s of recovery: the restart delay of 5 s",
        ),
        (
            {"breaks": ("recovery_ms",), "recovery": {OUTAGE: 4000.0, REPLAY: 63_000.0}, "is_unlimited": True},
            "63 s of 67 s of recovery: records processed again",
        ),
        (
            {"breaks": ("recovery_ms", "loss"), "recovery": {OUTAGE: 9000.0}, "milliseconds": {SYNC: 1.0}},
            "1 ms of 1 ms: synchronous parts",
        ),
        ({"breaks": ("recovery_ms",), "recovery": {}, "milliseconds": {SYNC: 1.0}}, "1 ms of 1 ms: synchronous parts"),
        ({"milliseconds": {SYNC: 0.0}}, ""),
        (
            {"milliseconds": {QUEUE: 18_000.0}, "full": "sink", "hot": "sink[0]"},
            "18 s of 18 s: barriers wait behind data ('sink[0]' alone is full)",
        ),
        (
            {"milliseconds": {QUEUE: 18_000.0}, "protocol": BarrierSetting("unaligned, debloating", {}, aligned=False)},
            "18 s of 18 s: barriers wait for a task thread",
        ),
        (
            {"milliseconds": {UPLOAD: 85.0}, "breaks": ("checkpoint_ms",), "checkpoint_limit_ms": 1000.0},
            "the slowest tenth takes 85 ms: rarer checkpoints break the limit",
        ),
        (
            {
                "milliseconds": {UPLOAD: 85.0},
                "breaks": ("checkpoint_ms",),
                "checkpoint_limit_ms": 1000.0,
                "recorded_ms": 6000.0,
            },
            "simulated, the slowest tenth takes 85 ms; of its history up to 6 s",
        ),
        (
            {
                "milliseconds": {UPLOAD: 85.0},
                "breaks": ("checkpoint_ms",),
                "checkpoint_limit_ms": 1000.0,
                "rare": RareCheckpoints(2550.0, "2 % of files are slow (storage.slow)"),
            },
            "2 % of files are slow (storage.slow); the slowest tenth takes 85 ms",
        ),
        (
            {
                "milliseconds": {UPLOAD: 85.0},
                "breaks": ("checkpoint_ms",),
                "checkpoint_limit_ms": 1000.0,
                "scenario": SLOW,
            },
            "some are slow (storage.dfs.slow); the slowest tenth takes 85 ms",
        ),
        (
            {"milliseconds": {UPLOAD: 1800.0}, "scenario": SLOW},
            "1.8 s of 1.8 s: upload of state; some are slow (storage.dfs.slow)",
        ),
        (
            {"milliseconds": {UPLOAD: 1800.0}, "rare": RareCheckpoints(2550.0, "some files are slow")},
            "1.8 s of 1.8 s: upload of state, some files are slow",
        ),
        (
            {"milliseconds": {QUEUE: 12_000.0, SYNC: 1.0}, "rare": FIRING},
            "12 s of 12 s: windows of 'win' fire for 18 s",
        ),
        ({"milliseconds": {QUEUE: 60_000.0}, "rare": FIRING}, "60 s of 60 s: barriers wait behind data"),
        ({"milliseconds": {UPLOAD: 12_000.0}, "rare": FIRING}, "12 s of 12 s: upload of state"),
        (
            {
                "milliseconds": {PRE_BARRIER: 500.0, QUEUE: 1200.0},
                "breaks": ("loss", "visible_ms"),
                "loss": 0.05,
                "visible": {"interval": 1e4, "checkpoint and commit": 100.0},
            },
            "5 % of throughput lost: work of operators before the barrier, 500 ms every 10 s",
        ),
        (
            {
                "milliseconds": {PRE_BARRIER: 100.0, QUEUE: 1200.0},
                "breaks": ("loss",),
                "loss": 0.05,
                "visible": {"interval": 1e4, "checkpoint and commit": 100.0},
            },
            "1.2 s of 1.3 s: barriers wait behind data",
        ),
        (
            {
                "milliseconds": {QUEUE: 443.0},
                "breaks": ("visible_ms",),
                "visible": {"interval": 2e4, "checkpoint and commit": 2e4},
            },
            "output visible after 40 s: interval 20 s, checkpoint and commit 20 s",
        ),
    ],
)
def test_the_part_that_takes_most_is_named(changed, text):
    assert text == dominant(replace(situation(), **changed))


def test_a_lever_helps_by_the_shares_of_its_parts():
    lever = Lever("x", (UPLOAD, SYNC), lambda _: iter(()), costs="")

    assert lever.share(situation(**{UPLOAD: 0.5, SYNC: 0.25, QUEUE: 0.25})) == 0.75
    assert lever.share(situation(**{QUEUE: 1.0})) == 0.0


STORE = {"bandwidth": "100 MB/s", "prefixes": 2, "requests": "100/s"}
ASYNC_IO, ROCKSDB_STATE = (
    {"job.count.async-io": {"latency": "20 ms", "capacity": 5}},
    {"job.count.state.backend": "rocksdb"},
)
TIMEOUT_KEY, THREADS = "checkpoint.timeout", "checkpoint.transfer-threads"
SEGMENT_SIZE = "cluster.network.segment-size"
EXPIRED = {"shares": {EXPIRY: 0.5}}
MANY = {"job.count.input.source": "hash", "job.sink.input.count": "hash", "job.count.parallelism": 96}
WINDOW = {"job.count.window": {"tumbling": "40 s", "time": "processing", "fire": "500 us"}}
HEARTBEAT, FIXED = "restart.heartbeat-interval", {"restart": {"strategy": "fixed-delay", "delay": "10 s"}}
PROPOSALS = [
    # six times as long, and ten minutes at least before that
    (TIMEOUT, {TIMEOUT_KEY: "1 min"}, EXPIRED, {TIMEOUT_KEY: "1 h"}),
    (TIMEOUT, {TIMEOUT_KEY: "20 min"}, EXPIRED, {TIMEOUT_KEY: "2 h"}),
    (TIMEOUT, {}, {}, None),
    # machines are doubled where they are limited, or the vertex is full
    (CORES, {"cluster.cores": 3}, {}, {"cluster.cores": 6}),
    (CORES, {}, {}, None),
    (PREFIXES, {"storage": {"object-store": STORE}}, {}, {"storage.object-store.prefixes": 16}),
    (PREFIXES, {"storage": {"object-store": {"prefixes": 2}}}, {}, None),
    (PREFIXES, {}, {}, None),
    (PARALLELISM, {}, {}, None),
    # 20,000 records leave every 40 s, two thirds of them from one subtask: they fire for 13 s, and may for 3.3 s
    (
        PARALLELISM,
        WINDOW,
        {"rare": FIRING._replace(vertex="count"), "checkpoint_limit_ms": 5000.0},
        {"job.count.parallelism": 8, "job.count.input.source.weights": {"counted": [1, 2]}, "job.sink.parallelism": 8},
    ),
    (SEGMENTS, {}, {}, {SEGMENT_SIZE: "8 KiB"}),
    (SEGMENTS, {SEGMENT_SIZE: "8 KiB"}, {}, None),
    (SEGMENTS, {"cluster.network.debloat": "on"}, {}, None),
    (SPARE, {"restart.replacement": "2 min"}, {}, {"restart.replacement": "0 s"}),
    # five heartbeats and twelve delays within the limit on recovery, and 2 s each at most
    (HEARTBEATS, {}, {}, {HEARTBEAT: "2 s"}),
    (HEARTBEATS, {}, {"recovery_limit_ms": 9999.0}, {HEARTBEAT: "1 s"}),
    (HEARTBEATS, {HEARTBEAT: "1 s"}, {"recovery_limit_ms": 10_000.0}, None),
    (HEARTBEATS, {}, {"recovery_limit_ms": 100.0}, {HEARTBEAT: "100 ms"}),
    (RESTARTS, FIXED, {}, {"restart.delay": "2 s"}),
    (RESTARTS, FIXED, {"recovery_limit_ms": 6000.0}, {"restart.delay": "500 ms"}),
    # with 2 s the attempts are over before there are slots
    (RESTARTS, {"restart": FIXED["restart"] | {"delay": "100 s", "attempts": 6}}, {}, {"restart.delay": "5 s"}),
    (SPARE, {}, {}, None),
    (ASYNC_CAPACITY, ASYNC_IO, {"full": "count"}, {"job.count.async-io.capacity": 10}),
    (ASYNC_CAPACITY, ASYNC_IO, {}, None),
    (ASYNC_CAPACITY, {}, {"full": "count"}, None),
    # 96 subtasks beside the four of the others
    (FILE_MERGING, MANY, {}, {"storage.file-merging": "on"}),
    (FILE_MERGING, MANY | {"job.count.parallelism": 95}, {}, None),
    (CHANGELOG, {}, {}, {"job.count.state.changelog": "on"}),
    (CHANGELOG, {"job.count.state.changelog": "on"}, {}, None),
    (
        CHANGELOG,
        {"job.count.state.changelog": {"storage": "memory"}},
        {},
        {"job.count.state.changelog.storage": "filesystem"},
    ),
    (LOCAL_RECOVERY, {}, {}, {"checkpoint.local-recovery": True}),
    (LOCAL_RECOVERY, {"checkpoint.local-recovery": True}, {}, None),
    (TRANSFER_THREADS, {}, {}, None),
    (TRANSFER_THREADS, ROCKSDB_STATE | {THREADS: 15}, {}, {THREADS: 16}),
    (TRANSFER_THREADS, ROCKSDB_STATE | {THREADS: 16}, {}, None),
]


@pytest.mark.parametrize(("lever", "job", "where", "point"), PROPOSALS)
def test_what_a_lever_proposes(lever, job, where, point):
    """`job`: keys of the scenario; `where`: fields of the situation."""
    scenario = read_scenario(JOB, overrides=[override(key, value) for key, value in job.items()])
    changes = lever.proposes(replace(situation(), scenario=scenario, **where))

    assert [change.point for change in changes] == ([] if point is None else [point])


def test_work_is_a_sum_of_cells_tasks_checkpoints_and_records():
    """Four tasks for 3 s with 5 checkpoints, and 200 records a second through two vertices."""
    job = read_scenario(SMALL)

    assert (
        pytest.approx(work_s({"completed": 5, "emitted_per_second": 200.0}, job))
        == 0.06 + 4 * (4e-5 * 3 + 7e-4 * 5) + 1e-8 * 200 * 3 * 2
    )
    assert pytest.approx(work_s({"ended_s": 2.0, "completed": math.inf}, job)) == 0.06 + 4 * 4e-5 * 2


def test_levers_that_take_no_machines_come_first():
    """Among them those that help most, by quarters; within a quarter the order of the list decides."""
    alike, apart = (situation(full="count", **{UPLOAD: share, QUEUE: 1 - share}) for share in (0.6, 0.63))

    assert [lever.name for lever, _ in rank_levers(alike)] == [
        "barriers",
        "RocksDB incremental",
        "changelog",
        "segments",
        "parallelism",
    ]
    assert [lever.name for lever, _ in rank_levers(apart)] == [
        "RocksDB incremental",
        "changelog",
        "barriers",
        "segments",
        "parallelism",
    ]


@pytest.mark.parametrize(("share", "is_tried"), [(0.05, False), (0.051, True)])
def test_a_lever_that_shortens_no_more_than_a_twentieth_is_not_tried(share, is_tried):
    assert is_tried == (
        "local recovery" in [lever.name for lever, _ in rank_levers(situation(**{RESTORE: share, LOSS: 1 - share}))]
    )


@pytest.mark.parametrize(
    ("service", "written"),
    [
        ("500 us", "510000 ns"),
        ("{exponential: 500 us}", {"exponential": "510000 ns"}),
        ("{uniform: 500 us}", {"uniform": "510000 ns"}),
        ("{lognormal: {mean: 500 us, cv: 2}}", {"lognormal": {"mean": "510000 ns", "cv": 2}}),
    ],
)
def test_a_slower_service_has_the_law_that_it_had(service, written):
    where = situation(JOB.replace("service: 500 us", f"service: {service}"))
    (change,) = ROCKSDB.proposes(where)

    assert written == change.point["job.count.service"]


def test_inputs_with_services_of_their_own_become_slower_as_well():
    where = situation(JOB.replace("{ship: hash, weights: [1, 2]}", "{ship: hash, service: 1 ms}"))
    (change,) = ROCKSDB.proposes(where)

    assert (change.point["job.count.input.source.service"], change.point["job.count.service"]) == (
        "1010000 ns",
        "510000 ns",
    )
    assert list(ROCKSDB.proposes(situation(JOB.replace("size: 1 GB", "size: 1 GB, backend: rocksdb")))) == []

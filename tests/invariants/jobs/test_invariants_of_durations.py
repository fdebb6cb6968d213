"""Invariants 25 to 30: what durations mean, how they scale, with failures and on storage that shares."""

from dataclasses import replace
from fractions import Fraction
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.checkpoint import Barriers
from sim.model.cluster import Debloating
from sim.model.faults import (
    Fault,
    JobManagerDown,
    Kill,
    NetworkOutage,
    Restart,
    SlowTask,
    StorageOutage,
    TaskManagerLost,
    When,
)
from sim.model.job import Distribution, Job, Snapshot
from sim.model.storage import Dfs, ObjectStore, Retry, SlowPlaces, Storage
from sim.results.tables import checkpoints_table, subtasks_table
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    run,
    scenario,
    scenarios,
    with_network,
    with_options,
)

# Invariants 25-30: what the reported durations mean, and how they scale.


NOISE_MS = 1e-6  # float conversion of ns to ms


def _tables(world):
    stats = [world.stats[number] for number in sorted(completed(world))]
    return checkpoints_table(stats), subtasks_table(stats, world.names)


@given(scenarios(st.just(ALIGNED)))
def test_invariant_25_aligned_parts_add_up(world_of):
    """Start delay, alignment, sync and async fit into the end-to-end duration; what is left covers the pre-barrier work."""
    _, rows = _tables(run(world_of))
    parts = rows["start_delay"] + rows["alignment_duration"] + rows["sync_duration"] + rows["async_duration"]

    assert (rows["start_delay"] >= 0).all()
    assert (rows["end_to_end_duration"] - parts >= rows["x_pre_barrier"] - NOISE_MS).all()


@given(scenarios(st.just(UNALIGNED)))
def test_invariant_25_unaligned_parts_fit(world_of):
    """An unaligned snapshot begins at the first barrier: alignment overlaps what follows."""
    _, rows = _tables(run(world_of))
    reported = rows["start_delay"] + rows["sync_duration"] + rows["async_duration"]
    hidden = rows["end_to_end_duration"] - reported

    assert (reported <= rows["end_to_end_duration"] + NOISE_MS).all()
    assert (rows["alignment_duration"] <= hidden + rows["sync_duration"] + rows["async_duration"] + NOISE_MS).all()


@given(scenarios(st.sampled_from([30, 300]).map(lambda ms: Barriers("aligned-timeout", ms * MS))))
def test_invariant_25_converted_parts_fit(world_of):
    """Converted by the timeout: the longer of alignment and snapshot fits behind the start delay."""
    _, rows = _tables(run(world_of))
    work = (rows["sync_duration"] + rows["async_duration"]).combine(rows["alignment_duration"], max)

    assert (rows["start_delay"] + work <= rows["end_to_end_duration"] + NOISE_MS).all()


@given(scenarios())
def test_invariant_26_checkpoint_is_its_slowest_subtask(world_of):
    """The end-to-end duration is the largest of the subtasks', and a completed checkpoint met its timeout."""
    checkpoints, rows = _tables(run(world_of))
    slowest = rows.groupby("id")["end_to_end_duration"].max()
    limit_ms = (world_of.checkpoint.timeout_ns + world_of.overheads.trigger_ns) / MS

    assert checkpoints.set_index("id")["end_to_end_duration"].tolist() == slowest.tolist()
    assert (checkpoints["end_to_end_duration"] <= limit_ms).all()


@pytest.mark.parametrize("pre_barrier_ms", [0, 40])
def test_invariant_27_start_delay_grows_along_a_chain(pre_barrier_ms):
    """Downstream hears of a checkpoint after upstream aligned and did its pre-barrier work."""
    job = chain(1, stages=2)
    slow = tuple(
        replace(v, snapshot=Snapshot(pre_barrier_ns=pre_barrier_ms * MS)) if v.inputs else v for v in job.vertices
    )
    _, rows = _tables(run(scenario(Job(slow))))
    wide = rows.pivot_table(index="id", columns="vertex", values=["start_delay", "alignment_duration", "x_pre_barrier"])

    assert len(wide) >= 3
    for up, down in (("source", "stage0"), ("stage0", "stage1"), ("stage1", "sink")):
        earliest = wide["start_delay"][up] + wide["alignment_duration"][up] + wide["x_pre_barrier"][up]
        assert (wide["start_delay"][down] >= earliest - NOISE_MS).all()


@given(st.sampled_from([2, 4, 5]), st.sampled_from([ALIGNED, UNALIGNED, Barriers("aligned-timeout", 100 * MS)]))
@settings(max_examples=9)
def test_invariant_28_all_times_scale(k, kind):
    """Every time constant times k, every bandwidth over k: every duration times k, exactly."""
    base = with_network(scenario(chain(), kind, latency_ns=50_000), buffer_timeout_ns=-1)
    base = replace(base, storage=_storage(1))
    slow = _scaled(base, k)
    (before, rows), (after, slow_rows) = _tables(run(base)), _tables(run(slow))

    assert len(before) >= 2
    assert (before["end_to_end_duration"] * k).round(6).tolist() == after["end_to_end_duration"].round(6).tolist()
    assert (rows["start_delay"] * k).round(6).tolist() == slow_rows["start_delay"].round(6).tolist()
    assert rows["alignment_persisted"].tolist() == slow_rows["alignment_persisted"].tolist()


def _storage(k):
    return Storage(
        bytes_per_second=8_000_000 // k, close_ns=2 * MS * k, metadata_ns=3 * MS * k, inline_threshold_bytes=0
    )


def _scaled(base, k):
    def stretch(law):
        return replace(law, mean=law.mean * k)

    vertices = tuple(
        replace(v, service=stretch(v.service), inputs=tuple(replace(i, service=stretch(i.service)) for i in v.inputs))
        for v in base.job.vertices
    )
    options = base.checkpoint
    barriers = replace(options.barriers, timeout_ns=options.barriers.timeout_ns * k)
    times = {name: getattr(base.overheads, name) * k for name in base.overheads.__dataclass_fields__}
    return replace(
        base,
        job=Job(vertices),
        checkpoint=replace(
            options, interval_ns=options.interval_ns * k, timeout_ns=options.timeout_ns * k, barriers=barriers
        ),
        run=replace(base.run, duration_ns=base.run.duration_ns * k),
        cluster=replace(base.cluster, latency_ns=base.cluster.latency_ns * k),
        storage=_storage(k),
        overheads=replace(base.overheads, **times),
    )


def _mean_over_seeds(base, column):
    seeds = [replace(base, run=replace(base.run, seed=seed)) for seed in range(1, 31)]
    return mean(_tables(run(seed))[0][column].iloc[1:].mean() for seed in seeds)


def _saturated(**network):
    return with_network(scenario(chain(sink_ns=3 * MS), seconds=3, interval_ms=500), **network)


def test_invariant_30_more_buffers_never_shorten_the_start_delay():
    """In the mean over 30 seeds: what lies in front of a barrier grows with the buffers."""
    few = _mean_over_seeds(_saturated(), "end_to_end_duration")

    assert few <= _mean_over_seeds(_saturated(exclusive_per_channel=4), "end_to_end_duration")
    assert few <= _mean_over_seeds(_saturated(floating_per_gate=8), "end_to_end_duration")


def test_invariant_30_smaller_debloating_target_never_adds_in_flight_data():
    """In the mean over 30 seeds: unaligned checkpoints store less with a smaller target."""

    def persisted(target_ms):
        debloat = Debloating(period_ns=20 * MS, target_ns=target_ms * MS, min_bytes=64)
        return _mean_over_seeds(with_options(_saturated(debloat=debloat), barriers=UNALIGNED), "persisted_data")

    assert persisted(20) <= persisted(60) <= persisted(400)


def test_invariant_30_slower_storage_never_shortens_a_checkpoint():
    """In the mean over 30 seeds: end-to-end duration grows with the slow factor."""

    def duration(factor):
        base = _saturated()
        return _mean_over_seeds(
            replace(base, storage=replace(base.storage, slow_probability=0.2, slow_factor=factor)),
            "end_to_end_duration",
        )

    assert duration(1) <= duration(10) <= duration(100)


def test_invariant_26_expired_checkpoints_say_so():
    """A checkpoint that misses its timeout is FAILED with Flink's reason at the timeout."""
    world = run(scenario(chain(sink_ns=20 * MS), seconds=4, timeout_ns=100 * MS))
    table = checkpoints_table(world.stats.values())
    failed = table[table["status"] == "FAILED"]

    assert {"CHECKPOINT_EXPIRED"} == set(failed["failure_message"])
    assert (failed["end_to_end_duration"].between(100, 102)).all()
    assert len(failed) > 0
    assert world.env.now == 4 * SECOND


# Invariant 28 with everything that goes wrong: failures, restarts and outages scale with all other times.


FAULTS = (
    (Kill("sink", 1), 700),
    (TaskManagerLost(0), 1300),
    (JobManagerDown(60 * MS), 1900),
    (StorageOutage(300 * MS), 2400),
    (Kill(), 3000),
    (NetworkOutage(80 * MS, 0), 3400),
    (SlowTask("sink", 3, 200 * MS), 3600),
    (NetworkOutage(400 * MS, 0), 4000),
    (Kill(), 4010),
)


def restart(k):
    return Restart(
        "fixed-delay",
        delay_ns=50 * MS * k,
        connection_reset_ns=20 * MS * k,
        heartbeat_timeout_ns=100 * MS * k,
        heartbeat_interval_ns=32 * MS * k,
        replacement=Distribution(30 * MS * k),
        slot_check_ns=5 * MS * k,
        cancellation_timeout_ns=SECOND * k,
        fresh_start_ns=40 * MS * k,
    )


def slowed(what, k):
    """Whatever it lasts, k times as long."""
    times = {name: getattr(what, name) * k for name in ("lasts_ns", "down_ns") if hasattr(what, name)}
    return replace(what, **times)


def failing(base, k):
    base = _scaled(base, k)
    faults = tuple(Fault(slowed(what, k), When((at_ms * MS * k,))) for what, at_ms in FAULTS)
    storage = replace(base.storage, retry=Retry(attempts=4, backoff_ns=30 * MS * k, max_backoff_ns=90 * MS * k))
    return replace(base, faults=faults, restart=restart(k), storage=storage)


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
@pytest.mark.parametrize("placement", ["single", "spread"])
@pytest.mark.parametrize("k", [2, 5])
def test_invariant_28_all_times_scale_through_failures(k, placement, kind):
    """Every time constant times k, every bandwidth over k: whatever happens happens at k times its time, to the nanosecond."""
    base = scenario(chain(), kind, seconds=6, interval_ms=170, latency_ns=50_000)
    base = with_network(base, buffer_timeout_ns=-1)
    base = replace(base, cluster=replace(base.cluster, placement=placement))
    before, after = run(failing(base, 1)), run(failing(base, k))
    seen, expected = (
        [(row.time_ns * scale, row.event_type, row.checkpoint, row.task, row.number) for row in world.journal]
        for world, scale in ((after, 1), (before, k))
    )

    assert expected == seen
    assert len(before.job.recovery.stats) >= 5
    assert sum(stats.status == "COMPLETED" for stats in before.stats.values()) >= 10
    assert before.plane.tasks()["served"].tolist() == after.plane.tasks()["served"].tolist()


# Invariants 28 and 30 on storage that shares: whole runs on nodes whose bandwidth every file has a part of.


def _dfs(k=1, slow=None):
    """Ten nodes of 4 MB/s, a card of 8 MB/s per task manager, 1 ms a request, 2000 requests/s."""
    kind = Dfs(
        10,
        4_000_000 // k,
        replication=3,
        block_bytes=640,
        latency=Distribution(MS * k),
        requests_per_second=2000 // k,
        service="constant",
        slow=slow,
    )
    return Storage(metadata_ns=3 * MS * k, inline_threshold_bytes=0, dfs=kind, nic_bytes_per_second=8_000_000 // k)


def _object_store(k=1):
    kind = ObjectStore(1_000_000 // k, Distribution(2 * MS * k), part_bytes=320, parallel_parts=2)
    return Storage(
        metadata_ns=3 * MS * k, inline_threshold_bytes=0, object_store=kind, nic_bytes_per_second=1_000_000 // k
    )


@pytest.mark.parametrize("storage", [_dfs, _object_store], ids=["dfs", "object store"])
@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
@pytest.mark.parametrize("k", [2, 4, 5])
def test_invariant_28_all_times_scale_on_shared_storage(k, kind, storage):
    """Every time constant times k, every bandwidth and rate over k: every duration times k, and the same files."""
    base = with_network(scenario(chain(), kind, latency_ns=50_000), buffer_timeout_ns=-1)
    worlds = run(replace(base, storage=storage())), run(replace(_scaled(base, k), storage=storage(k)))
    (before, rows), (after, slow_rows) = map(_tables, worlds)

    assert len(before) >= 2
    assert (before["end_to_end_duration"] * k).tolist() == pytest.approx(
        after["end_to_end_duration"].tolist(), abs=k * 1e-4
    )
    assert (rows["async_duration"] * k).tolist() == pytest.approx(slow_rows["async_duration"].tolist(), abs=k * 1e-4)
    assert [(f.name, f.size_bytes) for f in worlds[0].storage.files] == [
        (f.name, f.size_bytes) for f in worlds[1].storage.files
    ]


def test_invariant_30_slower_nodes_never_shorten_a_checkpoint():
    """In the mean over 30 seeds: a tenth of the nodes slow in episodes of a second, end-to-end duration grows with the factor."""

    def duration(factor):
        slow = SlowPlaces(Fraction(1, 10), factor, Distribution(SECOND, "exponential"))
        base = scenario(chain(stages=1, sink_ns=MS), seconds=3, interval_ms=500)
        return _mean_over_seeds(replace(base, storage=_dfs(10, slow)), "end_to_end_duration")

    times = [duration(factor) for factor in (1, 10, 100)]

    assert sorted(times) == times
    assert times[0] < times[-1]


def test_invariant_30_more_nodes_never_lengthen_a_checkpoint():
    """In the mean over 30 seeds: files that meet on one node wait for each other there."""

    def duration(nodes):
        base = scenario(chain(4, sink_ns=MS // 10), seconds=2, interval_ms=500)
        storage = Storage(inline_threshold_bytes=0, dfs=Dfs(nodes, 4_000, replication=1, latency=Distribution(MS)))
        return _mean_over_seeds(replace(base, storage=storage), "end_to_end_duration")

    assert duration(1) > duration(4) > duration(50)


def test_the_worlds_of_invariant_30_write_what_they_are_about():
    """Otherwise the invariants above would hold of nothing."""
    world = run(replace(scenario(chain()), storage=_dfs()))

    assert len(completed(world)) > 3
    assert max(stored.size_bytes for stored in world.storage.files) == 1000, "two blocks, or four parts"

"""Whole runs on each kind of storage: what is slow shows in the checkpoints, what fails fails them and nothing else."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from sim.model.checkpoint import Barriers
from sim.model.job import Distribution
from sim.model.storage import Dfs, Disk, FileMerging, ObjectStore, Retry, SlowPlaces, Storage
from sim.runtime.job_instance import JobInstance
from tests.invariants.jobs.small_jobs import MS, SECOND, chain, completed, scenario

FLAT = Storage(1_000_000, close_ns=2 * MS, slow_factor=3 * MS, inline_threshold_bytes=0)
DFS = Storage(dfs=Dfs(10, 1_000_000, latency=Distribution(MS)), inline_threshold_bytes=0)
KINDS = {
    "flat": FLAT,
    "dfs": DFS,
    "object store": Storage(
        object_store=ObjectStore(1_000_000, Distribution(MS), part_bytes=500), inline_threshold_bytes=0
    ),
    "merged": replace(DFS, merging=FileMerging()),
}


def instance(storage, *, kind="aligned", seconds=3, outage_ms=None, placement="isolated"):
    """Run the small chain; storage is down from the first to the second of `outage_ms`."""
    job = scenario(chain(sink_ns=MS), Barriers(kind), seconds=seconds)
    job = replace(job, storage=storage, cluster=replace(job.cluster, placement=placement))
    here = JobInstance(job, "compiled")
    here.start()
    if outage_ms is not None:
        here.env.call_in(outage_ms[0] * MS, lambda: here.storage.fail_until(outage_ms[1] * MS))
    here.env.run(until=here.env.timeout(job.run.duration_ns))
    return here


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kind", ["aligned", "unaligned"])
def test_an_outage_fails_checkpoints_and_they_come_back(name, kind):
    """Down for a second, two attempts 50 ms apart: asynchronous phases fail, are declined, and later ones complete."""
    here = instance(replace(KINDS[name], retry=Retry(2, 50 * MS)), kind=kind, seconds=4, outage_ms=(1000, 2000))
    failed = [row for row in here.stats.values() if row.status == "FAILED"]

    assert {"CHECKPOINT_ASYNC_EXCEPTION"} == {row.failure for row in failed}
    assert all(SECOND < row.failed_ns < 2_500 * MS for row in failed)
    assert {row.number for row in failed} & set(range(1, 6))
    assert max(completed(here)) > max(row.number for row in failed)
    assert here.violations() == ()


def test_metadata_that_cannot_be_written_fails_the_checkpoint():
    """Everything is acknowledged, then storage goes: the checkpoint cannot be finalised."""
    storage = replace(FLAT, metadata_ns=SECOND, retry=Retry(2, 10 * MS))
    here = instance(storage, seconds=2, outage_ms=(300, 400))
    first = min(here.stats.values(), key=lambda row: row.number)

    assert (first.status, first.failure) == ("FAILED", "FINALIZE_CHECKPOINT_FAILURE")
    assert first.acknowledged == first.tasks


def test_state_in_acknowledgements_is_written_with_the_metadata():
    """State below the threshold has no file of its own: its bytes are in `_metadata` (MetadataV3Serializer)."""
    filed, inlined = (
        instance(replace(KINDS["object store"], inline_threshold_bytes=threshold)) for threshold in (0, 50_000)
    )
    sizes = [
        {file.name: file.size_bytes for file in here.storage.files if file.deleted_ns is None}
        for here in (filed, inlined)
    ]
    (metadata,) = sizes[1]

    assert metadata == ("_metadata", max(completed(inlined)))
    assert sizes[1][metadata] == sum(sizes[0].values()) > 2000


def test_metadata_is_written_under_the_lock():
    """Half a second each, a checkpoint every 400 ms: one after the other, and acknowledgements count when the lock is free."""
    job = scenario(chain(sink_ns=MS), seconds=4, max_concurrent=3)
    here = JobInstance(replace(job, storage=replace(FLAT, metadata_ns=500 * MS)), "compiled")
    here.start()
    here.env.run(until=here.env.timeout(job.run.duration_ns))
    done = [here.stats[number] for number in completed(here)]

    assert len(done) > 4
    assert all(later.completed_ns - earlier.completed_ns >= 500 * MS for earlier, later in pairwise(done))
    assert all(earlier.completed_ns <= later.latest_ack_ns for earlier, later in pairwise(done))
    assert here.violations() == ()


def test_slow_nodes_show_in_the_checkpoints():
    """Every node slow by 20: 1000 B of state at 50 kB/s, 20 ms, take 400."""
    slow = SlowPlaces(Fraction(1), 20)
    times = []
    for nodes in (None, slow):
        here = instance(replace(DFS, dfs=replace(DFS.dfs, bytes_per_second=50_000, slow=nodes)))
        done = [row for row in here.stats.values() if row.status == "COMPLETED"]
        times.append(max(row.completed_ns - row.trigger_ns for row in done) / MS)

    assert times[1] > times[0] + 300


def test_merging_makes_fewer_files():
    """Two small files per subtask and checkpoint otherwise; merged ones count as one and are durable all the same."""
    apart, merged = (instance(KINDS[name], placement="single") for name in ("dfs", "merged"))
    over = max(completed(merged))
    files = [sum(stored.complete and stored.inside is None for stored in run.storage.files) for run in (apart, merged)]

    assert completed(apart) == completed(merged)
    assert files[1] < files[0]
    assert all(
        stored.complete for stored in merged.storage.files if stored.inside is not None and stored.given_up_ns is None
    )
    assert all(
        stored.complete for stored in merged.storage.files if stored.name[0] == "merged" and stored.name[1] < over
    ), "subsumed"


def test_the_same_run_twice_is_the_same():
    """On nodes with slow episodes, too."""
    storage = replace(
        DFS,
        dfs=replace(DFS.dfs, slow=SlowPlaces(Fraction(1, 5), 10, Distribution(SECOND, "exponential"))),
        disk=Disk(10**8),
    )
    first, second = (instance(storage, kind="unaligned") for _ in range(2))

    assert list(first.journal) == list(second.journal)
    assert [(f.name, f.durable_ns) for f in first.storage.files] == [
        (f.name, f.durable_ns) for f in second.storage.files
    ]

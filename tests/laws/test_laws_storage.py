"""Laws 28 and 30 on storage that shares: whole runs on nodes whose bandwidth every file has a part of."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.job import Distribution
from sim.model.storage import Dfs, ObjectStore, SlowPlaces, Storage
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, completed, run, scenario, with_network
from tests.laws.test_laws_durations import _mean_over_seeds, _scaled, _tables


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
def test_law_28_all_times_scale_on_shared_storage(k, kind, storage):
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


def test_law_30_slower_nodes_never_shorten_a_checkpoint():
    """In the mean over 30 seeds: a tenth of the nodes slow in episodes of a second, end-to-end duration grows with the factor."""

    def duration(factor):
        slow = SlowPlaces(Fraction(1, 10), factor, Distribution(SECOND, "exponential"))
        base = scenario(chain(stages=1, sink_ns=MS), seconds=3, interval_ms=500)
        return _mean_over_seeds(replace(base, storage=_dfs(10, slow)), "end_to_end_duration")

    times = [duration(factor) for factor in (1, 10, 100)]

    assert sorted(times) == times
    assert times[0] < times[-1]


def test_law_30_more_nodes_never_lengthen_a_checkpoint():
    """In the mean over 30 seeds: files that meet on one node wait for each other there."""

    def duration(nodes):
        base = scenario(chain(4, sink_ns=MS // 10), seconds=2, interval_ms=500)
        storage = Storage(inline_threshold_bytes=0, dfs=Dfs(nodes, 4_000, replication=1, latency=Distribution(MS)))
        return _mean_over_seeds(replace(base, storage=storage), "end_to_end_duration")

    assert duration(1) > duration(4) > duration(50)


def test_the_worlds_of_law_30_write_what_they_are_about():
    """Otherwise the laws above would hold of nothing."""
    world = run(replace(scenario(chain()), storage=_dfs()))

    assert len(completed(world)) > 3
    assert max(stored.size_bytes for stored in world.storage.files) == 1000, "two blocks, or four parts"

"""A barrier that is announced to a task whose thread is at work for a snapshot waits until that is over."""

from dataclasses import replace

from sim.model.checkpoint import Barriers
from sim.model.job import Distribution, Input, Job, Snapshot, Vertex
from tests.laws.small_jobs import MS, network, run, scenario, source


def reads(upstream, service_ns, record_bytes):
    return Input(upstream, "hash", service=Distribution(service_ns), record_bytes=Distribution(record_bytes))


def test_an_announced_barrier_does_not_take_a_snapshot_from_under_the_thread():
    """Checkpoints expire while their synchronous phase goes on, and the next barrier is announced meanwhile: it cancels nothing before."""
    readers = Vertex(
        "d", 2, inputs=(reads("a", 100_000, 40), reads("c", 9 * MS, 300)), snapshot=Snapshot(sync_ns=60 * MS)
    )
    middle = Vertex("c", inputs=(replace(reads("a", 100_000, 40), ship="rescale"),))
    job = Job((source("a"), middle, readers))
    base = scenario(job, Barriers("aligned-timeout", 30 * MS), seconds=2, interval_ms=120, timeout_ns=150 * MS)
    world = run(
        replace(base, cluster=replace(base.cluster, network=replace(network, buffer_timeout_ns=-1))), "compiled"
    )

    assert len(world.stats) >= 10

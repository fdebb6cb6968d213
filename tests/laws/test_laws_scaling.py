"""Law 28 with everything that goes wrong: failures, restarts and outages scale with all other times."""

from dataclasses import replace

import pytest

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
from sim.model.job import Distribution
from sim.model.storage import Retry
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, run, scenario, with_network
from tests.laws.test_laws_durations import _scaled

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
    storage = replace(base.storage, retry=Retry(attempts=4, backoff_ns=30 * MS * k, most_backoff_ns=90 * MS * k))
    return replace(base, faults=faults, restart=restart(k), storage=storage)


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
@pytest.mark.parametrize("placement", ["single", "spread"])
@pytest.mark.parametrize("k", [2, 5])
def test_law_28_all_times_scale_through_failures(k, placement, kind):
    """Every time constant times k, every bandwidth over k: whatever happens happens at k times its time, to the nanosecond."""
    base = scenario(chain(), kind, seconds=6, interval_ms=170, latency_ns=50_000)
    base = with_network(base, buffer_timeout_ns=-1)
    base = replace(base, cluster=replace(base.cluster, placement=placement))
    before, after = run(failing(base, 1)), run(failing(base, k))
    seen, expected = (
        [(row.time_ns * scale, row.happening, row.checkpoint, row.task, row.number) for row in world.journal]
        for world, scale in ((after, 1), (before, k))
    )

    assert expected == seen
    assert len(before.job.recovery.stats) >= 5
    assert sum(stats.status == "COMPLETED" for stats in before.stats.values()) >= 10
    assert before.plane.tasks()["served"].tolist() == after.plane.tasks()["served"].tolist()

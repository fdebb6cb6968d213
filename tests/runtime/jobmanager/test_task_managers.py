"""Lost task managers as the JobManager sees them: when it misses them, and which of them it can do without."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart, TaskManagerLost
from sim.model.job import Distribution
from sim.runtime.jobmanager.task_managers import TaskManagers
from tests.laws.small_jobs import MS, SECOND, chain, scenario

RESTART = Restart(
    "fixed-delay",
    heartbeat_interval_ns=10 * SECOND,
    heartbeat_timeout_ns=50 * SECOND,
    heartbeat_failures=2,
    slot_check_ns=7 * MS,
    replacement=Distribution(60 * SECOND),
    ask_timeout_ns=9 * SECOND,
)
GONE, ORDERLY, SILENT = TaskManagerLost(0), TaskManagerLost(0, orderly=True), TaskManagerLost(0, silent=True)
HOSTS = (0, 1, 0, 1, 0, 1)
"""Two subtasks each of source, stage and sink, on two task managers."""


def managers(now=100 * SECOND, seed=1, cluster=None, **restart):
    base = scenario(chain(2))
    base = replace(
        base, restart=replace(RESTART, **restart), run=replace(base.run, seed=seed), cluster=cluster or base.cluster
    )
    return TaskManagers(SimpleNamespace(scenario=base, hosts=HOSTS, env=SimpleNamespace(now=now)))


def lost(what, **options):
    """When it was lost, and what the JobManager knows of its slots."""
    fleet = managers(**options)
    gone_ns = fleet.lose(what, 1)
    slots = fleet.slots.lost[1]
    assert gone_ns == slots.gone_ns
    return slots


class TestLosses:
    @pytest.mark.parametrize("provider", ["kubernetes", "yarn"])
    def test_flink_asks_for_another_container_once_it_misses_one(self, provider):
        """A container that falls silent ends not: nobody else starts another in its place, as a supervisor of processes does."""
        asked, supervised = lost(SILENT, provider=provider), lost(SILENT, provider="standalone")

        assert asked.replaced_ns == asked.released_ns + 60 * SECOND
        assert supervised.replaced_ns == (100 + 60) * SECOND


class TestAnAdaptiveJob:
    """Task manager 0 is lost at 100 s; there is another one at 160 s."""

    @pytest.fixture
    def fleet(self):
        fleet = managers(scheduler="adaptive")
        fleet.lose(ORDERLY, 0)
        return fleet

    def next_job(self, before, now):
        after = managers(now=now, scheduler="adaptive")
        after.continue_from(before)
        return after

    def test_it_knows_what_is_missing_and_until_when(self, fleet):
        assert fleet.returning() == {0: 160 * SECOND}
        fleet.context.env.now = 160 * SECOND
        assert fleet.returning() == {}

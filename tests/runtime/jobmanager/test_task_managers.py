"""Lost task managers as the JobManager sees them: when it misses them, and which of them it can do without."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart, TaskManagerLost
from sim.model.job import Distribution
from sim.runtime.jobmanager.task_managers import TaskManagers
from tests.laws.small_jobs import SECOND, chain, scenario


def managers(**options):
    """Two of them at 100 s; a lost one is replaced within 60 s."""
    restart = Restart("fixed-delay", replacement=Distribution(60 * SECOND), **options)
    base = replace(scenario(chain(2)), restart=restart)
    return TaskManagers(SimpleNamespace(scenario=base, hosts=(0, 1), env=SimpleNamespace(now=100 * SECOND)))


@pytest.mark.parametrize("provider", ["kubernetes", "yarn"])
def test_flink_asks_for_another_container_once_it_misses_one(provider):
    """A container that falls silent ends not: nobody else starts another in its place, as a supervisor of processes does."""
    lost = []
    for name in (provider, "standalone"):
        fleet = managers(provider=name)
        fleet.lose(TaskManagerLost(0, silent=True), 1)
        lost.append(fleet.slots.lost[1])
    asked, supervised = lost

    assert asked.replaced_ns == asked.released_ns + 60 * SECOND
    assert supervised.replaced_ns == (100 + 60) * SECOND < asked.replaced_ns


def test_an_adaptive_job_knows_what_is_missing_and_until_when():
    fleet = managers(scheduler="adaptive")
    fleet.lose(TaskManagerLost(0, orderly=True), 0)
    assert fleet.returning() == {0: 160 * SECOND}
    fleet.context.env.now = 160 * SECOND
    assert fleet.returning() == {}

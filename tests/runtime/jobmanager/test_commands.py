"""Commands of the coordinator and of the recovery, carried out one by one: whom they reach in which order."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from sim.protocol import coordinator_messages, recovery
from sim.results.journal import Happening, Journal
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from tests.laws.small_jobs import MS, chain, scenario
from tests.runtime.task.fake_slots import FakeClock

# The coordinator's commands, carried out one by one: whom they reach in which order, and what it is told.


def test_an_abort_tells_of_the_completion_before_it():
    """A task that kept its part has an older one."""
    env, calls, base = FakeClock(), [], scenario(chain(1))
    task = lambda number: SimpleNamespace(notify_aborted=lambda *told: calls.append((env.now // MS, number, *told)))  # noqa: E731
    parts = {(4, 1): SimpleNamespace(checkpoint=2)}
    scenario_of_it = replace(base, overheads=replace(base.overheads, notify_ns=7 * MS))
    contents = SimpleNamespace(of=lambda *which: parts.get(which))
    context = SimpleNamespace(env=env, scenario=scenario_of_it, journal=Journal(), contents=contents, begun_from=0)
    context.note = partial(Context.note, context)
    host = CoordinatorHost(context, [task(0), task(1)], None, SimpleNamespace(), None, None)
    host.carry_out(coordinator_messages.NotifyAborted(5, frozenset({1, 0}), 4))
    env.run(100 * MS)

    assert calls == [(7, 0, 5, 4), (7, 1, 5, 2)]


# What fails and what restarts, call by call: who stops, who reports it and when, what a restart is remembered as.


HOSTS = (0, 1, 2, 0)
"""A source on each of two task managers, and two readers; the second one beside the first source."""
ALL = frozenset(range(4))


class Cluster:
    """A recovery whose machine hears events and decides nothing."""

    def __init__(self):
        self.env, self.calls, self.heard, self.journal = FakeClock(), [], [], Journal()
        self.env.event = lambda: SimpleNamespace(succeed=self.call("succeed"))
        base = scenario(chain(2))
        self.context = SimpleNamespace(
            env=self.env,
            scenario=replace(base, restart=replace(base.restart, cancellation_timeout_ns=50 * MS)),
            layout=SimpleNamespace(writer=(0, 1, 0, 1), reader=(2, 2, 3, 3), vertex=[0, 0, 1, 1]),
            tasks=ALL,
            hosts=HOSTS,
            stats={},
            journal=self.journal,
            plane=SimpleNamespace(halt=self.call("halt")),
            storage=SimpleNamespace(lose_disk=self.call("lose disk")),
            outcome=SimpleNamespace(fail=self.call("fail")),
        )
        self.context.note = partial(Context.note, self.context)
        self.tasks = [self.task() for _ in ALL]
        coordinator = SimpleNamespace(
            message=self.env.call_in,
            dispatch=self.call("coordinator"),
            lose_leader=self.call("lose leader"),
            elect_leader=self.call("elect leader"),
            presumed_running={},
            machine=SimpleNamespace(schedule=None),
        )
        managers = SimpleNamespace(
            lose=lambda how, number: self.env.now,
            elect=self.call("elect"),
            lose_leader=self.call("lose leader"),
            slots=SimpleNamespace(lost={host: SimpleNamespace(refusal_ns=0) for host in HOSTS}),
            silent_since=lambda lost_ns: lost_ns + 300 * MS,
        )
        cluster = SimpleNamespace(
            context=self.context,
            tasks=self.tasks,
            task_managers=managers,
            job_end=SimpleNamespace(finished=frozenset()),
            checks=SimpleNamespace(restarting=self.call("restarting")),
        )
        self.host = RecoveryHost(cluster, coordinator)
        machine = SimpleNamespace(restarts=1, initializing=frozenset())
        self.host._loop = SimpleNamespace(
            machine=machine, dispatch=lambda event: self.heard.append((self.env.now // MS, type(event)))
        )

    def call(self, name):
        return lambda *facts: self.calls.append((name, *facts))

    def task(self):
        task = SimpleNamespace(stopped=False, occupied=False, running=True, free=self.call("free"))
        task.stop = lambda: setattr(task, "stopped", True)
        task.when_freed = lambda then: setattr(task, "freed", then)
        return task

    def noted(self, happening):
        return [(row.task, row.number) for row in self.journal if row.happening is happening]


@pytest.fixture
def cluster():
    return Cluster()


class TestWithoutAJobManager:
    def test_one_that_is_lost_before_it_comes(self, cluster):
        cluster.host.lose_job_manager(100 * MS)
        cluster.env.run(50 * MS)
        cluster.host.lose_job_manager(200 * MS)
        cluster.env.run(249 * MS)
        assert cluster.heard == []
        cluster.env.run(250 * MS)
        assert [(250, recovery.JobManagerReturned)] == cluster.heard
        assert [len(cluster.noted(kind)) for kind in (Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED)] == [
            1,
            1,
        ]

    def test_deployments_under_way_come_to_nothing(self, cluster):
        cluster.host.restores[1] = SimpleNamespace(cancel_deployment=cluster.call("cancel deployment"))
        cluster.host.lose_job_manager(100 * MS)
        assert ("cancel deployment",) in cluster.calls


class TestCancellations:
    def test_a_watchdog_takes_the_task_managers_down_of_those_that_do_not_stop(self, cluster):
        """Those that have stopped meanwhile keep theirs."""
        for task in (1, 2):
            cluster.tasks[task].occupied = True
        cluster.host.carry_out(recovery.CancelTasks(1, ALL))
        cluster.tasks[2].freed()
        cluster.env.run(49 * MS)
        assert cluster.noted(Happening.TASK_MANAGER_LOST) == []
        cluster.env.run(50 * MS)
        assert cluster.noted(Happening.TASK_MANAGER_LOST) == [(-1, 1)]


class TestTheScheduler:
    def test_a_failure_suspends_it(self, cluster):
        cluster.host.carry_out(recovery.ResumeCheckpoints())
        cluster.host.carry_out(recovery.SuspendCheckpoints())
        cluster.host.task_runs(1)
        assert [row[0] for row in cluster.calls] == ["coordinator"]

    def test_a_job_that_is_given_up_fails(self, cluster):
        cluster.host.carry_out(recovery.FailForGood("no attempt is left"))
        assert cluster.calls == [("fail", "no attempt is left")]
        assert len(cluster.noted(Happening.GIVEN_UP)) == 1
        cluster.host.carry_out(recovery.FailStopped("killed"))
        assert cluster.calls[-1] == ("fail", "stopped with a savepoint, then failed: killed")

"""What fails and what restarts, call by call: who stops, who reports it and when, what a restart is remembered as."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart, TaskManagerLost
from sim.protocol import recovery
from sim.protocol.recovery import JobStatus
from sim.results.journal import Happening, Journal
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from tests.laws.small_jobs import MS, chain, scenario
from tests.runtime.task.fake_slots import FakeClock

HOSTS = (0, 1, 2, 0)
"""A source on each of two task managers, and two readers; the second one beside the first source."""
WRITER, READER = (0, 1, 0, 1), (2, 2, 3, 3)
FAIL_MS, RESET_MS, MISSED_MS = 5, 20, 300
GONE, SILENT = TaskManagerLost(0), TaskManagerLost(0, silent=True)
ALL = frozenset(range(4))


class Cluster:
    """A recovery whose machine hears events and decides nothing."""

    def __init__(self, profile="2.x"):
        self.env, self.calls, self.heard = FakeClock(), [], []
        self.env.event = lambda: SimpleNamespace(succeed=self.call("succeed"), triggered=False)
        base = scenario(chain(2))
        overheads = replace(base.overheads, fail_ns=FAIL_MS * MS, restart_ns=3 * MS)
        restart = Restart("fixed-delay", connection_reset_ns=RESET_MS * MS, cancellation_timeout_ns=50 * MS)
        base = replace(base, overheads=overheads, restart=restart, cluster=replace(base.cluster, profile=profile))
        self.journal = Journal()
        note = lambda happening, checkpoint=-1, task=-1, number=0, detail="": self.journal.note(  # noqa: E731
            self.env.now, happening, checkpoint, task, number, detail
        )
        layout = SimpleNamespace(writer=WRITER, reader=READER, vertex=[0, 0, 1, 1])
        self.context = SimpleNamespace(
            env=self.env,
            scenario=base,
            note=note,
            layout=layout,
            tasks=ALL,
            hosts=HOSTS,
            stats={},
            plane=SimpleNamespace(halt=self.call("halt")),
            storage=SimpleNamespace(lose_disk=self.call("lose disk")),
        )
        self.tasks = [self.task(task) for task in ALL]
        self.coordinator = SimpleNamespace(
            message=self.env.call_in,
            dispatch=self.call("coordinator"),
            start=lambda restarts, restarted: self.calls.append(("start", restarts, restarted)),
            lose_leader=self.call("lose leader"),
            elect_leader=self.call("elect leader"),
            on_completed=None,
            presumed_running={},
            machine=SimpleNamespace(latest_completed=4, schedule=None),
        )
        managers = SimpleNamespace(
            lose=lambda how, number: self.env.now + MISSED_MS * MS,
            elect=self.call("elect"),
            slots=SimpleNamespace(lost={host: SimpleNamespace(refusal_ns=0) for host in HOSTS}),
            silent_since=lambda lost_ns: lost_ns + MISSED_MS * MS,
        )
        cluster = SimpleNamespace(
            context=self.context,
            tasks=self.tasks,
            task_managers=managers,
            checks=SimpleNamespace(restarting=self.call("restarting")),
        )
        self.job_end = SimpleNamespace(finished=frozenset())
        outcome = SimpleNamespace(fail=self.call("fail"))
        self.host = RecoveryHost(cluster, self.coordinator, self.job_end, outcome)
        self.machine = SimpleNamespace(
            restarts=1, initializing=frozenset(), status=JobStatus.RUNNING, strategy="strategy", regions=(ALL,)
        )
        self.host._loop = SimpleNamespace(
            machine=self.machine, dispatch=lambda event: self.heard.append((self.env.now // MS, event))
        )

    def call(self, name):
        return lambda *facts: self.calls.append((name, *facts))

    def task(self, number):
        task = SimpleNamespace(task=number, stopped=False, occupied=False, running=True, freed=None)
        task.stop = lambda: (setattr(task, "stopped", True), self.calls.append(("stop", number)))
        task.free = lambda: self.calls.append(("free", number))
        task.when_freed = lambda then: setattr(task, "freed", then)
        return task

    def events(self, until_ms=None):
        """(ms, kind, tasks) of what the machine has heard."""
        if until_ms is not None:
            self.env.run(until_ms * MS)
        events, self.heard[:] = list(self.heard), []
        return [(at_ms, type(event), set(getattr(event, "tasks", ()))) for at_ms, event in events]

    def stopped(self):
        return {task.task for task in self.tasks if task.stopped}

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
        assert cluster.events(249) == []
        assert [(250, recovery.JobManagerReturned, set())] == cluster.events(250)
        assert [len(cluster.noted(kind)) for kind in (Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED)] == [
            1,
            1,
        ]

    def test_deployments_under_way_come_to_nothing(self, cluster):
        cluster.host.restores[1] = SimpleNamespace(
            cancel_deployment=cluster.call("cancel deployment"), give_up=lambda _: None
        )
        cluster.host.lose_job_manager(100 * MS)
        assert ("cancel deployment",) in cluster.calls


class TestCancellations:
    def cancel(self, cluster, tasks=ALL, restart=1):
        cluster.host._failure = ("task", "killed", 7)
        cluster.host.carry_out(recovery.CancelTasks(restart, frozenset(tasks)))
        return cluster.host.stats[restart]

    def test_a_watchdog_takes_the_task_managers_down_of_those_that_do_not_stop(self, cluster):
        """Those that have stopped meanwhile keep theirs."""
        for task in (1, 2):
            cluster.tasks[task].occupied = True
        self.cancel(cluster)
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

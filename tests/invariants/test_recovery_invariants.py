"""What restarts, when, where, and from what (invariants 100 to 106), and how long the adaptive scheduler waits (invariant 118)."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.model.faults import Fault, Kill, Restart, When
from sim.model.job import Distribution
from sim.model.scenario import Action
from sim.results.journal import Entry, EventType
from sim.runtime.context import Origin, RestoredState, Stamp
from sim.runtime.invariants import recovery
from sim.runtime.invariants.recovery import STABLE_SLOTS, Restarts
from tests.invariants.watched import (
    MAP,
    account_of,
    end_facts,
    facts,
    hollow,
    named,
    stateful,
    with_checkpoint,
    with_journal,
    with_scenario,
)
from tests.runtime.jobmanager.adaptive_runs import run

NAMES = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
LAYOUT = SimpleNamespace(writer=[0, 1], reader=[2, 3])
MS, SECOND = 10**6, 10**9
NOW = 5400 * MS
FAILED = Entry(5, EventType.TASK_FAILED, task=0)
RESTARTING = Entry(6, EventType.JOB_RESTARTING, number=1)
RESTORED = Entry(9, EventType.JOB_RESTORED, 1, number=1)
RECOVERED = Entry(12, EventType.JOB_RECOVERED)
TASK_MANAGER_LOST = Entry(5, EventType.TASK_MANAGER_LOST, number=0)
OWN, EVERYTHING = frozenset({0, 2}), frozenset(range(4))
TAKEN_ALONG = ["it takes a[1] along, and no task failed that exchanges data with it"]


def of_rows(check, *rows, deployed=OWN, arguments=(), **context):
    """What is wrong with these rows, if the first restart deploys these tasks."""
    context = {"layout": LAYOUT, "hosts": [0] * 4, "storage": SimpleNamespace(files=[])} | context
    account = hollow(Restarts, rows, NAMES, run={"deployed": {1: deployed}}, **context)
    check(account, *arguments)
    return facts(account)


def partial_restarts(deployed, *rows, **context):
    """What is wrong with a restart of these tasks after these rows."""
    scenario = replace(stateful().scenario, restart=SimpleNamespace(restarts_all=False))
    return of_rows(Restarts._check_regions, *rows, RESTORED, deployed=deployed, scenario=scenario, **context)


def test_regions_are_tasks_that_exchange_data():
    assert recovery.pipelined_regions(4, [0, 1], [2, 3]) == [0, 1, 0, 1]
    assert recovery.pipelined_regions(4, [0, 1, 1], [2, 2, 3]) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({0, 2}, []),
        ({0, 1, 2, 3}, TAKEN_ALONG),
        ({0}, ["it leaves b[0] alone, which exchanges data with a task of it"]),
    ],
)
def test_a_restart_takes_its_region_along(tasks, expected):
    assert expected == partial_restarts(frozenset(tasks), FAILED)


def test_a_failure_is_that_of_its_own():
    """A failed task restarts its region, a lost task manager those of its tasks, a failure of the job or its JobManager all."""
    hosts = (0, 1, 0, 1)
    of_a_task = Entry(5, EventType.JOB_FAILED, task=0)

    assert partial_restarts(OWN, of_a_task) == []
    assert partial_restarts(EVERYTHING, of_a_task) == TAKEN_ALONG
    assert partial_restarts(OWN, TASK_MANAGER_LOST, hosts=hosts) == []
    assert partial_restarts(EVERYTHING, TASK_MANAGER_LOST) == []
    assert len(partial_restarts(OWN, TASK_MANAGER_LOST._replace(number=1), hosts=hosts)) == 1
    assert partial_restarts(OWN, Entry(5, EventType.DEPLOYMENT_FAILED, number=0), hosts=hosts) == []
    for event_type in (EventType.JOB_MANAGER_LOST, EventType.JOB_FAILED):
        assert partial_restarts(EVERYTHING, Entry(5, event_type)) == []


def test_a_job_that_begins_from_a_snapshot_restarts_all():
    assert partial_restarts(EVERYTHING, origin=Origin(1, 0, 6, None)) == []
    assert len(partial_restarts(EVERYTHING)) == 1


def restart_strategy_errors(rows, most, within_ns, delay_ns, origin=None, strategy="fixed-delay"):
    options = {"attempts": most, "delay_ns": delay_ns}
    if within_ns is not None:
        strategy, options = "failure-rate", {"rate": most, "rate_interval_ns": within_ns, "delay_ns": delay_ns}
    scenario = replace(stateful().scenario, restart=Restart(strategy, **options))
    return of_rows(Restarts._check_strategy, *rows, scenario=scenario, origin=origin, now_ns=99)


def test_restarts_are_counted_and_wait():
    """The one at the edge of the interval counts; a new JobManager counts anew, and its own restart is none."""
    rows = [RESTARTING, RESTORED, Entry(20, EventType.JOB_RESTARTING, number=2)]
    elected = [
        RESTARTING,
        Entry(8, EventType.JOB_MANAGER_ELECTED),
        Entry(9, EventType.JOB_RESTARTING, number=2),
        *rows[2:],
    ]

    assert restart_strategy_errors(rows, 2, None, 3) == []
    assert len(restart_strategy_errors(rows, 1, None, 3)) == 1
    assert restart_strategy_errors(rows, 1, None, 3, origin=Origin(1, 0, 6, None)) == []
    assert restart_strategy_errors(rows, 2, None, 4) == ["its tasks are deployed 3e-06 ms later, the delay is 4e-06 ms"]
    assert len(restart_strategy_errors(rows, 1, 14, 3)) == 1
    assert restart_strategy_errors(rows, 1, 13, 3) == []
    assert restart_strategy_errors(elected, 1, None, 0) == []
    assert len(restart_strategy_errors(elected, 0, None, 0)) == 1
    assert len(restart_strategy_errors(rows, 9, None, 0, strategy="none")) == 1
    assert restart_strategy_errors(rows, 0, None, 9, strategy="exponential-delay") == []


def test_task_managers_are_there():
    for host, shortest_ns, violations in ((0, 4, 0), (1, 9, 0), (0, 5, 1)):
        restart = Restart(replacement=Distribution(shortest_ns))
        scenario = replace(stateful().scenario, restart=restart)
        rows, hosts = (TASK_MANAGER_LOST, RESTORED), [host] * 4
        assert violations == len(of_rows(Restarts._check_task_managers, *rows, hosts=hosts, scenario=scenario))


def test_checkpoints_wait_for_tasks():
    begins = Entry(12, EventType.TRIGGERED, 2)
    run = [Entry(11, EventType.TASK_RUNS, task=task) for task in (0, 2)]

    assert of_rows(Restarts._check_running, FAILED, RESTORED, *run, begins) == []
    assert of_rows(Restarts._check_running, FAILED, RESTORED, run[0], begins) == [
        "checkpoint 2 begins, and b[0] does not run"
    ]


def not_resumed(*rows, end_ns=99, deleted=()):
    """What is wrong if no checkpoint begins within 20 ns after all tasks run again, until the end of the run."""
    files = [SimpleNamespace(deleted_ns=begin, removed_ns=end) for begin, end in deleted]
    context = {"storage": SimpleNamespace(files=files), "now_ns": end_ns}
    return of_rows(Restarts._check_resumed, RECOVERED, *rows, arguments=[20], **context)


def test_checkpoints_go_on():
    """From the moment all tasks run, or their files are deleted; where something else happens meanwhile, nothing is awaited."""
    finished = Entry(40, EventType.JOB_FINISHED)

    assert not_resumed(Entry(30, EventType.TRIGGERED, 2), finished) == []
    assert not_resumed(Entry(20, EventType.REFUSED)) == []
    assert len(not_resumed(finished)) == 1
    assert not_resumed(end_ns=32) == []
    assert not_resumed(end_ns=33) == ["all tasks run, and no checkpoint begins for 2.1e-05 ms"]
    assert not_resumed(deleted=[(5, 50), (45, 79)]) == [], "files are deleted meanwhile"
    assert len(not_resumed(deleted=[(5, 50), (51, 79)])) == 1
    for event_type in (EventType.TASK_RUNS, EventType.END_OF_DATA, EventType.TASK_FINISHED, EventType.ABORTED):
        assert len(not_resumed(Entry(20, event_type, task=0))) == 1


# The adaptive scheduler, by rows of a journal and in runs whose scheduler is broken.


S = 10**9
WAITS = Restart(scheduler="adaptive", stabilization_ns=10 * S, cooldown_ns=30 * S, rescale_delay_ns=15 * S)
FAILED_TASKS = Entry(12 * S, EventType.JOB_RESTARTING, number=1)
DEPLOYED = Entry(20 * S, EventType.JOB_RESTORED, 1, number=1)


def facts_of_scheduler(*rows, restart=WAITS, deploy_ns=0, profile="2.x", interval_ns=S):
    scenario = stateful().scenario
    cluster, checkpoint = (
        replace(scenario.cluster, profile=profile),
        replace(scenario.checkpoint, interval_ns=interval_ns),
    )
    changes = {"restart": restart, "cluster": cluster, "checkpoint": checkpoint}
    scenario = replace(scenario, overheads=SimpleNamespace(deploy_ns=deploy_ns), **changes)
    return of_rows(Restarts._check_rescales, *rows, scenario=scenario)


def rescaled(seconds):
    return Entry(seconds * S, EventType.RESCALED)


def test_it_waits_until_slots_are_stable():
    assert facts_of_scheduler(FAILED_TASKS, rescaled(22)) == []
    assert facts_of_scheduler(FAILED_TASKS, rescaled(21)) == [
        "it goes on without all slots after 9000 ms, they are stable after 10000 ms"
    ]


def test_it_keeps_its_cooldown():
    done = Entry(49 * S, EventType.COMPLETED, 3)

    assert facts_of_scheduler(FAILED_TASKS, DEPLOYED, rescaled(50), profile="1.20") == []
    assert facts_of_scheduler(FAILED_TASKS, DEPLOYED, done, rescaled(49)) == [
        "it is rescaled after 29000 ms, its cooldown takes 30000 ms"
    ]


def test_a_job_runs_while_its_tasks_are_deployed():
    """Flink enters Executing, then deploys.  A job that waits for slots is not deployed."""
    options = {"interval_ns": None, "deploy_ns": 2 * S}

    assert facts_of_scheduler(DEPLOYED, rescaled(48), **options) == []
    assert facts_of_scheduler(DEPLOYED, rescaled(47), **options) == [
        "it is rescaled after 29000 ms, its cooldown takes 30000 ms"
    ]
    assert facts_of_scheduler(FAILED_TASKS, rescaled(22), **options) == []
    assert len(facts_of_scheduler(FAILED_TASKS, rescaled(21), **options)) == 1


def test_it_takes_a_completed_checkpoint_along_or_has_waited_for_one():
    done = Entry(55 * S, EventType.COMPLETED, 3)

    assert facts_of_scheduler(DEPLOYED, done, rescaled(55)) == []
    assert facts_of_scheduler(DEPLOYED, done, rescaled(56)) == [
        "it is rescaled without a checkpoint after 36000 ms, it waits 45000 ms for one"
    ]
    assert facts_of_scheduler(DEPLOYED, done, rescaled(65)) == []


@pytest.mark.parametrize(
    ("broken", "fact"),
    [
        (None, None),
        ("compute_start", "it goes on without all slots after"),
        ("compute_rescale_ns", "it is rescaled after"),
    ],
)
def test_a_scheduler_that_does_not_wait_is_noticed(monkeypatch, broken, fact):
    from sim.protocol import recovery as adaptive
    from sim.runtime.jobmanager import recovery_host as scheduler

    at_once = {
        "compute_start": lambda now, returns, _: adaptive.Start(now, complete=False),
        "compute_rescale_ns": lambda begun, returns, _: max(begun, *returns),
    }
    if broken:
        monkeypatch.setattr(scheduler, broken, at_once[broken])
    replaced = "20 s" if broken == "compute_rescale_ns" else "50 s"
    found = run(f"restart.replacement={replaced}", "run.duration=90 s").violations

    assert ([STABLE_SLOTS] if fact else []) == [violation.invariant for violation in found]
    assert all(violation.fact.startswith(fact) for violation in found)


# Told what is not true of a job with six complete checkpoints.


RESTARTS_LATEST, FIRST_RESTART = 6, 1
RESTARTS_RESTORED = Entry(NOW, EventType.JOB_RESTORED, RESTARTS_LATEST, number=FIRST_RESTART)
ALL = Fraction(1)


@pytest.fixture
def account():
    return with_journal(account_of(Restarts, stateful()), RESTARTS_RESTORED)


def fake_ends(account, *, at_work=()):
    account.ends = SimpleNamespace(at_work=lambda task: task in at_work)


class TestDeployments:
    def deploy(self, account, moved=0):
        account.restarting(FIRST_RESTART)
        account._cancelled[FIRST_RESTART][1] -= moved
        account.restarted(RESTARTS_LATEST, [0, 1])
        return facts(account)

    def test_a_task_that_served_records_afterwards(self, account):
        fake_ends(account)
        assert self.deploy(account, moved=1) == ["src[1] served 1 record after it was cancelled"]

    def test_a_task_whose_thread_is_at_work(self, account):
        fake_ends(account, at_work={0})
        assert self.deploy(account) == ["src[0] is deployed while the thread of its attempt before is at work"]


class TestLocalCopies:
    @pytest.fixture
    def copy(self, account, monkeypatch):
        """A file becomes the copy that the first subtask of the map has on its own disk."""
        state = account.context.scenario.checkpoint.state
        with_checkpoint(account, state=replace(state, local_recovery=True))
        file = named(account, "keyed", "map", 0, RESTARTS_LATEST)
        monkeypatch.setattr(file, "name", ("local", "map", 0, RESTARTS_LATEST))
        monkeypatch.setattr(file, "host", account.context.hosts[MAP])
        return file

    def read(self, account, *pieces):
        account.restored(RESTARTS_LATEST, MAP, pieces, 0)
        return facts(account)

    own = RestoredState("keyed", Stamp(0, RESTARTS_LATEST, "map", 0), ALL, 1000)

    def test_a_copy_that_is_there_is_read(self, account, copy):
        assert self.read(account, self.own) == [
            "map[0] reads the state of checkpoint 6 from storage, and its copy is on its own disk"
        ]

    def test_it_was_read(self, account, copy):
        assert self.read(account, self.own._replace(copied_from=("map", 0, RESTARTS_LATEST))) == []

    @pytest.mark.parametrize(
        ("attribute", "value"),
        [("host", 99), ("deleted_ns", 5), ("durable_ns", None), ("name", ("local", "map", 1, 6))],
    )
    def test_it_is_not_there(self, account, copy, monkeypatch, attribute, value):
        monkeypatch.setattr(copy, attribute, value)
        assert self.read(account, self.own) == []

    @pytest.mark.parametrize(
        "pieces",
        [
            (),
            (own, own),
            (own._replace(share=Fraction(1, 2)),),
            (own._replace(kind="windows"),),
            (own._replace(stamp=None),),
        ],
        ids=["nothing", "two parts", "a share", "windows", "no stamp"],
    )
    def test_other_state_has_no_copy(self, account, copy, pieces):
        assert self.read(account, *pieces) == []

    def test_a_copy_on_a_lost_disk(self, account):
        """Written at the trigger at the earliest, read now: a loss in between has taken it along."""
        self.read(account, self.own._replace(copied_from=("map", 0, RESTARTS_LATEST)))
        account.run.deployed[1] = frozenset()
        account._check_detection = lambda: None
        lost = Entry(NOW, EventType.TASK_MANAGER_LOST, number=account.context.hosts[MAP])
        trigger_ns = account.context.stats[RESTARTS_LATEST].trigger_ns

        assert end_facts(account, lost) == [
            "map[0] reads a local copy on task manager 2, lost at 5.400000 s with its disk"
        ]
        assert len(end_facts(account, lost._replace(time_ns=trigger_ns))) == 1
        assert end_facts(account, lost._replace(time_ns=trigger_ns - 1)) == []
        assert end_facts(account, lost._replace(number=0)) == []


class TestCheckpointsThatResume:
    def facts_of(self, account, before_ns):
        account.run.deployed[1] = frozenset()
        return end_facts(account, Entry(NOW - before_ns, EventType.JOB_RECOVERED))

    def within(self, account, period_ns):
        """Four periods, the first trigger and a tenth of a second."""
        return 4 * period_ns + account.context.scenario.overheads.first_trigger_ns + 100 * MS

    def test_checkpoints_go_on_within_some_intervals(self, account):
        within_ns = self.within(account, SECOND)
        assert self.facts_of(account, within_ns) == []
        assert [f"all tasks run, and no checkpoint begins for {(within_ns + 1) / 1e6:g} ms"] == self.facts_of(
            account, within_ns + 1
        )

    def test_a_longer_pause_is_waited_for(self, account):
        with_checkpoint(account, interval_ns=SECOND // 2, min_pause_ns=SECOND)
        assert self.facts_of(account, self.within(account, SECOND)) == []
        with_checkpoint(account, interval_ns=SECOND // 2, min_pause_ns=0)
        assert len(self.facts_of(account, self.within(account, SECOND))) == 1

    def test_a_kill_or_a_savepoint_does_not(self, account):
        with_scenario(account, faults=(Fault(Kill(), When((0,))),), actions=(Action(1, "native"),))
        assert len(self.facts_of(account, NOW)) == 1

"""The account of restarts, told what is not true of a job with six complete checkpoints."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.invariants.recovery import Allowance, Waits
from sim.invariants.state import RestoredState, Stamp
from sim.model.faults import Fault, Kill, Restart, When
from sim.model.job import Distribution
from sim.model.scenario import Action
from sim.results.journal import Entry, Happening
from sim.runtime.context import Origin
from sim.runtime.monitors.checkpoints import RestartMonitor
from tests.runtime.monitors.watched import (
    MAP,
    account_of,
    end_facts,
    facts,
    named,
    stateful,
    with_checkpoint,
    with_journal,
    with_scenario,
)

MS, SECOND = 10**6, 10**9
LATEST, FIRST_RESTART = 6, 1
NOW = 5400 * MS
RESTORED = Entry(NOW, Happening.JOB_RESTORED, LATEST, number=FIRST_RESTART)
ALL = Fraction(1)


@pytest.fixture
def account():
    return with_journal(account_of(RestartMonitor, stateful()), RESTORED)


def fake_ends(account, *, at_work=()):
    account.ends = SimpleNamespace(at_work=lambda task: task in at_work)


class TestDeployments:
    def deploy(self, account, moved=0):
        account.restarting(FIRST_RESTART)
        account._cancelled[FIRST_RESTART][1] -= moved
        account.restarted(LATEST, [0, 1])
        return facts(account)

    def test_a_task_that_served_records_afterwards(self, account):
        fake_ends(account)
        assert self.deploy(account, moved=1) == ["src[1] served 1 record after it was cancelled"]

    def test_a_task_whose_thread_is_at_work(self, account):
        fake_ends(account, at_work={0})
        assert self.deploy(account) == ["src[0] is deployed while the thread of its attempt before is at work"]

    def test_the_first_break_is_told(self, account):
        fake_ends(account, at_work={0})
        for _ in range(2):
            account.restarted(LATEST, [0])
        assert len(facts(account)) == 1


class TestLocalCopies:
    @pytest.fixture
    def copy(self, account, monkeypatch):
        """A file becomes the copy that the first subtask of the map has on its own disk."""
        state = account.context.scenario.checkpoint.state
        with_checkpoint(account, state=replace(state, local_recovery=True))
        file = named(account, "keyed", "map", 0, LATEST)
        monkeypatch.setattr(file, "name", ("local", "map", 0, LATEST))
        monkeypatch.setattr(file, "host", account.context.hosts[MAP])
        return file

    def read(self, account, *pieces):
        account.restored(LATEST, MAP, pieces, 0)
        return facts(account)

    own = RestoredState("keyed", Stamp(0, LATEST, "map", 0), ALL, 1000)

    def test_a_copy_that_is_there_is_read(self, account, copy):
        assert self.read(account, self.own) == [
            "map[0] reads the state of checkpoint 6 from storage, and its copy is on its own disk"
        ]

    def test_it_was_read(self, account, copy):
        assert self.read(account, self.own._replace(copied_from=("map", 0, LATEST))) == []

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
        self.read(account, self.own._replace(copied_from=("map", 0, LATEST)))
        account.deployed.append(SimpleNamespace(time_ns=0, restart=1, tasks=frozenset()))
        lost = Entry(NOW, Happening.TASK_MANAGER_LOST, number=account.context.hosts[MAP])
        trigger_ns = account.context.stats[LATEST].trigger_ns

        assert end_facts(account, lost) == [
            "map[0] reads a local copy on task manager 2, lost at 5.400000 s with its disk"
        ]
        assert len(end_facts(account, lost._replace(time_ns=trigger_ns))) == 1
        assert end_facts(account, lost._replace(time_ns=trigger_ns - 1)) == []
        assert end_facts(account, lost._replace(number=0)) == []


class TestStrategies:
    @pytest.mark.parametrize(
        ("options", "allowed"),
        [
            (Restart("none"), Allowance(0)),
            (Restart("fixed-delay", attempts=3, delay_ns=7), Allowance(3, None, 7)),
            (Restart("failure-rate", rate=2, rate_interval_ns=9, delay_ns=5), Allowance(2, 9, 5)),
            (Restart("exponential-delay", attempts=3), Allowance()),
        ],
        ids=lambda value: getattr(value, "strategy", ""),
    )
    def test_what_a_strategy_allows(self, account, options, allowed):
        assert allowed == with_scenario(account, restart=options)._strategy()

    def test_a_job_restarts_no_sooner_than_its_delay(self, account):
        with_scenario(account, restart=Restart("fixed-delay", attempts=5, delay_ns=10))
        begun = Entry(5, Happening.JOB_RESTARTING, number=1)
        assert end_facts(account, begun, RESTORED._replace(time_ns=15)) == []
        assert end_facts(account, begun, RESTORED._replace(time_ns=14)) == [
            "its tasks are deployed 9e-06 ms later, the delay is 1e-05 ms"
        ]

    def test_the_restart_that_a_job_begins_with_is_none_of_the_strategy(self, account):
        with_scenario(account, restart=Restart("none"))
        begun = Entry(5, Happening.JOB_RESTARTING, number=1)
        assert end_facts(account, begun) == ["it is the restart number 1, the strategy allows 0"]
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert end_facts(account, begun) == []


class TestTheAdaptiveScheduler:
    def waits(self, account, profile="2.x", interval_ns=SECOND, **options):
        scenario = account.context.scenario
        restart = Restart(scheduler="adaptive", stabilization_ns=3, cooldown_ns=5, **options)
        with_checkpoint(account, interval_ns=interval_ns)
        with_scenario(account, restart=restart, cluster=replace(scenario.cluster, profile=profile))
        return account._waits()

    def test_without_checkpoints_it_waits_for_none(self, account):
        deploy_ns = account.context.scenario.overheads.deploy_ns
        assert Waits(3, 5, None, deploy_ns) == self.waits(account, interval_ns=None)
        assert Waits(3, 5, None, deploy_ns) == self.waits(account, profile="1.20")

    def test_it_is_rescaled_too_soon(self, account):
        self.waits(account)
        rescaled = Entry(RESTORED.time_ns - account.context.scenario.overheads.deploy_ns, Happening.RESCALED)
        turns = (
            RESTORED._replace(time_ns=0),
            rescaled._replace(time_ns=4 - account.context.scenario.overheads.deploy_ns),
        )
        assert end_facts(account, *turns) == ["it is rescaled after 4e-06 ms, its cooldown takes 5e-06 ms"]


class TestWhatRestartsTogether:
    @pytest.fixture
    def deployed(self, account):
        """All tasks exchange data: they restart together."""
        fake_ends(account)
        with_scenario(account, restart=Restart(replacement=Distribution(3 * SECOND)))
        return account

    def restart(self, account, tasks=range(5)):
        account.restarted(LATEST, tasks)
        facts(account)

    def test_the_whole_region_restarts(self, deployed):
        failed = Entry(NOW - 1, Happening.TASK_FAILED, task=0)
        self.restart(deployed, range(4))
        assert end_facts(deployed, failed, RESTORED) == [
            "it leaves sink[0] alone, which exchanges data with a task of it"
        ]

    def test_nothing_restarts_that_has_not_failed(self, deployed):
        self.restart(deployed)
        (fact,) = end_facts(deployed, RESTORED)
        assert fact == "it takes src[0] along, and no task failed that exchanges data with it"
        deployed.context = replace(deployed.context, origin=Origin(1, 0, LATEST, None))
        assert end_facts(deployed, RESTORED) == []

    def test_a_lost_task_manager_is_replaced_no_sooner_than_it_can_be(self, deployed):
        lost = Entry(NOW - 3 * SECOND, Happening.TASK_MANAGER_LOST, number=0)
        self.restart(deployed)
        assert end_facts(deployed, lost, RESTORED) == []
        (fact,) = end_facts(deployed, lost._replace(time_ns=lost.time_ns + 1), RESTORED)
        assert fact.startswith("src[0] is deployed on task manager 0, which can be there from 5.400000 s on")


class TestCheckpointsThatResume:
    def facts_of(self, account, before_ns):
        account.deployed.append(SimpleNamespace(time_ns=0, restart=1, tasks=frozenset()))
        return end_facts(account, Entry(NOW - before_ns, Happening.JOB_RECOVERED))

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

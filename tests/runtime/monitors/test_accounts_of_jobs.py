"""The accounts of cuts, ends and restarts, told what is not true of a job with six complete checkpoints."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.invariants.recovery import LATEST as GOES_BACK
from sim.invariants.recovery import ONCE, Allowance, Surplus, Waits
from sim.invariants.state import RestoredState, Stamp
from sim.model.faults import Fault, JobManagerDown, Kill, Restart, When
from sim.model.job import Backlog, Distribution
from sim.model.scenario import Action
from sim.results.journal import Entry, Happening
from sim.runtime.context import Origin
from sim.runtime.monitors.checkpoints import JobManagerMonitor, RestartMonitor, TimingMonitor
from sim.runtime.monitors.files import deletions
from sim.runtime.monitors.monitor import EndOfRun, WatchedRun
from sim.runtime.monitors.output import EndOfTaskMonitor
from sim.runtime.monitors.records import CutMonitor
from tests.runtime.monitors.watched import (
    MAP,
    SINK,
    account_of,
    end_facts,
    facts,
    named,
    stateful,
    with_checkpoint,
    with_journal,
    with_scenario,
)

# The accounts of cuts, of sources in step and of the JobManager, told what is not true of a job with six complete checkpoints.


LATEST = 6
COMPLETED = Entry(5, Happening.COMPLETED, LATEST)
RESTORED = Entry(9, Happening.JOB_RESTORED, LATEST, number=1)


class TestCuts:
    @pytest.fixture
    def account(self):
        return account_of(CutMonitor, stateful())

    def completed(self, account):
        account.completed(LATEST, ())
        return facts(account)

    def shifted(self, account, monkeypatch, column, by):
        """The map's part says another number of bytes of its first channel."""
        part = account.contents.checkpoints[LATEST][MAP]
        cells = getattr(part.position, column).copy()
        cells[0] += by
        monkeypatch.setattr(part, "position", part.position._replace(**{column: cells}))

    @pytest.mark.parametrize(("column", "by"), [("consumed", -5), ("captured", -5), ("written", 5), ("overtaken", -5)])
    def test_bytes_are_lost(self, account, monkeypatch, column, by):
        self.shifted(account, monkeypatch, column, by)
        (fact,) = self.completed(account)
        assert "5 bytes are lost" in fact
        surplus = account.surpluses[LATEST]
        assert (surplus.twice_bytes, surplus.lost_bytes) == (0, 5)
        assert ((0, MAP) if column in ("consumed", "captured") else (MAP, SINK)) == surplus.channel

    def test_bytes_come_twice(self, account, monkeypatch):
        """Barriers that are counted allow it."""
        self.shifted(account, monkeypatch, "consumed", 5)
        assert len(self.completed(account)) == 1
        account._exactly_once = False
        assert self.completed(account) == []
        assert (account.surpluses[LATEST].twice_bytes, account.surpluses[LATEST].lost_bytes) == (5, 0)

    @pytest.fixture
    def restored(self, account):
        """Restarted from a checkpoint that lost 5 bytes, from one that held 7 twice, and from one that did both."""
        channel = (0, MAP)
        account.surpluses = {
            1: Surplus(0, 5, channel, "-"),
            2: Surplus(7, 0, channel, "-"),
            3: Surplus(7, 5, channel, "-"),
        }
        turns = [
            row
            for number in (1, 2, 3)
            for row in (COMPLETED._replace(checkpoint=number), RESTORED._replace(checkpoint=number))
        ]
        with_journal(account, *turns)
        return account, turns

    def test_a_restart_takes_a_surplus_into_effect(self, restored):
        account, turns = restored
        both = "7 bytes are processed twice and 5 bytes are never processed"
        assert ["5 bytes are never processed", "7 bytes are processed twice", both] == end_facts(account, *turns)
        assert account.repetitions() == ()

    def test_at_least_once_may_process_twice_and_lose_nothing(self, restored):
        account, turns = restored
        account._exactly_once = False
        assert len(end_facts(account, *turns)) == 2, "those that lose something"
        assert [(row.law, row.fact) for row in account.repetitions()] == [(ONCE, "7 bytes are processed twice")]

    def test_repetitions_are_no_other_breaks(self, restored):
        """Restarted from the first checkpoint again, though a later one is complete."""
        account, turns = restored
        account._exactly_once = False
        with_journal(account, *turns, RESTORED._replace(checkpoint=1))
        assert {ONCE} == {row.law for row in account.repetitions()}

    def test_a_restart_goes_back_to_the_latest_checkpoint(self, account, monkeypatch):
        rows = COMPLETED._replace(checkpoint=5), COMPLETED, RESTORED._replace(checkpoint=5)
        (found,) = account.at_the_end(EndOfRun(rows, None, (), False))
        assert (found.law, found.fact) == (GOES_BACK, "checkpoint 5 is restored, the latest completed one is 6")
        monkeypatch.setattr(account.context.stats[LATEST], "savepoint_format", "native")
        assert end_facts(account, *rows) == []

    def test_a_job_goes_back_to_what_it_began_from(self, account):
        assert len(end_facts(account, RESTORED)) == 1
        account.context = replace(account.context, origin=Origin(1, 0, LATEST, None))
        assert end_facts(account, RESTORED) == []


class TestWhatOnlyAJobManagerDoes:
    @pytest.fixture
    def account(self):
        return account_of(JobManagerMonitor, stateful())

    @pytest.mark.parametrize(("fault", "facts_found"), [(JobManagerDown(1), 1), (Kill(), 0)])
    def test_without_it_no_checkpoint_is_triggered(self, account, fault, facts_found):
        """The run is read for it only if there may be none at times."""
        with_scenario(account, faults=(Fault(fault, When((1,))),))
        with_journal(account, Entry(1, Happening.JOB_MANAGER_LOST), Entry(2, Happening.TRIGGERED, 1))
        assert facts_found == len(end_facts(account))

    def test_more_is_retained_than_may_be(self, account):
        machine = stateful().job.coordinator.machine
        retained = type("Hoarding", (), {"retained": (1, 2, LATEST), "num_retained": machine.num_retained})
        (found,) = account.at_the_end(EndOfRun((), retained, (), False))
        assert "at most 1 allowed" in found.fact

    def test_the_latest_checkpoint_is_no_savepoint(self, account, monkeypatch):
        """What is retained is compared with it."""
        only = type("Retaining", (), {"retained": (LATEST - 1,), "num_retained": 1})
        assert len(list(account.at_the_end(EndOfRun((), only, (), False)))) == 1
        monkeypatch.setattr(account.context.stats[LATEST], "savepoint_format", "native")
        assert list(account.at_the_end(EndOfRun((), only, (), False))) == []


# The accounts of ends and of the pace, told what is not true of a job with six complete checkpoints.


MS, SECOND = 10**6, 10**9
NOW = 5400 * MS


class TestEnds:
    @pytest.fixture
    def account(self):
        return account_of(EndOfTaskMonitor, stateful())

    def part(self, account, task=MAP):
        return account.contents.checkpoints[LATEST][task]

    def cut(self, account):
        account.cut(LATEST, MAP, self.part(account))
        return facts(account)

    def test_a_snapshot_behind_the_end_says_so(self, account, monkeypatch):
        assert self.cut(account) == []
        account.data_ended(MAP, "drain")
        assert self.cut(account) == [
            "its snapshot for checkpoint 6 says that its operators go on, and its data has ended"
        ]
        monkeypatch.setattr(self.part(account), "finished", True)
        assert self.cut(account) == []

    @pytest.mark.parametrize("parts", [True, False])
    def test_operators_that_had_finished_say_so_again(self, account, monkeypatch, parts):
        """With files to read, too: they are not opened again."""
        with monkeypatch.context() as finished:
            finished.setattr(self.part(account), "finished", True)
            finished.setattr(self.part(account), "parts", self.part(account).parts if parts else ())
            account.restarted(LATEST, [MAP])
        assert self.cut(account) == [
            "its snapshot for checkpoint 6 says that its operators go on, and it was restored as finished"
        ]
        account.restarted(LATEST, [MAP])
        assert self.cut(account) == []

    def test_no_timer_fires_behind_the_end(self, account):
        account.timer_fired(MAP, 5 * SECOND, 1)
        assert facts(account) == []
        account.data_ended(MAP, "no-drain")
        account.timer_fired(MAP, 5 * SECOND, 1)
        assert facts(account) == ["its timer of 5.000000 s fires, and its data has ended"]

    def ended(self, detail, task=0):
        return Entry(NOW, Happening.END_OF_DATA, task=task, detail=detail)

    def test_data_ends_as_the_stop_asked(self, account):
        assert end_facts(account, self.ended("no-drain")) == ["its data ends without a drain, no stop asked for that"]
        with_scenario(account, actions=(Action(1, "native", "no-drain"),))
        assert end_facts(account, self.ended("no-drain")) == []
        with_scenario(account, actions=(Action(1, "native", "drain"), Action(2, "native")))
        assert end_facts(account, self.ended("no-drain")) == ["its data ends without a drain, the stop asked for drain"]

    def test_a_stop_without_a_drain_drains_no_source_that_has_more(self, account, monkeypatch):
        """Only where the job has finished: else a source may be waiting to stop."""
        with_scenario(account, actions=(Action(1, "native", "no-drain"),))
        monkeypatch.setattr(account.context.stats[LATEST], "stops", True)
        assert end_facts(account, self.ended("drain"), finished=True) == ["it is drained, the stop was to be without"]
        assert end_facts(account, self.ended("drain")) == []
        assert end_facts(account, self.ended("drain", task=MAP), finished=True) == [], "no source"

    def test_no_task_counts_as_finished_that_has_not(self, account):
        triggered = Entry(NOW, Happening.TRIGGERED, LATEST, number=2)
        assert end_facts(account, triggered) == [
            "2 tasks need not acknowledge, 0 have finished since they were restarted"
        ]
        kept = [Entry(NOW, Happening.PART_KEPT, LATEST, task) for task in (0, 1)]
        assert end_facts(with_journal(account, *kept), triggered) == []
        assert len(end_facts(with_journal(account, *kept[1:]), triggered)) == 1
        assert len(end_facts(with_journal(account, *(row._replace(checkpoint=5) for row in kept)), triggered)) == 1

    def all_ended(self, account, before_ns):
        return end_facts(account, *(self.ended("drain", task)._replace(time_ns=NOW - before_ns) for task in range(5)))

    def test_a_checkpoint_follows_the_end_of_all_data(self, account):
        """A trigger, an acknowledgement and a tenth of a second later at most."""
        overheads = account.context.scenario.overheads
        within_ns = overheads.acknowledge_ns + overheads.trigger_ns + 100 * MS
        assert self.all_ended(account, within_ns) == []
        assert len(self.all_ended(account, within_ns + 1)) == 1

    def test_a_kill_does_not_keep_it_away(self, account):
        assert len(self.all_ended(with_scenario(account, faults=(Fault(Kill(), When((0,))),)), SECOND)) == 1

    def test_deletions_under_way_come_first(self, account, monkeypatch):
        """One that began before the end of the data, and is over 10 ms ago."""
        file = named(account, "_metadata", LATEST)
        monkeypatch.setattr(file, "deleted_ns", NOW - 2 * SECOND)
        monkeypatch.setattr(file, "removed_ns", NOW - 10 * MS)
        assert self.all_ended(account, SECOND) == []
        monkeypatch.setattr(file, "removed_ns", None)
        assert len(self.all_ended(account, SECOND)) == 1, "no client insists for so long"
        monkeypatch.setattr(file, "deleted_ns", NOW + 1)
        assert (NOW + 1, NOW) in deletions(account.context)


class TestPaceInABacklog:
    """A source reads a backlog; checkpoints begin at an interval of 2 s meanwhile."""

    def account(self, records=10**6, interval_ns=2 * SECOND, total=None, silent=0):
        instance = stateful()
        scenario = instance.context.scenario
        source = replace(scenario.job.vertices[0].source, backlog=Backlog(records), total=total, silent=silent)
        job = replace(
            scenario.job, vertices=(replace(scenario.job.vertices[0], source=source), *scenario.job.vertices[1:])
        )
        options = replace(scenario.checkpoint, interval_during_backlog_ns=interval_ns)
        context = replace(instance.context, scenario=replace(scenario, job=job, checkpoint=options))
        return TimingMonitor(WatchedRun.of(context, instance.contents, instance.output, instance.tasks))

    def triggered(self, account):
        return [
            Entry(account.context.stats[number].trigger_ns, Happening.TRIGGERED, number)
            for number in range(1, LATEST + 1)
        ]

    def facts_of(self, account, *turns):
        return [fact for fact in end_facts(account, *turns) if "reads a backlog" in fact]

    def test_a_source_is_behind_until_it_has_read_its_history(self):
        for lack, behind in ((0, {}), (1, {LATEST: NOW})):
            part = stateful().contents.checkpoints[LATEST][0]
            account = self.account(part.position.served + lack)
            account.cut(LATEST, 0, part)
            assert behind == account._behind

    @pytest.mark.parametrize(("interval", "excess_triggers_in_backlog"), [(10 * SECOND, True), (SECOND, False)])
    def test_checkpoints_begin_at_the_interval_of_the_backlog(self, interval, excess_triggers_in_backlog):
        account = self.account(interval_ns=interval)
        account._begun_ns = 0
        account._behind = {LATEST: NOW}
        assert excess_triggers_in_backlog == bool(self.facts_of(account, *self.triggered(account)))

    def test_the_backlog_counts_to_the_last_checkpoint_behind_it(self):
        """Two and one for the interval that began: the fourth is too many."""
        for last, violations in ((2, 0), (3, 1)):
            account = self.account(interval_ns=10 * SECOND)
            account._begun_ns = 0
            account._behind = {last: NOW}
            assert violations == len(self.facts_of(account, *self.triggered(account)))

    def test_each_attempt_is_counted_for_itself(self):
        """The second one may have one more: its source is late to tell that it is behind again."""
        account = self.account(interval_ns=10 * SECOND)
        account._begun_ns = 0
        account._behind = {LATEST: NOW}
        rows = self.triggered(account)
        restored = Entry(2500 * MS, Happening.JOB_RESTORED, 3, number=1)
        assert self.facts_of(account, *rows[:3], restored, *rows[3:]) == []
        restored = Entry(1500 * MS, Happening.JOB_RESTORED, 2, number=1)
        (fact,) = self.facts_of(account, *rows[:2], restored, *rows[2:])
        assert fact.startswith("a source reads a backlog from 1.500000 s to 5.021000 s: 4 checkpoints began")


# The account of restarts, told what is not true of a job with six complete checkpoints.


RESTARTS_LATEST, FIRST_RESTART = 6, 1
RESTARTS_RESTORED = Entry(NOW, Happening.JOB_RESTORED, RESTARTS_LATEST, number=FIRST_RESTART)
ALL = Fraction(1)


@pytest.fixture
def account():
    return with_journal(account_of(RestartMonitor, stateful()), RESTARTS_RESTORED)


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

    def test_the_first_break_is_told(self, account):
        fake_ends(account, at_work={0})
        for _ in range(2):
            account.restarted(RESTARTS_LATEST, [0])
        assert len(facts(account)) == 1


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
        account.deployed.append(SimpleNamespace(time_ns=0, restart=1, tasks=frozenset()))
        lost = Entry(NOW, Happening.TASK_MANAGER_LOST, number=account.context.hosts[MAP])
        trigger_ns = account.context.stats[RESTARTS_LATEST].trigger_ns

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
        assert end_facts(account, begun, RESTARTS_RESTORED._replace(time_ns=15)) == []
        assert end_facts(account, begun, RESTARTS_RESTORED._replace(time_ns=14)) == [
            "its tasks are deployed 9e-06 ms later, the delay is 1e-05 ms"
        ]

    def test_the_restart_that_a_job_begins_with_is_none_of_the_strategy(self, account):
        with_scenario(account, restart=Restart("none"))
        begun = Entry(5, Happening.JOB_RESTARTING, number=1)
        assert end_facts(account, begun) == ["it is the restart number 1, the strategy allows 0"]
        account.context = replace(account.context, origin=Origin(1, 0, RESTARTS_LATEST, None))
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
        rescaled = Entry(RESTARTS_RESTORED.time_ns - account.context.scenario.overheads.deploy_ns, Happening.RESCALED)
        turns = (
            RESTARTS_RESTORED._replace(time_ns=0),
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
        account.restarted(RESTARTS_LATEST, tasks)
        facts(account)

    def test_the_whole_region_restarts(self, deployed):
        failed = Entry(NOW - 1, Happening.TASK_FAILED, task=0)
        self.restart(deployed, range(4))
        assert end_facts(deployed, failed, RESTARTS_RESTORED) == [
            "it leaves sink[0] alone, which exchanges data with a task of it"
        ]

    def test_nothing_restarts_that_has_not_failed(self, deployed):
        self.restart(deployed)
        (fact,) = end_facts(deployed, RESTARTS_RESTORED)
        assert fact == "it takes src[0] along, and no task failed that exchanges data with it"
        deployed.context = replace(deployed.context, origin=Origin(1, 0, RESTARTS_LATEST, None))
        assert end_facts(deployed, RESTARTS_RESTORED) == []

    def test_a_lost_task_manager_is_replaced_no_sooner_than_it_can_be(self, deployed):
        lost = Entry(NOW - 3 * SECOND, Happening.TASK_MANAGER_LOST, number=0)
        self.restart(deployed)
        assert end_facts(deployed, lost, RESTARTS_RESTORED) == []
        (fact,) = end_facts(deployed, lost._replace(time_ns=lost.time_ns + 1), RESTARTS_RESTORED)
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

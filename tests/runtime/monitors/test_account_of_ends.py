"""The accounts of ends and of the pace, told what is not true of a job with six complete checkpoints."""

from dataclasses import replace

import pytest

from sim.model.faults import Fault, Kill, When
from sim.model.job import Backlog
from sim.model.scenario import Action
from sim.results.journal import Entry, Happening
from sim.runtime.monitors.checkpoints import TimingMonitor
from sim.runtime.monitors.files import deletions
from sim.runtime.monitors.monitor import WatchedRun
from sim.runtime.monitors.output import EndOfTaskMonitor
from tests.runtime.monitors.watched import (
    MAP,
    account_of,
    end_facts,
    facts,
    named,
    stateful,
    with_journal,
    with_scenario,
)

MS, SECOND = 10**6, 10**9
LATEST = 6
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

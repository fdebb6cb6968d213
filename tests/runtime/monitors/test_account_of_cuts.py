"""The accounts of cuts, of sources in step and of the JobManager, told what is not true of a job with six complete checkpoints."""

from dataclasses import replace

import pytest

from sim.invariants.recovery import LATEST as GOES_BACK
from sim.invariants.recovery import ONCE, Surplus
from sim.model.faults import Fault, JobManagerDown, Kill, When
from sim.results.journal import Entry, Happening
from sim.runtime.context import Origin
from sim.runtime.monitors.checkpoints import JobManagerMonitor
from sim.runtime.monitors.monitor import EndOfRun
from sim.runtime.monitors.records import CutMonitor
from tests.runtime.monitors.watched import (
    MAP,
    SINK,
    account_of,
    end_facts,
    facts,
    stateful,
    with_journal,
    with_scenario,
)

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

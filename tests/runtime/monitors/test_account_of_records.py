"""The account of records, told what is not true: snapshots, restarts and ends that say otherwise than what tasks have done."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim.invariants.counts import RecordTally
from sim.protocol.options import Ending
from sim.results.journal import Entry, Happening
from sim.runtime.monitors.monitor import WatchedRun
from sim.runtime.monitors.records import CutMonitor, RecordMonitor
from tests.runtime.monitors.watched import MAP, SINK, end_facts, facts, stateful, with_journal, with_scenario

LATEST = 6
RESTORED = Entry(9, Happening.JOB_RESTORED, LATEST, number=1)


class Records(RecordMonitor):
    """The account of the stateful job, without others; `forgotten`: what it had all of them forget."""

    def __init__(self):
        instance = stateful()
        watched = WatchedRun.of(instance.context, instance.contents, instance.output, instance.tasks)
        self.forgotten = []
        super().__init__(watched, CutMonitor(watched), self.forgotten.append)
        with_journal(self, RESTORED)

    def note(self, tasks=range(5), **shifted):
        """The ledger has these tasks at their cuts where they stand now; `shifted`: a count of the map is off by so much."""
        for task in tasks:
            counted, late = self.context.plane.counted(task), self.context.plane.position(task).late
            read, written = counted.read.copy(), counted.written.copy()
            if task == MAP:
                read[0] += shifted.get("read", 0)
                written[0] += shifted.get("written", 0)
            off = shifted if task == MAP else {}
            self.ledger.note(
                LATEST, task, counted.served + off.get("served", 0), late + off.get("late", 0), read, written
            )


@pytest.fixture
def account():
    return Records()


class TestSnapshots:
    def cut(self, account, **shifted):
        position = account.context.plane.position(MAP)
        changed = {}
        for name, by in shifted.items():
            cells = getattr(position, name)
            changed[name] = cells + by if name == "served" else np.array([cells[0] + by, *cells[1:]])
        account.cut(LATEST + 1, MAP, SimpleNamespace(position=position._replace(**changed)))
        return facts(account)

    def test_a_snapshot_says_what_was_done(self, account):
        assert self.cut(account) == []
        assert account.context.plane.counted(MAP).served == account.ledger.served(LATEST + 1, MAP)

    @pytest.mark.parametrize(("name", "by"), [("served", 1), ("served", -1), ("records_out", 1), ("records_in", -1)])
    def test_a_snapshot_says_otherwise(self, account, name, by):
        (fact,) = self.cut(account, **{name: by})
        position = account.context.plane.position(MAP)
        counts = [position.served, int(position.records_out.sum()), int(position.records_in.sum())]
        says = [
            count + by * (column == name)
            for column, count in zip(("served", "records_out", "records_in"), counts, strict=True)
        ]
        assert (
            "it says that {} records were served, {} read, {} written; {}, {}, {} have been".format(*says, *counts)
            == fact
        )

    def test_with_a_new_checkpoint_those_that_failed_are_forgotten(self, account, monkeypatch):
        self.cut(account)
        self.cut(account)
        (gone,) = account.forgotten
        assert not gone(1)
        monkeypatch.setattr(account.context.stats[1], "status", "FAILED")
        assert gone(1)
        assert not gone(99)

    def test_a_completion_forgets_what_is_older_and_not_kept(self, account, monkeypatch):
        monkeypatch.setattr(account.context.stats[2], "savepoint_format", "native")
        account.completed(LATEST, [4])
        (gone,) = account.forgotten
        assert [number for number in range(1, 8) if gone(number)] == [1, 3, 5]


class TestRestarts:
    """Tasks stand where they are; the checkpoint says where they ought to."""

    def restart(self, account, tasks=range(5), **shifted):
        account.note(**shifted)
        account.restarted(LATEST, tasks)
        return facts(account)

    def test_tasks_stand_where_they_stood(self, account):
        assert self.restart(account) == []

    @pytest.mark.parametrize("shifted", [{"served": 1}, {"late": 1}, {"read": 1}, {"written": 1}], ids=str)
    def test_a_task_stands_elsewhere(self, account, shifted):
        account.note(**shifted)
        account.restarted(LATEST, range(5))
        places = [violation for violation in account.found if "restart 1 from checkpoint 6" in violation.where]
        assert [violation.where for violation in places] == ["map[0], restart 1 from checkpoint 6"]

    def test_others_may_stand_anywhere(self, account):
        """Only what restarts is compared; what it wrote is not its own."""
        account.note(read=1)
        account.restarted(LATEST, [SINK])
        assert [violation for violation in account.found if "restart 1" in violation.where] == []

    def test_where_input_comes_twice_another_account_says_so(self, account):
        account.cuts.surpluses[LATEST] = None
        assert self.restart(account, read=1) == []

    def test_an_output_holds_what_its_rule_says(self, account):
        """A record that the map served is in its output."""
        account.note()
        account.ledger.of(LATEST).served[MAP] += 2
        account.restarted(LATEST, [SINK])
        served = account.ledger.served(LATEST, MAP)
        assert [f"it should hold {served} records and holds {served - 2} (at checkpoint 6)"] == facts(account)
        account._surplus = [-2 * (row.task == MAP) for row in account._outputs]
        account.restarted(LATEST, [SINK])
        assert facts(account) == [], "it began with so much less"


class TestAnotherJob:
    def test_the_same_tasks_go_on_with_what_was_noted(self, account):
        account.note()
        account._surplus = [5] * len(account._outputs)
        account._rescaled = {7}
        after = Records()
        after.continue_from(account, LATEST)
        assert account.ledger.of(LATEST) is after.ledger.of(LATEST)
        assert ([5] * len(account._outputs), {7}, None) == (after._surplus, after._rescaled, after._before)

    def test_a_job_that_never_stood_has_no_account_of_its_own(self, account):
        account.note()
        between, after = Records(), Records()
        between._before = account
        after.continue_from(between, LATEST)
        assert account.ledger.of(LATEST) is after.ledger.of(LATEST)

    def test_what_is_dealt_out_is_compared_when_all_tasks_stand(self, account):
        """Their names are others, so everything counts as dealt out; here each task has what it had."""
        account.note()
        account.context = replace(account.context, names=[("other", 0)])
        after = Records()
        after.continue_from(account, LATEST)
        assert after._before is account
        after.restarted(LATEST, [0, 1, MAP])
        assert after._before is account
        assert np.flatnonzero(after.ledger.of(LATEST).known).tolist() == [0, 1, MAP]
        after.restarted(LATEST, [MAP + 1, SINK])
        assert after._before is None
        assert facts(after) == []
        assert [0] * len(after._outputs) == after._surplus

    def test_records_that_are_lost_on_the_way(self, account):
        account.note(served=3)
        account.context = replace(account.context, names=[("other", 0)])
        after = Records()
        after.continue_from(account, LATEST)
        after.restarted(LATEST, range(5))
        assert [violation.where for violation in after.found] == ["job 1, begun from checkpoint 6 of job 0"]


class TestTheEnd:
    def end(self, account, *, drained=True, stop=None, ending=Ending.DRAIN, in_use=(), drops=False):
        end = SimpleNamespace(drained=drained, stop=stop, ending=ending)
        account.ends = Ends(SimpleNamespace(end=lambda _: end, in_use=lambda: iter(in_use), drops=lambda _: drops))
        return end_facts(account, finished=True)

    def test_while_the_job_goes_on_nothing_is_said(self, account):
        assert end_facts(account) == []

    def unread(self, account):
        """The job was stopped in the middle of its run: its queues are full."""
        channels = account.context.plane.channels("records_in", "records_out")
        written, read = int(channels["records_out"].sum()), int(channels["records_in"].sum())
        assert written > read
        return f"{written} records are written and {read} read, on 6 channels"

    def test_data_that_nobody_has_read(self, account):
        assert [self.unread(account)] == self.end(account)

    def test_what_is_in_use_then(self, account):
        thread = "the thread of map[0] is at work"
        assert [f"it has finished, and {thread}", self.unread(account)] == self.end(account, in_use=[thread])

    def test_totals_of_sources_that_were_never_dealt_out(self, account):
        job = account.context.scenario.job
        bounded = replace(job.vertices[0], source=replace(job.vertices[0].source, total=50))
        with_scenario(account, job=replace(job, vertices=(bounded, *job.vertices[1:])))
        assert account._totals() == [(0, 50), (1, 50)]
        account._rescaled = {0}
        assert account._totals() == []

    def test_sources_that_emit_behind_the_savepoint_they_stopped_with(self, account):
        account.note()
        tally = RecordTally.zero(5, 6)
        tally.served[:] = 10**6
        account.ends = Ends(SimpleNamespace(end=lambda _: SimpleNamespace(stop=LATEST)))
        served = [account.ledger.served(LATEST, task) for task in (0, 1)]
        assert [(0, served[0], 10**6), (1, served[1], 10**6)] == list(account._emitted(LATEST, tally))
        account.ends = Ends(SimpleNamespace(end=lambda _: SimpleNamespace(stop=None)))
        assert list(account._emitted(LATEST, tally)) == []

    @pytest.mark.parametrize(("ending", "up_to_cut"), [(Ending.NO_DRAIN, True), (Ending.DRAIN, False)])
    def test_what_comes_behind_the_cut_of_a_stop_may_stay_unread(self, account, ending, up_to_cut):
        account.note()
        tally = account._tally(range(5))
        tally.written += 7
        account.ends = Ends(SimpleNamespace(end=lambda _: SimpleNamespace(stop=LATEST, ending=ending)))
        seven = set((tally.written - account._to_be_read(tally).written).tolist())
        assert {7} == seven if up_to_cut else {0} == seven


class Ends:
    """The ends of five tasks."""

    def __init__(self, ends):
        self._ends = ends

    def __getattr__(self, name):
        return getattr(self._ends, name)

    def __len__(self):
        return 5

"""The account of records, told what is not true: snapshots, restarts and ends that say otherwise than what tasks have done."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim.protocol.options import Ending
from sim.results.journal import Entry, Happening
from sim.runtime.monitors.monitor import WatchedRun
from sim.runtime.monitors.records import CutMonitor, RecordMonitor
from tests.runtime.monitors.watched import MAP, SINK, end_facts, facts, stateful, with_journal

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

    @pytest.mark.parametrize(
        ("name", "by"), [("served", 1), ("served", -1), ("records_read", 1), ("records_written", -1)]
    )
    def test_a_snapshot_says_otherwise(self, account, name, by):
        (fact,) = self.cut(account, **{name: by})
        position = account.context.plane.position(MAP)
        counts = [position.served, int(position.records_read.sum()), int(position.records_written.sum())]
        says = [
            count + by * (column == name)
            for column, count in zip(("served", "records_read", "records_written"), counts, strict=True)
        ]
        assert (
            "it says that {} records were served, {} read, {} written; {}, {}, {} have been".format(*says, *counts)
            == fact
        )


class TestRestarts:
    """Tasks stand where they are; the checkpoint says where they ought to."""

    def restart(self, account, tasks=range(5), **shifted):
        account.note(**shifted)
        account.restarted(LATEST, tasks)
        return facts(account)

    @pytest.mark.parametrize("shifted", [{"served": 1}, {"late": 1}, {"read": 1}, {"written": 1}], ids=str)
    def test_a_task_stands_elsewhere(self, account, shifted):
        account.note(**shifted)
        account.restarted(LATEST, range(5))
        places = [violation for violation in account.found if "restart 1 from checkpoint 6" in violation.where]
        assert [violation.where for violation in places] == ["map[0], restart 1 from checkpoint 6"]

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

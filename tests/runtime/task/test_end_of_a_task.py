"""How one task ends, moment by moment: what its inputs bring, what it sends on, whom it tells, and when it closes its operators."""

from types import SimpleNamespace

import pytest

from sim.plane.interface import Trait
from sim.protocol.options import Ending, FailureReason
from sim.protocol.task_finishing import FINISHING, EndState, OutputRead
from sim.protocol.task_messages import GateClosed, InputEnded
from sim.results.journal import Happening
from sim.runtime.context import END_OF_DATA, END_OF_PARTITION
from sim.runtime.task.end import TaskEnding
from tests.runtime.task.fake_slots import FakeClock, Recorder

SOURCE, READER = 0, 2
LATENCY_NS, REPORT_NS, CLOSE_NS = 7, 50, 900
LAYOUT = SimpleNamespace(
    task_gates=[(), (), (0,), (1,)],
    subtask=[0, 1, 0, 0],
    writer=[0, 1, 2],
    reader=[2, 2, 3],
    local=[True, False, True],
    task_partitions=[(0,), (1,), (2,), ()],
    partitions=[(0, 0, (0,)), (1, 0, (1,)), (2, 1, (2,))],
)
"""Two sources, which a task reads that has one reader: the channels 0 (local) and 1, and 2."""


class Part:
    """A part that does nothing, and writes it down."""

    def __init__(self, log):
        self.log = log

    def __getattr__(self, name):
        return lambda *facts: self.log.append((name, *facts))


class Parts(list):
    """One part; its operators finish at once."""

    def end_input(self, done):
        self[0].log.append(("end_input",))
        done()


class Task:
    """A task whose other components write down what it does.  `drained`: how the other tasks' data ends."""

    def __init__(self, task=READER, rule="flink", periodic=True, total=None, served=0):
        self.env, self.log = FakeClock(), []
        self.writers = {}
        plane = SimpleNamespace(
            served=lambda: [served] * 4, forward=lambda _, marker: self.log.append(("forward", marker))
        )
        overheads = SimpleNamespace(acknowledge_ns=REPORT_NS, close_ns=CLOSE_NS)
        scenario = SimpleNamespace(cluster=SimpleNamespace(latency_ns=LATENCY_NS), overheads=overheads)
        context = SimpleNamespace(env=self.env, layout=LAYOUT, plane=plane, scenario=scenario, periodic=periodic)
        self.thread = SimpleNamespace(stopped=False, mails_only=False, yields=False, post=lambda mail: mail())
        self.thread.serve_mails_only = lambda: setattr(self.thread, "mails_only", True)
        job = Recorder(self.log)
        job.rule = FINISHING[rule]
        job.message = self.env.call_in
        slot = SimpleNamespace(
            context=context,
            task=task,
            vertex=SimpleNamespace(total=lambda _: total),
            thread=self.thread,
            job=job,
            channels=[0, 1] if task == READER else [],
            checks=Recorder([]),
            note=lambda happening, *_, detail="": self.log.append((happening, detail)),
        )
        self.ending = TaskEnding(Slot(slot), Parts([Part(self.log)]), self.barriers, self.writer)

    def barriers(self, event):
        self.log.append((type(event), event.gate))

    def writer(self, task):
        return self.writers.setdefault(task, self.other())

    def other(self, ending=Ending.DRAIN):
        machine = SimpleNamespace(rule=self.ending.machine.rule, ending=ending)
        return SimpleNamespace(machine=machine, dispatch=lambda event: self.log.append((type(event), self.env.now)))

    def hear(self, channel, series, *, last=False):
        """What follows at once when the task processes an end on a channel."""
        self.log.clear()
        self.ending.on_notice(SimpleNamespace(channel=channel, series=series, gate=0, last=last))
        return self.done()

    def done(self):
        found, self.log[:] = list(self.log), []
        return found

    def run(self, until_ns):
        self.env.run(until_ns)
        return self.done()

    @property
    def state(self):
        return self.ending.machine.state


class Slot:
    """A slot whose clock goes on."""

    def __init__(self, slot):
        self._slot = slot

    def __getattr__(self, name):
        return getattr(self._slot, name)

    @property
    def now(self):
        return self._slot.context.env.now


def markers(rows):
    return [(row[1].series, row[1].traits) for row in rows if row[0] == "forward"]


class TestInputs:
    def test_a_writer_hears_that_its_data_is_read(self):
        """Over the network after its latency."""
        task = Task()
        assert (OutputRead, 0) in task.hear(0, END_OF_DATA)
        task.hear(1, END_OF_DATA)
        assert [row for row in task.run(LATENCY_NS - 1) if row[0] is OutputRead] == []
        assert (OutputRead, LATENCY_NS) in task.run(LATENCY_NS)

    def test_its_data_ends_with_that_of_all_inputs(self):
        task = Task()
        assert ("channel_ended", 0) in task.hear(0, END_OF_DATA)
        assert EndState.RUNNING is task.state
        rows = task.hear(1, END_OF_DATA)
        assert [row for row in rows if row[0] != "forward"] == [
            ("channel_ended", 1),
            ("end_input",),
            (Happening.END_OF_DATA, "drain"),
        ]
        assert markers(rows) == [(END_OF_DATA, Trait.NONE)]
        assert [row for row in task.run(REPORT_NS) if row[0] == "data_ended"] == [("data_ended", READER)]

    @pytest.mark.parametrize("channel", [0, 1])
    def test_to_drain_all_must(self, channel):
        """Where one of them is stopped as it stands, operators do not finish, and windows do not end."""
        task = Task()
        task.writers[LAYOUT.writer[channel]] = task.other(Ending.NO_DRAIN)
        rows = task.hear(0, END_OF_DATA) + task.hear(1, END_OF_DATA)
        assert [("channel_ended", 1 - channel)] == [row for row in rows if row[0] == "channel_ended"]
        assert ("quiesce",) in rows
        assert ("end_input",) not in rows
        assert (Happening.END_OF_DATA, "no-drain") in rows

    def test_a_gate_closes_with_its_last_partition(self):
        task = Task()
        for channel in (0, 1):
            task.hear(channel, END_OF_DATA)
        assert [row for row in task.hear(0, END_OF_PARTITION) if row[0] is GateClosed] == []
        assert not task.ending.closed(0)
        assert (GateClosed, 0) in task.hear(1, END_OF_PARTITION, last=True)
        assert task.ending.closed(0)
        assert not task.ending.machine.inputs_open

    def test_before_flip_147_the_end_of_a_partition_ends_its_data(self):
        """No checkpoint is taken when a task has finished, so a barrier on the channel is given up."""
        task = Task(rule="naive")
        assert (OutputRead, 0) in task.hear(0, END_OF_PARTITION)
        older = Task(rule="off")
        older.hear(0, END_OF_DATA)
        assert (InputEnded, 0) in older.hear(0, END_OF_PARTITION)
        assert (InputEnded, 0) not in older.hear(0, END_OF_DATA)


class TestSources:
    @pytest.mark.parametrize(
        ("total", "served", "ends"), [(10, 10, True), (10, 11, True), (10, 9, False), (None, 10, False)]
    )
    def test_a_log_that_is_read_to_its_end(self, total, served, ends):
        task = Task(SOURCE, total=total, served=served)
        task.ending.exhausted()
        assert ends == (task.state is not EndState.RUNNING)
        task.ending.exhausted()

    def test_a_stop_ends_the_data_first(self):
        """The call is executed afterwards; if operators hold outputs yet, again when these are written."""
        task, calls = Task(SOURCE), []
        assert task.ending.still_takes_part(4, Ending.DRAIN, lambda: calls.append(4))
        assert task.thread.mails_only
        assert EndState.RUNNING is not task.state
        waiting = Task(SOURCE)
        waiting.thread.yields = True
        assert not waiting.ending.still_takes_part(4, Ending.NO_DRAIN, lambda: calls.append(5))
        assert calls == [5]

    def test_a_stop_with_the_savepoint_first_ends_it_afterwards(self):
        task = Task(SOURCE)
        task.ending.still_takes_part(4, Ending.AFTERWARDS, lambda: None)
        assert (task.thread.mails_only, task.state) == (True, EndState.RUNNING)
        task.ending.snapshot_begun(4, Ending.AFTERWARDS)
        task.ending.completed(3)
        assert EndState.RUNNING is task.state
        task.ending.completed(4)
        assert EndState.RUNNING is not task.state

    def test_only_sources_are_stopped(self):
        task = Task()
        assert task.ending.still_takes_part(4, Ending.DRAIN, lambda: None)
        assert not task.thread.mails_only

    def test_an_ordinary_checkpoint_stops_nothing(self):
        task = Task(SOURCE)
        assert task.ending.still_takes_part(4, None, lambda: None)
        assert not task.thread.mails_only


def finished(rule="flink", periodic=True):
    """A reader whose data has ended and whose output is read: it waits for a checkpoint that holds its end."""
    task = Task(rule=rule, periodic=periodic)
    for channel in (0, 1):
        task.hear(channel, END_OF_DATA)
    for channel in (0, 1):
        task.hear(channel, END_OF_PARTITION, last=channel == 1)
    if task.ending.machine.rule.end_of_data_first:
        task.ending.dispatch(OutputRead(task.env.now))
    return task


class TestSnapshots:
    def test_completions_matter_when_its_data_has_ended_or_it_stops(self):
        assert not Task().ending.listens
        assert finished().ending.listens
        stopping = Task()
        stopping.ending.snapshot_begun(4, Ending.NO_DRAIN)
        assert stopping.ending.listens

    def test_the_first_snapshot_behind_its_end_holds_it(self):
        task = finished()
        task.done()
        task.ending.snapshot_begun(5, None)
        assert ("finished_in", READER, 5) in task.done()
        task.ending.snapshot_ended(5)
        task.ending.completed(4)
        assert EndState.WAITING is task.state
        task.ending.completed(5)
        assert EndState.CLOSING is task.state

    def test_while_it_runs_snapshots_hold_no_end(self):
        task = Task()
        task.ending.snapshot_begun(5, None)
        assert task.done() == []
        assert frozenset() == task.ending.machine.open

    def test_snapshots_under_way_are_known_when_its_data_ends(self):
        """It does not close before they are over."""
        task = Task()
        for checkpoint in (5, 4, 3):
            task.ending.snapshot_begun(checkpoint, None)
        task.ending.snapshot_ended(3)
        for channel in (0, 1):
            task.hear(channel, END_OF_DATA)
        assert {4, 5} == task.ending.machine.open
        task.ending.snapshot_ended(4)
        assert {5} == task.ending.machine.open

    def test_a_closing_task_declines(self):
        task = finished(periodic=False)
        task.done()
        assert not task.ending.still_takes_part(6, None, lambda: None)
        assert task.done() == [("decline", READER, 6, FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING)]

    @pytest.mark.parametrize(("aborted", "fails"), [(4, True), (3, False)])
    def test_the_abort_of_the_savepoint_it_stops_with_fails_it(self, aborted, fails):
        task = Task()
        task.ending.snapshot_begun(4, Ending.NO_DRAIN)
        task.ending.aborted(aborted)
        assert ([("fail_task", READER, "stop-with-savepoint failed")] if fails else []) == task.done()


class TestClosing:
    def test_closing_takes_its_time_and_nothing_follows(self):
        task = finished(periodic=False)
        closed = []
        task.ending.on_close = lambda: closed.append(task.env.now)
        assert EndState.CLOSING is task.state
        rows = task.run(CLOSE_NS - 1)
        assert markers(rows) == []
        rows = task.run(CLOSE_NS)
        assert markers(rows) == [(END_OF_PARTITION, Trait.FINAL)]
        assert [row for row in rows if row[0] != "forward"] == [(Happening.TASK_FINISHED, ""), ("finished",)]
        assert task.run(CLOSE_NS + REPORT_NS) == [("task_finished", READER)]

    def test_what_works_in_the_background_ends_first(self):
        task, closed = Task(periodic=False), []
        task.ending.on_close = lambda: closed.append(task.env.now)
        for channel in (0, 1):
            task.hear(channel, END_OF_DATA)
        task.ending.dispatch(OutputRead(0))
        assert closed == [], "its inputs are open"
        for channel in (0, 1):
            task.hear(channel, END_OF_PARTITION, last=channel == 1)
        assert closed == [0]

    @pytest.mark.parametrize(
        ("rule", "periodic", "commits"),
        [
            ("flink", True, False),
            ("flink", False, True),
            ("commit-at-finish", True, True),
            ("discard", False, False),
            ("off", True, False),
        ],
    )
    def test_what_no_checkpoint_will_hold_is_committed_as_the_rule_says(self, rule, periodic, commits):
        task = Task(rule=rule, periodic=periodic)
        rows = []
        for channel in (0, 1):
            rows += task.hear(channel, END_OF_DATA)
        for channel in (0, 1):
            rows += task.hear(channel, END_OF_PARTITION, last=channel == 1)
        task.log.clear()
        task.ending.dispatch(OutputRead(0))
        rows += task.done()
        if task.state is EndState.WAITING:
            task.ending.snapshot_begun(5, None)
            task.ending.snapshot_ended(5)
            task.ending.completed(5)
            rows += task.done()
        assert EndState.CLOSING is task.state
        assert commits == (("close",) in rows)


class TestRestarts:
    @pytest.mark.parametrize("gone", ["replaced", "stopped"])
    def test_a_task_that_was_restarted_hears_nothing(self, gone):
        task = Task()
        if gone == "replaced":
            task.ending.replaced = True
        else:
            task.thread.stopped = True
        for channel in (0, 1):
            task.hear(channel, END_OF_DATA)
        assert EndState.RUNNING is task.state

    def test_its_reports_come_to_nothing(self):
        task = Task()
        for channel in (0, 1):
            task.hear(channel, END_OF_DATA)
        task.ending.replaced = True
        assert [row for row in task.run(REPORT_NS) if row[0] == "data_ended"] == []

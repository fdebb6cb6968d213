"""How one task ends, moment by moment: what its inputs bring, what it sends on, whom it tells, and when it closes its operators."""

from types import SimpleNamespace

import pytest

from sim.protocol.options import Ending
from sim.protocol.task_finishing import FINISHING, EndState
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


class TestSources:
    def test_a_stop_with_the_savepoint_first_ends_it_afterwards(self):
        task = Task(SOURCE)
        task.ending.still_takes_part(4, Ending.AFTERWARDS, lambda: None)
        assert (task.thread.mails_only, task.state) == (True, EndState.RUNNING)
        task.ending.snapshot_begun(4, Ending.AFTERWARDS)
        task.ending.completed(3)
        assert EndState.RUNNING is task.state
        task.ending.completed(4)
        assert EndState.RUNNING is not task.state


class TestSnapshots:
    @pytest.mark.parametrize(("aborted", "fails"), [(4, True), (3, False)])
    def test_the_abort_of_the_savepoint_it_stops_with_fails_it(self, aborted, fails):
        task = Task()
        task.ending.snapshot_begun(4, Ending.NO_DRAIN)
        task.ending.aborted(aborted)
        assert ([("fail_task", READER, "stop-with-savepoint failed")] if fails else []) == task.done()

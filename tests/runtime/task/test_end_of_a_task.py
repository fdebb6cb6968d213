"""How one task ends, moment by moment: when it stops with a savepoint, and what the savepoint's abort does to it."""

from types import SimpleNamespace

import pytest

from sim.protocol.options import Ending
from sim.protocol.task_finishing import FINISHING, EndState
from sim.runtime.task.end import TaskEnding
from tests.runtime.task.fake_slots import Recorder

SOURCE, READER = 0, 1
LAYOUT = SimpleNamespace(task_gates=[(), (0,)], writer=[0], task_partitions=[(0,), ()], partitions=[(0, 0, (0,))])
"""A source, and a task that reads it."""


class Parts(list):
    """No part; the operators finish at once."""

    def end_input(self, done):
        done()


class Task:
    """A task whose other components write down what it does."""

    def __init__(self, task):
        self.log = []
        job = Recorder(self.log)
        job.rule = FINISHING["flink"]
        self.thread = SimpleNamespace(stopped=False, mails_only=False, yields=False)
        self.thread.serve_mails_only = lambda: setattr(self.thread, "mails_only", True)
        scenario = SimpleNamespace(overheads=SimpleNamespace(acknowledge_ns=0))
        slot = SimpleNamespace(
            context=SimpleNamespace(layout=LAYOUT, plane=Recorder([]), scenario=scenario, periodic=True),
            task=task,
            thread=self.thread,
            job=job,
            channels=[],
            checks=Recorder([]),
            note=lambda *_, **__: None,
            now=0,
        )
        self.ending = TaskEnding(slot, Parts(), None, None)


def test_a_stop_with_the_savepoint_first_ends_it_afterwards():
    task = Task(SOURCE)
    task.ending.still_takes_part(4, Ending.AFTERWARDS, lambda: None)
    assert (task.thread.mails_only, task.ending.machine.state) == (True, EndState.RUNNING)
    task.ending.snapshot_begun(4, Ending.AFTERWARDS)
    task.ending.completed(3)
    assert EndState.RUNNING is task.ending.machine.state
    task.ending.completed(4)
    assert EndState.RUNNING is not task.ending.machine.state


@pytest.mark.parametrize(("aborted", "fails"), [(4, True), (3, False)])
def test_the_abort_of_the_savepoint_it_stops_with_fails_it(aborted, fails):
    task = Task(READER)
    task.ending.snapshot_begun(4, Ending.NO_DRAIN)
    task.ending.aborted(aborted)
    assert ([("fail_task", READER, "stop-with-savepoint failed")] if fails else []) == task.log

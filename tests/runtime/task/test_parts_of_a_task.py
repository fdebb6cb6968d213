"""The parts of one task, as its host calls them: what is waited for before a barrier leaves."""

from types import SimpleNamespace

import simpy

from sim.runtime.task.parts import TaskPart, TaskParts, task_features
from sim.storage.ledger import StorageFailed

OWN_NS, WORK_NS = 10, 20


class BusyPart(TaskPart):
    """A part that works before each barrier."""

    fails = False

    def __init__(self, env, log):
        self.env, self.log = env, log

    def work_before_barrier(self, checkpoint, pieces):
        yield self.env.timeout(WORK_NS)
        if self.fails:
            raise StorageFailed("gone")
        self.log.append(("work", pieces, self.env.now))


class Task:
    """A task with such parts."""

    def __init__(self, monkeypatch, count=1):
        self.env, self.log = simpy.Environment(), []
        self.env.call_in = lambda delay_ns, action: action()
        made = [BusyPart(self.env, self.log) for _ in range(count)]
        features = [SimpleNamespace(attach=lambda *_, part=part: part) for part in (None, *made)]
        monkeypatch.setattr("sim.runtime.task.parts.task_features", lambda: features)
        self.thread = SimpleNamespace(stopped=False, occupy=lambda: self.log.append("occupy"))
        slot = SimpleNamespace(context=SimpleNamespace(env=self.env), thread=self.thread)
        self.parts, self.part = TaskParts(slot, None, None), made[0]

    def before(self, own_ns=0):
        command = SimpleNamespace(checkpoint=5, work=("flush",))
        self.parts.before_barrier(command, own_ns, lambda: self.log.append(("done", self.env.now)))
        self.env.run(until=1)
        assert self.log.pop() == "occupy"
        self.env.run(until=99)
        return self.log


def test_work_follows_one_piece_after_the_other(monkeypatch):
    task = Task(monkeypatch, count=2)
    assert task.before(OWN_NS) == [("work", ("flush",), 30), ("work", ("flush",), 50), ("done", 50)]


def test_work_that_fails_in_a_task_that_stopped_is_just_over(monkeypatch):
    task = Task(monkeypatch)
    task.part.fails = True
    task.env.timeout(1).callbacks.append(lambda _: setattr(task.thread, "stopped", True))
    assert task.before() == [("done", WORK_NS)]


def test_features_are_called_stage_by_stage():
    stages = [feature.stage for feature in task_features()]
    assert sorted(stages) == stages
    assert len(stages) >= 6

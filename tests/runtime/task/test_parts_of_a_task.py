"""The parts of one task, as its host calls them: what is waited for before a barrier leaves, and before the data ends."""

from types import SimpleNamespace

import pytest
import simpy

from sim.runtime.task.parts import TaskPart, TaskParts, WaitingBytes, task_features
from sim.storage.ledger import StorageFailed

OWN_NS, PART_NS, WORK_NS = 10, 3, 20
COMMAND = SimpleNamespace(checkpoint=5, work=("flush",))


class BusyPart(TaskPart):
    """A part that does something at every moment, as a test says."""

    before_ns, works, fails, lets_go, owes, listening, dropping = 0, False, False, False, False, False, False

    def __init__(self, env, log):
        self.env, self.log = env, log

    @property
    def listens(self):
        return self.listening

    @property
    def drops(self):
        return self.dropping

    @property
    def has_pending_outputs(self):
        return self.owes

    def before_barrier(self, checkpoint):
        self.log.append(("before barrier", checkpoint))
        return self.before_ns

    def work_before_barrier(self, checkpoint, pieces):
        return self.work(pieces) if self.works else None

    def work(self, what):
        yield self.env.timeout(WORK_NS)
        if self.fails:
            raise StorageFailed("gone")
        self.log.append(("work", what, self.env.now))

    def release_before_barrier(self):
        return self.lets_go

    def cut(self, checkpoint, snapshot):
        snapshot.append(checkpoint)

    def waiting(self):
        return WaitingBytes(2, 3)

    def upload(self, checkpoint):
        return self.work(("upload", checkpoint)) if self.works else None

    def end_input(self):
        self.log.append(("end input", self.env.now))

    def work_at_end(self):
        return self.work("end") if self.works else None

    def watermark_arrived(self, channel, number):
        self.log.append(("watermark", channel, number))

    def outputs_written(self, *, at_end):
        self.log.append(("written", at_end))


class Task:
    """A task with two such parts; the first one is `part`."""

    def __init__(self, monkeypatch, late=0):
        self.env, self.log, self.snapshot, self.late = simpy.Environment(), [], [], late
        self.env.call_in = self.call_in
        made = [BusyPart(self.env, self.log), BusyPart(self.env, self.log)]
        features = [SimpleNamespace(attach=lambda *_, part=part: part) for part in (made[0], None, made[1])]
        monkeypatch.setattr("sim.runtime.task.parts.task_features", lambda: features)
        record = lambda name: lambda *facts: self.log.append((name, *facts))  # noqa: E731
        self.thread = SimpleNamespace(stopped=False, written=lambda: False)
        for verb in ("occupy", "vacate", "begin_yield", "end_yield", "freed"):
            setattr(self.thread, verb, record(verb))
        contents = SimpleNamespace(
            cut=lambda checkpoint, task, fill, finished: (fill(self.snapshot), self.log.append(("cut", finished)))
        )
        plane = SimpleNamespace(position=lambda _: SimpleNamespace(late=self.late))
        slot = SimpleNamespace(
            context=SimpleNamespace(env=self.env, plane=plane),
            task=1,
            thread=self.thread,
            contents=contents,
            checks=SimpleNamespace(input_ended=lambda _: None),
            job=SimpleNamespace(fail_task=record("fail task")),
        )
        self.parts, self.part, self.other = TaskParts(slot, None, lambda: False), *made

    def call_in(self, delay_ns, action):
        if delay_ns:
            self.env.timeout(delay_ns).callbacks.append(lambda _: action())
        else:
            action()

    def done(self):
        self.log.append(("done", self.env.now))

    def notice(self, kind):
        self.parts.on_notice(SimpleNamespace(kind=kind, channel=4, number=9))

    def log_until(self, until_ns=None):
        if until_ns is not None:
            self.env.run(until=until_ns)
        log, self.log[:] = list(self.log), []
        return log


@pytest.fixture
def task(monkeypatch):
    return Task(monkeypatch)


class TestBeforeTheBarrier:
    def before(self, task, own_ns=0):
        task.parts.before_barrier(COMMAND, own_ns, task.done)
        return [row for row in task.log_until() if row[0] != "before barrier"]

    def test_work_follows_one_piece_after_the_other(self, task):
        task.part.works = task.other.works = True
        assert self.before(task, OWN_NS) == [("occupy",)]
        assert task.log_until(99) == [("work", ("flush",), 30), ("work", ("flush",), 50), ("done", 50)]

    def test_work_that_fails_in_a_task_that_stopped_is_just_over(self, task):
        task.part.works = task.part.fails = True
        self.before(task)
        task.thread.stopped = True
        assert task.log_until(99) == [("done", WORK_NS)]


def test_features_are_called_stage_by_stage():
    stages = [feature.stage for feature in task_features()]
    assert sorted(stages) == stages
    assert len(stages) >= 6

"""The parts of one task, as its host calls them: what is waited for before a barrier leaves, captures, and the end."""

from types import SimpleNamespace

import pytest
import simpy

from sim.model.job import Snapshot, Vertex
from sim.model.storage import Storage
from sim.protocol.options import StopMode
from sim.protocol.task_finishing import FINISHING, EndState
from sim.results.tables import CheckpointStats
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.task.channel_state import ChannelState
from sim.runtime.task.host import TaskEnding
from sim.runtime.task.parts import TaskPart, TaskParts, task_features
from sim.runtime.task.subtask_state import SubtaskState
from sim.runtime.task.thread import Slot
from sim.runtime.task_manager import ChannelStateWriter
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import StorageFailed
from tests.runtime.fakes import FakePlane
from tests.runtime.task.fake_slots import Recorder
from tests.scenarios import run_scenario

# The parts of one task, as its host calls them: what is waited for before a barrier leaves.


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
    assert len(stages) >= 5


# What a subtask writes: its own work in each phase.


def test_each_phase_has_its_own_work():
    vertex = Vertex("sink", snapshot=Snapshot(pre_barrier_ns=1, sync_ns=20, async_ns=300))
    options = SimpleNamespace(checkpoint=SimpleNamespace(state=None), run=SimpleNamespace(seed=1))
    context = SimpleNamespace(names=[("sink", 0)], scenario=options, storage=None)
    state = SubtaskState(Slot(context, 0, vertex, None, SimpleNamespace(number=0), None))

    assert [state.work_ns(phase, 7) for phase in ("pre_barrier", "sync", "async")] == [1, 20, 300]


# Channel state of a task: captured buffers go back to their pools when they are written, not before.


MS = 1_000_000
PER_MS = 1_000  # bytes
TASK = 3


def captured():
    """8 ms of data."""
    plane = FakePlane()
    plane.input_bytes = 8 * PER_MS
    env = TwoPlaneEnvironment(plane, lambda _: None)
    options = Storage(bytes_per_second=PER_MS * 1000, close_ns=5 * MS, inline_threshold_bytes=0)
    writer = ChannelStateWriter(env, CheckpointStorage(env, options, seed=1), [TASK])
    slot = SimpleNamespace(
        context=SimpleNamespace(
            plane=plane,
            stats={1: CheckpointStats(1, 0, 1)},
            contents=SimpleNamespace(in_flight_final=lambda *_, **__: None),
        ),
        task=TASK,
        manager=SimpleNamespace(channel_state={TASK: writer}),
        note=lambda *_: None,
    )
    return env, plane, ChannelState(slot)


def test_buffers_are_released_after_the_write():
    """They are pinned at 7 ms, back in their pools at 9; the file is closed 5 ms later."""
    (env, plane, data), closed_ms = captured(), []
    data.input_overtaken(1)
    data.barriers_complete(1)
    data.capture_ended(1, lambda: closed_ms.append(env.now / MS), lambda: None)
    env.run(until=7 * MS)

    assert plane.verbs == [("capture", TASK, 1)]
    assert data.storing
    env.run(until=9 * MS)
    assert not data.storing
    assert ("release_capture", TASK) in plane.verbs
    assert closed_ms == []
    env.run(until=20 * MS)
    assert closed_ms == [13]


def test_buffers_of_an_aborted_checkpoint_are_released():
    env, plane, data = captured()
    data.input_overtaken(1)
    env.run(until=7 * MS)
    data.aborted(1)

    assert ("release_capture", TASK) in plane.verbs
    assert not data.storing


# A chain whose last operator is finalized first writes its state when the in-flight data of its task manager is written.


JOB = """\
job:
  a: {source: {rate: 1200/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2, service: 2 ms, state: {size: 4 MB}}
checkpoint: {interval: 4 s, barriers: unaligned}
cluster: {placement: spread}
storage: {bandwidth: 20 MB/s, in-flight-bandwidth: 2 MB/s}
run: {duration: 30 s}
"""
AFTER = "job.b.snapshot.after-in-flight=true"


def ran(*changes, engine="compiled"):
    return run_scenario(JOB, overrides=changes, engine=engine)


def medians(result):
    """Asynchronous phases [ms] by vertex, of checkpoints that meet full queues."""
    return result.subtasks[result.subtasks["id"] > 2].groupby("vertex")["async_duration"].median()


def test_its_asynchronous_phase_is_the_sum_of_both():
    """2 MB of state take 100 ms; in-flight data takes longer, and is all that the source waits for."""
    together, after = medians(ran()), medians(ran(AFTER))

    assert together["a"] == pytest.approx(after["a"], rel=0.1)
    assert together["b"] == pytest.approx(together["a"], rel=0.2)
    assert pytest.approx(after["b"] - together["b"], abs=15) == 100


# How one task ends, moment by moment: when it stops with a savepoint, and what the savepoint's abort does to it.


SOURCE, READER = 0, 1
LAYOUT = SimpleNamespace(task_gates=[(), (0,)], writer=[0], task_partitions=[(0,), ()], partitions=[(0, 0, (0,))])
"""A source, and a task that reads it."""


class Parts(list):
    """No part; the operators finish at once."""

    def end_input(self, done):
        done()


class EndingTask:
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
    task = EndingTask(SOURCE)
    task.ending.takes_part_in_checkpoint(4, StopMode.FINISH_AFTER_SAVEPOINT, lambda: None)
    assert (task.thread.mails_only, task.ending.machine.state) == (True, EndState.RUNNING)
    task.ending.snapshot_begun(4, StopMode.FINISH_AFTER_SAVEPOINT)
    task.ending.completed(3)
    assert EndState.RUNNING is task.ending.machine.state
    task.ending.completed(4)
    assert EndState.RUNNING is not task.ending.machine.state


@pytest.mark.parametrize(("aborted", "fails"), [(4, True), (3, False)])
def test_the_abort_of_the_savepoint_it_stops_with_fails_it(aborted, fails):
    task = EndingTask(READER)
    task.ending.snapshot_begun(4, StopMode.NO_DRAIN)
    task.ending.aborted(aborted)
    assert ([("fail_task", READER, "stop-with-savepoint failed")] if fails else []) == task.log

"""Checkpoints hang where Flink's do, and the run names the tasks that wait for each other.

Real Flink 2.3 ran the same four diamonds.  With both pointwise edges no checkpoint completed, and no further record was
read, even after three expired checkpoints.  With one of the two edges, or none, all completed.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim.model.schema.study import load
from sim.plane.interface import ThreadState
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import simulate
from sim.runtime.standstill import Blocked, find_alignment_deadlock
from tests.oracle import oracle
from tests.worlds.trial import run_text

WORLD = Path(__file__).parents[2] / "data" / "worlds" / "early-barrier-before-a-forced-alignment.yaml"
CIRCLE = (
    "'m3' reads no more from 'm2' until the barrier of 'm1' comes,"
    " and 'm1' cannot send it, as its output is full until 'm3' reads on"
)
BEHIND_ANOTHER = (
    "'m3' reads no more from 'm2' until the barrier of 'map' comes,"
    " and it cannot come, as the output of 'm1' is full until 'm3' reads on"
)


def read(file, *changes):
    """The job with few buffers, which 1.x has options for, and the first checkpoint as soon as in 2.x."""
    (scenario,) = load(file, changes).scenarios
    return replace(scenario, cluster=replace(scenario.cluster, profile="2.x"))


def ran(*changes, engine="compiled"):
    return simulate(read(WORLD, *changes), engine=engine)


@pytest.mark.parametrize("engine", ["compiled", oracle])
def test_an_early_barrier_before_a_forced_alignment_hangs(engine):
    """Expired ones and the one under way at the end: each is told, and nothing has moved since."""
    result = ran(engine=engine)

    assert result.checkpoints["status"].tolist() == ["FAILED", "FAILED", "IN_PROGRESS"]
    assert result.checkpoints["x_standstill"].tolist() == [CIRCLE] * 3
    assert result.series.loc[result.series["time"] > 1, "numRecordsInPerSecond"].sum() == 0


def test_buffers_that_wait_until_they_are_full_hold_nobody_up():
    """What lies in them would not bring the barrier either."""
    never = ("cluster.network.buffer-timeout=never", "job.m2.record=1000 B", "job.s0.source.records-per-subtask=60")

    assert ran(*never).checkpoints["x_standstill"].tolist() == [CIRCLE] * 3


@pytest.mark.parametrize(("first", "join"), [("hash", "rescale"), ("rescale", "hash"), ("hash", "hash")])
def test_with_one_of_the_edges_unaligned_barriers_get_through(first, join):
    """The late barrier overtakes, or the early one blocks nothing."""
    result = ran(f"job.m1.input.s0={first}", f"job.m3.input.m2={join}")

    assert result.job_status == "FINISHED"
    assert {""} == set(result.checkpoints["x_standstill"])


def test_aligned_barriers_get_through():
    """Whoever has forwarded its barrier waits for nobody before it."""
    assert ran("checkpoint.barriers=aligned").job_status == "FINISHED"


def test_a_barrier_can_be_held_up_further_back():
    """The vertex the barrier is missing from is idle itself: the one before it cannot write."""
    behind = (
        "job.map={input: {m1: forward}, record: 100 B}",
        "job.m3.input={map: {ship: hash, service: 500 us}, m2: rescale}",
    )
    result = ran(*behind, "job.s0.source.records-per-subtask=200")

    assert result.checkpoints["x_standstill"].tolist() == [BEHIND_ANOTHER] * 3


def test_outputs_that_wait_for_a_checkpoint_hold_nobody_up():
    """Whoever emits on commit waits for the late barrier like everybody else."""
    (scenario,) = load(WORLD.with_name("late-output-in-a-circle.yaml")).scenarios
    waiting = simulate(scenario).checkpoints["x_standstill"]

    assert {CIRCLE.replace("m3", "k0")} == set(waiting)


def test_what_is_being_stored_is_only_slow():
    """Captured buffers are on their way when the checkpoint expires: nobody knows what comes of it."""
    slow, slower = (ran(f"storage.bandwidth={rate}", "storage.inline-threshold=0 B") for rate in ("30 kB/s", "1 kB/s"))

    assert [result.checkpoints["x_standstill"][0] for result in (slow, slower)] == [CIRCLE, ""]


def test_what_is_only_slow_does_not_hang():
    """Barriers wait behind data for longer than the time-out, but the data moves."""
    result = ran(
        "checkpoint.barriers=aligned",
        "checkpoint.timeout=100 ms",
        "job.m3.input.m1.service=20 ms",
        "job.s0.source.records-per-subtask=200",
    )

    assert "CHECKPOINT_EXPIRED" in set(result.checkpoints["failure_message"])
    assert {""} == set(result.checkpoints["x_standstill"])


def test_a_task_that_aligns_can_have_a_full_output():
    """m1 has barriers too, but it is its output that holds it up: the circle is that of its reader."""
    scenario = read(WORLD.with_name("aligning-with-a-full-output.yaml"))
    sentence = (
        "'k0' reads no more from 'm2' until the barrier of 'm1' comes,"
        " and 'm1' cannot send it, as its output is full until 'k0' reads on"
    )

    assert ["", sentence] == simulate(scenario).checkpoints["x_standstill"].tolist()


def test_no_finding_where_a_job_hangs_as_flink_does():
    """Otherwise a bounded job that does not end is one."""
    assert run_text(WORLD.read_text()).kind == ""


# ------------------------------------------------------------------------------------------- one instant of a plane


class Still:
    """The tables of a plane at one instant, to be changed."""

    def __init__(self, plane):
        self._tables = plane.channels(), plane.partitions(), plane.tasks()
        self.position = plane.position

    def channels(self, *_):
        return self._tables[0]

    def partitions(self):
        return self._tables[1]

    def tasks(self, *_):
        return self._tables[2]


@pytest.fixture
def hung():
    """(layout, plane) of a job that hangs; m3 reads one more source, whose barrier is there."""
    scenario = read(WORLD, "job.late={source: {record: 100 B, rate: 1/s}}", "job.m3.input.late=hash")
    instance = JobInstance(scenario, "compiled")
    instance.start()
    instance.env.run(until=instance.env.timeout(1_000_000_000))
    names = [name for name, _ in instance.names]
    ends = {
        (names[w], names[r]): c
        for c, (w, r) in enumerate(zip(instance.layout.writer, instance.layout.reader, strict=True))
    }
    return instance.layout, Still(instance.plane), names.index, ends


def test_a_circle_names_its_tasks(hung):
    layout, plane, task, _ = hung

    assert [Blocked(task("m3"), task("m2"), task("m1"), task("m1"))] == find_alignment_deadlock(plane, layout)


def test_one_missing_barrier_is_enough(hung):
    """However many others may still come."""
    layout, plane, _, channel = hung
    plane.channels()["blocked"][channel["late", "m3"]] = 0

    assert len(find_alignment_deadlock(plane, layout)) == 1


@pytest.mark.parametrize(("column", "change"), [("received", 1), ("arrived", -1)])
def test_no_circle_while_something_comes(hung, column, change):
    """It may be what the barrier is behind."""
    layout, plane, _, channel = hung
    plane.channels()[column][channel["m1", "m3"]] += change

    assert find_alignment_deadlock(plane, layout) == []


@pytest.mark.parametrize("vertex", ["m1", "m2", "m3"])
def test_no_circle_while_one_of_its_tasks_works(hung, vertex):
    layout, plane, task, _ = hung
    plane.tasks()["state"][task(vertex)] = ThreadState.BUSY

    assert find_alignment_deadlock(plane, layout) == []


@pytest.mark.parametrize("vertex", ["m1", "m2", "m3"])
def test_no_circle_while_storage_has_buffers_of_one_of_its_tasks(hung, vertex):
    """They come back when they are written, and somebody goes on."""
    layout, plane, task, _ = hung

    assert find_alignment_deadlock(plane, layout, storing=frozenset({task(vertex)})) == []


def test_late_outputs_are_something_to_do_unless_they_wait_for_a_checkpoint(hung):
    """Answers to requests come by themselves; what is emitted on commit comes with a checkpoint, and none completes."""
    layout, plane, task, _ = hung
    plane.position = lambda _: SimpleNamespace(late=3)

    assert find_alignment_deadlock(plane, layout) == []
    assert len(find_alignment_deadlock(plane, layout, late_tasks=frozenset({task("m3")}))) == 1


def test_a_local_reader_keeps_buffers_of_its_writer(hung):
    """All is sent, but m2 has not read what it was given: m1 gets no buffer back."""
    layout, plane, task, channel = hung
    c = channel["m1", "m2"]
    plane.channels()["sent"][c] = plane.channels()["arrived"][c] = plane.channels()["written"][c]
    local = replace(layout, local=tuple(number == c for number in range(len(layout.local))))

    assert find_alignment_deadlock(plane, layout) == []
    assert [Blocked(task("m3"), task("m2"), task("m1"), task("m1"))] == find_alignment_deadlock(plane, local)


def test_a_reader_that_cannot_write_keeps_what_it_was_given(hung):
    """Nothing more comes to m2, which is not idle: it holds buffers of m1 until it can go on."""
    layout, plane, task, channel = hung
    c = channel["m1", "m2"]
    plane.channels()["sent"][c] = plane.channels()["arrived"][c] = plane.channels()["written"][c]
    plane.channels()["received"][c] = 0
    local = replace(layout, local=tuple(number == c for number in range(len(layout.local))))

    for state, circles in ((ThreadState.HARD, 1), (ThreadState.IDLE, 0)):
        plane.tasks()["state"][task("m2")] = state
        assert circles == len(find_alignment_deadlock(plane, local))


def test_an_idle_reader_holds_nobody_up(hung):
    """It waits for the rest of a record; whoever writes it waits for something else."""
    layout, plane, task, channel = hung
    c = channel["m1", "m3"]
    plane.channels()["consumed"][c] -= 1
    for p in layout.task_partitions[task("m1")]:
        plane.partitions()["available"][p] = c not in layout.partitions[p][2]
    local = replace(layout, local=tuple(number == c for number in range(len(layout.local))))

    assert find_alignment_deadlock(plane, local) == []

"""Checkpoints hang where Flink's do, and the run names the tasks that wait for each other.

Real Flink 2.3 ran the same four diamonds.  With both pointwise edges no checkpoint completed, and no further record was
read, even after three expired checkpoints.  With one of the two edges, or none, all completed.
"""

from dataclasses import replace

import pytest

from sim.model.schema.study import load
from sim.runtime.job_instance import JobInstance
from sim.runtime.simulate import simulate
from sim.runtime.standstill import find_alignment_deadlock
from tests.places import DATA

WORLD = DATA / "worlds/early-barrier-before-a-forced-alignment.yaml"
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


def test_a_barrier_can_be_held_up_further_back():
    """The vertex the barrier is missing from is idle itself: the one before it cannot write."""
    behind = (
        "job.map={input: {m1: forward}, record: 100 B}",
        "job.m3.input={map: {ship: hash, service: 500 us}, m2: rescale}",
    )
    result = ran(*behind, "job.s0.source.records-per-subtask=200")

    assert result.checkpoints["x_standstill"].tolist() == [BEHIND_ANOTHER] * 3


def test_what_is_being_stored_is_only_slow():
    """Captured buffers are on their way when the checkpoint expires: nobody knows what comes of it."""
    slow, slower = (ran(f"storage.bandwidth={rate}", "storage.inline-threshold=0 B") for rate in ("30 kB/s", "1 kB/s"))

    assert [result.checkpoints["x_standstill"][0] for result in (slow, slower)] == [CIRCLE, ""]


def test_a_task_that_aligns_can_have_a_full_output():
    """m1 has barriers too, but it is its output that holds it up: the circle is that of its reader."""
    scenario = read(WORLD.with_name("aligning-with-a-full-output.yaml"))
    sentence = (
        "'k0' reads no more from 'm2' until the barrier of 'm1' comes,"
        " and 'm1' cannot send it, as its output is full until 'k0' reads on"
    )

    assert ["", sentence] == simulate(scenario).checkpoints["x_standstill"].tolist()


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


def test_one_missing_barrier_is_enough(hung):
    """However many others may still come."""
    layout, plane, _, channel = hung
    plane.channels()["blocked"][channel["late", "m3"]] = 0

    assert len(find_alignment_deadlock(plane, layout)) == 1


@pytest.mark.parametrize("vertex", ["m1", "m2", "m3"])
def test_no_circle_while_storage_has_buffers_of_one_of_its_tasks(hung, vertex):
    """They come back when they are written, and somebody goes on."""
    layout, plane, task, _ = hung

    assert find_alignment_deadlock(plane, layout, storing=frozenset({task(vertex)})) == []

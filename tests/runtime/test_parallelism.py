"""A job on fewer task managers: as many subtasks as slots that are left, and sources that keep theirs."""

from dataclasses import replace

from sim.runtime.host_loop import without_task_managers
from tests.laws.small_jobs import chain, scenario


def cluster(placement, job=None, slots=2):
    base = scenario(chain(4) if job is None else job)
    return replace(base, cluster=replace(base.cluster, placement=placement, slots=slots))


def parallelism(own):
    return None if own is None else [vertex.parallelism for vertex in own.job.vertices]


def test_task_managers_have_no_fewer_slots_than_before():
    assert [
        without_task_managers(cluster("spread", slots=slots), [0, 1, 2, 2] * 3, {2}).cluster.slots for slots in (8, 1)
    ] == [8, 2]

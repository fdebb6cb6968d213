"""A job on fewer task managers: as many subtasks as slots that are left, and sources that keep theirs."""

from dataclasses import replace

import pytest

from sim.runtime.host_loop import with_parallelism, without_task_managers
from tests.laws.small_jobs import chain, scenario

HALVES = [0, 0, 1, 1]  # the task managers of the subtasks of a vertex


def cluster(placement, job=None, slots=2):
    base = scenario(chain(4) if job is None else job)
    return replace(base, cluster=replace(base.cluster, placement=placement, slots=slots))


def parallelism(own):
    return None if own is None else [vertex.parallelism for vertex in own.job.vertices]


@pytest.mark.parametrize("placement", ["spread", "isolated"])
def test_sources_keep_their_parts_of_the_log(placement):
    """One of two task managers is left, which has to hold four sources."""
    left = without_task_managers(cluster(placement), HALVES * 3, {1})

    assert parallelism(left) == [4, 2, 2]
    assert left.cluster.slots == 4
    assert parallelism(without_task_managers(cluster(placement), HALVES * 3, set())) == [4, 4, 4]


def test_a_slot_has_a_subtask_of_every_vertex():
    """A vertex with one subtask does not say how many slots are left; where slots are not shared each vertex has its own."""
    narrow = with_parallelism(chain(4), {"source": 1})

    assert parallelism(without_task_managers(cluster("spread", narrow), [0, *HALVES, *HALVES], {1})) == [1, 2, 2]
    assert parallelism(without_task_managers(cluster("isolated"), [*HALVES, *HALVES, 0, 1, 1, 1], {1})) == [4, 2, 1]
    assert parallelism(without_task_managers(cluster("spread"), [*HALVES, *HALVES, 0, 1, 1, 1], {1})) == [4, 2, 2]
    assert without_task_managers(cluster("isolated"), [*HALVES, *HALVES, 1, 1, 1, 1], {1}) is None, (
        "a vertex without a slot"
    )


def test_task_managers_have_no_fewer_slots_than_before():
    assert [
        without_task_managers(cluster("spread", slots=slots), [0, 1, 2, 2] * 3, {2}).cluster.slots for slots in (8, 1)
    ] == [8, 2]


def test_an_edge_between_unequal_vertices_is_rebalanced():
    vertices = chain(2).vertices
    forward = replace(vertices[1], inputs=(replace(vertices[1].inputs[0], ship="forward"),))
    job = replace(chain(2), vertices=(vertices[0], forward, vertices[2]))

    assert [vertex.inputs[0].ship for vertex in with_parallelism(job, {"source": 2}).vertices[1:]] == [
        "forward",
        "hash",
    ]
    assert [vertex.inputs[0].ship for vertex in with_parallelism(job, {"stage0": 3}).vertices[1:]] == [
        "rebalance",
        "hash",
    ]

"""Which job graphs may go on from a checkpoint with finished vertices, after Flink's VertexFinishedStateCheckerTest."""

import pytest

from sim.model.job import Input, Job, Source, Vertex
from sim.protocol.finished_state import FinishedState, finished_state, illegal_restores

RUNNING, PARTIALLY, FULLY = FinishedState.RUNNING, FinishedState.PARTIALLY, FinishedState.FULLY


def two(ship):
    return Job((Vertex("a", 2, source=Source()), Vertex("b", 2, inputs=(Input("a", ship),))))


@pytest.mark.parametrize("ship", ["hash", "forward", "rescale", "rebalance"])
@pytest.mark.parametrize("before", FinishedState)
@pytest.mark.parametrize("state", FinishedState)
def test_who_may_stand_before_whom(state, before, ship):
    """Before a fully finished vertex all are; before a partially finished one too, unless an edge is pointwise."""
    legal = {
        FULLY: before is FULLY,
        PARTIALLY: before is FULLY or (before is PARTIALLY and ship in ("forward", "rescale")),
        RUNNING: True,
    }[state]

    assert legal == (illegal_restores(two(ship), {"a": before, "b": state}) == [])


def test_a_new_vertex_may_not_precede_a_finished_one():
    """But it may follow one."""
    assert ["b is fully finished, but a before it is new and running"] == illegal_restores(two("hash"), {"b": FULLY})
    assert [] == illegal_restores(two("hash"), {"a": FULLY})


def test_the_state_of_a_vertex_is_that_of_its_subtasks():
    assert [RUNNING, PARTIALLY, FULLY] == [finished_state(some, 2) for some in ([], [1], [0, 1])]

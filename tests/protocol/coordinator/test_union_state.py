"""Union list state: whoever keeps it finishes in all tasks or in none."""

import pytest

from sim.protocol.checkpoint_requests import TaskGraph, UnionState, VertexLink
from sim.protocol.options import FailureReason

GRAPH = TaskGraph((range(2), range(2, 4)), (VertexLink(0, 1),))
SOURCE = frozenset({0})
REFUSED = FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING


@pytest.mark.parametrize(
    ("finished", "refusal"), [((), None), ((0,), REFUSED), ((1,), REFUSED), ((0, 1), None), ((2,), None)]
)
def test_a_vertex_finishes_in_all_of_its_tasks_or_in_none(finished, refusal):
    """A part of the union would be missing; a vertex without such state may do as it likes."""
    state = UnionState(GRAPH, SOURCE).begun(7, frozenset())
    for task in finished:
        state = state.finished_in(task, 7)

    assert refusal is state.refusal(7)


def test_those_who_finished_before_count():
    """They take no part in the checkpoint."""
    state = UnionState(GRAPH, SOURCE).begun(7, frozenset({0}))

    assert REFUSED is state.refusal(7)
    assert None is state.finished_in(1, 7).refusal(7)


def test_checkpoints_are_told_apart():
    state = UnionState(GRAPH, SOURCE).begun(7, frozenset()).begun(8, frozenset()).finished_in(0, 8)

    assert (state.refusal(7), state.refusal(8)) == (None, REFUSED)


def test_without_such_state_nothing_is_refused():
    state = UnionState(GRAPH, frozenset()).begun(7, frozenset()).finished_in(0, 7)

    assert None is state.refusal(7)
    assert state.finished == {}

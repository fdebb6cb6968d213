"""Who takes part in a checkpoint once tasks have finished; whoever keeps union list state finishes in all tasks or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.checkpoint_requests import TaskGraph, UnionState, VertexLink, plan
from sim.protocol.messages import Plan
from sim.protocol.options import FailureReason

# Who takes part in a checkpoint once tasks have finished.


# a (2) -> b (2) pointwise -> c (1) all-to-all
CHAIN = TaskGraph((range(2), range(2, 4), range(4, 5)), (VertexLink(0, 1, ((0,), (1,))), VertexLink(1, 2)))
# a (1) and b (1) -> c (1)
JOIN = TaskGraph((range(1), range(1, 2), range(2, 3)), (VertexLink(0, 2), VertexLink(1, 2)))


def sets(made):
    assert made is not None
    return set(made.trigger), set(made.wait_for), set(made.finished)


def test_everybody_runs():
    """Sources are triggered, all acknowledge."""
    assert ({0, 1}, {0, 1, 2, 3, 4}, set()) == sets(plan(CHAIN, frozenset()))


def test_behind_a_finished_pointwise_writer():
    """Its reader is triggered, the other one hears from its own writer."""
    assert ({1, 2}, {1, 2, 3, 4}, {0}) == sets(plan(CHAIN, frozenset({0})))


def test_behind_one_running_writer_of_many():
    """All-to-all: one is enough to reach everybody."""
    assert ({3}, {3, 4}, {0, 1, 2}) == sets(plan(CHAIN, frozenset({0, 1, 2})))


def test_the_last_task_is_triggered_itself():
    assert ({4}, {4}, {0, 1, 2, 3}) == sets(plan(CHAIN, frozenset({0, 1, 2, 3})))


def test_a_join_is_reached_by_the_input_that_runs():
    assert ({1}, {1, 2}, {0}) == sets(plan(JOIN, frozenset({0})))


def test_no_plan_without_a_required_task():
    """A task that is being restarted is required; one that has finished is not."""
    assert plan(CHAIN, frozenset(), frozenset({3})) is None
    assert plan(CHAIN, frozenset({0}), frozenset({0})) is not None


def test_no_plan_when_all_is_over():
    assert plan(CHAIN, CHAIN.tasks) is None


def test_before_flip_147():
    """One finished task, and no checkpoint is possible any more."""
    assert plan(CHAIN, frozenset(), after_finish=False) == Plan(CHAIN.sources, CHAIN.tasks)
    assert plan(CHAIN, frozenset({0}), after_finish=False) is None


def test_vertices_that_are_over_in_part():
    assert frozenset({0}) == CHAIN.partial(frozenset({0, 2, 3}))
    assert frozenset() == CHAIN.partial(frozenset({0, 1, 2, 3, 4}))


@st.composite
def graphs(draw):
    """Up to four vertices of up to three tasks; each reads some earlier ones, pointwise by Flink's map or all-to-all."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    vertices, first = [], 0
    for size in sizes:
        vertices.append(range(first, first + size))
        first += size
    links = []
    for down in range(1, len(sizes)):
        for up in draw(st.lists(st.integers(0, down - 1), unique=True, max_size=2)):
            p, q = sizes[up], sizes[down]
            pointwise = tuple(
                tuple(vertices[up][i] for i in range(p) if (i * q // p == j if p >= q else j * p // q == i))
                for j in range(q)
            )
            links.append(VertexLink(up, down, pointwise if draw(st.booleans()) else None))
    finished = frozenset(draw(st.sets(st.integers(0, first - 1))))
    return TaskGraph(tuple(vertices), tuple(links)), finished


@given(graphs())
def test_the_shortcuts_agree_with_the_definition(drawn):
    """Triggered are the running tasks without running predecessors: nobody twice, nobody not at all."""
    graph, finished = drawn
    running = graph.tasks - finished
    before = {task: set() for task in graph.tasks}
    for link in graph.links:
        for i, task in enumerate(graph.vertices[link.downstream]):
            before[task] |= set(graph.vertices[link.upstream] if link.predecessors is None else link.predecessors[i])
    made = plan(graph, finished)

    if not running:
        assert made is None
    else:
        assert ({t for t in running if not before[t] & running}, set(running), set(finished)) == sets(made)


# Union list state: whoever keeps it finishes in all tasks or in none.


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

"""How a job ends and what is asked of it meanwhile, as written and as read."""

import pytest

from sim.model.job import UnionState
from sim.model.scenario import Action
from sim.model.schema.study import loads
from tests.model.schema.broken import but, ending

S = 10**9


def read(text):
    return list(loads(text, name="s").scenarios)


def test_actions_stand_in_the_order_of_time():
    text = ending(
        "actions: [{stop: drain, format: native, at: 27 s}, {savepoint: canonical, at: 22 s}, {savepoint: native, at: 9 s}]\n"
    )

    assert (Action(9 * S, "native"), Action(22 * S, "canonical"), Action(27 * S, "native", "drain")) == read(text)[
        0
    ].actions


def test_no_actions_unless_asked():
    assert read(ending(""))[0].actions == ()


def test_ways_to_stop_are_an_axis():
    text = ending("actions: [{stop: [drain, no-drain, savepoint-then-finish], at: 20 s}]\n")

    assert [scenario.actions[0].stop for scenario in read(text)] == ["drain", "no-drain", "savepoint-then-finish"]


def test_ways_to_finish_are_an_axis():
    assert [s.checkpoint.finish for s in read(but(("5 s}", "5 s, finish: [flink, naive, off]}")))] == [
        "flink",
        "naive",
        "off",
    ]
    assert read(ending(""))[0].checkpoint.finish == "flink"


@pytest.mark.parametrize("suffix", ["", ".enabled"])
@pytest.mark.parametrize(("value", "finish"), [("true", "flink"), ("false", "off")])
def test_flinks_own_switch(suffix, value, finish):
    """On since 1.15."""
    key = f"execution.checkpointing.checkpoints-after-tasks-finish{suffix}"

    assert finish == read(ending(f"flink: {{{key}: {value}}}\n"))[0].checkpoint.finish


def test_union_state_is_said_of_a_vertex():
    """Restored elements are cleared, unless a file says otherwise."""

    def read_as(text):
        first, second = read(but(("service: 10 us", f"union-state: {text}")))[0].job.vertices
        assert first.union_state is None
        return second.union_state

    assert UnionState(clears=True) == read_as("true") == read_as("{clears: true}")
    assert UnionState(clears=False) == read_as("{clears: false}")
    assert read_as("false") is None


def test_what_closing_costs():
    assert read(ending("overheads: {close: 35 ms}\n"))[0].overheads.close_ns == 35 * 10**6


def test_what_a_sink_holds_back_until_it_finishes():
    assert read(but(("service: 10 us", "commit: {holds-back: 2k}")))[0].job.vertices[1].commit.holds_back == 2000

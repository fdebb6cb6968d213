"""How a job ends and what is asked of it meanwhile, as written and as read."""

import pytest

from sim.model.scenario import Action
from sim.model.schema.study import loads
from tests.model.schema.broken import ending

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


def test_ways_to_stop_are_an_axis():
    text = ending("actions: [{stop: [drain, no-drain, savepoint-then-finish], at: 20 s}]\n")

    assert [scenario.actions[0].stop for scenario in read(text)] == ["drain", "no-drain", "savepoint-then-finish"]


@pytest.mark.parametrize("suffix", ["", ".enabled"])
@pytest.mark.parametrize(("value", "finish"), [("true", "flink"), ("false", "off")])
def test_flinks_own_switch(suffix, value, finish):
    """On since 1.15."""
    key = f"execution.checkpointing.checkpoints-after-tasks-finish{suffix}"

    assert finish == read(ending(f"flink: {{{key}: {value}}}\n"))[0].checkpoint.finish

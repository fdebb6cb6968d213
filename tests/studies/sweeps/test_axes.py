"""Axes on the command line."""

import pytest

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.studies.sweeps.design import axis_override, naming_axes

TEXT = """\
version: 1
job:
  a: {source: {rate: 100/s, record: 100 B}}
  b: {input: {a: hash}, service: 1 ms}
checkpoint: {interval: 1 s}
run: {duration: 1 s}
"""


@pytest.mark.parametrize(
    ("values", "axis"),
    [
        (("10 s", "30 s"), "checkpoint.interval=10 s,30 s"),
        (("aligned", "aligned-timeout 1 s"), "checkpoint.barriers=aligned, {aligned-timeout: 1 s}"),
        (("exponential 1 ms", "2 ms"), "job.b.service={exponential: 1 ms},2 ms"),
    ],
)
def test_commas_divide_values(values, axis):
    """But not those inside of brackets."""
    study = loads(TEXT, overrides=[axis_override(axis)])

    assert values == study.axes[0].values


@pytest.mark.parametrize(
    ("axis", "problem"),
    [
        ("checkpoint.interval", "--axis checkpoint.interval: expected key.path=v1,v2"),
        ("", "--axis : expected key.path=v1,v2"),
        ("checkpoint.interval=", "--axis checkpoint.interval=:1:1: checkpoint.interval: has no value"),
        (
            "checkpoint.interval=1 s,soon",
            "--axis checkpoint.interval=1 s,soon:1:6: checkpoint.interval[1]: 'soon' is not a duration",
        ),
    ],
)
def test_mistakes_cite_the_option_that_was_given(axis, problem):
    """And not --set, as which a scenario reads it."""
    with pytest.raises(ScenarioError) as refused, naming_axes([axis]):
        loads(TEXT, overrides=[axis_override(axis)])

    assert str(refused.value).startswith(problem)

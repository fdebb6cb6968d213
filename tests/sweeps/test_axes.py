"""Axes on the command line."""

import pytest

from sim.scenario import loads
from sim.sweeps.axes import override

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
    study = loads(TEXT, overrides=[override(axis)])

    assert values == study.axes[0].values


@pytest.mark.parametrize("axis", ["checkpoint.interval=", "checkpoint.interval", ""])
def test_what_is_no_axis_is_left_for_the_loader_to_refuse(axis):
    assert axis == override(axis)

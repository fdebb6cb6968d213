"""Axes on the command line."""

import pytest

from sim.sweep.axes import override


@pytest.mark.parametrize(
    ("expected", "axis"),
    [
        ("checkpoint.interval=[10 s, 30 s]", "checkpoint.interval=10 s,30 s"),
        ("checkpoint.barriers=[aligned, {aligned-timeout: 1 s}]", "checkpoint.barriers=aligned, {aligned-timeout: 1 s}"),
        ("a.b=[{x: 1, y: [2, 3]}, 4]", "a.b={x: 1, y: [2, 3]},4"),
        ("a.b=['1,2', \"3,4\"]", "a.b='1,2',\"3,4\""),
        ("a.b=[7]", "a.b=7"),
        ("a.b=", "a.b="),
        ("a.b", "a.b"),
    ],
)
def test_commas_divide_values(expected, axis):
    """Not those inside brackets or quotes; what is no axis is left for the loader to refuse."""
    assert expected == override(axis)

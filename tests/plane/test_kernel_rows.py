"""The layout of the kernel's rows in memory: what a step touches together stands on one line of cache."""

from sim.plane.rows import Channel, record_dtype

LINE = 64


def test_a_channel_has_five_whole_lines():
    assert record_dtype(Channel).itemsize == 5 * LINE

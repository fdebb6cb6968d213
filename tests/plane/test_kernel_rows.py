"""The layout of the kernel's rows in memory: what a step touches together stands on one line of cache."""

import pytest

from sim.plane.rows import Channel, Element, Gate, Partition, Task, record_dtype

LINE = 64


def test_a_channel_has_five_whole_lines():
    assert record_dtype(Channel).itemsize == 5 * LINE


@pytest.mark.parametrize("row", [Channel, Element, Gate, Partition, Task])
def test_rows_are_whole_words(row):
    """The compiled text counts in words of eight bytes from row to row."""
    assert record_dtype(row).itemsize % 8 == 0

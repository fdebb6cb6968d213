"""The layout of the kernel's rows in memory: what a step touches together stands on one line of cache."""

import numpy as np
import pytest

from sim.plane.rows import Channel, Element, Gate, Half, Partition, Task, record_dtype

LINE = 64


def line_of(field):
    return record_dtype(Channel).fields[field][1] // LINE


def test_a_channel_has_five_whole_lines():
    assert record_dtype(Channel).itemsize == 5 * LINE


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (0, ["written", "full_at", "records_out", "sent", "head", "tail", "queued", "buffers", "credit", "count"]),
        (1, ["partition", "gate", "reader", "required", "ex_free", "fl_free", "flush", "blocked", "listed", "local"]),
        (2, ["arrived", "taken", "consumed", "record_end", "first", "last", "received", "ready", "current"]),
    ],
)
def test_what_a_side_of_a_channel_touches_stands_on_one_line(line, fields):
    assert [line] * len(fields) == [line_of(field) for field in fields]


@pytest.mark.parametrize("row", [Channel, Element, Gate, Partition, Task])
def test_rows_are_whole_words(row):
    """The compiled text counts in words of eight bytes from row to row."""
    assert record_dtype(row).itemsize % 8 == 0


def test_places_and_switches_are_narrow():
    fields = record_dtype(Channel).fields
    assert [np.int64, np.int32, np.int8] == [fields[name][0].type for name in ("written", "head", "listed")]
    assert np.int32 in Half.__metadata__

"""A process that stood still, and what looks like it."""

import pytest

from sim.jobs.history.causes import process_pauses
from tests.jobs.history.conftest import acknowledged, history, point

PLACES = {("src", 0): "x", ("sink", 0): "x", ("sink", 1): "y"}
USUAL = [
    point(n, 200, [acknowledged(0, 60, 20, async_ms=30)], [acknowledged(i, 200, 50, 0, 0, 140) for i in (0, 1)])
    for n in range(2, 8)
]


def still(src, *sink, places=PLACES):
    slow = point(12, 2000, [src], list(sink))
    return [
        (found.manager, found.begin_ns // 10**6, found.end_ns // 10**6, found.moved)
        for found in process_pauses(history(*USUAL, slow, task_managers=places), slow)
    ]


OF_ANOTHER = acknowledged(1, 200, 50, 0, 0, 140)


def test_a_file_and_an_acknowledgement_end_together():
    """The asynchronous parts of both subtasks of x, and the acknowledgement of the source, take until 1.5 s."""
    src = acknowledged(0, 1500, 20, async_ms=30)

    assert still(src, acknowledged(0, 1600, 50, 0, 0, 1440), OF_ANOTHER) == [("x", 50, 1490, True)]


@pytest.mark.parametrize(
    ("src", "sink"),
    [
        (acknowledged(0, 60, 20, async_ms=30), acknowledged(0, 1700, 50, 0, 0, 1640)),  # one slow file
        (acknowledged(0, 60, 20, async_ms=30), acknowledged(0, 1700, 1550, 0, 0, 140)),  # data before the barrier
        # two slow files, but one was through earlier
        (acknowledged(0, 800, 20, async_ms=770), acknowledged(0, 1700, 50, 0, 0, 1640)),
        (acknowledged(0, 300, 20, async_ms=270), acknowledged(0, 450, 50, 0, 0, 390)),  # too short
    ],
)
def test_what_is_no_pause(src, sink):
    assert [found for found in still(src, sink, OF_ANOTHER) if found[1] < 800] == []


def test_nothing_is_told_without_places():
    assert (
        still(acknowledged(0, 1500, 20, async_ms=30), acknowledged(0, 1600, 50, 0, 0, 1440), OF_ANOTHER, places={})
        == []
    )

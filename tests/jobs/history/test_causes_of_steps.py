"""Why a file took longer than its bytes explain: what ended with it."""

import pytest

from sim.jobs.history.explanation import account
from tests.jobs.history.conftest import acknowledged, history, point

PLACES = {("src", 0): "x", ("sink", 0): "x", ("sink", 1): "y"}
USUAL = [
    point(number, 200, [acknowledged(0, 60, 20, async_ms=30)], [acknowledged(i, 200, 50, 0, 0, 140) for i in (0, 1)])
    for number in range(2, 12)
]


def cause(src_ends_ms, other_ends_ms, places=PLACES):
    """sink[0] needs 1,900 ms for what it usually writes in 140; the asynchronous parts of the others end then."""
    src = [acknowledged(0, src_ends_ms, 20, async_ms=src_ends_ms - 20)]
    sink = [acknowledged(0, 2000, 50, 0, 0, 1940), acknowledged(1, other_ends_ms, 50, 0, 0, other_ends_ms - 50)]
    slow = point(12, 2000, src, sink)
    found = history(*USUAL, slow, task_managers=places)
    return account(found, slow).longest.cause


@pytest.mark.parametrize(
    ("src_ends_ms", "other_ends_ms", "text"),
    [
        (
            1980,
            1985,
            "those of all other subtasks on all task managers end with it: storage, the network or the whole machine kept them",
        ),
        (
            60,
            200,
            "sink[1] wrote 100 kB in 150 ms from task manager y: not all of the storage is slow, but the disk or network of x",
        ),
        (60, 900, "the disk, the network, a pause or a shared file may"),
    ],
)
def test_what_ended_with_it(src_ends_ms, other_ends_ms, text):
    assert f"bytes do not explain it; {text}" in cause(src_ends_ms, other_ends_ms)


def test_those_of_its_task_manager():
    """Two others run beside it, and one elsewhere."""
    places = {("src", 0): "x", ("sink", 0): "x", ("sink", 1): "x"}
    assert "all other subtasks of the job end with it" in cause(1980, 1985, places)
    assert "the other subtasks of its task manager were through 1.8 s earlier: no pause of the process does" in cause(
        60, 200, places
    )

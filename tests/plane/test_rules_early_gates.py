"""Rule P9: gates that open before the recovered input is read."""

import numpy as np
import pytest

from sim.plane.interface import Marker, NoticeKind, Position, Trait
from tests.plane.lab import channel, idle_floating, pipe, run, task

NONE = np.zeros(0, np.int64)


def column(entry):
    """The entries of a task with one channel."""
    return np.array([entry], np.int64)


def start(plane, *, captured, written, records):
    """Both tasks of a pipe stand there; the reader has so many bytes to read again."""
    writer = Position(records, NONE, NONE, NONE, column(written), column(records), column(0))
    plane.start({0: writer, 1: Position(0, column(0), column(0), column(captured), NONE, NONE, NONE)})
    for t in (0, 1):
        plane.release(t)


@pytest.mark.parametrize("local", [False, True])
def test_P9_a_capture_holds_what_is_left(build, local):
    """A marker overtakes it: 200 bytes wait and one record is in service; no buffer is pinned by recovered input."""
    plane = build(pipe(total=3, local=local, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1, Trait.PRIORITY))
    plane.capture(1, 1)
    run(plane, 6)

    assert plane.captured(1) == 200

    run(plane, 100)

    assert task(plane, 1, "served") == 3
    assert (8, 0 if local else 2) == (idle_floating(plane), channel(plane, 0, "credit"))


@pytest.mark.parametrize("local", [False, True])
def test_P9_an_ordinary_marker_waits_behind_it(build, local):
    plane = build(pipe(total=3, local=local, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1, Trait.BLOCKING))

    assert [notice.time for notice in run(plane, 100) if notice.kind == NoticeKind.ARRIVED] == [30]


def test_P9_a_marker_that_becomes_urgent_leaves_recovered_input_ready(build):
    """It was alone in the receive queue: the channel stays ready for what is left in front of it."""
    plane = build(pipe(total=3, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1))
    run(plane, 6)
    plane.prioritise(1, 1)
    plane.check()
    run(plane, 1000)

    assert task(plane, 1, "served") == 3

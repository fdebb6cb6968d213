"""The check of a kernel's rows tells of every single thing that is lost: one field of a row is changed at a time."""

import pytest

from sim.plane import build
from sim.plane.interface import Ship
from tests.plane.lab import edge, run, source, vertex, world


def full():
    """Two slow readers, one beside the writer and one elsewhere: queues, receive queues, lists and pools have something in them."""
    vertices = [source(), vertex(parallelism=2, service=(1000,))]
    plane = build(world(vertices, [edge(ship=Ship.REBALANCE, size=60)], (0, 0, 1)), "interpreted")
    run(plane, 500)
    plane.check()
    return plane


def restored():
    """Started with recovered input: bytes captured in front of the readers."""
    plane = full()
    for t in (1, 2):
        plane.capture(t, 1)
    positions = {t: plane.position(t) for t in range(3)}
    plane.halt(range(3))
    plane.start(positions)
    plane.check()
    return plane


def quiet():
    """Nothing to write: all lists are empty."""
    plane = build(
        world([source(total=0), vertex(parallelism=2)], [edge(ship=Ship.REBALANCE)], (0, 0, 1)), "interpreted"
    )
    run(plane, 500)
    plane.check()
    return plane


LOCAL, REMOTE = 0, 1
LOST = [
    (full, "channels", REMOTE, "sent", 10**6, "offsets of channel 1 out of order"),
    (full, "channels", REMOTE, "arrived", 10**6, "offsets of channel 1 out of order"),
    (full, "channels", REMOTE, "taken", 10**6, "offsets of channel 1 out of order"),
    (full, "channels", REMOTE, "consumed", 10**6, "offsets of channel 1 out of order"),
    (full, "channels", REMOTE, "consumed", -(10**6), "offsets of channel 1 out of order"),
    (full, "channels", LOCAL, "queued", 1, "sender's queue of channel 0 miscounted"),
    (full, "channels", LOCAL, "buffers", 1, "sender's queue of channel 0 miscounted"),
    (quiet, "channels", LOCAL, "full_at", 1, "the open buffer of channel 0 is not the last element"),
    (full, "channels", REMOTE, "written", 1, "bytes of channel 1 lost between the queue and the wire"),
    (full, "channels", REMOTE, "received", 1, "receive queue of channel 1 miscounted"),
    (full, "channels", REMOTE, "received_buffers", -1, "receive queue of channel 1 miscounted"),
    (full, "channels", REMOTE, "arrived", -1, "bytes of channel 1 lost in the receive queue"),
    (full, "channels", LOCAL, "taken", -1, "bytes of channel 0 lost in the receive queue"),
    (restored, "channels", REMOTE, "ready", -1, "recovered input of channel 1 lost"),
    (restored, "channels", REMOTE, "blocked", -1, "channel 1 is not blocked though its partition was not requested"),
    (restored, "channels", LOCAL, "arrived", -1, "bytes of channel 0 lost in the receive queue"),
    (full, "channels", REMOTE, "credit", 1, "channel 1 has credits for"),
    (full, "channels", REMOTE, "ex_free", 1, "channel 1 has credits for"),
    (full, "channels", REMOTE, "owed_exclusive", 1, "channel 1 has 3 exclusive buffers of 2"),
    (full, "gates", 0, "records_in", 1, "records read through gate 0 miscounted: they are"),
    (full, "channels", LOCAL, "count", 1, "channel 0 holds 10 segments and counts"),
    (full, "channels", REMOTE, "owed_segments", 1, r"channel 1 holds [0-9]+ segments and counts"),
    (full, "partitions", 0, "copies", 1, "partition 0 made 1 copies that no channel counts"),
    (full, "partitions", 0, "uncounted", 1, "partition 0 made -1 copies that no channel counts"),
    (full, "channels", REMOTE, "records_in", 10**6, "channel 1 has more records read than written"),
    (full, "channels", REMOTE, "record_end", 1, "records of channel 1 lost"),
    (full, "partitions", 0, "used", 1, "segments of partition 0 miscounted"),
    (full, "partitions", 0, "full", 1, "segments of partition 0 miscounted"),
    (full, "partitions", 0, "limit", -(10**6), "partition 0 beyond its overdraft"),
    (full, "gates", 1, "idle", 1, "floating buffers of gate 1 lost"),
    (full, "channels", REMOTE, "fl_free", 1, "channel 1 has credits for"),
    (full, "channels", REMOTE, "ready", -1, "channel 1 stands in the list of gate 1 without knowing"),
    (quiet, "channels", REMOTE, "ready", 1, "ready channels of gate 1 lost"),
    (quiet, "gates", 0, "listed", 1, "gate 0 is in or out of its task's list by mistake"),
    (full, "gates", 1, "listed", -1, "gate 1 is in or out of its task's list by mistake"),
    (full, "tasks", 2, "state", -1, "task 2 sleeps beside a ready channel"),
]


@pytest.mark.parametrize(("make", "rows", "place", "field", "amount", "message"), LOST)
def test_what_is_lost_is_told(make, rows, place, field, amount, message):
    plane = make()
    row = getattr(plane._state, rows)[place]
    setattr(row, field, getattr(row, field) + amount)

    with pytest.raises(AssertionError, match=message):
        plane.check()

"""Rules C: which in-flight bytes a number captures, and which buffers stay pinned until the release."""

import pytest

from sim.plane.interface import Marker, ThreadState, Trait
from sim.plane.spec import Ship
from tests.plane.lab import channel, edge, pipe, pool, run, source, state, vertex, world


def test_C2_a_marker_that_is_there_already_ends_the_capture_at_once(build):
    """The marker stands behind two records; a third has arrived behind it."""
    plane = build(pipe(total=3))
    plane.hold(1)
    run(plane, 25)
    plane.forward(0, Marker(1))
    run(plane, 40)
    plane.capture(1, 1)

    assert plane.captured(1) == 200
    assert channel(plane, 0, "arrived", "cap_in") == (300, 200)


def test_R5_a_barrier_that_was_overtaken_is_not_noted(build):
    """Barrier 1 waits for credit behind a record; 2 overtakes both and arrives first.  ChannelStatePersister ignores the late one."""
    plane = build(pipe(total=2, exclusive=1, floating=0, service=1000, latency_ns=100))
    run(plane, 150)
    plane.forward(0, Marker(1))
    plane.forward(0, Marker(2, Trait.PRIORITY))
    run(plane, 1000)

    assert channel(plane, 0, "arrived", "consumed") == (200, 100), (
        "the record and barrier 1 have come while the reader was busy"
    )

    plane.advance(2000)
    plane.capture(1, 2)

    assert (plane.captured(1), plane.position(0).overtaken.tolist()) == (0, [100]), (
        "the record behind barrier 2 is captured by its writer alone"
    )


def test_C3_written_and_not_yet_sent(build):
    """100 at the reader; 250 in the queue, the last buffer open."""
    plane = build(pipe(size=70, total=5, exclusive=1, floating=4))
    plane.hold(1)
    run(plane, 1000)
    written, sent = channel(plane, 0, "written", "sent")
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert (written, sent, channel(plane, 0, "cap_out")) == (350, 300, 50)


def filled(build, **options):
    """A pool of two; the held reader has two buffers, an exclusive and a floating one.  Whatever can be full is full."""
    plane = build(pipe(exclusive=1, floating=1, **options))
    plane.hold(1)
    run(plane, 100)

    assert state(plane, 0) == ThreadState.SOFT

    return plane


def test_C4_pinned_receive_buffers_give_no_credit_before_the_release(build):
    """Both are read and recycled; the writer cannot send another byte until the capture is released."""
    plane = filled(build)
    plane.capture(1, 1)
    plane.release(1)
    run(plane, 200)

    assert channel(plane, 0, "sent", "taken", "consumed", "credit") == (200, 200, 200, 0)

    plane.release_capture(1)
    run(plane, 201)

    assert channel(plane, 0, "sent", "taken") == (400, 300)


@pytest.mark.parametrize("local", [False, True])
def test_C4_overtaken_buffers_keep_their_segments(build, local):
    """All data is served; the segments of what the marker overtook are free only after the release."""
    plane = filled(build, local=local)
    plane.forward(0, Marker(1, Trait.PRIORITY))
    plane.release(1)
    run(plane, 1000)
    written, consumed = channel(plane, 0, "written", "consumed")

    assert (written, 2) == (consumed, pool(plane))

    plane.release_capture(0)

    assert pool(plane) == 0


def test_C5_a_missing_marker_counts_what_has_arrived_so_far(build):
    plane = build(world([source(parallelism=2, total=2), vertex()], [edge(ship=Ship.GLOBAL)]))
    plane.hold(2)
    run(plane, 15)
    plane.capture(2, 1)
    plane.forward(0, Marker(1))
    seen = [plane.captured(2)]
    run(plane, 25)
    seen.append(plane.captured(2))

    assert seen == [200, 300]

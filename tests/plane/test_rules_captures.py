"""Rules C: which in-flight bytes a number captures, and which buffers stay pinned until the release."""

import pytest

from sim.plane.interface import Marker, ThreadState, Trait
from sim.plane.spec import Ship
from tests.plane.lab import channel, column, edge, pipe, pool, run, source, state, vertex, world


def test_C2_bytes_before_the_marker_without_the_record_in_service(build):
    """250 bytes arrived in records of 100; the first is in service at the capture: 150 bytes, a partial record included."""
    plane = build(pipe(size=100, total=3, segment_bytes=250, starting_buffer_bytes=250, service=1000))
    plane.forward(0, Marker(7, series=1))
    run(plane, 25)
    plane.forward(0, Marker(9, series=1))  # closes the buffer: 200 bytes are with the reader
    run(plane, 26)

    assert channel(plane, 0, "arrived", "consumed") == (200, 100)

    plane.capture(1, 1)

    assert plane.captured(1) == (100, 0)  # C5: what has arrived so far

    run(plane, 100)
    plane.forward(0, Marker(1, Trait.PRIORITY))  # the third record is still in the sender's queue
    run(plane, 101)

    assert (channel(plane, 0, "cap_in"), channel(plane, 0, "cap_out")) == (100, 100)
    assert plane.captured(1) == (100, 0)
    assert plane.captured(0) == (0, 100)


def test_C2_a_partial_record_counts(build):
    """150 bytes written, 100 with the reader, none in service."""
    plane = build(pipe(size=150, total=1))
    run(plane, 20)
    plane.capture(1, 1)
    plane.forward(0, Marker(1))
    run(plane, 21)

    assert channel(plane, 0, "cap_in") == 150


def test_C2_a_marker_that_is_there_already_ends_the_capture_at_once(build):
    """The marker stands behind two records; a third has arrived behind it."""
    plane = build(pipe(total=3))
    plane.hold(1)
    run(plane, 25)
    plane.forward(0, Marker(1))
    run(plane, 40)
    plane.capture(1, 1)

    assert plane.captured(1) == (200, 0)
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

    assert (plane.captured(1)[0], plane.captured(0)[1]) == (0, 100), (
        "the record behind barrier 2 is captured by its writer alone"
    )


def test_C2_bytes_consumed_after_the_capture_count_too(build):
    """What was waiting is captured even if it is served before the marker comes."""
    plane = build(pipe(total=3))
    plane.hold(1)
    run(plane, 35)
    plane.capture(1, 1)
    plane.release(1)
    run(plane, 100)
    plane.forward(0, Marker(1))
    run(plane, 110)

    assert channel(plane, 0, "consumed", "cap_in") == (300, 300)


def test_C2_local_bytes_are_captured_where_the_reader_has_polled_them(build):
    """Two records in one buffer; the reader is inside the first when the priority marker comes: the second is input in flight."""
    plane = build(pipe(size=50, total=3, service=100, local=True))
    run(plane, 35)
    plane.capture(1, 1)
    captured = plane.forward(0, Marker(1, Trait.PRIORITY))
    run(plane, 36)

    assert (captured, channel(plane, 0, "cap_in")) == (50, 50)


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


def test_C4_what_waits_behind_the_marker_is_not_pinned(build):
    """A record, the marker, a record, then the capture: only the first buffer is kept from its sender."""
    plane = build(pipe(exclusive=2, floating=0, total=2))
    plane.hold(1)
    run(plane, 15)
    plane.forward(0, Marker(1))
    run(plane, 50)

    assert channel(plane, 0, "received", "credit") == (3, 0)

    plane.capture(1, 1)
    plane.release(1)
    run(plane, 100)

    assert channel(plane, 0, "consumed", "credit") == (200, 1)

    plane.release_capture(1)

    assert channel(plane, 0, "credit") == 2


def test_C4_arriving_buffers_are_pinned_until_the_marker_comes(build):
    """Captured before any data: two records arrive and are pinned; those behind the marker are not."""
    plane = build(pipe(exclusive=2, floating=0, total=9))
    plane.capture(1, 1)
    run(plane, 100)

    assert channel(plane, 0, "consumed", "credit") == (200, 0)

    plane.forward(0, Marker(1, Trait.PRIORITY))
    run(plane, 110)
    plane.release_capture(1)
    plane.release_capture(0)
    run(plane, 1000)

    assert channel(plane, 0, "cap_in") == 200
    assert (state(plane, 1), channel(plane, 0, "consumed")) == (ThreadState.IDLE, 900)


def test_C4_exclusive_buffers_go_back_before_floating_ones(build):
    """Channel 0 had the gate's floating buffer, channel 1 waits for it; all writers have data, on one line of 1 ns per element.
    The exclusive buffer is a credit of channel 0, and its data leaves first; then the floating one lets channel 1
    send."""
    spec = world(
        [source(parallelism=2), vertex()], [edge(ship=Ship.GLOBAL)], (0, 0, 1), exclusive=1, floating=1, nic=(100, 1)
    )
    plane = build(spec)
    plane.scale(1, 3, 2)  # channel 0 first
    plane.hold(2)
    run(plane, 100)

    assert column(plane.channels(), "sent") == [200, 100]

    plane.capture(2, 1)
    plane.release(2)
    run(plane, 200)

    assert column(plane.channels(), "consumed") == [200, 100]

    plane.release_capture(2)
    run(plane, 202)

    assert column(plane.channels(), "arrived") == [300, 100]


def test_C4_channels_go_back_in_order(build):
    """Channel 0's pinned buffer makes the first credit, so its writer is first on the line although channel 1 arrived first."""
    spec = world(
        [source(parallelism=2), vertex()],
        [edge(ship=Ship.GLOBAL)],
        hosts=(0, 0, 1),
        exclusive=1,
        floating=0,
        nic=(1, 1),
    )
    plane = build(spec)
    plane.scale(0, 3, 2)  # channel 1 first
    plane.capture(2, 1)
    run(plane, 500)

    assert column(plane.channels(), "consumed") == [100, 100]

    plane.release_capture(2)
    run(plane, 601)

    assert column(plane.channels(), "arrived") == [200, 100]


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


def test_C4_releasing_output_wakes_the_writer(build):
    """Its pool is pinned: SOFT although everything is sent."""
    plane = build(pipe(exclusive=1, floating=0))
    plane.hold(1)
    run(plane, 50)
    plane.forward(0, Marker(1, Trait.PRIORITY))
    plane.release(1)
    run(plane, 500)

    assert (state(plane, 0), channel(plane, 0, "sent")) == (ThreadState.SOFT, 200)

    plane.release_capture(0)
    run(plane, 511)

    assert channel(plane, 0, "written") == 300


def test_C4_the_current_buffer_is_not_pinned(build):
    """It is being read when the capture begins: its credit goes out as ever."""
    plane = build(pipe(size=50, total=2, exclusive=2, floating=0))
    run(plane, 25)

    assert channel(plane, 0, "taken", "consumed", "credit") == (100, 50, 1)

    plane.capture(1, 1)
    run(plane, 100)

    assert channel(plane, 0, "credit") == 2


@pytest.mark.parametrize(
    "again", [lambda plane: plane.capture(1, 2), lambda plane: plane.forward(1, Marker(2, Trait.PRIORITY))]
)
def test_C4_a_new_capture_or_priority_forward_releases_the_old_one(build, again):
    plane = filled(build)
    plane.capture(1, 1)
    plane.release(1)
    run(plane, 200)

    assert channel(plane, 0, "credit") == 0

    again(plane)

    assert channel(plane, 0, "credit") > 0


def test_C4_an_ordinary_forward_releases_nothing(build):
    plane = filled(build)
    plane.capture(1, 1)
    plane.release(1)
    run(plane, 200)
    plane.forward(1, Marker(2, Trait.BLOCKING | Trait.ANNOUNCED))
    run(plane, 300)

    assert channel(plane, 0, "credit") == 0


def test_C5_a_missing_marker_counts_what_has_arrived_so_far(build):
    plane = build(world([source(parallelism=2, total=2), vertex()], [edge(ship=Ship.GLOBAL)]))
    plane.hold(2)
    run(plane, 15)
    plane.capture(2, 1)
    plane.forward(0, Marker(1))
    seen = [plane.captured(2)]
    run(plane, 25)
    seen.append(plane.captured(2))

    assert seen == [(200, 0), (300, 0)]

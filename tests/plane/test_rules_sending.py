"""Rules S: one element per work item, slices, backlog, local channels, lines, messages to the sender, watched markers."""

from itertools import pairwise

from sim.model.randomness import draw, stream
from sim.plane.interface import Marker, Notice, NoticeKind, ThreadState, Trait
from sim.plane.spec import Ship
from tests.plane.lab import (
    channel,
    column,
    edge,
    idle_floating,
    next_notice,
    pipe,
    pool,
    run,
    source,
    task,
    vertex,
    world,
)


def broadcast(**options):
    """One writer, two readers on other hosts; records of 200 bytes are two buffers per channel."""
    return world([source(total=1), vertex(parallelism=2)], [edge(ship=Ship.BROADCAST, size=200)], **options)


def test_S1_S2_one_element_per_work_item(build):
    """Both channels have two buffers; they take turns on the writer's line: 0, 1, 0, 1, not 0, 0, 1, 1."""
    plane = build(broadcast(nic=(1, 1)))
    arrived = []
    for until in (111, 211, 311, 411):
        run(plane, until)
        arrived.append(column(plane.channels(), "arrived"))

    assert arrived == [[100, 0], [100, 100], [200, 100], [200, 200]]


def test_S1_data_needs_credit_and_markers_do_not(build):
    """One buffer at the held reader takes one record; the marker behind the second record waits for it, a priority marker does not."""
    plane = build(pipe(exclusive=1, floating=0, total=3))
    plane.hold(1)
    run(plane, 100)

    assert channel(plane, 0, "sent", "credit") == (100, 0)

    plane.forward(0, Marker(1))
    run(plane, 101)

    assert channel(plane, 0, "sent", "queued") == (100, 2)

    plane.forward(0, Marker(2, Trait.PRIORITY))
    run(plane, 102)

    assert channel(plane, 0, "sent", "queued") == (100, 2)  # it came and went


def test_S2_an_open_buffer_is_sent_up_to_its_fill(build):
    """30 bytes leave in a slice, the next 30 in another; the buffer stays one buffer in one segment."""
    plane = build(pipe(size=30, total=2, buffer_timeout_ns=0))
    run(plane, 21)

    assert channel(plane, 0, "written", "sent", "queued") == (60, 60, 1)
    assert (task(plane, 0, "buffers_out"), pool(plane)) == (2, 1)


def test_S2_a_slice_clears_the_flush(build):
    """Without another flush, what is written behind a slice waits."""
    spec = pipe(size=30, total=3, buffer_timeout_ns=25)  # one flush in the first 25 ns, its phase is drawn
    plane = build(spec)
    sent = []
    for until in range(1, 80):
        run(plane, until)
        sent.append(channel(plane, 0, "sent"))
    times = [t for t, (a, b) in enumerate(pairwise(sent), start=1) if a != b]

    assert sent[-1] == 90
    assert all(later - earlier == 25 for earlier, later in pairwise(times))


def test_S2_an_emptied_queue_forgets_the_flush(build):
    """A buffer that a marker closed is blocked when the timer comes.  Later a full buffer goes, the open one behind it stays."""
    plane = build(world([source(every=1000), vertex()], [edge(size=30)], buffer_timeout_ns=100_000))
    flush = 1 + ((draw(stream(0, "flush", "a", 0), 0) * 100_000) >> 32)
    run(plane, flush // 1000 * 1000 - 500)
    plane.forward(0, Marker(1, Trait.BLOCKING))
    run(plane, flush - 1)
    before = channel(plane, 0, "sent")
    plane.forward(0, Marker(2))
    run(plane, flush + 1)

    assert (before, before + 30, 2) == channel(plane, 0, "sent", "written", "queued")

    plane.resume(1)
    run(plane, flush + 5500)

    assert (before + 130, before + 180) == channel(plane, 0, "sent", "written")


def test_S2_a_blocking_marker_blocks_before_the_next_offer(build):
    plane = build(pipe(total=10))
    plane.hold(1)
    plane.forward(0, Marker(1, Trait.BLOCKING))
    run(plane, 15)

    assert channel(plane, 0, "written", "sent", "blocked", "queued") == (100, 0, 1, 1)


def test_S3_the_backlog_counts_closed_buffers_and_not_the_open_one(build):
    """Three closed buffers at once: the first leaves two behind, the reader takes two floating ones; an open third counts nothing."""
    idle = []
    for size in (300, 250, 100):
        plane = build(pipe(size=size, total=1, exclusive=1, floating=8, latency_ns=1000))
        plane.hold(1)
        run(plane, 1011)  # the first buffer has arrived
        idle.append(idle_floating(plane))

    assert idle == [8 - 3, 8 - 2, 8 - 1]  # backlog + exclusive, the arrived buffer being the exclusive one


def test_S3_a_flush_makes_the_open_buffer_count(build):
    """150 bytes and a flush with every record: behind the closed 100 the flushed 50 count as one."""
    plane = build(pipe(size=150, total=1, exclusive=1, floating=8, latency_ns=1000, buffer_timeout_ns=0))
    plane.hold(1)
    run(plane, 1011)

    assert idle_floating(plane) == 8 - 2


def blocked_with_data_behind(build, size):
    """A marker went ahead and blocked the channel at 0; a record was written behind it at 10; the reader is held from 1000 on."""
    plane = build(pipe(size=size, total=1, exclusive=1, floating=8, latency_ns=1000))
    plane.forward(0, Marker(1, Trait.BLOCKING))

    assert Notice(1000, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)

    plane.hold(1)
    return plane


def test_S3_a_marker_behind_makes_the_last_buffer_count(build):
    """250 bytes are 100, 100 and an open 50; the marker closes the last, so that the first leaves two behind instead of one."""
    idle = []
    for marked in (False, True):
        plane = blocked_with_data_behind(build, 250)
        if marked:
            plane.forward(0, Marker(2))
        plane.resume(1)
        run(plane, 3001)
        idle.append(idle_floating(plane))

    assert idle == [8 - 2, 8 - 3]


def test_S3_a_channel_blocked_by_the_element_itself_has_no_backlog(build):
    """A priority marker with three buffers behind it: the reader asks for them, unless the marker blocks the channel."""
    idle = []
    for traits in (Trait.PRIORITY, Trait.PRIORITY | Trait.BLOCKING):
        plane = blocked_with_data_behind(build, 300)
        plane.forward(0, Marker(2, traits))
        plane.resume(1)
        run(plane, 3001)
        idle.append(idle_floating(plane))

    assert idle == [8 - 3, 8]


def test_S4_a_local_reader_polls_and_a_priority_marker_does_not_wait(build):
    """Data stays in the writer's queue while the reader is held; the priority marker has left (LEFT), the ordinary one has not."""
    plane = build(pipe(total=2, local=True))
    plane.hold(1)
    run(plane, 50)

    assert channel(plane, 0, "written", "sent", "queued") == (200, 0, 2)

    plane.forward(0, Marker(1, Trait.ANNOUNCED))
    plane.forward(0, Marker(2, Trait.ANNOUNCED | Trait.PRIORITY))

    assert [Notice(50, NoticeKind.LEFT, 0, number=2)] == run(plane, 60)
    assert channel(plane, 0, "written", "sent", "queued") == (200, 0, 3)


def test_S5_an_element_arrives_one_latency_later(build):
    plane = build(pipe(total=1, latency_ns=1000))
    run(plane, 1010)

    assert channel(plane, 0, "sent", "arrived") == (100, 0)

    run(plane, 1011)

    assert channel(plane, 0, "sent", "arrived") == (100, 100)


def test_S5_a_line_rounds_up_and_serves_in_order(build):
    """3 bytes per 7 ns: 100 bytes take 234 ns (233.3); the marker behind them takes none and arrives with them."""
    plane = build(pipe(total=1, nic=(3, 7), latency_ns=50))
    plane.hold(1)
    run(plane, 11)
    plane.forward(0, Marker(1, Trait.ANNOUNCED))
    run(plane, 10 + 234 + 50)

    assert channel(plane, 0, "received") == 0

    run(plane, 10 + 234 + 50 + 1)

    assert channel(plane, 0, "received") == 2


def test_S5_writers_of_one_host_share_its_line(build):
    """Tasks 0 and 1 on host 7 finish together: task 0 by its number first on the line."""
    plane = build(
        world([source(parallelism=2, total=1), vertex(parallelism=2)], [edge()], hosts=(7, 7, 8, 9), nic=(1, 1))
    )
    run(plane, 111)

    assert column(plane.channels(), "arrived") == [100, 0]

    run(plane, 211)

    assert column(plane.channels(), "arrived") == [100, 100]


def test_S5_without_line_and_latency_delivery_is_inside_send(build):
    """The buffer written at 10 is in service at the reader at 10."""
    plane = build(pipe(total=1))
    run(plane, 11)

    assert task(plane, 1, "state", "idle_ns") == (ThreadState.BUSY, 10)


def test_S6_credits_take_the_latency(build):
    """One buffer: the second record leaves when the credit for the first comes back."""
    plane = build(pipe(total=2, exclusive=1, floating=0, latency_ns=1000))
    run(plane, 2010)  # arrived and recycled at 1010, credit back at 2010

    assert channel(plane, 0, "sent", "credit") == (100, 0)

    run(plane, 2011)

    assert channel(plane, 0, "sent") == 200


def test_S6_a_resume_takes_the_latency_on_a_remote_channel_only(build):
    seen = []
    for local in (False, True):
        plane = build(pipe(total=1, local=local, latency_ns=1000))
        plane.forward(0, Marker(1, Trait.BLOCKING))
        arrived = next_notice(plane)
        plane.resume(1)
        run(plane, arrived.time + 1)
        at_once = channel(plane, 0, "blocked")
        run(plane, arrived.time + 1001)
        seen.append((arrived.time, at_once, channel(plane, 0, "blocked")))

    assert seen == [(1000, 1, 0), (0, 0, 0)]


def test_S7_left_is_reported_once_for_all_edges(build):
    """Three watched markers on two edges; the last leaves when the held reader of the local edge polls."""
    vertices = [source(total=0), vertex("b", 2), vertex("c")]
    plane = build(world(vertices, [edge(0, 1, Ship.BROADCAST), edge(0, 2)], hosts=(0, 1, 2, 0)))
    plane.hold(3)
    plane.forward(0, Marker(4, Trait.ANNOUNCED), 0)
    plane.forward(0, Marker(4, Trait.ANNOUNCED), 1)
    first = run(plane, 10)
    plane.release(3)
    then = run(plane, 20)

    assert [n.kind for n in first] == [
        NoticeKind.ANNOUNCED,
        NoticeKind.ANNOUNCED,
        NoticeKind.ARRIVED,
        NoticeKind.ARRIVED,
    ]
    assert [Notice(10, NoticeKind.LEFT, 0, number=4), Notice(10, NoticeKind.ARRIVED, 3, 0, 0, 4, 2, True, True)] == then

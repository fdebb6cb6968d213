"""Rules S and R: sending, local channels, messages to the sender; receive buffers, credits, ready lists."""

from sim.plane.interface import Marker, Notice, NoticeKind, Ship, Trait
from tests.plane.lab import (
    channel,
    column,
    edge,
    idle_floating,
    next_notice,
    pipe,
    run,
    source,
    vertex,
    world,
)

# Rules S: one element per work item, slices, backlog, local channels, lines, messages to the sender, watched markers.


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


def blocked_with_data_behind(build, size):
    """A marker went ahead and blocked the channel at 0; a record was written behind it at 10; the reader is held from 1000 on."""
    plane = build(pipe(size=size, total=1, exclusive=1, floating=8, latency_ns=1000))
    plane.forward(0, Marker(1, Trait.BLOCKING))

    assert Notice(1000, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)

    plane.hold(1)
    return plane


def test_invariant_02_nothing_leaves_a_blocked_channel_before_the_resume(build):
    plane = blocked_with_data_behind(build, 250)
    run(plane, 3001)

    assert column(plane.channels(), "sent") == [0]

    plane.resume(1)
    run(plane, 9001)

    assert column(plane.channels(), "sent") == [200]


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

    assert [Notice(50, NoticeKind.ANNOUNCED_SENT, 0, number=2)] == run(plane, 60)
    assert channel(plane, 0, "written", "sent", "queued") == (200, 0, 3)


def test_S5_an_element_arrives_one_latency_later(build):
    plane = build(pipe(total=1, latency_ns=1000))
    run(plane, 1010)

    assert channel(plane, 0, "sent", "arrived") == (100, 0)

    run(plane, 1011)

    assert channel(plane, 0, "sent", "arrived") == (100, 100)


def test_S5_writers_of_one_host_share_its_line(build):
    """Tasks 0 and 1 on host 7 finish together: task 0 by its number first on the line."""
    plane = build(
        world([source(parallelism=2, total=1), vertex(parallelism=2)], [edge()], hosts=(7, 7, 8, 9), nic=(1, 1))
    )
    run(plane, 111)

    assert column(plane.channels(), "arrived") == [100, 0]

    run(plane, 211)

    assert column(plane.channels(), "arrived") == [100, 100]


def test_S6_credits_take_the_latency(build):
    """One buffer: the second record leaves when the credit for the first comes back."""
    plane = build(pipe(total=2, exclusive=1, floating=0, latency_ns=1000))
    run(plane, 2010)  # arrived and recycled at 1010, credit back at 2010

    assert channel(plane, 0, "sent", "credit") == (100, 0)

    run(plane, 2011)

    assert channel(plane, 0, "sent") == 200


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
    assert [
        Notice(10, NoticeKind.ANNOUNCED_SENT, 0, number=4),
        Notice(10, NoticeKind.ARRIVED, 3, 0, 0, 4, 2, True, True),
    ] == then


# Rules R: receive buffers, credits, listeners, ready lists, what an arriving marker does.


def union(writers, *, total=-1, size=100, **options):
    """Several writers of one vertex, one reader, one gate: channel i comes from writer i."""
    return world([source(parallelism=writers, total=total), vertex()], [edge(ship=Ship.GLOBAL, size=size)], **options)


def test_R1_credit_begins_with_the_exclusive_buffers(build):
    plane = build(pipe(total=0, exclusive=3))

    assert channel(plane, 0, "credit") == 3
    assert idle_floating(plane) == 8


def test_R2_arrivals_take_floating_buffers_until_none_is_left(build):
    """Every arrival leaves one buffer less than required: 2 exclusive and 2 floating ones let four records through."""
    plane = build(pipe(exclusive=2, floating=2))
    plane.hold(1)
    seen = []
    for until in (11, 21, 31, 41, 51):
        run(plane, until)
        seen.append((channel(plane, 0, "arrived"), channel(plane, 0, "credit"), idle_floating(plane)))

    assert seen == [(100, 2, 1), (200, 2, 0), (300, 1, 0), (400, 0, 0), (400, 0, 0)]


def test_R3_an_exclusive_buffer_more_than_required_frees_a_floating_one(build):
    """One record: the arrival took a floating buffer for the next; when the exclusive one returns, the floating one goes back."""
    plane = build(pipe(total=1, exclusive=2, floating=2))
    plane.hold(1)
    run(plane, 50)

    assert (channel(plane, 0, "credit"), idle_floating(plane)) == (2, 1)

    plane.release(1)
    run(plane, 51)

    assert (channel(plane, 0, "credit"), idle_floating(plane)) == (2, 2)


def test_R5_the_first_announced_marker_of_a_gate_is_reported(build):
    """Two writers: the second marker of number 3 and the older number 2 are no news."""
    plane = build(union(2, total=0))
    plane.hold(2)
    plane.forward(0, Marker(3, Trait.ANNOUNCED))
    plane.forward(1, Marker(2, Trait.ANNOUNCED))
    plane.forward(1, Marker(3, Trait.ANNOUNCED))
    announced = [n for n in run(plane, 10) if n.kind == NoticeKind.ANNOUNCED]

    assert [Notice(0, NoticeKind.ANNOUNCED, 2, gate=0, number=3)] == announced

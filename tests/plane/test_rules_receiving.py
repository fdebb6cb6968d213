"""Rules R: receive buffers, credits, listeners, ready lists, what an arriving marker does."""

from sim.plane.interface import Marker, Notice, NoticeKind, ThreadState, Trait
from sim.plane.spec import Ship
from tests.plane.lab import channel, column, edge, idle_floating, next_notice, pipe, run, source, state, vertex, world


def union(writers, *, total=-1, size=100, **options):
    """Several writers of one vertex, one reader, one gate: channel i comes from writer i."""
    return world([source(parallelism=writers, total=total), vertex()], [edge(ship=Ship.GLOBAL, size=size)], **options)


def test_R1_credit_begins_with_the_exclusive_buffers(build):
    plane = build(pipe(total=0, exclusive=3))

    assert channel(plane, 0, "credit") == 3
    assert idle_floating(plane) == 8


def test_R1_arriving_data_takes_a_floating_buffer_first(build):
    """Channel 0 has a floating and an exclusive buffer free when its second record arrives; channel 1 waits for a floating one.
    Read in the order 0, 1, 0: the third buffer read is the floating one and serves channel 1."""
    plane = build(union(2, total=3, exclusive=2, floating=1))
    plane.scale(1, 15, 10)
    plane.hold(2)
    run(plane, 100)
    plane.release(2)
    run(plane, 121)

    assert column(plane.channels(), "consumed") == [200, 100]
    assert column(plane.channels(), "credit") == [1, 1]


def test_R2_arrivals_take_floating_buffers_until_none_is_left(build):
    """Every arrival leaves one buffer less than required: 2 exclusive and 2 floating ones let four records through."""
    plane = build(pipe(exclusive=2, floating=2))
    plane.hold(1)
    seen = []
    for until in (11, 21, 31, 41, 51):
        run(plane, until)
        seen.append((channel(plane, 0, "arrived"), channel(plane, 0, "credit"), idle_floating(plane)))

    assert seen == [(100, 2, 1), (200, 2, 0), (300, 1, 0), (400, 0, 0), (400, 0, 0)]


def test_R2_gained_credits_leave_in_one_message(build):
    """Backlog 2: three floating buffers, one message: with latency all three credits are there at once, and two buffers leave."""
    plane = build(pipe(size=300, total=1, exclusive=1, latency_ns=1000))
    plane.hold(1)
    run(plane, 2010)

    assert channel(plane, 0, "sent", "credit") == (100, 0)

    run(plane, 2011)

    assert channel(plane, 0, "sent", "credit") == (300, 1)


def test_R3_an_exclusive_buffer_more_than_required_frees_a_floating_one(build):
    """One record: the arrival took a floating buffer for the next; when the exclusive one returns, the floating one goes back."""
    plane = build(pipe(total=1, exclusive=2, floating=2))
    plane.hold(1)
    run(plane, 50)

    assert (channel(plane, 0, "credit"), idle_floating(plane)) == (2, 1)

    plane.release(1)
    run(plane, 51)

    assert (channel(plane, 0, "credit"), idle_floating(plane)) == (2, 2)


def test_R3_listeners_are_served_in_the_order_they_came(build):
    """Channel 2 holds both floating buffers; 1, 2 and 0 ask for more, in this order, and all writers have data waiting.
    The first floating buffer goes to 1, who needs two and so stands behind 0 afterwards; the second goes to 2."""
    plane = build(union(3, exclusive=1, floating=2, max_per_channel=2))
    plane.scale(0, 15, 10)  # records at 15, 30 ...
    plane.scale(1, 12, 10)  # 12, 24 ...
    plane.scale(2, 4, 10)  # 4, 8, 12 ...
    plane.hold(3)
    run(plane, 100)

    assert column(plane.channels(), "sent") == [100, 100, 300]

    plane.release(3)
    sent = []
    for until in (101, 111, 121, 131, 141, 151, 161):
        run(plane, until)
        sent.append(column(plane.channels(), "sent"))

    assert sent == [
        [100, 100, 400],  # the exclusive buffers come back as credits of their own channels: 2 ...
        [100, 200, 400],  # ... 1 ...
        [200, 200, 400],  # ... 0
        [200, 300, 400],  # a floating one of channel 2, to channel 1
        [200, 400, 400],
        [300, 400, 400],
        [300, 400, 500],  # the other one, to channel 2
    ]


def test_R3_a_listener_that_got_one_buffer_and_needs_two_stands_in_line_again(build):
    """Channel 1 has both floating buffers when channel 0 asks for two. Both are recycled at 4000, long before anything can arrive.
    Channel 0 gets the first one, stands in line again, and gets the second one, too: none is left idle.
    """
    plane = build(union(2, size=300, total=1, exclusive=1, floating=2, latency_ns=1000))
    plane.scale(0, 150, 1)  # writes when channel 1 has asked
    plane.hold(2)
    run(plane, 4000)

    assert column(plane.channels(), "arrived") == [100, 300]

    plane.release(2)
    run(plane, 4001)

    assert idle_floating(plane) == 0

    run(plane, 5001)

    assert channel(plane, 0, "sent", "credit") == (300, 1)


def test_R4_channels_become_ready_in_the_order_of_arrival(build):
    """Arrivals 2, 0, 1 are served 2, 0, 1."""
    plane = build(union(3, total=1))
    plane.scale(0, 12, 10)
    plane.scale(1, 15, 10)
    plane.hold(3)
    run(plane, 100)
    plane.release(3)
    notices = []
    for until in (101, 111, 121):
        run(plane, until)
        notices.append(column(plane.channels(), "taken"))

    assert notices == [[0, 0, 100], [100, 0, 100], [100, 100, 100]]


def test_R4_a_ready_channel_wakes_an_idle_reader_only(build):
    """The held reader takes nothing before its release."""
    plane = build(pipe(total=1))
    plane.hold(1)
    run(plane, 100)

    assert (state(plane, 1), channel(plane, 0, "taken")) == (ThreadState.HELD, 0)


def test_R5_a_priority_marker_is_processed_before_the_data_it_overtook(build):
    plane = build(pipe(total=3, exclusive=1, floating=0))
    plane.hold(1)
    run(plane, 50)
    plane.forward(0, Marker(1, Trait.PRIORITY))
    run(plane, 60)
    plane.release(1)

    assert Notice(60, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)
    assert channel(plane, 0, "arrived", "taken") == (100, 0)


def test_R5_priority_wakes_an_idle_reader(build):
    plane = build(pipe(total=0))
    run(plane, 10)
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert Notice(10, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)


def test_R5_priority_wakes_a_soft_reader(build):
    """A task with a full output still takes a priority marker; an ordinary one waits in its receive queue."""
    vertices = [source(), vertex("b"), vertex("c")]
    plane = build(world(vertices, [edge(0, 1), edge(1, 2)], exclusive=1, floating=0))
    plane.hold(2)
    run(plane, 1000)

    assert state(plane, 1) == ThreadState.SOFT

    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert [Notice(1000, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True)] == run(plane, 2000)
    assert state(plane, 1) == ThreadState.SOFT


def test_R5_the_first_announced_marker_of_a_gate_is_reported(build):
    """Two writers: the second marker of number 3 and the older number 2 are no news."""
    plane = build(union(2, total=0))
    plane.hold(2)
    plane.forward(0, Marker(3, Trait.ANNOUNCED))
    plane.forward(1, Marker(2, Trait.ANNOUNCED))
    plane.forward(1, Marker(3, Trait.ANNOUNCED))
    announced = [n for n in run(plane, 10) if n.kind == NoticeKind.ANNOUNCED]

    assert [Notice(0, NoticeKind.ANNOUNCED, 2, gate=0, number=3)] == announced


def test_R5_local_and_priority_markers_are_not_announced(build):
    seen = []
    for local, traits in ((True, Trait.ANNOUNCED), (False, Trait.ANNOUNCED | Trait.PRIORITY), (False, Trait.ANNOUNCED)):
        plane = build(pipe(total=0, local=local))
        plane.forward(0, Marker(1, traits))
        seen.append([n.kind for n in run(plane, 10)])

    assert seen == [
        [NoticeKind.LEFT, NoticeKind.ARRIVED],
        [NoticeKind.LEFT, NoticeKind.ARRIVED],
        [NoticeKind.LEFT, NoticeKind.ANNOUNCED, NoticeKind.ARRIVED],
    ]


def test_R5_a_marker_of_the_prioritised_number_joins_the_priority_list(build):
    """The reader prioritised number 1 before it arrived: processed at once, though a record waits before it."""
    plane = build(pipe(total=2))
    plane.hold(1)
    run(plane, 50)
    plane.prioritise(1, 1)
    plane.forward(0, Marker(1))
    run(plane, 60)
    plane.release(1)

    assert Notice(60, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)
    assert channel(plane, 0, "taken") == 0

"""Rules N, B, O: numbering, records as bytes, the pool, writing into buffers, routing, flushing."""

import pytest

from sim.model.randomness import draw, stream
from sim.plane.interface import Marker, Ship, ThreadState, Wait
from tests.plane.lab import channel, column, edge, pipe, pool, run, source, state, task, vertex, world


def test_N2_channels_are_numbered_by_edge_then_writer_then_reader(build):
    """Global shipping reaches the first reader of each writer: channels 0 and 2 of a 2 x 2 edge."""
    plane = build(world([source(parallelism=2, total=1), vertex(parallelism=2)], [edge(ship=Ship.GLOBAL)]))
    run(plane, 100)

    assert column(plane.channels(), "written") == [100, 0, 100, 0]


def test_B2_a_record_is_served_when_its_last_byte_is_there(build):
    """A record of 250 bytes spans three buffers; nothing is consumed while the last one is still open at the sender."""
    plane = build(pipe(size=250, total=2))
    run(plane, 15)

    assert channel(plane, 0, "written", "sent", "arrived", "taken", "consumed") == (250, 200, 200, 200, 0)

    run(plane, 25)  # the second record fills the third buffer

    assert channel(plane, 0, "written", "sent", "arrived", "taken", "consumed") == (500, 500, 500, 300, 250)


def test_O2_a_full_pool_makes_the_output_unavailable(build):
    """Four buffers lie with the held reader, four fill the pool: the source stops between records."""
    plane = build(pipe(exclusive=2, floating=2))
    plane.hold(1)
    run(plane, 1000)

    assert task(plane, 0, "state", "served") == (ThreadState.SOFT, 8)
    assert tuple(int(plane.partitions()[0][name]) for name in ("used", "size", "available")) == (4, 4, 0)


def test_O3_overdraft_lets_a_record_be_finished(build):
    """One segment and two more on credit: a record of 250 bytes fits, the task is SOFT and not HARD."""
    plane = build(pipe(size=250, exclusive=1, floating=0, overdraft=2))
    plane.hold(1)
    run(plane, 11)

    assert channel(plane, 0, "written", "sent") == (250, 100)
    assert (state(plane, 0), pool(plane)) == (ThreadState.SOFT, 2)


def test_O3_a_legacy_source_has_no_overdraft(build):
    """As above: the record does not fit, and its thread stands with it (SourceStreamTask#init, FLINK-27789)."""
    edges = [edge(size=250)]
    plane = build(world([source(waits=Wait.LOCK), vertex()], edges, exclusive=1, floating=0, overdraft=2))
    plane.hold(1)
    run(plane, 11)

    assert (state(plane, 0), pool(plane)) == (ThreadState.HARD, 1)


@pytest.mark.parametrize(("exclusive", "expected"), [(1, (90, 1)), (8, (80, 2))])
def test_O4_an_unavailable_pool_stretches_the_buffer(build, exclusive, expected):
    """A record of 90 bytes in buffers of 40: 40 + 40 sent and 10 waiting, or, with the pool used up, one buffer of 90."""
    plane = build(pipe(size=90, total=1, starting_buffer_bytes=40, exclusive=exclusive, floating=0))
    run(plane, 15)

    assert expected == (channel(plane, 0, "sent"), task(plane, 0, "buffers_out"))


def test_O4_without_stretching_a_record_waits_in_small_buffers(build):
    """Before FLINK-33077: the record of 90 bytes takes three buffers of 40 from a pool of one, and waits for each of them."""
    plane = build(
        pipe(size=90, total=1, starting_buffer_bytes=40, exclusive=1, floating=0, overdraft=0, stretching=False)
    )
    plane.hold(1)
    run(plane, 15)

    assert (state(plane, 0), *channel(plane, 0, "written", "sent")) == (ThreadState.HARD, 80, 40)

    plane.release(1)
    run(plane, 16)

    assert channel(plane, 0, "written", "sent", "records_out") == (90, 80, 1)


def test_O4_the_pool_is_judged_buffer_by_buffer_and_a_segment_is_the_limit(build):
    """A record of 250 bytes, a pool of two: 40 as announced, then, unavailable, 100 and 100; the last 10 fit and stay open."""
    plane = build(pipe(size=250, total=1, starting_buffer_bytes=40, exclusive=2, floating=0, overdraft=5))
    run(plane, 15)

    assert channel(plane, 0, "written", "sent") == (250, 240)
    assert task(plane, 0, "buffers_out") == 3


def test_O4_a_stretched_buffer_holds_what_it_has_and_the_rest(build):
    """Two channels, a pool of three: one channel takes the third segment, so the other stretches 30 + 30 into one buffer of 60."""
    edges = [edge(ship=Ship.REBALANCE, size=30, fan_out=(2, 1))]
    plane = build(
        world([source(total=2), vertex(parallelism=2)], edges, starting_buffer_bytes=40, exclusive=1, floating=1)
    )
    run(plane, 25)

    assert sorted(column(plane.channels(), "sent")) == [40, 60]
    assert task(plane, 0, "buffers_out") == 2


def broadcast(*vertices, **options):
    return world([source(), *vertices], [edge(ship=Ship.BROADCAST)], **options)


def test_O1_a_broadcast_shares_its_segments(build):
    """Ten buffers wait on each of three channels, and the pool of fourteen has lent ten: all of them count as one channel's (O2)."""
    plane = build(broadcast(vertex(parallelism=3)))
    for reader in (1, 2, 3):
        plane.hold(reader)
    run(plane, 10_000)

    assert (state(plane, 0), pool(plane), column(plane.channels(), "queued")) == (ThreadState.SOFT, 10, [10, 10, 10])


def test_O4_a_broadcast_is_written_to_all_channels_together(build):
    """A pool of two and no overdraft: 100 bytes are sent, 200 wait on each channel, and the rest of 450 until the last has sent some."""
    plane = build(
        world(
            [source(), vertex(parallelism=2)],
            [edge(ship=Ship.BROADCAST, size=450)],
            exclusive=1,
            floating=0,
            overdraft=0,
        )
    )
    for reader in (1, 2):
        plane.hold(reader)
    run(plane, 500)

    assert (state(plane, 0), pool(plane), column(plane.channels(), "written")) == (ThreadState.HARD, 2, [300, 300])

    plane.release(1)
    run(plane, 1000)

    assert column(plane.channels(), "written") == [300, 300]

    plane.release(2)
    run(plane, 1500)

    assert min(column(plane.channels(), "written")) > 1000


def test_B1_a_broadcast_record_is_as_large_for_every_reader(build):
    plane = build(world([source(total=20), vertex(parallelism=3)], [edge(ship=Ship.BROADCAST, size=(10, 60, 90))]))
    run(plane, 1000)

    assert len(set(column(plane.channels(), "written"))) == 1


def copies(plane, channels):
    return [channel(plane, c, "records_out") for c in channels]


@pytest.mark.parametrize("weights", [(), (0, 0, 2), (0, 0, 1, 2)])
def test_O5_hash_draws_the_reader(build, weights):
    plane = build(world([source(total=20), vertex(parallelism=3)], [edge(ship=Ship.HASH, weights=weights)]))
    run(plane, 400)
    expected = [0, 0, 0]
    for m in range(20):
        u = draw(stream(0, "route", "0-1", 0), m)
        expected[weights[(u * len(weights)) >> 32] if weights else (u * 3) >> 32] += 1

    assert expected == copies(plane, range(3))


@pytest.mark.parametrize("ship", [Ship.REBALANCE, Ship.RESCALE])
def test_O8_a_record_goes_where_fewest_buffers_are_in_use(build, ship):
    """The first of three readers is slow: its channel gets five records, enough for its own buffers."""

    def sent(traverse):
        plane = build(
            world([source(total=60), vertex(parallelism=3)], [edge(ship=ship)], floating=1, max_traverse=traverse)
        )
        plane.scale(1, 100, 1)
        run(plane, 3000)
        return copies(plane, range(3))

    assert [sent(traverse) for traverse in (2, 3, 9)] == [[5, 28, 27]] * 3
    assert max(sent(0)) - min(sent(0)) <= 1, "in turn"
    assert sent(1) == [13, 12, 12], "nothing is compared"


@pytest.mark.parametrize(("traverse", "expected"), [(2, [3, 4, 3]), (3, [2, 5, 3])])
def test_O8_of_as_many_buffers_the_one_with_fewest_bytes_is_taken(build, traverse, expected):
    """Each channel has one open buffer, of records of 10 and 40 bytes."""
    edges = [edge(ship=Ship.REBALANCE, size=(10, 40))]
    plane = build(world([source(total=10), vertex(parallelism=3)], edges, max_traverse=traverse))
    run(plane, 3000)

    assert copies(plane, range(3)) == expected


def test_O6_a_flush_visits_partitions_and_channels_in_order(build):
    """One line of 1 byte/ns: what is flushed first arrives first."""
    vertices = [source(total=1), vertex("b", 2), vertex("c")]
    edges = [edge(0, 1, Ship.BROADCAST, size=30), edge(0, 2, size=20)]
    plane = build(world(vertices, edges, buffer_timeout_ns=0, nic=(1, 1)))
    arrived = []
    for until in (11, 39, 41, 69, 71, 89, 91):
        run(plane, until)
        arrived.append(column(plane.channels(), "arrived"))

    assert arrived == [[0, 0, 0], [0, 0, 0], [30, 0, 0], [30, 0, 0], [30, 30, 0], [30, 30, 0], [30, 30, 20]]


def test_O7_a_flushed_buffer_keeps_its_segment_until_it_is_closed(build):
    """All bytes of the open buffer are sent; the marker closes it and the segment is free."""
    plane = build(pipe(size=30, total=1, buffer_timeout_ns=0))
    run(plane, 100)

    assert (pool(plane), channel(plane, 0, "queued")) == (1, 1)

    plane.forward(0, Marker(1))

    assert (pool(plane), channel(plane, 0, "queued")) == (0, 1)  # the marker


def test_O7_a_closed_local_slice_is_given_back_with_the_last_recycling(build):
    """The reader holds a slice of the open buffer; the marker closes it; the segment returns when the reader is done with the slice."""
    plane = build(
        pipe(size=30, total=1, local=True, service=50, buffer_timeout_ns=0, segment_bytes=60, starting_buffer_bytes=60)
    )
    run(plane, 15)

    assert (state(plane, 1), pool(plane), channel(plane, 0, "taken")) == (ThreadState.BUSY, 1, 30)

    plane.forward(0, Marker(1))

    assert pool(plane) == 0  # the record ended with the slice, which was recycled when its service began

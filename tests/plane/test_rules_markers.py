"""Rules M and C: markers, how a gate counts them, and which in-flight bytes a number captures."""

import pytest

from sim.plane.interface import BARRIERS, MAX_TRACKED_CHECKPOINTS, Marker, Notice, NoticeKind, Ship, ThreadState, Trait
from tests.plane.lab import channel, column, edge, next_notice, pipe, pool, run, source, state, task, vertex, world

# Rules M: forwarding, converting and prioritising markers, how a gate counts them, resuming and settling.


def union(writers, **options):
    """Writers 0 .. n-1 with nothing to write, one reader with one gate; channel i comes from writer i."""
    return world([source(parallelism=writers, total=0), vertex()], [edge(ship=Ship.GLOBAL)], **options)


def arrived(t, task, number, channel, *, first=False, last=False, series=BARRIERS, gate=0):
    return Notice(t, NoticeKind.ARRIVED, task, gate, series, number, channel, first, last)


def test_M1_a_priority_marker_overtakes_data_behind_earlier_priority_markers(build):
    """100 bytes at the held reader, 200 in the queue: both overtake them, the first stays first."""
    plane = build(pipe(total=3, exclusive=1, floating=0, overdraft=2, max_per_channel=9))
    plane.hold(1)
    run(plane, 50)
    captured = [plane.forward(0, Marker(7, Trait.PRIORITY)), plane.forward(0, Marker(6, Trait.PRIORITY, series=1))]
    run(plane, 60)
    plane.release(1)
    queued = channel(plane, 0, "written") - channel(plane, 0, "sent")

    assert [queued, queued] == captured
    assert [(n.number, n.series) for n in run(plane, 61)] == [(7, 0), (6, 1)]


def test_M1_a_watched_marker_of_a_sink_has_left_at_once(build):
    plane = build(pipe(total=0))
    run(plane, 10)
    plane.forward(1, Marker(3, Trait.ANNOUNCED))

    assert Notice(10, NoticeKind.ANNOUNCED_SENT, 1, number=3) == plane.advance(10)


def queue_with_marker(build, traits, **options):
    """100 bytes at the held reader, 100 and a marker waiting for credit."""
    plane = build(pipe(total=2, exclusive=1, floating=0, **options))
    plane.hold(1)
    run(plane, 50)
    plane.forward(0, Marker(4, traits))
    run(plane, 60)

    assert channel(plane, 0, "sent", "queued") == (100, 2)

    return plane


def test_M2_other_markers_stay(build):
    """Not the number asked for, not the series of barriers, not announced: they wait behind the record."""
    plane = queue_with_marker(build, Trait.NONE)
    plane.forward(0, Marker(5, Trait.ANNOUNCED, series=1))
    plane.forward(0, Marker(6, Trait.ANNOUNCED))

    assert [plane.convert_output(0, 4), plane.convert_output(0, 5)] == [0, 0]

    run(plane, 70)

    assert channel(plane, 0, "queued") == 4


@pytest.mark.parametrize("local", [False, True])
def test_M2_a_local_reader_gets_a_converted_marker_without_polling(build, local):
    plane = build(pipe(total=2, local=local))
    plane.hold(1)
    run(plane, 50)
    plane.forward(0, Marker(4, Trait.BLOCKING | Trait.ANNOUNCED))
    run(plane, 60)
    plane.convert_output(0, 4)
    plane.prioritise(1, 4)
    run(plane, 70)
    plane.release(1)

    assert arrived(70, 1, 4, 0, first=True, last=True) == next_notice(plane)
    assert channel(plane, 0, "taken", "consumed") == (0, 0)


def test_M2_a_local_channel_emptied_by_a_conversion_is_not_ready(build):
    """The channel stood ready for its ordinary marker; the priority marker left without the reader, who finds nothing and sleeps."""
    plane = build(pipe(total=0, local=True))
    plane.hold(1)
    run(plane, 10)
    plane.forward(0, Marker(4, Trait.ANNOUNCED))
    run(plane, 20)
    plane.convert_output(0, 4)
    run(plane, 30)
    plane.release(1)

    assert [arrived(30, 1, 4, 0, first=True, last=True)] == run(plane, 40)
    assert (task(plane, 1, "state"), channel(plane, 0, "queued")) == (0, 0)


def test_R4_a_local_channel_emptied_by_a_conversion_loses_its_place(build):
    """Channel 0 was ready first, for its marker only.  The marker is converted and gone, then channel 0 gets a record: behind channel 1."""
    plane = build(
        world([source(parallelism=2, every=100, total=1), vertex()], [edge(ship=Ship.GLOBAL)], hosts=(0, 0, 0))
    )
    plane.hold(2)
    plane.hold(0)
    plane.forward(0, Marker(4, Trait.ANNOUNCED))
    run(plane, 20)  # channel 0 ready with its marker, then channel 1 with a record
    plane.convert_output(0, 4)
    run(plane, 30)
    plane.release(0)
    run(plane, 50)
    plane.release(2)
    run(plane, 51)

    assert column(plane.channels(), "taken") == [0, 100]


def test_M3_markers_leave_the_receive_queues_in_the_order_of_gates_and_channels(build):
    """They came through channels 2, 1 and 0; prioritised, they are processed 0, 1, 2."""
    vertices = [source("a", 2, total=0), source("b", total=0), vertex("c", service=(10, 10))]
    plane = build(world(vertices, [edge(0, 2, Ship.GLOBAL), edge(1, 2)]))
    plane.hold(3)
    for writer in (2, 1, 0):
        plane.forward(writer, Marker(1))
        run(plane, 10 * (3 - writer))
    plane.prioritise(3, 1)

    assert column(plane.channels(), "received") == [0, 0, 0]

    plane.release(3)

    assert [
        arrived(30, 3, 1, 0, first=True),
        arrived(30, 3, 1, 1, last=True),
        arrived(30, 3, 1, 2, gate=1, first=True, last=True),
    ] == run(plane, 40)


def test_M3_a_channel_without_anything_left_is_not_polled(build):
    """The gate leaves the list with its only ready channel; a record from the other gate is served first."""
    plane = build(pipe(total=0))
    plane.hold(1)
    plane.forward(0, Marker(1))
    run(plane, 10)
    plane.prioritise(1, 1)
    plane.release(1)

    assert [arrived(10, 1, 1, 0, first=True, last=True)] == run(plane, 20)
    assert (channel(plane, 0, "received"), task(plane, 1, "idle_ns") + task(plane, 1, "busy_ns")) == (0, 20)


def test_M3_wakes_an_idle_or_soft_task_only_if_something_moved(build):
    vertices = [source(), vertex("b"), vertex("c")]
    plane = build(world(vertices, [edge(0, 1), edge(1, 2)], exclusive=1, floating=0))
    plane.hold(2)
    run(plane, 35)
    plane.forward(0, Marker(1))
    run(plane, 1000)
    before = channel(plane, 0, "received")
    plane.prioritise(1, 1)

    assert before <= 2
    assert [arrived(1000, 1, 1, 0, first=True, last=True)] == run(plane, 1010)


def test_M4_markers_of_the_upper_series_are_reported_one_by_one(build):
    """Each of three channels tells of its end, whatever stands open; the last one closes the gate."""
    plane = build(union(3))
    plane.forward(0, Marker(1))
    for writer in range(3):
        plane.forward(writer, Marker(1, series=2))
        plane.forward(writer, Marker(1, Trait.FINAL, series=3))

    ends = [n for n in run(plane, 1) if n.series != BARRIERS]

    assert [(c, s) for c in range(3) for s in (2, 3)] == sorted((n.channel, n.series) for n in ends)
    assert {True} == {n.first for n in ends}
    assert [n.series == 3 and n == ends[-1] for n in ends] == [n.last for n in ends]


def test_M4_an_obsolete_blocking_marker_resumes_at_once(build):
    plane = build(union(2))
    plane.settle(2, 3)
    for number in (1, 3):
        plane.forward(0, Marker(number, Trait.BLOCKING))

    assert run(plane, 1) == []
    assert channel(plane, 0, "blocked", "queued") == (0, 0)


def test_M4_a_closed_channel_counts_for_every_number(build):
    """Channel 0 ends: open counts gain it, later counts begin with it."""
    plane = build(union(3))
    plane.forward(1, Marker(1))
    run(plane, 1)
    plane.forward(0, Marker(9, Trait.FINAL, series=1))

    assert [arrived(1, 3, 9, 0, first=True, series=1)] == run(plane, 2)

    plane.forward(2, Marker(1))
    plane.forward(1, Marker(2))
    plane.forward(2, Marker(2))
    later = run(plane, 3)

    assert [arrived(2, 3, 1, 2, last=True), arrived(2, 3, 2, 1, first=True), arrived(2, 3, 2, 2, last=True)] == sorted(
        later, key=lambda n: (n.number, n.channel)
    )


def test_M4_a_final_marker_completes_counts_after_its_own_report_oldest_first(build):
    """Numbers 5, 3 and 4 wait for channel 0, opened in this order; its FINAL tells of itself, then of 5, 3, 4."""
    plane = build(union(2))
    for number in (5, 3, 4):
        plane.forward(1, Marker(number))
    run(plane, 1)
    plane.forward(0, Marker(9, Trait.FINAL, series=1))

    assert [
        arrived(1, 2, 9, 0, first=True, series=1),
        arrived(1, 2, 5, 0, last=True),
        arrived(1, 2, 3, 0, last=True),
        arrived(1, 2, 4, 0, last=True),
    ] == run(plane, 2)


def test_M4_a_channel_delivers_a_number_at_most_once(build):
    """Channel 0 delivered number 1 before it closed: it still counts once."""
    plane = build(union(3))
    plane.forward(0, Marker(1))
    plane.forward(0, Marker(9, Trait.FINAL, series=1))
    plane.forward(1, Marker(1))
    run(plane, 1)
    plane.forward(2, Marker(1))

    assert [arrived(1, 3, 1, 2, last=True)] == run(plane, 2)


def test_M4_the_oldest_of_too_many_counts_is_dropped(build):
    """51 open numbers: the first is obsolete, its second marker opens no count in another's place; the second oldest is still known."""
    plane = build(union(2))
    for number in range(1, MAX_TRACKED_CHECKPOINTS + 2):
        plane.forward(0, Marker(number))
    run(plane, 1)
    plane.forward(1, Marker(1))
    plane.forward(1, Marker(2))

    assert [arrived(1, 2, 2, 1, last=True)] == run(plane, 2)


def test_M5_settle_forgets_counts_up_to_a_number(build):
    """Number 2 is settled half counted: its other marker is obsolete; number 3 goes on; series 1 is another matter."""
    plane = build(union(2))
    for number in (2, 3):
        plane.forward(0, Marker(number))
        plane.forward(0, Marker(number, series=1))
    run(plane, 1)
    plane.settle(2, 2)
    for number in (2, 3):
        plane.forward(1, Marker(number))
        plane.forward(1, Marker(number, series=1))

    assert [
        arrived(1, 2, 2, 1, last=True, series=1),
        arrived(1, 2, 3, 1, last=True),
        arrived(1, 2, 3, 1, last=True, series=1),
    ] == run(plane, 2)


# Rules C: which in-flight bytes a number captures, and which buffers stay pinned until the release.


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

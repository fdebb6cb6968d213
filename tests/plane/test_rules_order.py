"""Rules E: ties, the work list, what advance returns and when; what each kind of notice tells."""

from dataclasses import replace

import pytest

from sim.model.cluster import Debloating
from sim.model.randomness import draw, stream
from sim.plane.interface import MAX_SERVED_SAMPLES, Marker, Notice, NoticeKind, OutputDelay, Ship, Trait
from tests.plane.lab import (
    FOREVER,
    channel,
    column,
    edge,
    idle_floating,
    next_notice,
    pipe,
    run,
    source,
    task,
    vertex,
    world,
)

# Rules E: ties between data events, the work list, what advance returns and when, verbs between two advances.


def phase(period, *names):
    return 1 + ((draw(stream(0, *names), 0) * period) >> 32)


def test_E1_tasks_before_the_reverse_line(build):
    """At 210 a record is written and a credit comes back: the element it lets go leaves one behind, so the reader takes two more."""
    plane = build(world([source(every=100), vertex()], [edge()], exclusive=1, floating=8, latency_ns=100))
    plane.hold(1)
    run(plane, 210)

    assert (*channel(plane, 0, "written", "sent"), idle_floating(plane)) == (200, 100, 7)

    run(plane, 311)

    assert idle_floating(plane) == 5


def test_E1_tasks_by_number(build):
    """Both sources end at 10; when task 0 reports its safe point, task 1 has not yet served."""
    plane = build(world([source(parallelism=2), vertex(parallelism=2)], [edge()]))
    run(plane, 5)
    plane.interrupt(1)
    plane.interrupt(0)

    assert Notice(10, NoticeKind.INTERRUPTED, 0) == plane.advance(100)
    assert column(plane.tasks(), "served") == [1, 0, 0, 0]
    assert Notice(10, NoticeKind.INTERRUPTED, 1) == plane.advance(100)


def test_E1_the_reverse_line_before_the_forward_line(build):
    """A resume for channel 0 and a marker on channel 1 arrive at the same time: at the marker's notice the channel is open again."""
    plane = build(world([source(parallelism=2, total=0), vertex(parallelism=2)], [edge()], latency_ns=100))
    plane.forward(0, Marker(1, Trait.BLOCKING))

    assert next_notice(plane).time == 100

    plane.forward(1, Marker(2))  # sent before the resume
    plane.resume(2)
    notice = next_notice(plane)

    assert (notice.time, notice.task) == (200, 3)
    assert column(plane.channels(), "blocked") == [0, 0]


def test_E1_forward_lines_by_host(build):
    """Task 0 on host 9, task 1 on host 5: with lines of their own the marker of host 5 arrives first, without in the order of sending."""
    seen = []
    for nic in ((1, 1), None):
        spec = world(
            [source(parallelism=2, total=0), vertex()],
            [edge(ship=Ship.GLOBAL)],
            hosts=(9, 5, 1),
            nic=nic,
            latency_ns=100,
        )
        plane = build(spec)
        plane.forward(0, Marker(1))
        plane.forward(1, Marker(1))
        seen.append([(n.channel, n.first) for n in run(plane, 200)])

    assert seen == [[(1, True), (0, False)], [(0, True), (1, False)]]


def test_E1_a_line_delivers_one_message_per_event(build):
    """Two markers arrive together: at the notice of the first, the second has not arrived."""
    plane = build(world([source(parallelism=2, total=0), vertex(parallelism=2)], [edge()], latency_ns=100))
    plane.hold(3)
    plane.forward(0, Marker(1))
    plane.forward(1, Marker(1))
    notice = next_notice(plane)

    assert (notice.time, notice.task) == (100, 2)
    assert column(plane.channels(), "received") == [0, 0]

    run(plane, 101)

    assert column(plane.channels(), "received") == [0, 1]


def test_E1_forward_lines_before_the_flush_timer(build):
    """A marker arrives when task 0 is due to flush: at its notice the open buffer is unsent."""
    vertices = [source("a", total=1), source("b", total=0), vertex("c"), vertex("d")]
    plane = build(world(vertices, [edge(0, 2, size=30), edge(1, 3)], buffer_timeout_ns=100_000, latency_ns=100))
    flush = phase(100_000, "flush", "a", 0)
    run(plane, flush - 100)
    plane.forward(1, Marker(1))
    notice = next_notice(plane)

    assert (flush, 30, 0) == (notice.time, *channel(plane, 0, "written", "sent"))

    run(plane, flush + 1)

    assert channel(plane, 0, "sent") == 30


def test_E1_the_flush_timer_before_the_debloat_timer(build):
    """Flushes at f, f + 1000 and f + 2000, the only measurement at f + 2000.  The first slice is read in 10 ns; the reader is held,
    and two slices lie with it when the gate counts what is in use."""
    flush = phase(1000, "flush", "a", 0)
    u = draw(stream(0, "debloat", "0-1", 0), 0)
    period = next(p for p in range(1000, 10**6) if 1 + ((u * p) >> 32) == flush + 2000)
    options = Debloating(period_ns=period, target_ns=16, samples=1, threshold_percent=1, min_bytes=1)
    spec = world(
        [source(every=1000), vertex()],
        [edge(size=30)],
        buffer_timeout_ns=1000,
        debloating=options,
        segment_bytes=1000,
        starting_buffer_bytes=1000,
    )
    plane = build(spec)
    run(plane, flush + 500)
    plane.hold(1)
    run(plane, flush + 2001)

    assert channel(plane, 0, "taken", "arrived", "received") == (30, 90, 2)
    assert int(plane.gates()[0]["buffer_bytes"]) == 30 * 16 // 10 // 2


def test_E1_flush_timers_by_task(build):
    """Two tasks flush at the same instant on one line: task 0 first."""

    def phases(seed):
        return [1 + ((draw(stream(seed, "flush", "a", i), 0) * 50) >> 32) for i in (0, 1)]

    seed = next(seed for seed in range(10**4) if 10 < phases(seed)[0] == phases(seed)[1])
    vertices = [source(parallelism=2, total=1), vertex(parallelism=2)]
    plane = build(world(vertices, [edge(size=30)], (0, 0, 1, 2), nic=(1, 1), buffer_timeout_ns=50, seed=seed))
    run(plane, phases(seed)[0] + 31)

    assert column(plane.channels(), "arrived") == [30, 0]


def test_E2_the_first_turns_are_by_number(build):
    plane = build(world([source(parallelism=3), vertex()], [edge(ship=Ship.GLOBAL)]))
    for t in (2, 0, 3, 1):
        plane.interrupt(t)

    assert [n.task for n in run(plane, 1)] == [0, 1, 2, 3]


def test_E3_control_before_data(build):
    """The record that ends at 10 has not ended for a control event at 10."""
    plane = build(pipe())

    assert Notice(10, NoticeKind.REACHED_TIME) == plane.advance(10)
    assert (plane.now, task(plane, 0, "served")) == (10, 0)
    assert plane.advance(10).kind == NoticeKind.REACHED_TIME  # nothing runs at 10 before time goes on
    assert task(plane, 0, "served") == 0

    plane.advance(11)

    assert task(plane, 0, "served") == 1


def test_E4_release_stands_behind_the_work_already_there(build):
    plane = build(world([source(parallelism=2, total=0), vertex()], [edge(ship=Ship.GLOBAL)]))
    run(plane, 5)
    plane.hold(0)
    plane.interrupt(0)
    plane.interrupt(1)
    plane.release(0)

    assert [n.task for n in run(plane, 10)] == [1, 0]


# What each kind of notice tells: fields that apply have their values, all others are -1 or False.


def test_a_safe_point_names_its_task(build):
    plane = build(pipe())
    run(plane, 25)
    plane.interrupt(1)

    assert Notice(30, NoticeKind.INTERRUPTED, 1) == next_notice(plane)


def test_an_exhausted_source_names_itself(build):
    plane = build(pipe(total=2))

    assert Notice(20, NoticeKind.EXHAUSTED, 0) == plane.advance(FOREVER)


def test_the_end_of_late_outputs_names_the_task(build):
    plane = build(world([source(total=1), replace(vertex(), lag=OutputDelay((100,), 2))], [edge()]))
    run(plane, 15)
    plane.wait_for_late(1)

    assert Notice(120, NoticeKind.DELAYED_OUTPUTS_WRITTEN, 1) == next_notice(plane)


def test_a_safe_point_of_a_task_that_waits_for_late_outputs_names_the_task(build):
    plane = build(world([source(total=1), replace(vertex(), lag=OutputDelay((100,), 2))], [edge()]))
    run(plane, 15)
    plane.wait_for_late(1)
    run(plane, 50)
    plane.interrupt(1)

    assert Notice(50, NoticeKind.INTERRUPTED, 1) == next_notice(plane)


@pytest.mark.parametrize("vertices", [[source(total=0), vertex()], [source(total=0)]])
def test_a_marker_that_has_left_tells_its_task_and_number(build, vertices):
    """With outputs and without: the work of the verb is done when time goes on."""
    plane = build(world(vertices, [edge()] if len(vertices) > 1 else []))
    plane.hold(0)
    plane.forward(0, Marker(7, Trait.ANNOUNCED))
    left = [notice for notice in run(plane, 10) if notice.kind == NoticeKind.ANNOUNCED_SENT]

    assert [Notice(0, NoticeKind.ANNOUNCED_SENT, 0, number=7)] == left


def test_an_announcement_tells_task_gate_and_number(build):
    """The second gate of task 2; the reader is held, so that the marker waits in its receive queue."""
    vertices = [source("a", total=0), source("b", total=0), vertex("c", service=(10, 10))]
    plane = build(world(vertices, [edge(0, 2), edge(1, 2)], latency_ns=50))
    plane.hold(2)
    plane.forward(1, Marker(7, Trait.ANNOUNCED))
    announced = [notice for notice in run(plane, 100) if notice.kind == NoticeKind.ANNOUNCED]

    assert [Notice(50, NoticeKind.ANNOUNCED, 2, gate=1, number=7)] == announced


def test_an_arrival_tells_task_gate_series_number_channel_and_which_marker_it_was(build):
    vertices = [source("a", total=0), source("b", 2, total=0), vertex("c", service=(10, 10))]
    plane = build(world(vertices, [edge(0, 2), edge(1, 2, Ship.GLOBAL)]))
    plane.forward(2, Marker(7, series=1))
    plane.forward(1, Marker(7, series=1))

    assert [
        Notice(0, NoticeKind.ARRIVED, 3, gate=1, series=1, number=7, channel=2, first=True),
        Notice(0, NoticeKind.ARRIVED, 3, gate=1, series=1, number=7, channel=1, last=True),
    ] == run(plane, 10)


@pytest.mark.parametrize("t", [0, 1])
def test_a_recovery_names_its_task(build, t):
    """A source and a reader alike."""
    plane = build(pipe(total=0))
    positions = {i: plane.position(i) for i in (0, 1)}
    plane.halt([0, 1])
    plane.start(positions)
    plane.release(t)

    assert Notice(0, NoticeKind.RECOVERED, t) == next_notice(plane)


def test_looks_see_what_was_served_at_each_time_up_to_a_notice(build):
    """As many as `advance` and `served` would show one by one; what is pending comes first."""
    plane, stepwise = build(pipe(total=9)), build(pipe(total=9))
    expected = [(stepwise.advance(at), stepwise.served().tolist())[1] for at in (15, 40, 65)]
    rows, notice = plane.sample_served(15, 25, 3)

    assert (expected, Notice(65, NoticeKind.REACHED_TIME)) == (rows.tolist(), notice)

    rows, notice = plane.sample_served(70, 10, 5)

    assert [stepwise.advance(at) for at in (70, 80, 90, 100)][-1] == notice
    assert ([notice.time, plane.now], notice.kind) == ([90, 90], NoticeKind.EXHAUSTED)
    assert rows[:, 0].tolist() == [6, 7, 8]

    plane.interrupt(1)
    rows, notice = plane.sample_served(400, 10, MAX_SERVED_SAMPLES + 5)
    assert (len(rows), notice.kind) == (0, NoticeKind.INTERRUPTED)
    assert len(plane.sample_served(400, 10, MAX_SERVED_SAMPLES + 5)[0]) == MAX_SERVED_SAMPLES

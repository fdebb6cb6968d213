"""What each kind of notice tells: fields that apply have their values, all others are -1 or False."""

from dataclasses import replace

import pytest

from sim.plane.interface import MAX_SERVED_SAMPLES, Marker, Notice, NoticeKind, Trait
from sim.plane.spec import Lag, Ship
from tests.plane.lab import FOREVER, edge, next_notice, pipe, run, source, vertex, world


def test_a_safe_point_names_its_task(build):
    plane = build(pipe())
    run(plane, 25)
    plane.interrupt(1)

    assert Notice(30, NoticeKind.SAFE, 1) == next_notice(plane)


def test_an_exhausted_source_names_itself(build):
    plane = build(pipe(total=2))

    assert Notice(20, NoticeKind.EXHAUSTED, 0) == plane.advance(FOREVER)


def test_the_end_of_late_outputs_names_the_task(build):
    plane = build(world([source(total=1), replace(vertex(), lag=Lag((100,), 2))], [edge()]))
    run(plane, 15)
    plane.wait_for_late(1)

    assert Notice(120, NoticeKind.NONE_LATE, 1) == next_notice(plane)


def test_a_safe_point_of_a_task_that_waits_for_late_outputs_names_the_task(build):
    plane = build(world([source(total=1), replace(vertex(), lag=Lag((100,), 2))], [edge()]))
    run(plane, 15)
    plane.wait_for_late(1)
    run(plane, 50)
    plane.interrupt(1)

    assert Notice(50, NoticeKind.SAFE, 1) == next_notice(plane)


@pytest.mark.parametrize("vertices", [[source(total=0), vertex()], [source(total=0)]])
def test_a_marker_that_has_left_tells_its_task_and_number(build, vertices):
    """With outputs and without: the work of the verb is done when time goes on."""
    plane = build(world(vertices, [edge()] if len(vertices) > 1 else []))
    plane.hold(0)
    plane.forward(0, Marker(7, Trait.ANNOUNCED))
    left = [notice for notice in run(plane, 10) if notice.kind == NoticeKind.LEFT]

    assert [Notice(0, NoticeKind.LEFT, 0, number=7)] == left


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

    assert (expected, Notice(65, NoticeKind.QUIET)) == (rows.tolist(), notice)

    rows, notice = plane.sample_served(70, 10, 5)

    assert [stepwise.advance(at) for at in (70, 80, 90, 100)][-1] == notice
    assert ([notice.time, plane.now], notice.kind) == ([90, 90], NoticeKind.EXHAUSTED)
    assert rows[:, 0].tolist() == [6, 7, 8]

    plane.interrupt(1)
    rows, notice = plane.sample_served(400, 10, MAX_SERVED_SAMPLES + 5)
    assert (len(rows), notice.kind) == (0, NoticeKind.SAFE)
    assert len(plane.sample_served(400, 10, MAX_SERVED_SAMPLES + 5)[0]) == MAX_SERVED_SAMPLES

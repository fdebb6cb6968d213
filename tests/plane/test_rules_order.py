"""Rules E: ties between data events, the work list, what advance returns and when, verbs between two advances."""

from sim.model.cluster import Debloating
from sim.model.randomness import draw, stream
from sim.plane.interface import Marker, Trait
from sim.plane.spec import Ship
from tests.plane.lab import (
    channel,
    edge,
    pipe,
    run,
    source,
    task,
    vertex,
    world,
)


def phase(period: int, *names: str | int) -> int:
    return 1 + ((draw(stream(0, *names), 0) * period) >> 32)


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


def test_E3_pending_notices_come_first_whatever_until_is(build):
    """A FINAL completes a count: two notices of one turn; the second is returned without any step."""
    plane = build(world([source(parallelism=2, total=0), vertex()], [edge(ship=Ship.GLOBAL)]))
    plane.forward(1, Marker(5))
    run(plane, 10)
    plane.forward(0, Marker(9, Trait.FINAL, 1))
    plane.forward(1, Marker(6, series=2))

    assert plane.advance(20).number == 9

    received = channel(plane, 1, "received")
    notice = plane.advance(0)

    assert (10, 5, received) == (notice.time, notice.number, channel(plane, 1, "received"))
    assert plane.advance(20).number == 6


def test_E4_release_stands_behind_the_work_already_there(build):
    plane = build(world([source(parallelism=2, total=0), vertex()], [edge(ship=Ship.GLOBAL)]))
    run(plane, 5)
    plane.hold(0)
    plane.interrupt(0)
    plane.interrupt(1)
    plane.release(0)

    assert [n.task for n in run(plane, 10)] == [1, 0]


def test_E4_scale_counts_for_services_that_begin_later(build):
    """The record in service ends at 10; the next takes 30."""
    plane = build(pipe())
    run(plane, 5)
    plane.scale(0, 3, 1)
    run(plane, 40)

    assert task(plane, 0, "served") == 1

    run(plane, 41)

    assert task(plane, 0, "served") == 2

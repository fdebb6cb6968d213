"""Rules R: receive buffers, credits, listeners, ready lists, what an arriving marker does."""

from sim.plane.interface import Marker, Notice, NoticeKind, Trait
from sim.plane.spec import Ship
from tests.plane.lab import channel, edge, idle_floating, pipe, run, source, vertex, world


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

"""Rules R: receive buffers, credits, listeners, ready lists, what an arriving marker does."""

from sim.plane.interface import Marker, Notice, NoticeKind, Trait
from sim.plane.spec import Ship
from tests.plane.lab import edge, pipe, run, source, vertex, world


def union(writers, *, total=-1, size=100, **options):
    """Several writers of one vertex, one reader, one gate: channel i comes from writer i."""
    return world([source(parallelism=writers, total=total), vertex()], [edge(ship=Ship.GLOBAL, size=size)], **options)


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

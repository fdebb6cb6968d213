"""M4 on gates with more channels than a word has bits: every channel counts once, whichever word its bit stands in."""

from sim.plane.interface import BARRIERS, Marker, Notice, NoticeKind, Ship, Trait
from tests.plane.lab import edge, run, source, vertex, world

WRITERS = 70


def union(gates=1):
    """Writers with nothing to write; one reader with a gate for each vertex of them."""
    sources = [source(f"a{i}", WRITERS, total=0) for i in range(gates)]
    edges = [edge(i, gates, Ship.GLOBAL) for i in range(gates)]
    return world([*sources, vertex("b", service=(10,) * gates)], edges)


def arrived(time, number, channel, *, first=False, last=False, series=BARRIERS, gate=0, gates=1):
    return Notice(time, NoticeKind.ARRIVED, WRITERS * gates, gate, series, number, channel, first, last)


def test_the_end_that_opens_a_count_counts_once(build):
    """Channel 40 ends first, channel 8 last: the end of the gate is that of 8."""
    plane = build(union())
    order = (40, *(t for t in range(WRITERS) if t not in (8, 40)), 8)
    for t in order:
        plane.forward(t, Marker(9, Trait.FINAL, series=1))

    assert [arrived(0, 9, 40, first=True, series=1), arrived(0, 9, 8, last=True, series=1)] == run(plane, 1)


def test_a_channel_that_ends_completes_the_counts_that_wait_for_it(build):
    """Two numbers wait for channel 67 alone; it had delivered a third."""
    plane = build(union())
    plane.forward(67, Marker(3))
    for t in range(WRITERS):
        if t != 67:
            plane.forward(t, Marker(1))
            plane.forward(t, Marker(2))
    for t in range(1, WRITERS):
        if t != 67:
            plane.forward(t, Marker(3))
    run(plane, 1)
    plane.forward(67, Marker(9, Trait.FINAL, series=1))

    assert [
        arrived(1, 9, 67, first=True, series=1),
        arrived(1, 1, 67, last=True),
        arrived(1, 2, 67, last=True),
    ] == run(plane, 2)

    plane.forward(0, Marker(3))

    assert [arrived(2, 3, 0, last=True)] == run(plane, 3)


def test_gates_side_by_side_keep_counts_of_their_own(build):
    """All channels of one gate deliver and end; nothing of it is seen on the gates before and behind it."""
    plane = build(union(3))
    for t in range(WRITERS, 2 * WRITERS):
        plane.forward(t, Marker(1))
        plane.forward(t, Marker(9, Trait.FINAL, series=1))
    seen = run(plane, 1)

    assert sorted({(notice.number, notice.gate) for notice in seen}) == [(1, 1), (9, 1)]

    for t in (0, 2 * WRITERS):
        plane.forward(t, Marker(1))

    assert [
        arrived(1, 1, 0, first=True, gate=0, gates=3),
        arrived(1, 1, 2 * WRITERS, first=True, gate=2, gates=3),
    ] == run(plane, 2)

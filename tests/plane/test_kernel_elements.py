"""The pool of buffers, markers and messages: what is not in use is in it."""

import pytest

from sim.plane import build
from sim.plane.interface import Marker, Trait
from sim.plane.spec import Ship
from tests.plane.lab import edge, run, source, vertex, world


def free_elements(world):
    """How many elements were given back."""
    count, e = 0, world.g.free
    while e >= 0:
        count, e = count + 1, world.elements[e].next
    return count


@pytest.mark.parametrize("local", [False, True])
def test_a_start_gives_every_element_back(local):
    """Buffers and markers in sender's queues, on lines and in receive queues, messages, watches: all are in the pool again."""
    spec = world(
        [source(), vertex(parallelism=2), vertex("c", service=(1000,))],
        [edge(ship=Ship.BROADCAST), edge(1, 2, Ship.GLOBAL)],
        (0, 0, 0, 0) if local else (0, 1, 2, 3),
        latency_ns=25,
    )
    plane = build(spec, "interpreted")
    tasks = range(4)
    beginning = {t: plane.position(t) for t in tasks}
    for _ in range(3):
        run(plane, plane.now + 300)
        plane.forward(0, Marker(1, Trait.ANNOUNCED))
        plane.forward(1, Marker(1))
        run(plane, plane.now + 30)
        plane.forward(1, Marker(2, Trait.PRIORITY))
        plane.forward(0, Marker(3, Trait.BLOCKING))
        run(plane, plane.now + 27)
        plane.halt(tasks)
        rows = plane._state

        assert rows.g.markers > 0
        assert free_elements(rows) < rows.g.fresh - 8

        plane.start(beginning)

        assert (0, rows.g.fresh) == (rows.g.markers, free_elements(rows))

        for t in tasks:
            plane.release(t)

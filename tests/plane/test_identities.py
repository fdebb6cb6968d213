"""With identities the reference knows which source record each record of a task comes from."""

from dataclasses import replace

from sim.plane.spec import Lag, Ship
from tests.oracle import ReferencePlane
from tests.plane.lab import edge, run, source, vertex, world


def test_records_keep_their_names_from_hand_to_hand():
    """Two sources of three records; a task in between writes each twice, late; the last one reads both copies."""
    vertices = [source(parallelism=2, total=3), replace(vertex("b"), lag=Lag((70,), 2)), vertex("c")]
    plane = ReferencePlane(world(vertices, [edge(0, 1, Ship.GLOBAL), edge(1, 2, fan_out=(2, 1))]), identities=True)
    run(plane, 10_000)
    records = [(t, k) for t in (0, 1) for k in range(3)]

    assert [records[:3], records[3:]] == [plane.served_records(t) for t in (0, 1)]
    assert records == sorted(plane.served_records(2))
    assert [record for record in plane.served_records(2) for _ in range(2)] == plane.served_records(3)

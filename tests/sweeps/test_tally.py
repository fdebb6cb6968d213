"""How a sweep is doing, in a few words."""

from sim.sweeps import tally as room
from sim.sweeps.tally import RowTally


def test_what_a_person_waits_for(monkeypatch):
    """How many failed, how fast it goes, what takes longest."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    tally = RowTally()
    assert "" == tally.text()

    now[0] = 2.0
    for name, status, wall_s in (("a" * 20, "ok", 1.0), ("b" * 20, "error", 7.25), ("c" * 20, "ok", 0.5)):
        tally.seen({"cell": name, "status": status, "wall_s": wall_s})
    assert "1 failed, 1.5/s, slowest 7.2 s (bbbbbbbb)" == tally.text()

    now[0] = 20.0
    assert "1 failed, 9.0/min, slowest 7.2 s (bbbbbbbb)" == tally.text()

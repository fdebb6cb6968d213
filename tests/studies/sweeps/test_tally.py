"""How a sweep is doing, in a few words."""

from sim.studies.sweeps import run as room
from sim.studies.sweeps.run import RowTally


def test_what_a_person_waits_for(monkeypatch):
    """How many failed, how fast it goes, what takes longest."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    tally = RowTally()
    assert tally.text() == ""

    now[0] = 2.0
    for name, status, wall_s in (("a" * 20, "ok", 1.0), ("b" * 20, "error", 7.25), ("c" * 20, "ok", 0.5)):
        tally.count({"cell": name, "status": status, "wall_s": wall_s})
    assert tally.text() == "1 failed, 1.5/s, slowest 7.2 s (bbbbbbbb)"

    now[0] = 20.0
    assert tally.text() == "1 failed, 9.0/min, slowest 7.2 s (bbbbbbbb)"


def test_a_rate_of_one_a_second_is_told_by_the_second(monkeypatch):
    """A slower one by the minute; without failures none are counted, and what took no time is the slowest only of its like."""
    now = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    tally = RowTally()
    tally.count({"cell": "a" * 20, "status": "ok", "wall_s": None})
    now[0] = 1.0
    assert tally.text() == "1.0/s, slowest 0.0 s (aaaaaaaa)"

    now[0] = 1.01
    tally.count({"cell": "b" * 20, "status": "error"})
    tally.count({"cell": "c" * 20, "status": "error", "wall_s": 0.4})
    now[0] = 4.0
    assert tally.text() == "2 failed, 45.0/min, slowest 0.4 s (cccccccc)"


def test_what_came_at_once_has_a_rate(monkeypatch):
    """Rows that are there in the same moment."""
    monkeypatch.setattr(room.time, "monotonic", lambda: 5.0)
    tally = RowTally()
    tally.count({"cell": "a" * 20, "status": "ok", "wall_s": 0.0})

    assert tally.text() == "1000000000.0/s, slowest 0.0 s (aaaaaaaa)"

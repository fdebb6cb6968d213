"""Laws 107 to 112, and 125: what a completed checkpoint names is stored, and read again."""

from sim.checkers import stored
from sim.checkers.stored import InFlight
from sim.checkers.story import Teller
from sim.metrics.journal import Entry, Happening

TELLER = Teller([Entry(5, Happening.COMPLETED, 3)], [("map", 0), ("map", 1)])


def facts(parts, sizes):
    return [violation.fact for violation in stored.in_no_file(3, 9, parts, sizes, TELLER)]


def test_in_flight_data_is_in_files_and_acknowledgements():
    assert [] == facts([InFlight(0, 300, 0, 7), InFlight(1, 100, 0, 7)], {7: 400})
    assert [] == facts([InFlight(0, 300, 300, None)], {})


def test_in_flight_data_that_is_nowhere():
    assert ["300 bytes in flight to map[0] are in no file"] == facts([InFlight(0, 300, 0, None)], {})
    assert ["400 bytes were in flight, their file has 399"] == facts([InFlight(0, 300, 0, 7), InFlight(1, 100, 0, 7)], {7: 399})


def test_stories_tell_of_the_checkpoint():
    for found in (
        stored.without_metadata(3, 9, TELLER),
        stored.cut_short(3, 9, "a file", 10, 5, TELLER),
        stored.unfounded(3, 9, 0, "1.sst", 2, "IN_PROGRESS", TELLER),
        stored.shared(3, 9, 0, 2, TELLER),
        stored.not_its_own(3, 9, 1, "deleted", TELLER),
        stored.read_too_little(3, 9, "in-flight data", 10, 1, TELLER),
    ):
        assert "checkpoint 3" == found.where
        assert ("0.000000 s  checkpoint 3 is complete",) == found.story

    assert (
        "map[0] refers to 1.sst of checkpoint 2, which is in progress" == stored.unfounded(3, 9, 0, "1.sst", 2, "IN_PROGRESS", TELLER).fact
    )

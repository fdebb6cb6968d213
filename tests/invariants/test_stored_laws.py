"""Laws 107 to 112, and 125: what a completed checkpoint names is stored, and read again."""

from sim.invariants import state
from sim.invariants.state import InFlight
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening

TELLER = JournalFormatter([Entry(5, Happening.COMPLETED, 3)], [("map", 0), ("map", 1)])


def facts(parts, sizes):
    return [violation.fact for violation in state.state_missing_from_files(3, 9, parts, sizes, TELLER)]


def test_in_flight_data_is_in_files_and_acknowledgements():
    assert facts([InFlight(0, 300, 0, 7), InFlight(1, 100, 0, 7)], {7: 400}) == []
    assert facts([InFlight(0, 300, 300, None)], {}) == []


def test_in_flight_data_that_is_nowhere():
    assert facts([InFlight(0, 300, 0, None)], {}) == ["300 bytes in flight to map[0] are in no file"]
    assert facts([InFlight(0, 300, 0, 7), InFlight(1, 100, 0, 7)], {7: 399}) == [
        "400 bytes were in flight, their file has 399"
    ]


def test_stories_tell_of_the_checkpoint():
    for found in (
        state.without_metadata(3, 9, TELLER),
        state.truncated_parts(3, 9, "a file", 10, 5, TELLER),
        state.missing_base_file(3, 9, 0, "1.sst", 2, "IN_PROGRESS", TELLER),
        state.shared_files_in_savepoint(3, 9, 0, 2, TELLER),
        state.unclaimed_files_used(3, 9, 1, "deleted", TELLER),
        state.restored_bytes_missing(3, 9, "in-flight data", 10, 1, TELLER),
    ):
        assert found.where == "checkpoint 3"
        assert found.story == ("0.000000 s  checkpoint 3 is complete",)

    assert (
        state.missing_base_file(3, 9, 0, "1.sst", 2, "IN_PROGRESS", TELLER).fact
        == "map[0] refers to 1.sst of checkpoint 2, which is in progress"
    )

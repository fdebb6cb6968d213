"""Recorded and simulated checkpoints of one job, explained side by side."""

from sim.history.compared.leading import LeadingPart, agree, leading
from sim.history.compared.side_by_side import side_by_side
from tests.history.conftest import DATA


def test_a_recording_and_its_simulation_name_the_same():
    found = side_by_side(DATA / "recordings" / "chain3-none-asyncflush500-aligned.json.gz")

    assert len(found.pairs) >= 8
    assert found.agreeing >= 0.85 * len(found.pairs)
    assert found.agreeing <= found.same_kind
    assert {"asynchronous part"} == {pair.recorded.what for pair in found.pairs}
    assert (found.read, found.simulated) == (found.simulated, found.simulated)


def test_parts_of_equal_length_may_both_lead():
    first, other = (
        {LeadingPart("sync", "a"): 100, LeadingPart("sync", "b"): 90},
        {LeadingPart("sync", "a"): 90, LeadingPart("sync", "b"): 105},
    )

    assert LeadingPart("sync", "a") == leading(first)
    assert agree(first, other)
    assert not agree({LeadingPart("call", ""): 1}, other)
    assert not agree({}, other)

"""Recorded and simulated checkpoints of one job, explained side by side."""

from sim.history.compared.leading import Part, agree, leading
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
    first, other = {Part("sync", "a"): 100, Part("sync", "b"): 90}, {Part("sync", "a"): 90, Part("sync", "b"): 105}

    assert Part("sync", "a") == leading(first)
    assert agree(first, other)
    assert not agree({Part("call", ""): 1}, other)
    assert not agree({}, other)

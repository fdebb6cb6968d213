"""What asynchronous phases tell where operators upload themselves, and where channel state is written beside state."""

import pytest

from benchmarks.lab.as_answers import as_answers
from sim.jobs.infer.scenario import infer_scenario
from sim.model.units import parse_duration
from tests.places import DATA


def document(recording):
    return infer_scenario(as_answers(DATA / f"{recording}.json.gz")).document


def test_operators_that_upload_beside_channel_state():
    """500 ms each in the recording, in whose unaligned snapshots each vertex also has a file of its own for data in flight."""
    inferred = document("what-ifs/chain3-severe-asyncflush500-unaligned")

    assert [
        pytest.approx(parse_duration(inferred["job"][vertex]["snapshot"]["async"]) / 10**6, abs=10)
        for vertex in ("c1", "c2", "c3")
    ] == [525, 525, 525]
    # of the source alone
    assert pytest.approx(parse_duration(inferred["storage"]["file-latency"]) / 10**6, abs=15) == 20


def test_slow_files_of_channel_state_are_no_work():
    """150 ms and 300 ms to close a file, of all vertices alike."""
    for recording in ("held-out/slowfs-unaligned-chain", "what-ifs/p2-severe-unaligned-slowdfs"):
        assert not any("async" in vertex.get("snapshot", {}) for vertex in document(recording)["job"].values())

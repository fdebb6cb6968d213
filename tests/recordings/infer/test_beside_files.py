"""What asynchronous phases tell where operators upload themselves, and where channel state is written beside state."""

from pathlib import Path

import pytest

from benchmarks.as_answers import as_answers
from sim.recordings.infer.scenario import infer_scenario
from sim.units import parse_byte_rate, parse_duration

DATA = Path(__file__).parents[2] / "data"


def document(recording):
    return infer_scenario(as_answers(DATA / f"{recording}.json.gz")).document


def test_operators_that_upload_behind_the_barrier():
    """500 ms each in the recording; state is too small for a file."""
    job = document("recordings/chain3-none-asyncflush500-aligned")["job"]

    assert [520, 520, 520] == [
        pytest.approx(parse_duration(job[vertex]["snapshot"]["async"]) / 10**6, abs=10) for vertex in ("c1", "c2", "c3")
    ]


def test_storage_is_told_by_channel_state_where_nothing_else_is_written():
    """3 MB/s and 150 ms to close a file in the recording, whose last vertex writes no state."""
    storage = document("held-out/slowfs-unaligned-chain")["storage"]

    assert 3_000_000 == pytest.approx(parse_byte_rate(storage["bandwidth"]), rel=0.1)
    assert 150 == pytest.approx(parse_duration(storage["file-latency"]) / 10**6, rel=0.1)

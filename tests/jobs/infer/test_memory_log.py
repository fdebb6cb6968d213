"""A changelog in memory is told by its sizes, and what it costs by its synchronous part."""

from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration

DATA = Path(__file__).parents[2] / "data"


def state(recording):
    return infer_scenario(read_saved(DATA / recording)).document["job"]


def test_one_in_memory_is_told_whatever_the_configuration_says():
    """The synchronous part of this job took 1 to 90 ms; it is the copying of changes, and no pause of the operator."""
    vertex = state("changelog/rocksdb-memory.zip")["map"]

    assert vertex["state"]["changelog"]["storage"] == "memory"
    assert 1_000 <= parse_duration(vertex["state"]["changelog"]["change-copy"]) <= 10_000
    assert "snapshot" not in vertex


def test_what_a_changelog_hides_of_the_backend_below_is_asked_for():
    """Predicted from this job, the same without a changelog took a third of what it does: 115 for 336 ms."""
    unknown = infer_scenario(read_saved(DATA / "users-jobs" / "R5-changelog-aligned.zip")).unknown

    assert "profile+out-writer: How fast does RocksDB write its memtables to disk?" in unknown


@pytest.mark.parametrize("name", ["R5-changelog-aligned", "R5-changelog-unaligned"])
def test_one_in_files_is_left_alone(name):
    logs = [
        vertex["state"]["changelog"]
        for vertex in state(f"users-jobs/{name}.zip").values()
        if "changelog" in vertex.get("state", {})
    ]

    assert logs == [{"materialize": "20 s"}]

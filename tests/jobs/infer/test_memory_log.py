"""A changelog in memory is told by its sizes, and what it costs by its synchronous part."""

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_duration
from tests.places import DATA


def state(recording):
    return infer_scenario(read_saved(DATA / recording)).document["job"]


def test_one_in_memory_is_told_whatever_the_configuration_says():
    """The synchronous part of this job took 1 to 90 ms; it is the copying of changes, and no pause of the operator."""
    vertex = state("changelog/rocksdb-memory.zip")["map"]

    assert vertex["state"]["changelog"]["storage"] == "memory"
    assert 1_000 <= parse_duration(vertex["state"]["changelog"]["change-copy"]) <= 10_000
    assert "snapshot" not in vertex

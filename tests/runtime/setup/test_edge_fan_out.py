"""An edge may carry another share of its writer's records than the others: what readers count, in both engines."""

import pytest

from sim.jobs.evidence.envelope import utilisation
from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.oracle import oracle

SPLIT = """\
# How many records reach each reader?
version: 1
job:
  source: {source: {rate: 1k/s, record: 100 B}}
  rare: {input: {source: {ship: hash, fan-out: 0.01}}, service: 10 us}
  often: {input: {source: {ship: hash, fan-out: 0.5}}, service: 10 us, fan-out: 3}
  twice: {input: {often: {ship: hash, fan-out: 2}}, service: 10 us}
  usual: {input: {often: hash}, service: 10 us}
checkpoint: {interval: 1 s}
run: {duration: 4 s}
"""


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_readers_of_one_vertex_count_what_their_edge_carries(engine):
    """Readers count shares of what their writer reads or, a source, emits; nothing is lost, and checkpoints hold it."""
    (scenario,) = loads(SPLIT).scenarios
    result = simulate(scenario, engine=engine)
    read = result.tables["tasks"].groupby("vertex")["numRecordsIn"].sum()

    assert tuple(result.violations) == ()
    assert pytest.approx(40, abs=2) == read["rare"]
    assert pytest.approx(2000, rel=0.05) == read["often"]
    assert pytest.approx(4000, rel=0.05) == read["twice"]
    assert pytest.approx(6000, rel=0.05) == read["usual"]
    assert (result.checkpoints["status"] == "COMPLETED").sum() >= 2


def test_the_load_of_a_reader_is_that_of_its_edge():
    """Ten milliseconds a record are too many for 500/s, and not for 10/s."""

    def load(edge):
        return float(
            utilisation(
                loads(SPLIT.replace(f"{edge}}}}}, service: 10 us", f"{edge}}}}}, service: 10 ms")).scenarios[0].job
            )
        )

    assert pytest.approx(load("fan-out: 0.01")) == 0.1
    assert pytest.approx(load("fan-out: 0.5")) == 5


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_readers_of_a_window_count_what_their_edge_carries(engine):
    """What fires goes to every edge, by its own amount; the time of firing is by that of the vertex."""
    window = SPLIT.replace(
        "service: 10 us, fan-out: 3}",
        "service: 10 us, fan-out: 3, window: {tumbling: 500 ms, time: processing, fire: 50 us}}",
    )
    result = simulate(loads(window).scenarios[0], engine=engine)
    read = result.tables["tasks"].groupby("vertex")["numRecordsIn"].sum()

    assert tuple(result.violations) == ()
    assert read["usual"] > 4000
    assert pytest.approx(read["usual"] / read["twice"], rel=0.05) == 1.5

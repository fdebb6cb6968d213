"""Laws 61 and 62, and the turns of a join: edges carry what is their own, several between two vertices are as many single ones."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Distribution, Input, Job, Source, Vertex
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import ALIGNED, MS, UNALIGNED, quick, scenario, source

RECORDS = 40  # of each subtask of the source
SHIPS = ("hash", "rebalance", "rescale", "broadcast", "global")


def edge(ship="rebalance", fan_out=None, *, size=500, service_ns=1 * MS):
    return Input("a", ship, service=Distribution(service_ns), record_bytes=Distribution(size), fan_out=fan_out)


def job(*inputs, parallelism=2, joined=False, total=None):
    given = replace(source("a", parallelism), source=Source((), total))
    return Job((given, Vertex("b", parallelism, inputs=inputs, joined=joined)))


@quick
@given(
    st.lists(
        st.tuples(st.sampled_from(SHIPS), st.sampled_from([None, Fraction(0), Fraction(1, 2), Fraction(2)])),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_law_61_every_edge_carries_its_share_of_what_is_written(edges, joined):
    """Whatever the number of edges: each copy is read once, a broadcast one by every subtask."""
    given = job(*[edge(ship, fan_out) for ship, fan_out in edges], joined=joined, total=RECORDS)
    tasks = simulate(scenario(given, UNALIGNED, seconds=60)).tables["tasks"]
    copies = [(1 if fan_out is None else fan_out) * (2 if ship == "broadcast" else 1) for ship, fan_out in edges]

    assert 2 * RECORDS * sum(copies) == tasks.loc[tasks["vertex"] == "b", "numRecordsIn"].sum()


@pytest.mark.parametrize("joined", [False, True])
def test_law_62_several_edges_hold_as_much_as_that_many_single_ones(joined):
    """In-flight data of k edges is k times that of one; their barriers are one checkpoint."""

    def persisted(edges):
        given = job(*[edge() for _ in range(edges)], joined=joined)
        done = simulate(scenario(given, UNALIGNED, seconds=6)).tables["checkpoints"]
        return done.loc[done["status"] == "COMPLETED", "persisted_data"].median()

    assert pytest.approx([persisted(edges) / persisted(1) for edges in (2, 3)], rel=0.1) == [2, 3]


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
@pytest.mark.parametrize("joined", [False, True])
def test_law_62_a_join_of_a_stream_with_itself_never_stands_still(kind, joined):
    """The barrier on one gate waits for the other while the writer has one output full."""
    given = job(edge("hash", size=2000), edge("rebalance", Fraction(1, 10), size=20, service_ns=3 * MS), joined=joined)
    done = simulate(scenario(given, kind, seconds=12)).tables["checkpoints"]

    assert (done["status"] == "COMPLETED").sum() >= 2
    assert {""} == set(done["x_standstill"])


@pytest.mark.parametrize(("together", "shares"), [("", [1, 1, 1]), ("left", [1, 1, 2])])
def test_a_join_gives_each_of_its_inputs_a_turn(together, shares):
    """However many edges an input is made of: a union of two is served as often as the other input."""
    unions = {"a": together, "b": together, "c": ""}
    inputs = tuple(
        Input(name, service=Distribution(MS), record_bytes=Distribution(500), union=union)
        for name, union in unions.items()
    )
    given = Job((*map(source, unions), Vertex("join", inputs=inputs, joined=True)))
    tasks = simulate(scenario(given, UNALIGNED, seconds=20)).tables["tasks"].set_index("vertex")
    emitted = [tasks.loc[name, "numRecordsIn"] for name in unions]

    assert shares == pytest.approx([count / emitted[0] for count in emitted], rel=0.1)

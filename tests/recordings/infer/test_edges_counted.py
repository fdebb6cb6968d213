"""How many records each edge carries, from counters of vertices; what they leave open, and where they contradict each other."""

import math
from dataclasses import dataclass, field

import pytest

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.edges.counted import edge_flows, unbalanced
from sim.recordings.infer.flows import Flow, Flows
from sim.recordings.infer.work import _amounts
from sim.recordings.source.rest.job import RestInput, RestVertex


@dataclass
class Job:
    """The part of answers that edges are inferred from."""

    vertices: list[RestVertex]
    known: dict = field(default_factory=dict)

    def readers(self, name):
        return [vertex for vertex in self.vertices if any(edge.upstream == name for edge in vertex.inputs)]


def vertex(name, *upstreams, ship="HASH", parallelism=1):
    return RestVertex(name, name, (name,), parallelism, 128, tuple(RestInput(upstream, ship) for upstream in upstreams))


def flow(read=math.nan, written=math.nan, size=100.0):
    """Records per second of one subtask over 100 s."""
    return Flows((Flow(100_000.0, 100 * read, 100 * written, 100 * read * size, 100 * written * size),), "metrics of 100 s")


SPLIT = [vertex("sql"), vertex("rare", "sql"), vertex("often", "sql")]
RATES = {"sql": flow(written=7861.0), "rare": flow(1.0, size=300.0), "often": flow(7860.0)}


def drafted(vertices, flowed):
    """What the importer writes about inputs."""
    draft, job = Draft(), Job(vertices)
    edges = edge_flows(job, flowed)
    for reader in vertices:
        for edge in reader.inputs:
            draft.put(f"input.{edge.upstream}", edge.ship.lower(), "in the plan", job=reader.name)
        _amounts(draft, job, reader, flowed, edges)
    return draft


def test_two_outputs_of_very_different_rates():
    """The reader of a single vertex counts its edge exactly; an edge that carries nearly all is no edge of its own."""
    draft = drafted(SPLIT, RATES)

    assert {"sql": {"ship": "hash", "fan-out": "0.0001272", "record": "300 B"}} == draft.document["job"]["rare"]["input"]
    assert {"sql": "hash"} == draft.document["job"]["often"]["input"]
    assert "1/s into 'rare'" in draft.comments["job.rare.input.sql.fan-out"]
    assert "in the plan" == draft.comments["job.rare.input.sql.ship"]
    assert [] == draft.unknown


def test_every_output_gets_every_record():
    """Nothing is said of the edges."""
    draft = drafted(SPLIT, {"sql": flow(written=1000.0), "rare": flow(1000.0), "often": flow(995.0)})

    assert [{"sql": "hash"}] * 2 == [draft.document["job"][name]["input"] for name in ("rare", "often")]


def test_what_an_operator_emits_is_held_to_what_it_reads():
    """300 of 1000 records read go one way, 600 the other."""
    vertices = [vertex("source"), vertex("split", "source"), vertex("left", "split"), vertex("right", "split")]
    rates = {"source": flow(written=1000.0), "split": flow(1000.0, 900.0), "left": flow(300.0), "right": flow(600.0)}
    jobs = drafted(vertices, rates).document["job"]

    assert ["0.3", "0.6"] == [jobs[name]["input"]["split"]["fan-out"] for name in ("left", "right")]


def test_the_last_unknown_input_is_what_the_others_leave():
    """A join reads 300/s; 200/s of them come from a vertex that nobody else reads."""
    vertices = [vertex("other"), vertex("sql"), vertex("rare", "sql"), vertex("join", "sql", "other")]
    rates = {"other": flow(written=200.0), "sql": flow(written=1000.0), "rare": flow(900.0), "join": flow(300.0)}
    edges = edge_flows(Job(vertices), rates)

    assert 100 == pytest.approx(edges["sql", "join"].per_second)
    assert "less what its other inputs carry" in edges["sql", "join"].source


def test_what_counters_do_not_tell_apart_is_asked_with_bounds():
    """Two vertices feed two joins: only sums are counted."""
    vertices = [vertex("a"), vertex("b"), vertex("left", "a", "b"), vertex("right", "a", "b")]
    draft = drafted(vertices, {"a": flow(written=1000.0), "b": flow(written=400.0), "left": flow(500.0), "right": flow(900.0)})

    assert 4 == len(draft.unknown)
    assert "left: How many records does 'a' send it per record that it emits?" == draft.unknown[0]
    assert "between 0 and 0.5, nothing tells its outputs apart" in draft.comments["job.left.input.a.fan-out"].replace("\n", " ")
    assert "0.5" == draft.document["job"]["left"]["input"]["a"]["fan-out"]


@pytest.mark.parametrize(
    ("rates", "reads"),
    [
        (RATES, []),
        ({"sql": flow(written=1000.0), "rare": flow(1.0), "often": flow(10.0)}, ["its readers read 11/s together"]),
        ({"sql": flow(written=1000.0), "rare": flow(1.0), "often": flow(2000.0)}, ["'often' reads 2,000/s"]),
        ({"sql": flow(written=1.0), "rare": flow(1.1), "often": flow(0.9)}, []),  # chance
        ({"sql": flow(), "rare": flow(1.0), "often": flow(2000.0)}, []),  # not counted
    ],
)  # fmt: skip
def test_flows_that_do_not_balance_are_named(rates, reads):
    assert [f"'sql' writes 1,000 records/s and {text}" for text in reads] == list(unbalanced(Job(SPLIT), rates))


def test_a_broadcast_record_is_read_by_every_subtask():
    vertices = [vertex("rules"), vertex("apply", "rules", ship="BROADCAST", parallelism=4)]

    assert [] == list(unbalanced(Job(vertices), {"rules": flow(written=10.0), "apply": flow(40.0)}))

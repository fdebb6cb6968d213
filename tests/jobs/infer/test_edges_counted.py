"""How many records each edge carries, from counters of vertices; what they leave open, and where they contradict each other."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.edges import EdgeFlows, edge_flows, unbalanced
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.service_times import infer_work
from sim.jobs.source.rest_job import RestInput, RestVertex


@dataclass
class Job:
    """The part of answers that edges are inferred from."""

    vertices: list[RestVertex]
    known: dict = field(default_factory=dict)
    checkpoints: tuple = ()

    def __post_init__(self):
        self.known = {vertex.name: {} for vertex in self.vertices}  # no samples of metrics
        self.job, self.snapshot = SimpleNamespace(state="RUNNING"), SimpleNamespace(job="1")

    def vertex(self, name):
        return next(vertex for vertex in self.vertices if vertex.name == name)

    def readers(self, name):
        return [vertex for vertex in self.vertices if any(edge.upstream == name for edge in vertex.inputs)]


def vertex(name, *upstreams, ship="HASH", parallelism=1):
    return RestVertex(name, name, (name,), parallelism, 128, tuple(RestInput(upstream, ship) for upstream in upstreams))


def flow(read=math.nan, written=math.nan, size=100.0):
    """Records per second of one subtask over 100 s."""
    return Flows(
        (Flow(100_000.0, 100 * read, 100 * written, 100 * read * size, 100 * written * size),), "metrics of 100 s"
    )


SPLIT = [vertex("sql"), vertex("rare", "sql"), vertex("often", "sql")]
RATES = {"sql": flow(written=7861.0), "rare": flow(1.0, size=300.0), "often": flow(7860.0)}


def drafted(vertices, flowed):
    """What the importer writes about vertices."""
    draft, job = Draft(), Job(vertices)
    contradicted = {place for found in unbalanced(job, flowed) for place in found.edges}
    carried = EdgeFlows(flowed, edge_flows(job, flowed), contradicted)
    for row in vertices:
        infer_work(draft, job, row, carried)
    return draft


def test_two_outputs_of_very_different_rates():
    """The reader of a single vertex counts its edge exactly; an edge that carries nearly all is not a edge of its own."""
    draft = drafted(SPLIT, RATES)

    assert draft.document["job"]["rare"]["input"] == {
        "sql": {"ship": "hash", "fan-out": "0.0001272", "record": "300 B"}
    }
    assert draft.document["job"]["often"]["input"] == {"sql": "hash"}
    assert "1/s into 'rare'" in draft.comments["job.rare.input.sql.fan-out"]
    assert draft.comments["job.rare.input.sql.ship"] == "HASH in the plan"
    assert [text for text in draft.unknown if "per second" not in text and "busy" not in text] == []


def test_every_output_gets_every_record():
    """Nothing is said of the edges."""
    draft = drafted(SPLIT, {"sql": flow(written=1000.0), "rare": flow(1000.0), "often": flow(995.0)})

    assert [draft.document["job"][name]["input"] for name in ("rare", "often")] == [{"sql": "hash"}] * 2


def test_what_an_operator_emits_is_held_to_what_it_reads():
    """300 of 1000 records read go one way, 600 the other."""
    vertices = [vertex("source"), vertex("split", "source"), vertex("left", "split"), vertex("right", "split")]
    rates = {"source": flow(written=1000.0), "split": flow(1000.0, 900.0), "left": flow(300.0), "right": flow(600.0)}
    jobs = drafted(vertices, rates).document["job"]

    assert [jobs[name]["input"]["split"]["fan-out"] for name in ("left", "right")] == ["0.3", "0.6"]


def test_the_last_unknown_input_is_what_the_others_leave():
    """A join reads 300/s; 200/s of them come from a vertex that nobody else reads."""
    vertices = [vertex("other"), vertex("sql"), vertex("rare", "sql"), vertex("join", "sql", "other")]
    rates = {"other": flow(written=200.0), "sql": flow(written=1000.0), "rare": flow(900.0), "join": flow(300.0)}
    edges = edge_flows(Job(vertices), rates)

    assert pytest.approx(edges["join", 0].likely_records) == 100
    assert edges["join", 0].records.is_exact
    assert "less what its other inputs carry" in edges["join", 0].source


def test_what_counters_do_not_tell_apart_is_asked_with_bounds():
    """Two vertices feed two joins: only sums are counted."""
    vertices = [vertex("a"), vertex("b"), vertex("left", "a", "b"), vertex("right", "a", "b")]
    draft = drafted(
        vertices, {"a": flow(written=1000.0), "b": flow(written=400.0), "left": flow(500.0), "right": flow(900.0)}
    )

    jobs = draft.document["job"]
    shares = {
        (name, up): Fraction(jobs[name]["input"][up]["fan-out"]) for name in ("left", "right") for up in ("a", "b")
    }

    assert "left: How many records does 'a' send it per record that it emits?" in draft.unknown
    assert "between 0.1 and 0.5, nothing tells its outputs apart" in draft.comments["job.left.input.a.fan-out"].replace(
        "\n", " "
    )
    assert [
        pytest.approx(float(1000 * shares[name, "a"] + 400 * shares[name, "b"]), rel=1e-3) for name in ("left", "right")
    ] == [500, 900]


@pytest.mark.parametrize(
    ("rates", "reads"),
    [
        (RATES, []),
        ({"sql": flow(written=1000.0), "rare": flow(1.0), "often": flow(10.0)}, ["its readers read 11/s together"]),
        ({"sql": flow(written=1000.0), "rare": flow(1.0), "often": flow(2000.0)}, ["'often' reads 2,000/s"]),
        ({"sql": flow(written=1.0), "rare": flow(1.1), "often": flow(0.9)}, []),  # chance
        ({"sql": flow(), "rare": flow(1.0), "often": flow(2000.0)}, []),  # not counted
    ],
)
def test_flows_that_do_not_balance_are_named(rates, reads):
    assert [f"'sql' writes 1,000 records/s and {text}" for text in reads] == [
        found.phrase for found in unbalanced(Job(SPLIT), rates)
    ]


def test_a_broadcast_record_is_read_by_every_subtask():
    vertices = [vertex("rules"), vertex("apply", "rules", ship="BROADCAST", parallelism=4)]

    assert list(unbalanced(Job(vertices), {"rules": flow(written=10.0), "apply": flow(40.0)})) == []


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (1400.0, []),
        (1500.0, ["'join' reads 1,500 records/s and its inputs write 1,400/s together"]),
        (1200.0, ["'join' reads 1,200 records/s and its inputs write 1,400/s for it alone"]),
        (900.0, ["'a' writes 1,000 records/s and its readers read 900/s together"]),
    ],
)
def test_inputs_that_do_not_make_up_what_is_read_are_named(read, texts):
    vertices = [vertex("a"), vertex("b"), vertex("join", "a", "b")]
    rates = {"a": flow(written=1000.0), "b": flow(written=400.0), "join": flow(read)}

    assert texts == [found.phrase for found in unbalanced(Job(vertices), rates)]


def test_a_flow_that_does_not_balance_is_no_fact_of_the_scenario():
    """A reader counts twice what is written: between the two, and asked."""
    draft = drafted(SPLIT, {"sql": flow(written=1000.0), "rare": flow(1000.0), "often": flow(2000.0)})

    assert "often: How many records does 'sql' send it per record that it emits?" in draft.unknown
    assert "between 1 and 2, the counters of its two ends contradict" in draft.comments[
        "job.often.input.sql.fan-out"
    ].replace("\n", " ")


def test_what_a_reader_of_one_input_counts_came_over_its_edge():
    """A sink's writer counts 99.7/s out, for it writes them to files; into the coordinator of its compactor go 1.1/s."""
    draft = drafted(
        [vertex("src"), vertex("writer", "src"), vertex("compact-coordinator", "writer", ship="FORWARD")],
        {"src": flow(written=99.6), "writer": flow(99.6, 99.7), "compact-coordinator": flow(1.1)},
    )
    inlet = draft.document["job"]["compact-coordinator"]["input"]["writer"]

    assert inlet["fan-out"] == "0.01104"
    assert [text for text in draft.unknown if "send it" in text] == []
    origin = " ".join(draft.comments["job.compact-coordinator.input.writer.fan-out"].split())
    assert origin.startswith(
        "1.1/s into 'compact-coordinator', which reads nothing else / 99.6/s into 'writer'; that counts 99.7/s out"
    )


def test_a_join_of_a_stream_with_itself_has_two_edges():
    """It reads twice what is written: both have all of it, and nothing else is told of their sizes than their sum."""
    draft = drafted(
        [vertex("src"), vertex("join", "src", "src")],
        {"src": flow(written=1000.0, size=300.0), "join": flow(2000.0, size=150.0)},
    )
    inputs = draft.document["job"]["join"]["input"]

    assert list(inputs) == ["src", "src-2"]
    assert (inputs["src-2"]["from"], inputs["src-2"]["ship"]) == ("src", "hash")
    assert [text for text in draft.unknown if "send it" in text] == []
    assert [inputs[name]["record"] for name in inputs] == ["150 B"] * 2
    assert "at most 300 B" in draft.comments["job.join.input.src-2.record"].replace("\n", " ")


def test_edges_between_two_vertices_that_carry_less_are_asked_with_bounds():
    """1,200 of 1,000 written: each has at least 200, and together they have all."""
    draft = drafted([vertex("src"), vertex("join", "src", "src")], {"src": flow(written=1000.0), "join": flow(1200.0)})
    inputs = draft.document["job"]["join"]["input"]

    assert [inputs[name]["fan-out"] for name in ("src", "src-2")] == ["0.6", "0.6"]
    assert "between 0.2 and 1," in draft.comments["job.join.input.src.fan-out"].replace("\n", " ")


def test_records_of_each_edge_have_their_own_size():
    """As many on both edges, but larger on one; what is written is not the sum of both."""
    draft = drafted(
        SPLIT, {"sql": flow(written=1000.0, size=400.0), "rare": flow(1000.0, size=300.0), "often": flow(1000.0)}
    )
    jobs = draft.document["job"]

    assert jobs["sql"]["source"]["record"] == "300 B"
    assert [jobs[name]["input"] for name in ("rare", "often")] == [
        {"sql": "hash"},
        {"sql": {"ship": "hash", "record": "100 B"}},
    ]


def test_a_broadcast_record_is_as_large_as_one_of_its_copies():
    vertices = [
        vertex("rules"),
        vertex("data"),
        RestVertex("op", "op", ("op",), 4, 128, (RestInput("rules", "BROADCAST"), RestInput("data", "HASH"))),
    ]
    rates = {"rules": flow(written=10.0, size=800.0), "data": flow(written=100.0), "op": flow(140.0, size=18000 / 140)}

    assert drafted(vertices, rates).document["job"]["rules"]["source"]["record"] == "200 B"


@pytest.mark.parametrize(("upstreams", "is_question"), [(("a", "b"), False), (("a", "b", "a"), True)])
def test_a_union_in_front_of_a_join_is_is_question_for(upstreams, is_question):
    """The plan draws three edges, and does not say which of them are one input."""
    rates = {"a": flow(written=100.0), "b": flow(written=100.0), "join": flow(100.0 * len(upstreams))}
    draft = drafted([vertex("a"), vertex("b"), vertex("join", *upstreams)], rates)

    assert is_question == any("Which of its edges are a union" in text for text in draft.unknown)
    assert is_question == draft.comments["job.join.combine"].startswith("UNKNOWN: Which of its edges are a union")

"""How many records each edge carries, from counters of vertices; what they leave open, and where they contradict each other."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.edges import edge_flows, find_unbalanced
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.service_times import infer_work
from sim.jobs.source.rest_job import RestInput, RestVertex


@dataclass
class Job:
    """The part of answers that edges are inferred from."""

    vertices: list[RestVertex]
    series_by_vertex: dict = field(default_factory=dict)
    checkpoints: tuple = ()

    def __post_init__(self):
        self.series_by_vertex = {vertex.name: {} for vertex in self.vertices}  # no samples of metrics
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


def drafted(vertices, flowed):
    """What the importer writes about vertices."""
    draft, job = Draft(), Job(vertices)
    carried = edge_flows(job, flowed)
    for row in vertices:
        infer_work(draft, row, carried)
    return draft


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
    assert "between 0.1 and 0.5: its outputs are counted together" in draft.comments[
        "job.left.input.a.fan-out"
    ].replace("\n", " ")
    assert [
        pytest.approx(float(1000 * shares[name, "a"] + 400 * shares[name, "b"]), rel=1e-3) for name in ("left", "right")
    ] == [500, 900]


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

    assert texts == [found.phrase for found in find_unbalanced(Job(vertices), rates)]


def test_a_flow_that_does_not_balance_is_no_fact_of_the_scenario():
    """A reader counts twice what is written: between the two, and asked."""
    draft = drafted(SPLIT, {"sql": flow(written=1000.0), "rare": flow(1000.0), "often": flow(2000.0)})

    assert "often: How many records does 'sql' send it per record that it emits?" in draft.unknown
    assert "between 1 and 2; the counters of its two ends contradict" in draft.comments[
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
        "1.1/s into 'compact-coordinator', which reads nothing else / 99.6/s into 'writer', whose 99.7/s out include"
    )


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


@pytest.mark.parametrize(("upstreams", "is_question"), [(("a", "b"), False), (("a", "b", "a"), True)])
def test_a_union_in_front_of_a_join_is_is_question_for(upstreams, is_question):
    """The plan draws three edges, and does not say which of them are one input."""
    rates = {"a": flow(written=100.0), "b": flow(written=100.0), "join": flow(100.0 * len(upstreams))}
    draft = drafted([vertex("a"), vertex("b"), vertex("join", *upstreams)], rates)

    assert is_question == any("Which of its edges are a union" in text for text in draft.unknown)
    assert is_question == draft.comments["job.join.combine"].startswith("UNKNOWN: Which of its edges are a union")

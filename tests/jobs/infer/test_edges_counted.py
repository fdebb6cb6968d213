"""How many records each edge carries, from counters of vertices; what they leave open, and where they contradict each other."""

from fractions import Fraction

import pytest

from sim.jobs.infer.work import find_unbalanced
from tests.jobs.infer.made_jobs import MadeJob, comment_of, flow, vertex, worked

SPLIT = [vertex("sql"), vertex("rare", "sql"), vertex("often", "sql")]


def test_what_counters_do_not_tell_apart_is_asked():
    """Two vertices feed two joins: only sums are counted."""
    vertices = [vertex("a"), vertex("b"), vertex("left", "a", "b"), vertex("right", "a", "b")]
    draft = worked(
        vertices, {"a": flow(written=1000.0), "b": flow(written=400.0), "left": flow(500.0), "right": flow(900.0)}
    )

    jobs = draft.document["job"]
    shares = {
        (name, up): Fraction(jobs[name]["input"][up]["fan-out"]) for name in ("left", "right") for up in ("a", "b")
    }

    assert "left: How many records does 'a' send over this edge per record that 'a' emits?" in draft.unknown
    assert "in proportion to what the upstreams of its reader write" in comment_of(draft, "job.left.input.a.fan-out")
    assert [
        pytest.approx(float(1000 * shares[name, "a"] + 400 * shares[name, "b"]), rel=1e-3) for name in ("left", "right")
    ] == [500, 900]


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (1400.0, []),
        (1500.0, ["'join' reads 1,500 records/s and its inputs write 1,400/s"]),
        (1200.0, ["'join' reads 1,200 records/s and upstreams that feed only it write 1,400/s"]),
        (1000.0, ["'join' reads 1,000 records/s and upstreams that feed only it write 1,400/s"]),
    ],
)
def test_inputs_that_do_not_make_up_what_is_read_are_named(read, texts):
    vertices = [vertex("a"), vertex("b"), vertex("join", "a", "b")]
    rates = {"a": flow(written=1000.0), "b": flow(written=400.0), "join": flow(read)}

    assert texts == [phrase for _, phrase in find_unbalanced(MadeJob(vertices, flows=rates))]


def test_a_flow_that_does_not_balance_is_no_fact_of_the_scenario():
    """A reader counts twice what is written: between the two, and asked."""
    draft = worked(SPLIT, {"sql": flow(written=1000.0), "rare": flow(1000.0), "often": flow(2000.0)})

    assert "often: How many records does 'sql' send over this edge per record that 'sql' emits?" in draft.unknown
    assert "between 1 and 2; the counters of its two ends contradict" in comment_of(
        draft, "job.often.input.sql.fan-out"
    )


def test_what_a_reader_of_one_input_counts_came_over_its_edge():
    """A sink's writer counts 99.7/s out, for it writes them to files; into the coordinator of its compactor go 1.1/s."""
    draft = worked(
        [vertex("src"), vertex("writer", "src"), vertex("compact-coordinator", "writer", ship="FORWARD")],
        {"src": flow(written=99.6), "writer": flow(99.6, 99.7), "compact-coordinator": flow(1.1)},
    )
    inlet = draft.document["job"]["compact-coordinator"]["input"]["writer"]

    assert inlet["fan-out"] == "0.01104"
    assert [text for text in draft.unknown if "send over this edge" in text] == []
    assert comment_of(draft, "job.compact-coordinator.input.writer.fan-out").startswith(
        "1.1/s into 'compact-coordinator', which reads nothing else / 99.6/s into 'writer', whose 99.7/s out include"
    )


def test_records_of_each_edge_have_their_own_size():
    """As many on both edges, but larger on one; what is written is not the sum of both."""
    draft = worked(
        SPLIT, {"sql": flow(written=1000.0, size=400.0), "rare": flow(1000.0, size=300.0), "often": flow(1000.0)}
    )
    jobs = draft.document["job"]

    assert jobs["sql"]["source"]["record"] == "300 B"
    assert [jobs[name]["input"] for name in ("rare", "often")] == [
        {"sql": "hash"},
        {"sql": {"ship": "hash", "record": "100 B"}},
    ]

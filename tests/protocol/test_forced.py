"""Which edges force barriers to align."""

from dataclasses import replace

import pytest

from sim.model.job import Input, Job, Source, Vertex
from sim.model.sinks import Commit
from sim.protocol.options import forced_aligned_edges


def job(*inputs):
    """Two sources, `middle` reads them as given, `sink` reads middle by hash."""
    middle = Vertex("middle", inputs=tuple(Input(upstream, ship) for upstream, ship in inputs))
    return Job(
        (
            Vertex("a", source=Source()),
            Vertex("b", source=Source()),
            middle,
            Vertex("sink", inputs=(Input("middle", "hash"),)),
        )
    )


@pytest.mark.parametrize("ship", ["forward", "rescale", "broadcast"])
def test_pointwise_and_broadcast_edges_are_forced(ship):
    assert {("a", "middle")} == forced_aligned_edges(job(("a", ship)))


@pytest.mark.parametrize("ship", ["hash", "rebalance", "global"])
def test_other_edges_are_not(ship):
    assert set() == forced_aligned_edges(job(("a", ship)))


def test_one_forced_input_forces_the_others_of_its_vertex():
    assert {("a", "middle"), ("b", "middle")} == forced_aligned_edges(job(("a", "hash"), ("b", "broadcast")))


def test_named_edges_are_forced_too():
    assert {("middle", "sink")} == forced_aligned_edges(job(("a", "hash")), [("middle", "sink")])


def test_a_committer_s_input_is_forced():
    """FLINK-36287, whatever its ship strategy; its writer's inputs are not."""
    plain = job(("a", "hash"))
    committer = Vertex("committer", inputs=(Input("sink", "hash"),), committer_of="sink")

    assert {("sink", "committer")} == forced_aligned_edges(Job((*plain.vertices, committer)))


def test_an_edge_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="no such edges"):
        forced_aligned_edges(job(("a", "hash")), [("a", "sink")])


def test_releases_that_align_whole_jobs_because_of_a_sink():
    """FLINK-37870; the sink has to commit, and the release after it is as it was."""
    plain = job(("a", "hash"))
    sink = Job((*plain.vertices[:-1], replace(plain.vertices[-1], commit=Commit("chained"))))
    every = {(inlet.upstream, vertex.name) for vertex in plain.vertices for inlet in vertex.inputs}

    assert every == forced_aligned_edges(sink, version="2.0.0")
    assert [forced_aligned_edges(plain, version="2.0.0"), forced_aligned_edges(sink, version="2.0.1")] == [
        frozenset()
    ] * 2

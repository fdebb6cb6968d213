"""Vertices get names a person can write."""

import pytest

from sim.jobs.source.rest_answers import operators, short_names


@pytest.mark.parametrize(
    ("vertex", "chain"),
    [
        ("map", ["map"]),
        ("Source: src -> Map -> Sink: out", ["Source: src", "Map", "Sink: out"]),
        ("Source: src -> (Map, Filter -> Flat Map)", ["Source: src", "Map", "Filter", "Flat Map"]),
        ("a -> (b -> (c, d), e)", ["a", "b", "c", "d", "e"]),
        ("Window(Tumbling(5000), x -> y, z) -> Map", ["Window(Tumbling(5000), x -> y, z)", "Map"]),
        ("Calc[2](select=[a, f(b) -> c]) -> Sink[3]", ["Calc[2](select=[a, f(b) -> c])", "Sink[3]"]),
        ("unbalanced ) -> (", ["unbalanced )"]),
        ("", []),
    ],
)
def test_a_chain_is_taken_apart(vertex, chain):
    """At the arrows and commas Flink puts between operators, not at those inside of one."""
    assert chain == operators(vertex)


def test_names_are_unique_and_never_empty():
    """Long chains are cut, whatever is no word is called vertex."""
    long = " -> ".join(f"operator {i}" for i in range(20))

    names = short_names(["Map", "map", long, long, "日本", "->"])

    assert names == ["map", "map-2", "operator-0+19", "operator-0+19-2", "vertex", "vertex-2"]

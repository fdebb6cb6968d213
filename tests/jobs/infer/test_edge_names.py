"""Names of inputs: an edge has one that nobody else has."""

import pytest

from sim.jobs.infer.edges import input_names


@pytest.mark.parametrize(
    ("upstreams", "vertices", "expected"),
    [
        (["a", "b"], ["a", "b", "c"], ["a", "b"]),
        (["a", "a", "b", "a"], ["a", "b", "c"], ["a", "a-2", "b", "a-3"]),
        (["a", "a", "a-2"], ["a", "a-2", "c"], ["a", "a-3", "a-2"]),
    ],
)
def test_a_further_edge_from_the_same_vertex_is_numbered(upstreams, vertices, expected):
    assert expected == input_names(upstreams, vertices)

"""Scenario -> plane: names become numbers, rates become segments, placement becomes hosts; nothing is lost on the way."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster, NetworkMemory
from sim.model.job import Distribution, Input, Job, Rate, Source, Vertex
from sim.model.randomness import size_table
from sim.model.scenario import Overheads, Run, Scenario
from sim.runtime.plane_spec import plane_spec

SECOND = 1_000_000_000
THIRDS = (Fraction(1, 3), Fraction(2, 3))
JOB = Job(
    (
        Vertex("clicks", parallelism=2, source=Source(total=9), service=Distribution(300), fan_out=Fraction(3, 2)),
        Vertex("users", parallelism=1, source=Source()),
        Vertex(
            "join",
            parallelism=2,
            joined=True,
            inputs=(
                Input("clicks", "hash", THIRDS, service=Distribution(40), record_bytes=Distribution(200, "uniform")),
                Input("users", "broadcast", service=Distribution(50)),
            ),
        ),
        Vertex("sink", parallelism=2, inputs=(Input("join", "forward"), Input("clicks", "rebalance"))),
    )
)


def scenario(job=JOB, **cluster):
    return Scenario(
        "?",
        "lowering",
        job,
        CheckpointOptions(None),
        Run(SECOND, seed=5),
        Cluster(**{"placement": "isolated"} | cluster),
    )


def with_rates(*rates):
    """(start in s, per second)."""
    source = Source(tuple(Rate(start * SECOND, Fraction(rate)) for start, rate in rates))
    return scenario(Job((Vertex("source", source=source),)))


def segments(*rates):
    return plane_spec(with_rates(*rates)).vertices[0].source.segments


# ---------------------------------------------------------------------------------------------- names and numbers


@pytest.mark.parametrize(("timeout", "period"), [(100, 107), (1, 8), (0, 0), (-1, -1)])
def test_flushes_are_a_timeout_and_what_the_flusher_takes_apart(timeout, period):
    """Whoever flushes after each record, or never, has no flusher."""
    given = replace(scenario(network=NetworkMemory(buffer_timeout_ns=timeout)), overheads=Overheads(flusher_ns=7))

    assert period == plane_spec(given).buffer_timeout_ns


def test_two_edges_never_share_a_name():
    """Streams hang on edge names: the same pair of vertices twice must not draw the same numbers."""
    twice = Job((Vertex("a", source=Source()), Vertex("b", inputs=(Input("a", "hash"), Input("a", "hash")))))

    assert len({edge.name for edge in plane_spec(scenario(twice)).edges}) == 2


def test_distributions_become_tables():
    """A service law per input, a source its own; record sizes per edge."""
    spec = plane_spec(scenario())

    assert [v.service for v in spec.vertices] == [((300,),), ((1000,),), ((40,), (50,)), ((1000,), (1000,))]
    assert size_table(Distribution(200, "uniform")) == spec.edges[0].record_bytes
    assert spec.edges[1].record_bytes == (1000,)


def hash_weights(parallelism, groups, **options):
    reader = Vertex("b", parallelism=parallelism, max_parallelism=groups, inputs=(Input("a", **options),))
    return plane_spec(scenario(Job((Vertex("a", source=Source()), reader)))).edges[0].weights


def test_key_groups_say_who_reads():
    """Three subtasks own 2, 1 and 1 of four key groups: the first one reads half of the records."""
    assert hash_weights(3, 4) == (0, 0, 1, 2)
    assert [hash_weights(3, 128).count(i) for i in range(3)] == [43, 43, 42]
    assert hash_weights(3, 4, ship="rebalance") == (), "what is not keyed has no key groups"
    assert [hash_weights(2, 5, weights=(Fraction(0), Fraction(1))).count(i) for i in range(2)] == [0, 4096], (
        "weights say it themselves"
    )


# ---------------------------------------------------------------------------------------------- cluster


def test_nic_is_an_exact_ratio():
    """10 Gbit/s are 5 bytes in 4 ns; without a limit there is no line."""
    assert plane_spec(scenario(nic_bytes_per_second=1_250_000_000)).nic == (5, 4)
    assert plane_spec(scenario()).nic is None


# ---------------------------------------------------------------------------------------------- rates


def test_rates_of_different_parts_add_up():
    """Due after 5 s: 5/3, after 9 s: 59/21.  What is missing of the next record takes 7/6 s and 8/35 s."""
    found = segments((0, Fraction(1, 3)), (5, Fraction(2, 7)), (9, Fraction(5, 6)))

    assert [(row.first, row.start_ns) for row in found] == [(0, 0), (2, 6_166_666_667), (3, 9_228_571_429)]

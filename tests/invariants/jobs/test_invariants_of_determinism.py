"""Invariant 41: the same seed and scenario give the same run; components do not disturb each other's randomness."""

from dataclasses import replace

from hypothesis import given, settings

from sim.model.job import Job, Source, Vertex
from sim.model.randomness import draw, stream
from tests.invariants.jobs.small_jobs import SECOND, chain, run, scenario, scenarios, with_options
from tests.oracle import oracle


def _trace(world):
    return list(world.journal), world.plane.tasks().tolist(), world.plane.channels().tolist()


@given(scenarios())
@settings(max_examples=15)
def test_invariant_41_same_seed_same_run(world_of):
    """Two runs of one scenario are equal in journal, tables and digests."""
    assert _trace(run(world_of)) == _trace(run(world_of))


@given(scenarios())
def test_invariant_41_engines_agree(world_of):
    """The compiled kernel and the reference give the same journal, tables and digests under every protocol.

    One second has checkpoints of every interval, and deadlines that pass; the reference takes long for more.
    """
    world_of = replace(world_of, run=replace(world_of.run, duration_ns=SECOND))
    assert _trace(run(world_of, oracle)) == _trace(run(world_of, "compiled"))


def test_invariant_41_another_seed_is_another_run():
    base = scenario(chain())

    assert _trace(run(base)) != _trace(run(replace(base, run=replace(base.run, seed=99))))


def test_invariant_41_unused_component_changes_nothing():
    """A vertex nobody feeds leaves the others' draws and times alone."""
    base = scenario(chain())
    alone = with_options(base, interval_ns=None)
    extended = replace(alone, job=Job((*base.job.vertices, Vertex("idle", source=Source(total=0)))))
    n = len(run(alone).names)

    assert run(alone).plane.tasks()["digest"].tolist() == run(extended).plane.tasks()["digest"].tolist()[:n]


def test_invariant_41_draws_are_functions_of_their_index():
    """A draw does not depend on how many were made before."""
    key = stream(7, "service", "map", 3)
    forwards = [draw(key, k) for k in range(100)]

    assert forwards == [draw(key, k) for k in reversed(range(100))][::-1]

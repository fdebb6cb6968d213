"""The barrier modes, the options barriers carry, when they have priority, and which edges force them to align."""

from dataclasses import replace

import pytest

from sim.model.checkpoint import BARRIERS, Barriers
from sim.model.job import Input, Job, Source, Vertex
from sim.model.sinks import Commit
from sim.plane.interface import Trait
from sim.protocol.barrier_modes import (
    STRATEGIES,
    Requirement,
    barrier_options,
    strategy,
)
from sim.protocol.options import AlignmentType, BarrierOptions, forced_aligned_edges
from sim.runtime.context import traits

# The pages of strategies/, the options barriers carry, the phase lists.


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aligned", Trait.BLOCKING),
        ("at-least-once", Trait.NONE),
        ("unaligned", Trait.PRIORITY),
        ("aligned-timeout", Trait.BLOCKING | Trait.ANNOUNCED),
    ],
)
def test_how_the_barriers_of_each_strategy_move(name, expected):
    """Priority passes what is queued, blocking stops its channel, announced is reported before its turn."""
    assert STRATEGIES[name].name == name
    assert traits(barrier_options(Barriers(name, SECOND), 0)) == expected
    assert STRATEGIES[name].alignment == barrier_options(Barriers(name, SECOND), 0).alignment


def test_the_pages_cover_the_model():
    """A page for each way of barriers, and the record of each says of it what its page says."""
    assert set(BARRIERS) == set(STRATEGIES)
    for name, page in STRATEGIES.items():
        kind = BARRIERS[name]

        assert (kind.has_deadline, kind.overtakes) == (page.times_out, page.unaligned_allowed)
        assert kind.exactly_once == (page.alignment is not AlignmentType.AT_LEAST_ONCE)


def test_invariant_11_a_timeout_of_zero_is_an_unaligned_checkpoint():
    assert STRATEGIES["unaligned"] is strategy(Barriers("aligned-timeout", 0))
    assert BarrierOptions(5, AlignmentType.UNALIGNED) == barrier_options(Barriers("aligned-timeout", 0), 5)


def test_before_flink_27251_barriers_move_the_same_and_nobody_waits_for_them():
    """The older page differs from today's in what an acknowledgement waits for."""
    old = strategy(Barriers("aligned-timeout", SECOND, reaches_output=False))
    now = strategy(Barriers("aligned-timeout", SECOND))

    assert (now.alignment, now.times_out) == (old.alignment, old.times_out)
    assert {Requirement.OUTPUT_BARRIERS} == now.finishing - old.finishing


@pytest.mark.parametrize("kind", ["aligned", "unaligned", "aligned-timeout"])
def test_savepoints_are_always_aligned(kind):
    assert BarrierOptions(5, savepoint=True) == barrier_options(Barriers(kind, SECOND), 5, savepoint=True)


def test_a_forced_edge_loses_priority_and_the_deadline_waits():
    """The reader restores what was meant."""
    unaligned, timeout = BarrierOptions(5, AlignmentType.UNALIGNED), BarrierOptions(5, aligned_timeout_ns=SECOND)

    for meant in (unaligned, timeout):
        forced = meant.with_unaligned_unsupported()

        assert traits(forced) == Trait.BLOCKING
        assert not forced.timeoutable
        assert meant == forced.with_unaligned_supported()


@pytest.mark.parametrize(
    "options", [BarrierOptions(5), BarrierOptions(5, AlignmentType.AT_LEAST_ONCE), BarrierOptions(5, savepoint=True)]
)
def test_what_never_overtakes_needs_no_forcing(options):
    assert options is options.with_unaligned_unsupported()
    assert options is options.with_unaligned_supported()


def test_a_deadline_counts_from_the_trigger():
    timeout = BarrierOptions(5, aligned_timeout_ns=SECOND)

    assert timeout.deadline_ns == SECOND + 5
    assert BarrierOptions(5, AlignmentType.UNALIGNED) == timeout.as_unaligned()
    with pytest.raises(ValueError, match="deadline"):
        _ = BarrierOptions(5).deadline_ns


def test_state_backends_are_asked_for_what_the_barrier_says():
    given = BarrierOptions(5), BarrierOptions(5, savepoint=True), BarrierOptions(5, savepoint=True, type="native")

    assert [options.snapshot_type for options in given] == ["checkpoint", "canonical", "native"]


# When a barrier is a priority barrier.


TIMEOUT = BarrierOptions(100, aligned_timeout_ns=50)


@pytest.mark.parametrize(
    ("options", "now", "converted", "priority"),
    [
        (BarrierOptions(100, AlignmentType.UNALIGNED), 100, False, True),
        (BarrierOptions(100), 10_000, True, False),
        (TIMEOUT, 149, True, False),
        (TIMEOUT, 150, True, True),
        (TIMEOUT, 150, False, False),
        (TIMEOUT.with_unaligned_unsupported(), 150, True, False),
    ],
)
def test_a_barrier_overtakes_from_its_deadline_on(options, now, converted, priority):
    """If its sender converts what still waits in its output queue; a forced aligned one never does."""
    assert priority is options.has_priority(now, senders_convert=converted)


# Which edges force barriers to align.


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

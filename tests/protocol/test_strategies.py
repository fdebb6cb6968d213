"""The pages of strategies/, the options barriers carry, the phase lists."""

import pytest

from sim.model.checkpoint import BARRIERS, Barriers
from sim.protocol.barrier_modes import (
    STRATEGIES,
    Requirement,
    barrier_options,
    strategy,
)
from sim.protocol.options import AlignmentType, BarrierOptions, Traits

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("aligned", Traits(priority=False, blocking=True, announced=False)),
        ("at-least-once", Traits(priority=False, blocking=False, announced=False)),
        ("unaligned", Traits(priority=True, blocking=False, announced=False)),
        ("aligned-timeout", Traits(priority=False, blocking=True, announced=True)),
    ],
)
def test_how_the_barriers_of_each_strategy_move(name, traits):
    """Priority passes what is queued, blocking stops its channel, announced is reported before its turn."""
    assert STRATEGIES[name].name == name
    assert traits == barrier_options(Barriers(name, SECOND), 0).traits
    assert STRATEGIES[name].alignment == barrier_options(Barriers(name, SECOND), 0).alignment


def test_the_pages_cover_the_model():
    """A page for each way of barriers, and the record of each says of it what its page says."""
    assert set(BARRIERS) == set(STRATEGIES)
    for name, page in STRATEGIES.items():
        kind = BARRIERS[name]

        assert (kind.has_deadline, kind.overtakes) == (page.times_out, page.unaligned_allowed)
        assert kind.exactly_once == (page.alignment is not AlignmentType.AT_LEAST_ONCE)


def test_law_11_a_timeout_of_zero_is_an_unaligned_checkpoint():
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
        forced = meant.on_forced_edge()

        assert Traits(priority=False, blocking=True, announced=False) == forced.traits
        assert not forced.timeoutable
        assert meant == forced.restored()


@pytest.mark.parametrize(
    "options", [BarrierOptions(5), BarrierOptions(5, AlignmentType.AT_LEAST_ONCE), BarrierOptions(5, savepoint=True)]
)
def test_what_never_overtakes_needs_no_forcing(options):
    assert options is options.on_forced_edge()
    assert options is options.restored()


def test_a_deadline_counts_from_the_trigger():
    timeout = BarrierOptions(5, aligned_timeout_ns=SECOND)

    assert timeout.deadline_ns == SECOND + 5
    assert BarrierOptions(5, AlignmentType.UNALIGNED) == timeout.as_unaligned()
    with pytest.raises(ValueError, match="deadline"):
        _ = BarrierOptions(5).deadline_ns


def test_state_backends_are_asked_for_what_the_barrier_says():
    given = BarrierOptions(5), BarrierOptions(5, savepoint=True), BarrierOptions(5, savepoint=True, type="native")

    assert [options.snapshot_type for options in given] == ["checkpoint", "canonical", "native"]

"""A runtime that is broken on purpose is found out, in a world where the break matters; unbroken it is not accused.

The whole table: `python -m tests.invariants.injections`.
"""

import pytest

from sim.runtime.simulate import simulate
from tests.invariants.injected_worlds import WORLDS, scenario
from tests.invariants.injections import INJECTIONS, caught


@pytest.mark.parametrize("world", WORLDS)
def test_the_unbroken_runtime_is_not_accused(world):
    """Where everything is restored that can be."""
    run = simulate(scenario(world))

    assert run.violations == ()
    assert len(run.recoveries) >= 1
    assert run.recoveries["restored_checkpoint"].gt(0).all(), "from a checkpoint, not from the beginning"
    assert run.recoveries["restored_bytes"].gt(0).all()


@pytest.mark.once
@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: f"{injection.path}: {injection.name}")
def test_a_broken_restore_is_found_out(injection):
    """With a story of the restart or the snapshot; a rescale, a next job and the end of data need none."""
    violations = caught(injection, injection.world)

    assert violations, f"nobody notices in {injection.world} that {injection.name}"
    assert any(violation.story for violation in violations) or injection.path in ("rescale", "next job", "end of data")


def test_every_way_of_restoring_is_broken():
    """Timers are part of keyed state here, union list state is only a property of a vertex: neither has a path of its own."""
    assert {
        "checkpoint",
        "end of data",
        "source offset",
        "middle position",
        "async requests",
        "captured input",
        "captured output",
        "state",
        "keyed state",
        "operator state",
        "changelog",
        "local recovery",
        "committables",
        "next job",
        "rescale",
        "files of a snapshot",
        "expiring keys",
    } == {injection.path for injection in INJECTIONS}

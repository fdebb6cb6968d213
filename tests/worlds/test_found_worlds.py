"""Worlds that once broke a run, shrunk: each asks a question, and its run is sound and ends."""

from pathlib import Path

import pytest

from sim.runtime.simulate import simulate
from sim.scenario import load

WORLDS = Path(__file__).parents[1] / "data" / "worlds"


def ran(world):
    """What comes of its only scenario."""
    (scenario,) = load(WORLDS / f"{world}.yaml").scenarios
    return simulate(scenario)


@pytest.mark.parametrize("world", ["changelog-savepoint", "changelog-overlapping", "changelog-canonical", "changelog-slow-storage"])
def test_a_changelog_beside_savepoints_and_other_checkpoints(world):
    """Materialisations and savepoints are numbered apart; a file of the log may be awaited by several checkpoints, one after the other."""
    result = ran(world)

    assert () == result.violations
    assert 0 < (result.checkpoints["status"] == "COMPLETED").sum()

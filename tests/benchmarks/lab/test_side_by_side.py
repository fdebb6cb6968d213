"""Recorded and simulated checkpoints of one job, explained side by side."""

from benchmarks.lab.side_by_side import (
    compare,
    reported_history,
    side_by_side,
)
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_any, read_source
from sim.runtime.simulate import simulate
from tests.jobs.history.conftest import DATA


def test_a_recording_and_its_simulation_name_the_same():
    found = side_by_side(DATA / "recordings" / "p4-severe-aligned.json.gz")

    assert len(found.comparison.pairs) >= 8
    assert found.comparison.agreeing >= 0.85 * len(found.comparison.pairs)
    assert found.comparison.agreeing <= found.comparison.same_kind
    assert found.comparison.agreeing <= found.comparison.matched
    assert found.repetition.agreeing >= 0.85 * len(found.repetition.pairs)
    assert found.read >= 0.9 * found.simulated


def test_the_simulation_of_other_barriers_names_other_parts():
    """The rules are no formality: what holds for its own simulation does not for that of the same job with unaligned barriers."""
    recording = history_of(read_source([DATA / "users-jobs" / "J4-pressed-aligned-r1.zip"]))
    own, other = (
        compare(
            recording,
            reported_history(
                simulate(scenario_of(read_any(DATA / "users-jobs" / f"J4-pressed-{name}-r1.zip")), check=False)
            ),
        )
        for name in ("aligned", "unaligned")
    )

    assert own.agreeing >= 0.85 * len(own.pairs)
    assert other.agreeing <= 0.2 * len(other.pairs)
    assert other.matched <= 0.2 * len(other.pairs)


def test_without_ranks_each_part_leads_as_often():
    """Which checkpoints a hiccup strikes is chance: ranks differ, how often a part leads does not."""
    found = compare(
        history_of(read_source([DATA / "users-jobs" / "J4-pressed-unaligned-r1.zip"])),
        reported_history(
            simulate(scenario_of(read_any(DATA / "users-jobs" / "J4-pressed-unaligned-r1.zip")), check=False)
        ),
    )

    assert found.agreeing < found.matched <= len(found.pairs)

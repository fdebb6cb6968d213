"""Barriers that overtake committables between a writer and its committer: who loses records, and who does not."""

from dataclasses import replace

import pytest

from sim.model.schema.study import load
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.places import ROOT
from tests.worlds.in_flight import in_flight_of

SCENARIO = ROOT / "scenarios/iceberg-15846.yaml"
LOSES = {("iceberg-v1", "unaligned"), ("iceberg-v1", "aligned-timeout 0.5 s")}


def studied(scenario, **commit):
    """The scenario with other options of its commit."""
    vertices = tuple(
        replace(vertex, commit=replace(vertex.commit, **commit)) if vertex.commit else vertex
        for vertex in scenario.job.vertices
    )
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


@pytest.fixture(scope="module")
def combinations():
    """By sink and barriers."""
    return {
        (scenario.job.vertex("lake").connector, str(scenario.checkpoint.barriers)): scenario
        for scenario in load(SCENARIO).scenarios
    }


@pytest.fixture(scope="module")
def results(combinations):
    return {name: simulate(scenario) for name, scenario in combinations.items()}


def test_only_version_1_loses_records_and_only_if_barriers_overtake(results):
    """Aligned it is clean, and so is version 2, whose inner edges stay aligned: in the same job, with the same faults."""
    assert {name for name, result in results.items() if result.violations} == LOSES
    assert len(results) == 6


def test_a_failed_checkpoint_lets_late_files_replace_the_earlier_ones(results):
    """The deadline divides the files of a checkpoint: what its story says is what apache/iceberg#15846 says."""
    violation = results["iceberg-v1", "aligned-timeout 0.5 s"].violations[0]
    story = "\n".join(violation.story)

    assert "records are lost before it" in violation.fact
    assert "CHECKPOINT_EXPIRED" in story
    assert "drops" in story
    assert "their manifest was replaced by one of files that arrived after the barrier" in story


def test_a_failure_during_a_commit_lets_the_older_list_be_forgotten(results):
    """Unaligned, files are always a checkpoint late; the restore takes the list of the checkpoint before for committed."""
    story = "\n".join(results["iceberg-v1", "unaligned"].violations[0].story)

    assert "the table's newest commit is of checkpoint 10" in story
    assert "lake[3] fails: killed" in story


@pytest.mark.parametrize("barriers", ["unaligned", "aligned-timeout 0.5 s"])
@pytest.mark.parametrize(("exchange", "overtakes"), [("aligned", False), ("as-job", True)])
def test_flinks_own_committer_loses_nothing_that_is_overtaken(combinations, barriers, exchange, overtakes):
    """Before FLINK-36287 committables are in-flight data of their checkpoint; a restore brings them back, and they are committed late."""
    scenario = studied(combinations["iceberg-v2", barriers], exchange=exchange)
    result, in_flight = in_flight_of(lambda watch: simulate(scenario, attach=watch))

    assert tuple(result.violations) == ()
    assert overtakes == bool(in_flight)


def test_version_1_behind_aligned_edges_loses_nothing(combinations):
    """What FLINK-36287 does for others would do for it: the mechanism needs both, its committer and an edge that barriers overtake on."""
    sealed = simulate(studied(combinations["iceberg-v1", "aligned-timeout 0.5 s"], exchange="aligned"))

    assert tuple(sealed.violations) == ()
    assert Happening.OUTPUT_DROPPED not in {row.happening for row in sealed.journal}

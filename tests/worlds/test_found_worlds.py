"""Worlds that once broke a run, shrunk: each asks a question, and its run is sound."""

from pathlib import Path

import pytest

from sim.runtime.run.simulate import simulate
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


@pytest.mark.parametrize("world", ["outage-unaligned", "outage-rocksdb", "outage-flush"])
def test_a_storage_outage_fails_checkpoints_and_tasks_only(world):
    """Whoever waits for storage may be gone when it gives up; afterwards checkpoints complete again, and no task manager was lost."""
    result = ran(world)
    (outage,) = result.scenario.faults
    over_ms = (outage.when.at_ns[0] + outage.what.lasts_ns) / 1e6
    later = result.checkpoints[result.checkpoints["trigger_timestamp"] > over_ms]

    assert () == result.violations
    assert "FAILED" in set(result.checkpoints["status"])
    assert "COMPLETED" in set(later["status"])
    assert {"task"} >= set(result.recoveries["kind"])


def test_metadata_of_a_savepoint_and_of_a_checkpoint():
    """Both are due at once: the savepoint is complete first, and holds everybody's part."""
    result = ran("savepoint-metadata")

    assert () == result.violations
    assert {"COMPLETED"} == set(result.checkpoints["status"])


def test_little_in_flight_data_needs_no_file():
    """Up to 20 KiB per group of subtasks travel in acknowledgements: a file would take half a second."""
    result = ran("little-in-flight")

    assert 0 < (result.checkpoints["persisted_data"] > 0).sum()
    assert 20 > result.checkpoints["end_to_end_duration"].max()
    assert 0 == len(result.files)


def test_a_changelog_begins_from_a_canonical_savepoint():
    """What it was restored from is named until the state is materialised: no acknowledgement is lost."""
    result = ran("changelog-claimed-savepoint")
    later = result.checkpoints[result.checkpoints["x_job"] == 1]

    assert {"COMPLETED"} == set(later["status"][:-1])
    assert "FINISHED" == result.job_status


@pytest.mark.parametrize("world", ["flush-slow-nodes", "flush-broadcast", "flush-union"])
def test_a_job_gets_over_flushes_that_fail(world):
    """Its restarts wait for nobody, and it comes to its end."""
    result = ran(world)

    assert () == result.violations
    assert "FINISHED" == result.job_status
    assert {"task"} == set(result.recoveries["kind"])


def test_an_overtaken_barrier_leaves_captures_alone():
    """A barrier of an expired savepoint waits for credit while one of a later checkpoint passes it."""
    result = ran("overtaken-savepoint-barrier")

    assert () == result.violations
    assert "FINISHED" == result.job_status


def test_a_rescale_begins_from_its_own_savepoint():
    """The stop for it fails, and the job ends by itself: an older savepoint would commit again what came after it."""
    result = ran("rescale-stop-fails")

    assert () == result.violations
    assert "FINISHED" == result.job_status
    assert ["task"] == result.recoveries["kind"].tolist()


def test_a_snapshot_is_dealt_out_as_it_was_taken():
    """The job between two rescales completed no checkpoint: the next one begins from the savepoint of the first job."""
    result = ran("rescaled-twice-from-one-savepoint")

    assert () == result.violations
    assert [4, 1, 4] == [len(rows) for _, rows in result.tasks[result.tasks["vertex"] == "m0"].groupby("x_job")]


def test_a_path_through_channel_state_that_nobody_completed():
    """Its file was given up with an outage; every checkpoint has a critical path all the same."""
    result = ran("channel-state-of-nobody")

    assert () == result.violations
    assert set(result.checkpoints.loc[result.checkpoints["status"] == "COMPLETED", "id"]) <= set(result.path["id"])

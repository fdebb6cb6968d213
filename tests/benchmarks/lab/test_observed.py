"""Observations are what the recording says: medians over subtasks, rates from counters, the first checkpoint set apart."""

import pytest

from benchmarks.lab import Recording, read
from sim.jobs.observations import observed
from sim.model.quantities import QUANTITIES
from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS

FILES = sorted(RECORDINGS.glob("*.json.gz"))
OF_SERIES = {
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "busyTimeMsPerSecond",
    "idleTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    "latency",
    "outputQueueLength",
    "outputQueueSize",
    "inputQueueLength",
    "inputQueueSize",
}


def values(table, quantity, vertex="", checkpoint=None):
    chosen = table[(table["quantity"] == quantity) & (table["vertex"] == vertex)]
    return (
        chosen["value"].tolist() if checkpoint is None else chosen[chosen["checkpoint"] == checkpoint]["value"].tolist()
    )


def test_durations_are_those_of_completed_checkpoints():
    """One row per completed checkpoint, the first one marked; the one still in progress is not judged."""
    recording = read(RECORDINGS / "p4-severe-unaligned.json.gz")
    table = observed(recording)
    rows = table[table["quantity"] == "end_to_end_duration"]
    done = [row for row in recording.checkpoints.list if row.status == "COMPLETED"]

    assert [row.end_to_end_duration for row in done] == rows["value"].tolist()
    assert rows[rows["first"]]["checkpoint"].tolist() == [1]
    assert [float(len(done))] == values(table, "completed")


def test_a_vertex_is_the_median_of_its_subtasks():
    """Even number of subtasks: the mean of the middle two."""
    table = observed(read(RECORDINGS / "p4-severe-unaligned.json.gz"))

    persisted = [518044, 513812, 514116, 523276]
    assert [sum(sorted(persisted)[1:3]) / 2] == values(table, "alignment_persisted", "sink", 4)
    assert values(table, "start_delay", "sink", 4) == [(18 + 24) / 2]


def test_throughput_is_the_pace_of_the_slowest_stage():
    """Four sinks of 3 ms per record serve 4 / 3 ms = 1333 records/s, whatever the barriers; they are busy and nobody holds them back."""
    for name in ("p4-severe-aligned", "p4-severe-unaligned", "p4-severe-timeout-1s"):
        table = observed(read(RECORDINGS / f"{name}.json.gz"))

        assert [pytest.approx(4 / 0.003, rel=0.03)] == values(table, "numRecordsInPerSecond", "sink")
        assert [pytest.approx(1000, abs=20)] == values(table, "busyTimeMsPerSecond", "sink")
        assert [pytest.approx(1000, abs=20)] == values(table, "backPressuredTimeMsPerSecond", "src")


def test_a_restarted_counter_counts_on():
    """After a failover counters begin at 0 again: what they say then is growth, not loss."""
    recorded = document()
    recorded["events"] = {}  # the job's own counts come first
    recorded["metrics"]["sink"] = {"t": [0, 1000, 2000, 3000, 4000], "numRecordsIn": [[0], [100], [200], [50], [150]]}
    table = observed(Recording.model_validate(recorded))

    assert values(table, "numRecordsInPerSecond", "sink") == [(100 + 50 + 100) / 3]


def test_unknown_durations_are_left_out_and_savepoints_stand_apart():
    """-1 is not a duration; a savepoint is asked for by hand and follows other rules: it has a duration of its own name."""
    recorded = document()
    second, third = recorded["checkpoints"]["list"][1:3]
    for subtask in second["tasks"]["map"]["subtasks"]:
        subtask["start_delay"] = -1
    third["is_savepoint"] = True
    table = observed(Recording.model_validate(recorded))

    assert values(table, "start_delay", "map", 2) == []
    assert table[table["checkpoint"] == 3].empty
    assert [float(recorded["checkpoints"]["list"][2]["end_to_end_duration"])] == values(table, "savepoint_duration")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_recording_has_every_quantity(path):
    """No quantity is lost on the way for any of our recordings, and none is negative."""
    table = observed(read(path))

    always = {"completed", "failed", "expired", *OF_SERIES}
    completed = {
        "end_to_end_duration",
        "start_delay",
        "alignment_duration",
        "sync_duration",
        "async_duration",
        "alignment_persisted",
        "alignment_processed",
        "checkpointed_size",
        "state_size",
        "processed_data",
        "persisted_data",
    }

    assert always <= set(table["quantity"]) <= set(QUANTITIES)
    assert (completed <= set(table["quantity"])) == (values(table, "completed") != [0.0])
    assert table["value"].ge(0).all()
    assert table.notna().all(axis=None)


def test_a_run_without_checkpoints_says_none():
    """Nothing completed and nothing failed are observations too."""
    recorded = document()
    recorded["checkpoints"]["list"] = []
    recorded["metrics"] = recorded["events"] = {}
    table = observed(Recording.model_validate(recorded))

    assert {("completed", 0.0), ("failed", 0.0), ("expired", 0.0)} == {
        *zip(table["quantity"], table["value"], strict=True)
    }


def test_a_failed_checkpoint_counts_and_is_not_timed():
    """What a checkpoint that never completed took is not a duration of a checkpoint; the first one may be such."""
    recorded = document()
    recorded["checkpoints"]["list"][0]["status"] = "FAILED"
    table = observed(Recording.model_validate(recorded))

    assert values(table, "failed") == [1.0]
    assert 1 not in set(table["checkpoint"])
    assert not table["first"].any()

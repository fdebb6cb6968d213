"""Observations are what the recording says, ends and failures among them; a simulated run is measured as a recorded one."""

import numpy as np
import pytest

from benchmarks.lab import Recording, read
from benchmarks.lab.ends import of_the_end
from benchmarks.lab.failures import caught_up_ms, of_failures
from benchmarks.lab.predicted_ends import of_ends_and_failures
from sim.jobs.evidence.prediction import observed
from sim.model.quantities import QUANTITIES
from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS
from tests.scenarios import run_scenario

# Observations are what the recording says: medians over subtasks, rates from counters, the first checkpoint set apart.


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


# Ends are read off what the operators logged: final commits, and the end of the job.


def recorded(**changes):
    recording = document("p2-severe-aligned")
    for node in recording["config"]["nodes"]:
        node["commit"] = "independent" if node["id"] == "sink" else "none"
    for point in recording["checkpoints"]["list"]:
        point["latest_ack_timestamp"] = 1_000 * point["id"] - 200  # 800, 1800, 2800: on the clock of the events below
    return Recording.model_validate(recording | {"events": {}} | changes)


def values_of_ends(recording):
    return {(quantity, vertex): value for quantity, vertex, value in of_the_end(recording)}


ENDS = {
    "complete": {
        "cols": ["t", "node", "sub", "chk", "committed_now"],
        "rows": [
            [900, "sink", 0, 1, 40],
            [900, "sink", 1, 1, 50],
            [2900, "sink", 0, 3, 7],
            [2950, "sink", 1, 3, 8],
            [3100, "sink", 0, 4, 0],
        ],
    },
    "end_input": {"cols": ["t", "node", "sub"], "rows": [[1900, "map", 0], [2000, "sink", 0], [2100, "sink", 1]]},
    "close": {"cols": ["t", "node", "sub"], "rows": [[3000, "map", 0], [3150, "sink", 0], [3200, "sink", 1]]},
}


def test_the_tail_is_committed_by_the_last_checkpoint_that_commits_anything():
    """How many it took, how long after the end of input the slowest subtask heard of it, and when the job was over."""
    seen = values_of_ends(recorded(events=ENDS, final_state="FINISHED"))

    assert seen == {
        ("committed", "sink"): 105.0,
        ("job_end_delay", ""): 1_100.0,
        ("tail_checkpoint", "sink"): 3.0,
        ("checkpoints_to_commit", "sink"): 1.0,
        ("tail_commit_delay", "sink"): 900.0,
    }


def test_a_job_that_was_cancelled_has_no_end():
    assert values_of_ends(recorded(events=ENDS, final_state="RUNNING")) == {("committed", "sink"): 105.0}


def test_a_job_stopped_without_drain_has_no_end_of_input():
    """Its last commit is known, but not how long anything waited for it."""
    events = {kind: table for kind, table in ENDS.items() if kind != "end_input"}

    seen = values_of_ends(recorded(events=events, final_state="FINISHED"))

    assert seen == {
        ("committed", "sink"): 105.0,
        ("tail_checkpoint", "sink"): 3.0,
        ("checkpoints_to_commit", "sink"): 0.0,
    }


def test_every_quantity_is_one_that_is_told():
    assert {quantity for quantity, _ in values_of_ends(recorded(events=ENDS, final_state="FINISHED"))} < set(QUANTITIES)


# Failures are read off what the operators logged: when they serve again, what is replayed, when they have caught up.


def recorded_failures(events, metrics=None):
    changes = {"events": events, "metrics": metrics or {}}
    return Recording.model_validate(document("p2-severe-aligned") | changes)


def values_of_failures(recording):
    return {quantity: value for quantity, _, value in of_failures(recording)}


FAILURE = {
    "fail_injected": {"cols": ["t", "node", "sub"], "rows": [[5000, "sink", 0]]},
    "init_state": {
        "cols": ["t", "node", "sub", "attempt", "chk"],
        "rows": [[10, "sink", 0, 0, -1], [7000, "sink", 0, 1, 4]],
    },
    "open": {"cols": ["t", "node", "sub"], "rows": [[15, "sink", 0], [7100, "sink", 0], [7150, "map", 0]]},
    "first_record": {"cols": ["t", "node", "sub"], "rows": [[20, "sink", 0], [7300, "sink", 0], [7200, "map", 0]]},
    "source_close": {"cols": ["t", "node", "sub", "emitted"], "rows": [[5100, "src", 0, 900], [9000, "src", 0, 2000]]},
    "source_start": {"cols": ["t", "node", "sub", "emitted"], "rows": [[5, "src", 0, 0], [7100, "src", 0, 650]]},
}


def test_a_failure_costs_what_it_takes_to_serve_again_and_what_is_replayed():
    assert values_of_failures(recorded_failures(FAILURE)) == {
        "restored_checkpoint": 4,
        "time_to_first_record": 2200.0,
        "downtime": 2150.0,
        "replayed_records": 250,
    }


def test_a_task_that_reads_its_channels_back_runs_later_than_it_is_open():
    """The map was open 150 ms after it began and took 900 ms in all: it ran at 7900."""
    metrics = {
        "map": {"t": [6000, 8000], "initializationTime": [[500], [900]]},
        "sink": {"t": [6000, 8000], "initializationTime": [[500], [100]]},
    }

    assert values_of_failures(recorded_failures(FAILURE, metrics))["downtime"] == 2900


def test_no_failure_nothing_to_come_back_from():
    assert values_of_failures(recorded_failures({})) == {}


def test_caught_up_is_when_the_ends_have_served_what_they_had():
    """100 records again at 40 a second from 1 s on: 98 of them are served after 2.45 s more."""
    times, served = np.arange(1000.0, 8000.0, 1000.0), np.array([0.0, *[40.0] * 6])

    assert pytest.approx(caught_up_ms(0.0, times, served, 100.0, 0.0)) == 1000 + 98 / 40 * 1000


def test_what_comes_due_meanwhile_must_be_served_too():
    """20 of 40 a second are new: from 120 missing after 1 s, 117.6 take 5.88 s; twice the rate is never caught up with."""
    times, served = np.arange(1000.0, 10_000.0, 1000.0), np.array([0.0, *[40.0] * 8])

    assert pytest.approx(caught_up_ms(0.0, times, served, 100.0, 20.0)) == 1000 + 117.6 / 20 * 1000
    assert caught_up_ms(0.0, times, served, 100.0, 40.0) is None


# Ends and failures of a simulated run are measured as those of a recorded one.


JOB = """
version: 1
job:
  src:  {{source: {{rate-per-subtask: 300/s, record: 500 B{bounded}}}, parallelism: 2}}
  sink: {{input: {{src: hash}}, service: 500 us, parallelism: 2, commit: two-phase}}
checkpoint: {{interval: 5 s}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
{more}
run: {{duration: 20 s}}
"""


def predicted_values(bounded="", fields=""):
    result = run_scenario(JOB.format(bounded=bounded, more=fields))
    return {(quantity, vertex): value for quantity, vertex, value in of_ends_and_failures(result)}


def test_a_bounded_job_commits_all_with_its_final_checkpoint():
    """13.3 s of records: two periodic checkpoints at 0 and 5 s, one at 10 s, and the final one right after the end."""
    seen = predicted_values(bounded=", records-per-subtask: 4000")

    assert seen["committed", "sink"] == 8_000
    assert seen["checkpoints_to_commit", "sink"] == 1
    assert 0 < seen["tail_commit_delay", "sink"] < 200
    assert seen["tail_commit_delay", "sink"] < seen["job_end_delay", ""] < 500


def test_a_failure_goes_back_to_the_latest_checkpoint():
    """Killed at 12 s, 2 s after the third checkpoint: some 2 s of both sources are emitted again."""
    seen = predicted_values(
        fields='faults: [{kill: "sink[0]", at: 12 s}]\nrestart: {strategy: fixed-delay, delay: 2 s}'
    )

    assert seen["restored_checkpoint", ""] == 3
    assert 1_150 < seen["replayed_records", ""] < 1_400
    assert 2_000 < seen["downtime", ""] < 3_000


def test_an_endless_job_without_failure_has_only_commits():
    assert {("committed", "sink")} == set(predicted_values())

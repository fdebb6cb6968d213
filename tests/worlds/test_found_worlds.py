"""What runs of worlds that once broke one must show.  That all of them are sound, and what they were, other tests hold."""

import pytest

from sim.model.schema.study import load
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.places import DATA

WORLDS = DATA / "worlds"


def ran(world):
    """What comes of its only scenario."""
    (scenario,) = load(WORLDS / f"{world}.yaml").scenarios
    return simulate(scenario)


def test_a_changelog_is_not_materialised_anew_before_a_checkpoint_has_confirmed_the_last_time():
    """It would build on files that the next completion deletes: an acknowledgement that names them comes to nothing."""
    result = ran("changelog-materialised-between-checkpoints")

    assert EventType.STATE_UNKNOWN not in {entry.event_type for entry in result.journal}
    assert result.job_status == "FINISHED"


@pytest.mark.parametrize("world", ["outage-unaligned", "outage-rocksdb", "outage-flush"])
def test_a_storage_outage_fails_checkpoints_and_tasks_only(world):
    """Whoever waits for storage may be gone when it gives up; afterwards checkpoints complete again, and no task manager was lost."""
    result = ran(world)
    (outage,) = result.scenario.faults
    over_ms = (outage.when.at_ns[0] + outage.what.lasts_ns) / 1e6
    later = result.checkpoints[result.checkpoints["trigger_timestamp"] > over_ms]

    assert result.violations == ()
    assert "FAILED" in set(result.checkpoints["status"])
    assert "COMPLETED" in set(later["status"])
    assert {"task"} >= set(result.recoveries["kind"])


def test_little_in_flight_data_needs_no_file():
    """Up to 20 KiB per group of subtasks travel in acknowledgements: a file would take half a second."""
    result = ran("little-in-flight")

    assert (result.checkpoints["persisted_data"] > 0).sum() > 0
    assert result.checkpoints["end_to_end_duration"].max() < 20
    assert len(result.files) == 0


def test_a_changelog_begins_from_a_canonical_savepoint():
    """What it was restored from is named until the state is materialised: no acknowledgement is lost."""
    result = ran("changelog-claimed-savepoint")
    later = result.checkpoints[result.checkpoints["x_job"] == 1]

    assert {"COMPLETED"} == set(later["status"][:-1])
    assert result.job_status == "FINISHED"


def test_a_snapshot_is_dealt_out_as_it_was_taken():
    """The job between two rescales completed no checkpoint: the next one begins from the savepoint of the first job."""
    result = ran("rescaled-twice-from-one-savepoint")

    assert result.violations == ()
    assert [len(rows) for _, rows in result.tasks[result.tasks["vertex"] == "m0"].groupby("x_job")] == [4, 1, 4]


def test_a_path_through_channel_state_that_nobody_completed():
    """Its file was given up with an outage; every checkpoint has a critical path all the same."""
    result = ran("channel-state-of-nobody")

    assert result.violations == ()
    assert set(result.checkpoints.loc[result.checkpoints["status"] == "COMPLETED", "id"]) <= set(result.path["id"])


def test_a_rescaled_job_reads_what_was_to_be_recovered_downstream():
    """Output in flight is input of its readers before it is dealt out: no byte of it is left unread."""
    result = ran("rescaled-outputs-read-downstream")

    assert result.violations == ()
    assert result.recoveries["recovered_bytes"].iloc[0] >= 15184


def test_checkpoints_of_a_job_without_an_edge_expire():
    """Nobody waits for anybody."""
    result = ran("expires-without-an-edge")

    assert {"CHECKPOINT_EXPIRED"} == {row.detail for row in result.journal if row.event_type is EventType.ABORTED}
    assert result.violations == ()


def times_ms(result, *event_types):
    return [row.time_ns // 1_000_000 for row in result.journal if row.event_type in event_types]


def test_a_final_checkpoint_needs_a_job_manager():
    """All data is read while there is none: tasks wait for the next one, which restarts the job."""
    result = ran("final-checkpoint-without-a-job-manager")

    assert result.violations == ()
    assert [at for at in times_ms(result, EventType.TRIGGERED, EventType.COMPLETED) if 990 < at < 3990] == []
    assert (result.job_status, result.ended_ns // 1_000_000_000) == ("FINISHED", 4)


def test_savepoints_and_stops_without_a_job_manager_are_refused():
    """The client gets an error, and the job goes on as if nobody had asked."""
    result = ran("savepoint-without-a-job-manager")

    assert result.violations == ()
    assert result.job_status == "RUNNING"
    assert [kind for kind in result.checkpoints["savepointFormat"] if kind] == []
    reason = "JobManager unreachable"
    assert [f"a savepoint or stop at {at} s: {reason}" for at in ("4.000000", "5.000000")] == result.refused


def test_a_rescale_waits_for_a_job_manager():
    """Asked for at 5 s, it comes with the next JobManager at 9 s.  Until then tasks work on."""
    result = ran("rescale-without-a-job-manager")
    old, new = result.recoveries.to_dict("records")

    assert result.violations == ()
    assert (old["kind"], old["failed"], old["deployed"]) == ("job-manager", 9000, -1)
    assert (new["kind"], new["failed"]) == ("rescale", 9000)
    assert times_ms(result, EventType.RESCALED) == [9000]


def test_a_task_that_has_finished_materialises_no_more():
    """It gives its threads back: the job ends more than a second later."""
    result = ran("materialises-when-finished")
    finished = {row.task: row.time_ns for row in result.journal if row.event_type is EventType.TASK_FINISHED}

    assert result.violations == ()
    assert finished[2] + 1_000_000_000 < max(finished.values())


def test_a_job_is_stopped_as_it_begins():
    """The timer of periodic checkpoints is set when the job begins, and so before the stop that takes it away."""
    result = ran("stopped-as-it-begins")

    assert result.violations == ()
    assert result.checkpoints["checkpoint_type"].tolist() == ["SYNC_SAVEPOINT", "CHECKPOINT"], (
        "the last one, as data has ended"
    )


def test_a_copy_of_an_earlier_instance_is_not_missed():
    """The job goes on from a savepoint; an aborted checkpoint of the same number lies on the disk."""
    result = ran("same-number-in-two-instances")

    assert result.violations == ()
    assert result.recoveries["restored_checkpoint"].iloc[-1] == 7


def test_a_circle_passes_tasks_whose_windows_wait_for_watermarks():
    """Their late outputs do not come by themselves: no watermark arrives while all writers wait."""
    result = ran("standstill-behind-event-time-windows")

    assert "behind full outputs" in result.checkpoints["x_standstill"].iloc[-1]


def test_a_failure_that_is_reported_after_the_restart_is_none_of_the_new_attempt():
    """The failed attempt was cancelled before its report came: one restart for both failures."""
    result = ran("failure-reported-after-the-restart")
    failed = [entry.time_ns for entry in result.journal if entry.event_type is EventType.TASK_FAILED]
    restarted = [entry.time_ns for entry in result.journal if entry.event_type is EventType.JOB_RESTARTING]

    assert len([begun for begun in restarted if begun > max(failed)]) == 1
    assert result.violations == ()


def test_a_job_without_slots_that_are_given_up_later_is_rescaled_when_they_are_back():
    """The JobMaster has not noticed yet that the task manager is gone when its replacement registers."""
    result = ran("replaced-before-it-is-missed")

    assert [entry.event_type for entry in result.journal].count(EventType.RESCALED) == 2
    assert result.violations == ()


def test_a_snapshot_without_a_claim_outlives_a_rescale_before_the_first_checkpoint():
    result = ran("rescaled-before-its-first-checkpoint")
    rescaled = [entry for entry in result.journal if entry.event_type is EventType.JOB_RESTORED]

    assert len(rescaled) > 1
    assert result.violations == ()


def test_a_sink_with_at_least_once_barriers_commits_again_what_is_sent_again():
    """All records that come in the end, and those from behind the barrier a second time."""
    result = ran("at-least-once-sink-reads-less-again")

    assert int(result.commits["records"].sum()) == 105 + 30
    assert [row.fact for row in result.repetitions] == ["30 records (180000 bytes) are processed twice"]
    assert result.violations == ()

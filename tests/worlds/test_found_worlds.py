"""Worlds that once broke a run, shrunk: each asks a question, and its run is sound."""

import pytest

from sim.model.schema.study import load
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.places import DATA

WORLDS = DATA / "worlds"


def ran(world):
    """What comes of its only scenario."""
    (scenario,) = load(WORLDS / f"{world}.yaml").scenarios
    return simulate(scenario)


RESTARTS = {
    # A job gets over flushes that fail: its restarts wait for nobody, and it comes to its end.
    "flush-slow-nodes": ("FINISHED", "task"),
    "flush-broadcast": ("FINISHED", "task"),
    "flush-union": ("FINISHED", "task"),
    # An overtaken barrier leaves captures alone: a barrier of an expired savepoint waits for credit while one of a
    # later checkpoint passes it.
    "overtaken-savepoint-barrier": ("FINISHED", "checkpoints"),
    # A rescale begins from its own savepoint: the stop for it fails, and the job ends by itself: an older savepoint
    # would commit again what came after it.
    "rescale-stop-fails": ("FINISHED", "task"),
    # A rescale deals out two bytes: each of three subtasks gets its part of them, which is less than a byte.
    "rescaled-with-two-bytes": ("FINISHED", "rescale"),
    # Keys live as long however often they are counted: each flush of the changelog counts the live keys: it rounds
    # nothing off.
    "keys-looked-at-often": ("FINISHED",),
    # A new job manager counts failures anew: those it has seen do not suffice to fail the job.
    "restart-attempts-after-a-job-manager": ("RUNNING", "task", "job-manager", "task"),
    "tolerable-failed-after-a-job-manager": ("RUNNING", "job-manager"),
    # A task that is restored as finished has no timer: a sink fails between the final checkpoint and the end:
    # windows upstream are restored as finished, and two of their ends go by.
    "timers-of-a-finished-task": ("FINISHED", "task"),
    # A restore brings back what was stored: a task that had finished has no state any more; output that its readers
    # recover is read by them, whatever their number is now.
    "state-of-a-finished-task": ("FINISHED", "task"),
    "rescaled-and-recovered-downstream": ("FINISHED", "rescale"),
    # A task closes when its thread has frozen its state: a materialisation is a mail of the task: closing comes
    # behind it, and none comes after that.
    "closes-while-it-freezes": ("FINISHED",),
    # A machine is missed where only finished tasks wait for it: the restart that was to deploy on it is left to the
    # next one.
    "lost-while-the-finished-wait": ("FINISHED", "task-manager", "task-manager"),
    # A source whose data has ended sends no watermark: its generator is stopped (SourceOperator#finish); what came
    # while it was idle leaves no window behind its end.
    "idle-sources-that-end": ("FINISHED",),
    # A task that heard of no completion builds upon what it restored: files of a snapshot that its job did not
    # claim: Flink refers to them until a notification comes through.
    "unclaimed-and-unnotified": ("FINISHED", "instance"),
    # A snapshot whose keys had expired is restored as one without state: a changelog begins anew behind the
    # restart; it went on with the size that the run had begun with.
    "changelog-of-expired-keys": ("FINISHED", "job-manager"),
    # The end of the data ends all windows of a record: a task ends naively, and is restored from a snapshot that it
    # took behind the end: its windows need not hold those records again.
    "windows-ended-before-a-restart": ("FINISHED", "task-manager"),
    # A window that was restored as finished stays so: its operator has state of its own in each snapshot, and no
    # timer: behind the second failure none fires.
    "windows-restored-as-finished": ("FINISHED", "task", "task"),
    # Keys of tasks that had finished are not there: behind a rescale a subtask may get key groups of such tasks
    # alone: it begins with nothing, not with what the run had begun with.
    "keys-of-finished-tasks-rescaled": ("FINISHED", "rescale"),
    # A subtask of rocksdb begins without a byte: two bytes are divided among three subtasks: the third opens an
    # empty tree, fails and is rescaled with it.
    "rocksdb-with-fewer-bytes-than-subtasks": ("FINISHED", "task", "rescale"),
    # Memtables of one entry lose no key: their few keys were rounded into ranges that had no place for them.
    "memtables-of-one-entry": ("FINISHED",),
    # Windows of finished tasks are rescaled: they keep nothing; those of the other tasks hand over the ends of
    # their windows.
    "windows-of-finished-tasks-rescaled": ("FINISHED", "rescale"),
    # A snapshot that is cancelled while its merged file is closed leaves no file: its checkpoint is over, so the
    # writer itself closes the physical file; then it is interrupted.
    "cancelled-while-a-merged-file-is-closed": ("RUNNING",),
    # A file waits to be deleted behind one on a slow prefix.
    "deletes-at-a-slow-prefix": ("FINISHED",),
    # A checkpoint that begins before the first is heard of may build upon what was restored: its tasks know of
    # nothing newer, claimed or not.
    "begun-before-the-first-is-heard-of": ("FINISHED", "rescale"),
}
"""World -> how its job ends, and what each of its restarts is due to."""


@pytest.mark.parametrize("world", RESTARTS)
def test_a_world_that_broke_a_run_is_sound(world):
    result = ran(world)

    assert result.violations == ()
    assert RESTARTS[world] == (result.job_status, *result.recoveries["kind"])


@pytest.mark.parametrize(
    "world", ["changelog-savepoint", "changelog-overlapping", "changelog-canonical", "changelog-slow-storage"]
)
def test_a_changelog_beside_savepoints_and_other_checkpoints(world):
    """Materialisations and savepoints are numbered apart; a file of the log may be awaited by several checkpoints, one after the other."""
    result = ran(world)

    assert result.violations == ()
    assert (result.checkpoints["status"] == "COMPLETED").sum() > 0


def test_a_changelog_is_not_materialised_anew_before_a_checkpoint_has_confirmed_the_last_time():
    """It would build on files that the next completion deletes: an acknowledgement that names them comes to nothing."""
    result = ran("changelog-materialised-between-checkpoints")

    assert Happening.STATE_UNKNOWN not in {entry.happening for entry in result.journal}
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


def test_metadata_of_a_savepoint_and_of_a_checkpoint():
    """Both are due at once: the savepoint is complete first, and holds everybody's part."""
    result = ran("savepoint-metadata")

    assert result.violations == ()
    assert {"COMPLETED"} == set(result.checkpoints["status"])


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

    assert {"CHECKPOINT_EXPIRED"} == {row.detail for row in result.journal if row.happening is Happening.ABORTED}
    assert result.violations == ()


def times_ms(result, *happenings):
    return [row.time_ns // 1_000_000 for row in result.journal if row.happening in happenings]


def test_a_final_checkpoint_needs_a_job_manager():
    """All data is read while there is none: tasks wait for the next one, which restarts the job."""
    result = ran("final-checkpoint-without-a-job-manager")

    assert result.violations == ()
    assert [at for at in times_ms(result, Happening.TRIGGERED, Happening.COMPLETED) if 990 < at < 3990] == []
    assert (result.job_status, result.ended_ns // 1_000_000_000) == ("FINISHED", 4)


def test_savepoints_and_stops_without_a_job_manager_are_refused():
    """The client gets an error, and the job goes on as if nobody had asked."""
    result = ran("savepoint-without-a-job-manager")

    assert result.violations == ()
    assert result.job_status == "RUNNING"
    assert [kind for kind in result.checkpoints["savepointFormat"] if kind] == []
    reason = "There is no JobManager: the client gets an error"
    assert [f"a savepoint or stop at {at} s: {reason}" for at in ("4.000000", "5.000000")] == result.refused


def test_a_rescale_waits_for_a_job_manager():
    """Asked for at 5 s, it comes with the next JobManager at 9 s.  Until then tasks work on."""
    result = ran("rescale-without-a-job-manager")
    old, new = result.recoveries.to_dict("records")

    assert result.violations == ()
    assert (old["kind"], old["failed"], old["deployed"]) == ("job-manager", 9000, -1)
    assert (new["kind"], new["failed"]) == ("rescale", 9000)
    assert times_ms(result, Happening.RESCALED) == [9000]


def test_what_windows_held_when_their_operator_finished_stays_lost():
    """Both restarts begin with snapshots of finished operators: no timer fires, and the two records of open windows stay away."""
    result = ran("timers-of-finished-windows")

    assert result.violations == ()
    assert len(result.recoveries) == 2
    assert (result.recoveries["restored_checkpoint"] > 0).all()


def test_a_task_that_has_finished_materialises_no_more():
    """It gives its threads back: the job ends more than a second later."""
    result = ran("materialises-when-finished")
    finished = {row.task: row.time_ns for row in result.journal if row.happening is Happening.TASK_FINISHED}

    assert result.violations == ()
    assert finished[2] + 1_000_000_000 < max(finished.values())


def test_a_store_with_a_request_limit_deletes_late():
    """A checkpoint completes after many that have expired: their files wait in line, and none is lost sight of."""
    result = ran("deletes-behind-a-request-limit")

    assert result.violations == ()
    assert (result.checkpoints["status"] == "FAILED").sum() > 0


def test_the_last_checkpoint_waits_for_deletions():
    """Flink triggers nothing while it cleans up more checkpoints than may be under way; a slow store takes more than a second."""
    result = ran("last-checkpoint-behind-deletions")

    assert result.violations == ()
    assert "FAILED" in set(result.checkpoints["status"])


def test_a_stop_waits_for_its_savepoint_alone():
    """The final checkpoint is taken beside it, and is complete before it: the job ends with the savepoint all the same."""
    result = ran("final-checkpoint-beside-a-stop")

    assert result.violations == ()
    assert {"COMPLETED"} == set(result.checkpoints["status"])


def test_a_canonical_savepoint_without_a_byte_is_none():
    """One byte of state lies in one of two subtasks; the savepoint of the other one holds no stream of keys."""
    result = ran("canonical-savepoint-without-a-byte")

    assert result.violations == ()
    assert sorted(set(result.checkpoints["x_job"])) == [0, 1]


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

    assert "reads no more from" in result.checkpoints["x_standstill"].iloc[-1]

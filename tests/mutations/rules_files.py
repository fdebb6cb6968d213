"""Rules of stored snapshots and chains of jobs, as `rules.py` has them for the protocols."""

from __future__ import annotations

from tests.mutations.rule import Rule

__all__ = ["FILES"]

PROTOCOL, LAWS, RUNTIME = "tests/protocol/", "tests/laws/test_laws_shared_state.py::", "tests/runtime/"

FILES = (
    Rule(
        "a shared file stays as long as the lowest retained checkpoint names it",
        "protocol/snapshot_store.py",
        "entry.last_used < lowest_retained]",
        "entry.last_used <= lowest_retained]",
        f"{LAWS}test_law_36_a_shared_file_lives_as_long_as_a_checkpoint_names_it",
    ),
    Rule(
        "naming a file again keeps it alive",
        "protocol/snapshot_store.py",
        "changes[file.key] = SharedFile(file, old.created_by, checkpoint)",
        "changes[file.key] = old",
        f"{LAWS}test_law_36_a_shared_file_lives_as_long_as_a_checkpoint_names_it",
    ),
    Rule(
        "files that were not claimed are not deleted",
        "protocol/snapshot_store.py",
        "entry.created_by > self.highest_not_claimed and ",
        "",
        f"{LAWS}test_law_36_a_shared_file_lives_as_long_as_a_checkpoint_names_it",
    ),
    Rule(
        "a claimed native savepoint goes as a whole",
        "protocol/snapshot_store.py",
        " and entry.created_by not in self.indivisible)",
        ")",
        f"{PROTOCOL}snapshots/test_shared_state.py::test_a_claimed_native_savepoint_goes_as_a_whole",
    ),
    Rule(
        "without a claim the first checkpoint is full",
        "protocol/snapshot_store.py",
        'full_required=claim == "no-claim",',
        "full_required=False,",
        f"{LAWS}test_law_37_without_a_claim_nothing_outside_is_needed_after_the_first_checkpoint",
    ),
    Rule(
        "failing over to a snapshot that was not claimed needs a full checkpoint again",
        "protocol/snapshot_store.py",
        "full_required=foreign and self.rearms_full",
        "full_required=False",
        "tests/protocol/snapshots/test_snapshot_store.py::test_failing_over_to_the_restored_snapshot_needs_a_full_checkpoint_again",
    ),
    Rule(
        "a restored snapshot that was not claimed stays when it is subsumed",
        "protocol/snapshot_store.py",
        " if is_ours and not indivisible else ()",
        " if not indivisible else ()",
        f"{LAWS}test_law_36_a_shared_file_lives_as_long_as_a_checkpoint_names_it",
    ),
    Rule(
        "the shared files of a late acknowledgement are registered",
        "protocol/snapshot_store.py",
        "        if shared:\n",
        "        if shared and one is not None:\n",
        f"{PROTOCOL}snapshots/test_snapshot_store.py::test_a_late_acknowledgement_registers_what_it_shares",
    ),
    Rule(
        "the private files of a late acknowledgement are deleted",
        "protocol/snapshot_store.py",
        "            return after, (DeleteDirectory(event.checkpoint, _private(snapshot)),)\n",
        "            return after, ()\n",
        f"{PROTOCOL}snapshots/test_snapshot_store.py::test_a_late_acknowledgement_registers_what_it_shares",
    ),
    Rule(
        "a savepoint is not retained",
        "protocol/snapshot_store.py",
        "        if completed.is_savepoint:\n",
        "        if False:\n",
        f"{PROTOCOL}snapshots/test_snapshot_store.py::test_a_savepoint_is_the_users",
    ),
    Rule(
        "absolute paths lead back to the old place",
        "model/storage.py",
        "        return posixpath.relpath(path, base) if inside(path, base) else path\n",
        "        return posixpath.relpath(path, base)\n",
        f"{LAWS}test_law_39_savepoints_can_be_moved_and_incremental_checkpoints_cannot",
    ),
    Rule(
        "a file that is gone is missed by the snapshots that name it",
        "protocol/snapshot_store.py",
        "        return all(map(exists, snapshot.files))\n",
        "        return True\n",
        f"{LAWS}test_law_40_a_file_nobody_names_is_not_missed",
    ),
    Rule(
        "triggers wait for deletions",
        "runtime/jobmanager/snapshot_files.py",
        "                    self._delete(ids, discarded)\n",
        "                    self._delete(ids)\n                    discarded()\n",
        f"{RUNTIME}jobmanager/test_snapshot_files.py::test_slow_deletes_hold_triggers_back",
    ),
    Rule(
        "an acknowledgement names its files",
        "runtime/jobmanager/coordinator_host.py",
        "            if not self.files.acknowledged(checkpoint, task):\n",
        "            if False:\n",
        f"{RUNTIME}jobmanager/test_snapshot_files.py::test_tables_say_who_needed_what",
    ),
    Rule(
        "in-flight data goes with its checkpoint",
        "runtime/task/tasks.py",
        "writer.on_file, writer.on_inlined = keep_file, ",
        "writer.on_inlined = ",
        f"{RUNTIME}jobmanager/test_snapshot_files.py::test_channel_state_belongs_to_its_checkpoint",
    ),
    Rule(
        "a task that gives its snapshot up deletes what it had written",
        "runtime/jobmanager/snapshot_files.py",
        "        self._delete([FileId(handle.file) for handle in handles if handle.file is not None], by_task=True)\n",
        "        del handles\n",
        f"{RUNTIME}jobmanager/test_snapshot_files.py::test_what_a_task_had_written_for_nothing_goes",
    ),
    Rule(
        "a job instance goes on counting after its snapshot",
        "protocol/coordinator.py",
        "failures, restored + 1,",
        "failures, 1,",
        f"{RUNTIME}run/test_instances.py::test_a_chain_goes_on_where_it_was",
    ),
    Rule(
        "tasks are asked for everything where nothing may be reused",
        "protocol/snapshot_store.py",
        'return "full" if requested',
        'return "checkpoint" if requested',
        f"{PROTOCOL}snapshots/test_snapshot_store.py::test_without_a_claim_the_first_checkpoint_is_full",
    ),
    Rule(
        "a job begins from a copy only if the copy is whole",
        "runtime/simulate.py",
        "        if not restorable(snapshot, directories, copied=copied, exists=instance.job.files.exists):\n",
        "        if False:\n",
        f"{RUNTIME}run/test_instances.py::test_a_lost_cluster",
    ),
    Rule(
        "an acknowledgement that names what is gone comes to nothing",
        "protocol/snapshot_store.py",
        "            return self, (LoseAcknowledgement(event.checkpoint),)\n",
        "            pass\n",
        f"{RUNTIME}jobmanager/test_snapshot_files.py::test_increments_that_overlap_lose_each_others_files",
    ),
    Rule(
        "a write under way goes on to its end when its file is given up",
        "storage/media/object_store.py",
        "        if not self._busy:\n",
        "        if True:\n",
        "tests/storage/media/test_object_store.py::test_a_write_whose_file_is_given_up_goes_on_to_its_end",
    ),
)

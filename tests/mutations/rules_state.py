"""Rules of state and its snapshots, as `rules.py` has them for the protocols."""

from __future__ import annotations

from tests.mutations.rule import Rule

__all__ = ["STATE"]

TESTS, LAWS, RUNTIME = "tests/state/test_", "tests/laws/test_laws_state.py::", "tests/runtime/"

STATE = (
    Rule(
        "an increment builds on a checkpoint that is known to be complete",
        "state/increments.py",
        "        self._uploaded[number] = files\n",
        "        self._uploaded[number] = files\n        self._base = number\n",
        f"{TESTS}backends.py::test_what_is_not_confirmed_is_written_again",
    ),
    Rule(
        "a savepoint leaves the base of increments alone",
        "state/rocksdb.py",
        '        elif type_ in ("canonical", "native") and not self.options.savepoints_keep_base:\n',
        '        elif type_ in ("canonical", "native"):\n',
        f"{LAWS}test_law_39_a_savepoint_leaves_increments_alone",
    ),
    Rule(
        "a savepoint shares nothing",
        "state/rocksdb.py",
        'shared = self.options.incremental and type_ in ("checkpoint", "full")',
        "shared = self.options.incremental",
        f"{LAWS}test_law_39_a_savepoint_has_all_its_files_to_itself",
    ),
    Rule(
        "a full checkpoint reuses nothing",
        "state/rocksdb.py",
        'base = self.increments.base if shared and type_ == "checkpoint" else {}',
        "base = self.increments.base if shared else {}",
        f"{TESTS}backends.py::test_a_full_checkpoint_reuses_nothing_and_may_be_reused",
    ),
    Rule(
        "an increment writes only what is new",
        "state/rocksdb.py",
        "for name, size_bytes in live if name not in base)",
        "for name, size_bytes in live)",
        f"{TESTS}backends.py::test_an_incremental_checkpoint_writes_what_is_new",
    ),
    Rule(
        "four files of level 0 start a compaction",
        "state/lsm.py",
        "        if len(self.levels[0]) >= self.options.level0_files:\n",
        "        if len(self.levels[0]) > self.options.level0_files:\n",
        f"{TESTS}lsm.py::test_every_snapshot_adds_a_table_and_the_fourth_is_compacted",
    ),
    Rule(
        "a compaction takes its time",
        "state/lsm.py",
        "            ends_ns = now_ns + volume * _SECOND // self.options.compaction_bytes_per_second\n",
        "            ends_ns = now_ns + volume - volume\n",
        f"{TESTS}lsm.py::test_a_compaction_takes_its_time",
    ),
    Rule(
        "a key written twice is one entry",
        "state/lsm.py",
        "        updated = distinct(self._writes - self._loaded, self.keys)\n",
        "        updated = self._writes - self._loaded\n",
        f"{TESTS}lsm.py::test_a_flush_holds_each_key_once",
    ),
    Rule(
        "a new key in a memtable is in no other table",
        "state/lsm.py",
        "        self._loaded += keys\n",
        "",
        f"{TESTS}lsm.py::test_new_keys_are_in_the_next_table_and_in_what_it_is_merged_into",
    ),
    Rule(
        "a snapshot waits for the disk of a compaction under way",
        "state/rocksdb.py",
        "        held_ns = int(self.tree.busy_ns(self._now_ns) * self.state.lsm.wait)\n",
        "        held_ns = 0\n",
        f"{TESTS}backends.py::test_a_snapshot_that_starts_a_compaction_waits_for_the_disk",
    ),
    Rule(
        "the wait for a disk is in one part of the snapshot or the other, never in both",
        "runtime/task/state_snapshot.py",
        "        if rest_ns := snapshot.keyed.held_ns - self._held_ns(snapshot.keyed, checkpoint):\n",
        "        if rest_ns := snapshot.keyed.held_ns:\n",
        f"{RUNTIME}task/test_state_transfer.py::test_a_wait_for_the_disk_falls_into_one_part_of_the_snapshot_or_both",
    ),
    Rule(
        "a table without neighbours below moves down as it is",
        "state/lsm.py",
        "            if level and not met:  # nothing to merge with: the file goes down as it is\n",
        "            if level and not met and level > 9:\n",
        f"{TESTS}lsm.py::test_a_table_moves_down_without_being_rewritten",
    ),
    Rule(
        "tables are written before everything else of RocksDB's files",
        "state/rocksdb.py",
        "            WriteStep(new, self.options.transfer_threads),\n            WriteStep(self._other_files(scope),",
        "            WriteStep((*new, *self._other_files(scope)),",
        f"{TESTS}backends.py::test_files_are_written_in_flinks_order",
    ),
    Rule(
        "writing a canonical savepoint slows its task, and only that long",
        "runtime/task/state_snapshot.py",
        "                self.slow(Fraction(1))\n",
        "                pass\n",
        f"{RUNTIME}task/test_state_transfer.py::test_a_cancelled_savepoint_slows_nobody",
    ),
    Rule(
        "a local copy is lost with its disk",
        "runtime/task/state_snapshot.py",
        "        if others or share != 1 or snapshot.local is None or not storage.files.exists(snapshot.local):\n",
        "        if others or share != 1 or snapshot.local is None:\n",
        f"{RUNTIME}task/test_state_transfer.py::test_a_local_heap_is_read_from_disk",
    ),
    Rule(
        "a restored task counts its updates from where it stood",
        "runtime/task/state_snapshot.py",
        "        self._updates = 0\n        self._rewritten(served)\n",
        "        self._updates = 0\n",
        f"{RUNTIME}task/test_state_transfer.py::test_a_restored_task_counts_its_updates_from_where_it_stands",
    ),
    Rule(
        "a restored RocksDB goes on incrementally",
        "state/rocksdb.py",
        "        self.increments.restart(number, tables if",
        "        self.increments.restart(number, {} if",
        f"{TESTS}backends.py::test_restored_rocksdb_goes_on_incrementally",
    ),
    Rule(
        "a checkpoint waits for the tail of the changelog",
        "runtime/task/state_snapshot.py",
        "                    snapshot.logged.append((yield from self.log.wait(file)))\n",
        "                    pass\n",
        f"{RUNTIME}task/test_log_writer.py::test_a_checkpoint_waits_for_the_tail",
    ),
    Rule(
        "a file of the changelog that several checkpoints wait for is written once",
        "runtime/task/log_writer.py",
        "        if self._claims[file.name] > 0:\n",
        "        if self._claims[file.name] > 9:\n",
        f"{RUNTIME}task/test_log_writer.py::test_a_file_that_two_checkpoints_wait_for_is_written_once",
    ),
    Rule(
        "state grows with the records served",
        "runtime/task/state_snapshot.py",
        "self.vertex.state.growth_bytes * served)",
        "self.vertex.state.growth_bytes)",
        f"{RUNTIME}task/test_state_transfer.py::test_state_grows_with_the_records_served",
    ),
    Rule(
        "restored keys are not logged again",
        "state/changelog.py",
        "        self._held_bytes = None\n",
        "",
        f"{TESTS}backends.py::test_new_keys_are_logged_and_restored_ones_are_not",
    ),
    Rule(
        "an upload of the changelog that failed is missed by the next checkpoint",
        "state/changelog.py",
        "        if self._failed_bytes > self._from_bytes:  #",
        "        if self._failed_bytes < 0:  #",
        f"{RUNTIME}task/test_log_writer.py::test_a_failed_upload_is_not_tried_again",
    ),
    Rule(
        "a materialisation gets over an upload that failed",
        "state/changelog.py",
        "        if self._failed_bytes > self._from_bytes:  #",
        "        if self._failed_bytes > 0:  #",
        f"{RUNTIME}task/test_log_writer.py::test_a_materialisation_gets_over_a_failed_upload",
    ),
    Rule(
        "a materialisation truncates the log",
        "state/changelog.py",
        "        self._log = [(end_bytes, handle) for end_bytes, handle in self._log if end_bytes > self._from_bytes]\n",
        "",
        f"{TESTS}backends.py::test_materialisation_truncates_the_log",
    ),
    Rule(
        "a materialisation belongs to no checkpoint",
        "state/changelog.py",
        'file._replace(scope="shared") for file in step.files',
        "file for file in step.files",
        f"{LAWS}test_a_restored_state_is_whole_and_goes_on",
    ),
    Rule(
        "nobody must be left to hear of a failure",
        "storage/parallel.py",
        "            self._over.break_off(failure)  #",
        "            _ = self._over.triggered or self._over.fail(failure)  #",
        "tests/storage/test_parallel.py::test_who_waits_may_be_stopped_in_the_instant_of_a_failure",
    ),
)

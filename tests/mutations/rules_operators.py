"""Rules of operators that write files and transactions."""

from tests.mutations.rule import Rule

LAWS, RUNTIME = "tests/invariants/jobs/test_invariants_of_", "tests/runtime/"
_IO = f"{RUNTIME}task/test_operator_io.py::test_"

OPERATORS = (
    Rule(
        "an acknowledgement waits for the uploads of its operator",
        "runtime/task/sink.py",
        "            yield self._change\n",
        "            return\n            yield self._change\n",
        f"{LAWS}sinks.py::test_invariants_15_to_17_output_is_committed_once_and_in_full",
    ),
    Rule(
        "an acknowledgement waits for the uploads of aborted snapshots too",
        "runtime/task/sink.py",
        "for number, files in self._flushes.items() if number <= checkpoint for",
        "for number, files in self._flushes.items() if number == checkpoint for",
        f"{LAWS}sinks.py::test_invariant_17_the_acknowledgement_waits_for_the_files_of_aborted_snapshots",
    ),
    Rule(
        "an upload that fails declines its checkpoint",
        "runtime/task/sink.py",
        "                if file.failure is not None:\n                    raise file.failure\n",
        "",
        f"{_IO}an_upload_that_fails_declines_the_checkpoint",
    ),
    Rule(
        "an abort under the policy drop deletes what is durable already",
        "runtime/task/sink.py",
        '                if self._policy == "drop":\n                    self._drop(file)\n',
        "",
        f"{LAWS}sinks.py::test_invariant_17_is_broken_when_an_abort_drops_the_files",
    ),
    Rule(
        "files without room on the local disk wait for uploads",
        "runtime/task/sink.py",
        "            yield from self.space.reserve(file.size_bytes)\n",
        "            self.space.used_bytes += file.size_bytes\n",
        f"{_IO}without_local_room_a_flush_waits_for_uploads",
    ),
    Rule(
        "the end of the input writes its files once",
        "runtime/task/sink.py",
        "if file.stored is None and file.local is None]",
        "]",
        f"{_IO}the_files_of_the_end_are_written_once",
    ),
    Rule(
        "a failed flush leaves the task thread",
        "runtime/task/parts.py",
        "                self.slot.thread.free()  #",
        "                pass  #",
        f"{_IO}a_failed_flush_leaves_the_thread",
    ),
    Rule(
        "behind the barrier, files do not keep the task thread",
        "runtime/task/epochs.py",
        "files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else files.stage(checkpoint)",
        "files.write(checkpoint)",
        f"{LAWS}sinks.py::test_invariant_29_files_that_take_time_differ",
    ),
    Rule(
        "a committer has what came before the barriers it snapshots",
        "runtime/task/epochs.py",
        "            self.committer.receive_committable(checkpoint)\n",
        "            pass\n",
        f"{LAWS}sinks.py::test_invariant_16_there_is_something_to_carry_over",
    ),
    Rule(
        "a writer goes on where the checkpoint stood",
        "runtime/task/epochs.py",
        "            self._dispatch_to_writer(WriterRestored(checkpoint, written))\n",
        "            self._dispatch_to_writer(WriterRestored(checkpoint, (0,) * len(written)))\n",
        "tests/injections/test_least_worlds.py::test_least_worlds_are_clean[expired transactions are committed again]",
    ),
    Rule(
        "what is visible is not made visible again",
        "runtime/task/sink.py",
        "            fresh = tuple(committable for committable in commit.committables if not self.output.has(committable))\n",
        "            fresh = commit.committables\n",
        "tests/injections/test_least_worlds.py::test_least_worlds_are_clean[a committable is counted twice]",
    ),
    Rule(
        "what is visible is not lost",
        "runtime/task/sink.py",
        "        lost = tuple(committable for committable in reported if not self.output.settled(committable))\n",
        "        lost = tuple(reported)\n",
        f"{_IO}a_restart_loses_nothing_that_is_visible_already",
    ),
    Rule(
        "the notification of an abort tells of the latest completion first",
        "runtime/task/host.py",
        "            if latest_completed:\n                self._on_checkpoint_completed(latest_completed)\n",
        "",
        f"{_IO}an_abort_tells_of_the_completion_before_it",
    ),
    Rule(
        "the edge to a committer is never unaligned",
        "protocol/options.py",
        " or _is_committer_without_unaligned(job, vertex)",
        "",
        f"{_IO}the_committer_reads_barriers_and_no_records",
    ),
    Rule(
        "what a barrier has overtaken is in-flight data of its checkpoint",
        "runtime/task/sink.py",
        "return Uncommitted(checkpoint, (*self._waiting, *self.machine.committables), behind)",
        "return Uncommitted(checkpoint, (*self._waiting, *self.machine.committables))",
        "tests/runtime/task/test_committer_of_a_sink.py::test_flinks_own_committer_loses_nothing_that_is_overtaken",
    ),
    Rule(
        "what waits for another attempt at its commit is in a checkpoint",
        "runtime/task/sink.py",
        "(*self._waiting, *self.machine.committables), behind)",
        "self.machine.committables, behind)",
        "tests/model/schema/test_connectors.py::test_what_waits_for_another_attempt_is_in_the_next_checkpoint",
    ),
    Rule(
        "a list of files that a snapshot sets replaces the one of the same checkpoint",
        "protocol/commit.py",
        "rewritten = {checkpoint, *(committable.epoch for committable in self.since_snapshot)}",
        "rewritten = {checkpoint}",
        "tests/runtime/task/test_committer_of_a_sink.py::test_late_files_replace_those_of_their_own_checkpoint",
    ),
    Rule(
        "a restore takes lists up to the table's newest commit for committed",
        "protocol/commit.py",
        "_split_at(event.committables, event.newest_commit)",
        "_split_at(event.committables, 0)",
        "tests/runtime/task/test_committer_of_a_sink.py::test_a_commit_that_fails_lets_the_older_list_be_forgotten",
    ),
    Rule(
        "the next instance of a job knows what was committed",
        "runtime/context.py",
        "        self._committed |= before._committed\n",
        "",
        f"{RUNTIME}test_committed_output.py::test_a_rescaled_job_commits_nothing_twice",
    ),
)

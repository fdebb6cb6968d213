"""Rules of the protocols as data: where each is written, how one line breaks it, and which test notices.

A rule that nobody would miss is not held by the tests.  `text` is in `file` exactly once, or in the function or class
that `inside` names; `broken` takes its place in a copy.
"""

from __future__ import annotations

from tests.mutations.rule import Rule
from tests.mutations.rules_accounts import ACCOUNTS
from tests.mutations.rules_edges import EDGES
from tests.mutations.rules_ends import ENDS
from tests.mutations.rules_files import FILES
from tests.mutations.rules_finishing import FINISHING
from tests.mutations.rules_job_manager import JOB_MANAGER
from tests.mutations.rules_operators import OPERATORS
from tests.mutations.rules_recovery import RECOVERY
from tests.mutations.rules_residuals import RESIDUALS
from tests.mutations.rules_state import STATE
from tests.mutations.rules_timing import TIMING
from tests.mutations.rules_windows import WINDOWS

PROTOCOL, LAWS, RUNTIME = "tests/protocol/", "tests/invariants/jobs/test_invariants_of_", "tests/runtime/"

BARRIERS = (
    Rule(
        "an aligned snapshot begins with the last barrier, not the first",
        "protocol/barrier_handler.py",
        "        if pending.complete:  # checked before",
        "        if pending.seen:  # checked before",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_two_of_three_gates_wait",
    ),
    Rule(
        "channels are unblocked only after the sync phase",
        "protocol/task_checkpointing.py",
        "    return after, (*timer, *closing, RunSync(",
        "    return after, (*timer, *closing, ResumeInputs(snapshot.checkpoint), RunSync(",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_the_phases_of_an_aligned_snapshot",
    ),
    Rule(
        "a newer barrier gives the older alignment up",
        "protocol/barrier_handler.py",
        "    if handler.pending is not None:\n        handler, commands = _abort_checkpoint(",
        "    if handler.pending is None:\n        handler, commands = _abort_checkpoint(",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_a_newer_barrier_subsumes_the_alignment",
    ),
    Rule(
        "an obsolete barrier changes nothing",
        "protocol/barrier_handler.py",
        "return checkpoint < handler.current or",
        "return checkpoint < handler.completed or",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_an_obsolete_barrier_changes_nothing",
    ),
    Rule(
        "a checkpoint given up is declined and its cancellation is passed on",
        "protocol/barrier_handler.py",
        "done = (SettleBarriers(checkpoint), DeclineCheckpoint(checkpoint, reason), ForwardCancellation(checkpoint))",
        "done = (SettleBarriers(checkpoint), DeclineCheckpoint(checkpoint, reason))",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_a_cancellation_aborts_the_alignment",
    ),
    Rule(
        "a cancellation of something old is ignored",
        "protocol/barrier_handler.py",
        "        if event.checkpoint > self.current or (event.checkpoint == self.current and has_barrier):\n",
        "        if event.checkpoint <= self.current or has_barrier:\n",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_an_old_cancellation_is_ignored",
    ),
    Rule(
        "a closed gate counts as its barrier",
        "protocol/barrier_handler.py",
        "        pending = replace(self.pending, arrived=self.pending.arrived | {event.gate}, first_barrier_ns=first)\n",
        "        pending = replace(self.pending, first_barrier_ns=first)\n",
        f"{PROTOCOL}barriers/test_aligned_barriers.py::test_a_closed_gate_counts_as_arrived",
    ),
    Rule(
        "an unaligned snapshot keeps what is on its way before anything else runs",
        "protocol/barrier_handler.py",
        "    return CaptureInput(pending.checkpoint), pending.snapshot(options.as_unaligned(), now)\n",
        "    return (pending.snapshot(options.as_unaligned(), now),)\n",
        f"{PROTOCOL}barriers/test_alternating_barriers.py::test_the_first_unaligned_barrier_starts_the_snapshot",
    ),
    Rule(
        "capturing ends with the last barrier",
        "protocol/barrier_handler.py",
        "        done = FinishCapture(pending.checkpoint), pending.inputs_complete(now), ResumeInputs(pending.checkpoint)\n",
        "        done = pending.inputs_complete(now), ResumeInputs(pending.checkpoint)\n",
        f"{PROTOCOL}barriers/test_alternating_barriers.py::test_the_last_unaligned_barrier_ends_the_capture",
    ),
    Rule(
        "a complete alignment is aligned, however late",
        "protocol/barrier_handler.py",
        "        if pending.complete:  # checked before the deadline: a complete alignment is never unaligned\n",
        "        if pending.complete and not (options.timeoutable and now > options.deadline_ns):\n",
        f"{PROTOCOL}barriers/test_alternating_barriers.py::test_a_complete_alignment_is_aligned_however_late",
    ),
    Rule(
        "a barrier after the deadline goes unaligned without waiting for the timer",
        "protocol/barrier_handler.py",
        "        if options.timeoutable and now > options.deadline_ns:",
        "        if options.unaligned:",
        f"{PROTOCOL}barriers/test_alternating_barriers.py::test_a_late_barrier_times_out_without_the_timer",
    ),
    Rule(
        "the deadline counts from the trigger, in every task",
        "protocol/barrier_handler.py",
        "ArmAlignmentTimer(checkpoint, max(now, options.deadline_ns))",
        "ArmAlignmentTimer(checkpoint, now + options.deadline_ns - options.trigger_ns)",
        f"{PROTOCOL}barriers/test_alternating_barriers.py::test_the_timer_is_armed_at_the_first_announcement",
    ),
    Rule(
        "an output barrier still queued at the deadline is converted",
        "protocol/task_checkpointing.py",
        "self._output_done(event, (ConvertOutput(self.checkpoint),)) if waiting",
        "self._output_done(event, ()) if waiting",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_barriers_still_there_at_the_deadline_are_converted",
    ),
    Rule(
        "a forced aligned edge aligns, and the reader goes on as the checkpoint was meant",
        "protocol/task_checkpointing.py",
        "        options = start.options.with_unaligned_supported()\n",
        "        options = start.options\n",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_a_forced_aligned_barrier_goes_on_as_it_was_meant",
    ),
    Rule(
        "pointwise and broadcast edges carry no unaligned barriers",
        "protocol/options.py",
        "not inlet.shipping.overtaken or ",
        "inlet.shipping.pointwise or ",
        f"{PROTOCOL}test_strategies.py::test_pointwise_and_broadcast_edges_are_forced",
    ),
    Rule(
        "savepoints are aligned",
        "protocol/barrier_modes.py",
        "    if savepoint and chosen.alignment is not AlignmentType.AT_LEAST_ONCE:\n",
        "    if savepoint and chosen.alignment is AlignmentType.AT_LEAST_ONCE:\n",
        f"{PROTOCOL}test_strategies.py::test_savepoints_are_always_aligned",
    ),
    Rule(
        "an at-least-once task snapshots when it has counted the last barrier",
        "protocol/barrier_handler.py",
        "        return _complete_checkpoint(after, known, event.now) if known.complete else (after, ())\n",
        "        return _complete_checkpoint(after, known, event.now) if known.seen else (after, ())\n",
        f"{PROTOCOL}barriers/test_barrier_tracker.py::test_checkpoints_overlap",
    ),
)

SNAPSHOTS = (
    Rule(
        "the barrier leaves before the state snapshot",
        "protocol/task_checkpointing.py",
        "            return after, (ForwardBarrier(self.checkpoint, self.options),)\n",
        "            return after, (RunSync(self.checkpoint, ()), ForwardBarrier(self.checkpoint, self.options))\n",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_the_phases_of_an_aligned_snapshot",
    ),
    Rule(
        "the acknowledgement waits for the asynchronous work",
        "protocol/task_checkpointing.py",
        "    if snapshot.phase is Phase.ASYNC and not snapshot.missing and",
        "    if snapshot.phase is Phase.ASYNC and",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_the_channel_state_alone_is_not_enough",
    ),
    Rule(
        "the acknowledgement waits for the channel state",
        "protocol/task_checkpointing.py",
        "not snapshot.missing and snapshot.channel_state is not False:",
        "not snapshot.missing:",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_barriers_still_there_at_the_deadline_are_converted",
    ),
    Rule(
        "a timeoutable snapshot waits until its barriers have left the outputs",
        "protocol/barrier_modes.py",
        "finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT, Requirement.OUTPUT_BARRIERS}),",
        "finishing=frozenset({Requirement.ASYNC_WORK, Requirement.CAPTURED_INPUT}),",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_a_timeoutable_snapshot_waits_until_its_barriers_have_left",
    ),
    Rule(
        "the barrier of an aborted checkpoint becomes a cancellation",
        "protocol/task_checkpointing.py",
        "    was_aborted = checkpoint in task.aborted or",
        "    was_aborted = checkpoint + 10**9 in task.aborted or",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_a_barrier_of_an_aborted_checkpoint_becomes_a_cancellation",
    ),
    Rule(
        "an abort is heard after the synchronous part, not during it",
        "protocol/task_checkpointing.py",
        "                if self.holds_task:",
        "                if self.ended:",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_an_abort_during_the_synchronous_part_is_heard_afterwards",
    ),
    Rule(
        "a failure of the asynchronous part declines the checkpoint",
        "protocol/task_checkpointing.py",
        "                done = DeclineCheckpoint(self.checkpoint, event.reason), CancelSnapshot(self.checkpoint)\n",
        "                done = (CancelSnapshot(self.checkpoint),)\n",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_a_failed_asynchronous_part_declines",
    ),
    Rule(
        "with async-operate an operator's files are written behind the barrier",
        "protocol/barrier_modes.py",
        "pre_barrier=(), asynchronous=(*phases.asynchronous, Work.OPERATOR_FLUSH)",
        "pre_barrier=(), sync=(*phases.sync, Work.OPERATOR_FLUSH)",
        f"{PROTOCOL}task/test_task_checkpointing.py::test_operators_flush_in_the_asynchronous_phase",
    ),
    Rule(
        "a channel-state file closes when every subtask of its group has completed",
        "runtime/task_manager.py",
        " and not file.incomplete and not file.failed:\n",
        " and not file.failed:\n",
        f"{RUNTIME}taskmanager/test_files_of_a_task_manager.py::test_the_file_closes_when_all_members_completed",
    ),
    Rule(
        "little channel state stays in the acknowledgements",
        "runtime/task_manager.py",
        "if not (file.inlined and self.storage.is_inlined(file.size_bytes)):",
        "if not file.inlined:",
        "tests/runtime/taskmanager/test_files_of_a_task_manager.py::test_what_the_buffer_does_not_hold_goes_to_a_file",
    ),
    Rule(
        "what came with the acknowledgements is read in no time",
        "runtime/task/channel_state.py",
        "snapshot.in_flight_bytes - snapshot.inlined_bytes:",
        "snapshot.in_flight_bytes:",
        "tests/runtime/jobmanager/test_recovery_host.py::test_in_flight_data_in_acknowledgements_is_read_in_no_time",
    ),
    Rule(
        "captured buffers stay pinned until they are written",
        "runtime/task/channel_state.py",
        "        if capture.writes == 0:\n",
        "        if capture.writes >= 0:\n",
        f"{RUNTIME}task/test_parts_of_a_task.py::test_buffers_are_released_after_the_write",
    ),
)

COORDINATOR = (
    Rule(
        "min-pause counts from completion",
        "protocol/checkpoint_requests.py",
        "earliest_ns = last_completion_ns + self.min_pause_ns",
        "earliest_ns = first.request_ns + self.min_pause_ns",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_invariant_19_a_pause_drops_the_request_and_moves_the_grid",
    ),
    Rule(
        "a failure imposes no pause",
        "protocol/coordinator.py",
        "    after: Coordinator = replace(coordinator, pending=others, cleaning=coordinator.cleaning + 1)\n",
        "    after: Coordinator = replace(coordinator, pending=others, cleaning=coordinator.cleaning + 1, last_completion_ns=now)\n",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_a_failure_imposes_no_pause",
    ),
    Rule(
        "no more checkpoints are pending than configured",
        "protocol/checkpoint_requests.py",
        "        if pending >= self.max_concurrent:\n",
        "        if pending > self.max_concurrent:\n",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_invariant_18_one_slot_holds_back_the_next",
    ),
    Rule(
        "savepoints go first",
        "protocol/checkpoint_requests.py",
        "return (kind is not RequestKind.SAVEPOINT, not",
        "return (kind is RequestKind.SAVEPOINT, not",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_savepoints_go_first_and_are_forced_without_unaligned_checkpoints",
    ),
    Rule(
        "slow deletions hold back triggers",
        "protocol/checkpoint_requests.py",
        " or cleaning > self.max_concurrent:",
        ":",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_slow_deletions_hold_back_triggers",
    ),
    Rule(
        "a checkpoint is acknowledged by every task of its plan",
        "protocol/checkpoint_requests.py",
        "return len(self.acknowledged) == len(self.plan.wait_for)\n",
        "return len(self.acknowledged) >= max(1, len(self.plan.wait_for) - 1)\n",
        f"{LAWS}cut.py::test_invariants_08_and_12_runs_violate_no_invariant",
    ),
    Rule(
        "a savepoint commits nothing, unless the job stops with it",
        "protocol/coordinator.py",
        " if pending.stops else commands\n",
        "\n",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_a_savepoint_is_aligned_and_commits_nothing",
    ),
    Rule(
        "a completion subsumes older pending checkpoints",
        "protocol/coordinator.py",
        "        if older.checkpoint < pending.checkpoint and",
        "        if older.checkpoint > pending.checkpoint and",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_a_completion_subsumes_older_ones",
    ),
    Rule(
        "retained checkpoints are bounded, the latest stays",
        "protocol/coordinator.py",
        "    subsumed, kept = retained[: -after.num_retained], retained[-after.num_retained :]\n",
        "    subsumed, kept = retained[after.num_retained :], retained[: after.num_retained]\n",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_invariant_23_retained_checkpoints_are_bounded",
    ),
    Rule(
        "messages and timeouts wait while metadata is written",
        "runtime/jobmanager/coordinator_host.py",
        "        while self._waiting_calls and not self.machine.locked:\n",
        "        while self._waiting_calls:\n",
        "tests/runtime/jobmanager/test_storage_in_runs.py::test_metadata_is_written_under_the_lock",
    ),
    Rule(
        "a savepoint under way outlasts newer completions",
        "protocol/coordinator.py",
        "frozenset((*self.retained, *(pending.checkpoint for pending in self.pending)))",
        "frozenset(self.retained)",
        "tests/protocol/coordinator/test_coordinator.py::test_what_an_older_savepoint_holds_is_still_needed",
    ),
    Rule(
        "nothing expires while metadata is written",
        "protocol/coordinator.py",
        "if pending is None or pending.writes_metadata or event.now < pending.expires_ns:",
        "if pending is None or event.now < pending.expires_ns:",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_nothing_expires_while_metadata_is_written",
    ),
    Rule(
        "the job fails with the first counted failure beyond the tolerated ones",
        "protocol/coordinator.py",
        "        if after.count > after.tolerable:\n",
        "        if after.count > after.tolerable + 1:\n",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_invariant_21_the_first_counted_failure_too_many_fails_the_job",
    ),
    Rule(
        "a success forgives",
        "protocol/coordinator.py",
        "        return replace(self.reset(), last_success=checkpoint) if",
        "        return replace(self, last_success=checkpoint) if",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_invariant_21_a_success_forgives",
    ),
    Rule(
        "triggers follow a grid that does not drift",
        "protocol/coordinator.py",
        "self.next_ns + interval_ns)",
        "self.next_ns + interval_ns + 1)",
        f"{PROTOCOL}coordinator/test_coordinator.py::test_the_grid_does_not_drift",
    ),
    Rule(
        "while a source reads a backlog its interval is in force",
        "protocol/coordinator.py",
        "return self.backlog_interval_ns if self.backlog else self.interval_ns",
        "return self.interval_ns",
        f"{PROTOCOL}coordinator/test_backlog_interval.py::test_the_interval_of_the_backlog_is_in_force_while_a_source_reads_one",
    ),
    Rule(
        "a longer interval does not put off the checkpoint that is due",
        "protocol/coordinator.py",
        "PeriodicSchedule(min(self.next_ns, now + interval_ns))",
        "PeriodicSchedule(now + interval_ns)",
        f"{PROTOCOL}coordinator/test_backlog_interval.py::test_a_longer_interval_does_not_put_off_what_is_due",
    ),
    Rule(
        "without checkpoints in a backlog the grid parks until it ends",
        "protocol/coordinator.py",
        "NEVER if interval_ns is None else self.next_ns + interval_ns",
        "self.next_ns + 1 if interval_ns is None else self.next_ns + interval_ns",
        f"{PROTOCOL}coordinator/test_backlog_interval.py::test_without_checkpoints_in_a_backlog_the_point_that_was_armed_is_the_last",
    ),
    Rule(
        "a source that has caught up reports no backlog",
        "runtime/jobmanager/coordinator_host.py",
        "if behind != self.behind:",
        "if behind and not self.behind:",
        "tests/runtime/jobmanager/test_reported_backlog.py::test_no_checkpoint_is_triggered_while_history_is_read",
    ),
    Rule(
        "a source that has emitted its last record is not behind",
        "runtime/jobmanager/coordinator_host.py",
        "if source is None or served == source.total:",
        "if source is None:",
        "tests/runtime/jobmanager/test_reported_backlog.py::test_a_source_that_has_ended_is_not_behind",
    ),
)

SINKS = (
    Rule(
        "a commit covers every epoch up to its checkpoint: aborted committables are carried over",
        "protocol/commit.py",
        "    until = tuple(committable for committable in committables if committable.epoch <= checkpoint)\n",
        "    until = tuple(committable for committable in committables if committable.epoch == checkpoint)\n",
        f"{PROTOCOL}commit/test_sink.py::test_commits_coalesce",
    ),
    Rule(
        "what a snapshot held is committed again after a restore",
        "protocol/commit.py",
        "return _commit_up_to(restored, event.now, event.checkpoint, again=True)",
        "return restored, ()",
        f"{PROTOCOL}commit/test_sink.py::test_what_a_snapshot_held_is_committed_again",
    ),
    Rule(
        "the barrier closes the transaction",
        "protocol/commit.py",
        "        after, commands = self._closed(event, event.checkpoint)\n",
        "        after, commands = self._closed(event, event.checkpoint + 1)\n",
        f"{PROTOCOL}commit/test_sink.py::test_a_barrier_closes_the_transaction_and_opens_the_next",
    ),
    Rule(
        "a transaction open for longer than its timeout is lost",
        "protocol/commit.py",
        "now - committable.opened_ns > timeout_ns)",
        "now - committable.opened_ns < timeout_ns)",
        f"{PROTOCOL}commit/test_sink.py::test_a_transaction_open_for_too_long_is_lost",
    ),
    Rule(
        "what is committed is held no longer",
        "protocol/commit.py",
        "replace(committer, committables=waiting, last_completed=checkpoint)",
        "replace(committer, last_completed=checkpoint)",
        f"{PROTOCOL}commit/test_sink.py::test_a_completion_commits_what_it_covers",
    ),
)

RULES: tuple[Rule, ...] = (
    *BARRIERS,
    *SNAPSHOTS,
    *COORDINATOR,
    *SINKS,
    *OPERATORS,
    *STATE,
    *FILES,
    *FINISHING,
    *RECOVERY,
    *JOB_MANAGER,
    *ENDS,
    *TIMING,
    *ACCOUNTS,
    *WINDOWS,
    *RESIDUALS,
    *EDGES,
)

"""Rules of failure, recovery and rescaling."""

from __future__ import annotations

from tests.mutations.rule import Rule

__all__ = ["RECOVERY"]

_RESTART, _RECOVERY = "tests/protocol/recovery/test_restart.py::test_", "tests/protocol/recovery/test_recovery.py::test_"
_HOST, _DEALT = "tests/runtime/jobmanager/test_recovery_host.py::test_", "tests/runtime/setup/test_redistribution.py::test_"
_LAWS = "tests/laws/test_laws_failures.py::test_"

RECOVERY = (
    Rule(
        "failures before the restart they would cause are merged into it",
        "protocol/recovery/restart.py",
        "if self.next_restart_ns is not None and now <= self.next_restart_ns:",
        "if False:",
        f"{_RESTART}failures_before_the_restart_are_merged_into_it",
    ),
    Rule(
        "a quiet time resets the restart delay",
        "protocol/recovery/restart.py",
        "made = 0 if quiet else self.made",
        "made = self.made",
        f"{_RESTART}a_quiet_time_resets_the_delay",
    ),
    Rule(
        "a failure rate counts within its interval only",
        "protocol/recovery/restart.py",
        "len(latest) > self.rate and now - latest[0] <= self.interval_ns",
        "len(latest) > self.rate",
        f"{_RESTART}failure_rate_counts_within_its_interval",
    ),
    Rule(
        "tasks that exchange data restart together",
        "protocol/recovery/regions.py",
        "        leader[second] = first\n",
        "        leader[second] = leader[second]\n",
        "tests/protocol/recovery/test_regions.py::test_an_all_to_all_edge_makes_one_region",
    ),
    Rule(
        "a restart waits for cancelled tasks as for its delay",
        "protocol/recovery/recovery.py",
        "return self.cancelled and self.delayed",
        "return self.delayed",
        f"{_RECOVERY}cancelling_and_the_delay_run_side_by_side",
    ),
    Rule(
        "a failure while restarting takes the restart over",
        "protocol/recovery/recovery.py",
        "left = tuple(changed(restart, tasks=restart.tasks - tasks) for restart in recovery.waiting)",
        "left = recovery.waiting",
        f"{_RECOVERY}every_restart_ends_once_and_every_cancelled_task_is_restored",
    ),
    Rule(
        "checkpoints resume with the last restart",
        "protocol/recovery/recovery.py",
        "        if rest:\n            return after, (restore,)\n",
        "",
        f"{_RECOVERY}two_regions_restart_apart_and_checkpoints_resume_with_the_last",
    ),
    Rule(
        "a failover aborts what is pending",
        "runtime/jobmanager/recovery_host.py",
        "                self.coordinator.tell(SchedulerStopped(self.env.now, FailureReason.CHECKPOINT_COORDINATOR_SUSPEND))\n",
        "",
        f"{_HOST}a_failure_aborts_what_is_pending",
    ),
    Rule(
        "after a restart the first checkpoint comes one interval later",
        "runtime/jobmanager/recovery_host.py",
        "                restarted=restarted,",
        "                restarted=False,",
        f"{_HOST}the_timeline_of_a_restart",
    ),
    Rule(
        "a failure restores the latest completed checkpoint",
        "runtime/jobmanager/recovery_host.py",
        "self.coordinator.machine.latest_completed",
        "self.coordinator.machine.next_id - 1",
        f"{_HOST}a_failure_aborts_what_is_pending",
    ),
    Rule(
        "a checkpoint holds what was captured at the receiver",
        "runtime/contents.py",
        "captured=here.captured if captured else part.position.captured,",
        "captured=held.position.captured,",
        f"{_HOST}a_run_with_failures_ends_where_one_without_does",
    ),
    Rule(
        "a checkpoint holds what its barriers overtook",
        "runtime/contents.py",
        "overtaken=here.overtaken if overtaken else part.position.overtaken,",
        "overtaken=held.position.overtaken,",
        f"{_HOST}a_run_with_failures_ends_where_one_without_does",
    ),
    Rule(
        "a thread at work delays its cancellation",
        "runtime/jobmanager/recovery_host.py",
        "stuck = {task for task in command.tasks if self.tasks[task].occupied}",
        "stuck: set[int] = set()",
        f"{_HOST}a_thread_at_work_delays_its_cancellation",
    ),
    Rule(
        "a task that does not stop takes its task manager down",
        "runtime/jobmanager/recovery_host.py",
        "for host in sorted({self.context.hosts[task] for task in stuck}):",
        "for host in list[int]():",
        f"{_HOST}a_thread_that_does_not_stop_takes_its_task_manager_down",
    ),
    Rule(
        "a task that reads its recovered input does not run yet",
        "runtime/task/tasks.py",
        "        self._hosts[task].running = False\n",
        "",
        f"{_HOST}no_checkpoint_begins_before_every_task_runs",
    ),
    Rule(
        "a restart that has not deployed yet is given up when its tasks fail again",
        "runtime/jobmanager/recovery_host.py",
        "restore.give_up(tasks)",
        "restore.give_up([task for task in tasks if not self.world.tasks[task].stopped])",
        f"{_HOST}a_failure_noticed_while_deploying_restarts_again",
    ),
    Rule(
        "a lost task manager's slots come back with its replacement",
        "runtime/jobmanager/restore.py",
        "return max(0, *(available.get(self.context.hosts[task], 0) - self.env.now for task in self.tasks))",
        "return 0",
        f"{_HOST}a_replacement_is_waited_for",
    ),
    Rule(
        "a silent task manager is noticed by its heartbeat only",
        "runtime/jobmanager/faults.py",
        "noticed_ns = restart.heartbeat_timeout_ns if what.silent else",
        "noticed_ns = 0 if what.silent else",
        f"{_HOST}a_silent_one_only_by_its_heartbeat",
    ),
    Rule(
        "a message waits for the network of its task manager",
        "runtime/jobmanager/reachability.py",
        "return max(0, self._cut_off_until_ns.get(self.hosts[task], 0) - int(self.env.now))",
        "return 0",
        f"{_HOST}an_acknowledgement_waits_for_the_network",
    ),
    Rule(
        "totals go on over attempts",
        "runtime/counters.py",
        "            self._before[task] += int(served[task]) - position\n",
        "            del position\n",
        f"{_HOST}a_run_with_failures_ends_where_one_without_does",
    ),
    Rule(
        "keyed state is dealt out by key groups",
        "runtime/setup/redistribution.py",
        "shares = overlap(own, len(new), len(old), key_groups[vertex])",
        "shares = {own % len(old): Fraction(1)}",
        f"{_DEALT}keyed_state_goes_by_key_groups",
    ),
    Rule(
        "channel state is read by everybody who may own some of it",
        "runtime/setup/redistribution.py",
        "read_bytes=_read_bytes([part for part, _ in mine], dealt)",
        "read_bytes=_read_bytes(dealt, dealt)",
        f"{_DEALT}channel_state_is_read_by_everybody_who_may_own_some_of_it",
    ),
    Rule(
        "what was in flight is in flight after rescaling",
        "runtime/setup/redistribution.py",
        "for channel, records in zip(new, _dealt(in_flight, after, edge, new), strict=True):",
        "for channel, records in zip(new, _dealt(0, after, edge, new), strict=True):",
        f"{_DEALT}nothing_in_flight_is_lost",
    ),
    Rule(
        "restarts that are not alike are no row",
        "protocol/recovery/progress.py",
        "or not restart.own or (row and restart.checkpoint != row[0].checkpoint)",
        "",
        "tests/protocol/recovery/test_progress.py::test_another_checkpoint_or_a_fault_of_others_ends_the_row",
    ),
    Rule(
        "captured output is recovered by those who read it",
        "runtime/jobmanager/recovered_output.py",
        "captured = position.captured + taken_over",
        "captured = position.captured",
        "tests/runtime/jobmanager/test_checkpoints_during_recovery.py::test_captured_output_becomes_input_of_its_reader",
    ),
    Rule(
        "what is recovered downstream is not sent again",
        "runtime/jobmanager/recovered_output.py",
        "overtaken=np.zeros_like(position.overtaken)",
        "overtaken=position.overtaken",
        "tests/runtime/jobmanager/test_checkpoints_during_recovery.py::test_captured_output_becomes_input_of_its_reader",
    ),
    Rule(
        "output that came with an acknowledgement is read in no time by its reader, too",
        "runtime/jobmanager/recovered_output.py",
        "inlined_bytes=own_bytes + int(inlined.sum())",
        "inlined_bytes=own_bytes",
        "tests/runtime/jobmanager/test_checkpoints_during_recovery.py::test_what_came_with_an_acknowledgement_is_still_not_in_a_file",
    ),
    Rule(
        "with checkpoints during recovery a task runs before it has processed what it recovers",
        "runtime/setup/lowering.py",
        "opens_at_once=scenario.checkpoint.during_recovery,",
        "opens_at_once=False,",
        "tests/runtime/jobmanager/test_checkpoints_during_recovery.py::test_tasks_run_as_soon_as_their_in_flight_data_is_read",
    ),
    Rule(
        "recovered input stays in front of what arrives",
        "plane/reference/thread.py",
        "if channel.recovered or channel.gate.shut:",
        "if channel.gate.shut:",
        "tests/plane/test_rules_early_gates.py::test_P9_a_marker_that_becomes_urgent_leaves_recovered_input_ready",
    ),
    Rule(
        "a priority marker of a local channel leaves recovered input ready",
        "plane/reference/sending.py",
        "if not self.plane.thread.pollable(channel):",
        "if not self.sendable(channel):",
        "tests/plane/test_rules_early_gates.py::test_P9_a_capture_holds_what_is_left",
    ),
)

"""Rules of ends, failures, operators' files, the data plane's markers and what is watched, as `rules.py` has them for the protocols."""

from __future__ import annotations

from tests.mutations.rule import Rule

ENDS_OF_WORLDS = "tests/worlds/test_ends.py::test_"
PROTOCOL, LAWS, RUNTIME, PLANE = (
    "tests/protocol/",
    "tests/invariants/jobs/test_invariants_of_",
    "tests/runtime/",
    "tests/plane/test_rules_",
)

FINISHED = (
    Rule(
        "a naive end is known when its readers have read it",
        "protocol/task_finishing.py",
        "    return () if end.unread else (ReportFinished(),)\n",
        "    return (ReportFinished(),)\n",
        f"{PROTOCOL}task/test_finishing.py::test_naive_tasks_end_one_after_the_other",
    ),
    Rule(
        "finished tasks are not waited for",
        "protocol/checkpoint_requests.py",
        "    return Plan(trigger, running, finished)\n",
        "    return Plan(trigger, graph.tasks, finished)\n",
        f"{PROTOCOL}coordinator/test_checkpoint_plan.py::test_behind_a_finished_pointwise_writer",
    ),
    Rule(
        "a task behind finished writers is triggered itself",
        "protocol/checkpoint_requests.py",
        "        if task in running and not any(",
        "        if task in running and any(",
        f"{PROTOCOL}coordinator/test_checkpoint_plan.py::test_the_last_task_is_triggered_itself",
    ),
    Rule(
        "FINAL counts for later numbers",
        "tests/oracle/markers.py",
        "gate.counts.append(Count(marker.series, marker.number, set(gate.closed)))",
        "gate.counts.append(Count(marker.series, marker.number, set()))",
        f"{PLANE}markers.py::test_M4_a_closed_channel_counts_for_every_number[oracle]",
    ),
)

FAILURES = (
    Rule(
        "a failure takes its whole region along",
        "protocol/recovery.py",
        "    return frozenset().union(*(region for region in regions_of_job if not region.isdisjoint(failed)))\n",
        "    return frozenset(failed)\n",
        f"{PROTOCOL}recovery/test_restart.py::test_a_failure_restarts_its_whole_region_only",
    ),
    Rule(
        "draws go on where the position is",
        "tests/oracle/restarts.py",
        "        task.served = position.served\n",
        "        task.served = 0\n",
        f"{PLANE}restarts.py::test_P4_draws_go_on_where_the_position_is[oracle]",
    ),
    Rule(
        "in-flight data is read again",
        "tests/oracle/restarts.py",
        "            c.taken = c.consumed = c.sent - captured\n",
        "            c.taken = c.consumed = c.sent\n",
        f"{PLANE}restarts.py::test_P5_offsets[oracle]",
    ),
    Rule(
        "nothing restarts a job that has made the savepoint it stops with",
        "protocol/recovery.py",
        "        if event.stopped:\n",
        "        if False:\n",
        f"{PROTOCOL}recovery/test_recovery.py::test_nothing_restarts_a_job_that_has_stopped_with_a_savepoint",
    ),
)

EVENTS = (
    Rule(
        "a task that stops where it stands ignores the end of its inputs",
        "protocol/task_finishing.py",
        "ended = DataEnded(event.now, self.ending)",
        "ended = DataEnded(event.now, StopMode.DRAIN)",
        f"{PROTOCOL}task/test_finishing.py::test_naive_tasks_finish_nothing_when_the_job_stops_where_it_stands",
    ),
    Rule(
        "the end of the input waits for the answers to requests",
        "runtime/task/parts.py",
        "        if self.has_pending_outputs():",
        "        if False:",
        f"{ENDS_OF_WORLDS}each_record_is_committed_once[drained-with-requests-interpreted]",
    ),
    Rule(
        "a task that waits for its late outputs takes nothing else",
        "tests/oracle/thread.py",
        "        elif task.waits_for_late:\n",
        "        elif task.waits_for_late and not task.late:\n",
        f"{PLANE}late.py::test_who_waits_for_late_outputs_takes_nothing_before_them[oracle]",
    ),
    Rule(
        "an operator that waits lets notifications through and nothing else",
        "runtime/task/thread.py",
        "if notifies or not self.yields), None)",
        "if True), None)",
        f"{RUNTIME}task/test_task_thread.py::test_an_operator_that_waits_lets_notifications_through",
    ),
    Rule(
        "mails wait until what was let go is written",
        "runtime/task/thread.py",
        "        while not self.occupied and not self._writes and self._batch",
        "        while not self.occupied and self._batch",
        f"{RUNTIME}task/test_task_thread.py::test_mails_wait_until_what_was_let_go_is_written",
    ),
    Rule(
        "a source whose data has ended takes mails again behind what was let go",
        "runtime/task/thread.py",
        "        if self.mails_only:\n            self.plane.report_written",
        "        if False:\n            self.plane.report_written",
        f"{RUNTIME}task/test_task_thread.py::test_a_thread_that_takes_mails_only_goes_back_to_them",
    ),
    Rule(
        "a snapshot aborted in the moment of its turn goes no further",
        "runtime/task/thread.py",
        "        if turn in self._turns:\n            turn.working",
        "        if True:\n            turn.working",
        f"{RUNTIME}task/test_task_thread.py::test_work_cancelled_in_the_moment_its_turn_comes_goes_no_further",
    ),
    Rule(
        "what a writer has written stays written",
        "runtime/task/epochs.py",
        "max(done, read - self._holds_back)",
        "max(0, read - self._holds_back)",
        f"{ENDS_OF_WORLDS}each_record_is_committed_once[naive-windowed-sink-loses-its-task-manager-interpreted]",
    ),
    Rule(
        "records held back are dealt out with their streams",
        "runtime/redistribution.py",
        "        split[channels] = _split_evenly(int(held_back",
        "        split[channels] = 0 * _split_evenly(int(held_back",
        f"{RUNTIME}setup/test_redistribution.py::test_what_a_writer_holds_back_is_dealt_out",
    ),
    Rule(
        "a rescale begins from the savepoint of its own stop",
        "runtime/simulate.py",
        "(instance.outcome.finished.triggered and not stopped_with(instance.stats))",
        "False",
        f"{RUNTIME}run/test_instances.py::test_a_job_whose_stop_failed_and_that_ends_by_itself_is_not_rescaled",
    ),
    Rule(
        "a stop that fails is requested again",
        "runtime/simulate.py",
        "                request(instance.context, instance.job.coordinator, segment.stop)\n",
        "                pass\n",
        f"{RUNTIME}run/test_instances.py::test_a_stop_that_fails_is_requested_again",
    ),
    Rule(
        "requests under way stay with their task when others are rescaled",
        "runtime/redistribution.py",
        "            getattr(after, name)[new] = counts if len(old) == len(new) else _split_evenly",
        "            getattr(after, name)[new] = _split_evenly",
        f"{RUNTIME}setup/test_redistribution.py::test_requests_under_way_stay_with_their_task",
    ),
    Rule(
        "requests under way are dealt out",
        "runtime/redistribution.py",
        "        for name in _TASK_FIELDS:",
        '        for name in ("served",):',
        f"{RUNTIME}setup/test_redistribution.py::test_requests_under_way_are_dealt_out",
    ),
    Rule(
        "every committable goes to one new task",
        "runtime/redistribution.py",
        "for i in range(subtask, len(old), len(new)) if old[i] in snapshots]",
        "for i in range(subtask, len(old)) if old[i] in snapshots]",
        f"{RUNTIME}setup/test_redistribution.py::test_every_committable_goes_to_one_new_task",
    ),
    Rule(
        "a job stopped where it stands owes what it had read at its cut",
        "runtime/invariants/output.py",
        "        if end.stop is not None and (part",
        "        if end.stop is None and (part",
        f"{ENDS_OF_WORLDS}each_record_is_committed_once[stopped-cascade-interpreted]",
    ),
    Rule(
        "epochs go on behind the checkpoint restored",
        "runtime/task/epochs.py",
        "            self._dispatch_to_writer(WriterRestored(checkpoint, written))\n",
        "            self._dispatch_to_writer(WriterRestored(0, written))\n",
        "tests/worlds/test_committables_in_flight.py::test_nothing_is_lost_twice_or_too_early[146]",
    ),
)

WATCHING = (
    Rule(
        "a lost byte is a violation, under any strategy",
        "runtime/invariants/records.py",
        "np.flatnonzero(unknown | (surplus < 0) | (",
        "np.flatnonzero(unknown | (",
        "tests/invariants/test_records_invariants.py::test_what_is_lost_twice_or_unknown_is_told",
    ),
    Rule(
        "what is committed again is a violation",
        "runtime/invariants/output.py",
        "        twice = sum(max(0, min(end, done) - begin) for",
        "        twice = sum(0 * max(0, min(end, done) - begin) for",
        "tests/invariants/test_output_invariants.py::test_an_overlap_is_told",
    ),
    Rule(
        "every completed checkpoint is judged",
        "runtime/jobmanager/coordinator_host.py",
        "        self.checks.completed(command.checkpoint, self.machine.retained)\n",
        "",
        f"{RUNTIME}observe/test_checking.py::test_a_lost_capture_is_told",
    ),
    Rule(
        "a task fails with the savepoint it has begun to stop with",
        "protocol/task_finishing.py",
        "        return self.stop == aborted and",
        "        return self.stop != aborted and",
        "tests/protocol/task/test_finishing.py::test_a_task_fails_with_the_savepoint_it_has_begun_to_stop_with",
    ),
    Rule(
        "a barrier that was overtaken is not noted",
        "plane/text/channels.py",
        "series == MARKER_SERIES and number >= ch.mark:",
        "series == MARKER_SERIES and number > 0:",
        "tests/plane/test_rules_markers.py::test_R5_a_barrier_that_was_overtaken_is_not_noted[interpreted]",
    ),
)

ENDS: tuple[Rule, ...] = (*FINISHED, *FAILURES, *EVENTS, *WATCHING)

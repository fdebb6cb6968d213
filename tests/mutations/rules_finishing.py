"""Rules of the end of tasks and jobs, and of stopping with a savepoint, as `rules.py` has them for the protocols."""

from __future__ import annotations

from tests.mutations.rule import Rule

__all__ = ["FINISHING"]

END, PLAN, LAWS = (
    "tests/protocol/task/test_finishing.py::",
    "tests/protocol/coordinator/test_checkpoint_plan.py::",
    "tests/laws/test_laws_finish.py::",
)
COORDINATOR, STOP = (
    "tests/protocol/coordinator/test_coordinator.py::",
    "tests/runtime/jobmanager/test_stop_with_savepoint.py::",
)

FINISHING = (
    Rule(
        "the final checkpoint of a task is the first one after its end of data",
        "protocol/task_finishing.py",
        "if after.data_ended and after.final is None:",
        "if after.final is None:",
        f"{END}test_a_task_waits_for_the_first_checkpoint_after_its_end",
    ),
    Rule(
        "a task waits until the end of its data is read on every output channel",
        "protocol/task_finishing.py",
        "end.state is EndState.WAITING and not unread and",
        "end.state is EndState.WAITING and",
        f"{END}test_a_task_waits_until_its_output_is_read",
    ),
    Rule(
        "a task waits for the end of its inputs",
        "protocol/task_finishing.py",
        " and not end.inputs_open and end.durable:",
        " and end.durable:",
        f"{END}test_a_task_waits_for_the_end_of_its_inputs",
    ),
    Rule(
        "no snapshot begins once a task leaves, those under way end",
        "protocol/task_finishing.py",
        "if end.state is EndState.LEAVING and not end.open:",
        "if end.state is EndState.LEAVING:",
        f"{END}test_a_task_waits_for_snapshots_under_way",
    ),
    Rule(
        "with a stop only its own savepoint counts",
        "protocol/task_finishing.py",
        "            return self.stop_completed\n",
        "            return True\n",
        f"{END}test_with_a_stop_only_its_savepoint_counts",
    ),
    Rule(
        "a checkpoint behind the savepoint of a stop does not count",
        "protocol/task_finishing.py",
        "            return self.stop_completed\n",
        "            return self.completed >= self.stop\n",
        f"{END}test_a_checkpoint_behind_the_savepoint_of_a_stop_does_not_count",
    ),
    Rule(
        "operators finish only in a job that drains",
        "protocol/task_finishing.py",
        "        if event.ending is Ending.DRAIN:\n            return after, (FinishOperators(),)",
        "        if True:\n            return after, (FinishOperators(),)",
        f"{END}test_a_job_that_stops_where_it_stands_finishes_nothing",
    ),
    Rule(
        "timers are quiet where a job stops without a drain",
        "protocol/task_finishing.py",
        "return after, (QuiesceTimers(), *commands)",
        "return after, commands",
        "tests/runtime/task/test_window.py::test_without_a_drain_no_window_ends_while_the_savepoint_is_written",
    ),
    Rule(
        "one running writer is enough behind an all-to-all edge",
        "protocol/checkpoint_requests.py",
        "enough = any if link.predecessors is None else all",
        "enough = all",
        f"{PLAN}test_behind_one_running_writer_of_many",
    ),
    Rule(
        "without FLIP-147 there is no checkpoint once a task has finished",
        "protocol/checkpoint_requests.py",
        " or (finished and not after_finish)",
        "",
        f"{PLAN}test_before_flip_147",
    ),
    Rule(
        "the final checkpoint is triggered at once when all data has ended",
        "runtime/jobmanager/coordinator_host.py",
        "if self.rule.final_trigger and len(self.ended)",
        "if not self.rule.final_trigger and len(self.ended)",
        f"{LAWS}test_law_32_the_final_checkpoint_is_triggered_at_once",
    ),
    Rule(
        "the final checkpoint waits for the end of everybody's data",
        "runtime/jobmanager/coordinator_host.py",
        "len(self.ended) == len(self.graph.tasks)",
        "len(self.ended) > 0",
        f"{LAWS}test_law_32_not_while_a_task_goes_on",
    ),
    Rule(
        "finished tasks count as acknowledged",
        "runtime/jobmanager/coordinator_host.py",
        "acknowledged=settled)",
        "acknowledged=0)",
        f"{LAWS}test_law_32_finished_tasks_count_as_acknowledged",
    ),
    Rule(
        "union state lets no checkpoint complete that holds the end of some of its tasks only",
        "protocol/checkpoint_requests.py",
        "if self.vertices and not self.vertices.isdisjoint(",
        "if self.vertices and self.vertices.isdisjoint(",
        "tests/protocol/coordinator/test_union_state.py::test_a_vertex_finishes_in_all_of_its_tasks_or_in_none",
    ),
    Rule(
        "without FLIP-147 an end aborts what is pending",
        "protocol/barrier_handler.py",
        "(self, ()) if self.pending is None else _abort_checkpoint(",
        "(self, ()) if True else _abort_checkpoint(",
        "tests/protocol/barriers/test_aligned_barriers.py::test_an_end_aborts_what_is_pending_where_checkpoints_do_not_outlive_it",
    ),
    Rule(
        "the savepoint a job stops with is announced",
        "protocol/coordinator.py",
        "NotifyComplete(pending.checkpoint, pending.plan.wait_for)) if pending.stops else commands",
        "NotifyComplete(pending.checkpoint, pending.plan.wait_for)) if False else commands",
        f"{COORDINATOR}test_the_savepoint_a_job_stops_with_is_announced",
    ),
    Rule(
        "a failed stop fails the job",
        "protocol/coordinator.py",
        "if pending.stops and reason not in _JOB_IS_DOWN:",
        "if False:",
        f"{COORDINATOR}test_a_failed_stop_fails_the_job",
    ),
    Rule(
        "a job that does not stop after all takes periodic checkpoints again",
        "protocol/coordinator.py",
        "_resume_periodic_triggers(after, event.now) if triggering.stops and triggering.refused is None else (after, ())",
        "(after, ())",
        f"{COORDINATOR}test_a_stop_that_is_refused_lets_periodic_checkpoints_go_on",
    ),
    Rule(
        "a task that closes declines",
        "runtime/task/end.py",
        "        if self.machine.closing:\n",
        "        if False:\n",
        f"{STOP}test_a_drained_job_asks_for_a_final_checkpoint_too_late",
    ),
    Rule(
        "sources end their data before the savepoint a job stops with",
        "runtime/task/end.py",
        "            self._stop(stop)\n",
        "            pass\n",
        f"{STOP}test_a_job_stops_with_its_savepoint",
    ),
    Rule(
        "a stop suspends periodic checkpoints",
        "runtime/jobmanager/faults.py",
        "        coordinator.dispatch(SchedulerStopped(now))",
        "        pass",
        f"{STOP}test_no_periodic_checkpoint_beside_the_savepoint_a_job_stops_with",
    ),
    Rule(
        "nobody waits for the channel state of a finished member of the group",
        "runtime/task_manager.py",
        "incomplete=set(self.members) - self._gone)",
        "incomplete=set(self.members))",
        "tests/runtime/taskmanager/test_channel_state.py::test_nobody_waits_for_a_member_that_has_finished",
    ),
)

"""Rules of a job without a JobManager, and of the next one."""

from tests.mutations.rule import Rule

_WORLDS = "tests/worlds/test_found_worlds.py::test_"
_RECORDED = "tests/worlds/test_recorded_runs.py::test_a_run_is_what_it_was"

JOB_MANAGER = (
    Rule(
        "a savepoint needs a JobManager",
        "protocol/coordinator.py",
        "return self, (RecordRefused(event.kind, FailureReason.NO_JOB_MANAGER),)",
        "return _enqueue_request(self, event.kind, event.now, event.savepoint)",
        f"{_WORLDS}savepoints_and_stops_without_a_job_manager_are_refused",
    ),
    Rule(
        "what a task says to nobody reaches no later JobManager",
        "protocol/coordinator.py",
        "return replace(self, leader=self.leader + 1, absent=False), ()",
        "return replace(self, absent=False), ()",
        "tests/protocol/coordinator/test_coordinator.py::test_messages_to_a_lost_leader_are_lost_with_it",
    ),
    Rule(
        "a rescale waits for a JobManager",
        "runtime/simulate.py",
        "                    self._await_job_manager(instance)\n",
        "                    pass\n",
        f"{_WORLDS}a_rescale_waits_for_a_job_manager",
    ),
    Rule(
        "a new JobManager counts failed checkpoints anew",
        "protocol/coordinator.py",
        "failures=FailureCounter(self.failures.tolerable), backlog",
        "backlog",
        f"{_RECORDED}[tolerable-failed-after-a-job-manager]",
    ),
    Rule(
        "a new JobManager makes its restart strategy anew",
        "protocol/recovery.py",
        "strategy = self.strategy if event.resumes else self.initial_strategy",
        "strategy = self.strategy",
        f"{_RECORDED}[restart-attempts-after-a-job-manager]",
    ),
    Rule(
        "a lost JobManager deletes nothing",
        "protocol/snapshot_store.py",
        "registry = self.registry.read_again(self.retained.values())",
        "registry = self.registry",
        "tests/protocol/snapshots/test_snapshot_store.py::test_another_jobmanager_knows_the_completed_checkpoints_only",
    ),
    Rule(
        "a share of less than a byte is state all the same",
        "runtime/task/subtask_state.py",
        "(state.bytes or state.growth_bytes)",
        "(subtask.keyed_bytes or state.growth_bytes)",
        f"{_RECORDED}[rescaled-with-two-bytes]",
    ),
)

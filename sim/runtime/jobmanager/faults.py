"""Injects the faults of a scenario into a run, and executes the user's actions: savepoints, stop-with-savepoint, changed checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import assert_never

from sim.model.faults import (
    FailedCommits,
    Fault,
    JobManagerDown,
    Kill,
    NetworkOutage,
    SlowTask,
    StorageOutage,
    Target,
    TaskManagerLost,
    gap_ns,
)
from sim.model.randomness import draw, stream
from sim.model.scenario import Action, CheckpointUpdate
from sim.model.units import format_duration
from sim.protocol.messages import (
    CheckpointRequested,
    ConfigurationUpdated,
    RequestKind,
    Savepoint,
    SchedulerStopped,
)
from sim.protocol.options import FailureReason, StopMode
from sim.results.journal import EventType
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.jobmanager.task_managers import Reachability
from sim.runtime.task.tasks import Tasks
from sim.storage.requests import Work, schedule_urgent_callback

# ---- Actions of the user on a running job: savepoint and stop-with-savepoint (StopWithSavepointTerminationManager),
# and changed checkpoint options (FLIP-571).

_RETRY_NS = 1_000_000_000
"""Time after which a user repeats a request for which there is no JobManager."""


def schedule(context: Context, coordinator: CoordinatorHost) -> None:
    """Schedule every action of the scenario.  An action that is due now runs after the job has been set up."""
    for action in context.scenario.actions:
        in_its_time = lambda action=action: request(context, coordinator, action)  # noqa: E731
        if action.at_ns > context.env.now:
            context.env.call_at(action.at_ns, in_its_time)
        else:
            schedule_urgent_callback(context.env, in_its_time)
    for change in context.scenario.checkpoint_updates:
        if change.at_ns > context.env.now:  # the coordinator begins with the earlier ones
            context.env.call_at(change.at_ns, partial(update, context, coordinator, change))


def update(context: Context, coordinator: CoordinatorHost, change: CheckpointUpdate) -> None:
    """Change interval and timeout of checkpoints now, or when there is a JobManager again."""
    if coordinator.machine.absent:
        context.env.call_in(_RETRY_NS, partial(update, context, coordinator, change))
        return
    coordinator.dispatch(ConfigurationUpdated(context.env.now, change.interval_ns, change.timeout_ns))
    options = context.scenario.checkpoint_at(context.env.now)
    interval = (
        "no interval" if options.interval_ns is None else f"an interval of {format_duration(options.interval_ns)}"
    )
    values = f"{interval} and a timeout of {format_duration(options.timeout_ns)}"
    context.note(EventType.CHECKPOINTS_CHANGED, number=options.timeout_ns, detail=values)


def request(context: Context, coordinator: CoordinatorHost, action: Action) -> None:
    """Request the savepoint of an action now, whatever its time.

    A stop-with-savepoint also stops periodic checkpoints.  It is refused if a required task is not running.
    """
    now = context.env.now
    savepoint = Savepoint(action.format, None if action.stop is None else StopMode(action.stop))
    if savepoint.stop is not None and not coordinator.machine.absent:
        if coordinator.plan() is None:  # a required task is not running
            context.note(EventType.REFUSED, number=1, detail=FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING.name)
            return
        coordinator.dispatch(SchedulerStopped(now))  # so that this savepoint makes the last commit
    coordinator.dispatch(CheckpointRequested(now, RequestKind.SAVEPOINT, savepoint))


# ---- The faults of a scenario: each happens at its times, on the component that it names or on a random one.
#
# The affected component handles the consequences: tasks fail over (`recovery_host`), and storage requests are retried.


class Faults:
    """Injects the faults of the scenario into one job instance.

    `before` are the faults of the previous job instance, or None for the first one.
    """

    def __init__(
        self,
        context: Context,
        tasks: Tasks,
        recovery: RecoveryHost,
        reachability: Reachability,
        before: Faults | None,
    ) -> None:
        self.context = context
        self.env = context.env
        self.tasks = tasks
        self.recovery = recovery
        self.reachability = reachability
        self._drawn = 0  # components chosen at random so far, by all job instances
        self._storage_down_until_ns = 0
        self._slowdowns: list[tuple[SlowTask, int | None]] = []  # (fault, end); None: the end of the run
        if before is not None:
            self._continue_from(before)
        for number, fault in enumerate(context.scenario.faults):
            self.env.process(self._inject_at_its_times(number, fault))

    def _continue_from(self, before: Faults) -> None:
        """Continue the faults of the previous job instance that are not over: machines and storage are the same."""
        self._drawn = before._drawn
        if before._storage_down_until_ns > self.env.now:
            self._fail_storage(before._storage_down_until_ns)
        self.context.failing_commits.update(before.context.failing_commits)
        self.reachability.continue_from(before.reachability)
        self.recovery.cluster.task_managers.continue_from(before.recovery.cluster.task_managers)
        for what, until_ns in before._slowdowns:
            if until_ns is None or until_ns > self.env.now:
                self._slow_down_until(what, until_ns)

    def _inject_at_its_times(self, number: int, fault: Fault) -> Work[None]:
        """Process: inject a fault at each of its times.  `number` is its index in the scenario."""
        for at_ns in self._times(number, fault):
            if self.context.origin is not None and at_ns <= self.context.origin.at_ns:
                continue  # it affected an earlier job instance
            yield self.env.timeout(at_ns - self.env.now)
            self.inject(fault.what)

    def _times(self, number: int, fault: Fault) -> Iterator[int]:
        """Yield the times of a fault [ns], in order; without end if it recurs at random intervals."""
        if fault.when.every is None:
            yield from fault.when.at_ns
            return
        key, at_ns, k = stream(self.context.scenario.run.seed, "faults", number), 0, 0
        while True:
            at_ns += gap_ns(fault.when.every, key, k)
            k += 1
            yield at_ns

    def _draw_below(self, choices: int) -> int:
        """Return a random integer in [0, choices)."""
        u = draw(stream(self.context.scenario.run.seed, "victims"), self._drawn)
        self._drawn += 1
        return u * choices >> 32

    def inject(self, what: Target) -> None:
        """Inject a fault now."""
        match what:
            case Kill():
                tasks = (
                    [self._draw_below(len(self.tasks))]
                    if what.vertex is None
                    else self._tasks_of(what.vertex, what.subtask)
                )
                self.recovery.fail_tasks(tasks, "killed")
            case TaskManagerLost():
                self.recovery.lose_task_manager(self._task_manager(what.host), what)
            case JobManagerDown():
                self.recovery.lose_job_manager(what.down_ns)
            case StorageOutage():
                self.context.note(EventType.FAULT, detail=f"no storage for {what.lasts_ns / 1e9:g} s")
                self._fail_storage(self.env.now + what.lasts_ns)
            case NetworkOutage():
                self._cut_off(what)
            case SlowTask():
                self.context.note(EventType.FAULT, detail=f"{what.vertex} slower by {what.factor}")
                self._slow_down_until(what, None if what.lasts_ns is None else self.env.now + what.lasts_ns)
            case FailedCommits():
                self.context.note(EventType.FAULT, detail=f"commits of {what.vertex} fail")
                self.context.failing_commits[what.vertex] = (
                    None if what.lasts_ns is None else self.env.now + what.lasts_ns
                )
            case _:
                assert_never(what)

    def _tasks_of(self, vertex: str, subtask: int | None) -> list[int]:
        """Return the task of a subtask, or all tasks of the vertex if `subtask` is None."""
        names = self.context.names
        return [task for task, (name, index) in enumerate(names) if name == vertex and subtask in (None, index)]

    def _task_manager(self, host: int | None) -> int:
        """Return the number of the TaskManager, chosen at random if it is None."""
        return self._draw_below(max(self.context.hosts) + 1) if host is None else host

    def _fail_storage(self, until_ns: int) -> None:
        """Let all storage requests fail until `until_ns`."""
        self._storage_down_until_ns = max(self._storage_down_until_ns, until_ns)
        self.context.storage.fail_until(until_ns)

    def _cut_off(self, what: NetworkOutage) -> None:
        """Cut a TaskManager off from the network: no message reaches or leaves it, and its tasks are suspended.

        If the outage lasts for the heartbeat timeout or longer, the TaskManager is lost.
        """
        manager, until_ns = self._task_manager(what.host), self.env.now + what.lasts_ns
        self.context.note(EventType.FAULT, detail=f"task manager {manager} cut off for {what.lasts_ns / 1e9:g} s")
        if what.lasts_ns >= self.context.scenario.restart.heartbeat_timeout_ns:
            self.recovery.lose_task_manager(manager, TaskManagerLost(manager, silent=True))
            return
        self.reachability.cut_off(manager, until_ns)
        for task, its_manager in enumerate(self.context.hosts):
            if its_manager == manager:
                self.tasks[task].thread.suspend(what.lasts_ns, self.env.call_in)

    def _slow_down_until(self, what: SlowTask, until_ns: int | None) -> None:
        """Slow down the tasks of a fault until `until_ns`, or to the end of the run if it is None."""
        self._slowdowns.append((what, until_ns))
        self._scale(what.vertex)

        def end() -> None:
            self._slowdowns.remove((what, until_ns))
            self._scale(what.vertex)

        if until_ns is not None:
            self.env.call_at(until_ns, end)

    def _scale(self, vertex: str) -> None:
        """Apply the largest slowdown factor of each task of a vertex; they do not multiply."""
        slowdowns = [what for what, _ in self._slowdowns if what.vertex == vertex]
        for task in self._tasks_of(vertex, None):
            subtask = self.context.names[task][1]
            factors = [what.factor for what in slowdowns if what.subtask in (None, subtask)]
            self.context.speed.set_factor(task, "fault", Fraction(max(factors, default=1)))

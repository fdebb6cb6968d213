"""Faults and planned actions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
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
from sim.model.scenario import Action
from sim.protocol.coordinator_messages import CheckpointRequested, RequestKind, Savepoint, SchedulerStopped
from sim.protocol.options import Ending, FailureReason
from sim.results.journal import Happening
from sim.runtime.context import Context
from sim.runtime.host_loop import Speed
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.recovery_host import RecoveryHost
from sim.runtime.jobmanager.task_managers import Reachability
from sim.runtime.ports import TasksPort
from sim.storage.requests import Work, schedule_urgent_callback

# ---- Actions of the user on a running job: savepoints, and the stop with a savepoint (StopWithSavepointTerminationManager).


def schedule(context: Context, coordinator: CoordinatorHost) -> None:
    """Schedule every action of the scenario.  One that is due at once finds the job as it has begun."""
    for action in context.scenario.actions:
        in_its_time = lambda action=action: request(context, coordinator, action)  # noqa: E731
        if action.at_ns > context.env.now:
            context.env.call_in(action.at_ns - context.env.now, in_its_time)
        else:
            schedule_urgent_callback(context.env, in_its_time)


def request(context: Context, coordinator: CoordinatorHost, action: Action) -> None:
    """Request the action now, not at its own time."""
    now = context.env.now
    savepoint = Savepoint(action.format, None if action.stop is None else Ending(action.stop))
    if savepoint.stop is not None and not coordinator.machine.absent:
        if coordinator.plan(RequestKind.SAVEPOINT) is None:  # nothing is to be stopped that does not run
            context.note(Happening.REFUSED, number=1, detail=FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING.name)
            return
        coordinator.dispatch(SchedulerStopped(now))  # so that nothing is committed but by this savepoint
    coordinator.dispatch(CheckpointRequested(now, RequestKind.SAVEPOINT, savepoint))


# ---- The faults of a scenario: each strikes at its times, on the component that it names or that is drawn.
#
# The component that is hit handles the consequences: tasks fail over (`recovery_host`), storage retries, a slow task is
# slow.


class Faults:
    """The faults of one job instance.  `before`: the faults of the instance before it."""

    def __init__(
        self,
        context: Context,
        tasks: TasksPort,
        recovery: RecoveryHost,
        reachability: Reachability,
        speed: Speed,
        before: Faults | None,
    ) -> None:
        self.context = context
        self.env = context.env
        self.tasks = tasks
        self.recovery = recovery
        self.reachability = reachability
        self.speed = speed
        self._drawn = 0  # victims chosen so far, by all job instances
        self._storage_down_until_ns = 0
        self._slow: dict[int, list[int]] = {}  # factors in force, by task
        self._slow_until: list[tuple[SlowTask, int | None]] = []  # all there were; None: to the end of the run
        if before is not None:
            self._go_on(before)
        for number, fault in enumerate(context.scenario.faults):
            self.env.process(self._happen(number, fault))

    def _go_on(self, before: Faults) -> None:
        """A new job instance neither repairs nor repeats what befell the one before it: machines and storage are the same."""
        self._drawn = before._drawn
        if before._storage_down_until_ns > self.env.now:
            self._fail_storage(before._storage_down_until_ns)
        self.context.failing_commits.update(before.context.failing_commits)
        self.reachability.continue_from(before.reachability)
        self.recovery.cluster.task_managers.continue_from(before.recovery.cluster.task_managers)
        for what, until_ns in before._slow_until:
            if until_ns is None or until_ns > self.env.now:
                self._slow_down_until(what, until_ns)

    def _happen(self, number: int, fault: Fault) -> Work[None]:
        """Process: one fault of the plan, at each of its times."""
        for at_ns in self._times(number, fault):
            if self.context.origin is not None and at_ns <= self.context.origin.at_ns:
                continue  # it struck the job instance before this one
            yield self.env.timeout(at_ns - self.env.now)
            self.strike(fault.what)

    def _times(self, number: int, fault: Fault) -> Iterator[int]:
        if fault.when.every is None:
            yield from fault.when.at_ns
            return
        key, at_ns, k = stream(self.context.scenario.run.seed, "faults", number), 0, 0
        while True:
            at_ns += gap_ns(fault.when.every, key, k)
            k += 1
            yield at_ns

    def _draw(self, choices: int) -> int:
        u = draw(stream(self.context.scenario.run.seed, "victims"), self._drawn)
        self._drawn += 1
        return u * choices >> 32

    def strike(self, what: Target) -> None:
        """Let a fault strike now."""
        match what:
            case Kill():
                tasks = [self._draw(len(self.tasks))] if what.vertex is None else self._tasks(what.vertex, what.subtask)
                self.recovery.fail_tasks(tasks, "killed")
            case TaskManagerLost():
                self.recovery.lose_host(self._host(what.host), what)
            case JobManagerDown():
                self.recovery.lose_job_manager(what.down_ns)
            case StorageOutage():
                self.context.note(Happening.FAULT, detail=f"no storage for {what.lasts_ns / 1e9:g} s")
                self._fail_storage(self.env.now + what.lasts_ns)
            case NetworkOutage():
                self._cut_off(what)
            case SlowTask():
                self.context.note(Happening.FAULT, detail=f"{what.vertex} slower by {what.factor}")
                self._slow_down_until(what, None if what.lasts_ns is None else self.env.now + what.lasts_ns)
            case FailedCommits():
                self.context.note(Happening.FAULT, detail=f"commits of {what.vertex} fail")
                self.context.failing_commits[what.vertex] = (
                    None if what.lasts_ns is None else self.env.now + what.lasts_ns
                )
            case _:
                assert_never(what)

    def _tasks(self, vertex: str, subtask: int | None) -> list[int]:
        names = self.context.names
        return [task for task, (name, index) in enumerate(names) if name == vertex and subtask in (None, index)]

    def _host(self, host: int | None) -> int:
        return self._draw(max(self.context.hosts) + 1) if host is None else host

    def _fail_storage(self, until_ns: int) -> None:
        self._storage_down_until_ns = max(self._storage_down_until_ns, until_ns)
        self.context.storage.fail_until(until_ns)

    def _cut_off(self, what: NetworkOutage) -> None:
        """Cut a task manager off: its tasks wait at their next record, as no message comes in or goes out."""
        host, until_ns = self._host(what.host), self.env.now + what.lasts_ns
        self.context.note(Happening.FAULT, detail=f"task manager {host} cut off for {what.lasts_ns / 1e9:g} s")
        if what.lasts_ns >= self.context.scenario.restart.heartbeat_timeout_ns:
            self.recovery.lose_host(host, TaskManagerLost(host, silent=True))
            return
        self.reachability.cut_off(host, until_ns)
        for task, its_host in enumerate(self.context.hosts):
            if its_host == host:
                self.tasks[task].suspend(what.lasts_ns)

    def _slow_down_until(self, what: SlowTask, until_ns: int | None) -> None:
        self._slow_until.append((what, until_ns))
        for task in self._tasks(what.vertex, what.subtask):
            self._slow.setdefault(task, []).append(what.factor)
            self._scale(task)
            if until_ns is not None:
                self.env.call_in(until_ns - self.env.now, lambda task=task: self._speed_up(task, what.factor))  # type: ignore[misc]

    def _speed_up(self, task: int, factor: int) -> None:
        self._slow[task].remove(factor)
        self._scale(task)

    def _scale(self, task: int) -> None:
        """Slow a task by the largest of its factors."""
        self.speed.slow(task, "fault", Fraction(max(self._slow[task], default=1)))

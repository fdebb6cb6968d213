"""Actions of the user on a running job: savepoints, and the stop with a savepoint (StopWithSavepointTerminationManager)."""

from __future__ import annotations

from sim.metrics.journal import Happening
from sim.model.actions import Action
from sim.protocol.options import Ending
from sim.protocol.reasons import FailureReason
from sim.protocol.vocabulary import CheckpointRequested, RequestKind, Savepoint, SchedulerStopped
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.storage.work import in_own_turn


def schedule(context: Context, coordinator: CoordinatorHost) -> None:
    """Schedule every action of the scenario.  One that is due at once finds the job as it has begun."""
    for action in context.scenario.actions:
        in_its_time = lambda action=action: request(context, coordinator, action)  # noqa: E731
        if action.at_ns > context.env.now:
            context.env.call_in(action.at_ns - context.env.now, in_its_time)
        else:
            in_own_turn(context.env, in_its_time)


def request(context: Context, coordinator: CoordinatorHost, action: Action) -> None:
    """Request the action now, not at its own time."""
    now = context.env.now
    savepoint = Savepoint(action.format, None if action.stop is None else Ending(action.stop))
    if savepoint.stop is not None and not coordinator.machine.absent:
        if coordinator.plan(RequestKind.SAVEPOINT) is None:  # nothing is to be stopped that does not run
            context.note(Happening.REFUSED, number=1, detail=FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING.name)
            return
        coordinator.tell(SchedulerStopped(now))  # so that nothing is committed but by this savepoint
    coordinator.tell(CheckpointRequested(now, RequestKind.SAVEPOINT, savepoint))

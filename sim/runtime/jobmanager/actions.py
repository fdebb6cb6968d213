"""What is asked of a running job: savepoints, and the stop with one (StopWithSavepointTerminationManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.metrics.journal import Happening
from sim.protocol.options import Ending
from sim.protocol.reasons import FailureReason
from sim.protocol.vocabulary import CheckpointRequested, RequestKind, Savepoint, SchedulerStopped

if TYPE_CHECKING:
    from sim.model.actions import Action
    from sim.runtime.run.world import World

__all__ = ["schedule"]


def schedule(world: World) -> None:
    """Have every action of the scenario asked for in its time."""
    for action in world.scenario.actions:
        world.env.call_in(max(0, action.at_ns - world.env.now), lambda action=action: _request(world, action))  # type: ignore[misc]


def _request(world: World, action: Action) -> None:
    now = world.env.now
    savepoint = Savepoint(action.format, None if action.stop is None else Ending(action.stop))
    if savepoint.stop is not None:
        if world.plan() is None:  # nothing is to be stopped that does not run
            world.journal.note(now, Happening.REFUSED, detail=FailureReason.NOT_ALL_REQUIRED_TASKS_RUNNING.name)
            return
        world.coordinator.tell(SchedulerStopped(now))  # so that nothing is committed but by this savepoint
    world.coordinator.tell(CheckpointRequested(now, RequestKind.SAVEPOINT, savepoint))

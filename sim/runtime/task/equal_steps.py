"""Steps of equal machines, made once: many tasks of a vertex meet the barriers of a checkpoint at the same time.

Machines are values and steps are functions of them.  A task that stands where another stood, and hears the same, goes the same way.
"""

from __future__ import annotations

from sim.protocol.task.checkpointing import TaskCheckpointing
from sim.protocol.task_vocabulary import TaskCommand, TaskEvent

_KEPT = 512
"""Steps remembered: tasks that are equal step one after the other."""

_Answer = tuple[TaskCheckpointing, tuple[TaskCommand, ...]]


class EqualSteps:
    """The steps of the machines of one vertex, each computed once for all tasks that are equal."""

    def __init__(self, first: TaskCheckpointing) -> None:
        self.first = first
        self._steps: dict[int, tuple[TaskCheckpointing, TaskEvent, _Answer]] = {}  # by the identity of the machine, which stays alive here
        self._rest = first  # the latest one without a snapshot

    def on(self, machine: TaskCheckpointing, event: TaskEvent) -> _Answer:
        """`TaskCheckpointing.on`."""
        step = self._steps.get(id(machine))
        if step is not None and step[1] == event:
            return step[2]
        after, commands = machine.on(event)
        if not after.snapshots:
            self._rest = after = self._rest if self._rest == after else after
        if len(self._steps) == _KEPT:
            self._steps.clear()
        self._steps[id(machine)] = machine, event, (after, commands)
        return after, commands

"""The slot of a task: the objects that all parts of one attempt use."""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.job import Vertex
from sim.plane.interface import channels_in
from sim.results.journal import Happening
from sim.runtime.context import CommittedOutput, Contents, Context
from sim.runtime.ports import Checks, JobManagerPort
from sim.runtime.task.thread import TaskThread
from sim.runtime.task_manager import TaskManager


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The slot of one attempt of a task: context, thread, TaskManager and JobManager.  All parts of the attempt share it."""

    context: Context
    task: int
    vertex: Vertex
    thread: TaskThread
    manager: TaskManager
    job: JobManagerPort
    contents: Contents
    output: CommittedOutput
    checks: Checks = Checks()

    @property
    def now(self) -> int:
        """The current simulated time [ns]."""
        return self.context.env.now

    @property
    def channels(self) -> list[int]:
        """The input channels of the task, in the order of its `Position`."""
        return channels_in(self.context.layout, self.task)

    def note(self, happening: Happening, checkpoint: int = -1, number: int = 0, detail: str = "") -> None:
        """Add a journal row about the task at the current time."""
        self.context.journal.note(self.context.env.now, happening, checkpoint, self.task, number, detail)

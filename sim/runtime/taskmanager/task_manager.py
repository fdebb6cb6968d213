"""What the tasks of one task manager share: room for staged files, uploads of changelogs, the compaction of state, cores."""

from __future__ import annotations

from sim.runtime.context import Context
from sim.runtime.taskmanager.log_uploads import LogUploads
from sim.runtime.taskmanager.processor import WorkOnCore, on_own_core
from sim.runtime.taskmanager.staging import StagingSpace
from sim.state.compaction import CompactionThread


class TaskManager:
    """One task manager: the resources that its tasks share."""

    def __init__(self, context: Context, number: int) -> None:
        options = context.scenario.checkpoint
        self.context = context
        self.number = number
        self.staging = StagingSpace(context.env, options.staging_bytes, waits=options.staging_full == "block")
        self.compaction = CompactionThread()
        self.work_on_core: WorkOnCore = on_own_core
        self._log_uploads: LogUploads | None = None

    def log_uploads(self, threads: int) -> LogUploads:
        """`threads`: as many as the subtask allows that asks first."""
        if self._log_uploads is None:
            self._log_uploads = LogUploads(self.context.env, self.context.storage, self.number, threads)
        return self._log_uploads

"""What the tasks of one task manager share: room for staged files, files of channel state, uploads of changelogs, the
compaction of state, cores.
"""

from __future__ import annotations

from sim.runtime.context import Context
from sim.runtime.taskmanager.channel_state import ChannelStateWriter
from sim.runtime.taskmanager.log_uploads import LogUploads
from sim.runtime.taskmanager.processor import WorkOnCore, on_own_core
from sim.runtime.taskmanager.staging import StagingSpace
from sim.state.compaction import CompactionThread


class TaskManager:
    """One task manager: the resources that its tasks share.

    `channel_state`: the writer of each task; groups of subtasks share one (max-subtasks-per-channel-state-file).
    """

    def __init__(self, context: Context, number: int, tasks: list[int]) -> None:
        options = context.scenario.checkpoint
        self.context = context
        self.number = number
        self.staging = StagingSpace(context.env, options.staging_bytes, waits=options.staging_full == "block")
        self.compaction = CompactionThread()
        self.work_on_core: WorkOnCore = on_own_core
        self.channel_state: dict[int, ChannelStateWriter] = {}
        for first in range(0, len(tasks), options.subtasks_per_channel_state_file):
            group = tasks[first : first + options.subtasks_per_channel_state_file]
            self.channel_state |= dict.fromkeys(group, ChannelStateWriter(context.env, context.storage, group, number))
        self._log_uploads: LogUploads | None = None

    def log_uploads(self, threads: int) -> LogUploads:
        """`threads`: as many as the subtask allows that asks first."""
        if self._log_uploads is None:
            self._log_uploads = LogUploads(self.context.env, self.context.storage, self.number, threads)
        return self._log_uploads

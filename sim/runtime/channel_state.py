"""Writing in-flight data: one writer thread and one file per group of subtasks of a task manager (FLINK-26803).

Flink: ChannelStateWriteRequestExecutor, ChannelStateCheckpointWriter.  Requests are first come, first served.  The
file of a checkpoint is closed, and all subtasks of the group are released, when every subtask of the group has
completed its data; without data there is no file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from sim.storage.filesystem import CheckpointStorage

__all__ = ["ChannelStateWriter"]

Process = Generator[simpy.Event, None, None]


@dataclass(slots=True)
class _File:
    """One checkpoint's channel state of one group."""

    incomplete: set[int]  # tasks that may still write
    waiting: list[Callable[[], None]] = field(default_factory=list)
    size_bytes: int = 0


class ChannelStateWriter:
    """The writer thread of one group; `members` are the tasks that share its files."""

    def __init__(self, env: simpy.Environment, storage: CheckpointStorage, members: list[int]) -> None:
        self.env = env
        self.storage = storage
        self.members = members
        self._files: dict[int, _File] = {}
        self._requests: simpy.Store = simpy.Store(env)
        env.process(self._serve())

    def register(self, checkpoint: int) -> None:
        """A member begins its snapshot."""
        if checkpoint not in self._files:
            self._files[checkpoint] = _File(incomplete=set(self.members))

    def write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> None:
        """Queue data; `then` is called when it is written (or skipped, its checkpoint being gone)."""
        self._requests.put(lambda: self._write(checkpoint, size_bytes, then))

    def complete(self, checkpoint: int, task: int) -> None:
        """No more data of this task for this checkpoint."""
        self._requests.put(lambda: self._complete(checkpoint, task))

    def when_closed(self, checkpoint: int, then: Callable[[], None]) -> None:
        """Call `then` when the file of the whole group is durable (never, if the checkpoint is gone)."""
        if checkpoint in self._files:
            self._files[checkpoint].waiting.append(then)

    def abort(self, checkpoint: int) -> None:
        """Forget a checkpoint; what is queued for it is skipped."""
        self._files.pop(checkpoint, None)

    def _serve(self) -> Process:
        while True:
            request: Any = yield self._requests.get()
            yield from request()

    def _write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> Process:
        file = self._files.get(checkpoint)
        if file is not None:
            file.size_bytes += size_bytes
            yield self.env.timeout(self.storage.transfer_ns(size_bytes, *self._name(checkpoint)))
        then()

    def _complete(self, checkpoint: int, task: int) -> Process:
        file = self._files.get(checkpoint)
        if file is None:
            return
        file.incomplete.discard(task)
        if file.incomplete:
            return
        if file.size_bytes:
            yield self.env.timeout(self.storage.close_ns(*self._name(checkpoint)))
            self.storage.note_file(file.size_bytes)
        self._files.pop(checkpoint, None)
        for then in file.waiting:
            then()

    def _name(self, checkpoint: int) -> tuple[str, int, int]:
        return "channel-state", self.members[0], checkpoint

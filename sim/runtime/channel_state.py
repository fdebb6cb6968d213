"""Writing in-flight data: one writer thread and one file per group of subtasks of a task manager (FLINK-26803).

Flink: ChannelStateWriteRequestExecutor, ChannelStateCheckpointWriter.  Requests are first come, first served.  The
file of a checkpoint is closed, and all subtasks of the group are released, when every subtask of the group has
completed its data; without data there is no file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sim.runtime.clock import TwoPlaneEnvironment
from sim.storage.filesystem import CheckpointStorage

__all__ = ["ChannelStateWriter"]

@dataclass(slots=True)
class _File:
    """One checkpoint's channel state of one group."""

    incomplete: set[int]  # tasks that may still write
    waiting: list[Callable[[], None]] = field(default_factory=list)
    size_bytes: int = 0


class _Request(NamedTuple):
    begun: Callable[[], int]  # called when its turn comes; how long it takes [ns]
    ended: Callable[[], None]


class ChannelStateWriter:
    """The writer thread of one group; `members` are the tasks that share its files."""

    def __init__(self, env: TwoPlaneEnvironment, storage: CheckpointStorage, members: list[int]) -> None:
        self.env = env
        self.storage = storage
        self.members = members
        self._files: dict[int, _File] = {}
        self._requests: deque[_Request] = deque()  # the first one is being served

    def register(self, checkpoint: int) -> None:
        """A member begins its snapshot."""
        if checkpoint not in self._files:
            self._files[checkpoint] = _File(incomplete=set(self.members))

    def write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> None:
        """Queue data; `then` is called when it is written (or skipped, its checkpoint being gone)."""

        def begun() -> int:
            file = self._files.get(checkpoint)
            if file is None:
                return 0
            file.size_bytes += size_bytes
            return self.storage.transfer_ns(size_bytes, *self._name(checkpoint))

        self._queue(begun, then)

    def complete(self, checkpoint: int, task: int) -> None:
        """No more data of this task for this checkpoint."""

        def begun() -> int:
            file = self._files.get(checkpoint)
            if file is None:
                return 0
            file.incomplete.discard(task)
            return self.storage.close_ns(*self._name(checkpoint)) if file.size_bytes and not file.incomplete else 0

        self._queue(begun, lambda: self._close(checkpoint))

    def when_closed(self, checkpoint: int, then: Callable[[], None]) -> None:
        """Call `then` when the file of the whole group is durable (never, if the checkpoint is gone)."""
        if checkpoint in self._files:
            self._files[checkpoint].waiting.append(then)

    def abort(self, checkpoint: int) -> None:
        """Forget a checkpoint; what is queued for it is skipped."""
        self._files.pop(checkpoint, None)

    def _queue(self, begun: Callable[[], int], ended: Callable[[], None]) -> None:
        self._requests.append(_Request(begun, ended))
        if len(self._requests) == 1:
            self._serve()

    def _serve(self) -> None:
        self.env.call_in(self._requests[0].begun(), self._served)

    def _served(self) -> None:
        self._requests[0].ended()
        self._requests.popleft()
        if self._requests:
            self._serve()

    def _close(self, checkpoint: int) -> None:
        file = self._files.get(checkpoint)
        if file is None or file.incomplete:
            return
        if file.size_bytes:
            self.storage.note_file(file.size_bytes)
        del self._files[checkpoint]
        for then in file.waiting:
            then()

    def _name(self, checkpoint: int) -> tuple[str, int, int]:
        return "channel-state", self.members[0], checkpoint

"""Writing in-flight data: one writer thread and one file per group of subtasks of a task manager (FLINK-26803).

Flink: ChannelStateWriteRequestExecutor, ChannelStateCheckpointWriter.  Requests are first come, first served.  The
file of a checkpoint is closed, and all subtasks of the group are released, when every subtask of the group has
completed its data.  Without data there is no file.  As long as there is little of it, it stays in the writer's buffer, and in the end
in the acknowledgements (FsCheckpointStreamFactory, data-inline-threshold; ChannelStateCheckpointWriter cuts it up by subtask).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.taskmanager.processor import on_own_core
from sim.storage.failures import StorageFailed
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId
from sim.storage.stream import FileStream
from sim.storage.work import Work, carry_on
from sim.units import SECOND


@dataclass(slots=True)
class _File:
    """The channel state of one checkpoint and one group."""

    stream: FileStream
    incomplete: set[int]  # tasks that may still write
    waiting: list[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=list)  # (closed, failed)
    size_bytes: int = 0
    in_file_bytes: int = 0  # of these; the rest is in the buffer
    failed: bool = False  # storage gave up

    @property
    def inlined(self) -> bool:
        """Whether all of it is in the writer's buffer, and none in a file."""
        return not self.in_file_bytes


class _Request(NamedTuple):
    """A write of the writer thread, with what follows it."""

    checkpoint: int
    work: Callable[[], Work[None]]  # begun when its turn comes
    ended: Callable[[], None]


class ChannelStateWriter:
    """The thread that writes the channel state of one group.

    `members`: the tasks that share its files; `host`: their task manager.
    """

    _gone: frozenset[int] = frozenset()
    """Members that have finished.  Writers share the empty set: each of its own takes 216 B."""

    def __init__(self, env: TwoPlaneEnvironment, storage: CheckpointStorage, members: list[int], host: int = 0) -> None:
        self.env = env
        self.storage = storage
        self.members = members
        self.host = host
        self.on_file: Callable[[int, Iterable[int], FileId, int], None] | None = None  # told of each file: checkpoint, tasks, id, bytes
        self.on_inlined: Callable[[int, Iterable[int]], None] | None = None  # told what needs none: checkpoint, tasks
        self._files: dict[int, _File] = {}
        self._requests: list[_Request] = []  # the first one is being served

    def register(self, checkpoint: int) -> None:
        """A member begins its snapshot."""
        if checkpoint not in self._files:
            stream = self.storage.open("channel-state", self.members[0], checkpoint, host=self.host)
            self._files[checkpoint] = _File(stream, incomplete=set(self.members) - self._gone)

    def join(self, task: int) -> None:
        """A member begins, perhaps after a restart."""
        if task in self._gone:
            self._gone -= {task}

    def leave(self, task: int) -> None:
        """A member has finished: the group no longer waits for its data (ChannelStateWriteRequestExecutor#releaseSubtask)."""
        self._gone |= {task}
        for checkpoint in list(self._files):
            self.complete(checkpoint, task)

    def write(self, checkpoint: int, size_bytes: int, then: Callable[[], None]) -> None:
        """Queue data; `then` is called when it is written (or skipped, its checkpoint being gone)."""

        def work() -> Work[None]:
            file = self._files.get(checkpoint)
            if file is not None and not file.failed:
                file.size_bytes += size_bytes
                if not (file.inlined and self.storage.is_inlined(file.size_bytes)):
                    buffered_bytes, file.in_file_bytes = file.size_bytes - file.in_file_bytes, file.size_bytes
                    rate = self.storage.options.in_flight_bytes_per_second
                    thread_ns = 0 if rate is None else buffered_bytes * SECOND // rate
                    yield from on_own_core(self.env, file.stream.write(buffered_bytes), thread_ns)

        self._queue(checkpoint, work, then)

    def complete(self, checkpoint: int, task: int) -> None:
        """No more data of this task for this checkpoint."""

        def work() -> Work[None]:
            file = self._files.get(checkpoint)
            if file is not None and not file.failed:
                file.incomplete.discard(task)
                if file.incomplete or not file.size_bytes:
                    return
                if file.inlined:
                    if self.on_inlined is not None:
                        self.on_inlined(checkpoint, self.members)
                else:
                    stored = yield from file.stream.close()
                    if self.on_file is not None:
                        self.on_file(checkpoint, self.members, stored, file.size_bytes)

        self._queue(checkpoint, work, lambda: self._close(checkpoint))

    def when_closed(self, checkpoint: int, then: Callable[[], None], failed: Callable[[], None] = lambda: None) -> None:
        """Call `then` when the file of the whole group is durable, `failed` if storage gives up (neither, if the checkpoint is gone)."""
        file = self._files.get(checkpoint)
        if file is not None and file.failed:
            failed()
        elif file is not None:
            file.waiting.append((then, failed))

    def abort(self, checkpoint: int) -> None:
        """Forget a checkpoint; what is queued for it is skipped."""
        if (file := self._files.pop(checkpoint, None)) is not None:
            file.stream.give_up()

    def _queue(self, checkpoint: int, work: Callable[[], Work[None]], ended: Callable[[], None]) -> None:
        self._requests.append(_Request(checkpoint, work, ended))
        if len(self._requests) == 1:
            turns = self._turns()
            if (awaited := next(turns, None)) is not None:
                carry_on(turns, awaited)

    def _turns(self) -> Work[None]:
        """Process: one request after the other.

        A loop: the requests of aborted checkpoints take no time, and a call for each within the call before would be too deep.
        """
        while self._requests:
            request = self._requests[0]
            try:
                yield from request.work()
            except StorageFailed:
                self._fail(request.checkpoint)
            request.ended()
            del self._requests[0]

    def _close(self, checkpoint: int) -> None:
        file = self._files.get(checkpoint)
        if file is not None and not file.incomplete and not file.failed:
            del self._files[checkpoint]
            for closed, _ in file.waiting:
                closed()

    def _fail(self, checkpoint: int) -> None:
        """Give up the file of the group (ChannelStateCheckpointWriter#fail)."""
        if (file := self._files.get(checkpoint)) is not None:
            file.failed = True
            waiting, file.waiting = file.waiting, []
            for _, failed in waiting:
                failed()

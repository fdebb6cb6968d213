"""Local room of a task manager for files on their way to storage: what is flushed waits here until it is uploaded (FLINK-37375).

A writer that finds no room waits for an upload to end, first come first served, or gives up, as configured.
"""

from __future__ import annotations

from collections.abc import Callable

import simpy

from sim.storage.failures import DiskFull
from sim.storage.work import Work


class StagingSpace:
    """The local room of one task manager for files that wait for their upload."""

    def __init__(self, env: simpy.Environment, limit_bytes: int | None, *, waits: bool = True) -> None:
        self.env = env
        self.limit_bytes = limit_bytes  # None: there is always room
        self.waits = waits
        self.used_bytes = 0
        self.most_bytes = 0  # ever used
        self.when_short: list[Callable[[], None]] = []  # uploads that could begin
        self._waiting: list[tuple[int, simpy.Event]] = []

    def reserve(self, size_bytes: int) -> Work[None]:
        """Process: room for so much.  Raises DiskFull if it must not wait, or would wait for ever."""
        if not self._fits(size_bytes) or self._waiting:
            if not self.waits or (self.limit_bytes is not None and size_bytes > self.limit_bytes):
                raise DiskFull(f"{size_bytes} B to stage, {self.used_bytes} B of {self.limit_bytes} B in use")
            turn = self.env.event()
            self._waiting.append((size_bytes, turn))
            for upload in self.when_short:
                upload()
            yield from self._granted(size_bytes, turn)
        else:
            self._take(size_bytes)

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.pop(0)
            self._take(size)
            turn.succeed()

    def _granted(self, size_bytes: int, turn: simpy.Event) -> Work[None]:
        try:
            yield turn
        except BaseException:  # the waiting writer is gone: the next may go on
            if turn.triggered:
                self.release(size_bytes)
            else:
                self._waiting.remove((size_bytes, turn))
                self.release(0)
            raise

    def _fits(self, size_bytes: int) -> bool:
        return self.limit_bytes is None or self.used_bytes + size_bytes <= self.limit_bytes

    def _take(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes
        self.most_bytes = max(self.most_bytes, self.used_bytes)

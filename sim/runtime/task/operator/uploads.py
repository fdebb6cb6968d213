"""Files on their way from the local disk to storage: a few threads take them in turn, each file knows how far it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import simpy

from sim.runtime.background import begin
from sim.storage.failures import StorageFailed
from sim.storage.ledger import FileId, Name
from sim.storage.work import Work


@dataclass(slots=True, eq=False)
class StagedFile:
    """A file on the local disk that is to be uploaded."""

    name: Name  # its final one
    size_bytes: int
    local: FileId | None = None
    attempts: int = 0  # uploads begun
    under_way: bool = False  # or waiting for a thread
    stored: FileId | None = None  # durable
    dropped: bool = False  # it will not be uploaded
    failure: StorageFailed | None = None  # of the last attempt
    working: simpy.Process | None = None


class Uploads:
    """The uploads of one task.  `write` uploads one file; `ended` is called with each file that is durable."""

    def __init__(
        self, env: simpy.Environment, threads: int, write: Callable[[StagedFile], Work[FileId]], ended: Callable[[StagedFile], None]
    ) -> None:
        self.env = env
        self.threads = threads
        self.write = write
        self.ended = ended
        self._waiting: deque[StagedFile] = deque()
        self._working: list[StagedFile] = []
        self._listening: simpy.Event | None = None

    def submit(self, file: StagedFile) -> None:
        """Upload it when a thread is free; nothing to do if it is durable or its turn comes anyway."""
        if file.stored is None and not file.under_way:
            file.under_way, file.failure = True, None
            self._waiting.append(file)
            self._next()

    def cancel(self, file: StagedFile) -> None:
        """Stop; what was written of it stays half-written."""
        if not file.under_way:
            return
        if file in self._waiting:
            file.under_way = False
            self._waiting.remove(file)
            self._tell()
            return
        if file.working is not None:
            file.working.interrupt()
        self._over(file)

    def change(self) -> simpy.Event:
        """The next time an upload ends, well or not, or is cancelled."""
        if self._listening is None:
            self._listening = self.env.event()
        return self._listening

    def _next(self) -> None:
        while self._waiting and len(self._working) < self.threads:
            file = self._waiting.popleft()
            self._working.append(file)
            file.attempts += 1
            self._begin(file)

    def _begin(self, file: StagedFile) -> None:
        attempt = file.attempts

        def cancelled() -> bool:
            """Whether an upload was cancelled in the instant in which it ended.  It may have begun anew since."""
            return not file.under_way or file.attempts != attempt

        def done(stored: FileId) -> None:
            if not cancelled():
                file.stored = stored
                self.ended(file)
                self._over(file)

        def failed(failure: StorageFailed) -> None:
            if not cancelled():
                file.failure = failure
                self._over(file)

        file.working = begin(self.env, self.write(file), done, failed)

    def _over(self, file: StagedFile) -> None:
        file.under_way, file.working = False, None
        self._working.remove(file)
        self._tell()
        self._next()

    def _tell(self) -> None:
        if self._listening is not None:
            listening, self._listening = self._listening, None
            listening.succeed()

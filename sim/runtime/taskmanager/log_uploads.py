"""How the changelogs of one task manager get into storage: parts that subtasks hand in at about the same time become one file.

Flink: BatchingStateChangeUploadScheduler collects until the batch is old or large enough, a few threads upload, and RetryingExecutor begins
another attempt beside one that takes too long; whichever ends first counts.  Which bytes, and who refers to them, is the caller's business.
Not modelled: blocking tasks when too much is in flight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import simpy

from sim.model.state import Changelog
from sim.storage import CheckpointStorage, FileId, StorageFailed
from sim.storage.ledger import Name
from sim.storage.work import Work

_PAUSE_NS = 500_000_000  # after an attempt that failed (state.changelog.dstl.dfs.upload.next-attempt-delay)


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of a log file, handed in by one subtask."""

    name: Name
    size_bytes: int
    done: Callable[[FileId | None], None]  # called with the file that holds the part; None: given up


class _Batch:
    """The parts that become one file."""

    def __init__(self, parts: list[LogPart]) -> None:
        self.parts = parts
        self.size_bytes = sum(part.size_bytes for part in parts)
        self.active = 1  # attempts begun or to be begun that have neither failed nor run out of time
        self.over = False

    def end(self, file: FileId | None) -> None:
        self.over = True
        for part in self.parts:
            part.done(file)


class LogUploads:
    """The uploads of one task manager.  Options may differ from part to part; each batch follows those of its last one."""

    def __init__(self, env: simpy.Environment, storage: CheckpointStorage, host: int, threads: int) -> None:
        self.env = env
        self.storage = storage
        self.host = host
        self._threads = simpy.Resource(env, threads)
        self._waiting: list[LogPart] = []
        self._batches = 0  # closed so far

    def hand_in(self, part: LogPart, options: Changelog) -> None:
        """Add a part to the next batch.  The batch is uploaded after the delay, or at once if it is large enough."""
        self._waiting.append(part)
        if not options.batch_delay_ns or sum(waiting.size_bytes for waiting in self._waiting) >= options.batch_bytes:
            self._close(options)
        elif len(self._waiting) == 1:
            number = self._batches
            timer = self.env.timeout(options.batch_delay_ns)
            timer.callbacks.append(lambda _: self._close(options) if number == self._batches else None)

    def _close(self, options: Changelog) -> None:
        self._batches += 1
        batch, self._waiting = _Batch(self._waiting), []
        self.env.process(self._attempt(batch, 1, options))

    def _attempt(self, batch: _Batch, number: int, options: Changelog, pause_ns: int = 0) -> Work[None]:
        """Process: one attempt; it keeps its thread to its end even if another one was faster."""
        if pause_ns:
            yield self.env.timeout(pause_ns)
        lost = False

        def give_up(pause_ns: int = 0) -> None:
            nonlocal lost
            if lost or batch.over:
                return
            lost = True
            if number < options.upload_attempts:
                batch.active += 1
                self.env.process(self._attempt(batch, number + 1, options, pause_ns))
            batch.active -= 1
            if not batch.active:
                batch.end(None)

        with self._threads.request() as turn:
            yield turn
            if batch.over:
                return
            if options.upload_timeout_ns is not None:
                self.env.timeout(options.upload_timeout_ns).callbacks.append(lambda _: give_up())
            name = batch.parts[0].name if number == 1 else (*batch.parts[0].name, number)
            try:
                file = yield from self.storage.write(batch.size_bytes, *name, host=self.host)
            except StorageFailed:
                give_up(_PAUSE_NS)
                return
            if not batch.over:
                lost = True  # it has ended: neither its time-out nor a failure counts any more
                batch.end(file)
                return
            try:
                yield from self.storage.delete([file], host=self.host)
            except StorageFailed:
                return  # best effort

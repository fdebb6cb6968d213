"""The changelog of one subtask as processes: its log is uploaded while the job runs, the backend below materialised now and then.

Flink: FsStateChangelogWriter, PeriodicMaterializationManager.  What is in which file, and which snapshot refers to it, is
`sim.state.changelog`'s business; how files get into storage, several subtasks' as one, is `log_uploads`'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import simpy

from sim.model.randomness.streams import draw, stream
from sim.runtime.task.slot import Slot
from sim.runtime.task.state.keyed_state import KeyedState, NoKeyedState, NoLog
from sim.runtime.taskmanager.log_uploads import LogPart
from sim.state.changelog import ChangelogBackend
from sim.state.files import File, FrozenState, Handle
from sim.storage import FileId, StorageFailed
from sim.storage.ledger import Name
from sim.storage.work import Work

_SHORTEST_LOOK_NS, _LONGEST_LOOK_NS = 1_000_000, 100_000_000  # between two looks at how much was logged
_PACE_NS = 10_000_000_000  # the pace of the log is taken over so long, or twice that


class LogWriter(NoLog):
    """The changelog of one subtask, and its uploads."""

    def __init__(self, slot: Slot, state: KeyedState, backend: ChangelogBackend) -> None:
        self.slot = slot
        self.state = state
        self.env = slot.context.env
        self.storage = slot.context.storage
        self.backend = backend
        self._running: list[simpy.Process] = []
        self._closed = False  # a mail that is still to come freezes nothing
        self._uploads: dict[str, simpy.Event] = {}  # name of a file -> its handle, in time; None: it failed
        self._claims = Counter[str]()  # name of a file -> snapshots that need it and are not over
        self._materialisations = 0
        self._loaded_bytes = 0  # not written yet: the state a run begins with, which no log was kept of

    def start(self) -> None:
        """The task has its state."""
        self._loaded_bytes = self.backend.pending_bytes
        self._running = [self.env.process(self._materialise())]
        if not self.backend.options.in_memory:
            self._running.append(self.env.process(self._upload_early()))

    def stop(self) -> None:
        self._closed = True
        for process in self._running:
            if process.is_alive:
                process.interrupt()

    def upload(self, files: Iterable[File]) -> None:
        """See that these files of the log are written; those under way already are left alone."""
        for file in files:
            if file.name not in self._uploads:
                self._uploads[file.name] = self.env.event()
                if file.size_bytes >= self._loaded_bytes > 0:
                    self._loaded_bytes = 0
                    self.env.process(self._write(file, self._uploads[file.name]))
                else:
                    self._hand_in(file, self._uploads[file.name])

    def claim(self, files: Iterable[File]) -> None:
        """A snapshot needs these files until it calls `forget`."""
        files = tuple(files)
        self._claims.update(file.name for file in files)
        self.upload(files)

    def wait(self, file: File) -> Work[Handle]:
        """Process: until a file that was claimed is durable.  Raises StorageFailed."""
        handle = yield self._uploads[file.name]
        if handle is None:
            raise StorageFailed(f"{file.name} of the changelog could not be written")
        return handle  # type: ignore[no-any-return]

    def forget(self, files: Iterable[File]) -> None:
        """A snapshot that needed these is over."""
        for file in files:
            self._claims[file.name] -= 1
            self._forget_ended(file)

    def _forget_ended(self, file: File) -> None:
        """The outcomes of these uploads are no longer needed.  While one is, a durable file is not written again."""
        if self._claims[file.name] > 0:
            return
        del self._claims[file.name]
        if file.name in self._uploads and self._uploads[file.name].triggered:
            del self._uploads[file.name]

    def _hand_in(self, file: File, done: simpy.Event) -> None:
        """Hand a file to the uploads of the task manager.  Uploads outlive snapshots and their failures."""
        options = self.backend.options
        uploads = self.slot.manager.log_uploads(options.upload_threads)
        uploads.hand_in(LogPart(self._name(file), file.size_bytes, lambda stored: self._written(file, done, stored)), options)

    def _write(self, file: File, done: simpy.Event) -> Work[None]:
        """Process: write the log that the run begins with, in one stream and without a timeout."""
        if self.backend.options.batch_delay_ns:
            yield self.env.timeout(self.backend.options.batch_delay_ns)
        try:
            stored = yield from self.storage.write(file.size_bytes, *self._name(file), host=self.slot.manager.number)
        except StorageFailed:
            self._written(file, done, None)
        else:
            self._written(file, done, stored)

    def _written(self, file: File, done: simpy.Event, stored: FileId | None) -> None:
        """An upload has ended: the file is durable, or the upload was given up."""
        handle = None if stored is None else Handle(file.name, file.size_bytes, file.scope, stored)
        if handle is None:
            self.backend.given_up(file)
        else:
            self.backend.logged(handle)
        done.succeed(handle)
        self._forget_ended(file)

    def _name(self, file: File) -> Name:
        return "changelog", *self.state.name, file.name

    def _upload_early(self) -> Work[None]:
        """Process: upload the log when enough is new.  The time of the next look follows from the pace of the log."""
        enough = self.backend.options.preemptive_bytes
        earlier = latest = self._look()
        try:
            while True:
                now_ns, end_bytes = self._look()
                if self.backend.active_bytes >= enough and (file := self.backend.cut()) is not None:
                    self.upload([file])
                if now_ns - latest[0] > _PACE_NS:
                    earlier, latest = latest, (now_ns, end_bytes)
                took_ns, grown_bytes = now_ns - earlier[0], end_bytes - earlier[1]
                look_ns = (enough - self.backend.active_bytes) * took_ns // grown_bytes if grown_bytes else _LONGEST_LOOK_NS
                yield self.env.timeout(min(max(look_ns, _SHORTEST_LOOK_NS), _LONGEST_LOOK_NS))
        except simpy.Interrupt:
            return

    def _count(self) -> None:
        """Pass the number of records served so far to the state."""
        self.state.count(self.state.served(self.slot), self.env.now)

    def _look(self) -> tuple[int, int]:
        """(now, where the log ends)."""
        self._count()
        return int(self.env.now), self.backend.end_bytes

    def _materialise(self) -> Work[None]:
        """Process: the backend below is snapshotted once per interval, at a phase of this subtask's own."""
        interval_ns, state = self.backend.options.materialize_ns, self.state
        key = stream(state.subtask.seed, "materialize", *state.name)
        try:
            if self.backend.options.in_memory:  # else acknowledgements would carry what the run begins with
                yield from self._materialise_once()
            yield self.env.timeout(draw(key, 0) * interval_ns >> 32)
            while True:
                yield from self._materialise_once()
                yield self.env.timeout(interval_ns)
        except simpy.Interrupt:
            return

    def _materialise_once(self) -> Work[None]:
        if not self.backend.may_materialise:
            return
        self._materialisations += 1
        number, state = self._materialisations, self.state
        frozen = self.env.event()

        def freeze() -> None:
            if self._closed:
                return
            self._count()
            frozen_state = self.backend.materialise(number)
            self.slot.checks.materialising(self.slot.task, number)
            if frozen_state.sync_ns:
                self.slot.thread.occupy()
                self.env.call_in(frozen_state.sync_ns, self.slot.thread.vacate)
            frozen.succeed(frozen_state)

        self.slot.thread.post(freeze)
        frozen_state: FrozenState = yield frozen
        handles: list[Handle] = []
        try:
            for step in frozen_state.steps:
                yield from state.write_step(self.storage, handles, step, ("materialized", *state.name, number))
        except StorageFailed:
            self.backend.materialisation_failed(number)
            return  # the next materialisation tries again
        handles = [*frozen_state.reused, *handles]
        self.backend.materialised(number, frozen_state, handles)
        self._loaded_bytes = 0  # it holds them, if no log does
        self.slot.checks.materialised(self.slot.task, number, handles)


def attach(slot: Slot, state: NoKeyedState) -> None:
    """Give state its changelog, if its backend keeps one."""
    if isinstance(state, KeyedState) and isinstance(state.backend, ChangelogBackend):
        state.log = LogWriter(slot, state, state.backend)

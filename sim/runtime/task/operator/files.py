"""Files an operator of one task writes per snapshot: straight to storage before the barrier, or to the local disk and uploaded later.

The second way is FLINK-37375.  Its hazard: the names of the files are with the committer already when their checkpoint is aborted,
and the next complete checkpoint publishes them (`abort_policy`):

survive     the uploads go on, and the next acknowledgement waits for them
reupload    they are stopped and done again within the next snapshot
drop        they are stopped and their files deleted: what is published then leads nowhere (known to be wrong)
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.sink import Flush
from sim.runtime.background import begin
from sim.runtime.task.operator.uploads import StagedFile, Uploads
from sim.runtime.task.slot import Slot
from sim.storage.ledger import FileId, Name
from sim.storage.work import Work


@dataclass(slots=True)
class _Flush:
    """The files of one snapshot."""

    checkpoint: int
    files: list[StagedFile]


class OperatorFiles:
    """The files that an operator writes per snapshot."""

    def __init__(self, slot: Slot, options: Flush) -> None:
        context, task = slot.context, slot.task
        self.context = context
        self.output = slot.output
        self.options = options
        self.space = slot.manager.staging
        self.host = slot.manager.number
        self._name = context.names[task]
        self._disk = context.storage.disk(self.host)
        self._policy = context.scenario.checkpoint.abort_policy
        self._uploads = Uploads(context.env, context.scenario.checkpoint.upload_threads, self._upload, self._uploaded)
        self._flushes: list[_Flush] = []  # not known to be in a complete checkpoint, oldest first
        self._stopped = False
        self.space.when_short.append(self._submit_all)

    def choose(self, checkpoint: int, read_bytes: int) -> tuple[Name, ...]:
        """The files of this snapshot, by their final names; none if the operator read nothing since the last."""
        total = self.options.bytes + int(self.options.share * read_bytes)
        count = self.options.files if read_bytes and total else 0
        sizes = [total * (i + 1) // count - total * i // count for i in range(count)]
        files = [StagedFile(("flush", *self._name, checkpoint, i), size) for i, size in enumerate(sizes)]
        if files:
            self._flushes.append(_Flush(checkpoint, files))
        return tuple(file.name for file in files)

    def volume(self, checkpoint: int) -> int:
        """Bytes of the files of this snapshot."""
        return sum(file.size_bytes for file in self._of(checkpoint))

    def write(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: one file after the other, straight to storage.  Raises StorageFailed."""
        for file in self._unwritten(checkpoint):
            file.stored = yield from self._upload(file)
            self.output.stored(file.name, file.stored)

    def stage(self, checkpoint: int) -> Work[None]:
        """Process, on the task thread: one file after the other to the local disk, when there is room.  Raises StorageFailed."""
        for file in self._unwritten(checkpoint):
            yield from self.space.reserve(file.size_bytes)
            try:
                file.local = yield from self._disk.write(file.size_bytes, *file.name, host=self.host)
            except BaseException:
                self.space.release(file.size_bytes)
                raise
            if self._stopped:
                self._forget_local(file)

    def upload(self, checkpoint: int) -> Work[None]:
        """Process: until all files up to this snapshot's are durable, those of aborted ones too.  Raises StorageFailed."""
        due = [file for flush in self._flushes if flush.checkpoint <= checkpoint for file in flush.files]
        for file in due:
            self._uploads.submit(file)
        while missing := [file for file in due if file.stored is None and not file.dropped]:
            yield self._uploads.change()
            for file in missing:
                if file.failure is not None:
                    raise file.failure
                if not file.dropped:  # it may have been stopped by an abort
                    self._uploads.submit(file)

    def abort(self, checkpoint: int) -> None:
        """The task hears, perhaps again, that the checkpoint is aborted.  Its own part may be complete."""
        for file in self._of(checkpoint):
            if self._policy == "survive":
                if file.attempts == 0 and file.local is not None:
                    self._uploads.submit(file)
            else:
                self._uploads.cancel(file)
                if self._policy == "drop":
                    self._drop(file)
        if self._policy == "drop":
            self._flushes = [flush for flush in self._flushes if flush.checkpoint != checkpoint]

    def complete(self, checkpoint: int) -> None:
        """The files of this checkpoint and of those before it are published, and stay."""
        self._flushes = [flush for flush in self._flushes if flush.checkpoint > checkpoint]

    def stop(self) -> None:
        """The task has stopped: its files on the local disk are gone, and the file being written is not used."""
        self._stopped = True
        for flush in self._flushes:
            for file in flush.files:
                self._uploads.cancel(file)
                self._forget_local(file)
        self.space.when_short.remove(self._submit_all)

    def _unwritten(self, checkpoint: int) -> list[StagedFile]:
        """The end of the input may have written those of the snapshot after it."""
        return [file for file in self._of(checkpoint) if file.stored is None and file.local is None]

    def _of(self, checkpoint: int) -> list[StagedFile]:
        return next((flush.files for flush in self._flushes if flush.checkpoint == checkpoint), [])

    def _upload(self, file: StagedFile) -> Work[FileId]:
        again = (file.attempts,) if file.attempts > 1 else ()  # an upload that is repeated meets other nodes
        return self.context.storage.write(file.size_bytes, *file.name, *again, host=self.host)

    def _uploaded(self, file: StagedFile) -> None:
        if file.stored is not None:
            self.output.stored(file.name, file.stored)
        self._forget_local(file)

    def _submit_all(self) -> None:
        for flush in self._flushes:
            for file in flush.files:
                if file.local is not None:
                    self._uploads.submit(file)

    def _forget_local(self, file: StagedFile) -> None:
        if file.local is not None:
            begin(self.context.env, self._disk.delete([file.local]), lambda _: None)
            self.space.release(file.size_bytes)
            file.local = None

    def _drop(self, file: StagedFile) -> None:
        file.dropped = True
        if file.stored is not None:
            begin(self.context.env, self.context.storage.delete([file.stored], host=self.host), lambda _: None)
        self._forget_local(file)

"""Epochs of output between checkpoints, and asynchronous requests."""

from __future__ import annotations

from sim.protocol.commit import Writer
from sim.protocol.coordinator_messages import Work as Piece
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts, WaitingBytes
from sim.runtime.task.sink import OperatorFiles, SinkCommitter, SinkWriter
from sim.runtime.task.slot import Slot
from sim.storage.requests import Work

# ---- The epochs of an operator's output: its files and its transactions end an epoch together, before the barrier of a snapshot.


class Epochs(TaskPart):
    """A task's output files, its transactional writer and its committer; each is optional."""

    def __init__(self, slot: Slot, operator: TaskParts) -> None:
        vertex, job = slot.vertex, slot.context.scenario.job
        self.slot = slot
        self.context = slot.context
        self.plane = slot.context.plane
        self.operator = operator
        self.files: OperatorFiles | None = None
        self.writer: SinkWriter | None = None
        self.committer: SinkCommitter | None = None
        self._end = vertex.flush is not None or vertex.commit is not None
        self._emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
        self._bytes_at_cut = 0
        self._holds_back = 0
        self._last_checkpoint = 0
        # by epoch whose records wait for their commit: how many were served by its end
        self._served: dict[int, int] = {}
        commit = job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit
        if commit is not None and (vertex.committer_of or commit.committer == "chained"):
            self.committer = SinkCommitter(slot, commit, self._emit, operator.drained)
        if self._end:
            records, _ = self._read()  # where it stands: after a restart not at the beginning
            if vertex.commit is not None:
                self._holds_back = vertex.commit.holds_back
                self.writer = SinkWriter(
                    Writer(slot.task, records, slot.now), vertex.name, self.committer, operator.committer_of
                )
        if vertex.flush is not None:
            self.files = OperatorFiles(slot, vertex.flush)

    @property
    def listens(self) -> bool:
        return self.files is not None or self.committer is not None

    def before_barrier(self, checkpoint: int) -> int:
        """End the epoch: output since the last snapshot goes to the committer."""
        if self._end:
            records, names, size_bytes = self._ended(checkpoint)
            if self.writer is not None:
                written = records if self.operator.drained() else self._written(records, self.writer.machine.read)
                self.writer.end_epoch(self.slot.now, checkpoint, written, size_bytes, names)
        if self.committer is not None:
            self.committer.take_in(checkpoint)
        return 0

    def work_before_barrier(self, checkpoint: int, pieces: tuple[Piece, ...]) -> Work[None] | None:
        return None if self.files is None else self._flush(self.files, pieces, checkpoint)

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Add the transactions of the committer to the snapshot, and the records that the writer holds back."""
        if self.committer is not None:
            snapshot.committables = self.committer.cut(checkpoint)
        if self.writer is not None:
            read = self.plane.position(self.slot.task).records_out.tolist()
            snapshot.held_back = tuple(
                records - written for records, written in zip(read, self.writer.machine.read, strict=True)
            )

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        if self.writer is not None:
            self.writer.overtaken()

    def upload(self, checkpoint: int) -> Work[None] | None:
        return None if self.files is None else self.files.upload(checkpoint)

    def completed(self, checkpoint: int) -> None:
        """The commit comes first, then its files are published."""
        if self.committer is not None:
            self.committer.completed(checkpoint)
        if self.files is not None:
            self.files.complete(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        if self.files is not None:
            self.files.abort(checkpoint)
        if self.committer is not None:
            self.committer.aborted(checkpoint)

    def end_input(self) -> None:
        """A global committer has read all that its writers handed over."""
        if self.committer is not None and not self._end:
            self.committer.take_in_all()

    def work_at_end(self) -> Work[None] | None:
        """The open transaction goes to the committer, and the last files are written."""
        if not self._end:
            return None
        epoch = self._last_checkpoint + 1
        records, names, size_bytes = self._ended(epoch)
        if self.writer is not None:
            self.writer.end_input(self.slot.now, records, size_bytes, names)
        if self.files is None:
            return None
        options, rule = self.context.scenario.checkpoint, self.slot.job.rule
        # for a checkpoint to upload them
        later = options.operator_io == "async" and self.context.periodic and rule.waits
        return self._flush(self.files, () if later else (Piece.OPERATOR_FLUSH,), epoch)

    def close(self) -> None:
        """The committer commits all its transactions, even if the job fails afterwards."""
        if self.committer is not None:
            self.committer.close()

    def stop(self) -> None:
        if self.files is not None:
            self.files.stop()

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Epochs go on behind the checkpoint restored: output before the next one belongs to neither it nor an older one."""
        uncommitted = snapshot.committables
        checkpoint = snapshot.checkpoint if uncommitted is None else uncommitted.checkpoint
        self._last_checkpoint = checkpoint
        if self._emits_on_commit:
            self._served[checkpoint] = snapshot.position.served
        if self.writer is not None:
            self.writer.go_on_behind(checkpoint, snapshot.written)
        if self.committer is not None and uncommitted is not None:
            self.committer.restored(uncommitted)

    def _emit(self, epoch: int) -> None:
        """Epochs up to this one are committed: the outputs of their records leave."""
        committed = [number for number in self._served if number <= epoch]
        until = max((self._served[number] for number in committed), default=0)
        for number in committed:
            del self._served[number]
        self.slot.thread.release_late_outputs(until)

    def _flush(self, files: OperatorFiles, pieces: tuple[Piece, ...], checkpoint: int) -> Work[None]:
        return files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else files.stage(checkpoint)

    def _ended(self, epoch: int) -> tuple[tuple[int, ...], tuple[tuple[str | int, ...], ...], int]:
        """Records read so far per channel, and the files (and bytes) of what was read since the last time."""
        self._last_checkpoint = epoch
        if self._emits_on_commit:
            self._served[epoch] = self.plane.position(self.slot.task).served
        records, since = self._read()
        if self.files is None:
            return records, (), since
        names = self.files.choose(epoch, since)
        return records, names, self.files.volume(epoch)

    def _written(self, records: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
        """The records read so far that it does not hold back; what it wrote before stays written."""
        return tuple(max(done, read - self._holds_back) for read, done in zip(records, before, strict=True))

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Records read so far on each channel, and the bytes read since the last time."""
        here = self.plane.position(self.slot.task)
        read_bytes = int(here.consumed.sum())
        since, self._bytes_at_cut = read_bytes - self._bytes_at_cut, read_bytes
        return tuple(here.records_out.tolist()), since


def attach(slot: Slot, operator: TaskParts) -> Epochs | None:
    vertex = slot.vertex
    return (
        Epochs(slot, operator) if vertex.flush is not None or vertex.commit is not None or vertex.committer_of else None
    )


FEATURE = TaskFeature(attach, Stage.OUTPUT)


# ---- Asynchronous I/O: requests under way are operator list state, and the end of the data waits for their answers.
#
# Flink: AsyncWaitOperator#snapshotState, #endInput.

_LENGTH_BYTES = 4  # before every record on the wire (SpanningRecordSerializer)


class AsyncRequests(TaskPart):
    """The requests under way of one task with asynchronous I/O.  Their answers are its late outputs."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    @property
    def has_pending_outputs(self) -> bool:
        return True

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(operator=self.slot.context.plane.position(self.slot.task).late * self._request_bytes)

    @property
    def _request_bytes(self) -> int:
        """An element of operator list state: a record as on the wire, without its length."""
        sizes = [inlet.record_bytes.mean for inlet in self.slot.vertex.inputs]
        return max(0, sum(sizes) // len(sizes) - _LENGTH_BYTES) if sizes else 0


def attach_requests(slot: Slot, _: TaskParts) -> AsyncRequests | None:
    return None if slot.vertex.async_io is None else AsyncRequests(slot)


REQUESTS_FEATURE = TaskFeature(attach_requests)

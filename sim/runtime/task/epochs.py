"""The output of an operator in epochs, i.e. from one checkpoint to the next, and the state of asynchronous I/O."""

from __future__ import annotations

from functools import cached_property

from sim.protocol.commit import EpochEnded, Writer, WriterEvent, WriterInputEnded, WriterRestored
from sim.protocol.messages import Work as Piece
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart, TaskParts, WaitingBytes
from sim.runtime.task.sink import OperatorFiles, SinkCommitter
from sim.runtime.task.thread import Slot
from sim.storage.requests import Work

# ---- The epochs of an operator's output: before the barrier of a snapshot, its files and its transaction are closed together.


class Epochs(TaskPart):
    """The output files, the transactional writer and the committer of one task.  Each of them is optional."""

    def __init__(self, slot: Slot, operator: TaskParts) -> None:
        vertex, job = slot.vertex, slot.context.scenario.job
        self.slot = slot
        self.context = slot.context
        self.operator = operator
        self.files: OperatorFiles | None = None
        self.writer: Writer | None = None
        self.committer: SinkCommitter | None = None
        self._end = vertex.flush is not None or vertex.commit is not None  # whether this operator writes output
        self._emits_on_commit = vertex.commit is not None and vertex.commit.emits == "on-commit"
        self._bytes_at_cut = 0  # bytes read up to the end of the last epoch
        self._holds_back = 0  # newest records of each input channel that the writer does not write yet
        self._last_checkpoint = 0
        # uncommitted epoch -> records served up to its end, whose outputs are emitted on commit
        self._served: dict[int, int] = {}
        commit = job.vertex(vertex.committer_of).commit if vertex.committer_of else vertex.commit
        if commit is not None and (vertex.committer_of or commit.committer == "chained"):
            self.committer = SinkCommitter(slot, commit, self._emit, operator.drained)
        if self._end:
            records, _ = self._read()  # after a restart the counts do not start at 0
            if vertex.commit is not None:
                self._holds_back = vertex.commit.holds_back
                self.writer = Writer(slot.task, records, slot.now)
        if vertex.flush is not None:
            self.files = OperatorFiles(slot, vertex.flush)

    @property
    def listens(self) -> bool:
        return self.files is not None or self.committer is not None

    def before_barrier(self, checkpoint: int) -> int:
        """End the epoch: send the transaction since the last snapshot to the committer."""
        if self._end:
            records, names, size_bytes = self._ended(checkpoint)
            if self.writer is not None:
                written = records if self.operator.drained() else self._written(records, self.writer.read)
                self._dispatch_to_writer(EpochEnded(self.slot.now, checkpoint, written, size_bytes, names))
        if self.committer is not None:
            self.committer.receive_committable(checkpoint)
        return 0

    def work_before_barrier(self, checkpoint: int, pieces: tuple[Piece, ...]) -> Work[None] | None:
        """Return the process that writes the files of the epoch, or None if the operator writes no files."""
        return None if self.files is None else self._flush(self.files, pieces, checkpoint)

    def cut(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Add to the snapshot the committables, and the number of records that the writer has read but not written."""
        if self.committer is not None:
            snapshot.committables = self.committer.cut(checkpoint)
        if self.writer is not None:
            read = self.slot.position.records_read.tolist()
            snapshot.held_back = tuple(
                records - written for records, written in zip(read, self.writer.read, strict=True)
            )

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        if self.writer is not None:
            self._receiver.overtake(self.slot.task)

    def upload(self, checkpoint: int) -> Work[None] | None:
        return None if self.files is None else self.files.upload(checkpoint)

    def completed(self, checkpoint: int) -> None:
        """Commit the epochs of a completed checkpoint, then mark their files as published."""
        if self.committer is not None:
            self.committer.completed(checkpoint)
        if self.files is not None:
            self.files.complete(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        """Apply the abort policy to files.  Committables wait for the next completed checkpoint."""
        if self.files is not None:
            self.files.abort(checkpoint)
        if self.committer is not None:
            self.committer.aborted(checkpoint)

    def end_input(self) -> None:
        """Let a global committer receive the last committables of its writers."""
        if self.committer is not None and not self._end:
            self.committer.receive_committables()

    def work_at_end(self) -> Work[None] | None:
        """Send the open transaction to the committer, and return the work that writes the last files, or None."""
        if not self._end:
            return None
        epoch = self._last_checkpoint + 1
        records, names, size_bytes = self._ended(epoch)
        if self.writer is not None:
            self._dispatch_to_writer(WriterInputEnded(self.slot.now, records, size_bytes, names))
        if self.files is None:
            return None
        options, rule = self.context.scenario.checkpoint, self.slot.job.rule
        # later: write the files to the local disk now, and let the final checkpoint upload them
        later = options.operator_io == "async" and self.context.periodic and rule.waits
        return self._flush(self.files, () if later else (Piece.OPERATOR_FLUSH,), epoch)

    def close(self) -> None:
        """Commit all transactions.  They remain visible even if the job fails afterwards."""
        if self.committer is not None:
            self.committer.close()

    def stop(self) -> None:
        if self.files is not None:
            self.files.stop()

    def restored(self, snapshot: TaskSnapshot) -> None:
        """Continue from the restored checkpoint: output from now on belongs to the next epoch."""
        uncommitted = snapshot.committables
        checkpoint = snapshot.checkpoint if uncommitted is None else uncommitted.checkpoint
        self._last_checkpoint = checkpoint
        if self._emits_on_commit:
            self._served[checkpoint] = snapshot.position.served
        if self.writer is not None:
            # with at-least-once it had read records from behind the barrier, which are sent and written again
            written = tuple(map(min, snapshot.written, self.writer.read))
            self._dispatch_to_writer(WriterRestored(checkpoint, written))
        if self.committer is not None and uncommitted is not None:
            self.committer.restored(uncommitted)

    @cached_property
    def _receiver(self) -> SinkCommitter:
        """The committer that the writer sends to: the one in this task, or the global one of the vertex."""
        return self.committer or self.operator.committer_of(self.slot.vertex.name)

    def _dispatch_to_writer(self, event: WriterEvent) -> None:
        """Pass an event to the writer, and send its committables to the committer."""
        assert self.writer is not None
        self.writer, commands = self.writer.on(event)
        for command in commands:
            self._receiver.receive(command.committable)

    def _emit(self, epoch: int) -> None:
        """Emit the outputs of epochs up to this one, which are committed now."""
        committed = [number for number in self._served if number <= epoch]
        until = max((self._served[number] for number in committed), default=0)
        for number in committed:
            del self._served[number]
        self.slot.thread.release_late_outputs(until)

    def _flush(self, files: OperatorFiles, pieces: tuple[Piece, ...], checkpoint: int) -> Work[None]:
        """Return the work that writes the files to storage, or to the local disk if they are uploaded asynchronously."""
        return files.write(checkpoint) if Piece.OPERATOR_FLUSH in pieces else files.stage(checkpoint)

    def _ended(self, epoch: int) -> tuple[tuple[int, ...], tuple[tuple[str | int, ...], ...], int]:
        """End an epoch.  Return the records read so far by input channel, and the names and the size of its files.

        Without files, the size is the number of bytes read since the last epoch.
        """
        self._last_checkpoint = epoch
        if self._emits_on_commit:
            self._served[epoch] = self.slot.position.served
        records, since = self._read()
        return records, *(((), since) if self.files is None else self.files.choose(epoch, since))

    def _written(self, records: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
        """Return the records of each input channel that are written, i.e. those read except the newest `_holds_back`.

        `before` are the records written up to the last epoch: the counts do not decrease.
        """
        return tuple(max(done, read - self._holds_back) for read, done in zip(records, before, strict=True))

    def _read(self) -> tuple[tuple[int, ...], int]:
        """Return the records read so far on each input channel, and the bytes read since the last call."""
        position = self.slot.position
        read_bytes = int(position.consumed.sum())
        since, self._bytes_at_cut = read_bytes - self._bytes_at_cut, read_bytes
        return tuple(position.records_read.tolist()), since


def attach(slot: Slot, operator: TaskParts) -> Epochs | None:
    """Return the epochs of a task, or None if its vertex writes no files and is no part of a transactional sink."""
    vertex = slot.vertex
    return (
        Epochs(slot, operator) if vertex.flush is not None or vertex.commit is not None or vertex.committer_of else None
    )


FEATURE = TaskFeature(attach, Stage.OUTPUT)


# ---- Asynchronous I/O: requests in progress are operator list state, and the end of data waits for their responses.
#
# Flink: AsyncWaitOperator#snapshotState, #endInput.

_LENGTH_BYTES = 4  # the length that precedes a serialized record on the wire (SpanningRecordSerializer)


class AsyncRequests(TaskPart):
    """The asynchronous requests in progress of one task.  Their outputs are pending (`late` in `Position`)."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    @property
    def has_pending_outputs(self) -> bool:
        return True

    def waiting(self) -> WaitingBytes:
        """Return the size of the requests in operator list state: serialized input records without their lengths."""
        sizes = [inlet.record_bytes.mean for inlet in self.slot.vertex.inputs]
        request_bytes = max(0, sum(sizes) // len(sizes) - _LENGTH_BYTES) if sizes else 0
        return WaitingBytes(operator=self.slot.position.late * request_bytes)


REQUESTS_FEATURE = TaskFeature(lambda slot, _: None if slot.vertex.async_io is None else AsyncRequests(slot))

"""The channel state of one task: captured in-flight data is written to a file, and read by a restore.

Captured buffers stay in their pools until they are written, so slow storage throttles the data plane.  They must not
wait for the last barrier: an upstream task may have to send more data before it can send its barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.model.cluster import spills_recovered_data
from sim.results.journal import EventType
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.parts import Stage, TaskFeature, TaskPart
from sim.runtime.task.thread import Slot
from sim.storage.requests import Work


@dataclass(slots=True)
class _Capture:
    """The in-flight data that a task captures for one checkpoint."""

    input_bytes: int = 0  # passed to the writer so far
    output_bytes: int = 0
    writes: int = 0  # writes in progress
    capturing: bool = False  # some barriers are missing: data that arrives is captured
    complete: bool = False  # its size is final


class ChannelState(TaskPart):
    """The channel state of one task."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.context = slot.context
        self.plane = slot.context.plane
        self.task = slot.task
        self.writer = slot.manager.channel_state[slot.task]
        self.writer.join(slot.task)
        self._captures: dict[int, _Capture] = {}

    @property
    def storing(self) -> bool:
        return any(capture.writes for capture in self._captures.values())

    def capture_begun(self, checkpoint: int) -> None:
        """Register with the file that the subtasks of the TaskManager share.  A second call has no effect."""
        if checkpoint not in self._captures:
            self._captures[checkpoint] = _Capture()
            self.writer.register(checkpoint)

    def overtaken(self, checkpoint: int, size_bytes: int) -> None:
        """Write the output data that priority barriers have overtaken."""
        if size_bytes and checkpoint in self._captures:
            self._captures[checkpoint].output_bytes += size_bytes
            self._write(checkpoint, size_bytes)

    def output_converted(self, checkpoint: int, size_bytes: int) -> None:
        self.overtaken(checkpoint, size_bytes)

    def input_overtaken(self, checkpoint: int) -> None:
        """Start to capture input.  Data in the receive queues is written at once."""
        self.capture_begun(checkpoint)
        self.plane.capture(self.task, checkpoint)
        self._captures[checkpoint].capturing = True
        self._store_input(checkpoint)
        self._release_if_written(checkpoint)

    def barriers_complete(self, checkpoint: int) -> None:
        """Write the rest of the captured input."""
        if checkpoint in self._captures and self._captures[checkpoint].capturing:
            self._store_input(checkpoint)
            self._captures[checkpoint].capturing = False
            self._release_if_written(checkpoint)

    def capture_ended(self, checkpoint: int, stored: Callable[[], None], failed: Callable[[], None]) -> None:
        """Complete the channel state.  Call `stored` when the shared file is closed, or `failed` if writing it fails."""

        def closed() -> None:
            self.slot.note(EventType.CHANNEL_STATE_WRITTEN, checkpoint, stats.persisted_bytes)
            stored()

        self.barriers_complete(checkpoint)  # not called before if all barriers had arrived at the start
        self.slot.note(EventType.IN_FLIGHT_COMPLETE, checkpoint)
        capture, stats = self._captures[checkpoint], self.context.stats[checkpoint].of(self.task)
        stats.captured_input_bytes, stats.captured_output_bytes = capture.input_bytes, capture.output_bytes
        self.context.contents.in_flight_final(
            checkpoint, self.task, captured=capture.input_bytes > 0, overtaken=capture.output_bytes > 0
        )
        capture.complete = True
        self.writer.when_closed(checkpoint, closed, failed)
        self.writer.complete(checkpoint, self.task)
        self._release_if_written(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        """Drop the captured data of a checkpoint: release its buffers, and write nothing more to its file."""
        if self._captures.pop(checkpoint, None) is not None:
            self.writer.abort(checkpoint)
            self.plane.release_capture(self.task)

    def stop(self) -> None:
        """Drop captures in progress."""
        for checkpoint in self._captures:
            self.writer.abort(checkpoint)
        self._captures.clear()

    def finished(self) -> None:
        """Leave the group of subtasks that share files."""
        self.writer.leave(self.task)

    def download(self, snapshot: TaskSnapshot) -> Work[None] | None:
        """Return the process that reads in-flight data from files, or None.  Data inlined in the acknowledgement takes no time."""
        read: Work[None] | None = None
        if in_files_bytes := snapshot.in_flight_bytes - snapshot.inlined_bytes:
            name = ("restore", "channel-state", *self.context.names[self.task], snapshot.checkpoint)
            read = self.context.storage.read(in_files_bytes, *name, host=self.context.hosts[self.task])
        scenario = self.context.scenario
        if scenario.checkpoint.during_recovery and spills_recovered_data(scenario.cluster.version):
            return self._spill(read, snapshot)
        return read

    def _spill(self, read: Work[None] | None, snapshot: TaskSnapshot) -> Work[None]:
        """Process: read in-flight data, and write it to the local disk, from which channels get it (FetchedChannelState).

        Simpler than in Flink: its space is free again when the task runs, and channels get it in no time.
        """
        if read is not None:
            yield from read
        if snapshot.in_flight_bytes:
            host = self.context.hosts[self.task]
            disk, name = self.context.storage.disk(host), self.context.names[self.task]
            file = yield from disk.write(snapshot.in_flight_bytes, "spilled", *name, snapshot.checkpoint, host=host)
            yield from disk.delete([file], host=host)

    def _store_input(self, checkpoint: int) -> None:
        """Write the input data that was captured since the last call."""
        capture = self._captures[checkpoint]
        more_bytes = self.plane.captured(self.task) - capture.input_bytes
        if more_bytes:
            capture.input_bytes += more_bytes
            self._write(checkpoint, more_bytes)

    def _write(self, checkpoint: int, size_bytes: int) -> None:
        """Write captured data, and release its buffers afterwards."""
        self._captures[checkpoint].writes += 1
        self.writer.write(checkpoint, size_bytes, lambda: self._written(checkpoint))

    def _written(self, checkpoint: int) -> None:
        if checkpoint in self._captures:
            self._captures[checkpoint].writes -= 1
            self._release_if_written(checkpoint)

    def _release_if_written(self, checkpoint: int) -> None:
        """Release captured buffers when all data captured so far is written.

        Data that arrives later is not held, and is written when all barriers have arrived.
        """
        capture = self._captures[checkpoint]
        if capture.writes == 0 and capture.capturing:
            self._store_input(checkpoint)  # data that arrived during the write
        if capture.writes == 0:
            self.plane.release_capture(self.task)
            if capture.complete:
                del self._captures[checkpoint]


FEATURE = TaskFeature(lambda slot, _: ChannelState(slot), Stage.CHANNELS)

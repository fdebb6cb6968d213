"""The in-flight data of one task's snapshots: from the plane's captures to the channel-state writer.

Captured buffers stay pinned in their pools until they are written; slow storage therefore throttles the data plane.
They are not kept until the last barrier is here: a writer upstream may have to send data before it can send that barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.plane.seam.interface import DataPlane
from sim.runtime.taskmanager.channel_state import ChannelStateWriter


@dataclass(slots=True)
class _Part:
    """The in-flight data of one checkpoint."""

    input_bytes: int = 0  # handed to the writer so far
    output_bytes: int = 0
    writes: int = 0  # handed over and not written yet
    capturing: bool = False
    complete: bool = False


class InFlightData:
    """The in-flight data of one task, from its captures to the file."""

    def __init__(self, plane: DataPlane, writer: ChannelStateWriter, task: int) -> None:
        self.plane = plane
        self.writer = writer
        self.task = task
        self._parts: dict[int, _Part] = {}

    def start(self, checkpoint: int) -> None:
        """Register with the file of the task's group.  A second call has no effect."""
        if checkpoint not in self._parts:
            self._parts[checkpoint] = _Part()
            self.writer.register(checkpoint)

    def store_output(self, checkpoint: int, size_bytes: int) -> None:
        """Store the output data that priority barriers have overtaken."""
        if size_bytes and checkpoint in self._parts:
            self._parts[checkpoint].output_bytes += size_bytes
            self._write(checkpoint, size_bytes)

    def capture_input(self, checkpoint: int) -> None:
        """Begin to capture input.  Data in the receive queues is written at once."""
        self.start(checkpoint)
        self.plane.capture(self.task, checkpoint)
        self._parts[checkpoint].capturing = True
        self._store_input(checkpoint)
        self._release_if_written(checkpoint)

    @property
    def writing(self) -> bool:
        """Whether pinned buffers are under way to storage."""
        return any(part.writes for part in self._parts.values())

    def capturing(self, checkpoint: int) -> bool:
        """Whether input may still be added."""
        return checkpoint in self._parts and self._parts[checkpoint].capturing

    def finish_capture(self, checkpoint: int) -> None:
        """All barriers are here: the rest of the input follows, if there may be any."""
        if self.capturing(checkpoint):
            self._store_input(checkpoint)
            self._parts[checkpoint].capturing = False
            self._release_if_written(checkpoint)

    def volume(self, checkpoint: int) -> tuple[int, int]:
        """(input bytes, output bytes) handed to the writer so far."""
        part = self._parts[checkpoint]
        return part.input_bytes, part.output_bytes

    def finish(self, checkpoint: int, then: Callable[[], None], failed: Callable[[], None] = lambda: None) -> None:
        """No more data of this task; `then` when the group's file is closed: at once, if storage takes no time; or `failed`."""
        part = self._parts[checkpoint]
        part.complete = True
        self.writer.when_closed(checkpoint, then, failed)
        self.writer.complete(checkpoint, self.task)
        self._release_if_written(checkpoint)

    def cancel(self, checkpoint: int) -> None:
        """Drop the checkpoint: free its buffers, forget its file."""
        if self._parts.pop(checkpoint, None) is not None:
            self.writer.abort(checkpoint)
            self.plane.release_capture(self.task)

    def stop(self) -> None:
        """The task has stopped: its parts of all pending checkpoints are dropped."""
        for checkpoint in self._parts:
            self.writer.abort(checkpoint)
        self._parts.clear()

    def _store_input(self, checkpoint: int) -> None:
        part = self._parts[checkpoint]
        more_bytes = self.plane.captured(self.task)[0] - part.input_bytes
        if more_bytes:
            part.input_bytes += more_bytes
            self._write(checkpoint, more_bytes)

    def _write(self, checkpoint: int, size_bytes: int) -> None:
        self._parts[checkpoint].writes += 1
        self.writer.write(checkpoint, size_bytes, lambda: self._written(checkpoint))

    def _written(self, checkpoint: int) -> None:
        if checkpoint in self._parts:
            self._parts[checkpoint].writes -= 1
            self._release_if_written(checkpoint)

    def _release_if_written(self, checkpoint: int) -> None:
        """All that was captured so far is written: its buffers go back to their pools.

        What arrives after that is not pinned any more and written with the rest, when all barriers are here.
        """
        part = self._parts[checkpoint]
        if part.writes == 0 and part.capturing:
            self._store_input(checkpoint)  # it arrived during the write
        if part.writes == 0:
            self.plane.release_capture(self.task)
            if part.complete:
                del self._parts[checkpoint]

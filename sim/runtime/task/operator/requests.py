"""Asynchronous I/O: requests under way are operator list state, and the end of the data waits for their answers.

Flink: AsyncWaitOperator#snapshotState, #endInput.
"""

from __future__ import annotations

from sim.runtime.task.part import PartsPort, TaskFeature, TaskPart, WaitingBytes
from sim.runtime.task.slot import Slot

_LENGTH_BYTES = 4  # before every record on the wire (SpanningRecordSerializer)


class AsyncRequests(TaskPart):
    """The requests under way of one task with asynchronous I/O.  Their answers are its late outputs."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    @property
    def owes_outputs(self) -> bool:
        return True

    def waiting(self) -> WaitingBytes:
        return WaitingBytes(operator=self.slot.context.plane.position(self.slot.task).late * self._request_bytes)

    @property
    def _request_bytes(self) -> int:
        """An element of operator list state: a record as on the wire, without its length."""
        sizes = [inlet.record_bytes.mean for inlet in self.slot.vertex.inputs]
        return max(0, sum(sizes) // len(sizes) - _LENGTH_BYTES) if sizes else 0


def attach(slot: Slot, _: PartsPort) -> AsyncRequests | None:
    return None if slot.vertex.async_io is None else AsyncRequests(slot)


FEATURE = TaskFeature(attach)

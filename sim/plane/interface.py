"""What the data plane and its hosts exchange: markers, notices, positions, counters.  `KernelPlane` has the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sim.plane.spec import Layout

# ---- Counts of a task since the plane was built.  They never decrease, not even in restarts (rule P8).


class Counted(NamedTuple):
    """The number of records of all attempts of a task, in total and by channel.  Channels are in the order of its `Position`."""

    served: int
    read: np.ndarray  # by input channel
    written: np.ndarray  # by output channel


# ---- Markers, notices and the columns of tables.
#
# ``M1`` refers to a rule of ``sim/plane/RULES.md``.  All times are int64
# nanoseconds, all volumes int64 bytes.

BARRIERS = 0
"""The series of checkpoint barriers, whose markers delimit captures."""
SINGLES = 2
"""Markers of this and higher series are reported one by one (M4)."""
MAX_SERIES = 5
ANY_NUMBER = 1 << 62
"""Larger than all marker numbers."""
OF_VERTICES = ("served", "bytes_out", "busy_ns", "idle_ns", "soft_ns", "hard_ns")
"""Columns of `sums` for each vertex.  Records served count over all attempts (P8)."""
OF_EDGES = ("bytes to read", "buffers to read", "bytes to send", "buffers to send")
"""Columns of `sums` for each edge.

To read: arrived but not taken, i.e. received on a remote channel or queued on a local one.  To send: written but not sent.
"""
MAX_SERVED_SAMPLES = 8
"""Maximum rows that one call of `sample_served` returns."""
OPEN_COUNTS = 50
"""Marker counts tracked per gate (Flink: CheckpointBarrierTracker.MAX_CHECKPOINTS_TO_TRACK)."""


class ThreadState(IntEnum):
    """The state of a task's thread."""

    IDLE = 0  # output available, nothing to read
    BUSY = 1  # serving a record
    SOFT = 2  # between records, output not available
    HARD = 3  # within a record, waiting for a memory segment
    HELD = 4  # held by the control plane
    HALTED = 5  # failed, cancelled or finished (P1)


class Trait(IntFlag):
    """A trait of a marker."""

    NONE = 0
    PRIORITY = 1  # overtakes data, which is captured
    BLOCKING = 2  # blocks the sender's queue behind it until a resume
    ANNOUNCED = 4  # the receiver is notified when it arrives, the sender when the last one has left
    FINAL = 8  # closes the channel, which counts as arrived for all later numbers


class Marker(NamedTuple):
    """A marker in the byte stream of a channel."""

    number: int  # > 0
    traits: Trait = Trait.NONE
    series: int = BARRIERS


class NoticeKind(IntEnum):
    """The kind of a notice."""

    QUIET = 0  # `until` is reached
    ARRIVED = 1  # first and / or last marker of a number processed on a gate
    ANNOUNCED = 2  # an announced marker is in a receive queue
    SAFE = 3  # an interrupted task is between records
    LEFT = 4  # all announced markers of a number have left the task's output queues
    EXHAUSTED = 5  # a bounded source has served its last record
    RECOVERED = 6  # a restarted task has read all of its recovered input (P7)
    NONE_LATE = 7  # a task that waited for late outputs has written the last one (L6)
    WRITTEN = 8  # a task has written the released outputs (L9)


class Notice(NamedTuple):
    """An event that the control plane must handle.  Fields that do not apply are -1 or False."""

    time: int  # ns
    kind: NoticeKind
    task: int = -1
    gate: int = -1  # position among the task's gates
    series: int = -1
    number: int = -1
    channel: int = -1  # the channel of the marker that caused it
    first: bool = False
    last: bool = False


class Position(NamedTuple):
    """The position of a task in its streams (P2).  Arrays are int64 copies, one entry per channel."""

    served: int  # records served; also the index of random draws
    consumed: np.ndarray  # bytes up to the end of the last record whose service began
    records_read: np.ndarray  # records read from the channel
    captured: np.ndarray  # bytes captured by the receiver, after `consumed`
    written: np.ndarray  # bytes written
    records_written: np.ndarray  # records written to the channel
    overtaken: np.ndarray  # bytes captured in the sender's queue; they end at `written`
    late: int = 0  # number of latest records served whose outputs are not written yet (L5)


# ---- Validation of positions to start tasks at (P3, P5): both ends of each channel, and no more in flight than written.

ChannelPlaces = slice | np.ndarray[Any, Any]
"""Indices of channels.  Usually they are equidistant and form a slice, which NumPy reads twice as fast."""


@cache
def nothing(channels: int) -> np.ndarray[Any, Any]:
    """Return a shared, read-only column of zeros."""
    column = np.zeros(channels, np.int64)
    column.flags.writeable = False
    return column


def is_bare(position: Position) -> bool:
    """Return whether the position is known to have no captured data (without summing the columns)."""
    captured, overtaken = position.captured, position.overtaken
    return captured is nothing(len(captured)) and overtaken is nothing(len(overtaken))


def bytes_in_flight(position: Position) -> int:
    """Return the captured bytes, on both sides."""
    return 0 if is_bare(position) else int(position.captured.sum() + position.overtaken.sum())


def channels_in(plan: Layout, task: int) -> list[int]:
    """Return the input channels of a task, in the order of its position."""
    return [c for g in plan.task_gates[task] for c in plan.gates[g][2]]


def channels_out(plan: Layout, task: int) -> list[int]:
    """Return the output channels of a task, in the order of its position."""
    return [c for p in plan.task_partitions[task] for c in plan.partitions[p][2]]


def places(channels: Sequence[int]) -> ChannelPlaces:
    """Return the indices of channels in a column."""
    if len(channels) < 2:
        return slice(channels[0], channels[0] + 1) if channels else slice(0)
    evenly = range(channels[0], channels[-1] + 1, max(channels[1] - channels[0], 1))
    return (
        slice(evenly.start, evenly.stop, evenly.step)
        if list(evenly) == list(channels)
        else np.array(channels, np.int32)
    )


def require_closed(plan: Layout, positions: Mapping[int, Position]) -> None:
    """Raise ValueError unless tasks can be started at these positions."""
    left: dict[int, int] = {}  # channel -> bytes written and not overtaken
    for t, position in positions.items():
        outputs, inputs = channels_out(plan, t), channels_in(plan, t)
        lengths = [len(column) for column in position[1:7]]
        expected = [len(inputs)] * 3 + [len(outputs)] * 3
        if lengths != expected:
            raise ValueError(f"start of task {t}: its position has columns of {lengths} channels, the task {expected}")
        if not 0 <= position.late <= position.served or any(column.min(initial=0) < 0 for column in position[1:7]):
            raise ValueError(
                f"start of task {t}: nothing in a position is below 0, nor more late than served, {position}"
            )
        missing = {plan.reader[c] for c in outputs} | {plan.writer[c] for c in inputs}
        missing -= positions.keys()
        if missing:
            raise ValueError(
                f"start of task {t}: tasks {sorted(missing)} at the other end of its channels are not started with it"
            )
        left |= dict(zip(outputs, (position.written - position.overtaken).tolist(), strict=True))
    for t, position in positions.items():
        for c, captured in zip(channels_in(plan, t), position.captured.tolist(), strict=True):
            if captured > left[c]:
                raise ValueError(
                    f"start of channel {c}: more is in flight than was written, by {captured - left[c]} bytes"
                )

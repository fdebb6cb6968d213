"""Whether tasks can be started at positions (P3, P5): closed under channels, one entry per channel, no more in flight than written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from sim.plane.seam.interface import Position
from sim.plane.seam.layout import Layout

ChannelPlaces = slice | np.ndarray[Any, Any]
"""A slice if the channels are equally far apart, as most tasks' are: NumPy reads it in half of the time."""


@cache
def nothing(channels: int) -> np.ndarray[Any, Any]:
    """No bytes in so many channels; all callers share one column, which is never written to."""
    column = np.zeros(channels, np.int64)
    column.flags.writeable = False
    return column


def is_bare(position: Position) -> bool:
    """Whether nothing was captured on either side, as it is known without adding up."""
    captured, overtaken = position.captured, position.overtaken
    return captured is nothing(len(captured)) and overtaken is nothing(len(overtaken))


def bytes_in_flight(position: Position) -> int:
    """What was captured, on both sides."""
    return 0 if is_bare(position) else int(position.captured.sum() + position.overtaken.sum())


def channels_in(plan: Layout, task: int) -> list[int]:
    """The channels of all gates of a task, in the order of a position."""
    return [c for g in plan.task_gates[task] for c in plan.gates[g][2]]


def channels_out(plan: Layout, task: int) -> list[int]:
    """The channels of all partitions of a task, in the order of a position."""
    return [c for p in plan.task_partitions[task] for c in plan.partitions[p][2]]


def places(channels: Sequence[int]) -> ChannelPlaces:
    """The places of channels in a column."""
    if len(channels) < 2:
        return slice(channels[0], channels[0] + 1) if channels else slice(0)
    evenly = range(channels[0], channels[-1] + 1, max(channels[1] - channels[0], 1))
    return slice(evenly.start, evenly.stop, evenly.step) if list(evenly) == list(channels) else np.array(channels, np.int32)


def require_closed(plan: Layout, positions: Mapping[int, Position]) -> None:
    """Raise ValueError with what is wrong."""
    left: dict[int, int] = {}  # by channel: what the writer has not overtaken
    for t, position in positions.items():
        outputs, inputs = channels_out(plan, t), channels_in(plan, t)
        lengths = [len(column) for column in position[1:7]]
        expected = [len(inputs)] * 3 + [len(outputs)] * 3
        if lengths != expected:
            raise ValueError(f"start of task {t}: its position has columns of {lengths} channels, the task {expected}")
        if not 0 <= position.late <= position.served or any(column.min(initial=0) < 0 for column in position[1:7]):
            raise ValueError(f"start of task {t}: nothing in a position is below 0, nor more late than served, {position}")
        missing = {plan.reader[c] for c in outputs} | {plan.writer[c] for c in inputs}
        missing -= positions.keys()
        if missing:
            raise ValueError(f"start of task {t}: tasks {sorted(missing)} at the other end of its channels are not started with it")
        left |= dict(zip(outputs, (position.written - position.overtaken).tolist(), strict=True))
    for t, position in positions.items():
        for c, captured in zip(channels_in(plan, t), position.captured.tolist(), strict=True):
            if captured > left[c]:
                raise ValueError(f"start of channel {c}: more is in flight than was written, by {captured - left[c]} bytes")

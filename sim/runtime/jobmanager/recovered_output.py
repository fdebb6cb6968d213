"""Captured output that is recovered by those who read it (`execution.checkpointing.unaligned.recover-output-on-downstream.enabled`).

Flink: SequentialChannelStateReaderImpl#readInputData, second pass.  The bytes are the same; they are read at the other end, and the writer
has nothing to send again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sim.plane.seam.layout import Layout
from sim.plane.seam.positions import channels_in, channels_out
from sim.runtime.contents import TaskSnapshot


def on_downstream(parts: Mapping[int, TaskSnapshot], layout: Layout) -> dict[int, TaskSnapshot]:
    """Both ends of each channel are among the tasks, those of a snapshot that was dealt out anew too."""
    overtaken, inlined = np.zeros((2, len(layout.writer)), np.int64)
    for task, part in parts.items():
        outputs = channels_out(layout, task)
        overtaken[outputs] = part.position.overtaken
        if part.inlined_bytes:
            inlined[outputs] = part.position.overtaken
    return {task: _moved(part, overtaken[channels_in(layout, task)], inlined[channels_in(layout, task)]) for task, part in parts.items()}


def _moved(part: TaskSnapshot, taken_over: np.ndarray, inlined: np.ndarray) -> TaskSnapshot:
    position = part.position
    captured = position.captured + taken_over
    here = position._replace(captured=captured, overtaken=np.zeros_like(position.overtaken))
    if part.read_bytes is not None:
        given_bytes, taken_bytes = int(position.overtaken.sum()), int(taken_over.sum())
        read_bytes = max(0, part.read_bytes - given_bytes) + taken_bytes
        kept_bytes = max(0, part.inlined_bytes - given_bytes) + int(inlined.sum())
        return replace(part, position=here, read_bytes=read_bytes, inlined_bytes=min(kept_bytes, read_bytes))
    own_bytes = int(position.captured.sum()) if part.inlined_bytes else 0
    return replace(part, position=here, inlined_bytes=own_bytes + int(inlined.sum()))

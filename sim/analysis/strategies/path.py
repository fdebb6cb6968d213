"""The time of a checkpoint, split along its critical path (table `path`): what each kind of wait takes, and where most of it passes.

All values are medians over checkpoints [ms], so they sum to the median duration only nearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

PARTS: dict[str, str] = {
    "trigger": "messages",
    "task thread": "queue",
    "behind data": "queue",
    "end of input": "queue",
    "until the timeout": "timeout",
    "alignment": "alignment",
    "file before barrier": "pre_barrier",
    "work before barrier": "pre_barrier",
    "sync": "sync",
    "async queue": "async_queue",
    "async work": "async_work",
    "upload": "upload",
    "own output": "channel_state",
    "channel state": "channel_state",
    "acknowledgement": "messages",
}
"""Part of the table -> kind of wait.  Parts after the last acknowledgement belong to no duration."""
_ASYNC = ["async_queue", "async_work", "upload", "channel_state"]


@dataclass(frozen=True, slots=True)
class BarrierPath:
    """The parts of an end-to-end duration [ms].  NaN: not measured."""

    queue_ms: Annotated[float, "behind data, or for a task thread that must take the trigger"]
    queue_vertex: Annotated[str, "the vertex in front of which most of it passes; a source: before its task thread answers"]
    queue_vertex_ms: Annotated[float, "what passes there"]
    queue_at_source: Annotated[bool, "whether most of it is waiting for the task thread of a source"]
    timeout_ms: Annotated[float, "behind data until the alignment timeout lets barriers overtake"]
    timeout_vertex: Annotated[str, "the vertex in front of which most of it passes"]
    alignment_ms: Annotated[float, "from first to last barrier"]
    alignment_vertex: Annotated[str, "the vertex where most of it passes"]
    alignment_vertex_ms: Annotated[float, "what passes there"]
    pre_barrier_ms: Annotated[float, "work and files of operators before they forward the barrier"]
    sync_ms: Annotated[float, "synchronous parts"]
    async_ms: Annotated[float, "asynchronous parts: the next four"]
    async_queue_ms: Annotated[float, "waiting for the asynchronous thread, at work for an older checkpoint"]
    async_work_ms: Annotated[float, "asynchronous work beside files"]
    upload_ms: Annotated[float, "writing files of state"]
    channel_state_ms: Annotated[float, "writing in-flight data, once it is complete"]
    async_vertex: Annotated[str, "the vertex where most of the asynchronous part passes"]
    messages_ms: Annotated[float, "trigger and acknowledgement on their way"]


NOWHERE = BarrierPath(
    queue_ms=np.nan, queue_vertex="", queue_vertex_ms=np.nan, queue_at_source=False, timeout_ms=np.nan, timeout_vertex="",
    alignment_ms=np.nan, alignment_vertex="", alignment_vertex_ms=np.nan, pre_barrier_ms=np.nan, sync_ms=np.nan, async_ms=np.nan,
    async_queue_ms=np.nan, async_work_ms=np.nan, upload_ms=np.nan, channel_state_ms=np.nan, async_vertex="", messages_ms=np.nan,
)  # fmt: skip


def path(rows: pd.DataFrame) -> BarrierPath:
    """The medians, from the rows of completed checkpoints."""
    rows = rows[~rows["acknowledged"].astype(bool)]
    if rows.empty:
        return NOWHERE
    parts = _Parts(rows)
    queue_vertex, queue_vertex_ms = parts.place("queue")
    alignment_vertex, alignment_vertex_ms = parts.place("alignment")
    return BarrierPath(
        queue_ms=parts.median_ms("queue"),
        queue_vertex=queue_vertex,
        queue_vertex_ms=queue_vertex_ms,
        queue_at_source=parts.longest_part("queue", queue_vertex) == "task thread",
        timeout_ms=parts.median_ms("timeout"),
        timeout_vertex=parts.place("timeout")[0],
        alignment_ms=parts.median_ms("alignment"),
        alignment_vertex=alignment_vertex,
        alignment_vertex_ms=alignment_vertex_ms,
        pre_barrier_ms=parts.median_ms("pre_barrier"),
        sync_ms=parts.median_ms("sync"),
        async_ms=parts.median_ms(*_ASYNC),
        async_queue_ms=parts.median_ms("async_queue"),
        async_work_ms=parts.median_ms("async_work"),
        upload_ms=parts.median_ms("upload"),
        channel_state_ms=parts.median_ms("channel_state"),
        async_vertex=parts.place(*_ASYNC)[0],
        messages_ms=parts.median_ms("messages"),
    )


class _Parts:
    """Parts of critical paths as arrays: tables of pandas take ten times as long for the few rows of a run."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.part, self.vertex = rows["part"].to_numpy(), rows["vertex"].to_numpy()
        self.kind = np.array([PARTS[part] for part in self.part])
        self.ns = rows["duration"].to_numpy()
        numbers, self.checkpoint = np.unique(rows["id"].to_numpy(), return_inverse=True)
        self.checkpoints = len(numbers)

    def median_ms(self, *kinds: str) -> float:
        """The median over all checkpoints of what each spends so; most may spend nothing."""
        return self._median_ms(np.isin(self.kind, kinds))

    def place(self, *kinds: str) -> tuple[str, float]:
        """The vertex where most of it passes, over all checkpoints, of equals the first in the table; and the median there."""
        chosen = np.isin(self.kind, kinds)
        vertex = self._longest(self.vertex, chosen)
        return vertex, self._median_ms(chosen & (self.vertex == vertex))

    def longest_part(self, kind: str, vertex: str) -> str:
        """What takes most of the time of this kind there, of equals the first in the alphabet; empty: nothing does."""
        return self._longest(self.part, (self.kind == kind) & (self.vertex == vertex), sort=True)

    def _longest(self, names: np.ndarray, chosen: np.ndarray, *, sort: bool = False) -> str:
        codes, found = pd.factorize(names[chosen], sort=sort)
        return str(found[np.bincount(codes, self.ns[chosen]).argmax()]) if len(found) else ""

    def _median_ms(self, chosen: np.ndarray) -> float:
        return float(np.median(_sums(self.ns[chosen] / 1e6, self.checkpoint[chosen], self.checkpoints)))


def _sums(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """The sum of each group with the rounding errors of its additions made good (Kahan)."""
    sums, errors = np.zeros(count), np.zeros(count)
    order = np.argsort(groups, kind="stable")
    values, groups = values[order], groups[order]
    position = np.arange(len(groups)) - np.searchsorted(groups, groups)
    for i in range(position.max(initial=-1) + 1):  # the i-th value of each group that has so many
        here, value = groups[position == i], values[position == i]
        term = value - errors[here]
        total = sums[here] + term
        errors[here] = total - sums[here] - term
        sums[here] = total
    return sums

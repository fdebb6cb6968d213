"""The time of a checkpoint, split along its critical path (table `path`): what each kind of wait takes, and where most of it passes.

All values are medians over checkpoints [ms], so they sum to the median duration only nearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

__all__ = ["NOWHERE", "PARTS", "BarrierPath", "path"]

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
    """The parts of an end-to-end duration [ms]; NaN: not measured."""

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
    rows = rows.assign(kind=rows["part"].map(PARTS), ms=rows["duration"] / 1e6)
    checkpoints = rows["id"].unique()
    medians = _medians(rows, ["kind"], checkpoints)
    waits = rows[rows["kind"] == "queue"]
    queue_vertex, queue_vertex_ms = _place(waits, checkpoints)
    alignment_vertex, alignment_vertex_ms = _place(rows[rows["kind"] == "alignment"], checkpoints)
    asynchronous = rows[rows["kind"].isin(_ASYNC)]
    there = waits[waits["vertex"] == queue_vertex].groupby("part")["ms"].sum()
    return BarrierPath(
        queue_ms=_of(medians, "queue"),
        queue_vertex=queue_vertex,
        queue_vertex_ms=queue_vertex_ms,
        queue_at_source=len(there) > 0 and there.idxmax() == "task thread",
        timeout_ms=_of(medians, "timeout"),
        timeout_vertex=_place(rows[rows["kind"] == "timeout"], checkpoints)[0],
        alignment_ms=_of(medians, "alignment"),
        alignment_vertex=alignment_vertex,
        alignment_vertex_ms=alignment_vertex_ms,
        pre_barrier_ms=_of(medians, "pre_barrier"),
        sync_ms=_of(medians, "sync"),
        async_ms=float(_medians(asynchronous.assign(kind="async"), ["kind"], checkpoints).sum()),
        async_queue_ms=_of(medians, "async_queue"),
        async_work_ms=_of(medians, "async_work"),
        upload_ms=_of(medians, "upload"),
        channel_state_ms=_of(medians, "channel_state"),
        async_vertex=_place(asynchronous, checkpoints)[0],
        messages_ms=_of(medians, "messages"),
    )


def _medians(rows: pd.DataFrame, keys: list[str], checkpoints: np.ndarray) -> pd.Series[float]:
    """By key: the median over all checkpoints of what each spends so; most may spend nothing."""
    spent = rows.groupby(["id", *keys])["ms"].sum().unstack(keys, fill_value=0)  # noqa: PD010 - a pivot drops empty ones
    return spent.reindex(checkpoints, fill_value=0.0).median()


def _place(rows: pd.DataFrame, checkpoints: np.ndarray) -> tuple[str, float]:
    """The vertex where most of it passes, over all checkpoints, and the median there."""
    if rows.empty:
        return "", 0.0
    vertex = str(rows.groupby("vertex", sort=False)["ms"].sum().idxmax())
    return vertex, float(_medians(rows[rows["vertex"] == vertex], ["vertex"], checkpoints).iloc[0])


def _of(medians: pd.Series[float], kind: str) -> float:
    return float(medians.get(kind, 0.0))

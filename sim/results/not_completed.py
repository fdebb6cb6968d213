"""Checkpoints that did not complete, and what was on the path of those that did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sim.results.columns import columns_of, compute_columns, result_column
from sim.results.consequences import first_uploads, is_periodic
from sim.results.estimates import is_noise
from sim.results.formats import ms_text
from sim.results.rates import Tables
from sim.results.tables import EXPIRED

# ---- The time of a checkpoint, split along its critical path (table `path`): what each kind of wait takes, and where most of it passes.
#
# All values are medians over checkpoints [ms], so they sum to the median duration only nearly.

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


def _pre_barrier_text(line: Any) -> str:
    ms = line.summary.path.pre_barrier_ms
    return "0 ms" if ms < 0.5 else ms_text(ms)


@dataclass(frozen=True, slots=True)
class BarrierPath:
    """The parts of an end-to-end duration [ms].  NaN: not measured."""

    queue_ms: float = result_column(
        "behind data, or for a task thread that must take the trigger",
        None,
        lambda parts: parts.median_ms("queue"),
    )
    queue_vertex: str = result_column(
        "the vertex in front of which most of it passes; a source: before its task thread answers",
        None,
        lambda parts: parts.place("queue")[0],
    )
    queue_vertex_ms: float = result_column("what passes there", None, lambda parts: parts.place("queue")[1])
    queue_at_source: bool = result_column(
        "whether most of it is waiting for the task thread of a source",
        None,
        lambda parts: parts.longest_part("queue", parts.place("queue")[0]) == "task thread",
        worse="neither",
    )
    timeout_ms: float = result_column(
        "behind data until the alignment timeout lets barriers overtake",
        None,
        lambda parts: parts.median_ms("timeout"),
    )
    timeout_vertex: str = result_column(
        "the vertex in front of which most of it passes", None, lambda parts: parts.place("timeout")[0]
    )
    alignment_ms: float = result_column("from first to last barrier", None, lambda parts: parts.median_ms("alignment"))
    alignment_vertex: str = result_column(
        "the vertex where most of it passes", None, lambda parts: parts.place("alignment")[0]
    )
    alignment_vertex_ms: float = result_column("what passes there", None, lambda parts: parts.place("alignment")[1])
    pre_barrier_ms: float = result_column(
        "work and files of operators before they forward the barrier",
        None,
        lambda parts: parts.median_ms("pre_barrier"),
        title="work before the barrier, median",
        heading="pre-barrier",
        after="alignment_ms",
        is_optional=True,
        cell=_pre_barrier_text,
    )
    sync_ms: float = result_column("synchronous parts", None, lambda parts: parts.median_ms("sync"))
    async_ms: float = result_column("asynchronous parts: the next four", None, lambda parts: parts.median_ms(*_ASYNC))
    async_queue_ms: float = result_column(
        "waiting for the asynchronous thread, at work for an older checkpoint",
        None,
        lambda parts: parts.median_ms("async_queue"),
    )
    async_work_ms: float = result_column(
        "asynchronous work beside files", None, lambda parts: parts.median_ms("async_work")
    )
    upload_ms: float = result_column("writing files of state", None, lambda parts: parts.median_ms("upload"))
    channel_state_ms: float = result_column(
        "writing in-flight data, once it is complete", None, lambda parts: parts.median_ms("channel_state")
    )
    async_vertex: str = result_column(
        "the vertex where most of the asynchronous part passes", None, lambda parts: parts.place(*_ASYNC)[0]
    )
    messages_ms: float = result_column(
        "trigger and acknowledgement on their way", None, lambda parts: parts.median_ms("messages")
    )


NOWHERE = BarrierPath(
    **dict[str, Any](
        (name, {float: np.nan, str: "", bool: False}[own.type]) for name, own in columns_of(BarrierPath).items()
    )
)


def path(rows: pd.DataFrame) -> BarrierPath:
    """The medians, from the rows of completed checkpoints."""
    rows = rows[~rows["acknowledged"].astype(bool)]
    if rows.empty:
        return NOWHERE
    return BarrierPath(**compute_columns(BarrierPath, _Parts(rows))[0])


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


# ---- Checkpoints that did not complete, apart from those that did: what is known of them are bounds.
#
# They are a row of their own below their strategy.  Mixed in, the parts that they never reached would look quick; left
# out, a strategy whose slow checkpoints expire would.

INTERRUPTIONS = (
    "CHECKPOINT_COORDINATOR_SUSPEND",
    "CHECKPOINT_COORDINATOR_SHUTDOWN",
    "JOB_FAILOVER_REGION",
    "CHECKPOINT_DECLINED_TASK_CLOSING",
)
"""Reasons (CheckpointFailureReason) of checkpoints that were pending when the job restarted or ended."""


_COLUMN = {
    "queue": "start delay",
    "timeout": "start delay",
    "alignment": "alignment",
    "pre_barrier": "pre-barrier",
    "sync": "sync",
    "async_queue": "async",
    "async_work": "async",
    "upload": "async",
    "channel_state": "async",
}
"""Kind of wait on a path -> the column of a terminal that it counts in."""


@dataclass(frozen=True, slots=True)
class NotCompleted:
    """The checkpoints of one fate that did not complete: each would have taken longer than it was seen to take."""

    fate: str  # expired, failed, interrupted, under way at the end
    count: int
    median_ms: float  # a bound: they took longer
    longest_ms: float  # likewise
    # column -> median over their critical paths, up to the moment they were given up; empty: not recorded
    parts_ms: dict[str, float]
    cut_off: str  # the column in which most of them were given up: its median is a bound

    @property
    def row(self) -> dict[str, Any]:
        """For machines."""
        parts = {f"{name.replace(' ', '_').replace('-', '_')}_ms": value for name, value in self.parts_ms.items()}
        return {
            "fate": self.fate,
            "count": self.count,
            "more_than_p50_ms": self.median_ms,
            "more_than_max_ms": self.longest_ms,
            **parts,
            "cut_off": self.cut_off,
        }


def not_completed(
    runs: Sequence[Tables], ends_ms: Sequence[float], *, warmup_s: float = 0.0
) -> tuple[NotCompleted, ...]:
    """Checkpoints that expired or failed, and those cut off by an end that had taken notably longer than the median of completed ones.

    `ends_ms`: the end of each run.  An end cuts off any checkpoint: of one that has not taken long it says nothing.
    Subtasks report when they acknowledge, so the parts are those of critical paths, which are made of the journal.
    """
    found: dict[str, list[tuple[float, pd.DataFrame]]] = {}
    completed: list[float] = []
    for run, end_ms in zip(runs, ends_ms, strict=True):
        rows = run["checkpoints"]
        rows = rows[(rows["trigger_timestamp"] >= warmup_s * 1e3).to_numpy() & ~first_uploads(rows)]
        completed += rows.loc[
            (rows["status"] == "COMPLETED").to_numpy() & is_periodic(rows), "end_to_end_duration"
        ].tolist()
        for fate, lasted_ms, way in _rows(rows, run["path"], end_ms):
            found.setdefault(fate, []).append((lasted_ms, way))
    usual_ms = float(np.median(completed)) if completed else 0.0
    return tuple(
        _of(fate, late)
        for fate, own in found.items()
        if (
            late := own
            if fate.removeprefix("savepoint ") in ("expired", "failed")
            else [pair for pair in own if not is_noise(pair[0], usual_ms)]
        )
    )


def _rows(rows: pd.DataFrame, paths: pd.DataFrame, end_ms: float) -> Iterator[tuple[str, float, pd.DataFrame]]:
    """(fate, how long it took until then [ms], the parts of its path)."""
    for row in rows[rows["status"] != "COMPLETED"].to_dict("records"):
        kind = "savepoint " if row["savepointFormat"] else ""
        if row["status"] == "IN_PROGRESS":
            fate, lasted_ms = "under way at the end", end_ms - row["trigger_timestamp"]
        else:
            message, lasted_ms = row["failure_message"], row["end_to_end_duration"]
            fate = "expired" if message == EXPIRED else "interrupted" if message in INTERRUPTIONS else "failed"
        way = paths[paths["id"] == row["id"]]
        yield kind + fate, lasted_ms, way[way["x_job"] == row["x_job"]] if "x_job" in row else way


def _of(fate: str, checkpoints: Sequence[tuple[float, pd.DataFrame]]) -> NotCompleted:
    lasted = np.array([lasted_ms for lasted_ms, _ in checkpoints])
    parts: list[dict[str, float]] = []
    last: Counter[str] = Counter()
    for _, way in checkpoints:
        columns = [_COLUMN.get(PARTS.get(part, ""), "") for part in way["part"]]
        spent: dict[str, float] = {}
        for column, ns in zip(columns, way["duration"], strict=True):
            spent[column] = spent.get(column, 0.0) + ns / 1e6
        parts += [spent] if columns else []
        last.update(columns[-1:])
    names = dict.fromkeys(_COLUMN.values()) if parts else ()
    medians = {column: float(np.median([spent.get(column, 0.0) for spent in parts])) for column in names}
    cut_off = max(last, key=lambda column: last[column], default="")
    return NotCompleted(fate, len(lasted), float(np.median(lasted)), float(lasted.max()), medians, cut_off)

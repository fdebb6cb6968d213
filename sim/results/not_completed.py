"""Split the duration of checkpoints by kind of wait (`path`), and summarize those that did not complete (`not_completed`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sim.model.frozen import frozen
from sim.results.columns import ResultColumn, columns_of, compute_columns, result_column
from sim.results.estimates import is_noise
from sim.results.formats import MISSING, ms_text
from sim.results.rates import Tables
from sim.results.tables import EXPIRED, first_uploads, is_periodic, job_of

# ---- The duration of checkpoints, split by kind of wait on their critical paths (table `path`).
#
# All values are medians over checkpoints [ms]. Their sum is only approximately the median duration.

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
"""Part in the table `path` -> kind of wait.  It has no parts after the last acknowledgement."""
_ASYNC = ["async_queue", "async_work", "upload", "channel_state"]


def _wait_column(meaning: str, *kinds: str, **options: Any) -> Any:
    """Return a dataclass field for the time that checkpoints spend on these kinds of wait [ms], median over checkpoints."""
    return result_column(meaning, None, lambda parts: parts.median_ms(*kinds), **options)


def _vertex_column(meaning: str, *kinds: str) -> Any:
    """Return a dataclass field for the vertex where checkpoints spend most of their time on these kinds of wait."""
    return result_column(meaning, None, lambda parts: parts.place(*kinds)[0])


def _vertex_wait_column(kind: str) -> Any:
    """Return a dataclass field for the time spent on this kind of wait at the vertex of `_vertex_column` [ms], median over checkpoints."""
    return result_column("the time spent there", None, lambda parts: parts.place(kind)[1])


@frozen
class BarrierPath:
    """The median end-to-end duration of checkpoints, split by kind of wait [ms].

    Times are NaN and vertices "" if no critical path was recorded.
    """

    queue_ms: float = _wait_column("behind data, or for the task thread of a source that handles the trigger", "queue")
    queue_vertex: str = _vertex_column(
        "the vertex in front of which most of that time is spent; a source: waiting for its task thread", "queue"
    )
    queue_vertex_ms: float = _vertex_wait_column("queue")
    queue_at_source: bool = result_column(
        "whether most of it is waiting for the task thread of a source",
        None,
        lambda parts: parts.longest_part("queue", parts.place("queue")[0]) == "task thread",
        worse="neither",
    )
    timeout_ms: float = _wait_column("behind data until the alignment timeout lets barriers overtake", "timeout")
    timeout_vertex: str = _vertex_column("the vertex in front of which most of that time is spent", "timeout")
    alignment_ms: float = _wait_column("from first to last barrier", "alignment")
    alignment_vertex: str = _vertex_column("the vertex where most of that time is spent", "alignment")
    alignment_vertex_ms: float = _vertex_wait_column("alignment")
    pre_barrier_ms: float = _wait_column(
        "work and files of operators before they forward the barrier",
        "pre_barrier",
        title="work before the barrier, median",
        heading="pre-barrier",
        after="alignment_ms",
        is_optional=True,
        cell=lambda line: "0 ms" if (ms := line.summary.path.pre_barrier_ms) < 0.5 else ms_text(ms),
    )
    sync_ms: float = _wait_column("synchronous parts", "sync")
    async_ms: float = _wait_column("asynchronous parts: the next four", *_ASYNC)
    async_queue_ms: float = _wait_column(
        "waiting for the asynchronous thread, which is busy with an older checkpoint", "async_queue"
    )
    async_work_ms: float = _wait_column("asynchronous work except uploads", "async_work")
    upload_ms: float = _wait_column("writing files of state", "upload")
    channel_state_ms: float = _wait_column("writing in-flight data, once it is complete", "channel_state")
    async_vertex: str = _vertex_column("the vertex where most of the asynchronous time is spent", *_ASYNC)
    messages_ms: float = _wait_column("trigger and acknowledgement in transit", "messages")


NOWHERE = BarrierPath(
    **dict[str, Any](
        (name, {float: np.nan, str: "", bool: False}[own.type]) for name, own in columns_of(BarrierPath).items()
    )
)


def path(rows: pd.DataFrame) -> BarrierPath:
    """Return the time that checkpoints spend on each kind of wait, as medians over checkpoints.

    Parts after the last acknowledgement (column `acknowledged`) are ignored, because they do not belong to the end-to-end duration.
    Returns `NOWHERE` if no part is left.  `rows`: rows of these checkpoints in the table `path`.
    """
    rows = rows[~rows["acknowledged"].astype(bool)]
    if rows.empty:
        return NOWHERE
    return BarrierPath(**compute_columns(BarrierPath, _Parts(rows))[0])


class _Parts:
    """The parts of critical paths as numpy arrays: for the few rows of a run they are ten times as fast as pandas."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.part, self.vertex = rows["part"].to_numpy(), rows["vertex"].to_numpy()
        self.kind = np.array([PARTS[part] for part in self.part])
        self.ns = rows["duration"].to_numpy()
        numbers, self.checkpoint = np.unique(rows["id"].to_numpy(), return_inverse=True)
        self.checkpoints = len(numbers)

    def median_ms(self, *kinds: str) -> float:
        """Return the time spent on these kinds of wait [ms], median over all checkpoints, including those without it."""
        return self._median_ms(np.isin(self.kind, kinds))

    def place(self, *kinds: str) -> tuple[str, float]:
        """Return (vertex with most of the time of these kinds over all checkpoints, median time there [ms])."""
        chosen = np.isin(self.kind, kinds)
        vertex = self._longest(self.vertex, chosen)
        return vertex, self._median_ms(chosen & (self.vertex == vertex))

    def longest_part(self, kind: str, vertex: str) -> str:
        """Return the part in which most of the time of this kind is spent at a vertex, or "" if there is none."""
        return self._longest(self.part, (self.kind == kind) & (self.vertex == vertex), sort=True)

    def _longest(self, names: np.ndarray, chosen: np.ndarray, *, sort: bool = False) -> str:
        """Return the name with the largest total time in the chosen parts, or "" if none is chosen.

        Of several names with the same time, the first one in the table is returned; with `sort`, the first one in alphabetical order.
        """
        codes, found = pd.factorize(names[chosen], sort=sort)
        return str(found[np.bincount(codes, self.ns[chosen]).argmax()]) if len(found) else ""

    def _median_ms(self, chosen: np.ndarray) -> float:
        """Return the time that a checkpoint spends on the chosen parts [ms], median over all checkpoints."""
        # sums of whole ns are exact, so they do not depend on the order of the parts
        return float(np.median(np.bincount(self.checkpoint[chosen], self.ns[chosen], self.checkpoints)) / 1e6)


# ---- Checkpoints that did not complete. Their durations are lower bounds.
#
# They have separate rows below the row of their strategy. If they were pooled with completed ones, phases that they never
# reached would look fast. If they were left out, a strategy whose slow checkpoints expire would look fast.

INTERRUPTIONS = (
    "CHECKPOINT_COORDINATOR_SUSPEND",
    "CHECKPOINT_COORDINATOR_SHUTDOWN",
    "JOB_FAILOVER_REGION",
    "CHECKPOINT_DECLINED_TASK_CLOSING",
)
"""Reasons (CheckpointFailureReason) of checkpoints that were pending when the job restarted or ended."""


COLUMN_OF = {
    "queue": "start delay",
    "timeout": "start delay",
    "alignment": "alignment",
    "pre_barrier": "pre-barrier",
    "sync": "sync",
    "async_queue": "async",
    "async_work": "async",
    "upload": "async",
    "channel_state": "async",
    "messages": "",
}
"""Kind of wait -> heading of the printed column that includes it, "" if there is none."""


@frozen
class NotCompleted:
    """The checkpoints of a strategy that did not complete for the same reason."""

    fate: str  # "expired", "failed", "interrupted" or "under way at the end"; for savepoints e.g. "savepoint expired"
    count: int
    median_ms: float  # duration, a lower bound
    longest_ms: float  # duration, a lower bound
    parts_ms: dict[str, float]  # heading of a column -> median time until the failure; {} if no paths were recorded
    cut_off: str  # heading of the phase that most of them were in when they ended; its median is a lower bound

    def text(self, column: ResultColumn) -> str:
        """Return the cell of a column in the row of these checkpoints.  Lower bounds start with ``>``."""
        if column.name == "completed":
            return "0"
        bounds = {"end_to_end_p50_ms": self.median_ms, "end_to_end_max_ms": self.longest_ms}
        ms = bounds.get(column.name, self.parts_ms.get(column.heading))
        is_bound = column.name in bounds or column.heading == self.cut_off
        return MISSING if ms is None else f"{'> ' * is_bound}{ms_text(ms)}"

    @property
    def row(self) -> dict[str, Any]:
        """Return the values for JSON and tables."""
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
    """Return the checkpoints that did not complete, grouped by fate.

    A restart or the end of the run interrupts any checkpoint that is in progress.  Such checkpoints count only if they had already
    taken longer than the median of completed ones, by more than noise.  The times of phases come from critical paths, because
    subtasks report their durations only when they acknowledge.

    `ends_ms`: end of each run.  `warmup_s`: checkpoints triggered before it are ignored.
    """
    by_fate: dict[str, list[tuple[float, pd.DataFrame]]] = {}
    completed: list[float] = []
    for run, end_ms in zip(runs, ends_ms, strict=True):
        rows = run["checkpoints"]
        rows = rows[(rows["trigger_timestamp"] >= warmup_s * 1e3).to_numpy() & ~first_uploads(rows)]
        completed += rows.loc[
            (rows["status"] == "COMPLETED").to_numpy() & is_periodic(rows), "end_to_end_duration"
        ].tolist()
        for fate, lasted_ms, path_rows in _rows_not_completed(rows, run["path"], end_ms):
            by_fate.setdefault(fate, []).append((lasted_ms, path_rows))
    typical_ms = float(np.median(completed)) if completed else 0.0
    return tuple(
        _summarize_fate(fate, counted)
        for fate, checkpoints in by_fate.items()
        if (
            # all expired and failed checkpoints count; of the others only those that were slow
            counted := checkpoints
            if fate.removeprefix("savepoint ") in ("expired", "failed")
            else [pair for pair in checkpoints if not is_noise(pair[0], typical_ms)]
        )
    )


def _rows_not_completed(
    rows: pd.DataFrame, paths: pd.DataFrame, end_ms: float
) -> Iterator[tuple[str, float, pd.DataFrame]]:
    """Yield (fate, duration until its end [ms], rows of its critical path) for each checkpoint that did not complete."""
    for row in rows[rows["status"] != "COMPLETED"].to_dict("records"):
        kind = "savepoint " if row["savepointFormat"] else ""
        if row["status"] == "IN_PROGRESS":
            fate, lasted_ms = "under way at the end", end_ms - row["trigger_timestamp"]
        else:
            message, lasted_ms = row["failure_message"], row["end_to_end_duration"]
            fate = "expired" if message == EXPIRED else "interrupted" if message in INTERRUPTIONS else "failed"
        path_rows = paths[(paths["id"] == row["id"]) & (job_of(paths) == row.get("x_job", 0))]
        yield kind + fate, lasted_ms, path_rows


def _summarize_fate(fate: str, checkpoints: Sequence[tuple[float, pd.DataFrame]]) -> NotCompleted:
    """Return the summary of checkpoints with the same fate.  `checkpoints`: (duration [ms], rows of the critical path)."""
    lasted = np.array([lasted_ms for lasted_ms, _ in checkpoints])
    paths = [
        rows.assign(column=[COLUMN_OF.get(PARTS.get(part, ""), "") for part in rows["part"]]) for _, rows in checkpoints
    ]
    paths = [rows for rows in paths if len(rows)]
    medians, last = dict[str, float](), Counter(rows["column"].iloc[-1] for rows in paths)
    if paths:
        spent = pd.DataFrame([rows.groupby("column")["duration"].sum() / 1e6 for rows in paths])
        columns = [column for column in dict.fromkeys(COLUMN_OF.values()) if column]
        medians = dict(zip(columns, spent.reindex(columns=columns).fillna(0.0).median().tolist(), strict=True))
    cut_off = last.most_common(1)[0][0] if last else ""
    return NotCompleted(fate, len(lasted), float(np.median(lasted)), float(lasted.max()), medians, cut_off)

"""Checkpoints that did not complete, apart from those that did: what is known of them are bounds.

They are a row of their own below their strategy.  Mixed in, the parts that they never reached would look quick; left out, a strategy whose
slow checkpoints expire would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads, is_periodic
from sim.analysis.strategies.noise import is_noise
from sim.analysis.strategies.path import PARTS
from sim.analysis.strategies.rates import Tables

INTERRUPTIONS = (
    "CHECKPOINT_COORDINATOR_SUSPEND", "CHECKPOINT_COORDINATOR_SHUTDOWN", "JOB_FAILOVER_REGION", "CHECKPOINT_DECLINED_TASK_CLOSING",
)  # fmt: skip
"""Reasons (CheckpointFailureReason) of checkpoints that were pending when the job restarted or ended."""
EXPIRED = "CHECKPOINT_EXPIRED"
"""Reason (likewise) of checkpoints that met their timeout."""


_COLUMN = {
    "queue": "start delay", "timeout": "start delay", "alignment": "alignment", "pre_barrier": "pre-barrier", "sync": "sync",
    "async_queue": "async", "async_work": "async", "upload": "async", "channel_state": "async",
}  # fmt: skip
"""Kind of wait on a path -> the column of a terminal that it counts in."""


@dataclass(frozen=True, slots=True)
class NotCompleted:
    """The checkpoints of one fate that did not complete: each would have taken longer than it was seen to take."""

    fate: str  # expired, failed, interrupted, under way at the end
    count: int
    median_ms: float  # a bound: they took longer
    longest_ms: float  # likewise
    parts_ms: dict[str, float]  # column -> median over their critical paths, up to the moment they were given up; empty: not recorded
    cut_off: str  # the column in which most of them were given up: its median is a bound

    @property
    def row(self) -> dict[str, Any]:
        """For machines."""
        parts = {f"{name.replace(' ', '_').replace('-', '_')}_ms": value for name, value in self.parts_ms.items()}
        return {
            "fate": self.fate, "count": self.count, "more_than_p50_ms": self.median_ms, "more_than_max_ms": self.longest_ms, **parts,
            "cut_off": self.cut_off,
        }  # fmt: skip


def not_completed(runs: Sequence[Tables], ends_ms: Sequence[float], *, warmup_s: float = 0.0) -> tuple[NotCompleted, ...]:
    """Checkpoints that expired or failed, and those cut off by an end that had taken notably longer than the median of completed ones.

    `ends_ms`: the end of each run.  An end cuts off any checkpoint: of one that has not taken long it says nothing.
    Subtasks report when they acknowledge, so the parts are those of critical paths, which are made of the journal.
    """
    found: dict[str, list[tuple[float, pd.DataFrame]]] = {}
    completed: list[float] = []
    for run, end_ms in zip(runs, ends_ms, strict=True):
        rows = run["checkpoints"]
        rows = rows[(rows["trigger_timestamp"] >= warmup_s * 1e3).to_numpy() & ~first_uploads(rows)]
        completed += rows.loc[(rows["status"] == "COMPLETED").to_numpy() & is_periodic(rows), "end_to_end_duration"].tolist()
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
            yield f"{kind}under way at the end", end_ms - row["trigger_timestamp"], paths.iloc[:0]
            continue
        way = paths[paths["id"] == row["id"]]
        message = row["failure_message"]
        fate = "expired" if message == EXPIRED else "interrupted" if message in INTERRUPTIONS else "failed"
        yield kind + fate, row["end_to_end_duration"], way[way["x_job"] == row["x_job"]] if "x_job" in row else way


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

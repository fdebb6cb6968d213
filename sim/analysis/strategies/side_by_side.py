"""Strategies side by side: a row each, as numbers for machines and as short texts for people.

A first upload is a row of its own, below its strategy.  A percentile stands there only with its sample (`sim.analysis.quantities`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sim.analysis.number_texts import NONE, bytes_text, change_text, ms_text, per_second_text, share_text
from sim.analysis.quantities import QUANTITIES, has_sample
from sim.analysis.strategies.single import Singles
from sim.analysis.strategies.summary import Summary
from sim.foreign import one_line

__all__ = ["FIRST_UPLOAD", "StrategyRow", "table", "texts"]

FIRST_UPLOAD = "{}: first upload"
"""Name of the row of first uploads, below that of their strategy."""
FALLS_SHORT = 0.015
"""Sources emit less than they are offered: by so large a share it is no noise."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A row of a comparison."""

    label: str
    axes: tuple[tuple[str, str], ...]  # (axis, value) of the scenario's variations
    group: str  # variation of the job: strategies of a group meet the same workload
    status: str  # RUNNING, FINISHED, or FAILED with its reason
    summary: Summary
    baseline_per_second: float = math.nan  # throughput of the same job without checkpoints
    failed: bool = False  # the job failed, not only checkpoints
    name: str = ""  # the label without the part that names the group
    steady: bool = True  # neither restarted nor ended, so the sinks served all arrivals once
    singles: Singles = Singles(None, None, None)  # the checkpoints that sentences speak of
    first: Summary | None = None  # of its first uploads alone; None: it has none
    sinks: tuple[str, ...] = ()  # the vertices whose throughput it is
    sources: tuple[str, ...] = ()

    @property
    def busiest(self) -> tuple[str, float]:
        """The bottleneck and its share of busy time; a subtask of it, if that is much busier than the others."""
        row = self.summary
        if row.busiest_subtask_share > row.busy_share + 0.1:
            return f"{row.bottleneck}[{row.busiest_subtask}]", row.busiest_subtask_share
        return row.bottleneck, row.busy_share

    @property
    def falls_short(self) -> bool:
        """Whether its sources emit less than they are offered."""
        row = self.summary
        return self.steady and row.emitted_per_second < (1 - FALLS_SHORT) * row.offered_per_second

    @property
    def throughput_change(self) -> float:
        """The change against no checkpoints, as a share."""
        if not self.baseline_per_second > 0:
            return math.nan
        return self.summary.throughput_per_second / self.baseline_per_second - 1


def table(strategies: Sequence[StrategyRow]) -> pd.DataFrame:
    """Every number, units in the column names.  NaN: a percentile of too few."""
    rows = [
        {"strategy": line.label, **dict(line.axes), "status": line.status, **_with_sample(line.summary)}
        | {"baseline_per_second": line.baseline_per_second, "throughput_change": line.throughput_change}
        for line in strategies
    ]
    return pd.DataFrame(rows)


def texts(strategies: Sequence[StrategyRow]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal.  Columns that say nothing of any strategy are left out."""
    rows: list[dict[str, str]] = []
    for line in strategies:
        rows.append(_texts(line))
        if line.first is not None:
            rows.append(_first_texts(line.label, line.first))
    header = list(rows[0]) if rows else ["strategy"]
    for column, without in _OPTIONAL.items():
        if all(row[column] in without for row in rows):
            header.remove(column)
    named = {"throughput": _of_vertices("throughput", [line.sinks for line in strategies]),
             "emitted": _of_vertices("emitted", [line.sources for line in strategies])}  # fmt: skip
    return [named.get(column, column) for column in header], [[row[column] for column in header] for row in rows]


_OPTIONAL = {"p90": {NONE}, "p99": {NONE}, "written": {NONE, "0 B"}, "pre-barrier": {NONE, "0 ms"}, "emitted": {NONE}}
"""Column -> cells that say nothing: most jobs do nothing before the barrier."""


def _texts(line: StrategyRow) -> dict[str, str]:
    row = line.summary
    completed = f"{row.completed}" + (f", {row.failed} failed" if row.failed else "") + (", job failed" if line.failed else "")
    waiting = NONE if not row.most_backpressured_share >= 0.005 else f"{row.most_backpressured} {share_text(row.most_backpressured_share)}"
    emitted = f"{per_second_text(row.emitted_per_second)} of {per_second_text(row.offered_per_second)}"
    return {
        "strategy": line.label,
        "completed (n)": completed,
        **_durations(row),
        "throughput": per_second_text(row.throughput_per_second),
        "emitted": emitted if line.falls_short else NONE,
        "vs none": change_text(line.throughput_change),
        "busiest": f"{line.busiest[0]} {share_text(line.busiest[1])}".strip(),
        "back-pressured": waiting,
    }


def _first_texts(label: str, row: Summary) -> dict[str, str]:
    """The row of first uploads; what is about all of the run stands in the row of the strategy."""
    blank = dict.fromkeys(("throughput", "emitted", "vs none", "busiest", "back-pressured"), NONE)
    return {"strategy": FIRST_UPLOAD.format(label), "completed (n)": str(row.completed), **_durations(row), **blank}


def _durations(row: Summary) -> dict[str, str]:
    values = _with_sample(row)
    percentiles = {QUANTITIES[column].heading: ms_text(values[column]) for column in values if column.startswith("end_to_end_")}
    pre_barrier = row.path.pre_barrier_ms
    slowest = {"alignment": row.alignment_ms, "sync": row.sync_ms, "async": row.async_ms}
    parts = {name: ms_text(ms) if row.completed else NONE for name, ms in slowest.items()}  # the slowest subtasks did not end before
    return {
        **percentiles,
        "written": bytes_text(row.checkpointed_bytes),
        "start delay": ms_text(row.start_delay_ms),
        "alignment": parts["alignment"],
        "pre-barrier": "0 ms" if pre_barrier < 0.5 else ms_text(pre_barrier),
        "sync": parts["sync"],
        "async": parts["async"],
        "in flight": bytes_text(row.persisted_bytes),
    }


def _with_sample(summary: Summary) -> dict[str, Any]:
    """The flat row, without percentiles of too few."""
    row = summary.row()
    return {column: value if has_sample(column, row) else math.nan for column, value in row.items()}


def _of_vertices(quantity: str, vertices: Sequence[tuple[str, ...]]) -> str:
    """``throughput (sink)``: of which vertices it is, if that is the same in all rows."""
    if len(set(vertices)) != 1 or not vertices[0]:
        return quantity
    names = vertices[0]
    return f"{quantity} ({one_line(names[0], 24) if len(names) == 1 else f'{len(names)} vertices'})"

"""Strategies side by side: a row each, as numbers for machines and as short texts for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from sim.analysis.number_texts import bytes_text, change_text, ms_text, per_second_text, share_text
from sim.analysis.strategies.summary import Summary

__all__ = ["StrategyRow", "table", "texts"]


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

    @property
    def busiest(self) -> tuple[str, float]:
        """The bottleneck and its share of busy time; a subtask of it, if that is much busier than the others."""
        row = self.summary
        if row.busiest_subtask_share > row.busy_share + 0.1:
            return f"{row.bottleneck}[{row.busiest_subtask}]", row.busiest_subtask_share
        return row.bottleneck, row.busy_share

    @property
    def throughput_change(self) -> float:
        """The change against no checkpoints, as a share."""
        if not self.baseline_per_second > 0:
            return math.nan
        return self.summary.throughput_per_second / self.baseline_per_second - 1


def table(strategies: Sequence[StrategyRow]) -> pd.DataFrame:
    """Every number, units in the column names."""
    rows = [
        {"strategy": line.label, **dict(line.axes), "status": line.status, **line.summary.row()}
        | {"baseline_per_second": line.baseline_per_second, "throughput_change": line.throughput_change}
        for line in strategies
    ]
    return pd.DataFrame(rows)


def texts(strategies: Sequence[StrategyRow]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal."""
    header = [
        "strategy", "completed (n)", "p50", "p99", "max", "start delay", "alignment", "pre-barrier", "sync", "async", "in flight",
        "throughput", "vs none", "busiest", "back-pressured",
    ]  # fmt: skip
    rows = [_texts(line) for line in strategies]
    if all(line.summary.path.pre_barrier_ms < 0.5 for line in strategies):  # most jobs do nothing before the barrier
        at = header.index("pre-barrier")
        header, rows = header[:at] + header[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]
    return header, rows


def _texts(line: StrategyRow) -> list[str]:
    row = line.summary
    completed = f"{row.completed}" + (f", {row.failed} failed" if row.failed else "") + (", job failed" if line.failed else "")
    durations = (
        row.end_to_end_p50_ms, row.end_to_end_p99_ms, row.end_to_end_max_ms,
        row.start_delay_ms, row.alignment_ms, row.path.pre_barrier_ms, row.sync_ms, row.async_ms,
    )  # fmt: skip
    waiting = "-" if not row.most_backpressured_share >= 0.005 else f"{row.most_backpressured} {share_text(row.most_backpressured_share)}"
    return [
        line.label, completed, *map(ms_text, durations), bytes_text(row.persisted_bytes), per_second_text(row.throughput_per_second),
        change_text(line.throughput_change), f"{line.busiest[0]} {share_text(line.busiest[1])}".strip(), waiting,
    ]  # fmt: skip

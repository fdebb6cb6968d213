"""Strategies side by side: a row each, as numbers for machines and as short texts for people.

A first upload is a row of its own, below its strategy, and so are checkpoints that did not complete.  A percentile stands there only
with its sample (`sim.quantities.results`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sim.analysis.number_texts import NONE, bytes_text, change_text, ms_text, per_second_text, share_text
from sim.analysis.strategies.ending import Finish
from sim.analysis.strategies.not_completed import NotCompleted
from sim.analysis.strategies.rates import FALLS_SHORT, KeepingUp
from sim.analysis.strategies.schedule import LateTriggers, LongSavepoint
from sim.analysis.strategies.single import Singles
from sim.analysis.strategies.summary import Summary
from sim.foreign import one_line
from sim.quantities.results import STATISTICS, has_sample

FIRST_UPLOAD = "{}: first upload"
"""Name of the row of first uploads, below that of their strategy."""
NOT_COMPLETED = "{}: {} {}"
"""Name of a row of checkpoints that did not complete: strategy, number, fate."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A strategy as a row of a comparison."""

    label: str
    axes: tuple[tuple[str, str], ...]  # (axis, value) of the scenario's variations
    group: str  # variation of the job: strategies of a group meet the same workload
    status: str  # RUNNING, FINISHED, or FAILED with its reason
    summary: Summary
    baseline_per_second: float = math.nan  # throughput of the same job without checkpoints
    failed: bool = False  # the job failed, not only checkpoints
    name: str = ""  # the label without the part that names the group
    steady: bool = True  # neither restarted nor ended, so the sinks served all arrivals once
    until_s: float = math.nan  # when the job was over, mean over its runs; NaN: some run on
    overload: KeepingUp | None = None  # before anything went wrong; None: it keeps up
    singles: Singles = Singles(None, None, None)  # the checkpoints that sentences speak of
    first: Summary | None = None  # of its first uploads alone; None: it has none
    finish: Finish | None = None  # None: some job of it does not finish
    last_trigger_s: float = math.nan  # checkpoints end then, and the job runs on; NaN: they go on
    late: LateTriggers | None = None  # than the interval says; None: they are not
    savepoint: LongSavepoint | None = None  # None: none outlasts the checkpoints
    committers: tuple[str, ...] = ()  # vertices that do nothing else
    without_interval: bool = False  # no checkpoint is ever due, nor a savepoint
    hidden: tuple[str, ...] = ()  # vertices that commit, if nothing of theirs became visible
    not_completed: tuple[NotCompleted, ...] = ()  # by fate
    sinks: tuple[str, ...] = ()  # the vertices whose throughput it is
    sources: tuple[str, ...] = ()
    unlimited_bytes: int = 0  # as in `Scenario`
    tolerable: int = 0  # failed checkpoints in a row

    @property
    def called(self) -> str:
        """The name of the strategy in a sentence."""
        return self.name or self.label

    @property
    def busiest(self) -> tuple[str, float]:
        """The bottleneck and its share of busy time; a subtask of it, if that is much busier than the others."""
        row = self.summary
        if row.busiest_subtask_share > row.busy_share + 0.1:
            return f"{row.bottleneck}[{row.busiest_subtask}]", row.busiest_subtask_share
        return row.bottleneck, row.busy_share

    @property
    def is_over(self) -> bool:
        """Whether some job of it ended within the run."""
        return self.status != "RUNNING" or not math.isnan(self.until_s)

    @property
    def shortfall(self) -> tuple[float, float] | None:
        """(emitted, due) per second by its sources if they fall short: over a run without restarts, or before the first fault."""
        row = self.summary
        if self.steady and row.emitted_per_second < (1 - FALLS_SHORT) * row.offered_per_second:
            return row.emitted_per_second, row.offered_per_second
        return None if self.overload is None else (self.overload.emitted_per_second, self.overload.due_per_second)

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
        | {"baseline_per_second": line.baseline_per_second, "throughput_change": line.throughput_change, "until_s": line.until_s}
        | {"last_trigger_s": line.last_trigger_s, **_finish(line.finish)}
        | dict(zip(_OVERLOAD, (math.nan, math.nan, math.nan) if line.overload is None else line.overload, strict=True))
        for line in strategies
    ]
    return pd.DataFrame(rows)


def _finish(found: Finish | None) -> dict[str, float]:
    if found is None:
        return {"finish_idle_s": math.nan, "finish_checkpoints": math.nan, "final_checkpoint_ms": math.nan}
    return {"finish_idle_s": found.idle_s, "finish_checkpoints": found.checkpoints, "final_checkpoint_ms": found.final_ms}


def texts(strategies: Sequence[StrategyRow]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal.  Columns that say nothing of any strategy are left out."""
    rows: list[dict[str, str]] = []
    for line in strategies:
        rows.append(_texts(line))
        if line.first is not None:
            rows.append(_first_texts(line.label, line.first))
        rows += [_not_completed_texts(line.label, found) for found in line.not_completed]
    header = list(rows[0]) if rows else ["strategy"]
    for column, without in _OPTIONAL.items():
        if rows and all(row[column] in without for row in rows):
            header.remove(column)
    named = {"throughput": _of_vertices("throughput", [line.sinks for line in strategies]),
             "emitted": _of_vertices("emitted", [line.sources for line in strategies])}  # fmt: skip
    return [named.get(column, column) for column in header], [[row[column] for column in header] for row in rows]


_OVERLOAD = ("overload_emitted_per_second", "overload_due_per_second", "overload_until_s")
"""Columns of a job that does not keep up; the last one: until when that was looked at, NaN: to the end."""
_OPTIONAL = {"p90": {NONE}, "p99": {NONE}, "written": {NONE, "0 B"}, "pre-barrier": {NONE, "0 ms"}, "emitted": {NONE}}
"""Column -> cells that say nothing: most jobs do nothing before the barrier."""


def _texts(line: StrategyRow) -> dict[str, str]:
    row = line.summary
    counts = {"failed": row.failed - row.interrupted, "interrupted": row.interrupted}
    completed = ", ".join([str(row.completed), *(f"{count} {fate}" for fate, count in counts.items() if count)])
    completed += ", job failed" if line.failed else ""
    waiting = NONE if not row.most_backpressured_share >= 0.005 else f"{row.most_backpressured} {share_text(row.most_backpressured_share)}"
    emitted = NONE if line.shortfall is None else " of ".join(map(per_second_text, line.shortfall))
    until = "" if math.isnan(line.until_s) else f" until {ms_text(1e3 * line.until_s)}"
    return {
        "strategy": line.label,
        "completed (n)": completed,
        **_durations(row),
        "throughput": per_second_text(row.throughput_per_second) + until,
        "emitted": emitted,
        "vs none": change_text(line.throughput_change),
        "busiest": f"{line.busiest[0]} {share_text(line.busiest[1])}".strip(),
        "back-pressured": waiting,
    }


def _first_texts(label: str, row: Summary) -> dict[str, str]:
    """The row of first uploads; what is about all of the run stands in the row of the strategy."""
    blank = dict.fromkeys(("throughput", "emitted", "vs none", "busiest", "back-pressured"), NONE)
    return {"strategy": FIRST_UPLOAD.format(label), "completed (n)": str(row.completed), **_durations(row), **blank}


def _not_completed_texts(label: str, found: NotCompleted) -> dict[str, str]:
    """Their durations are bounds, and so is the part in which they were given up."""
    parts = {
        column: NONE if column not in found.parts_ms else ("> " if column == found.cut_off else "") + ms_text(found.parts_ms[column])
        for column in ("start delay", "alignment", "pre-barrier", "sync", "async")
    }
    blank = dict.fromkeys(("p90", "p99", "written", "in flight", "throughput", "emitted", "vs none", "busiest", "back-pressured"), NONE)
    name = {"strategy": NOT_COMPLETED.format(label, found.count, found.fate), "completed (n)": "0"}
    return {**blank, **name, "p50": f"> {ms_text(found.median_ms)}", "max": f"> {ms_text(found.longest_ms)}", **parts}


def _durations(row: Summary) -> dict[str, str]:
    values = _with_sample(row)
    percentiles = {STATISTICS[column].heading: ms_text(values[column]) for column in values if column.startswith("end_to_end_")}
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

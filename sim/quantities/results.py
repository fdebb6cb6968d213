"""The numbers about runs in tables of results, each once: its column, unit, words, and the smallest sample of its percentile.

A percentile needs observations beyond it: one of n lies above the quantile q of the law they come from if n >= 1 / (1 - q).
With fewer the estimate is the maximum by another name (the median aside, which has observations on both sides from the start).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.prose import capitalised
from sim.quantities.observed import QUANTITIES

_UNITS = {
    "_ms": "ms",
    "_per_second": "records/s",
    "_s": "s",
    "_bytes": "bytes",
    "_bytes_per_hour": "bytes/h",
    "_per_hour": "per hour",
    "_per_month": "per month",
}
"""End of a column's name -> unit."""


def smallest_sample(q: float) -> int:
    """``smallest_sample(0.99) == 100``: observations that the quantile `q` needs; 1 for the median, the minimum and the maximum."""
    beyond = min(q, 1 - q)
    return 1 if beyond <= 0 or q == 0.5 else math.ceil(round(1 / beyond, 6))


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic of a strategy, a cell or a run."""

    column: str  # in `sim.analysis.strategies.side_by_side.table`, and in the rows of sweeps
    title: str  # in words, for axes and pages; values carry the unit
    heading: str = ""  # of its column in a terminal; empty: it has none
    quantile: float | None = None  # None: it is no percentile
    counted_by: str = ""  # the column with the size of its sample

    @property
    def unit(self) -> str:
        return unit(self.column)

    @property
    def counts(self) -> str:
        """The unit of its sample, in words."""
        return "checkpoints" if self.counted_by == "completed" else self.counted_by

    @property
    def smallest_sample(self) -> int:
        return 1 if self.quantile is None else smallest_sample(self.quantile)


def _of(observed: str, statistic: str = "") -> str:
    """The title of a statistic of what is observed."""
    return ", ".join(filter(None, [QUANTITIES[observed].title, statistic]))


STATISTICS: dict[str, Statistic] = {
    statistic.column: statistic
    for statistic in (
        Statistic("completed", _of("completed"), "completed (n)"),
        Statistic("failed", _of("failed")),
        Statistic("end_to_end_p50_ms", _of("end_to_end_duration", "median"), "p50", 0.5, "completed"),
        Statistic("end_to_end_p90_ms", _of("end_to_end_duration", "90th percentile"), "p90", 0.9, "completed"),
        Statistic("end_to_end_p99_ms", _of("end_to_end_duration", "99th percentile"), "p99", 0.99, "completed"),
        Statistic("end_to_end_max_ms", _of("end_to_end_duration", "longest"), "max"),
        Statistic("first_uploads", "checkpoints that uploaded everything at the beginning"),
        Statistic("first_upload_ms", "duration of the first upload"),
        Statistic("first_upload_bytes", "written by the first upload"),
        Statistic("start_delay_ms", _of("start_delay", "median"), "start delay"),
        Statistic("alignment_ms", _of("alignment_duration", "median"), "alignment"),
        Statistic("path_pre_barrier_ms", "work before the barrier, median", "pre-barrier"),
        Statistic("sync_ms", _of("sync_duration", "median"), "sync"),
        Statistic("async_ms", _of("async_duration", "median"), "async"),
        Statistic("checkpointed_bytes", _of("checkpointed_size"), "written"),
        Statistic("persisted_bytes", "in-flight data per checkpoint", "in flight"),
        Statistic("throughput_per_second", "throughput", "throughput"),
        Statistic("emitted_per_second", "emitted by sources", "emitted"),
        Statistic("throughput_change", "throughput against no checkpoints", "vs none"),
        Statistic("busiest_subtask_share", "busiest vertex", "busiest"),
        Statistic("most_backpressured_share", "most back-pressured vertex", "back-pressured"),
        Statistic("visible_p50_ms", "time until output is visible, median", "visible p50", 0.5, "commits"),
        Statistic("visible_p99_ms", "time until output is visible, 99th percentile", "visible p99", 0.99, "commits"),
        Statistic("visible_max_ms", "time until output is visible, longest", "visible max"),
        Statistic("delay_mean_s", "mean delay of records"),
        Statistic("delay_p99_s", "delay of records, 99th percentile"),
        Statistic("caught_up_ms", "time until caught up after a failure", "caught up after"),
        Statistic("downtime_ms", _of("downtime"), "downtime"),
        Statistic("put_requests_per_hour", "PUT requests to the object store"),
        Statistic("list_requests_per_hour", "LIST requests to the object store"),
        Statistic("get_requests_per_hour", "GET requests to the object store"),
        Statistic("stored_bytes", "held by the object store, mean"),
        Statistic("moved_bytes_per_hour", "moved to and from the object store"),
        Statistic("storage_cost_per_month", "cost of the object store"),
    )
}
"""By column.  `delay_p99_s` is over the seconds of a run, which are hundreds: no sample is asked for."""


def unit(column: str) -> str:
    """``unit("downtime_ms") == "ms"``: the end of a column's name; empty: a number, a share or a word."""
    return next((symbol for ending, symbol in _UNITS.items() if column.endswith(ending)), "")


def in_words(column: str) -> str:
    """``in_words("end_to_end_p99_ms") == "checkpoint duration, 99th percentile"``; of others the name without its unit."""
    if column in STATISTICS:
        return STATISTICS[column].title
    ending = next((ending for ending in (*_UNITS, "_share") if column.endswith(ending)), "")
    return column.removesuffix(ending).replace("_", " ")


def headings() -> dict[str, str]:
    """Heading of a column in a terminal -> its words, with a capital."""
    return {row.heading: capitalised(row.title) for row in STATISTICS.values() if row.heading}


def has_sample(column: str, row: Mapping[str, Any]) -> bool:
    """Whether the value of `column` in this row stands on its smallest sample."""
    statistic = STATISTICS.get(column)
    return statistic is None or not statistic.counted_by or row[statistic.counted_by] >= statistic.smallest_sample

"""Single checkpoints of a strategy, for sentences: the median one, the slowest one, the first upload, one that failed.

Each exists, and its numbers stand in the tables of its run under its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads, is_periodic
from sim.analysis.strategies.not_completed import INTERRUPTIONS
from sim.analysis.strategies.path import BarrierPath, path
from sim.analysis.strategies.rates import Tables

FINALISATION = "finalisation"
"""Part of a path (`sim.metrics.critical_path.PathKind`): the metadata is written."""


@dataclass(frozen=True, slots=True)
class Single:
    """A checkpoint that is over."""

    number: int  # its id
    job: int | None  # number of its job; None: the run has only one
    replication: int | None  # None: the strategy has one run
    duration_ms: float
    written_bytes: float
    persisted_bytes: float
    path: BarrierPath
    cut_off: str = ""  # the part of its path that its failure cut off; empty: it completed

    def __str__(self) -> str:
        """``checkpoint 7``, ``checkpoint 7 of job 1``, ``checkpoint 7 of replication 0``."""
        job = "" if self.job is None else f" of job {self.job}"
        return f"checkpoint {self.number}{job}" + ("" if self.replication is None else f" of replication {self.replication}")


class Singles(NamedTuple):
    """The single checkpoints of a strategy that sentences are about.  None: there is no such checkpoint."""

    median: Single | None  # of two in the middle the quicker
    slowest: Single | None
    first_upload: Single | None  # of the first run that has one
    failed: Single | None = None  # the first that failed for the most frequent reason
    failures: tuple[tuple[str, int], ...] = ()  # (reason, how many), the most frequent first; without what a restart or the end interrupted
    in_a_row: int = 0  # failures without a completed checkpoint between them, at most


def singles(runs: Sequence[Tables], *, warmup_s: float = 0.0) -> Singles:
    """Median and slowest of those that `summarize` counts, over all runs."""
    counted: list[tuple[float, int, int]] = []  # duration, run, position in its table
    firsts: list[tuple[int, int]] = []
    failures: dict[str, list[tuple[int, int]]] = {}  # by reason
    for run, tables in enumerate(runs):
        rows = tables["checkpoints"]
        is_first = first_uploads(rows)
        is_later = ~is_first & is_periodic(rows) & (rows["trigger_timestamp"] >= warmup_s * 1e3).to_numpy()
        is_counted = (rows["status"] == "COMPLETED").to_numpy() & is_later
        is_failure = (rows["status"] == "FAILED").to_numpy() & ~rows["failure_message"].isin(INTERRUPTIONS).to_numpy() & is_later
        durations = rows["end_to_end_duration"].to_numpy(dtype=float)
        counted += [(float(durations[i]), run, int(i)) for i in np.flatnonzero(is_counted)]
        firsts += [(run, int(i)) for i in np.flatnonzero(is_first)]
        for i in np.flatnonzero(is_failure):
            failures.setdefault(str(rows["failure_message"].iloc[i]), []).append((run, int(i)))
    counted.sort()
    in_a_row = max((_in_a_row(tables["checkpoints"]) for tables in runs), default=0)
    reasons = sorted(failures, key=lambda reason: (-len(failures[reason]), reason))
    return Singles(
        median=_single(runs, *counted[(len(counted) - 1) // 2][1:]) if counted else None,
        slowest=_single(runs, *max(counted, key=lambda row: row[0])[1:]) if counted else None,
        first_upload=_single(runs, *firsts[0]) if firsts else None,
        failed=_single(runs, *failures[reasons[0]][0]) if reasons else None,
        failures=tuple((reason, len(failures[reason])) for reason in reasons),
        in_a_row=in_a_row,
    )


def _in_a_row(rows: pd.DataFrame) -> int:
    """A savepoint that completes ends them, too; one that fails is none of them."""
    is_failure = (rows["status"] == "FAILED") & ~rows["failure_message"].isin(INTERRUPTIONS) & is_periodic(rows)
    ended = (rows["trigger_timestamp"] + rows["end_to_end_duration"])[is_failure | (rows["status"] == "COMPLETED")].sort_values()
    failed = is_failure[ended.index]
    return int(failed.groupby((~failed).cumsum()).sum().max()) if len(failed) else 0


def _single(runs: Sequence[Tables], run: int, position: int) -> Single:
    tables = runs[run]
    row = tables["checkpoints"].iloc[position]
    job = int(row["x_job"]) if "x_job" in row.index else None
    parts = _of(tables["path"], int(row["id"]), job)
    return Single(
        number=int(row["id"]),
        job=job,
        replication=run if len(runs) > 1 else None,
        duration_ms=float(row["end_to_end_duration"]),
        written_bytes=float(row["checkpointed_size"]),
        persisted_bytes=float(row["persisted_data"]),
        path=path(parts[parts["part"] != FINALISATION]),  # before the failure, if it was its metadata that was not written
        cut_off=str(parts["part"].iloc[-1]) if row["status"] == "FAILED" and len(parts) else "",
    )


def _of(rows: pd.DataFrame, number: int, job: int | None) -> pd.DataFrame:
    chosen = rows["id"] == number
    return rows[chosen if job is None else chosen & (rows["x_job"] == job)]

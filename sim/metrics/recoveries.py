"""Measurements of failures and restarts: one record per restart.

Times are ns on the run's clock, -1 = did not happen (yet, or because a later failure took the tasks over).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from sim.metrics.frame import frame, ms, span_ms
from sim.metrics.schema import Row
from sim.quantities.populations import PLANNED_RESTARTS


@dataclass(slots=True)
class RecoveryStats:
    """The measurements of one restart."""

    number: int
    kind: str  # task, task-manager, job-manager, checkpoints, rescale, instance: what failed, or began
    what: str  # in words: which task or host, or the reason
    failed_ns: int  # when it happened
    detected_ns: int  # when the job went to RESTARTING
    tasks: int  # restarted
    deployments: int = 0  # tried; those before the last one met a task manager that is gone
    cancelled_ns: int = -1  # none of them runs any more
    deployed_ns: int = -1  # they are deployed again: download begins
    checkpoint: int = -1  # restored; 0: none was complete, from the beginning
    restored_bytes: int = 0  # state downloaded
    recovered_bytes: int = 0  # in-flight data read back
    first_record_ns: int = -1  # the first record one of them served, recovered ones included
    running_ns: int = -1  # all of them run
    replayed_records: int = 0  # emitted again by restarted sources
    served_again: int = 0  # ... served again by restarted tasks without readers
    caught_up_ns: int = -1  # as much waits as usual (`sim.runtime.observe.usual_backlog`)

    @property
    def is_failure(self) -> bool:
        """Whether something failed, and not just another job or parallelism began."""
        return self.kind not in PLANNED_RESTARTS


def recoveries_table(stats: Iterable[RecoveryStats]) -> pd.DataFrame:
    """One row per restart, in the order of restarts."""
    return frame("recoveries", map(_row, stats))


def _row(row: RecoveryStats) -> Row:
    return {
        "restart": row.number,
        "kind": row.kind,
        "cause": row.what,
        "failed": ms(row.failed_ns),
        "detected": ms(row.detected_ns),
        "cancelled": ms(row.cancelled_ns),
        "deployed": ms(row.deployed_ns),
        "first_record": ms(row.first_record_ns),
        "running": ms(row.running_ns),
        "caught_up": ms(row.caught_up_ns),
        "downtime": span_ms(row.failed_ns, row.running_ns),
        "tasks": row.tasks,
        "deployments": row.deployments,
        "restored_checkpoint": row.checkpoint,
        "restored_bytes": row.restored_bytes,
        "recovered_bytes": row.recovered_bytes,
        "replayed_records": row.replayed_records,
        "served_again": row.served_again,
    }

"""What is measured of each failure and the restart that follows it: one record per restart.

Times are ns on the run's clock, -1 = did not happen (yet, or because a later failure took the tasks over).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RecoveryStats"]


@dataclass(slots=True)
class RecoveryStats:
    number: int
    kind: str  # task, task-manager, job-manager, checkpoints, rescale: what failed
    what: str  # in words: which task or host, or the reason
    failed_ns: int  # when it happened
    detected_ns: int  # when the job went to RESTARTING
    tasks: int  # restarted
    cancelled_ns: int = -1  # none of them runs any more
    deployed_ns: int = -1  # they are deployed again: download begins
    checkpoint: int = -1  # restored; 0: none was complete, from the beginning
    restored_bytes: int = 0  # state downloaded
    recovered_bytes: int = 0  # in-flight data read back
    first_record_ns: int = -1  # the first record one of them served, recovered ones included
    running_ns: int = -1  # all of them run
    replayed_records: int = 0  # emitted again by restarted sources
    caught_up_ns: int = -1  # their backlog is what it was at the failure

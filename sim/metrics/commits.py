"""Measurements of commits: one record per commit of a committer, with the epochs that it made visible.  Times are ns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from sim.metrics.frame import frame, ms, task_name
from sim.metrics.schema import Row
from sim.units import MS


class CommittedEpoch(NamedTuple):
    """One closed transaction of one writer."""

    writer: int  # task number
    epoch: int
    inputs: tuple[tuple[int, int], ...]  # per input channel: the records [from, to)
    opened_ns: int
    size_bytes: int
    files: tuple[Hashable, ...] = ()
    missing: int = 0  # files that were not there in full when it became visible

    @property
    def records(self) -> int:
        return sum(end - begin for begin, end in self.inputs)


TIMED_OUT = "the transaction was open for longer than the external system keeps it"
"""Why transactions are lost, unless a commit failed."""


class CommitStats(NamedTuple):
    """The measurements of one commit."""

    checkpoint: int  # whose completion it answers; 0: none, the task ended without waiting for one
    time_ns: int  # end of the commit
    task: int  # the committer
    trigger_ns: int  # of that checkpoint; -1: none
    committed: tuple[CommittedEpoch, ...]
    lost: tuple[CommittedEpoch, ...] = ()
    again: bool = False  # after a restore
    why: str = TIMED_OUT  # they are lost


def commits_table(stats: Iterable[CommitStats], names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """`names`: (vertex, subtask index) of each task."""
    return frame("commits", (_row(row, names) for row in stats))


def _row(row: CommitStats, names: Sequence[tuple[str, int]]) -> Row:
    visible_ns = max((row.time_ns - transaction.opened_ns for transaction in row.committed), default=-1)
    commit_ns = row.time_ns - row.trigger_ns if row.committed and row.trigger_ns >= 0 else -1
    return {
        "checkpoint": row.checkpoint,
        "commit_timestamp": row.time_ns / MS,
        **task_name(names[row.task]),
        "epochs": len({transaction.epoch for transaction in row.committed}),
        "records": sum(transaction.records for transaction in row.committed),
        "bytes": sum(transaction.size_bytes for transaction in row.committed),
        "files": sum(len(transaction.files) for transaction in row.committed),
        "commit_latency": ms(commit_ns),
        "visible_latency": ms(visible_ns),
        "again": row.again,
        "lost_records": sum(transaction.records for transaction in row.lost),
        "missing_files": sum(transaction.missing for transaction in row.committed),
    }

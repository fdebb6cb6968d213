"""Tables of a run: checkpoints, subtasks, commits, files, recoveries, latency."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from operator import attrgetter
from typing import NamedTuple
from zlib import compress, decompress

import numpy as np
import pandas as pd

from sim.model.quantities import PLANNED_RESTARTS
from sim.model.storage import ClaimMode, StateFile, StoredSnapshot, Verdict
from sim.model.units import MS
from sim.results.journal import GrowingColumn
from sim.results.schema import Row, frame, ms, span_ms, task_name

# ---- Measurements of checkpoints: one record per checkpoint, and one per checkpoint and subtask.
#
# Times are ns on the run's clock, -1 = did not happen.  Definitions are Flink's (CheckpointMetricsBuilder,
# SubtaskStateStats, AbstractCheckpointStats); fields Flink does not report are marked "ours".


@dataclass(slots=True)
class SubtaskStats:
    """The measurements of one subtask in one checkpoint."""

    task: int
    first_barrier_ns: int = -1  # first barrier, or trigger call executed
    alignment_ns: int = 0  # first to last barrier processed
    processed_bytes: int = 0  # polled while aligning
    captured_input_bytes: int = 0
    captured_output_bytes: int = 0
    snapshot_begun_ns: int = -1  # ours
    pre_barrier_ns: int = 0  # ours: prepareSnapshotPreBarrier
    sync_ns: int = 0
    async_begun_ns: int = -1
    async_ns: int = 0
    async_queue_ns: int = 0  # ours: wait for the task's one asynchronous thread
    state_bytes: int = 0  # referenced: all a restore reads
    written_bytes: int = 0  # of these, written for this checkpoint
    ack_ns: int = -1
    aborted: bool = False

    @property
    def persisted_bytes(self) -> int:
        return self.captured_input_bytes + self.captured_output_bytes


_COLUMNS = tuple(field.name for field in fields(SubtaskStats))
_cells_of = attrgetter(*_COLUMNS)


@dataclass(slots=True)
class CheckpointStats:
    """The measurements of one checkpoint, and of its subtasks."""

    number: int
    trigger_ns: int
    tasks: int  # subtasks; those that have finished count as acknowledged from the start
    status: str = "IN_PROGRESS"
    latest_ack_ns: int = -1
    acknowledged: int = 0
    failed_ns: int = -1
    failure: str = ""
    standstill: str = ""  # tasks that waited for each other when it failed or the run ended, in words
    completed_ns: int = -1  # ours: _metadata durable
    savepoint_format: str = ""  # of a savepoint
    stops: bool = False  # the job stops with it
    stop_forgotten: bool = False  # the JobManager is lost that was to stop the job with it
    _at_hand: dict[int, SubtaskStats] = field(default_factory=dict)
    _packed: bytes = b""

    @property
    def subtasks(self) -> Mapping[int, SubtaskStats]:
        """The rows of subtasks, to read.  `of` gives a row to write to."""
        return self._unpacked() if self._packed else self._at_hand

    def of(self, task: int) -> SubtaskStats:
        """The row of a subtask, to write to at this moment only.  The first call makes it."""
        if self._packed:
            self._at_hand, self._packed = self._unpacked(), b""
        if task not in self._at_hand:
            self._at_hand[task] = SubtaskStats(task)
        return self._at_hand[task]

    def pack(self) -> None:
        """Compress the rows of subtasks to a thirtieth of their room, as no change is expected.  A write unpacks them."""
        if self._at_hand:
            cells = array("q", chain.from_iterable(map(_cells_of, self._at_hand.values())))
            self._at_hand, self._packed = {}, compress(cells.tobytes(), level=1)

    def _unpacked(self) -> dict[int, SubtaskStats]:
        cells = iter(array("q", decompress(self._packed)))
        rows = [SubtaskStats(*row) for row in zip(*[cells] * len(_COLUMNS), strict=True)]
        for row in rows:
            row.aborted = bool(row.aborted)
        return {row.task: row for row in rows}


def stopped_with(stats: Mapping[int, CheckpointStats]) -> set[int]:
    """The completed savepoint that the job was stopped with; empty if it was not.

    Another JobManager knows nothing of the stop: high availability keeps completed checkpoints, and no savepoints.
    """
    return {
        checkpoint
        for checkpoint, row in stats.items()
        if row.stops and row.status == "COMPLETED" and not row.stop_forgotten
    }


# ---- Measurements of commits: one record per commit of a committer, with the epochs that it made visible.  Times are ns.


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


# ---- The content of checkpoint storage: a row per file that a snapshot named, per snapshot that is kept, and per restore.


class FileRow(NamedTuple):
    """A row of the table `files`."""

    file: StateFile
    path: str
    job: int  # the newest instance that named it; the next two are its checkpoints
    created_by: int
    last_used: int
    deleted_ns: int  # -1: it is there
    needed_by: tuple[StoredSnapshot, ...] = ()  # those kept at the end


class SnapshotRow(NamedTuple):
    """A row of the table `snapshots`."""

    snapshot: StoredSnapshot
    directory: str
    verdict: Verdict
    relocatable_root: bool
    restorable: bool  # all its files are there
    would_break: tuple[StoredSnapshot, ...]  # if the snapshot is deleted with all files that it names
    would_break_job: tuple[StoredSnapshot, ...]  # if the directory of its job is removed


class RestoreRow(NamedTuple):
    """A row of the table `restores`."""

    job: int
    claim: ClaimMode
    restored: StoredSnapshot
    begun_ns: int
    first_checkpoint: int = -1  # the first that completed
    first_type: str = ""
    first_written_bytes: int = 0
    first_duration_ns: int = -1  # its end-to-end duration
    free_ns: int = -1  # when nothing this instance keeps needed the restored snapshot any more; -1: never
    deletable: bool = False  # by its user, at the end, without breaking a newer snapshot


def files_table(rows: Iterable[FileRow]) -> pd.DataFrame:
    return frame("files", map(_file_row, rows))


def snapshots_table(rows: Iterable[SnapshotRow]) -> pd.DataFrame:
    return frame("snapshots", map(_snapshot_row, rows))


def restores_table(rows: Iterable[RestoreRow]) -> pd.DataFrame:
    return frame("restores", map(_restore_row, rows))


def requests_table(rows: Iterable[Row]) -> pd.DataFrame:
    return frame("requests", rows)


def _file_row(row: FileRow) -> Row:
    return {
        "owner": row.file.instance,
        "checkpoint": row.file.checkpoint,
        "path": row.path,
        "size": row.file.size_bytes,
        "scope": row.file.scope,
        "job": row.job,
        "created_by": row.created_by,
        "last_used": row.last_used,
        "deleted": ms(row.deleted_ns),
        "needed_by": _names(row.needed_by),
    }


def _snapshot_row(row: SnapshotRow) -> Row:
    verdict = row.verdict
    job = "n/a" if verdict.relocatable_job_dir is None else "yes" if verdict.relocatable_job_dir else "no"
    return {
        "job": row.snapshot.instance,
        "id": row.snapshot.checkpoint,
        "type": row.snapshot.type,
        "directory": row.directory,
        "files_total": verdict.files_total,
        "bytes_total": verdict.bytes_total,
        "files_outside_chk_dir": verdict.files_outside_chk_dir,
        "files_outside_job_dir": verdict.files_outside_job_dir,
        "owners": " ".join(map(str, verdict.owners)),
        "chain_length": verdict.chain_length,
        "absolute_paths": verdict.absolute_paths,
        "self_contained": verdict.self_contained,
        "relocatable_own_dir": verdict.relocatable_own_dir,
        "relocatable_job_dir": job,
        "relocatable_root": row.relocatable_root,
        "restorable": row.restorable,
        "would_break": _names(row.would_break),
        "would_break_job": _names(row.would_break_job),
    }


def _restore_row(row: RestoreRow) -> Row:
    full = row.first_type == "full"
    return {
        "job": row.job,
        "claim": row.claim,
        "restored_job": row.restored.instance,
        "restored_id": row.restored.checkpoint,
        "restored_type": row.restored.type,
        "begun": row.begun_ns / MS,
        "first_id": row.first_checkpoint,
        "first_type": row.first_type,
        "first_checkpointed_size": row.first_written_bytes,
        "first_duration": ms(row.first_duration_ns),
        "bytes_reuploaded_first_full": row.first_written_bytes if full else 0,
        "first_full_duration": ms(row.first_duration_ns) if full else -1.0,
        "time_until_old_snapshot_deletable": span_ms(row.begun_ns, row.free_ns),
        "deletable": row.deletable,
    }


def _names(snapshots: Iterable[StoredSnapshot]) -> str:
    return " ".join(f"{snapshot.instance}/{snapshot.checkpoint}" for snapshot in snapshots)


# ---- Measurements of failures and restarts: one record per restart.
#
# Times are ns on the run's clock, -1 = did not happen (yet, or because a later failure took the tasks over).


EXPIRED = "CHECKPOINT_EXPIRED"
"""Reason (CheckpointFailureReason) of checkpoints that did not complete before their timeout."""
TOO_MANY_FAILED = "tolerable failed checkpoints exceeded"
"""The beginning of the cause of a restart because more checkpoints in a row failed than are tolerated."""


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
    caught_up_ns: int = -1  # as much waits as usual (`sim.runtime.sampling`)

    @property
    def is_failure(self) -> bool:
        """Whether something failed, and not just another job or parallelism began."""
        return self.kind not in PLANNED_RESTARTS


def recoveries_table(stats: Iterable[RecoveryStats]) -> pd.DataFrame:
    """One row per restart, in the order of restarts."""
    return frame("recoveries", map(_recovery_row, stats))


def _recovery_row(row: RecoveryStats) -> Row:
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


# ---- Measurements -> rectangular tables with the columns of `schema`.  Times become ms since the start of the run.


def checkpoints_table(stats: Iterable[CheckpointStats]) -> pd.DataFrame:
    return frame("checkpoints", map(_checkpoint_row, stats))


def subtasks_table(
    stats: Iterable[CheckpointStats], names: Sequence[tuple[str, int]], only: Collection[str] | None = None
) -> pd.DataFrame:
    """`names`: (vertex, subtask index) of each task; `only`: columns that are asked for."""
    parts = ((checkpoint, row) for checkpoint in stats for _, row in sorted(checkpoint.subtasks.items()))
    return frame("subtasks", (_subtask_row(checkpoint, row, names) for checkpoint, row in parts), only)


def tasks_table(
    plane_tasks: np.ndarray, names: Sequence[tuple[str, int]], final_checkpoints: Sequence[int | None]
) -> pd.DataFrame:
    """Totals of each task up to the end of the run."""
    return frame("tasks", (_task_row(row, names[t], final_checkpoints[t]) for t, row in enumerate(plane_tasks)))


def _task_row(row: np.void, name: tuple[str, int], final_checkpoint: int | None) -> Row:
    return {
        **task_name(name),
        "numRecordsIn": row["served"],
        "numRecordsOut": row["records_out"],
        "numBytesIn": row["bytes_in"],
        "numBytesOut": row["bytes_out"],
        "numBuffersIn": row["buffers_in"],
        "numBuffersOut": row["buffers_out"],
        "accumulateBusyTimeMs": row["busy_ns"] / MS,
        "accumulateIdleTimeMs": row["idle_ns"] / MS,
        "x_softBackPressuredTimeMs": row["soft_ns"] / MS,
        "x_hardBackPressuredTimeMs": row["hard_ns"] / MS,
        "x_finalCheckpoint": -1 if final_checkpoint is None else final_checkpoint,
    }


def _checkpoint_row(row: CheckpointStats) -> Row:
    parts = row.subtasks.values()
    persisted = sum(part.persisted_bytes for part in parts)
    state = sum(part.state_bytes for part in parts)
    written = sum(part.written_bytes for part in parts)
    end = row.failed_ns if row.status == "FAILED" else row.latest_ack_ns
    kind = "UNALIGNED_CHECKPOINT" if persisted else "CHECKPOINT"
    if row.savepoint_format:
        kind = "SYNC_SAVEPOINT" if row.stops else "SAVEPOINT"
    return {
        "id": row.number,
        "status": row.status,
        "checkpoint_type": kind,
        "trigger_timestamp": ms(row.trigger_ns),
        "latest_ack_timestamp": ms(row.latest_ack_ns),
        "end_to_end_duration": span_ms(row.trigger_ns, end),
        "checkpointed_size": written + persisted,
        "state_size": state + persisted,
        "processed_data": sum(part.processed_bytes for part in parts),
        "persisted_data": persisted,
        "alignment_buffered": 0,
        "num_subtasks": row.tasks,
        "num_acknowledged_subtasks": row.acknowledged,
        "failure_message": row.failure,
        "x_finalization": span_ms(row.latest_ack_ns, row.completed_ns),
        "savepointFormat": row.savepoint_format.upper(),
        "x_standstill": row.standstill,
    }


def _subtask_row(checkpoint: CheckpointStats, row: SubtaskStats, names: Sequence[tuple[str, int]]) -> Row:
    done = row.ack_ns >= 0
    end_to_end_ns = row.ack_ns - checkpoint.trigger_ns if done else -1
    start_delay_ns = max(0, row.first_barrier_ns - checkpoint.trigger_ns) if row.first_barrier_ns >= 0 else -1
    # the rest ran beside sync and async
    aligning_ns = min(row.alignment_ns, max(0, row.snapshot_begun_ns - row.first_barrier_ns))
    reported_ns = start_delay_ns + aligning_ns + row.sync_ns + row.async_ns
    return {
        "id": checkpoint.number,
        **task_name(names[row.task]),
        "status": "completed" if done else "pending_or_failed",
        "ack_timestamp": ms(row.ack_ns),
        "end_to_end_duration": ms(end_to_end_ns),
        "start_delay": ms(start_delay_ns),
        "alignment_duration": row.alignment_ns / MS,
        "alignment_processed": row.processed_bytes,
        "alignment_persisted": row.persisted_bytes,
        "sync_duration": row.sync_ns / MS,
        "async_duration": row.async_ns / MS,
        "checkpointed_size": row.written_bytes + row.persisted_bytes,
        "state_size": row.state_bytes + row.persisted_bytes,
        "unaligned_checkpoint": row.persisted_bytes > 0,
        "aborted": row.aborted,
        "x_pre_barrier": row.pre_barrier_ns / MS,
        "x_async_queue": row.async_queue_ns / MS,
        "x_hidden": (end_to_end_ns - reported_ns) / MS if done else -1.0,
        "x_captured_input": row.captured_input_bytes,
        "x_captured_output": row.captured_output_bytes,
    }


# ---- Record latency from the sources to a vertex without readers, from two curves: records that have left, records that have arrived.
#
# First in, first out, a record's time is the horizontal distance of the curves; whatever the order, the mean is the
# same (Little).  Curves are straight between their points.  Who counts, and when, is left to the runtime.


class Latency:
    """The latency at one vertex [ns].

    Records are counted as the vertex counts them: the records of its sources, times the copies that reach it.
    `room`: so many points may come, where that is known.
    """

    def __init__(self, now: int, emitted: float, served: float, room: int = 0) -> None:
        self._times, self._emitted, self._area = (GrowingColumn(np.float64, room + 1) for _ in range(3))
        # the area is that under the times of emission, over the records up to each point
        for curve, first in ((self._times, now), (self._emitted, emitted), (self._area, 0.0)):
            curve.extend([first])
        self._seen = float(now), served

    def means(self, times: np.ndarray, emitted: np.ndarray, served: np.ndarray, stride: int) -> np.ndarray:
        """Add points to both curves.  Returns for `stride` of them the mean over the records served since those before [ns]; -1: none."""
        then, before = np.concatenate([self._seen[:1], times[:-1]]), np.concatenate([self._seen[1:], served[:-1]])
        area = np.zeros(len(times))  # under the times of emission, over the records served since the point before
        for part in self._extended(times.astype(float), np.maximum(emitted, self._emitted.cells[0])):
            # there were when each was added
            points = np.arange(len(self._times) - (part.stop - part.start), len(self._times)) + 1
            area[part] = self._emission(served[part], points) - self._emission(before[part], points)
        self._seen = float(times[-1]), float(served[-1])
        counts = served > before
        gained = np.where(counts, served - before, 0.0)
        waited = np.where(counts, (served - before) * (then + times) / 2 - area, 0.0)
        records, spent = (_one_by_one(values.reshape(-1, stride)) for values in (gained, waited))
        means: np.ndarray = np.maximum(
            np.divide(spent, records, out=np.full(len(records), -1.0), where=records > 0), -1.0
        )
        return means

    def _extended(self, times: np.ndarray, emitted: np.ndarray) -> Iterator[slice]:
        """Add points of the first curve, all up to the next restore at once; which they are.

        A source restored goes back: what it emits again leaves again, what is restored in flight left when it did.
        """
        back = emitted < np.concatenate([self._emitted.cells[-1:], emitted[:-1]])
        ends = [*np.flatnonzero(back).tolist(), len(times)]
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            if begin < end:
                if back[begin]:
                    self._cut(float(emitted[begin]))
                self._extend(times[begin:end], emitted[begin:end])
                yield slice(begin, end)

    def _cut(self, emitted: float) -> None:
        """The curve ends at a record: behind the last point that is kept it goes on to where it is cut."""
        records, times = self._emitted.cells, self._times.cells
        kept = max(int(np.searchsorted(records, emitted, "right")), 1)
        rise, run = records[kept] - records[kept - 1], times[kept] - times[kept - 1]
        cut = times[kept - 1] + run * max(0.0, emitted - records[kept - 1]) / rise
        for curve in (self._times, self._emitted, self._area):
            curve.cut(kept)
        self._extend(np.array([cut]), np.array([emitted]))

    def _extend(self, times: np.ndarray, emitted: np.ndarray) -> None:
        time, record = (
            np.concatenate([curve.cells[-1:], after])
            for curve, after in ((self._times, times), (self._emitted, emitted))
        )
        area = np.add.accumulate(
            np.concatenate([self._area.cells[-1:], (record[1:] - record[:-1]) * (time[:-1] + time[1:]) / 2])
        )
        for curve, after in ((self._times, times), (self._emitted, emitted), (self._area, area[1:])):
            curve.extend(after)

    def _emission(self, records: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The area up to each record, on a curve of so many points; behind the last of them it stands still."""
        times, emitted, area = self._times.cells, self._emitted.cells, self._area.cells
        i = np.minimum(np.searchsorted(emitted, records, "right"), points) - 1
        after = np.minimum(i + 1, points - 1)
        rise, run = emitted[after] - emitted[i], times[after] - times[i]
        slope = np.divide(run, rise, out=np.zeros(len(i)), where=after > i)
        rest = records - emitted[i]
        found: np.ndarray = area[i] + rest * (times[i] + rest * slope / 2)
        return found


def _one_by_one(rows: np.ndarray) -> np.ndarray:
    """The sum of each row, added from left to right."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column
    return total

"""The measurements of a run, and the result tables: checkpoints, subtasks, commits, files, recoveries, and record latency."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple
from zlib import compress, decompress

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.model.quantities import PLANNED_RESTARTS
from sim.model.storage import StateFile, StoredSnapshot
from sim.model.units import MS
from sim.results.columns import Row, frame, ms, span_ms, task_name
from sim.results.journal import GrowingColumn
from sim.results.rates import Tables

# ---- Checkpoints: one record per checkpoint, and one per checkpoint and subtask.
#
# Times are simulated times in ns; -1 means that the event did not happen. Definitions are Flink's
# (CheckpointMetricsBuilder, SubtaskStateStats, AbstractCheckpointStats). Fields that Flink does not report are marked
# "ours".


@dataclass(slots=True)
class SubtaskStats:
    """Measurements of one subtask in one checkpoint."""

    task: int
    first_barrier_ns: int = -1  # the first barrier is processed, or the trigger is executed
    alignment_ns: int = 0  # time from the first to the last barrier
    processed_bytes: int = 0  # bytes read during the alignment
    captured_input_bytes: int = 0
    captured_output_bytes: int = 0
    snapshot_begun_ns: int = -1  # ours
    pre_barrier_ns: int = 0  # ours: prepareSnapshotPreBarrier
    sync_ns: int = 0
    async_begun_ns: int = -1
    async_ns: int = 0
    async_queue_ns: int = 0  # ours: time for which the snapshot waits for the only asynchronous thread of the task
    state_bytes: int = 0  # referenced state: everything that a restore reads
    written_bytes: int = 0  # the part of it that was written for this checkpoint
    ack_ns: int = -1
    aborted: bool = False

    @property
    def persisted_bytes(self) -> int:
        """Return the in-flight data that the checkpoint stores of this subtask."""
        return self.captured_input_bytes + self.captured_output_bytes


_COLUMNS = tuple(field.name for field in fields(SubtaskStats))
_cells_of = attrgetter(*_COLUMNS)


@dataclass(slots=True)
class CheckpointStats:
    """Measurements of one checkpoint and its subtasks."""

    number: int
    trigger_ns: int
    tasks: int  # number of subtasks; finished ones count as acknowledged from the start
    status: str = "IN_PROGRESS"
    latest_ack_ns: int = -1
    acknowledged: int = 0
    failed_ns: int = -1
    failure: str = ""
    standstill: str = ""  # tasks that waited for each other when it failed or the run ended, in words
    completed_ns: int = -1  # ours: _metadata is durable
    savepoint_format: str = ""  # "" for checkpoints
    stops: bool = False  # stop-with-savepoint
    stop_forgotten: bool = False  # the JobManager that was to stop the job with it was lost
    _at_hand: dict[int, SubtaskStats] = field(default_factory=dict)
    _packed: bytes = b""

    @property
    def subtasks(self) -> Mapping[int, SubtaskStats]:
        """Return the rows of all subtasks for reading.  Use `of` to get a row for writing."""
        return self._unpacked() if self._packed else self._at_hand

    def of(self, task: int) -> SubtaskStats:
        """Return the row of a subtask for writing, which is added if there is none.  Do not use the row after `pack`."""
        if self._packed:
            self._at_hand, self._packed = self._unpacked(), b""
        if task not in self._at_hand:
            self._at_hand[task] = SubtaskStats(task)
        return self._at_hand[task]

    def pack(self) -> None:
        """Compress the rows of subtasks to a thirtieth of their size.

        Call it when no more changes are expected.  `of` unpacks the rows again.
        """
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
    """Return a set with the id of the savepoint that the job was stopped with, or an empty set if it was not stopped.

    After a failover the new JobManager does not know about a stop, because high availability services store completed
    checkpoints, but no savepoints.
    """
    return {
        checkpoint
        for checkpoint, row in stats.items()
        if row.stops and row.status == "COMPLETED" and not row.stop_forgotten
    }


# ---- Commits: one record per commit of a committer, with the transactions that it made visible. Times are ns.


class CommittedEpoch(NamedTuple):
    """The output of a sink task between two checkpoints: a closed transaction."""

    writer: int  # sink task
    epoch: int  # checkpoint that ends it
    inputs: tuple[tuple[int, int], ...]  # per input channel: (first record, record after the last one)
    opened_ns: int
    size_bytes: int
    files: tuple[Hashable, ...] = ()
    missing: int = 0  # number of files that were missing or incomplete when it became visible

    @property
    def records(self) -> int:
        """Return the number of records that the transaction contains."""
        return sum(end - begin for begin, end in self.inputs)


TIMED_OUT = "the transaction was open for longer than the external system keeps it"
"""Default reason for lost transactions."""


class CommitStats(NamedTuple):
    """Measurements of one commit."""

    checkpoint: int  # checkpoint whose completion triggered it; 0 if the task ended without waiting for one
    time_ns: int  # end of the commit
    task: int  # the committer
    trigger_ns: int  # trigger of the checkpoint; -1 without a checkpoint
    committed: tuple[CommittedEpoch, ...]
    lost: tuple[CommittedEpoch, ...] = ()
    again: bool = False  # repeated after a restore, when all of it was visible already
    why: str = TIMED_OUT  # reason why `lost` are lost


def commits_table(stats: Iterable[CommitStats], names: Sequence[tuple[str, int]]) -> pd.DataFrame:
    """Return the table `commits`.  `names`: (vertex, subtask index) of each task."""
    return frame("commits", (_commit_row(row, names) for row in stats))


def _commit_row(row: CommitStats, names: Sequence[tuple[str, int]]) -> Row:
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


# ---- Checkpoint storage: a row per file that a snapshot referenced, per retained snapshot, and per restore.


class FileRow(NamedTuple):
    """A row of the table `files`."""

    file: StateFile
    path: str
    job: int  # the newest job instance that referenced it
    created_by: int  # first checkpoint of that instance that referenced it
    last_used: int  # last one
    deleted_ns: int  # -1: not deleted
    physical: int  # number of the physical file that contains it; -1: it is one itself
    needed_by: tuple[StoredSnapshot, ...] = ()  # snapshots retained at the end that reference it


def files_table(rows: Iterable[FileRow]) -> pd.DataFrame:
    """Return the table `files`."""
    return frame(
        "files",
        (
            _cells(row._asdict())
            | {
                "owner": row.file.instance,
                "checkpoint": row.file.checkpoint,
                "size": row.file.size_bytes,
                "scope": row.file.scope,
                "needed_by": snapshot_names(row.needed_by),
            }
            for row in rows
        ),
    )


def _cells(fields_of_record: Mapping[str, Any]) -> Row:
    """Return the fields of a record by column: times in ns become ms, under a name without the unit."""
    return {
        name.removesuffix("_ns"): ms(value) if name.endswith("_ns") else value
        for name, value in fields_of_record.items()
    }


def snapshot_names(snapshots: Iterable[StoredSnapshot]) -> str:
    """Return snapshots as text, e.g. ``0/7 1/3``: job instance and id of each."""
    return " ".join(f"{snapshot.instance}/{snapshot.checkpoint}" for snapshot in snapshots)


# ---- Failures and restarts: one record per restart.
#
# Times are simulated times in ns; -1 means that the event did not happen, possibly because another failure restarted the
# tasks again.


EXPIRED = "CHECKPOINT_EXPIRED"
"""Reason (CheckpointFailureReason) of checkpoints that did not complete before their timeout."""
NOT_TRIGGERED = "TRIGGER_CHECKPOINT_FAILURE"
"""Reason (CheckpointFailureReason) of checkpoints whose trigger was not answered by a task."""
TOO_MANY_FAILED = "tolerable failed checkpoints exceeded"
"""First words of the cause of a restart after more consecutive checkpoint failures than are tolerated."""
NO_SLOTS = "no slots in place of those of a lost task manager"
"""Reason of a deployment that fails with a NoResourceAvailableException."""


@dataclass(slots=True)
class RecoveryStats:
    """Measurements of one restart."""

    number: int
    kind: str  # what failed (task, task-manager, job-manager, checkpoints) or was planned (rescale, instance)
    what: str  # task, host or reason, for printing
    failed_ns: int  # time of the failure or of the planned restart
    detected_ns: int  # time at which the job went to RESTARTING
    tasks: int  # number of restarted tasks
    vertices: str = ""  # names of the vertices of these tasks; empty: all tasks of the job restart
    deployments: int = 0  # attempts; all but the last failed because a TaskManager was lost
    cancelled_ns: int = -1  # all old tasks have ended
    delayed_ns: int = -1  # the delay of the restart strategy is over; it runs while tasks are cancelled
    deployed_ns: int = -1  # all tasks are deployed again, and the download of state begins
    checkpoint: int = -1  # restored checkpoint; 0 if none was complete, so that the job started from the beginning
    restored_bytes: int = 0  # state downloaded
    recovered_bytes: int = 0  # in-flight data read back
    lag_at_start_ns: int = -1  # time since the oldest record that sources emit next was due, when they start
    first_record_ns: int = -1  # first record processed by a restarted task, including recovered records
    running_ns: int = -1  # all restarted tasks run
    replayed_records: int = 0  # records that restarted sources emit again
    served_again: int = 0  # records that restarted sinks process again
    caught_up_ns: int = -1  # the backlog is as small as usual, after a rescale it is gone (`sim.runtime.sampling`)

    @property
    def is_failure(self) -> bool:
        """Return True for a failure, and False for a planned restart."""
        return self.kind not in PLANNED_RESTARTS


def recoveries_table(stats: Iterable[RecoveryStats]) -> pd.DataFrame:
    """Return the table `recoveries`, a row per restart in order of time."""
    return frame(
        "recoveries",
        (
            _cells(asdict(row))
            | {
                "restart": row.number,
                "cause": row.what,
                "downtime": span_ms(row.failed_ns, row.running_ns),
                "restored_checkpoint": row.checkpoint,
            }
            for row in stats
        ),
    )


# ---- Tables of checkpoints, subtasks and tasks. Times are converted to ms since the start of the run.


def checkpoints_table(stats: Iterable[CheckpointStats]) -> pd.DataFrame:
    """Return the table `checkpoints`."""
    return frame("checkpoints", map(_checkpoint_row, stats))


def subtasks_table(
    stats: Iterable[CheckpointStats], names: Sequence[tuple[str, int]], only: Collection[str] | None = None
) -> pd.DataFrame:
    """Return the table `subtasks`.  `names`: (vertex, subtask index) of each task.  `only`: columns to include."""
    parts = ((checkpoint, row) for checkpoint in stats for _, row in sorted(checkpoint.subtasks.items()))
    return frame("subtasks", (_subtask_row(checkpoint, row, names) for checkpoint, row in parts), only)


def tasks_table(
    plane_tasks: np.ndarray,
    names: Sequence[tuple[str, int]],
    final_checkpoints: Sequence[int | None],
    slowdowns: Sequence[float],
    materialized: Mapping[str, float],
) -> pd.DataFrame:
    """Return the table `tasks`: totals of each task over the run."""
    return frame(
        "tasks",
        (
            {
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
                "x_finalCheckpoint": -1 if final is None else final,
                "x_coreSlowdown": slowdown,
                "x_materialized": materialized.get(name[0], -1.0),
            }
            for row, name, final, slowdown in zip(plane_tasks, names, final_checkpoints, slowdowns, strict=True)
        ),
    )


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
    # alignment after the start of the snapshot overlaps with its synchronous and asynchronous part
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


# ---- Record latency from the sources to a sink (a vertex without downstream vertices).
#
#   records                 ____ emitted        Latency is computed from two cumulative curves over time: records emitted
#      |               ____/  ____ served       by the sources, and records served by the vertex. With FIFO order the
#      |          ____/  ____/                  latency of a record is the horizontal distance of the curves; in any other
#      |     ____/  ____/                       order the mean is the same (Little's law). Curves are linear between their
#      |____/  ____/                            points, which the runtime adds.
#      +------------------------- time


class Latency:
    """Computes the mean record latency at one vertex [ns].

    Emitted records are counted as the vertex counts them: records of its sources times the copies that reach the vertex.
    `room`: expected number of points, for which memory is reserved.
    """

    def __init__(self, now: int, emitted: float, served: float, room: int = 0) -> None:
        self._times, self._emitted, self._area = (GrowingColumn(np.float64, room + 1) for _ in range(3))
        # _area: integral of the emission time over the records up to each point
        for curve, first in ((self._times, now), (self._emitted, emitted), (self._area, 0.0)):
            curve.extend([first])
        self._seen = float(now), served

    def means(self, times: np.ndarray, emitted: np.ndarray, served: np.ndarray, stride: int) -> np.ndarray:
        """Add points to both curves, and return the mean latency [ns] in each group of `stride` points.

        The mean is over the records that the vertex processed in this time, or -1 if it processed none.
        """
        then, before = np.concatenate([self._seen[:1], times[:-1]]), np.concatenate([self._seen[1:], served[:-1]])
        area = np.zeros(len(times))  # integral of the emission time over the records served since the previous point
        for part in self._extended(times.astype(float), np.maximum(emitted, self._emitted.cells[0])):
            # number of points of the curve when each of these was added
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
        """Add points to the curve of emitted records, in slices between restores, and yield each slice.

        A restored source goes back: records emitted again get a new emission time, while restored in-flight records keep
        theirs.
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
        """Cut the curve of emitted records at this number of records, with an interpolated last point."""
        records, times = self._emitted.cells, self._times.cells
        kept = max(int(np.searchsorted(records, emitted, "right")), 1)
        rise, run = records[kept] - records[kept - 1], times[kept] - times[kept - 1]
        cut = times[kept - 1] + run * max(0.0, emitted - records[kept - 1]) / rise
        for curve in (self._times, self._emitted, self._area):
            curve.cut(kept)
        self._extend(np.array([cut]), np.array([emitted]))

    def _extend(self, times: np.ndarray, emitted: np.ndarray) -> None:
        """Append points to the curve of emitted records, and extend its integral."""
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
        """Return the integral of the emission time up to each record, using the first `points` of the curve.

        Beyond its last point, the curve is constant.
        """
        times, emitted, area = self._times.cells, self._emitted.cells, self._area.cells
        i = np.minimum(np.searchsorted(emitted, records, "right"), points) - 1
        after = np.minimum(i + 1, points - 1)
        rise, run = emitted[after] - emitted[i], times[after] - times[i]
        slope = np.divide(run, rise, out=np.zeros(len(i)), where=after > i)
        rest = records - emitted[i]
        found: np.ndarray = area[i] + rest * (times[i] + rest * slope / 2)
        return found


def _one_by_one(rows: np.ndarray) -> np.ndarray:
    """Return the sum of each row.  Cells are added from left to right, so that rounding does not depend on numpy."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column
    return total


# ---- Distinguish the kinds of checkpoints in result tables: periodic checkpoints, first uploads, and savepoints.

# ---- Kinds of checkpoints in the table `checkpoints`: savepoints, first uploads, and periodic checkpoints.
#
# With incremental checkpoints, the first checkpoint of a run uploads all state, which only a simulation begins with, and is
# much larger than later ones. So are those that are triggered before the first one completes, because there are no files that
# they could reuse. A checkpoint counts as a first upload if it is one of these, and
#
# 1. it writes nearly all the state that it references,
# 2. this is more than twice what later checkpoints write (median), and
# 3. later checkpoints reference more than twice what they write (medians).
#
# Jobs that write full state each time have no first upload. If the first job (of a chain, or before a rescale) has no later
# checkpoints, its checkpoints are compared with those of the others. What a job uploads that begins from a snapshot, or after
# a rescale, is no first upload: real jobs upload it, too.

MIN_WRITTEN_SHARE = 0.9
"""Minimum share of its referenced state that a first upload writes."""
FIRST_UPLOAD_FACTOR = 2.0
"""Minimum ratio of a first upload's written bytes to the median of later checkpoints."""


def is_periodic(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints`, whether it is a periodic or final checkpoint, not a savepoint."""
    return (checkpoints["savepointFormat"] == "").to_numpy()


def job_of(table: pd.DataFrame) -> pd.Series[int]:
    """Return the number of the job instance of each row, which is 0 if the run has only one."""
    return table["x_job"] if "x_job" in table else pd.Series(0, table.index)


def has_savepoints(run: Tables) -> bool:
    """Return whether a savepoint of the run completed or failed."""
    rows = run["checkpoints"]
    return bool((rows["status"] != "IN_PROGRESS")[~is_periodic(rows)].any())


def first_uploads(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints` of one run, whether it is a first upload.

    The only checkpoint of a run does not count, because it is unknown whether later ones would be smaller.
    """
    candidates = (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints)
    is_first = np.zeros(len(checkpoints), dtype=bool)
    if not candidates.any():
        return is_first
    columns = ["trigger_timestamp", "end_to_end_duration", "persisted_data", "checkpointed_size", "state_size"]
    trigger, duration, in_flight, written, referenced = checkpoints[columns].to_numpy(dtype=float).T
    ended, written, referenced = trigger + duration, written - in_flight, referenced - in_flight
    job = job_of(checkpoints).to_numpy()
    of_first_job = candidates & (job == job[candidates].min())
    first_end = ended[of_first_job][trigger[of_first_job].argmin()]
    # rule 1: it writes nearly all the state that it references
    writes_all = (written > 0) & (written >= MIN_WRITTEN_SHARE * referenced)
    uploads_all = of_first_job & writes_all & (trigger < first_end)
    later = candidates & ~uploads_all
    compared = of_first_job & later if (of_first_job & later).any() else later
    if compared.any():
        # rule 2: it writes much more than later ones; rule 3: they reference much more than they write
        limit = FIRST_UPLOAD_FACTOR * np.median(written[compared])
        is_first |= uploads_all & (written > limit) & (np.median(referenced[compared]) > limit)
    return is_first


def pool_rows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables.

    Empty tables are skipped, because their columns have other types and pandas would warn about it.
    """
    filled = [table for table in tables if len(table)] or [tables[0]]
    return filled[0] if len(tables) == 1 else pd.concat(filled, ignore_index=True)

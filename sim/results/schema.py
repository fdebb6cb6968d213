"""Columns of the result tables: name, unit, meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.model.units import MS
from sim.results.journal import PackedRows

if TYPE_CHECKING:
    import pandas as pd


# ---- The result tables. Documentation and column order are derived from these definitions.
#
# A column that Flink's REST API has, too, has the same name, unit and meaning. In the tables that correspond to its answers
# (`checkpoints`, `subtasks`, `tasks`, `series`) the names of other columns start with `x_`.
# If a run consists of several job instances, the tables `checkpoints` to `recoveries` and `path` have an additional column
# `x_job`: the number of the instance, from 0. Each instance counts its checkpoints separately.

Row = dict[str, Any]
"""Column -> value of a row."""


class Column(NamedTuple):
    """A column of a result table."""

    name: str
    unit: str
    meaning: str
    value: Callable[[Row], Any] | None = None  # computes it from the row's other columns; None: it is measured


CHECKPOINTS = (
    Column("id", "", "checkpoint id"),
    Column("status", "", "IN_PROGRESS, COMPLETED or FAILED"),
    Column(
        "checkpoint_type",
        "",
        "CHECKPOINT (UNALIGNED_CHECKPOINT if any subtask persisted in-flight data), SAVEPOINT or SYNC_SAVEPOINT",
    ),
    Column("trigger_timestamp", "ms", "when the coordinator decided to trigger, since the start of the run"),
    Column("latest_ack_timestamp", "ms", "last acknowledgement so far; -1: none"),
    Column(
        "end_to_end_duration", "ms", "last acknowledgement - trigger (failed: failure - trigger); without _metadata"
    ),
    Column("checkpointed_size", "bytes", "written for this checkpoint: state and in-flight data"),
    Column("state_size", "bytes", "full size referenced"),
    Column("processed_data", "bytes", "polled by aligning subtasks"),
    Column("persisted_data", "bytes", "in-flight data stored"),
    Column("alignment_buffered", "bytes", "always 0, as in Flink"),
    Column("num_subtasks", "", "subtasks that must acknowledge"),
    Column("num_acknowledged_subtasks", "", ""),
    Column("failure_message", "", "Flink's CheckpointFailureReason; empty unless FAILED"),
    Column("x_finalization", "ms", "last acknowledgement -> completed (_metadata durable)"),
    Column("savepointFormat", "", "CANONICAL or NATIVE; empty: not a savepoint"),
    Column(
        "x_standstill",
        "",
        "tasks that waited for each other when the checkpoint expired or the run ended, so that it hung; empty: none",
    ),
)
SUBTASKS = (
    Column("id", "", "checkpoint id"),
    Column("vertex", "", ""),
    Column("index", "", "subtask index"),
    Column("status", "", "completed or pending_or_failed"),
    Column("ack_timestamp", "ms", "acknowledgement at the coordinator; -1: none"),
    Column("end_to_end_duration", "ms", "acknowledgement - trigger; -1: none"),
    Column("start_delay", "ms", "trigger -> first barrier processed (sources: trigger call executed)"),
    Column("alignment_duration", "ms", "first -> last barrier processed"),
    Column("alignment_processed", "bytes", "polled while aligning"),
    Column("alignment_persisted", "bytes", "input and output channel state of this subtask"),
    Column("sync_duration", "ms", "snapshotState on the task thread"),
    Column("async_duration", "ms", "end of sync -> all parts durable"),
    Column("checkpointed_size", "bytes", "written by this subtask for this checkpoint"),
    Column("state_size", "bytes", ""),
    Column("unaligned_checkpoint", "bool", "alignment_persisted > 0"),
    Column("aborted", "bool", ""),
    Column("x_pre_barrier", "ms", "prepareSnapshotPreBarrier, which Flink does not report"),
    Column("x_async_queue", "ms", "part of async_duration spent waiting for the task's one asynchronous thread"),
    Column("x_hidden", "ms", "end_to_end_duration minus the durations that Flink reports, overlaps counted once"),
    Column("x_captured_input", "bytes", "part of alignment_persisted from input queues of receivers"),
    Column("x_captured_output", "bytes", "part of alignment_persisted from output queues of senders"),
)
TASKS = (
    Column("vertex", "", ""),
    Column("index", "", "subtask index"),
    Column(
        "numRecordsIn",
        "records",
        "records served (a source: emitted), over all attempts; records served again count again",
    ),
    Column("numRecordsOut", "records", "copies written to all outputs"),
    Column("numBytesIn", "bytes", "bytes taken from the input gates"),
    Column("numBytesOut", "bytes", "bytes written to the outputs"),
    Column("numBuffersIn", "buffers", "data buffers taken"),
    Column("numBuffersOut", "buffers", "data buffers sent"),
    Column("accumulateBusyTimeMs", "ms", "serving records or taking a snapshot"),
    Column("accumulateIdleTimeMs", "ms", ""),
    Column("x_softBackPressuredTimeMs", "ms", "between records, output not available"),
    Column("x_hardBackPressuredTimeMs", "ms", "inside a record, waiting for a buffer"),
    Column(
        "x_finalCheckpoint",
        "",
        "first checkpoint after the end of its data (StreamTask#finalCheckpointMinId); -1: none",
    ),
    Column(
        "x_coreSlowdown",
        "",
        "how many times as long its work takes as on idle cores: mean over the run; 1 without `cluster.services: idle-core`",
    ),
    Column(
        "x_materialized",
        "bytes",
        "that materializations of its changelog write in an hour, which no checkpoint counts; -1: none",
    ),
)
SERIES = (
    Column("time", "s", "end of the sampling interval"),
    Column("vertex", "", ""),
    Column("numRecordsInPerSecond", "records/s", "sum over subtasks, over the interval"),
    Column("numBytesOutPerSecond", "bytes/s", "sum over subtasks, over the interval"),
    Column("busy", "share", "mean over subtasks of the interval"),
    Column("idle", "share", ""),
    Column("backPressured", "share", "soft and hard"),
    Column("inputQueueSize", "bytes", "received and not yet taken, sum over subtasks"),
    Column("outputQueueSize", "bytes", "written and not yet sent, sum over subtasks"),
    Column(
        "inputQueueLength",
        "buffers",
        "received and not yet taken, sum over subtasks; local channels: the sender's queue, as in Flink",
    ),
    Column("outputQueueLength", "buffers", "started and not yet sent, sum over subtasks"),
    Column(
        "backlog",
        "records",
        "sources: due and not yet emitted, sum over subtasks; 0 for other vertices and for unlimited sources",
    ),
    Column("lag", "s", "sources: time since the oldest record of the backlog was due, maximum over subtasks"),
    Column(
        "x_latency",
        "ms",
        "vertices without readers: a record left its source -> served, mean over the interval; -1: none was served",
    ),
)
COMMITS = (
    Column("checkpoint", "", "checkpoint whose completion triggered the commit; 0: the task ended without one"),
    Column("commit_timestamp", "ms", "end of the commit, when its output becomes visible; since the start of the run"),
    Column("vertex", "", "of the committer"),
    Column("index", "", "subtask index of the committer"),
    Column("epochs", "", "checkpoints whose output is committed: more than 1 after aborts or a lost notification"),
    Column("records", "records", "read by the writers for this output"),
    Column("bytes", "bytes", "in files, or read by the writers if they write none"),
    Column("files", "", ""),
    Column(
        "commit_latency",
        "ms",
        "trigger of the checkpoint -> visible; -1: nothing became visible, or there is no checkpoint",
    ),
    Column("visible_latency", "ms", "oldest of its transactions opened -> visible; -1: nothing became visible"),
    Column("again", "bool", "requested again after a restore, when all of its output was visible already"),
    Column("lost_records", "records", "of transactions that were open for longer than their timeout"),
    Column("missing_files", "", "committed files that are missing or incomplete"),
)
RECOVERIES = (
    Column("restart", "", "number of the restart"),
    Column(
        "kind",
        "",
        "task, task-manager, job-manager, checkpoints (more failed ones than tolerated), rescale or instance (a new job)",
    ),
    Column("cause", "", "the failed task or host, or the reason"),
    Column("failed", "ms", "time of the failure, since the start of the run; lost JobManager: when the tasks stopped"),
    Column("detected", "ms", "when the job went to RESTARTING"),
    Column(
        "cancelled",
        "ms",
        "when all old tasks had ended; -1 here and below: not yet, or a later failure restarted the tasks again",
    ),
    Column(
        "delayed", "ms", "when the delay of the restart strategy was over, which begins when the failure is detected"
    ),
    Column("deployed", "ms", "when the tasks had slots and were deployed, after the restart delay: download begins"),
    Column(
        "lag_at_start",
        "ms",
        "time since the oldest record that a restarted source emits next was due, when tasks start",
    ),
    Column("first_record", "ms", "first record served by a restarted task, recovered records included"),
    Column("running", "ms", "when all restarted tasks ran"),
    Column(
        "caught_up",
        "ms",
        "when no more records waited, in the logs of sources and between tasks, than usual before the failure; if the job "
        "is rescaled or starts from a snapshot: when no records waited in the logs",
    ),
    Column("downtime", "ms", "failure -> all restarted tasks run"),
    Column("tasks", "", "number of restarted tasks"),
    Column("vertices", "", "names of the vertices of the restarted tasks; empty: all tasks restart"),
    Column(
        "deployments",
        "",
        "attempts to deploy; all but the last had slots on a task manager whose loss was not detected yet",
    ),
    Column("restored_checkpoint", "", "id; 0: from the beginning"),
    Column("restored_bytes", "bytes", "state downloaded, without state on local disks"),
    Column("recovered_bytes", "bytes", "in-flight data read back"),
    Column(
        "replayed_records",
        "records",
        "emitted again: position of the sources when they stopped minus restored position",
    ),
    Column("served_again", "records", "the same of the vertices without readers; a global committer reads no records"),
)
FILES = (
    Column("owner", "", "job instance that wrote it, from 0"),
    Column("checkpoint", "", "snapshot it was written for"),
    Column("path", "", ""),
    Column("size", "bytes", ""),
    Column("scope", "", "exclusive (its checkpoint's directory), shared (the job's) or savepoint (its savepoint's)"),
    Column("physical", "", "number of the physical file that contains it (file merging); -1: it is one itself"),
    Column("job", "", "newest job instance that referenced it"),
    Column("created_by", "", "first checkpoint of that instance that referenced it"),
    Column("last_used", "", "last checkpoint of that instance that referenced it"),
    Column("deleted", "ms", "-1: not deleted"),
    Column("needed_by", "", "job/id of the snapshots retained at the end that reference it, and are lost with it"),
)
SNAPSHOTS = (
    Column("job", "", "job instance that took it, from 0"),
    Column("id", "", "checkpoint id"),
    Column("type", "", "checkpoint, full (reuses nothing), canonical or native (savepoints)"),
    Column("directory", "", "of its metadata"),
    Column("files_total", "", "files that its metadata references"),
    Column("bytes_total", "bytes", "size of these files"),
    Column("files_outside_chk_dir", "", "files in other directories than the snapshot's"),
    Column("files_outside_job_dir", "", "files in the directories of other jobs"),
    Column("owners", "", "job instances that wrote one of the files"),
    Column("chain_length", "", "number of owners that are older than the snapshot's job"),
    Column("absolute_paths", "", "files that its metadata references by an absolute path"),
    Column("self_contained", "bool", "all files are in the snapshot's directory"),
    Column("relocatable_own_dir", "bool", "restorable from a copy of the snapshot's directory alone"),
    Column("relocatable_job_dir", "", "... of its job's directory alone: yes or no; n/a for savepoints"),
    Column("relocatable_root", "bool", "... of the whole checkpoint directory of all jobs"),
    Column("restorable", "bool", "no referenced file is missing"),
    Column("would_break", "", "job/id of snapshots that are lost if this one is deleted with all files it references"),
    Column("would_break_job", "", "job/id of snapshots of other jobs that are lost if its job's directory is deleted"),
)
RESTORES = (
    Column("job", "", "job instance that started from a snapshot"),
    Column("claim", "", "claim, no-claim or legacy"),
    Column("restored_job", "", "instance that took the snapshot"),
    Column("restored_id", "", "its checkpoint id"),
    Column("restored_type", "", ""),
    Column("begun", "ms", "start of the instance"),
    Column("first_id", "", "first completed checkpoint of the instance; -1: none"),
    Column("first_type", "", ""),
    Column("first_checkpointed_size", "bytes", "written for that checkpoint"),
    Column("first_duration", "ms", "end_to_end_duration of that checkpoint"),
    Column(
        "bytes_reuploaded_first_full",
        "bytes",
        "written again because no file of the restored snapshot may be reused; 0 if files may be reused",
    ),
    Column("first_full_duration", "ms", "-1: the first checkpoint was not a full one"),
    Column(
        "time_until_old_snapshot_deletable",
        "ms",
        "begun -> no retained checkpoint of this instance needs the restored snapshot; -1: never",
    ),
    Column(
        "deletable",
        "bool",
        "at the end: the user may delete the restored snapshot without losing a newer one",
    ),
)
REQUESTS = (
    Column(
        "time",
        "s",
        "start of a second in which the object store answered a request; other kinds of storage have no rows",
    ),
    Column("put", "", "PUT and POST requests: small files, and start, parts and completion of multipart uploads"),
    Column("list", "", "LIST requests"),
    Column("get", "", "GET and HEAD requests"),
    Column("delete", "", "DELETE requests"),
    Column("refused", "", "answered with 503, as the store takes no more per second and prefix"),
    Column("written", "bytes", "in these requests"),
    Column("read", "bytes", "in these requests"),
    Column("stored", "bytes", "held at the end of the second"),
)
PATH = (
    Column("id", "", "checkpoint id; one row per part of its critical path, in order"),
    Column("part", "", "what the time is spent on"),
    Column("vertex", "", "where it is spent; empty: the coordinator"),
    Column("index", "", "subtask index; -1: the coordinator"),
    Column("upstream", "", "the subtask whose barrier is awaited; empty: no barrier"),
    Column("begin", "ns", "since the trigger"),
    Column("duration", "ns", "the parts before the last acknowledgement sum to end_to_end_duration"),
    Column("file", "", "the file that is awaited; empty: no file"),
    Column("acknowledged", "bool", "after the last acknowledgement: finalisation, notification and commit"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    "checkpoints": CHECKPOINTS,
    "subtasks": SUBTASKS,
    "tasks": TASKS,
    "series": SERIES,
    "commits": COMMITS,
    "recoveries": RECOVERIES,
    "files": FILES,
    "snapshots": SNAPSHOTS,
    "restores": RESTORES,
    "path": PATH,
    "requests": REQUESTS,
}


# ---- Building tables.


def frame(table: str, rows: Iterable[Row], only: Collection[str] | None = None) -> pd.DataFrame:
    """Return rows as a table with the columns of the schema, in its order.

    Each row has all columns except computed ones.  `only`: columns to include; None: all.
    """
    columns = [column for column in TABLES[table] if only is None or column.name in only]
    packed = PackedRows([column.name for column in columns])
    for row in rows:
        packed.add(tuple(row[column.name] if column.value is None else column.value(row) for column in columns))
    return packed.frame()


def ms(ns: int) -> float:
    """Convert a time to ms.  -1, which means "did not happen", stays -1."""
    return -1.0 if ns < 0 else ns / MS


def span_ms(begin_ns: int, end_ns: int) -> float:
    """Return the difference of two times in ms, or -1 if the end is -1."""
    return -1.0 if end_ns < 0 else (end_ns - begin_ns) / MS


def task_name(name: tuple[str, int]) -> Row:
    """Return the columns that identify a subtask, from (vertex, index)."""
    return {"vertex": name[0], "index": name[1]}

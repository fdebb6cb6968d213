"""Columns of the tables: name, type, unit, description."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.model.units import MS
from sim.results.journal import PackedRows

if TYPE_CHECKING:
    import pandas as pd


# ---- The result tables, column by column: name, unit, definition.  Documentation and column order come from here.
#
# Names, units and meaning are those of Flink's REST API where Flink has the column; ours begin with `x_`.  Where a run
# consists of several job instances, `checkpoints` to `recoveries` and `path` have one column more, `x_job`: which of
# them, from 0.  Each counts its checkpoints for itself.

Row = dict[str, Any]
"""A row of a table by column."""


class Column(NamedTuple):
    """A column of a result table."""

    name: str
    unit: str
    meaning: str
    value: Callable[[Row], Any] | None = None  # from the other columns of the row; None: it is measured


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
    Column("savepointFormat", "", "CANONICAL or NATIVE; empty: no savepoint"),
    Column(
        "x_standstill",
        "",
        "tasks that waited for each other when it expired or the run ended, so that it hung; empty: none",
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
    Column("x_pre_barrier", "ms", "prepareSnapshotPreBarrier: in no Flink field"),
    Column("x_async_queue", "ms", "part of async_duration spent waiting for the task's one asynchronous thread"),
    Column("x_hidden", "ms", "end_to_end_duration minus the durations Flink reports, each instant once"),
    Column("x_captured_input", "bytes", "part of alignment_persisted that lay at the receiver"),
    Column("x_captured_output", "bytes", "part of alignment_persisted that lay in sender queues"),
)
TASKS = (
    Column("vertex", "", ""),
    Column("index", "", "subtask index"),
    Column(
        "numRecordsIn",
        "records",
        "records served (a source: emitted), over all attempts: those served again count again",
    ),
    Column("numRecordsOut", "records", "copies written to all outputs"),
    Column("numBytesIn", "bytes", "bytes taken from the input gates"),
    Column("numBytesOut", "bytes", "bytes written to the outputs"),
    Column("numBuffersIn", "buffers", "data buffers taken"),
    Column("numBuffersOut", "buffers", "data buffers sent"),
    Column("accumulateBusyTimeMs", "ms", "serving records or working for a checkpoint"),
    Column("accumulateIdleTimeMs", "ms", ""),
    Column("x_softBackPressuredTimeMs", "ms", "between records, output not available"),
    Column("x_hardBackPressuredTimeMs", "ms", "inside a record, no buffer to be had"),
    Column(
        "x_finalCheckpoint",
        "",
        "first checkpoint after the end of its data (StreamTask#finalCheckpointMinId); -1: none",
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
    Column("outputQueueLength", "buffers", "begun and not yet sent, sum over subtasks"),
    Column(
        "backlog",
        "records",
        "sources: due and not yet emitted, sum over subtasks; 0 of others and of unlimited sources",
    ),
    Column("lag", "s", "sources: how long the oldest of them has been due, maximum over subtasks"),
    Column(
        "x_latency",
        "ms",
        "of a vertex without readers: a record left its source -> served, mean over the interval; -1: none was",
    ),
)
COMMITS = (
    Column("checkpoint", "", "whose completion the commit answers; 0: none, the task ended without waiting for one"),
    Column(
        "commit_timestamp", "ms", "end of the commit, since the start of the run: the output is visible from now on"
    ),
    Column("vertex", "", "of the committer"),
    Column("index", "", "subtask index of the committer"),
    Column("epochs", "", "checkpoints whose output it covers: more than 1 after aborted ones or a lost notification"),
    Column("records", "records", "read by the writers for this output"),
    Column("bytes", "bytes", "in files, or read by the writers if they write none"),
    Column("files", "", ""),
    Column(
        "commit_latency",
        "ms",
        "trigger of the checkpoint -> visible; -1: nothing became visible, or there is no checkpoint",
    ),
    Column("visible_latency", "ms", "oldest of its transactions opened -> visible; -1: nothing became visible"),
    Column("again", "bool", "asked for again after a restore: what is visible already is ignored, not committed twice"),
    Column("lost_records", "records", "of transactions open for longer than their timeout"),
    Column("missing_files", "", "named by the output and not there in full"),
)
RECOVERIES = (
    Column("restart", "", "number of the restart"),
    Column(
        "kind",
        "",
        "task, task-manager, job-manager, checkpoints (more failed ones than tolerated), rescale or instance (a new job)",
    ),
    Column("cause", "", "in words"),
    Column(
        "failed", "ms", "when it happened, since the start of the run; of a lost JobManager: when the tasks stopped"
    ),
    Column("detected", "ms", "when the job went to RESTARTING"),
    Column(
        "cancelled",
        "ms",
        "when none of the restarted tasks ran; -1 here and below: not yet, or a later failure took them over",
    ),
    Column("deployed", "ms", "restart delay over, slots there, tasks deployed: download begins"),
    Column("first_record", "ms", "first record a restarted task served, recovered ones included"),
    Column("running", "ms", "when all of them ran"),
    Column(
        "caught_up",
        "ms",
        "when no more records waited, in the logs of sources and between tasks, than usual before the failure",
    ),
    Column("downtime", "ms", "failure -> all of them run"),
    Column("tasks", "", "restarted"),
    Column(
        "deployments",
        "",
        "tried until the tasks had slots: before, some were on a task manager that was gone and not missed yet",
    ),
    Column("restored_checkpoint", "", "id; 0: from the beginning"),
    Column("restored_bytes", "bytes", "state downloaded; what lies on local disks is not"),
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
    Column("job", "", "newest job instance that named it; the next two are checkpoints of that one"),
    Column("created_by", "", "first checkpoint that named it"),
    Column("last_used", "", "last checkpoint that named it"),
    Column("deleted", "ms", "-1: it is there"),
    Column("needed_by", "", "job/id of the snapshots kept at the end that name it: what is lost with it"),
)
SNAPSHOTS = (
    Column("job", "", "job instance that took it, from 0"),
    Column("id", "", "checkpoint id"),
    Column("type", "", "checkpoint, full (reuses nothing), canonical or native (savepoints)"),
    Column("directory", "", "of its metadata"),
    Column("files_total", "", "files its metadata names"),
    Column("bytes_total", "bytes", "in them"),
    Column("files_outside_chk_dir", "", "in other directories than its own"),
    Column("files_outside_job_dir", "", "in the directories of other jobs"),
    Column("owners", "", "job instances that wrote one of the files"),
    Column("chain_length", "", "owners that are older than its own job"),
    Column("absolute_paths", "", "files its metadata names by an absolute path"),
    Column("self_contained", "bool", "every file lies in its own directory"),
    Column("relocatable_own_dir", "bool", "restorable from a copy of its own directory alone"),
    Column("relocatable_job_dir", "", "... of its job's directory alone: yes or no; n/a: a savepoint lies in none"),
    Column("relocatable_root", "bool", "... of the whole checkpoint directory, all jobs'"),
    Column("restorable", "bool", "every file its metadata names is there"),
    Column("would_break", "", "job/id of what is lost with it if it is disposed of, all files its metadata names"),
    Column("would_break_job", "", "job/id of what other jobs lose if the directory of its job is removed"),
)
RESTORES = (
    Column("job", "", "job instance that began from a snapshot"),
    Column("claim", "", "claim, no-claim or legacy"),
    Column("restored_job", "", "instance that took the snapshot"),
    Column("restored_id", "", "its checkpoint id"),
    Column("restored_type", "", ""),
    Column("begun", "ms", "when the instance began"),
    Column("first_id", "", "its first completed checkpoint; -1: none"),
    Column("first_type", "", ""),
    Column("first_checkpointed_size", "bytes", "written for it"),
    Column("first_duration", "ms", "its end_to_end_duration"),
    Column(
        "bytes_reuploaded_first_full",
        "bytes",
        "written again because nothing of the restored snapshot may be reused; 0 if it may",
    ),
    Column("first_full_duration", "ms", "-1: the first checkpoint was not a full one"),
    Column(
        "time_until_old_snapshot_deletable",
        "ms",
        "begun -> nothing this instance keeps needs the restored snapshot; -1: never",
    ),
    Column(
        "deletable",
        "bool",
        "at the end: nothing newer would be lost with the restored snapshot, and it is the user's to delete",
    ),
)
REQUESTS = (
    Column(
        "time",
        "s",
        "begin of a second in which the object store answered a request; other kinds of storage have no rows",
    ),
    Column("put", "", "PUT and POST requests: small files, and beginning, parts and end of large ones"),
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
    Column("part", "", "what the time is spent on, in words"),
    Column("vertex", "", "where; empty: the coordinator"),
    Column("index", "", "subtask index; -1: the coordinator"),
    Column("upstream", "", "the subtask whose barrier is awaited; empty: none is"),
    Column("begin", "ns", "since the trigger"),
    Column("duration", "ns", "the parts before the last acknowledgement sum to end_to_end_duration"),
    Column("file", "", "the file that is awaited; empty: none is"),
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


# ---- Rows by column name -> a table with the columns of the schema, in its order.


def frame(table: str, rows: Iterable[Row], only: Collection[str] | None = None) -> pd.DataFrame:
    """The table.  Every column is in every row, or follows from the others.  `only`: the columns to fill; None: all."""
    columns = [column for column in TABLES[table] if only is None or column.name in only]
    packed = PackedRows([column.name for column in columns])
    for row in rows:
        packed.add(tuple(row[column.name] if column.value is None else column.value(row) for column in columns))
    return packed.frame()


def ms(ns: int) -> float:
    """A time in ms.  -1 stays -1: it did not happen."""
    return -1.0 if ns < 0 else ns / MS


def span_ms(begin_ns: int, end_ns: int) -> float:
    """From one time to another in ms; -1: there was no end."""
    return -1.0 if end_ns < 0 else (end_ns - begin_ns) / MS


def task_name(name: tuple[str, int]) -> Row:
    """The two columns that say which subtask a row is about."""
    return {"vertex": name[0], "index": name[1]}

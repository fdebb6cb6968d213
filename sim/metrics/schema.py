"""The result tables, column by column: name, unit, definition.  Documentation and column order come from here.

Names, units and meaning are those of Flink's REST API where Flink has the column; ours begin with `x_`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CHECKPOINTS", "COMMITS", "SERIES", "SUBTASKS", "TABLES", "TASKS", "Column"]


class Column(NamedTuple):
    name: str
    unit: str
    meaning: str


CHECKPOINTS = (
    Column("id", "", "checkpoint id"),
    Column("status", "", "IN_PROGRESS, COMPLETED or FAILED"),
    Column("checkpoint_type", "", "CHECKPOINT, or UNALIGNED_CHECKPOINT if any subtask persisted in-flight data"),
    Column("trigger_timestamp", "ms", "when the coordinator decided to trigger, since the start of the run"),
    Column("latest_ack_timestamp", "ms", "last acknowledgement so far; -1: none"),
    Column("end_to_end_duration", "ms", "last acknowledgement - trigger (failed: failure - trigger); without _metadata"),
    Column("checkpointed_size", "bytes", "written for this checkpoint: state and in-flight data"),
    Column("state_size", "bytes", "full size referenced"),
    Column("processed_data", "bytes", "polled by aligning subtasks"),
    Column("persisted_data", "bytes", "in-flight data stored"),
    Column("alignment_buffered", "bytes", "always 0, as in Flink"),
    Column("num_subtasks", "", "subtasks that must acknowledge"),
    Column("num_acknowledged_subtasks", "", ""),
    Column("failure_message", "", "Flink's CheckpointFailureReason; empty unless FAILED"),
    Column("x_finalization", "ms", "last acknowledgement -> completed (_metadata durable)"),
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
    Column("numRecordsIn", "records", "records served (a source: emitted)"),
    Column("numRecordsOut", "records", "copies written to all outputs"),
    Column("numBytesIn", "bytes", "bytes taken from the input gates"),
    Column("numBytesOut", "bytes", "bytes written to the outputs"),
    Column("numBuffersIn", "buffers", "data buffers taken"),
    Column("numBuffersOut", "buffers", "data buffers sent"),
    Column("accumulateBusyTimeMs", "ms", "serving records or working for a checkpoint"),
    Column("accumulateIdleTimeMs", "ms", ""),
    Column("x_softBackPressuredTimeMs", "ms", "between records, output not available"),
    Column("x_hardBackPressuredTimeMs", "ms", "inside a record, no buffer to be had"),
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
)
COMMITS = (
    Column("checkpoint", "", "whose completion the commit answers"),
    Column("time", "ms", "end of the commit: the output is visible from now on"),
    Column("vertex", "", "of the committer"),
    Column("index", "", "subtask index of the committer"),
    Column("epochs", "", "checkpoints whose output it covers: more than 1 after aborted ones or a lost notification"),
    Column("records", "records", "read by the writers for this output"),
    Column("bytes", "bytes", "in files, or read by the writers if they write none"),
    Column("files", "", ""),
    Column("commit_latency", "ms", "trigger of the checkpoint -> visible"),
    Column("visible_latency", "ms", "oldest of its transactions opened -> visible"),
    Column("again", "bool", "after a restore: what was visible before is ignored"),
    Column("lost_records", "records", "of transactions open for longer than their timeout"),
    Column("missing_files", "", "named by the output and not there in full"),
)
TABLES = {"checkpoints": CHECKPOINTS, "subtasks": SUBTASKS, "tasks": TASKS, "series": SERIES, "commits": COMMITS}

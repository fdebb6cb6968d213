"""Why a checkpoint fails, and which of these failures count (CheckpointFailureReason, CheckpointFailureManager)."""

from __future__ import annotations

from enum import Enum


class FailureReason(Enum):
    """Flink's names."""

    # before a checkpoint has an id
    PERIODIC_SCHEDULER_SHUTDOWN = "Periodic checkpoint scheduler is shut down."
    TOO_MANY_CHECKPOINT_REQUESTS = "The maximum number of queued checkpoint requests exceeded"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The minimum time between checkpoints is still pending."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are currently running."
    NO_JOB_MANAGER = "There is no JobManager: the client gets an error."  # ours: Flink's client cannot connect
    IO_EXCEPTION = "An Exception occurred while triggering the checkpoint. IO-problem detected."
    # a pending checkpoint
    TRIGGER_CHECKPOINT_FAILURE = "Trigger checkpoint failure."
    CHECKPOINT_EXPIRED = "Checkpoint expired before completing."
    CHECKPOINT_SUBSUMED = "Checkpoint has been subsumed."
    CHECKPOINT_DECLINED = "Checkpoint was declined."
    CHECKPOINT_DECLINED_TASK_NOT_READY = "Checkpoint was declined (tasks not ready)"
    CHECKPOINT_DECLINED_TASK_CLOSING = "Checkpoint was declined (task is closing)"
    CHECKPOINT_DECLINED_SUBSUMED = "Checkpoint was canceled because a barrier from newer checkpoint was received."
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "Task received cancellation from one of its inputs"
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "Checkpoint was declined because one input stream is finished"
    CHECKPOINT_ASYNC_EXCEPTION = "Asynchronous task checkpoint failed."
    CHANNEL_STATE_SHARED_STREAM_EXCEPTION = "The checkpoint was aborted due to exception of other subtasks sharing the ChannelState file."
    FINALIZE_CHECKPOINT_FAILURE = "Failure to finalize checkpoint."
    CHECKPOINT_COORDINATOR_SHUTDOWN = "CheckpointCoordinator shutdown."
    CHECKPOINT_COORDINATOR_SUSPEND = "Checkpoint Coordinator is suspending."
    JOB_FAILOVER_REGION = "FailoverRegion is restarting."


COUNTED = frozenset(
    {
        FailureReason.IO_EXCEPTION,
        FailureReason.CHECKPOINT_ASYNC_EXCEPTION,
        FailureReason.CHECKPOINT_DECLINED,
        FailureReason.CHECKPOINT_EXPIRED,
        FailureReason.FINALIZE_CHECKPOINT_FAILURE,
    }
)
"""Failures that count against tolerable-failed-checkpoints; every other reason is ignored."""

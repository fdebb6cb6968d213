"""Why a checkpoint fails, and which of these failures count (CheckpointFailureReason, CheckpointFailureManager)."""

from __future__ import annotations

from enum import Enum

COUNTS = True


class FailureReason(Enum):
    """Flink's names and texts; a reason that `counts` does so against tolerable-failed-checkpoints."""

    def __init__(self, text: str, counts: bool = False) -> None:
        self.text = text
        self.counts = counts

    # before a checkpoint has an id
    TOO_MANY_CHECKPOINT_REQUESTS = "The maximum number of queued checkpoint requests exceeded"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "The minimum time between checkpoints is still pending."
    NOT_ALL_REQUIRED_TASKS_RUNNING = "Not all required tasks are currently running."
    NO_JOB_MANAGER = "There is no JobManager: the client gets an error."  # ours: Flink's client cannot connect
    IO_EXCEPTION = "An Exception occurred while triggering the checkpoint. IO-problem detected.", COUNTS
    # a pending checkpoint
    CHECKPOINT_EXPIRED = "Checkpoint expired before completing.", COUNTS
    CHECKPOINT_SUBSUMED = "Checkpoint has been subsumed."
    CHECKPOINT_DECLINED = "Checkpoint was declined.", COUNTS
    CHECKPOINT_DECLINED_TASK_CLOSING = "Checkpoint was declined (task is closing)"
    CHECKPOINT_DECLINED_SUBSUMED = "Checkpoint was canceled because a barrier from newer checkpoint was received."
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "Task received cancellation from one of its inputs"
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "Checkpoint was declined because one input stream is finished"
    CHECKPOINT_ASYNC_EXCEPTION = "Asynchronous task checkpoint failed.", COUNTS
    FINALIZE_CHECKPOINT_FAILURE = "Failure to finalize checkpoint.", COUNTS
    CHECKPOINT_COORDINATOR_SHUTDOWN = "CheckpointCoordinator shutdown."
    CHECKPOINT_COORDINATOR_SUSPEND = "Checkpoint Coordinator is suspending."
    JOB_FAILOVER_REGION = "FailoverRegion is restarting."

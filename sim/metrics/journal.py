"""What happened, in order: an append-only list of rows that every table, story and picture is made from."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Entry", "Happening", "Journal"]


class Happening(StrEnum):
    """Each kind of row.  What `number` and `detail` mean is said beside it; -1 and 0 mean nothing elsewhere."""

    TRIGGERED = "triggered"  # the coordinator took the trigger timestamp; number: tasks that have finished and need not acknowledge
    TASKS_TRIGGERED = "tasks triggered"  # the calls set out to the tasks that begin
    REFUSED = "refused"  # a trigger that never got an id
    TRIGGER_RECEIVED = "trigger received"  # the task thread executes the coordinator's call
    BARRIER_ARRIVED = "barrier arrived"  # the first or last one of an input gate; number: channel
    SNAPSHOT_BEGUN = "snapshot begun"  # all phases follow in this task; number: 1 if unaligned
    BARRIER_FORWARDED = "barrier forwarded"  # number: bytes of output captured
    OUTPUT_CONVERTED = "output converted"  # number: bytes of output captured
    INPUT_PRIORITISED = "input prioritised"
    SYNC_FINISHED = "sync finished"
    INPUTS_RESUMED = "inputs resumed"
    IN_FLIGHT_COMPLETE = "in-flight data complete"  # nothing is added to the channel state of this task any more
    STATE_WRITTEN = "state written"  # number: bytes
    CHANNEL_STATE_WRITTEN = "channel state written"  # number: bytes
    ASYNC_FINISHED = "async finished"
    ACKNOWLEDGED = "acknowledged"
    STATE_UNKNOWN = "state unknown"  # an acknowledgement names files that are gone: it comes to nothing
    DECLINED = "declined"
    LAST_ACKNOWLEDGED = "last acknowledged"
    COMPLETED = "completed"  # _metadata is durable
    ABORTED = "aborted"  # detail: the reason
    CANCELLATION_FORWARDED = "cancellation forwarded"
    NOTIFIED_COMPLETE = "notified complete"
    NOTIFIED_ABORTED = "notified aborted"
    COMMITTED = "committed"  # number: records made visible
    TRANSACTION_LOST = "transaction lost"  # number: records; it was open for longer than its timeout
    FILE_MISSING = "file missing"  # number: files named by what was committed and not there in full
    END_OF_DATA = "end of data"  # detail: drain or no-drain
    TASK_FINISHED = "task finished"
    JOB_FINISHED = "job finished"
    JOB_FAILED = "job failed"  # detail: the reason
    TASK_FAILED = "task failed"  # detail: why
    TASK_MANAGER_LOST = "task manager lost"  # number: which
    JOB_MANAGER_LOST = "job manager lost"
    GIVEN_UP = "given up"  # the restart strategy allows no other restart; detail: why it would be needed
    JOB_RESTARTING = "job restarting"  # number: of the restart; detail: why
    JOB_RESTORED = "job restored"  # tasks are deployed with the state of this checkpoint; number: of the restart
    TASK_RESTORED = "task restored"  # its state is there; number: bytes
    TASK_RUNS = "task runs"  # its recovered input is read
    JOB_RECOVERED = "job recovered"  # all tasks run
    FAULT = "fault"  # detail: storage, network or a slow task, and for how long


class Entry(NamedTuple):
    time_ns: int
    happening: Happening
    checkpoint: int = -1
    task: int = -1  # -1: the coordinator
    number: int = 0
    detail: str = ""


class Journal(list[Entry]):
    def note(self, time_ns: int, happening: Happening, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = "") -> None:
        self.append(Entry(time_ns, happening, checkpoint, task, number, detail))

    def story(self, checkpoint: int) -> list[Entry]:
        """Everything about one checkpoint, in order."""
        return [row for row in self if row.checkpoint == checkpoint]

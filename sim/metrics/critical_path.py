"""The critical path of one checkpoint: the chain of waits that ends with its last acknowledgement, each begun by the end of the one before.

It is found backwards, from the journal: what ended last is followed to what it had waited for, until the trigger is reached.
The parts lie end to end, so they sum to the duration to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class PathKind(StrEnum):
    """The kind of a part of the path: what its time is spent on."""

    TRIGGER = "trigger"  # the coordinator prepares, and its calls set out
    TASK_THREAD = "task thread"  # the call waits for the thread of a task that begins
    QUEUE = "behind data"  # the barrier is in a channel
    TIMEOUT = "until the timeout"  # the barrier is in a channel and waits there until the alignment timeout lets it overtake
    ALIGNMENT = "alignment"  # the first barrier of a task is there, its last is in a channel
    END_OF_INPUT = "end of input"  # a task waits for an input that ends instead of sending a barrier
    FLUSH = "file before barrier"
    PRE_BARRIER = "work before barrier"
    SYNC = "sync"
    ASYNC_QUEUE = "async queue"  # the one asynchronous thread of the task is at work for an older checkpoint
    ASYNC_WORK = "async work"
    UPLOAD = "upload"
    OUTPUT = "own output"  # its own barriers must leave the output queues before channel state is complete
    CHANNEL_STATE = "channel state"
    ACKNOWLEDGEMENT = "acknowledgement"
    FINALISATION = "finalisation"
    NOTIFICATION = "notification"  # the committer hears of the completion when its thread has time
    COMMIT = "commit"


class Graph(NamedTuple):
    """The channels and tasks that a path can lead along."""

    writers: Sequence[int]  # by channel: task
    readers: Sequence[int]  # by channel: task
    groups: Sequence[int]  # by task: tasks of one number share their files of channel state
    timeout_ns: int | None = None  # of the alignment, from the trigger on


class FileSpan(NamedTuple):
    """A file that a snapshot waits for, from its first byte until it is durable."""

    id: int
    created_ns: int
    durable_ns: int | None  # None: it never was


class PathPart(NamedTuple):
    """A part of a critical path."""

    kind: PathKind
    begin_ns: int
    end_ns: int
    task: int = -1  # -1: the coordinator
    channel: int = -1  # the channel that the barrier came through
    file: int = -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The critical path of a checkpoint.

    `parts` reach from the trigger to the last acknowledgement, or to the failure; `after` from there to the last commit.
    """

    checkpoint: int
    parts: tuple[PathPart, ...]
    after: tuple[PathPart, ...] = ()
    is_open: bool = False  # the checkpoint was given up: the last part would have been longer, by an unknown time

    @property
    def begin_ns(self) -> int:
        """When the first part begins.  ValueError: there is none.

        `parts` is empty where all tasks acknowledge in the instant of the trigger.
        """
        return min(part.begin_ns for part in (*self.parts[:1], *self.after[:1]))

    @property
    def duration_ns(self) -> int:
        """The time from the first part to the last, which is `end_to_end_duration` in the table of checkpoints."""
        return self.parts[-1].end_ns - self.parts[0].begin_ns if self.parts else 0


def file_parts(files: Sequence[FileSpan], begin_ns: int, end_ns: int, task: int, work: PathKind, upload: PathKind) -> list[PathPart]:
    """The files of one task that make a phase as long as it is, the last one first; between files it does other work.

    Found backwards: the file that ends last, then the latest file that ended before it began.
    """
    parts: list[PathPart] = []
    spans = [(min(file.durable_ns if file.durable_ns is not None else end_ns, end_ns), file) for file in files if file.created_ns < end_ns]
    while end_ns > begin_ns:
        earlier = [(end, -file.created_ns, file) for end, file in spans if begin_ns < end <= end_ns and file.created_ns < end]
        end, _, file = max(earlier, default=(begin_ns, 0, None), key=lambda row: row[:2])
        if end < end_ns or file is None:
            parts.append(PathPart(work, end, end_ns, task))
            end_ns = end
        else:
            created_ns = max(begin_ns, file.created_ns)
            parts.append(PathPart(upload, created_ns, end_ns, task, file=file.id))
            end_ns = created_ns
    return parts

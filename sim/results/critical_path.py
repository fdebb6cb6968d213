"""The critical path of a checkpoint: the chain of waits that determines its duration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sim.model.frozen import frozen
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats

# ---- The critical path of a checkpoint: the chain of waits that ends with its last acknowledgement. Each wait begins when
# the previous one ends:
#
#   trigger   behind data   alignment  sync  async work  upload   acknowledgement
#   |---------|-------------|----------|-----|-----------|--------|--|
#
# The search reads the journal and goes backwards: it starts with the last acknowledgement and proceeds from each event to
# the event that it waited for, until it reaches the trigger. The parts are contiguous, so they add up to the duration to
# the nanosecond.


class PathKind(StrEnum):
    """What the time of a part of the path is spent on."""

    TRIGGER = "trigger"  # the coordinator prepares the checkpoint and sends the calls
    TASK_THREAD = "task thread"  # the call waits for the thread of a source task
    QUEUE = "behind data"  # the barrier is in a channel
    TIMEOUT = "until the timeout"  # the barrier is in a channel until the alignment timeout lets it overtake
    ALIGNMENT = "alignment"  # the first barrier of a task has arrived, the last one is in a channel
    END_OF_INPUT = "end of input"  # a task waits for an input that ends instead of sending a barrier
    FLUSH = "file before barrier"  # the operator writes a file before it forwards the barrier
    PRE_BARRIER = "work before barrier"  # other work of the operator in prepareSnapshotPreBarrier
    SYNC = "sync"
    ASYNC_QUEUE = "async queue"  # the task's asynchronous thread is busy with an older checkpoint
    ASYNC_WORK = "async work"  # work of the asynchronous part, except writing files
    UPLOAD = "upload"  # a file of the asynchronous part is written
    OUTPUT = "own output"  # the task's barriers must leave its output queues before channel state is complete
    CHANNEL_STATE = "channel state"  # in-flight data is written, after it is complete
    ACKNOWLEDGEMENT = "acknowledgement"
    # of a real job (`sim.jobs.history.path`): Flink reports no times of a subtask that has not acknowledged
    UNREPORTED = "no acknowledgement"
    FINALISATION = "finalisation"  # the coordinator writes the metadata and completes the checkpoint
    NOTIFICATION = "notification"  # the notification travels and waits for the thread of the committer
    COMMIT = "commit"


class Graph(NamedTuple):
    """The tasks of a job and the channels between them.  A writer is the upstream task of a channel, a reader the downstream one."""

    writer: Callable[[int], int]  # channel -> upstream task
    inputs: Callable[[int], Sequence[int]]  # task -> its input channels
    groups: Sequence[int]  # by task: number of its group; tasks of a group share their channel state files
    timeout_ns: int | None = None  # aligned checkpoint timeout, counted from the trigger; None if there is none


class FileSpan(NamedTuple):
    """The time in which a file of a snapshot is written."""

    id: int
    created_ns: int  # first byte
    durable_ns: int | None  # None if it was never durable


class PathPart(NamedTuple):
    """A part of a critical path."""

    kind: PathKind
    begin_ns: int
    end_ns: int
    task: int = -1  # -1 for the coordinator
    channel: int = -1  # channel of the barrier that is waited for, else -1
    file: int = -1  # id of the file that is waited for, else -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


@frozen
class CriticalPath:
    """The critical path of a checkpoint."""

    checkpoint: int
    # from the trigger to the last acknowledgement, to the failure, or, if the checkpoint is in progress, to the end of the run
    parts: tuple[PathPart, ...]
    after: tuple[PathPart, ...] = ()  # from the last acknowledgement to the last commit
    is_open: bool = False  # the checkpoint did not complete: the duration of the last part is a lower bound

    @property
    def begin_ns(self) -> int:
        """Return the start of the first part.

        `parts` is empty if all tasks acknowledge at the time of the trigger.  Raises ValueError if `after` is empty, too.
        """
        return min(part.begin_ns for part in (*self.parts[:1], *self.after[:1]))

    @property
    def duration_ns(self) -> int:
        """Return the duration of `parts`, which equals `end_to_end_duration` in the table of checkpoints."""
        return self.parts[-1].end_ns - self.parts[0].begin_ns if self.parts else 0


def file_parts(
    files: Sequence[FileSpan], begin_ns: int, end_ns: int, task: int, work: PathKind, upload: PathKind
) -> list[PathPart]:
    """Split a phase of one task into writing files and other work.  Return the parts, the last one first.

    The search goes backwards: it selects the file that is durable last, then the file that was durable last before that
    one was created, and so on.  Gaps are other work.  `work`, `upload`: kinds of the returned parts.
    """
    parts: list[PathPart] = []
    spans = [
        (min(file.durable_ns if file.durable_ns is not None else end_ns, end_ns), file)
        for file in files
        if file.created_ns < end_ns
    ]
    while end_ns > begin_ns:
        # of files that are durable at the same time, the one that was created first
        earlier = [
            (end, -file.created_ns, file) for end, file in spans if begin_ns < end <= end_ns and file.created_ns < end
        ]
        end, _, file = max(earlier, default=(begin_ns, 0, None), key=lambda row: row[:2])
        if end < end_ns or file is None:
            parts.append(PathPart(work, end, end_ns, task))
            end_ns = end
        else:
            created_ns = max(begin_ns, file.created_ns)
            parts.append(PathPart(upload, created_ns, end_ns, task, file=file.id))
            end_ns = created_ns
    return parts


# ---- What a source reports about a checkpoint: the journal of a run, or Flink's statistics about a real job.


@dataclass(slots=True)
class CheckpointTrace:
    """The events of one checkpoint, of a run or of a real job.  What its source does not report is missing."""

    status: str  # COMPLETED, FAILED or IN_PROGRESS
    trigger_ns: int
    end_ns: int  # of the path: last acknowledgement, failure, or end of the run
    tasks: Sequence[int]  # those that are to acknowledge
    times: Mapping[int, Mapping[EventType, int]]  # task, -1 for the coordinator -> time of the first event of each kind
    # (task, time) -> (time, channel) of the barriers that had arrived at the task by then, in order
    arrivals: Callable[[int, int], Sequence[tuple[int, int]]]
    beginnings: Mapping[int, int]  # task -> number of barriers that had arrived when its snapshot began; default: all
    acknowledged: tuple[int, int] = (-1, 0)  # (task, time) of the last acknowledgement
    async_queue_ns: Callable[[int], int] = lambda _: 0  # task -> wait for its asynchronous thread


FilesOf = Callable[[int, int, int], Sequence[FileSpan]]
"""(task, begin [ns], end [ns]) -> files of the task that were being written in that period."""


def critical_path(
    stats: CheckpointStats,
    entries: Iterable[Entry],
    graph: Graph,
    files: FilesOf = lambda *_: (),
    commits: Mapping[int, int] | None = None,
    *,
    ended_ns: int,
) -> CriticalPath:
    """Return the critical path of one checkpoint of a run.

    `entries`: all journal entries of the checkpoint, in order.  `files`: see `FilesOf`.  `commits`: committing task ->
    duration of its commit [ns].  `ended_ns`: end of the run, which is also the end of the path of a checkpoint in progress.
    """
    times: defaultdict[int, dict[EventType, int]] = defaultdict(dict)
    arrivals: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    beginnings: dict[int, int] = {}
    acknowledged = committed = (-1, 0)
    until_ns = stats.failed_ns if stats.status == "FAILED" else None
    for entry in entries:
        if until_ns is not None and entry.time_ns > until_ns and entry.event_type is not EventType.COMMITTED:
            continue  # later events of tasks, such as late acknowledgements, decided nothing
        times[entry.task].setdefault(entry.event_type, entry.time_ns)
        match entry.event_type:
            case EventType.BARRIER_ARRIVED:
                arrivals[entry.task].append((entry.time_ns, entry.number))
            case EventType.SNAPSHOT_BEGUN:
                beginnings[entry.task] = len(arrivals[entry.task])
            case EventType.ACKNOWLEDGED if entry.time_ns <= stats.latest_ack_ns:
                acknowledged = entry.task, entry.time_ns
            case EventType.PART_REPLACED if stats.status == "COMPLETED":
                until_ns = entry.time_ns
            case EventType.COMMITTED:
                committed = entry.task, entry.time_ns
    status, end_ns = stats.status, {"COMPLETED": acknowledged[1], "FAILED": stats.failed_ns}.get(stats.status, ended_ns)
    if (
        status == "COMPLETED" and until_ns is not None and until_ns > end_ns
    ):  # a regional checkpoint waits for what fails there, too
        status, end_ns = "FAILED", until_ns
    subtasks, tasks = stats.subtasks, range(len(graph.groups))

    def arrivals_until(task: int, time_ns: int) -> list[tuple[int, int]]:
        return [arrival for arrival in arrivals[task] if arrival[0] <= time_ns]

    def async_queue_ns(task: int) -> int:
        return subtasks[task].async_queue_ns if task in subtasks else 0

    trace = CheckpointTrace(
        status, stats.trigger_ns, end_ns, tasks, times, arrivals_until, beginnings, acknowledged, async_queue_ns
    )
    is_open, is_known = stats.status != "COMPLETED", bool(subtasks or any(times.values()))
    parts = find_path(trace, graph, files) if is_known else ()
    return CriticalPath(stats.number, parts, () if is_open else _after(stats, *committed, commits or {}), is_open)


def _after(stats: CheckpointStats, committer: int, visible_ns: int, commits: Mapping[int, int]) -> tuple[PathPart, ...]:
    """Return the parts after the last acknowledgement: finalisation, and the notification and commit of the last committer."""
    completed_ns = stats.completed_ns
    parts = [PathPart(PathKind.FINALISATION, stats.latest_ack_ns, completed_ns)]
    if committer >= 0:
        commit_start_ns = max(completed_ns, visible_ns - commits.get(committer, 0))
        parts += [
            PathPart(PathKind.NOTIFICATION, completed_ns, commit_start_ns, committer),
            PathPart(PathKind.COMMIT, commit_start_ns, visible_ns, committer),
        ]
    return tuple(part for part in parts if part.duration_ns > 0)


# ---- The search.

_STAGES = (
    EventType.ASYNC_FINISHED,
    EventType.STATE_WRITTEN,
    EventType.SYNC_FINISHED,
    EventType.BARRIER_FORWARDED,
    EventType.SNAPSHOT_BEGUN,
)
"""Events that end a stage of a task's snapshot, the last one first."""


def find_path(trace: CheckpointTrace, graph: Graph, files: FilesOf = lambda *_: ()) -> tuple[PathPart, ...]:
    """Return the parts of the critical path of a checkpoint, from its trigger to its end.  `files`: see `FilesOf`."""
    search = _Search(trace, graph, files)
    if trace.status == "COMPLETED":
        search.from_last_acknowledgement()
    else:
        search.from_interruption()
    return search.finish()


class _Search:
    """The search for the path of one checkpoint, from its end backwards."""

    def __init__(self, trace: CheckpointTrace, graph: Graph, files: FilesOf) -> None:
        self.trace = trace
        self.graph = graph
        self.files = files
        self._parts: list[PathPart] = []  # the last one first
        self._writers: dict[int, set[int]] = {}  # task -> upstream tasks, see `_writers_of`
        # (writer, time at which it sent its barrier): where the search continues; None if it has ended
        self._upstream_of_barrier: tuple[int, int] | None = None

    def from_last_acknowledgement(self) -> None:
        """Search backwards from the last acknowledgement."""
        task, end_ns = self.trace.acknowledged
        finished_ns = self._time_of(EventType.ASYNC_FINISHED, task, end_ns)
        self._add(PathKind.ACKNOWLEDGEMENT, finished_ns, end_ns, task)
        self._before_acknowledgement(task, finished_ns)

    def from_interruption(self) -> None:
        """Search backwards from the failure of the checkpoint or the end of the run.

        The search starts at a task that declined, or else at one that had not acknowledged and waited for no other task.
        Of several such tasks, it is the one that has been in its stage for longest.
        """
        end_ns = self.trace.end_ns
        declined = [task for task in self.trace.tasks if EventType.DECLINED in self._times(task)]
        unacknowledged = [task for task in self.trace.tasks if EventType.ACKNOWLEDGED not in self._times(task)]
        blocking = (
            declined
            or [task for task in unacknowledged if not self._is_waiting_for_another_task(task)]
            or unacknowledged
        )
        if blocking:
            self._add_interrupted_part(min(blocking, key=lambda task: (self._stage_begin_ns(task), task)), end_ns)
        else:  # metadata was being written
            self._add(PathKind.FINALISATION, self.trace.acknowledged[1], end_ns)
            self.from_last_acknowledgement()

    def _is_waiting_for_another_task(self, task: int) -> bool:
        """Return True if the next stage of this task waits for a barrier or in-flight data of another task."""
        times, is_late = self._times(task), not all(map(self._has_forwarded, self._writers_of(task)))
        if EventType.SNAPSHOT_BEGUN not in times:
            return is_late
        if EventType.STATE_WRITTEN not in times or EventType.ASYNC_FINISHED in times:
            return False
        if EventType.IN_FLIGHT_COMPLETE not in times:
            return is_late
        return any(EventType.IN_FLIGHT_COMPLETE not in self._times(member) for member in self._group(task))

    def _stage_begin_ns(self, task: int) -> int:
        """Return the time [ns] at which the task entered its current stage."""
        if (stage := self._stage(task)) is not None:
            return self._times(task)[stage]
        sent = [
            self._times(writer)[EventType.BARRIER_FORWARDED]
            for writer in self._writers_of(task)
            if self._has_forwarded(writer)
        ]
        return max(sent, default=self._dispatched_ns)

    def _add_interrupted_part(self, task: int, end_ns: int) -> None:
        """Add the part that the failure or the end of the run interrupted, and the parts before it."""
        match self._stage(task):
            case None if self._writers_of(task):
                self._before_missing_barrier(task, end_ns)
            case None:
                self._before_trigger(task, end_ns)
            case EventType.SNAPSHOT_BEGUN:
                self._before_forward(task, end_ns)
            case EventType.BARRIER_FORWARDED:
                self._before_sync_end(task, end_ns)
            case EventType.SYNC_FINISHED:
                self._before_state_written(task, end_ns)
            case EventType.STATE_WRITTEN if EventType.IN_FLIGHT_COMPLETE in self._times(task):
                self._before_channel_state(task, end_ns)
            case EventType.STATE_WRITTEN if len(self.trace.arrivals(task, end_ns)) < len(self.graph.inputs(task)):
                self._before_missing_barrier(task, end_ns)
            case EventType.STATE_WRITTEN:
                self._before_in_flight_complete(task, end_ns)
            case _:
                finished_ns = self._times(task)[EventType.ASYNC_FINISHED]
                self._add(PathKind.ACKNOWLEDGEMENT, finished_ns, end_ns, task)
                self._before_acknowledgement(task, finished_ns)

    # Each method `_before_X` adds the parts that precede the event X of a task, which happened at `end_ns`.

    def _before_acknowledgement(self, task: int, end_ns: int) -> None:
        """Continue with the state or the channel state, whichever was written last."""
        channel_state_ns = self._time_of(EventType.CHANNEL_STATE_WRITTEN, task, -1)
        if channel_state_ns == end_ns and self._time_of(EventType.STATE_WRITTEN, task, end_ns) < end_ns:
            self._before_channel_state(task, end_ns)
        else:
            self._before_state_written(task, end_ns)

    def _before_state_written(self, task: int, end_ns: int) -> None:
        """Continue with the files and other work of the asynchronous part, and the wait for its thread."""
        begun_ns = self._time_or_end(EventType.SYNC_FINISHED, task, end_ns)
        free_ns = min(end_ns, begun_ns + self.trace.async_queue_ns(task))
        self._parts += file_parts(
            self.files(task, free_ns, end_ns), free_ns, end_ns, task, PathKind.ASYNC_WORK, PathKind.UPLOAD
        )
        self._add(PathKind.ASYNC_QUEUE, begun_ns, free_ns, task)
        self._before_sync_end(task, begun_ns)

    def _before_sync_end(self, task: int, end_ns: int) -> None:
        """Continue with the synchronous part."""
        forwarded_ns = self._time_or_end(EventType.BARRIER_FORWARDED, task, end_ns)
        self._add(PathKind.SYNC, forwarded_ns, end_ns, task)
        self._before_forward(task, forwarded_ns)

    def _before_forward(self, task: int, end_ns: int) -> None:
        """Continue with the work and the files before the barrier."""
        begun_ns = self._time_or_end(EventType.SNAPSHOT_BEGUN, task, end_ns)
        self._parts += file_parts(
            self.files(task, begun_ns, end_ns), begun_ns, end_ns, task, PathKind.PRE_BARRIER, PathKind.FLUSH
        )
        self._before_beginning(task, begun_ns)

    def _before_beginning(self, task: int, end_ns: int) -> None:
        """Continue with the event that started the snapshot: a barrier, the alignment timeout, a trigger, or the end of an input."""
        arrivals = self.trace.arrivals(task, end_ns)[: self.trace.beginnings.get(task)]
        if arrivals and arrivals[-1][0] == end_ns:
            self._before_arrival(task, arrivals[-1][1], end_ns)
        elif self._time_of(EventType.TRIGGER_RECEIVED, task, -1) >= end_ns:
            self._before_trigger(task, end_ns)
        elif arrivals and self._time_of(EventType.INPUT_PRIORITISED, task, -1) == end_ns:
            self._before_timeout(task, end_ns, arrivals)
        elif arrivals:
            time_ns, channel = arrivals[-1]
            self._add(PathKind.END_OF_INPUT, time_ns, end_ns, task)
            self._before_arrival(task, channel, time_ns)
        else:
            self._add(PathKind.END_OF_INPUT, min(end_ns, self._dispatched_ns), end_ns, task)
            self._before_dispatch(min(end_ns, self._dispatched_ns))

    def _before_timeout(self, task: int, end_ns: int, arrivals: Sequence[tuple[int, int]]) -> None:
        """Continue with the barrier that was in a channel at the alignment timeout, and had been sent last.

        If no barrier was in a channel, continue with the first one that had arrived.
        """
        if missing := [c for c in self._missing(task, arrivals) if 0 <= self._sent_ns(c)[0] < end_ns]:
            self._add_channel_parts(task, max(missing, key=self._sent_ns), end_ns, end_ns)
        else:  # the missing barriers had not been sent
            time_ns, channel = arrivals[0]
            self._add(PathKind.TIMEOUT, time_ns, end_ns, task)
            self._before_arrival(task, channel, time_ns)

    def _before_channel_state(self, task: int, end_ns: int) -> None:
        """Continue with the task of the group whose in-flight data was complete last: then the shared file is closed."""
        complete = {member: self._time_of(EventType.IN_FLIGHT_COMPLETE, member, -1) for member in self._group(task)}
        # empty if the file was closed because the checkpoint failed
        done = [member for member in complete if complete[member] <= end_ns]
        last = max(done, key=lambda member: (complete[member], member == task), default=task)
        begun_ns = complete[last] if 0 <= complete[last] <= end_ns else end_ns
        self._add(PathKind.CHANNEL_STATE, begun_ns, end_ns, last)
        self._before_in_flight_complete(last, begun_ns)

    def _before_in_flight_complete(self, task: int, end_ns: int) -> None:
        """Continue with the last barrier that arrived, or with the wait for the task's own barriers to leave its output queues."""
        forwarded_ns = self._time_of(EventType.BARRIER_FORWARDED, task, end_ns)
        arrivals = self.trace.arrivals(task, end_ns)
        if forwarded_ns == end_ns:
            self._before_forward(task, end_ns)
        elif self._time_of(EventType.OUTPUT_CONVERTED, task, -1) == end_ns:
            self._add(PathKind.TIMEOUT, forwarded_ns, end_ns, task)
            self._before_forward(task, forwarded_ns)
        elif arrivals and arrivals[-1][0] == end_ns:
            self._before_arrival(task, arrivals[-1][1], end_ns)
        else:
            self._add(PathKind.OUTPUT, forwarded_ns, end_ns, task)
            self._before_forward(task, forwarded_ns)

    def _before_arrival(self, task: int, channel: int, end_ns: int) -> None:
        """Continue through a channel to its writer.  If the writer has finished, the end of its data counts as its barrier."""
        self._add_channel_parts(task, channel, end_ns, self.trace.arrivals(task, end_ns)[0][0])

    def _before_missing_barrier(self, task: int, end_ns: int) -> None:
        """Continue through the channel whose barrier has not arrived; of several, the one in which it was sent last."""
        arrivals = self.trace.arrivals(task, end_ns)
        channel = max(self._missing(task, arrivals) or self.graph.inputs(task), key=self._sent_ns)
        self._add_channel_parts(task, channel, end_ns, arrivals[0][0] if arrivals else end_ns)

    def _missing(self, task: int, arrivals: Sequence[tuple[int, int]]) -> list[int]:
        """Return the input channels of a task whose barriers had not arrived."""
        arrived = {channel for _, channel in arrivals}
        return [channel for channel in self.graph.inputs(task) if channel not in arrived]

    def _sent_ns(self, channel: int) -> tuple[int, int]:
        """Return a key that sorts channels by the time at which their barriers were sent; those that were not come first."""
        return self._time_of(EventType.BARRIER_FORWARDED, self.graph.writer(channel), -1), -channel

    def _add_channel_parts(self, task: int, channel: int, end_ns: int, first_ns: int) -> None:
        """Add the parts between the output of the writer and the thread of the reader.

        `first_ns`: time at which the reader received its first barrier.  `end_ns`: time at which it received this one.
        """
        writer = self.graph.writer(channel)
        if not self._has_forwarded(writer):
            self._add(PathKind.END_OF_INPUT, min(end_ns, self._dispatched_ns), end_ns, task, channel)
            self._before_dispatch(min(end_ns, self._dispatched_ns))
            return
        sent_ns = self._time_or_end(EventType.BARRIER_FORWARDED, writer, end_ns)
        overtaking = (
            self._time_of(EventType.OUTPUT_CONVERTED, writer, -1),
            self._time_of(EventType.INPUT_PRIORITISED, task, -1),
        )
        overtook_ns = max((time_ns for time_ns in overtaking if sent_ns < time_ns <= end_ns), default=sent_ns)
        allowed_ns = self._overtake_allowed_ns(sent_ns, overtook_ns)
        first_ns = min(max(first_ns, allowed_ns), end_ns)
        self._add(PathKind.ALIGNMENT, first_ns, end_ns, task, channel)
        self._add(PathKind.QUEUE, allowed_ns, first_ns, task, channel)
        self._add(PathKind.TIMEOUT, sent_ns, allowed_ns, task, channel)
        self._upstream_of_barrier = writer, sent_ns

    def _overtake_allowed_ns(self, begin_ns: int, overtook_ns: int) -> int:
        """Return the time at which the alignment timeout allowed a barrier to overtake.

        The barrier overtakes later if the thread of the task is busy at that time.
        """
        if self.graph.timeout_ns is None:
            return overtook_ns
        return min(overtook_ns, max(begin_ns, self.trace.trigger_ns + self.graph.timeout_ns))

    def _before_trigger(self, task: int, end_ns: int) -> None:
        """Continue with the wait for the thread of a source task."""
        dispatched_ns = min(end_ns, self._dispatched_ns)
        self._add(PathKind.TASK_THREAD, dispatched_ns, end_ns, task)
        self._before_dispatch(dispatched_ns)

    def _before_dispatch(self, end_ns: int) -> None:
        """Add the time that the coordinator takes to trigger the tasks, which ends the search."""
        self._add(PathKind.TRIGGER, self.trace.trigger_ns, end_ns)

    def _add(self, kind: PathKind, begin_ns: int, end_ns: int, task: int = -1, channel: int = -1) -> None:
        """Add a part unless it takes no time."""
        if end_ns > begin_ns:
            self._parts.append(PathPart(kind, begin_ns, end_ns, task, channel))

    def finish(self) -> tuple[PathPart, ...]:
        """Continue the search to the trigger, and return the parts from first to last.

        This is a loop instead of a recursion, because a job may be a chain of thousands of tasks.
        """
        while self._upstream_of_barrier is not None:
            writer, sent_ns = self._upstream_of_barrier
            self._upstream_of_barrier = None
            self._before_forward(writer, sent_ns)
        return tuple(reversed(self._parts))

    def _times(self, task: int) -> Mapping[EventType, int]:
        """Return the time of the first event of each kind of a task [ns]."""
        return self.trace.times.get(task, {})

    def _time_of(self, event_type: EventType, task: int, default_ns: int) -> int:
        """Return the time of the first such event of a task [ns], or `default_ns` if there is none."""
        return self._times(task).get(event_type, default_ns)

    def _time_or_end(self, event_type: EventType, task: int, end_ns: int) -> int:
        """Return the time of the first such event of a task [ns], at most `end_ns`."""
        return min(self._time_of(event_type, task, end_ns), end_ns)

    @property
    def _dispatched_ns(self) -> int:
        """Return the time [ns] at which the coordinator called the tasks."""
        return self._time_of(EventType.TASKS_TRIGGERED, -1, self.trace.trigger_ns)

    def _stage(self, task: int) -> EventType | None:
        """Return the last stage that the task has reached, or None."""
        return next((stage for stage in _STAGES if stage in self._times(task)), None)

    def _has_forwarded(self, task: int) -> bool:
        """Return whether the task has sent its barrier."""
        return EventType.BARRIER_FORWARDED in self._times(task)

    def _writers_of(self, task: int) -> set[int]:
        """Return the upstream tasks of a task."""
        if task not in self._writers:
            self._writers[task] = set(map(self.graph.writer, self.graph.inputs(task)))
        return self._writers[task]

    def _group(self, task: int) -> list[int]:
        """Return the tasks that share channel state files with this one, including itself."""
        return [member for member, group in enumerate(self.graph.groups) if group == self.graph.groups[task]]

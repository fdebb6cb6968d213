"""Reconstruct the critical path of a recorded checkpoint from Flink's statistics.

The search is that of simulated checkpoints (`sim.results.critical_path`).  Two things are inferred for it, because Flink
does not report them:

* The channel of the last barrier.  If all barriers arrived at about the same time, it is the one that was in transit
  longest, otherwise the one that was sent last.
* What an asynchronous phase waited for.  It is inferred from sizes.

`python -m benchmarks.lab validate --explain` compares recorded paths with simulated ones, and simulated ones with their journals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim.jobs.history.history import (
    History,
    SubtaskId,
    late_in,
    moments,
    subtasks_of,
    writers_of,
)
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.model.units import MS
from sim.protocol.options import FailureReason
from sim.results.critical_path import CheckpointTrace, FileSpan, Graph, PathKind, find_path
from sim.results.journal import EventType

_MAX_SHARED_FILE_DIFFERENCE_NS = 20 * MS
"""Maximum time between the ends of two asynchronous phases, or their acknowledgements, that share a channel state file.

Acknowledgements are compared as well, because with an aligned timeout the end of the phase is not known exactly.
"""
_MAX_ARRIVAL_DIFFERENCE = 0.1
"""Barriers arrived at the same time if their arrivals differ by at most this share of the longest transit time."""
NO_FILE_BYTES = 20 * 1024
"""State below this size is part of the acknowledgement (default of execution.checkpointing.data-inline-threshold)."""
_ASYNC_SHARE_STATELESS, _ASYNC_SHARE_STATEFUL = 0.5, 0.75
"""Minimum share of an asynchronous phase that has passed when a barrier arrives, to conclude that the phase waited for it.

The second value applies if the subtask writes more state than in-flight data: the state may then have taken as long.
"""


class PathStep(NamedTuple):
    """A step of the critical path."""

    kind: PathKind
    begin_ns: int  # after the trigger
    end_ns: int
    subtask: SubtaskId | None = None  # None for the coordinator
    writer: SubtaskId | None = None  # sender of the barrier, for steps in a channel
    is_open: bool = False  # whether the checkpoint failed during this step, or is still in progress

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def at(self) -> SubtaskId:
        """The subtask.  Raises `ValueError` for steps of the coordinator."""
        if self.subtask is None:
            raise ValueError(f"{self.kind} is spent in the coordinator")
        return self.subtask


def steps(
    history: History, point: RecordedCheckpoint, last: SubtaskId | None = None, *, later: bool = False
) -> tuple[PathStep, ...]:
    """Return the critical path of a checkpoint in order of time.

    It ends with the last acknowledgement, the failure, or, if the checkpoint is in progress, the time of the statistics.
    It is empty if the statistics of subtasks, or the duration, are unknown.

    If `last` is given, the path ends with the acknowledgement of that subtask.  If `later` is set, the barrier that was
    sent last is always followed, even if all barriers arrived at the same time.
    """
    if not point.tasks or point.end_to_end_duration < 0:
        return ()
    return tuple(_Statistics(history, point, last, later=later).path())


def failed_asynchronously(point: RecordedCheckpoint) -> bool:
    """Return whether a subtask declined the checkpoint because its asynchronous phase failed."""
    return point.failure_message.startswith(FailureReason.CHECKPOINT_ASYNC_EXCEPTION.text.rstrip("."))


class _Statistics:
    """Flink's statistics of one checkpoint as a trace, and the search in it.  Times are ns after the trigger."""

    def __init__(self, history: History, point: RecordedCheckpoint, last: SubtaskId | None, *, later: bool) -> None:
        self.history = history
        self.point = point
        self.later = later
        self.is_completed = point.status == "COMPLETED"
        self.rows = subtasks_of(point)
        self.moments = moments(history, point)
        self.late = late_in(history, point)
        self.end_ns = point.end_to_end_duration * MS
        self.last = last or max(self.moments, key=lambda name: (self.moments[name].acknowledged_ns, name), default=None)
        self.last_ns = -1 if self.last is None else min(self.moments[self.last].acknowledged_ns, self.end_ns)
        if last is not None:
            self.end_ns = self.last_ns
        self.sources = {vertex.name for vertex in history.vertices if not vertex.inputs}
        planned = {(vertex.name, index) for vertex in history.vertices for index in range(vertex.parallelism)}
        self.names = sorted(planned | self.rows.keys())  # by number of the task
        self.task_of = {name: task for task, name in enumerate(self.names)}
        self.events = {self.task_of[name]: dict(self._events(name)) for name in self.rows.keys() | self.late.keys()}

    def path(self) -> Iterator[PathStep]:
        """Yield the steps of the path."""
        if self.is_completed and self.last is None:
            return
        calls_ns = [row.first_ns for name, row in self.moments.items() if name[0] in self.sources]
        acknowledged = (-1, 0)
        if self.last is not None:
            acknowledged = self.task_of[self.last], self.end_ns if self.is_completed else self.last_ns
            self._add_awaited_barrier(self.last)
        if not self.is_completed and failed_asynchronously(self.point):
            self._add_declined()
        # these snapshots began with the first barrier, or at the timeout
        early = [name for name, row in self.moments.items() if row.unaligned and row.begun_ns < row.last_ns]
        trace = CheckpointTrace(
            self.point.status,
            0,
            self.end_ns,
            [*self.events],
            {-1: {EventType.TASKS_TRIGGERED: min(calls_ns, default=0)}} | self.events,
            self._arrivals,
            {self.task_of[name]: 1 for name in early},
            acknowledged,
        )
        # one group: only the subtask whose barrier was awaited has channel state that is complete, see `_add_awaited_barrier`
        graph = Graph(self._writer, self._inputs, [0] * len(self.names), self.history.aligned_for_ns or None)
        for part in find_path(trace, graph, self._files):
            subtask = None if part.task < 0 else self.names[part.task]
            writer = None if part.channel < 0 else self.names[self._writer(part.channel)]
            is_open, kind = not self.is_completed and part.end_ns == self.end_ns, part.kind
            if is_open and kind is PathKind.QUEUE and self.history.overtakes:
                # data does not delay the barrier after the timeout: the thread may be busy, or a file is being written
                if part.begin_ns >= self.history.aligned_for_ns:
                    kind, writer = PathKind.UNREPORTED, None
            elif kind is PathKind.UPLOAD and subtask is not None:
                kind = self._written_kind(subtask)
            yield PathStep(kind, part.begin_ns, part.end_ns, subtask, writer, is_open)

    # ------------------------------------------------------------------------------------------ channels

    def _writer(self, channel: int) -> int:
        return channel % len(self.names)

    def _inputs(self, task: int) -> Sequence[int]:
        first, task_of = task * len(self.names), self.task_of
        return [first + task_of[writer] for writer in writers_of(self.history, self.names[task])]

    def _arrivals(self, task: int, until_ns: int) -> Sequence[tuple[int, int]]:
        """Return time and channel of the first and the last barrier of a task, as far as they are known.

        The clocks of machines differ, so that a barrier may seem to arrive after it was passed on at `until_ns`.
        """
        name = self.names[task]
        row = self.moments.get(name)
        begun_ns = self.events[task].get(EventType.SNAPSHOT_BEGUN, -1)
        first_ns, last_ns = (begun_ns, begun_ns) if row is None else (row.first_ns, row.last_ns)
        arrivals = {
            min(time_ns, until_ns): self._awaited_writer(name, min(time_ns, until_ns), min(first_ns, until_ns))
            for time_ns in (first_ns, last_ns)
            if time_ns >= 0 and (name not in self.late or time_ns < self.end_ns)
        }
        first = task * len(self.names)
        return [(at_ns, first + self.task_of[writer]) for at_ns, writer in arrivals.items() if writer is not None]

    def _awaited_writer(self, name: SubtaskId, until_ns: int, first_ns: int) -> SubtaskId | None:
        """Return the upstream subtask whose barrier the reader waited for, or None if there are no upstream subtasks.

        All barriers arrived between `first_ns` and `until_ns`.  The clocks of machines may differ: if all barriers seem to
        have been sent after they arrived, the one that was sent first is chosen.
        """
        writers = list(writers_of(self.history, name))
        sent = {writer: self.moments[writer].forwarded_ns for writer in writers if writer in self.moments}
        before = [writer for writer, time_ns in sent.items() if time_ns <= until_ns]
        if not before:
            return min(sent or writers, key=lambda writer: sent.get(writer, 0), default=None)
        earliest = min(before, key=lambda writer: (sent[writer], writer[1] != name[1]))
        transit_ns = until_ns - sent[earliest]
        if not self.later and until_ns - first_ns <= _MAX_ARRIVAL_DIFFERENCE * transit_ns:
            return earliest
        return max(before, key=lambda writer: (sent[writer], writer[1] == name[1]))

    # ------------------------------------------------------------------------------------------ events

    def _events(self, name: SubtaskId) -> Iterator[tuple[EventType, int]]:
        """Yield the events of a subtask.  Those of an aborted snapshot after the failure are left out."""
        row, is_late, timeout_ns = self.moments.get(name), name in self.late, self.history.aligned_for_ns
        if timeout_ns and (self.history.overtakes if row is None else row.unaligned):
            yield from ((EventType.INPUT_PRIORITISED, timeout_ns), (EventType.OUTPUT_CONVERTED, timeout_ns))
        if row is None:
            return
        known = {
            EventType.SNAPSHOT_BEGUN: row.begun_ns,
            EventType.BARRIER_FORWARDED: row.forwarded_ns,
            EventType.SYNC_FINISHED: row.synced_ns,
        }
        if name[0] in self.sources:
            known[EventType.TRIGGER_RECEIVED] = row.begun_ns
        if not is_late:
            known |= {EventType.STATE_WRITTEN: row.written_ns, EventType.ASYNC_FINISHED: row.written_ns}
            known[EventType.ACKNOWLEDGED] = row.acknowledged_ns
        elif row.unaligned and row.last_ns >= self.end_ns:  # it was waiting for its last barrier
            known[EventType.STATE_WRITTEN] = row.synced_ns
        for event_type, time_ns in known.items():
            if not is_late or time_ns < self.end_ns:
                yield event_type, min(time_ns, self.end_ns)

    def _files(self, task: int, *_: int) -> Sequence[FileSpan]:
        """Return the file of an asynchronous phase, which is assumed to take all of it."""
        name = self.names[task]
        row = self.moments.get(name)
        if row is None or self._written_kind(name) is PathKind.ASYNC_WORK:
            return ()
        return [FileSpan(-1, row.synced_ns, None if name in self.late else row.written_ns)]

    def _written_kind(self, name: SubtaskId) -> PathKind:
        """Return the kind of an asynchronous phase: channel state, upload of state, or other work if it wrote no file."""
        subtask = self.rows[name]
        persisted = max(subtask.alignment.persisted, 0)
        if persisted * 2 > max(subtask.checkpointed_size, 0) and self.moments[name].unaligned:
            return PathKind.CHANNEL_STATE
        return PathKind.UPLOAD if subtask.checkpointed_size >= NO_FILE_BYTES else PathKind.ASYNC_WORK

    def _add_awaited_barrier(self, name: SubtaskId) -> None:
        """Add the barrier that delayed the end of the asynchronous phase of the subtask that acknowledged last, if one did.

        It is a barrier of the subtask itself, or of one that shares its channel state file.  It is assumed to have delayed
        the phase if it arrived when most of the phase had passed.  Otherwise the upload of state may have taken as long.
        """
        row = self.moments[name]
        written_ns = min(row.written_ns, self.end_ns)
        together = [
            other
            for other, near in self.moments.items()
            if min(abs(near.written_ns - written_ns), abs(near.acknowledged_ns - row.acknowledged_ns))
            <= _MAX_SHARED_FILE_DIFFERENCE_NS
            if near.last_ns <= written_ns and self._shares(name, other)
        ]
        last = max([name, *together], key=lambda other: (min(self.moments[other].last_ns, written_ns), other == name))
        complete_ns = min(self.moments[last].last_ns, written_ns)
        state = max(self.rows[name].checkpointed_size, 0) - max(self.rows[name].alignment.persisted, 0)
        in_flight = sum(max(self.rows[other].alignment.persisted, 0) for other in {name, *together})
        least = _ASYNC_SHARE_STATELESS if state <= in_flight else _ASYNC_SHARE_STATEFUL
        if self.history.overtakes and complete_ns - row.synced_ns >= least * (written_ns - row.synced_ns) > 0:
            written = {EventType.STATE_WRITTEN: row.synced_ns, EventType.CHANNEL_STATE_WRITTEN: written_ns}
            self.events[self.task_of[name]] |= written
            self.events[self.task_of[last]][EventType.IN_FLIGHT_COMPLETE] = complete_ns

    def _shares(self, name: SubtaskId, other: SubtaskId) -> bool:
        """Return whether two subtasks run, or may run, in the same TaskManager, and so may share a channel state file."""
        managers = self.history.task_managers
        return name in managers and managers.get(other, managers[name]) == managers[name] if managers else True

    def _add_declined(self) -> None:
        """Add the events of the subtask whose asynchronous phase failed: one that reported no times.

        The phase is assumed to have started as early as possible, because Flink does not report its times.
        """
        silent = [name for name in self.late if name not in self.moments]
        begun = [name for name in silent if self.moments.keys() >= set(writers_of(self.history, name))]
        if silent:
            name = min(begun or silent)
            writers = self.moments.keys() & set(writers_of(self.history, name))
            sent_ns = max((self.moments[writer].forwarded_ns for writer in writers), default=0)
            stages = (EventType.SNAPSHOT_BEGUN, EventType.BARRIER_FORWARDED, EventType.SYNC_FINISHED)
            declined = {EventType.DECLINED: self.end_ns}
            self.events[self.task_of[name]] |= dict.fromkeys(stages, min(self.end_ns, sent_ns)) | declined

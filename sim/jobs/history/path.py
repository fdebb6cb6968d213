"""Reconstruct the critical path of a recorded checkpoint from Flink's statistics, backwards from the last acknowledgement.

The steps are those of a simulated checkpoint (`sim.results.critical_path`), but two things are inferred, because Flink
does not report them:

* The channel of the last barrier.  If all barriers arrived at about the same time, it is the one that was in transit
  longest, otherwise the one that was sent last.
* What an asynchronous phase waited for.  It is inferred from sizes.

`python -m benchmarks.lab validate --explain` compares recorded paths with simulated ones, and simulated ones with their journals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sim.jobs.history.history import History, Moments, SubtaskId, late_in, moments, subtasks_of, writers_of
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.model.units import MS
from sim.protocol.options import FailureReason
from sim.results.critical_path import PathKind

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


def steps(history: History, point: RecordedCheckpoint) -> tuple[PathStep, ...]:
    """Return the critical path of a checkpoint in order of time.

    It ends with the last acknowledgement, the failure, or, if the checkpoint is in progress, the time of the statistics.
    It is empty if the statistics of subtasks, or the duration, are unknown.
    """
    if not point.tasks or point.end_to_end_duration < 0:
        return ()
    return PathSearch(history, point).find_path()


def failed_asynchronously(point: RecordedCheckpoint) -> bool:
    """Return whether a subtask declined the checkpoint because its asynchronous phase failed."""
    return point.failure_message.startswith(FailureReason.CHECKPOINT_ASYNC_EXCEPTION.text.rstrip("."))


class PathSearch:
    """The search for the critical path of one checkpoint, backwards in time.

    If `later` is set, the barrier that was sent last is always followed, even if all barriers arrived at the same time.
    """

    def __init__(self, history: History, point: RecordedCheckpoint, *, later: bool = False) -> None:
        self.history = history
        self.point = point
        self.later = later
        self.rows: Mapping[SubtaskId, RecordedSubtask] = subtasks_of(point)
        self.moments: Mapping[SubtaskId, Moments] = moments(history, point)
        self._steps: list[PathStep] = []  # latest step first

    def find_path(self, last: SubtaskId | None = None) -> tuple[PathStep, ...]:
        """Return the path in order of time.  If `last` is given, it ends with the acknowledgement of that subtask."""
        end_ns = self.point.end_to_end_duration * MS
        if last is not None:
            self._before_acknowledgement(last, min(self.moments[last].acknowledged_ns, end_ns))
        elif self.point.status == "COMPLETED":
            self._from_last_acknowledgement(end_ns)
        else:
            self._unfinished(end_ns)
        return tuple(reversed(self._steps))

    # ------------------------------------------------------------------------------------------ the end of the path

    def _from_last_acknowledgement(self, end_ns: int) -> None:
        if not self.moments:
            return
        last = max(self.moments, key=lambda name: (self.moments[name].acknowledged_ns, name))
        self._before_acknowledgement(last, end_ns)

    def _unfinished(self, end_ns: int) -> None:
        """Add the path of a checkpoint that failed or is in progress: that of the subtask that others have waited for longest.

        A subtask counts only if all its upstream subtasks have sent their barriers, unless there is no such subtask.
        """
        unacknowledged = late_in(self.history, self.point)
        if not unacknowledged:  # all subtasks have acknowledged: the JobManager was writing the metadata
            acknowledged_ns = min(end_ns, max(row.acknowledged_ns for row in self.moments.values()))
            self._add(PathKind.FINALISATION, acknowledged_ns, end_ns, is_open=True)
            self._from_last_acknowledgement(acknowledged_ns)
            return
        blocking = [
            name for name in unacknowledged if all(writer in self.moments for writer in writers_of(self.history, name))
        ] or list(unacknowledged)
        silent = [name for name in blocking if name not in self.moments]
        if silent and failed_asynchronously(self.point):  # a subtask that declines reports no times
            self._add_declined(min(silent), end_ns)
            return
        name = min(blocking, key=lambda name: (self._waits_since(name, unacknowledged[name]), name))
        self._add_interrupted(name, unacknowledged[name], end_ns)

    def _waits_since(self, name: SubtaskId, row: RecordedSubtask | None) -> int:
        """Return when the first barrier arrived or, if it has not, when upstream subtasks had sent theirs [ns; 0 if unknown]."""
        if row is not None and row.start_delay >= 0:
            return row.start_delay * MS
        return max(self._sent_ns(name).values(), default=0)

    def _add_declined(self, name: SubtaskId, end_ns: int) -> None:
        """Add the path of a subtask whose asynchronous phase failed.

        The phase is assumed to have started as early as possible, because Flink does not report its times.
        """
        begun_ns = min(end_ns, self._waits_since(name, None))
        self._add(PathKind.ASYNC_WORK, begun_ns, end_ns, name, is_open=True)
        if self._is_source(name):
            self._before_call(name, begun_ns)
        else:
            self._before_barrier(name, begun_ns, begun_ns)

    def _add_interrupted(self, name: SubtaskId, row: RecordedSubtask | None, end_ns: int) -> None:
        """Add the step of a subtask that is in progress, or during which the checkpoint failed, and the path that leads to it."""
        times = self.moments.get(name)
        if times is not None and times.begun_ns < end_ns and not (times.unaligned and times.last_ns >= end_ns):
            self._through_aborted_snapshot(name, times, end_ns)
            return
        first_ns = end_ns if row is None or row.start_delay < 0 else min(row.start_delay * MS, end_ns)
        if self._is_source(name):
            self._add(PathKind.ASYNC_WORK, first_ns, end_ns, name, is_open=True)
            self._before_call(name, first_ns, is_open=first_ns == end_ns)
            return
        writer = self._awaited_writer(name, end_ns, 0)
        if writer is not None and first_ns == end_ns and self.history.overtakes:
            # The barrier may overtake data, so data does not delay it.  The thread may be busy, or a file is being written.
            first_ns = min(max(self.moments[writer].forwarded_ns, self.history.aligned_for_ns), end_ns)
            self._add(PathKind.UNREPORTED, first_ns, end_ns, name, is_open=True)
            self._add_channel_steps(name, writer, first_ns, first_ns)
            return
        if writer is None:  # its upstream subtasks have not sent their barriers either
            self._add(PathKind.QUEUE, 0, end_ns, name, is_open=True)
            return
        self._add_channel_steps(name, writer, end_ns, first_ns, is_open=True)

    def _through_aborted_snapshot(self, name: SubtaskId, row: Moments, end_ns: int) -> None:
        """Add the path of a subtask whose snapshot was running at the failure, and that reported its times later."""
        forwarded_ns, synced_ns = min(row.forwarded_ns, end_ns), min(row.synced_ns, end_ns)
        self._add(self._written_kind(name), synced_ns, end_ns, name, is_open=True)
        self._add(PathKind.SYNC, forwarded_ns, synced_ns, name, is_open=synced_ns == end_ns)
        if forwarded_ns == end_ns:
            self._add(PathKind.PRE_BARRIER, row.begun_ns, end_ns, name, is_open=True)
            self._before_last_barrier(name, row.begun_ns)
        else:
            self._before_forward(name, forwarded_ns)

    # ------------------------------------------------------------------------------------------ one step back

    def _before_acknowledgement(self, name: SubtaskId, end_ns: int) -> None:
        row = self.moments[name]
        written_ns = min(row.written_ns, end_ns)
        self._add(PathKind.ACKNOWLEDGEMENT, written_ns, end_ns, name)
        if self.history.overtakes and (last := self._awaited_barrier(name, written_ns)) is not None:
            arrived_ns = min(self.moments[last].last_ns, written_ns)
            self._add(PathKind.CHANNEL_STATE, arrived_ns, written_ns, last)
            self._before_last_barrier(last, arrived_ns)
            return
        synced_ns = min(row.synced_ns, written_ns)
        self._add(self._written_kind(name), synced_ns, written_ns, name)
        forwarded_ns = min(row.forwarded_ns, synced_ns)
        self._add(PathKind.SYNC, forwarded_ns, synced_ns, name)
        self._before_forward(name, forwarded_ns)

    def _written_kind(self, name: SubtaskId) -> PathKind:
        """Return the kind of an asynchronous phase: channel state, upload of state, or other work if it wrote no file."""
        subtask = self.rows[name]
        persisted = max(subtask.alignment.persisted, 0)
        if persisted * 2 > max(subtask.checkpointed_size, 0) and self.moments[name].unaligned:
            return PathKind.CHANNEL_STATE
        return PathKind.UPLOAD if subtask.checkpointed_size >= NO_FILE_BYTES else PathKind.ASYNC_WORK

    def _awaited_barrier(self, name: SubtaskId, written_ns: int) -> SubtaskId | None:
        """Return the subtask whose last barrier delayed the end of an asynchronous phase, or None if none did.

        It is the subtask itself, or one that shares its channel state file.  The barrier is assumed to have delayed the
        phase if it arrived when most of the phase had passed.  Otherwise the upload of state may have taken as long.
        """
        synced_ns, acknowledged_ns = self.moments[name].synced_ns, self.moments[name].acknowledged_ns
        together = [
            other
            for other, row in self.moments.items()
            if min(abs(row.written_ns - written_ns), abs(row.acknowledged_ns - acknowledged_ns))
            <= _MAX_SHARED_FILE_DIFFERENCE_NS
            if row.last_ns <= written_ns and self._shares(name, other)
        ]
        last = max([name, *together], key=lambda other: (min(self.moments[other].last_ns, written_ns), other == name))
        waited_ns = min(self.moments[last].last_ns, written_ns) - synced_ns
        state = max(self.rows[name].checkpointed_size, 0) - max(self.rows[name].alignment.persisted, 0)
        in_flight = sum(max(self.rows[other].alignment.persisted, 0) for other in {name, *together})
        least = _ASYNC_SHARE_STATELESS if state <= in_flight else _ASYNC_SHARE_STATEFUL
        return last if waited_ns >= least * (written_ns - synced_ns) > 0 else None

    def _shares(self, name: SubtaskId, other: SubtaskId) -> bool:
        """Return whether two subtasks run, or may run, in the same TaskManager, and so may share a channel state file."""
        managers = self.history.task_managers
        return name in managers and managers.get(other, managers[name]) == managers[name] if managers else True

    def _before_forward(self, name: SubtaskId, end_ns: int) -> None:
        row = self.moments[name]
        begun_ns = min(row.begun_ns, end_ns)
        self._add(PathKind.PRE_BARRIER, begun_ns, end_ns, name)
        self._before_last_barrier(name, begun_ns)

    def _before_last_barrier(self, name: SubtaskId, end_ns: int) -> None:
        if self._is_source(name):
            self._before_call(name, end_ns)
        else:
            self._before_barrier(name, end_ns, min(self.moments[name].first_ns, end_ns))

    def _is_source(self, name: SubtaskId) -> bool:
        return not self.history.vertex(name[0]).inputs

    def _sent_ns(self, name: SubtaskId) -> dict[SubtaskId, int]:
        """Return when the upstream subtasks of a subtask sent their barriers [ns], without those that have not."""
        writers = writers_of(self.history, name)
        return {writer: self.moments[writer].forwarded_ns for writer in writers if writer in self.moments}

    def _before_barrier(self, name: SubtaskId, end_ns: int, first_ns: int) -> None:
        writer = self._awaited_writer(name, end_ns, first_ns)
        if writer is None:  # its upstream subtasks have finished, or are not in the statistics
            self._add(PathKind.END_OF_INPUT, 0, end_ns, name)
        else:
            self._add_channel_steps(name, writer, end_ns, first_ns)

    def _add_channel_steps(
        self, name: SubtaskId, writer: SubtaskId, end_ns: int, first_ns: int, *, is_open: bool = False
    ) -> None:
        """Add the steps of a barrier in a channel, and the path to its sending.

        `first_ns` is the arrival of the reader's first barrier, `end_ns` that of the barrier that it waited for.
        """
        sent_ns = min(end_ns, self.moments[writer].forwarded_ns)
        overtook = self.moments[writer].unaligned or (name in self.moments and self.moments[name].unaligned)
        deadline_ns = self.history.aligned_for_ns
        allowed_ns = deadline_ns if overtook and sent_ns < deadline_ns <= end_ns else sent_ns
        first_ns = min(max(first_ns, allowed_ns), end_ns)
        self._add(PathKind.ALIGNMENT, first_ns, end_ns, name, writer, is_open=is_open)
        self._add(PathKind.QUEUE, allowed_ns, first_ns, name, writer, is_open=is_open and first_ns == end_ns)
        self._add(PathKind.TIMEOUT, sent_ns, allowed_ns, name, writer)
        self._before_forward(writer, sent_ns)

    def _awaited_writer(self, name: SubtaskId, until_ns: int, first_ns: int) -> SubtaskId | None:
        """Return the upstream subtask whose barrier the reader waited for, or None if none has sent its barrier.

        All barriers arrived between `first_ns` and `until_ns`.  The clocks of machines may differ: if all barriers seem to
        have been sent after they arrived, the one that was sent first is chosen.
        """
        sent = self._sent_ns(name)
        before = [writer for writer, time_ns in sent.items() if time_ns <= until_ns]
        if before:
            earliest = min(before, key=lambda writer: (sent[writer], writer[1] != name[1]))
            is_at_same_time = not self.later and until_ns - first_ns <= _MAX_ARRIVAL_DIFFERENCE * (
                until_ns - sent[earliest]
            )
            return earliest if is_at_same_time else max(before, key=lambda writer: (sent[writer], writer[1] == name[1]))
        return min(sent, key=lambda writer: sent[writer], default=None)

    def _before_call(self, name: SubtaskId, end_ns: int, *, is_open: bool = False) -> None:
        """Add the steps from the trigger until a source received the trigger RPC.

        The first source to receive it shows when the coordinator had sent it.  The rest is a delay of the task thread.
        """
        quickest_ns = min(
            (row.first_ns for other, row in self.moments.items() if self._is_source(other)),
            default=0,
        )
        quickest_ns = min(quickest_ns, end_ns)
        self._add(PathKind.TASK_THREAD, quickest_ns, end_ns, name, is_open=is_open)
        self._add(PathKind.TRIGGER, 0, quickest_ns)

    def _add(
        self,
        kind: PathKind,
        begin_ns: int,
        end_ns: int,
        subtask: SubtaskId | None = None,
        writer: SubtaskId | None = None,
        *,
        is_open: bool = False,
    ) -> None:
        """Add a step before those found so far, unless it takes no time."""
        if end_ns > begin_ns:
            self._steps.append(PathStep(kind, begin_ns, end_ns, subtask, writer, is_open))

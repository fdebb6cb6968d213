"""When each subtask reached each stage of a checkpoint, from the durations that Flink reports [ns after the trigger].

Flink's statistics (CheckpointMetrics, SubtaskStateStats) are durations: start delay, alignment, synchronous and asynchronous part.  They
follow one another in an aligned snapshot; an unaligned one begins with the first barrier, and its asynchronous part waits for the others.
Times are ms and of several clocks: a task manager measures the start delay, the JobManager the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sim.history.history import History, SubtaskId, subtasks_of
from sim.recordings.infer.before_barrier import Acknowledged, acknowledged_in, barrier_at_readers_ms, works_before_barrier
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.units import MS


class Moments(NamedTuple):
    """The moments of one subtask that reported them.  No time is later than the next one, but for `last_ns` of an unaligned snapshot."""

    first_ns: int  # its first barrier; of a source: the call of the coordinator
    last_ns: int  # its last barrier
    begun_ns: int  # its snapshot
    forwarded_ns: int  # its own barriers set out
    synced_ns: int
    written_ns: int  # the asynchronous part ended
    acknowledged_ns: int
    unaligned: bool


def is_acknowledged(subtask: RecordedSubtask) -> bool:
    """An aborted snapshot reports how far it was; it does not acknowledge."""
    return subtask.status == "completed" and not subtask.aborted and subtask.end_to_end_duration >= 0


def is_reported(subtask: RecordedSubtask) -> bool:
    """Whether an aborted snapshot told its times, as it does once its asynchronous part is through (AsyncCheckpointRunnable)."""
    return subtask.status == "completed" and subtask.aborted and min(subtask.end_to_end_duration, subtask.start_delay) >= 0


def moments(history: History, point: RecordedCheckpoint) -> dict[SubtaskId, Moments]:
    """All subtasks that acknowledged the checkpoint, or reported an aborted snapshot, whose times may lie behind the failure."""
    acknowledged = acknowledged_in(history, point)
    works = {vertex.name: works_before_barrier(history, vertex.name) for vertex in history.vertices}
    return {
        (vertex, subtask.index): _moments(history, vertex, subtask, acknowledged, works=works.get(vertex, False))
        for (vertex, _), subtask in subtasks_of(point).items()
        if (is_acknowledged(subtask) or is_reported(subtask)) and vertex in works
    }


def _moments(history: History, vertex: str, subtask: RecordedSubtask, acknowledged: Acknowledged, *, works: bool) -> Moments:
    end_ns = subtask.end_to_end_duration * MS
    aligning_ns, sync_ns, async_ns = (
        max(value, 0) * MS for value in (subtask.alignment.duration, subtask.checkpoint.sync, subtask.checkpoint.async_)
    )
    unaligned = subtask.unaligned_checkpoint
    if subtask.start_delay >= 0:
        first_ns = min(subtask.start_delay * MS, end_ns)
    else:  # before 1.11, or not reported: what is left of the time to the acknowledgement
        first_ns = max(0, end_ns - sync_ns - async_ns - (0 if unaligned else aligning_ns))
    last_ns = min(first_ns + aligning_ns, end_ns)
    begun_ns = min(last_ns, max(first_ns, history.aligned_for_ns)) if unaligned else last_ns
    rest_ns = max(0, end_ns - begun_ns - sync_ns - async_ns)
    before_ns = 0
    if works:
        at_most_ms = barrier_at_readers_ms(history, vertex, subtask, acknowledged)
        before_ns = max(0, round(min(rest_ns, at_most_ms * MS - begun_ns)))
    forwarded_ns = min(begun_ns + before_ns, end_ns)
    synced_ns = min(forwarded_ns + sync_ns, end_ns)
    return Moments(first_ns, last_ns, begun_ns, forwarded_ns, synced_ns, min(synced_ns + async_ns, end_ns), end_ns, unaligned)


def late_in(history: History, point: RecordedCheckpoint) -> Mapping[SubtaskId, RecordedSubtask | None]:
    """Subtasks that have not acknowledged, with what they reported; None: nothing."""
    rows = subtasks_of(point)
    expected = [(vertex.name, index) for vertex in history.vertices if vertex.name in point.tasks for index in range(vertex.parallelism)]
    return {
        name: rows.get(name) for name in dict.fromkeys([*expected, *rows]) if (row := rows.get(name)) is None or not is_acknowledged(row)
    }


def writers_of(history: History, subtask: SubtaskId) -> Iterator[SubtaskId]:
    """The subtasks whose barriers it waits for.  An exchange that is none of Flink's pointwise ones leads from all to all."""
    vertex, index = history.vertex(subtask[0]), subtask[1]
    for edge in vertex.inputs:
        if not edge.is_pipelined:
            continue
        senders = history.vertex(edge.upstream).parallelism
        match edge.ship:
            case "FORWARD":
                indices = range(index, index + 1)
            case "RESCALE" if senders <= vertex.parallelism:
                indices = range(index * senders // vertex.parallelism, index * senders // vertex.parallelism + 1)
            case "RESCALE":
                indices = range(index * senders // vertex.parallelism, (index + 1) * senders // vertex.parallelism)
            case _:
                indices = range(senders)
        yield from ((edge.upstream, writer) for writer in indices)

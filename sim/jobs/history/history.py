"""The checkpoint history of a recorded job, in the same form for each source (REST API, log, recording).

`History` contains the checkpoints and what explains them: task threads, windows, garbage collection, failures.
`moments` computes when each subtask reached each stage of a checkpoint, `slow_subtasks` finds subtasks with a long time
per record, and `split` separates slow checkpoints from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import NamedTuple

from sim.jobs.infer.cores import Acknowledged, acknowledged_in, barrier_at_readers_ms, works_before_barrier
from sim.jobs.infer.file_history import written_whole
from sim.jobs.infer.options import NEVER_MS
from sim.jobs.infer.windows import PlannedWindow
from sim.jobs.source.job_log import Silence
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_answers import CheckpointConfig, GarbageCollector
from sim.jobs.source.rest_job import JobGraph, RestVertex
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.state import BACKENDS, backend_named
from sim.model.storage import Storage
from sim.model.text import PrintableError, one_line
from sim.model.units import MS, format_duration
from sim.results.formats import bytes_text, ms_text, share_text

# ---- Checkpoints that share no file with earlier ones, and why.

INLINE_BYTES = Storage().inline_threshold_bytes
_THRESHOLD_KEY = "state.storage.fs.memory-threshold"


def sharing(
    points: Sequence[RecordedCheckpoint], inline_bytes: int = INLINE_BYTES, *, backend: str | None = None
) -> str:
    """Return a warning, with likely reasons, if the checkpointed size equals the full size.  Otherwise return "".

    `backend` is the class of the state backend, or None if the configuration of the job is unknown.  State of less than
    `inline_bytes` is part of _metadata instead of a file.
    """
    sized, equal = written_whole(points)
    if not equal:
        return ""
    count = f"all {len(sized)}" if len(equal) == len(sized) else f"{len(equal)} of {len(sized)}"
    last = equal[-1]
    apart = " without in-flight data" if last.persisted_data > 0 else ""
    first = f"Checkpointed size equals full size{apart} in {count} checkpoints: they share no file with earlier ones."
    largest = max((row.state_size - row.alignment.persisted for row in subtasks_of(last).values()), default=-1)
    mean = (last.state_size - last.persisted_data) / max(last.num_subtasks, 1)
    size = f"at most {bytes_text(largest)}" if largest >= 0 else f"{bytes_text(mean)} on average"
    if (largest if largest >= 0 else mean) < inline_bytes:
        return (
            f"{first} A subtask has {size}: files below {bytes_text(inline_bytes)} ({_THRESHOLD_KEY}) are parts of _metadata, which is written "
            "whole each time, and operator state (offsets of sources) is never incremental. Equal sizes do not show that increments are "
            "off: differences are to be expected once keyed state in RocksDB is larger."
        )
    on_heap = backend is not None and (kind := backend_named(backend)) is not None and not BACKENDS[kind].keeps_files
    if on_heap:
        return f"{first} The job runs with {backend}, which has no increments: incremental checkpoints are of RocksDB."
    condition = (
        "If incremental checkpoints are configured, they"
        if backend is None
        else "Incremental checkpoints are configured, and"
    )
    return (
        f"{first} {condition} are not in effect: the program sets another backend or full checkpoints, what is large is operator state, or "
        f"RocksDB merges all its files between two checkpoints. A subtask has {size}, so it is not because state is small."
    )


def is_unaligned(point: RecordedCheckpoint) -> bool:
    """Return whether barriers overtook data, from the statistics of the checkpoint alone."""
    return point.checkpoint_type == "UNALIGNED_CHECKPOINT" or point.persisted_data > 0


def in_flight_text(points: Sequence[RecordedCheckpoint]) -> str:
    """Return a sentence if in-flight data is at least half of what the latest completed checkpoint wrote, otherwise ""."""
    last = max((point for point in points if point.status == "COMPLETED"), key=lambda point: point.id, default=None)
    if last is None or not 0 < last.checkpointed_size <= 2 * last.persisted_data <= 2 * last.checkpointed_size:
        return ""  # more than was written contradicts it
    share, size = share_text(last.persisted_data / last.checkpointed_size), bytes_text(last.persisted_data)
    return (
        f"In-flight data that barriers overtook (persisted_data) is {share} of what checkpoint {last.id} wrote, {size}: it is part of "
        "both sizes, and increments do not make it smaller."
    )


# ---- Garbage collection of the TaskManagers' JVMs, from `garbageCollectors` in Flink's answer about each TaskManager.

_MIN_GC_SHARE = 0.05
"""Minimum share of the time in garbage collection that is reported."""
_MIN_FULL_GC_MS = 1000
"""Minimum total time of full collections, which stop all threads, that is reported regardless of the age of the job."""
_MAX_LISTED_JVMS = 3
_ALL_COLLECTORS = "All"  # Flink's name for the sum over all collectors
_CONCURRENT = ("Cycles", "Concurrent")  # in names of collectors that do not stop the threads (ZGC, Shenandoah, G1)
_FULL = ("Old", "MarkSweep")  # in names of full collectors


class Garbage(NamedTuple):
    """The stop-the-world collections of one JVM since its start."""

    collections: int  # number of collections
    ms: int  # their total time
    full: int  # number of full collections among them
    full_ms: int  # total time of the full collections


def sum_collections(collectors: Iterable[GarbageCollector]) -> Garbage:
    """Return the sum over those collectors of a JVM that stop all threads."""
    stopping = [
        collector
        for collector in collectors
        if collector.name != _ALL_COLLECTORS and not any(word in collector.name for word in _CONCURRENT)
    ]
    full = [collector for collector in stopping if any(word in collector.name for word in _FULL)]
    counted = [[(max(one.count, 0), max(one.time, 0)) for one in collectors] for collectors in (stopping, full)]
    sums = [sum(column) for pairs in counted for column in zip(*[(0, 0), *pairs], strict=True)]
    return Garbage(*sums)


def is_excessive(garbage: Garbage, age_ms: int) -> bool:
    """Return whether a JVM spent unusually much time in garbage collection.  `age_ms` is the age of the job, or 0 if unknown."""
    return garbage.full_ms >= _MIN_FULL_GC_MS or (age_ms > 0 and garbage.ms > _MIN_GC_SHARE * age_ms)


def garbage_text(garbage_of: Mapping[str, Garbage], age_ms: int) -> str:
    """Return a sentence about the JVMs with excessive garbage collection, or "" if there are none."""
    listed = sorted(
        (name for name, garbage in garbage_of.items() if is_excessive(garbage, age_ms)),
        key=lambda name: -garbage_of[name].ms,
    )
    if not listed:
        return ""
    texts = "; ".join(_garbage_of_jvm_text(name, garbage_of[name], age_ms) for name in listed[:_MAX_LISTED_JVMS])
    unlisted = f"; and {len(listed) - _MAX_LISTED_JVMS} more" if len(listed) > _MAX_LISTED_JVMS else ""
    return f"Garbage collection: {texts}{unlisted}. Threads stand still meanwhile; Flink's answers do not say when that was."


def _garbage_of_jvm_text(name: str, garbage: Garbage, age_ms: int) -> str:
    full = f", {garbage.full} of them full ({ms_text(garbage.full_ms)})" if garbage.full else ""
    share = f", {share_text(min(garbage.ms / age_ms, 1.0))} of the time that the job has run" if age_ms > 0 else ""
    return f"{one_line(name, 40)} has spent {ms_text(garbage.ms)} in {garbage.collections} collections{full}{share}"


# ---- The checkpoint history of a job, from any source.

SubtaskId = tuple[str, int]
"""(short name of the vertex, index)."""


class ThreadShares(NamedTuple):
    """Busy and back-pressured shares of a task thread's time since its start."""

    busy: float
    back_pressured: float
    busy_ms: float = 0.0  # total busy time; 0 if unknown


@dataclass(frozen=True, eq=False)
class History(JobGraph):
    """The checkpoint history of a job.  Times are epoch milliseconds."""

    name: str  # of the job, or of the file
    flink_version: str  # "" if unknown
    vertices: tuple[RestVertex, ...]  # in topological order; empty if unknown
    checkpoints: tuple[RecordedCheckpoint, ...]  # oldest first; some have no statistics of subtasks
    checkpoint_config: CheckpointConfig = CheckpointConfig()
    task_managers: Mapping[SubtaskId, str] = field(default_factory=dict)  # TaskManager of each running subtask
    served: Mapping[SubtaskId, float] = field(default_factory=dict)  # input records since the start of the subtask
    threads: Mapping[SubtaskId, ThreadShares] = field(default_factory=dict)
    windows: Mapping[str, PlannedWindow] = field(default_factory=dict)  # from the plan, by vertex
    failures_ms: tuple[int, ...] = ()  # times of task failures
    restored: int = 0  # number of restores
    counted: int = 0  # number of checkpoints that Flink counted; 0 if unknown
    garbage: Mapping[str, Garbage] = field(default_factory=dict)  # by TaskManager
    age_ms: int = 0  # how long the job has run; 0 if unknown
    silence: Silence | None = None  # set if checkpoints stopped completing, or complete too rarely
    slowest_ms: int = -1  # duration of the slowest completed checkpoint, even if it is not listed; -1 if unknown
    partial: tuple[str, ...] = ()  # sentences on a single REST answer: what it contains, and what it lacks
    remarks: tuple[str, ...] = ()  # other findings, as sentences
    contention: str = ""  # a sentence about threads that wait for cores; "" if they do not
    restarts_ms: tuple[int, ...] = ()  # times at which the job stopped to restart, in ascending order; empty if unknown

    @property
    def overtakes(self) -> bool:
        """Whether barriers may overtake data (unaligned checkpoints)."""
        return bool(self.checkpoint_config.unaligned_checkpoints)

    @property
    def aligned_for_ns(self) -> int:
        """The aligned checkpoint timeout [ns], or 0 if there is none."""
        return (self.checkpoint_config.aligned_checkpoint_timeout or 0) * MS

    @property
    def strategy(self) -> str:
        """The barrier mode, named as in simulations, or "" if unknown."""
        if not self.checkpoint_config.is_known:
            return ""
        if not self.overtakes:
            return "aligned"
        return f"aligned-timeout {format_duration(self.aligned_for_ns)}" if self.aligned_for_ns else "unaligned"

    @property
    def is_on_disk(self) -> bool:
        """Whether the state backend is RocksDB."""
        return "RocksDB" in (self.checkpoint_config.state_backend or "")

    @cached_property
    def detailed(self) -> tuple[RecordedCheckpoint, ...]:
        """The checkpoints with statistics of their subtasks."""
        return tuple(point for point in self.checkpoints if point.tasks)

    @cached_property
    def usual(self) -> tuple[RecordedCheckpoint, ...]:
        """The completed checkpoints, without savepoints, and without the job's first, which uploads all state."""
        return tuple(point for point in self.completed if not point.is_savepoint and point.id != 1)

    @property
    def completed(self) -> list[RecordedCheckpoint]:
        """The completed checkpoints whose duration is known."""
        return [point for point in self.checkpoints if point.status == "COMPLETED" and point.end_to_end_duration >= 0]

    def checkpoint(self, number: int) -> RecordedCheckpoint | None:
        """Return the checkpoint with this id, or None if it is not in the history."""
        return next((point for point in self.checkpoints if point.id == number), None)


def subtasks_of(point: RecordedCheckpoint) -> dict[SubtaskId, RecordedSubtask]:
    """Return the statistics of all subtasks of a checkpoint."""
    return {(vertex, subtask.index): subtask for vertex, task in point.tasks.items() for subtask in task.subtasks}


# ---- Times at which each subtask reached each stage of a checkpoint [ns after the trigger], from Flink's durations.
#
#   aligned     trigger | start delay | alignment | work before barrier | sync | async | acknowledged
#   unaligned   trigger | start delay | work before barrier | sync | async, which waits for the other barriers | acknowledged
#
# Flink's statistics (CheckpointMetrics, SubtaskStateStats) are in whole milliseconds, and are measured with several
# clocks: the TaskManager's for the start delay, the JobManager's for the acknowledgement.


class Moments(NamedTuple):
    """The times at which one subtask reached each stage [ns after the trigger].

    They are in ascending order, except that `last_ns` of an unaligned snapshot may be later than those that follow.
    """

    first_ns: int  # arrival of the first barrier or, at a source, of the trigger RPC
    last_ns: int  # arrival of the last barrier
    begun_ns: int  # start of the snapshot
    forwarded_ns: int  # barriers sent downstream
    synced_ns: int  # end of the synchronous phase
    written_ns: int  # end of the asynchronous phase
    acknowledged_ns: int
    unaligned: bool


def is_acknowledged(subtask: RecordedSubtask) -> bool:
    """Return whether a subtask acknowledged the checkpoint.  An aborted snapshot may report times, but does not count."""
    return subtask.status == "completed" and not subtask.aborted and subtask.end_to_end_duration >= 0


def is_reported(subtask: RecordedSubtask) -> bool:
    """Return whether an aborted snapshot reported its times, as AsyncCheckpointRunnable does at the end of its phase."""
    return (
        subtask.status == "completed" and subtask.aborted and min(subtask.end_to_end_duration, subtask.start_delay) >= 0
    )


def moments(history: History, point: RecordedCheckpoint) -> dict[SubtaskId, Moments]:
    """Return the times of the subtasks that acknowledged the checkpoint, or reported an aborted snapshot.

    Times of an aborted snapshot may be later than the failure of the checkpoint.
    """
    acknowledged = acknowledged_in(history, point)
    works = {vertex.name: works_before_barrier(history, vertex.name) for vertex in history.vertices}
    return {
        (vertex, subtask.index): _moments(history, vertex, subtask, acknowledged, works=works.get(vertex, False))
        for (vertex, _), subtask in subtasks_of(point).items()
        if (is_acknowledged(subtask) or is_reported(subtask)) and vertex in works
    }


def _moments(
    history: History, vertex: str, subtask: RecordedSubtask, acknowledged: Acknowledged, *, works: bool
) -> Moments:
    """Return the times of one subtask, from the durations in Flink's statistics.

    `works` is True if the vertex works before it forwards the barrier.  Flink does not report that time: it is the rest of
    the end-to-end duration, but no longer than until the first reader had all its barriers.
    """
    end_ns = subtask.end_to_end_duration * MS
    aligning_ns, sync_ns, async_ns = (
        max(value, 0) * MS for value in (subtask.alignment.duration, subtask.checkpoint.sync, subtask.checkpoint.async_)
    )
    unaligned = subtask.unaligned_checkpoint
    if subtask.start_delay >= 0:
        first_ns = min(subtask.start_delay * MS, end_ns)
    else:  # not reported, as before Flink 1.11
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
    return Moments(
        first_ns, last_ns, begun_ns, forwarded_ns, synced_ns, min(synced_ns + async_ns, end_ns), end_ns, unaligned
    )


def late_in(history: History, point: RecordedCheckpoint) -> Mapping[SubtaskId, RecordedSubtask | None]:
    """Return the subtasks that have not acknowledged, with their statistics, or None if they reported nothing."""
    rows = subtasks_of(point)
    expected = [
        (vertex.name, index)
        for vertex in history.vertices
        if vertex.name in point.tasks
        for index in range(vertex.parallelism)
    ]
    return {
        name: rows.get(name)
        for name in dict.fromkeys([*expected, *rows])
        if (row := rows.get(name)) is None or not is_acknowledged(row)
    }


def writers_of(history: History, subtask: SubtaskId) -> Iterator[SubtaskId]:
    """Yield the upstream subtasks whose barriers a subtask waits for.

    All exchanges except FORWARD and RESCALE connect all subtasks with all.  A blocking exchange carries no barriers.
    """
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


# ---- Slow subtasks: they need more time per record than the other subtasks of their vertex.  Such a subtask delays every
# checkpoint, so it is reported first.
#
# Flink reports busy time and records of each subtask.  Their ratio does not depend on the share of the records that a
# subtask receives, so skewed keys are not mistaken for a slow subtask.

_SLOWER = 1.5
"""Minimum time per record / median of the other subtasks.

A partly idle subtask needs up to a third more time for the same work, because of wake-ups and cold caches.
"""
_MIN_BUSY = 0.3
"""Minimum busy share of a slow subtask.  With less, it delays nothing."""
_MIN_RECORDS = 1000
"""Minimum records of a subtask for a mean time per record."""
_MAX_NAMED_SUBTASKS = 4


class SlowSubtask(NamedTuple):
    """A slow subtask: its time per record, and the median over the other subtasks of its vertex [us]."""

    subtask: SubtaskId
    us_per_record: float
    others_us_per_record: float

    @property
    def phrase(self) -> str:
        return (
            f"{self.us_per_record:,.0f} us per record, the other subtasks {self.others_us_per_record:,.0f} us (median)"
        )


def slow_subtasks(history: History) -> list[SlowSubtask]:
    """Return the slow subtasks, the slowest first.  The list is also empty if the source has no busy times."""
    threads, served = history.threads, history.served
    us_of = {id_: 1000 * threads[id_].busy_ms / served[id_] for id_ in threads if served.get(id_, 0) >= _MIN_RECORDS}
    slow = []
    for subtask, us in us_of.items():
        others = [us_of[other] for other in us_of if other != subtask and other[0] == subtask[0]]
        if others and us > _SLOWER * median(others) > 0 and threads[subtask].busy >= _MIN_BUSY:
            slow.append(SlowSubtask(subtask, us, median(others)))
    return sorted(slow, key=lambda subtask: -subtask.us_per_record / subtask.others_us_per_record)


def slow_subtasks_text(history: History) -> str:
    """Return sentences about the slow subtasks, or "" if there are none."""
    subtasks = slow_subtasks(history)[:_MAX_NAMED_SUBTASKS]
    texts = "; ".join(
        f"{one_line(vertex, 24)}[{index}] (task manager {one_line(history.task_managers.get((vertex, index), 'not known'), 40)}) "
        f"needs {slow.phrase}, and is busy {share_text(history.threads[vertex, index].busy)} of its time"
        for slow in subtasks
        for vertex, index in (slow.subtask,)
    )
    why = "How many records they get does not explain it: look at what these records and keys are, and at the process, disk and host."
    return f"Slow subtasks: {texts}. {why}" if subtasks else ""


# ---- Slow checkpoints of a history, and the others that they are compared with.

SLOW_CHECKPOINT_FACTOR = 1.5
"""Minimum duration of a slow checkpoint / median duration.  It must also exceed the median by more than NEGLIGIBLE_MS."""


class MissingCheckpointError(PrintableError, LookupError):
    """The requested checkpoint is not in the history, or the history has no checkpoints."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """The checkpoints of a history by outcome: slow and other completed ones, failed ones, and those in progress.

    The job's first checkpoint and savepoints are left out, unless the history has no other completed checkpoints.
    """

    slow: tuple[RecordedCheckpoint, ...]  # the slowest first
    others: tuple[RecordedCheckpoint, ...]  # oldest first
    failed: tuple[RecordedCheckpoint, ...]  # oldest first
    in_progress: tuple[RecordedCheckpoint, ...]
    median_ms: float  # median duration of completed checkpoints; 0 without any
    limit_ms: float  # longer ones are slow

    @property
    def completed(self) -> int:
        return len(self.slow) + len(self.others)


def split(history: History) -> SplitHistory:
    """Separate slow checkpoints from the others.

    Raises `MissingCheckpointError` if the history has no checkpoints and nothing else to explain.
    """
    if not history.checkpoints and history.silence is None and not history.partial:
        raise MissingCheckpointError(_no_checkpoints_text(history))
    usual = list(history.usual) or history.completed
    median_ms = float(median(point.end_to_end_duration for point in usual)) if usual else 0.0
    limit_ms = max(SLOW_CHECKPOINT_FACTOR * median_ms, median_ms + NEGLIGIBLE_MS)
    slow = [point for point in usual if point.end_to_end_duration > limit_ms]
    failed, in_progress = (
        tuple(point for point in history.checkpoints if point.status == status) for status in ("FAILED", "IN_PROGRESS")
    )
    return SplitHistory(
        tuple(sorted(slow, key=lambda point: -point.end_to_end_duration)),
        tuple(point for point in usual if point.end_to_end_duration <= limit_ms),
        failed,
        in_progress,
        median_ms,
        limit_ms,
    )


def find_checkpoint(history: History, number: int) -> RecordedCheckpoint:
    """Return the checkpoint with this id.  Raises `MissingCheckpointError`, with the reason, if the history does not have it."""
    if (point := history.checkpoint(number)) is not None:
        return point
    if not history.checkpoints:
        raise MissingCheckpointError(_no_checkpoints_text(history))
    first, last = history.checkpoints[0].id, history.checkpoints[-1].id
    if number < first:
        raise MissingCheckpointError(
            f"no checkpoint {number}: the JobManager does not keep its statistics any more (it keeps the last ones, web.checkpoints.history): "
            f"there are {first} to {last}"
        )
    raise MissingCheckpointError(f"no checkpoint {number}: there are {first} to {last}")


def _no_checkpoints_text(history: History) -> str:
    if history.counted:
        return f"the job has had {history.counted} checkpoints, and the statistics of none are kept"
    if not 0 < history.checkpoint_config.interval < NEVER_MS:
        return "the job takes no checkpoints: execution.checkpointing.interval is not set"
    return "the job has had no checkpoint yet"

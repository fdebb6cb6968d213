"""Find the causes of long checkpoints of a recorded job, and describe them as text.

* periodic events: window ends, timers, compactions
* process pauses: periods in which nothing in a TaskManager made progress
* for each step of a critical path: back-pressure, slow subtasks, skewed keys, slow files
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from sim.explain.causes import COMMON, subtask_name
from sim.jobs.history.history import (
    Garbage,
    History,
    Moments,
    SubtaskId,
    is_excessive,
    moments,
    slow_subtasks,
    subtasks_of,
    writers_of,
)
from sim.jobs.history.path import PathStep, failed_asynchronously
from sim.jobs.infer.windows import find_periodic_timers, phase_concentration_p_value
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.model.text import one_line
from sim.model.units import MS, format_duration
from sim.results.critical_path import PathKind
from sim.results.formats import bytes_text, ms_text, share_text

# ---- Do long checkpoints coincide with a periodic event of the job: window ends, timers, or compactions of RocksDB?

_LEVEL0_FILES_PER_COMPACTION = 4
"""Level-0 files that trigger a compaction (level0_file_num_compaction_trigger); each checkpoint flushes one file."""


@dataclass(frozen=True, slots=True)
class PeriodicEvent:
    """A periodic event of a job, such as its window ends."""

    text: str  # predicate of a checkpoint at one phase, for example "is every 4th: ..."
    phase: Callable[[RecordedCheckpoint], float]  # position of a checkpoint within the period, in [0, 1)


def periodic_events(history: History) -> Iterator[PeriodicEvent]:
    """Yield the periodic events of a job.  Session windows are not periodic."""
    for vertex, window in history.windows.items():
        if window.kind != "session" and not window.is_local:
            every = format_duration(window.every_ns)
            text = f"begins at the same time within the {every} between two ends of windows of {one_line(vertex, 40)}"
            yield PeriodicEvent(text, _phase_within(window.every_ns / MS))
    for node in history.vertices:  # the plan does not show timers, but the state size drops each time they fire
        is_known = node.name in history.windows or history.is_on_disk
        timers = None if is_known else find_periodic_timers(history, node)
        if timers is not None:
            every = format_duration(round(timers.period_ms) * MS)
            text = f"begins at the same time within the {every} in which the state of {one_line(node.name, 40)} rises and falls"
            yield PeriodicEvent(text, _phase_within(timers.period_ms))
    if history.is_on_disk:
        files = _LEVEL0_FILES_PER_COMPACTION
        text = f"is every {files}th: RocksDB merges files of level 0 then"
        yield PeriodicEvent(text, lambda point: point.id % files / files)


def _phase_within(period_ms: float) -> Callable[[RecordedCheckpoint], float]:
    """Return the function from a checkpoint to the position of its trigger within the period, in [0, 1)."""
    return lambda point: point.trigger_timestamp % period_ms / period_ms


def p_value_of(event: PeriodicEvent, points: Sequence[RecordedCheckpoint]) -> float:
    """Return the p-value of the null hypothesis that durations do not depend on the phase of the event (Rayleigh test)."""
    return phase_concentration_p_value(
        [event.phase(point) for point in points], [point.end_to_end_duration for point in points]
    )


# ---- Process pauses: for some time no subtask of a TaskManager reached a stage of the checkpoint, although work was due.
#
# In Flink's statistics, a full garbage collection, a stopped or swapped process, and a busy host all look like this.
# Back-pressure looks different: barriers queue behind records, but sources still receive the trigger RPC, and files are
# written, as quickly as usual.

_MIN_PAUSE_NS = 500 * MS
"""Shorter pauses are common on busy cores."""
_MIN_PAUSE_SHARE = 0.25
"""Minimum share of a pause in the duration of the checkpoint."""
_OVERRUN_FACTOR = 3
"""Minimum duration of delayed work / its median duration in other checkpoints."""
_MIN_OTHER_CHECKPOINTS = 3
"""Minimum number of other checkpoints for a median."""
_WORK_WITHOUT_BACKPRESSURE = frozenset({PathKind.TASK_THREAD, PathKind.SYNC, PathKind.ASYNC_WORK})
"""Work that back-pressure does not delay."""


class DueWork(NamedTuple):
    """Work that a subtask could start at `begin_ns`, and that ended at `end_ns` [ns after the trigger]."""

    subtask: SubtaskId
    kind: PathKind
    begin_ns: int
    end_ns: int


class ProcessPause(NamedTuple):
    """A period in which no subtask of a TaskManager reached a stage of the checkpoint [ns after the trigger]."""

    manager: str
    begin_ns: int
    end_ns: int
    subtasks: int  # number of subtasks with due work
    moved: bool | None  # whether subtasks of other TaskManagers reached a stage meanwhile; None if there are no others

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


def process_pauses(history: History, point: RecordedCheckpoint) -> Iterator[ProcessPause]:
    """Yield the longest pause of each TaskManager during a checkpoint.

    Yields nothing if the TaskManagers of the subtasks are unknown, or if there are too few other checkpoints to compare.
    """
    work_by_manager: dict[str, list[DueWork]] = defaultdict(list)
    for work in due_work(history, moments(history, point)):
        work_by_manager[history.task_managers.get(work.subtask, "")].append(work)
    work_by_manager.pop("", None)
    usual, min_ns = _median_work_ns(history, point.id), _MIN_PAUSE_SHARE * point.end_to_end_duration * MS
    stages = {manager: sorted({work.end_ns for work in rows}) for manager, rows in work_by_manager.items()}
    for manager, rows in work_by_manager.items():
        pauses = _find_pauses(rows, stages[manager], usual)
        begin_ns, end_ns, subtasks = max(pauses, key=lambda pause: pause[1] - pause[0], default=(0, 0, 0))
        if end_ns - begin_ns >= max(_MIN_PAUSE_NS, min_ns):
            others = [time_ns for other, times in stages.items() if other != manager for time_ns in times]
            moved = any(begin_ns < time_ns < end_ns for time_ns in others) if others else None
            yield ProcessPause(manager, begin_ns, end_ns, subtasks, moved)


def due_work(history: History, reached: Mapping[SubtaskId, Moments]) -> Iterator[DueWork]:
    """Yield the work of each subtask in a checkpoint.  Alignment is left out, because it depends on other subtasks."""
    for name, row in reached.items():
        sent = [reached[writer].forwarded_ns for writer in writers_of(history, name) if writer in reached]
        if not history.vertex(name[0]).inputs:
            yield DueWork(name, PathKind.TASK_THREAD, 0, row.first_ns)
        elif sent and min(sent) <= row.first_ns:
            yield DueWork(name, PathKind.QUEUE, min(sent), row.first_ns)
        yield DueWork(name, PathKind.SYNC, row.forwarded_ns, row.synced_ns)
        if not row.unaligned:
            yield DueWork(name, PathKind.ASYNC_WORK, row.synced_ns, row.written_ns)
        yield DueWork(name, PathKind.ACKNOWLEDGEMENT, row.written_ns, row.acknowledged_ns)


def _find_pauses(
    due: list[DueWork], stages: list[int], usual: Mapping[tuple[SubtaskId, PathKind], float]
) -> Iterator[tuple[int, int, int]]:
    """Yield (begin, end, number of subtasks) of each pause: a period between two stages in which all due work was delayed.

    `stages` are the times at which any subtask of the TaskManager reached a stage, ascending.  `usual` has the median
    duration of each kind of work.  A pause has due work of several subtasks and several kinds, and some of it is of a
    kind that back-pressure does not delay.
    """
    for begin_ns, end_ns in pairwise([0, *stages]):
        if end_ns - begin_ns < _MIN_PAUSE_NS:
            continue
        middle_ns = end_ns - (end_ns - begin_ns) // 2
        during = [work for work in due if work.begin_ns <= middle_ns and work.end_ns >= end_ns]
        subtasks, kinds = {work.subtask for work in during}, {work.kind for work in during}
        is_process = min(len(subtasks), len(kinds)) > 1 and not _WORK_WITHOUT_BACKPRESSURE.isdisjoint(kinds)
        if is_process and all(_is_delayed(work, end_ns - begin_ns, usual) for work in during):
            yield begin_ns, end_ns, len(subtasks)


def _is_delayed(work: DueWork, pause_ns: int, usual: Mapping[tuple[SubtaskId, PathKind], float]) -> bool:
    """Return whether work took much longer than its median, and at least half of the pause explains why."""
    typical_ns = usual.get((work.subtask, work.kind))
    took_ns = work.end_ns - work.begin_ns
    return typical_ns is not None and took_ns >= _OVERRUN_FACTOR * typical_ns and took_ns - typical_ns >= pause_ns / 2


def _median_work_ns(history: History, but: int) -> Mapping[tuple[SubtaskId, PathKind], float]:
    """Return the median duration of each kind of work of each subtask [ns], over all checkpoints except the one with id `but`."""
    times_ns: dict[tuple[SubtaskId, PathKind], list[int]] = defaultdict(list)
    for number, rows in _due_work_by_checkpoint(history).items():
        for work in rows if number != but else ():
            times_ns[work.subtask, work.kind].append(work.end_ns - work.begin_ns)
    return {key: median(times) for key, times in times_ns.items() if len(times) >= _MIN_OTHER_CHECKPOINTS}


@lru_cache(maxsize=1)
def _due_work_by_checkpoint(history: History) -> Mapping[int, tuple[DueWork, ...]]:
    """Return the work in each checkpoint, by id, without savepoints.  Cached: each checkpoint is compared with all others."""
    return {
        point.id: tuple(due_work(history, moments(history, point)))
        for point in history.detailed
        if not point.is_savepoint
    }


# ---- Describe why a step of a recorded checkpoint took long, as far as Flink's statistics show it.

_MIN_BACKPRESSURED_SHARE = 0.2
"""Minimum back-pressured share of a task thread for a clause about its bottleneck."""
_MIN_BUSY_SHARE = 0.5
"""Minimum busy share of a bottleneck."""
_MIN_SKEW = 1.5
"""Minimum records of a subtask / records of each subtask if they were split evenly, to report the subtask as skewed."""
_MIN_RATIO = 1.5
"""Durations and sizes that differ by a smaller factor count as equal."""
_SLOW_FILE_FACTOR = 3
"""Minimum time per byte of a slow file / the usual time per byte."""
_MAX_END_DIFFERENCE = 0.1
"""Asynchronous phases end at the same time if their ends differ by at most this share of the duration."""
_MIN_COMPARED_FILES = 8
"""Minimum number of files of other checkpoints to compare speeds."""


def place(step: PathStep) -> str:
    """Return where a step was spent: a subtask, a channel as ``reader < writer``, or "coordinator", as in simulated paths."""
    if step.subtask is None:
        return "coordinator"
    return name_of(step.at) if step.writer is None else f"{name_of(step.at)} < {name_of(step.writer)}"


def name_of(subtask: SubtaskId) -> str:
    """Return the name of a subtask, for example ``count[1]``."""
    return subtask_name(*subtask)


class HistoryCauses:
    """Describes why the steps on the critical path of one checkpoint took long."""

    def __init__(self, history: History, point: RecordedCheckpoint) -> None:
        self.history = history
        self.point = point
        self.rows = subtasks_of(point)
        self._clauses: set[str] = set()  # about threads; each is used once per checkpoint

    @cached_property
    def moments(self) -> Mapping[SubtaskId, Moments]:
        return moments(self.history, self.point)

    @cached_property
    def process_pauses(self) -> Mapping[str, ProcessPause]:
        """The longest pause of each TaskManager, by TaskManager."""
        return {pause.manager: pause for pause in process_pauses(self.history, self.point)}

    def text(self, step: PathStep) -> str:
        """Return why a step took long, as a clause without a full stop.

        If the process was paused and a source received its trigger late, the pause is the only reason given.
        """
        pause = self._pause_clause(step)
        if pause and step.kind is PathKind.TASK_THREAD:
            return pause
        return f"{self._text(step)}; {pause}" if pause else self._text(step)

    def _text(self, step: PathStep) -> str:
        cut = self._cut(step)
        match step.kind:
            case PathKind.TASK_THREAD:
                return f"{COMMON[step.kind]}{cut}{self._busy_thread_clause(step)}"
            case PathKind.QUEUE:
                return self._queue_text(step)
            case PathKind.TIMEOUT:
                allowed = format_duration(self.history.aligned_for_ns)
                return f"data was queued ahead of it; the barrier may overtake only {allowed} after the trigger (alignment timeout)"
            case PathKind.ALIGNMENT:
                return self._alignment_text(step)
            case PathKind.END_OF_INPUT:
                return f"the statistics name no subtask whose barrier it could have waited for: its inputs may have ended{cut}"
            case PathKind.UPLOAD | PathKind.CHANNEL_STATE | PathKind.ASYNC_WORK:
                return self._asynchronous_text(step)
            case PathKind.ACKNOWLEDGEMENT:
                return (
                    "none of Flink's statistics covers it: the acknowledgement travels and takes its turn in the JobManager, "
                    "or the process stood still, or worked before the barrier went on"
                )
            case PathKind.UNREPORTED:
                return (
                    "barriers may overtake data here, so it is its thread that is held up, or its files that are not written: Flink's "
                    "statistics have no times of it, and a thread dump tells"
                )
            case _:
                return f"{COMMON[step.kind]}{cut}"

    def _pause_clause(self, step: PathStep) -> str:
        """Return a clause if the TaskManager was paused during at least half of the step, otherwise ""."""
        manager = "" if step.subtask is None else self.history.task_managers.get(step.subtask, "")
        pause = self.process_pauses.get(manager)
        if pause is None:
            return ""
        if 2 * (min(pause.end_ns, step.end_ns) - max(pause.begin_ns, step.begin_ns)) < step.duration_ns:
            return ""
        others = {True: ", while others did", False: ", and none of the others did", None: ""}[pause.moved]
        garbage = self._excessive_garbage(manager)
        spent = f" ({ms_text(garbage.ms)} since it began)" if garbage else ""
        return (
            f"nothing of task manager {one_line(manager, 40)} moved for {ms_text(pause.duration_ns / 1e6)}{others}: its process stood "
            f"still or had no core (garbage collection{spent}, a stopped or swapped process, a busy host)"
        )

    def _excessive_garbage(self, manager: str) -> Garbage | None:
        """Return the garbage collection of a TaskManager, or None if it is unknown or not excessive."""
        garbage = self.history.garbage.get(manager)
        return garbage if garbage is not None and is_excessive(garbage, self.history.age_ms) else None

    # ------------------------------------------------------------------------------------------ barriers in channels

    def _queue_text(self, step: PathStep) -> str:
        if step.is_open:
            return f"its first barrier had not arrived{self._end_clause()}{self._busy_thread_clause(step)}"
        if self._overtakes(step):
            text = f"it overtakes data, and waited for the thread of {name_of(step.at)}"
        else:
            text = f"it lay behind data that {name_of(step.at)} had to take first (Flink does not say how much)"
        return f"{text}{self._sibling_clause(step)}{self._busy_thread_clause(step)}"

    def _alignment_text(self, step: PathStep) -> str:
        row = self.rows[step.at]
        read = f"; {bytes_text(row.alignment.processed)} were read meanwhile" if row.alignment.processed > 0 else ""
        if step.is_open:
            return f"its last barrier had not arrived{self._end_clause()}{self._busy_thread_clause(step)}"
        text = (
            "this barrier is taken for the last, by when it set out"
            if self._has_choice(step)
            else "it is the last that was missing"
        )
        return f"{text}{read}{self._busy_thread_clause(step)}"

    def _has_choice(self, step: PathStep) -> bool:
        """Return whether several barriers could be the last one: an upstream vertex has several subtasks."""
        vertex = None if step.subtask is None else self.history.vertex(step.subtask[0])
        return vertex is not None and any(self.history.vertex(edge.upstream).parallelism > 1 for edge in vertex.inputs)

    def _overtakes(self, step: PathStep) -> bool:
        """Return whether the barrier overtook data: an end of the channel is unaligned, and the aligned timeout had passed."""
        rows = [self.rows.get(name) for name in (step.subtask, step.writer) if name is not None]
        return (
            any(row is not None and row.unaligned_checkpoint for row in rows)
            and step.begin_ns >= self.history.aligned_for_ns
        )

    def _sibling_clause(self, step: PathStep) -> str:
        """Return a clause if the other subtasks of the vertex received their first barrier much earlier, otherwise ""."""
        others = [row.start_delay for name, row in self._siblings(step.at) if row.start_delay >= 0]
        if not others:
            return ""
        typical_ns = median(others) * MS
        if step.end_ns - typical_ns < step.duration_ns / 2:
            return ""
        earlier = ms_text((step.end_ns - typical_ns) / 1e6)
        return f"; {'the other subtask' if len(others) == 1 else 'other subtasks'} had theirs {earlier} earlier"

    def _busy_thread_clause(self, step: PathStep) -> str:
        """Return a clause about the busy thread: of the subtask, or of the bottleneck downstream.  The second time, return ""."""
        clause = self._thread_clause(step)
        is_new = clause not in self._clauses
        self._clauses.add(clause)
        return clause if is_new else ""

    def _thread_clause(self, step: PathStep) -> str:
        """Return a clause if the task thread of a step is back-pressured or busy, otherwise ""."""
        thread = self.history.threads.get(step.at)
        if thread is None:
            return ""
        bottleneck = self.bottleneck(step.at[0]) if thread.back_pressured >= _MIN_BACKPRESSURED_SHARE else None
        if bottleneck is not None:
            busy, back = share_text(self.history.threads[bottleneck].busy), share_text(thread.back_pressured)
            by = f"{name_of(bottleneck)}, which is busy {busy}{self._slow_clause(bottleneck)}{self._skew_clause(bottleneck)}"
            return f"; {name_of(step.at)} is back-pressured {back} of its time, by {by}"
        if thread.busy >= _MIN_BUSY_SHARE:
            return f"; {name_of(step.at)} is busy {share_text(thread.busy)} of its time{self._slow_clause(step.at)}{self._skew_clause(step.at)}"
        return ""

    def bottleneck(self, vertex: str) -> SubtaskId | None:
        """Return the subtask that back-pressures a vertex, or None if no downstream subtask is busy enough.

        The search follows the most back-pressured subtask downstream, until a subtask is busier than that.
        """
        for _ in self.history.vertices:
            readers = {reader.name for reader in self.history.readers(vertex)}
            threads = {name: thread for name, thread in self.history.threads.items() if name[0] in readers}
            if not threads:
                return None
            busiest = max(threads, key=lambda name: threads[name].busy)
            most_pressed = max(threads, key=lambda name: threads[name].back_pressured)
            if threads[busiest].busy >= max(_MIN_BUSY_SHARE, threads[most_pressed].back_pressured):
                return busiest
            vertex = most_pressed[0]
        return None

    def _slow_clause(self, subtask: SubtaskId) -> str:
        """Return a clause with the time per record of a subtask if it is much longer than that of its siblings, otherwise ""."""
        return next((f", needs {slow.phrase}" for slow in slow_subtasks(self.history) if slow.subtask == subtask), "")

    def _skew_clause(self, subtask: SubtaskId) -> str:
        """Return a clause with the share of a subtask in the records of its vertex if records are skewed to it, otherwise ""."""
        share = self.share_of(subtask)
        return f", and reads {share_text(share)} of the records of its vertex" if share else ""

    def share_of(self, subtask: SubtaskId) -> float:
        """Return the share of a subtask in the records of its vertex.

        Return 0 if it is unknown, or not much more than an even share.
        """
        records = [count for name, count in self.history.served.items() if name[0] == subtask[0]]
        share = self.history.served.get(subtask, 0.0) / (sum(records) or 1)
        even = 1 / max(len(records), 1)
        return share if len(records) > 1 and share >= min(_MIN_SKEW * even, (1 + even) / 2 - 0.1) else 0.0

    # ------------------------------------------------------------------------------------------ asynchronous phases

    def _asynchronous_text(self, step: PathStep) -> str:
        row = self.rows.get(step.at)
        if step.is_open and failed_asynchronously(self.point) and step.at not in self.moments:
            manager = one_line(self.history.task_managers.get(step.at, ""), 40)
            return (
                "its asynchronous part failed, and it declined the checkpoint; the exception is in the log of "
                f"{f'task manager {manager}' if manager else 'its task manager'}, not in Flink's statistics"
            )
        if row is None or (step.is_open and step.at not in self.moments):
            return f"its snapshot had begun, and was not acknowledged{self._end_clause()}"
        if step.is_open:
            later_ns, size = self.moments[step.at].written_ns - step.end_ns, bytes_text(row.checkpointed_size)
            speed = bytes_text(row.checkpointed_size * 1000 / max(row.checkpoint.async_, 1))
            through = (
                f"through {ms_text(later_ns / 1e6)} later ({size} at {speed}/s)"
                if later_ns > 0
                else f"aborted after {size}"
            )
            return f"its snapshot had begun, and was not acknowledged{self._end_clause()}; it was {through}{self._others_clause(step, row)}"
        if step.kind is PathKind.CHANNEL_STATE:
            stored = bytes_text(max(row.alignment.persisted, 0))
            text = (
                f"{stored} of in-flight data are written to the file of channel state{self._channel_state_clause(step)}"
            )
        elif step.kind is PathKind.ASYNC_WORK:
            wrote = (
                f"{bytes_text(row.checkpointed_size)}, too little for a file"
                if row.checkpointed_size > 0
                else "no bytes"
            )
            return f"work of the asynchronous part; it wrote {wrote}"
        else:
            rate = row.checkpointed_size * 1e9 / step.duration_ns
            size = bytes_text(row.checkpointed_size)
            text = f"{size} at {bytes_text(rate)}/s, with serialising them and waiting for the asynchronous thread"
        return f"{text}{self._others_clause(step, row)}"

    def _channel_state_clause(self, step: PathStep) -> str:
        """Return a clause about all in-flight data of the TaskManager, because its subtasks share channel state files."""
        managers = self.history.task_managers
        if step.at not in managers:
            return ""
        persisted = [
            max(row.alignment.persisted, 0)
            for name, row in self.rows.items()
            if managers.get(name) == managers[step.at]
        ]
        rate = bytes_text(sum(persisted) * 1e9 / step.duration_ns)
        return f"; with those of its task manager, {one_line(managers[step.at], 40)}, {bytes_text(sum(persisted))}: {rate}/s"

    @cached_property
    def _rows_of_others(self) -> list[Mapping[SubtaskId, RecordedSubtask]]:
        """The statistics of subtasks in each of the other checkpoints."""
        return [subtasks_of(point) for point in self.history.detailed if point.id != self.point.id]

    def _others_clause(self, step: PathStep, row: RecordedSubtask) -> str:
        """Return a clause if the subtask was much quicker in other checkpoints, otherwise ""."""
        others = [other for rows in self._rows_of_others if (other := rows.get(step.at)) is not None]
        others = [other for other in others if other.checkpoint.async_ >= 0]
        if len(others) < 3:
            return ""
        typical_ms = median(other.checkpoint.async_ for other in others)
        typical_bytes = median(other.checkpointed_size for other in others)
        if row.checkpoint.async_ < _MIN_RATIO * typical_ms:
            return ""
        text = f"; in its other {len(others)} checkpoints {ms_text(typical_ms)} for {bytes_text(max(typical_bytes, 0))} (median)"
        if row.checkpointed_size > _MIN_RATIO * typical_bytes and not self._is_slow_for_its_bytes(row):
            return text
        why = (
            "a savepoint has a folder and a format of its own"
            if self.point.is_savepoint
            else self._slow_file_clause(step)
        )
        return f"{text}: bytes do not explain it; {why}"

    def _is_slow_for_its_bytes(self, row: RecordedSubtask) -> bool:
        """Return whether a file was written slowly, compared with files of at least half its size in other checkpoints."""
        ms_per_byte = [
            other.checkpoint.async_ / other.checkpointed_size
            for rows in self._rows_of_others
            for other in rows.values()
            if other.checkpoint.async_ > 0 and 2 * other.checkpointed_size >= row.checkpointed_size > 0
        ]
        if len(ms_per_byte) < _MIN_COMPARED_FILES:
            return False
        return row.checkpoint.async_ > _SLOW_FILE_FACTOR * row.checkpointed_size * median(ms_per_byte)

    def _slow_file_clause(self, step: PathStep) -> str:
        """Return a clause with the likely cause of a slow file, inferred from the phases that ended at the same time.

        All of the job: the storage or the network.  All of one TaskManager: its process or disk.  None: not a process pause.
        """
        is_aborted = step.is_open and step.at in self.moments
        ended_ns = self.moments[step.at].written_ns if is_aborted else step.end_ns
        other = {
            name: ended_ns - row.written_ns
            for name, row in self.moments.items()
            if name != step.at and row.written_ns > row.synced_ns
        }
        with_it = {
            name for name, earlier_ns in other.items() if abs(earlier_ns) <= _MAX_END_DIFFERENCE * step.duration_ns
        }
        managers = self.history.task_managers
        if garbage := self._excessive_garbage(managers.get(step.at, "")):
            return f"the JVM of {one_line(managers[step.at], 40)} has spent {ms_text(garbage.ms)} in garbage collection"
        local = {name for name in other if step.at in managers and managers.get(name) == managers[step.at]}
        remote = other.keys() - local
        if len(with_it) == len(other) > 1:
            on = "on all task managers" if remote and local else "of the job"
            return f"those of all other subtasks {on} end with it: storage, the network or the whole machine kept them"
        if len(local) > 1 and with_it == local:
            return "those of its task manager end with it and others earlier: that process, its disk or its file of channel state kept them"
        if len(local) > 1 and not with_it:
            earlier = ms_text(min(other[name] for name in local) / 1e6)
            return (
                f"the other subtasks of its task manager were through {earlier} earlier: no pause of the process does"
            )
        return self._faster_siblings(step) or "the disk, the network, a pause or a shared file may"

    def _faster_siblings(self, step: PathStep) -> str:
        """Return a clause if a sibling in another TaskManager wrote a similar file far quicker: then not all storage is slow."""
        if step.kind is PathKind.CHANNEL_STATE:
            return ""  # subtasks that share the file wait for each other, so their phases do not compare
        managers, slow = self.history.task_managers, self.rows[step.at]
        manager = managers.get(step.at, "")
        quick = [
            (row.checkpoint.async_, name)
            for name, row in self._siblings(step.at)
            if name in self.moments
            and managers.get(name, manager) != manager
            and 2 * row.checkpointed_size >= slow.checkpointed_size > 0
            and _SLOW_FILE_FACTOR * row.checkpoint.async_ * slow.checkpointed_size
            <= slow.checkpoint.async_ * row.checkpointed_size
        ]
        if not quick:
            return ""
        took_ms, name = max(quick)
        size = bytes_text(self.rows[name].checkpointed_size)
        return (
            f"{name_of(name)} wrote {size} in {ms_text(took_ms)} from task manager {one_line(managers[name], 40)}: not all of the storage is "
            f"slow, but the disk or network of {one_line(manager, 40)}, or its process"
        )

    # ------------------------------------------------------------------------------------------ the checkpoint

    def _siblings(self, subtask: SubtaskId) -> list[tuple[SubtaskId, RecordedSubtask]]:
        return [(name, row) for name, row in self.rows.items() if name[0] == subtask[0] and name != subtask]

    def _end_clause(self) -> str:
        return " yet" if self.point.status == "IN_PROGRESS" else " when the checkpoint was given up"

    def _cut(self, step: PathStep) -> str:
        verb = "is" if self.point.status == "IN_PROGRESS" else "was"
        return f", and {verb} not through{self._end_clause()}" if step.is_open else ""

"""Find the causes of long checkpoints of a recorded job, and describe them as text.

* periodic events: window ends, timers, compactions
* process pauses: periods in which nothing in a TaskManager made progress
* for each step of a critical path: back-pressure, slow subtasks, skewed keys, slow files
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from sim.jobs.history.history import (
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

MAX_P_VALUE = 0.05
"""Maximum p-value at which a period is mentioned in the cause of a step."""
_LEVEL0_FILES_PER_COMPACTION = 4
"""Level-0 files that trigger a compaction (level0_file_num_compaction_trigger); each checkpoint flushes one file."""


@dataclass(frozen=True, slots=True)
class PeriodicEvent:
    """A periodic event of a job, such as its window ends."""

    of: str  # name of the event, for example "the windows of count (every 10 s)"
    text: str  # predicate of a checkpoint at one phase, for example "is every 4th: ..."
    phase: Callable[[RecordedCheckpoint], float]  # position of a checkpoint within the period, in [0, 1)


def periodic_events(history: History) -> Iterator[PeriodicEvent]:
    """Yield the periodic events of a job.  Session windows are not periodic."""
    for vertex, window in history.windows.items():
        if window.kind != "session" and not window.is_local:
            every = format_duration(window.every_ns)
            text = f"begins at the same time within the {every} between two ends of windows of {one_line(vertex, 40)}"
            yield PeriodicEvent(
                f"the windows of {one_line(vertex, 40)} (every {every})",
                text,
                partial(_phase_of_window, window.every_ns / MS),
            )
    yield from _timers(history)
    if history.is_on_disk:
        text = f"is every {_LEVEL0_FILES_PER_COMPACTION}th: RocksDB merges files of level 0 then"
        yield PeriodicEvent(f"RocksDB's merges (every {_LEVEL0_FILES_PER_COMPACTION}th)", text, _phase_of_compaction)


def _timers(history: History) -> Iterator[PeriodicEvent]:
    """Yield timers of keyed functions.  The plan does not show them, but the state size drops each time they fire."""
    for vertex in history.vertices:
        tooth = None if vertex.name in history.windows or history.is_on_disk else find_periodic_timers(history, vertex)
        if tooth is not None:
            name, every = one_line(vertex.name, 40), format_duration(round(tooth.period_ms) * MS)
            text = f"begins at the same time within the {every} in which the state of {name} rises and falls"
            yield PeriodicEvent(
                f"timers of {name} that fire together (its state falls every {every})",
                text,
                partial(_phase_of_window, tooth.period_ms),
            )


def _phase_of_window(every_ms: float, point: RecordedCheckpoint) -> float:
    """Return the position of a checkpoint's trigger within the period, in [0, 1)."""
    return point.trigger_timestamp % every_ms / every_ms


def _phase_of_compaction(point: RecordedCheckpoint) -> float:
    """Return the position of a checkpoint's id between two compactions, in [0, 1)."""
    return point.id % _LEVEL0_FILES_PER_COMPACTION / _LEVEL0_FILES_PER_COMPACTION


@lru_cache(maxsize=1)
def periodic_p_values(history: History) -> tuple[tuple[PeriodicEvent, float], ...]:
    """Return the periodic events of a history with their p-values.  Cached, because the text of each step needs them."""
    return tuple((rhythm, p_value_of(rhythm, history.usual)) for rhythm in periodic_events(history))


def p_value_of(rhythm: PeriodicEvent, points: Sequence[RecordedCheckpoint]) -> float:
    """Return the p-value of the null hypothesis that durations do not depend on the phase of the event (Rayleigh test)."""
    return phase_concentration_p_value(
        [rhythm.phase(point) for point in points], [point.end_to_end_duration for point in points]
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
    reached = moments(history, point)
    usual = _median_work_ns(history, point.id)
    by_manager: dict[str, list[DueWork]] = defaultdict(list)
    for wait in due_work(history, reached):
        by_manager[history.task_managers.get(wait.subtask, "")].append(wait)
    by_manager.pop("", None)
    stages = {manager: sorted({wait.end_ns for wait in found}) for manager, found in by_manager.items()}
    for manager, found in by_manager.items():
        still = max(_find_pauses(found, stages[manager], usual), key=lambda gap: gap[1] - gap[0], default=None)
        if still is not None and still[1] - still[0] >= max(
            _MIN_PAUSE_NS, _MIN_PAUSE_SHARE * point.end_to_end_duration * MS
        ):
            others = [time_ns for other, times in stages.items() if other != manager for time_ns in times]
            moved = any(still[0] < time_ns < still[1] for time_ns in others) if others else None
            yield ProcessPause(manager, *still, moved)


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
    found: list[DueWork], stages: list[int], usual: Mapping[tuple[SubtaskId, PathKind], float]
) -> Iterator[tuple[int, int, int]]:
    """Yield (begin, end, number of subtasks) of each pause: a period between two stages in which all due work was delayed.

    `stages` are the times at which any subtask of the TaskManager reached a stage, ascending.  `usual` has the median
    duration of each kind of work.  A pause has due work of several subtasks and several kinds, and some of it is of a
    kind that back-pressure does not delay.
    """
    for begin_ns, end_ns in pairwise([0, *stages]):
        if end_ns - begin_ns < _MIN_PAUSE_NS:
            continue
        late = end_ns - (end_ns - begin_ns) // 2
        during = [wait for wait in found if wait.begin_ns <= late and wait.end_ns >= end_ns]
        if not during or not all(_overran(wait, end_ns - begin_ns, usual) for wait in during):
            continue
        subtasks = {wait.subtask for wait in during}
        if (
            len(subtasks) > 1
            and len({wait.kind for wait in during}) > 1
            and _WORK_WITHOUT_BACKPRESSURE & {wait.kind for wait in during}
        ):
            yield begin_ns, end_ns, len(subtasks)


def _overran(wait: DueWork, pause_ns: int, usual: Mapping[tuple[SubtaskId, PathKind], float]) -> bool:
    """Return whether work took much longer than its median, and at least half of the pause explains why."""
    usual_ns = usual.get((wait.subtask, wait.kind))
    took_ns = wait.end_ns - wait.begin_ns
    return usual_ns is not None and took_ns >= _OVERRUN_FACTOR * usual_ns and took_ns - usual_ns >= pause_ns / 2


def _median_work_ns(history: History, but: int) -> Mapping[tuple[SubtaskId, PathKind], float]:
    """Return the median duration of each kind of work of each subtask [ns], over all checkpoints except the one with id `but`."""
    seen: dict[tuple[SubtaskId, PathKind], list[int]] = defaultdict(list)
    for number, found in _due_work_by_checkpoint(history).items():
        for wait in found if number != but else ():
            seen[wait.subtask, wait.kind].append(wait.end_ns - wait.begin_ns)
    return {what: median(times) for what, times in seen.items() if len(times) >= _MIN_OTHER_CHECKPOINTS}


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
_MIN_CHECKPOINTS_FOR_PERIOD = 8
"""Minimum number of checkpoints to mention a period, and minimum number of files to compare speeds."""


def place(step: PathStep) -> str:
    """Return where a step was spent: a subtask, a channel as ``reader < writer``, or "coordinator", as in simulated paths."""
    if step.subtask is None:
        return "coordinator"
    return name_of(step.at) if step.writer is None else f"{name_of(step.at)} < {name_of(step.writer)}"


def name_of(subtask: SubtaskId) -> str:
    """Return the name of a subtask, for example ``count[1]``."""
    return f"{one_line(subtask[0], 24)}[{subtask[1]}]"


class HistoryCauses:
    """Describes why the steps on the critical path of one checkpoint took long."""

    def __init__(self, history: History, point: RecordedCheckpoint) -> None:
        self.history = history
        self.point = point
        self.rows = subtasks_of(point)
        self._clauses: set[str] = set()  # about threads and periods; each is used once per checkpoint

    @cached_property
    def moments(self) -> Mapping[SubtaskId, Moments]:
        return moments(self.history, self.point)

    @cached_property
    def process_pauses(self) -> Mapping[str, ProcessPause]:
        """The longest pause of each TaskManager, by TaskManager."""
        return {still.manager: still for still in process_pauses(self.history, self.point)}

    def text(self, step: PathStep) -> str:
        """Return why a step took long, as a clause without a full stop.

        If the process was paused and a source received its trigger late, the pause is the only reason given.
        """
        still = self._still(step)
        if still and step.kind is PathKind.TASK_THREAD:
            return still
        return f"{self._text(step)}; {still}" if still else self._text(step)

    def _text(self, step: PathStep) -> str:
        cut = self._cut(step)
        match step.kind:
            case PathKind.TRIGGER:
                return "the JobManager prepares the checkpoint, and its calls travel; the quickest source had its call then"
            case PathKind.TASK_THREAD:
                return f"the task thread was inside a record, back-pressured or at other work before it took the call{cut}{self._kept(step)}"
            case PathKind.QUEUE:
                return self._queue(step)
            case PathKind.TIMEOUT:
                allowed = format_duration(self.history.aligned_for_ns)
                return (
                    f"data lay before it; the barrier may overtake only {allowed} after the trigger (alignment timeout)"
                )
            case PathKind.ALIGNMENT:
                return self._alignment(step)
            case PathKind.END_OF_INPUT:
                return f"the statistics name no subtask whose barrier it could have waited for: its inputs may have ended{cut}"
            case PathKind.PRE_BARRIER:
                return "work of the operator on the task thread, before the barrier goes on: what Flink's statistics leave of the checkpoint"
            case PathKind.SYNC:
                return "the synchronous part of the snapshot, on the task thread"
            case PathKind.UPLOAD | PathKind.CHANNEL_STATE | PathKind.ASYNC_WORK:
                return self._asynchronous(step)
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
            case PathKind.FINALISATION:
                return f"every subtask had acknowledged: the JobManager writes _metadata{cut}"
            case _:
                return "Flink's statistics do not name it"

    def _still(self, step: PathStep) -> str:
        """Return a clause if the TaskManager was paused during at least half of the step, otherwise ""."""
        manager = "" if step.subtask is None else self.history.task_managers.get(step.subtask, "")
        still = self.process_pauses.get(manager)
        if (
            still is None
            or 2 * (min(still.end_ns, step.end_ns) - max(still.begin_ns, step.begin_ns)) < step.duration_ns
        ):
            return ""
        others = {True: ", while others did", False: ", and none of the others did", None: ""}[still.moved]
        collects = self.history.garbage.get(manager)
        spent = (
            f" ({ms_text(collects.ms)} since it began)"
            if collects and is_excessive(collects, self.history.age_ms)
            else ""
        )
        return (
            f"nothing of task manager {one_line(manager, 40)} moved for {ms_text(still.duration_ns / 1e6)}{others}: its process stood "
            f"still or had no core (garbage collection{spent}, a stopped or swapped process, a busy host)"
        )

    # ------------------------------------------------------------------------------------------ barriers in channels

    def _queue(self, step: PathStep) -> str:
        if step.is_open:
            return f"its first barrier had not arrived{self._until()}{self._kept(step)}"
        if self._overtakes(step):
            text = f"it overtakes data, and waited for the thread of {name_of(step.at)}"
        else:
            text = f"it lay behind data that {name_of(step.at)} had to take first (Flink does not say how much)"
        return f"{text}{self._compared(step)}{self._kept(step)}{self._rhythm(step)}"

    def _alignment(self, step: PathStep) -> str:
        row = self.rows[step.at]
        read = f"; {bytes_text(row.alignment.processed)} were read meanwhile" if row.alignment.processed > 0 else ""
        if step.is_open:
            return f"its last barrier had not arrived{self._until()}{self._kept(step)}"
        text = (
            "this barrier is taken for the last, by when it set out"
            if self._has_choice(step)
            else "it is the last that was missing"
        )
        return f"{text}{read}{self._kept(step)}{self._rhythm(step)}"

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

    def _compared(self, step: PathStep) -> str:
        """Return a clause if the other subtasks of the vertex received their first barrier much earlier, otherwise ""."""
        others = [row.start_delay for name, row in self._siblings(step.at) if row.start_delay >= 0]
        if not others:
            return ""
        usual_ns = median(others) * MS
        if step.end_ns - usual_ns < step.duration_ns / 2:
            return ""
        earlier = ms_text((step.end_ns - usual_ns) / 1e6)
        return f"; {'the other subtask' if len(others) == 1 else 'other subtasks'} had theirs {earlier} earlier"

    def _kept(self, step: PathStep) -> str:
        """Return a clause about the busy thread: of the subtask, or of the bottleneck downstream.  The second time, return ""."""
        text = self._thread(step)
        if text in self._clauses:
            return ""
        self._clauses.add(text)
        return text

    def _thread(self, step: PathStep) -> str:
        """Return a clause if the task thread of a step is back-pressured or busy, otherwise ""."""
        thread = self.history.threads.get(step.at)
        if thread is None:
            return ""
        if (
            thread.back_pressured >= _MIN_BACKPRESSURED_SHARE
            and (bottleneck := self.bottleneck(step.at[0])) is not None
        ):
            busy = share_text(self.history.threads[bottleneck].busy)
            back = share_text(thread.back_pressured)
            by = f"{name_of(bottleneck)}, which is busy {busy}{self._slow(bottleneck)}{self._hot(bottleneck)}"
            return f"; {name_of(step.at)} is back-pressured {back} of its time, by {by}"
        if thread.busy >= _MIN_BUSY_SHARE:
            return f"; {name_of(step.at)} is busy {share_text(thread.busy)} of its time{self._slow(step.at)}{self._hot(step.at)}"
        return ""

    def bottleneck(self, vertex: str) -> SubtaskId | None:
        """Return the subtask that back-pressures a vertex, or None if no downstream subtask is busy enough.

        The search follows the most back-pressured subtask downstream, until a subtask is busier than that.
        """
        for _ in self.history.vertices:
            behind = {reader.name for reader in self.history.readers(vertex)}
            threads = {name: thread for name, thread in self.history.threads.items() if name[0] in behind}
            if not threads:
                return None
            busiest = max(threads, key=lambda name: threads[name].busy)
            pressed = max(threads, key=lambda name: threads[name].back_pressured)
            if threads[busiest].busy >= max(_MIN_BUSY_SHARE, threads[pressed].back_pressured):
                return busiest
            vertex = pressed[0]
        return None

    def _slow(self, subtask: SubtaskId) -> str:
        """Return a clause with the time per record of a subtask if it is much longer than that of its siblings, otherwise ""."""
        found = next((slow for slow in slow_subtasks(self.history) if slow.subtask == subtask), None)
        return f", needs {found.phrase}" if found else ""

    def _hot(self, subtask: SubtaskId) -> str:
        """Return a clause with the share of a subtask in the records of its vertex if records are skewed to it, otherwise ""."""
        share = self.share_of(subtask)
        return f", and reads {share_text(share)} of the records of its vertex" if share else ""

    def share_of(self, subtask: SubtaskId) -> float:
        """Return the share of a subtask in the records of its vertex.

        Return 0 if it is unknown, or not much more than an even share.
        """
        served = {name: count for name, count in self.history.served.items() if name[0] == subtask[0]}
        total = sum(served.values())
        share = served.get(subtask, 0.0) / total if total else 0.0
        return (
            share if len(served) > 1 and share >= min(_MIN_SKEW / len(served), (1 + 1 / len(served)) / 2 - 0.1) else 0.0
        )

    def _rhythm(self, step: PathStep) -> str:
        """Return a clause about the period of long checkpoints if this is a long checkpoint and the step matters, otherwise ""."""
        durations = [point.end_to_end_duration for point in self.history.usual]
        if (
            len(durations) < _MIN_CHECKPOINTS_FOR_PERIOD
            or self.point.end_to_end_duration < _MIN_RATIO * median(durations)
            or 10 * step.duration_ns < step.end_ns
        ):
            return ""
        text = "".join(
            f"; long checkpoints of this history keep the rhythm of {rhythm.of} (p = {p:.2g})"
            for rhythm, p in periodic_p_values(self.history)
            if p < MAX_P_VALUE
        )
        if text in self._clauses:
            return ""
        self._clauses.add(text)
        return text

    # ------------------------------------------------------------------------------------------ asynchronous phases

    def _asynchronous(self, step: PathStep) -> str:
        row = self.rows.get(step.at)
        if step.is_open and failed_asynchronously(self.point) and step.at not in self.moments:
            where = one_line(self.history.task_managers.get(step.at, ""), 40)
            on = f" task manager {where}" if where else " its task manager"
            return (
                "its asynchronous part failed, and it declined the checkpoint; "
                f"the exception is in the log of{on}, not in Flink's statistics"
            )
        if row is None or (step.is_open and step.at not in self.moments):
            return f"its snapshot had begun, and was not acknowledged{self._until()}"
        if step.is_open:
            later_ns, size = self.moments[step.at].written_ns - step.end_ns, bytes_text(row.checkpointed_size)
            speed = bytes_text(row.checkpointed_size * 1000 / max(row.checkpoint.async_, 1))
            through = (
                f"through {ms_text(later_ns / 1e6)} later ({size} at {speed}/s)"
                if later_ns > 0
                else f"aborted after {size}"
            )
            return f"its snapshot had begun, and was not acknowledged{self._until()}; it was {through}{self._others_wrote(step, row)}"
        if step.kind is PathKind.CHANNEL_STATE:
            stored = bytes_text(max(row.alignment.persisted, 0))
            text = f"{stored} of in-flight data are written to the file of channel state{self._with_channels(step)}"
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
        return f"{text}{self._others_wrote(step, row)}"

    def _with_channels(self, step: PathStep) -> str:
        """Return a clause about all in-flight data of the TaskManager, because its subtasks share channel state files."""
        places = self.history.task_managers
        if step.at not in places:
            return ""
        stored = [
            max(row.alignment.persisted, 0) for name, row in self.rows.items() if places.get(name) == places[step.at]
        ]
        rate = bytes_text(sum(stored) * 1e9 / step.duration_ns)
        return f"; with those of its task manager, {one_line(places[step.at], 40)}, {bytes_text(sum(stored))}: {rate}/s"

    def _others_wrote(self, step: PathStep, own: RecordedSubtask) -> str:
        """Return a clause if the subtask was much quicker in other checkpoints, otherwise ""."""
        other = [
            row
            for point in self.history.detailed
            if point.id != self.point.id
            and (row := subtasks_of(point).get(step.at)) is not None
            and row.checkpoint.async_ >= 0
        ]
        if len(other) < 3:
            return ""
        usual_ms, usual_bytes = (
            median(row.checkpoint.async_ for row in other),
            median(row.checkpointed_size for row in other),
        )
        if own.checkpoint.async_ < _MIN_RATIO * usual_ms:
            return ""
        text = f"; in its other {len(other)} checkpoints {ms_text(usual_ms)} for {bytes_text(max(usual_bytes, 0))} (median)"
        if own.checkpointed_size > _MIN_RATIO * usual_bytes and not self._is_slow_for_its_bytes(own):
            return text
        why = "a savepoint has a folder and a format of its own" if self.point.is_savepoint else self._ended_with(step)
        return f"{text}: bytes do not explain it; {why}"

    def _is_slow_for_its_bytes(self, own: RecordedSubtask) -> bool:
        """Return whether a file was written slowly, compared with files of at least half its size in other checkpoints."""
        rates = [
            row.checkpoint.async_ / row.checkpointed_size
            for point in self.history.detailed
            if point.id != self.point.id
            for row in subtasks_of(point).values()
            if row.checkpoint.async_ > 0 and 2 * row.checkpointed_size >= own.checkpointed_size > 0
        ]
        return len(
            rates
        ) >= _MIN_CHECKPOINTS_FOR_PERIOD and own.checkpoint.async_ > _SLOW_FILE_FACTOR * own.checkpointed_size * median(
            rates
        )

    def _ended_with(self, step: PathStep) -> str:
        """Return a clause with the likely cause of a slow file, inferred from the phases that ended at the same time.

        All of the job: the storage or the network.  All of one TaskManager: its process or disk.  None: not a process pause.
        """
        found = self.moments
        ended_ns = found[step.at].written_ns if step.is_open and step.at in found else step.end_ns
        other = {
            name: ended_ns - row.written_ns
            for name, row in found.items()
            if name != step.at and row.written_ns > row.synced_ns
        }
        with_it = [
            name for name, earlier_ns in other.items() if abs(earlier_ns) <= _MAX_END_DIFFERENCE * step.duration_ns
        ]
        places = self.history.task_managers
        collects = self.history.garbage.get(places.get(step.at, ""))
        if collects is not None and is_excessive(collects, self.history.age_ms):
            return f"the JVM of {one_line(places[step.at], 40)} has spent {ms_text(collects.ms)} in garbage collection"
        here = [name for name in other if step.at in places and places.get(name) == places[step.at]]
        remote = [name for name in other if name not in here]
        if len(with_it) == len(other) > 1:
            on = "on all task managers" if remote and here else "of the job"
            return f"those of all other subtasks {on} end with it: storage, the network or the whole machine kept them"
        if len(here) > 1 and set(with_it) >= set(here) and not set(with_it) & set(remote):
            return "those of its task manager end with it and others earlier: that process, its disk or its file of channel state kept them"
        if len(here) > 1 and not with_it:
            earlier = ms_text(min(other[name] for name in here) / 1e6)
            return (
                f"the other subtasks of its task manager were through {earlier} earlier: no pause of the process does"
            )
        return self._quicker_siblings(step) or "the disk, the network, a pause or a shared file may"

    def _quicker_siblings(self, step: PathStep) -> str:
        """Return a clause if a sibling in another TaskManager wrote a similar file far quicker: then not all storage is slow."""
        if (
            step.kind is PathKind.CHANNEL_STATE
        ):  # subtasks that share the file wait for each other, so their phases do not compare
            return ""
        places, own = self.history.task_managers, self.rows[step.at]
        here = places.get(step.at, "")
        quick = [
            (row.checkpoint.async_, name)
            for name, row in self._siblings(step.at)
            if name in self.moments
            and places.get(name, here) != here
            and 2 * row.checkpointed_size >= own.checkpointed_size > 0
            and _SLOW_FILE_FACTOR * row.checkpoint.async_ * own.checkpointed_size
            <= own.checkpoint.async_ * row.checkpointed_size
        ]
        if not quick:
            return ""
        took_ms, name = max(quick)
        size = bytes_text(self.rows[name].checkpointed_size)
        there = one_line(places[name], 40)
        return (
            f"{name_of(name)} wrote {size} in {ms_text(took_ms)} from task manager {there}: not all of the storage is slow, "
            f"but the disk or network of {one_line(here, 40)}, or its process"
        )

    # ------------------------------------------------------------------------------------------ the checkpoint

    def _siblings(self, subtask: SubtaskId) -> list[tuple[SubtaskId, RecordedSubtask]]:
        return [(name, row) for name, row in self.rows.items() if name[0] == subtask[0] and name != subtask]

    def _until(self) -> str:
        return " yet" if self.point.status == "IN_PROGRESS" else " when the checkpoint was given up"

    def _cut(self, step: PathStep) -> str:
        if not step.is_open:
            return ""
        return (
            ", and is not through yet"
            if self.point.status == "IN_PROGRESS"
            else ", and was not through when the checkpoint was given up"
        )

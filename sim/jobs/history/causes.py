"""Causes of long checkpoints of a real job: rhythms, stillness, slow subtasks."""

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
    is_much,
    moments,
    slow_subtasks,
    subtasks_of,
    writers_of,
)
from sim.jobs.history.path import PathStep, failed_asynchronously
from sim.jobs.infer.windows import DetectedPeriod, find_period, find_periodic_timers, phase_concentration_p_value
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.model.text import one_line
from sim.model.units import MS, format_duration
from sim.results.critical_path import PathKind
from sim.results.formats import bytes_text, ms_text, share_text

# ---- Whether long checkpoints come in a rhythm that the job has: the ends of its windows, or merges of RocksDB's files.

MAX_P_VALUE = 0.05
"""A rhythm is told where chance explains it less often than this."""
_MERGED = 4
"""Files of level 0 that RocksDB merges at once (level0_file_num_compaction_trigger); each checkpoint flushes one."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A rhythm of a job, such as the ends of its windows."""

    of: str  # what has it
    text: str  # what a checkpoint in it does
    turn: Callable[[RecordedCheckpoint], float]  # where in the rhythm a checkpoint begins: a share of one round


def rhythms(history: History) -> Iterator[Rhythm]:
    """All that a job has.  Sessions end at any time."""
    for vertex, window in history.windows.items():
        if window.kind != "session" and not window.is_local:
            every = format_duration(window.every_ns)
            text = f"begins at the same time within the {every} between two ends of windows of {one_line(vertex, 40)}"
            yield Rhythm(
                f"the windows of {one_line(vertex, 40)} (every {every})",
                text,
                partial(_turn_of_window, window.every_ns / MS),
            )
    yield from _timers(history)
    if history.is_on_disk:
        text = f"is every {_MERGED}th: RocksDB merges files of level 0 then"
        yield Rhythm(f"RocksDB's merges (every {_MERGED}th)", text, _turn_of_merge)


def _timers(history: History) -> Iterator[Rhythm]:
    """No plan names timers of a keyed function: the sizes of its state rise and fall with them."""
    for vertex in history.vertices:
        tooth = None if vertex.name in history.windows or history.is_on_disk else find_periodic_timers(history, vertex)
        if tooth is not None:
            name, every = one_line(vertex.name, 40), format_duration(round(tooth.period_ms) * MS)
            text = f"begins at the same time within the {every} in which the state of {name} rises and falls"
            yield Rhythm(
                f"timers of {name} that fire together (its state falls every {every})",
                text,
                partial(_turn_of_window, tooth.period_ms),
            )


def _turn_of_window(every_ms: float, point: RecordedCheckpoint) -> float:
    return point.trigger_timestamp % every_ms / every_ms


def _turn_of_merge(point: RecordedCheckpoint) -> float:
    return point.id % _MERGED / _MERGED


@lru_cache(maxsize=1)
def chances(history: History) -> tuple[tuple[Rhythm, float], ...]:
    """The rhythms of a history and their `chance` over its usual checkpoints.  Each step of each path asks; the draws are made once."""
    return tuple((rhythm, chance(rhythm, history.usual)) for rhythm in rhythms(history))


@lru_cache(maxsize=1)
def unnamed(history: History) -> DetectedPeriod | None:
    """A rhythm that nothing Flink tells of the job has.  None: there is none, or one that the job has explains long checkpoints."""
    if any(p < MAX_P_VALUE for _, p in chances(history)):
        return None
    found = find_period(
        [point.trigger_timestamp for point in history.usual], [point.end_to_end_duration for point in history.usual]
    )
    return found if found is not None and found.p < MAX_P_VALUE else None


def unnamed_text(rhythm: DetectedPeriod) -> str:
    """The rhythm as a clause: ``come every 9.1 s (2.6 s and 1.6 s would look the same ...``"""
    alike = " and ".join(_about_text(period_ms) for period_ms in rhythm.aliases_ms)
    return (
        f"come every {_about_text(rhythm.period_ms)} ({alike} would look the same at these checkpoints): timers, windows, "
        "or something beside the job that Flink does not tell of"
    )


def _about_text(period_ms: float) -> str:
    return f"{period_ms / 1000:.3g} s"


def chance(rhythm: Rhythm, points: Sequence[RecordedCheckpoint]) -> float:
    """The probability that durations dealt out at random would gather at one turn of the rhythm as much as these do."""
    return phase_concentration_p_value(
        [rhythm.turn(point) for point in points], [point.end_to_end_duration for point in points]
    )


# ---- Whether a process stood still during a checkpoint: no subtask of a task manager reached any stage, and more than one kind of work
# waited.
#
# A full collection of garbage, a stopped or swapped process, or a host that runs something else all look like that in
# Flink's statistics. Back-pressure does not: it keeps barriers behind data, but a source takes the coordinator's call,
# and files are written, as quickly as ever.

_LEAST_NS = 500 * MS
"""Shorter pauses are common where cores are busy."""
_MIN_PAUSE_SHARE = 0.25
"""A pause is a cause from this share of the duration on."""
_BEYOND = 3
"""Work has waited if it took so many times as long as usually."""
_MIN_OTHER_CHECKPOINTS = 3
"""What is usual follows from so many other checkpoints."""
_FREE = frozenset({PathKind.TASK_THREAD, PathKind.SYNC, PathKind.ASYNC_WORK})
"""Work that no back-pressure makes longer."""


class DueWork(NamedTuple):
    """Work of a subtask that was due, and took until `end_ns` after the trigger."""

    subtask: SubtaskId
    kind: PathKind
    begin_ns: int
    end_ns: int


class Stillness(NamedTuple):
    """A time in which no subtask of a task manager reached a stage [ns after the trigger]."""

    manager: str
    begin_ns: int
    end_ns: int
    subtasks: int  # that waited
    moved: bool | None  # whether other task managers did meanwhile; None: there is none

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


def stillnesses(history: History, point: RecordedCheckpoint) -> Iterator[Stillness]:
    """The longest of each task manager that stood still.  Where subtasks run has to be known."""
    reached = moments(history, point)
    usual = _usual_ns(history, point.id)
    by_manager: dict[str, list[DueWork]] = defaultdict(list)
    for wait in waits(history, reached):
        by_manager[history.task_managers.get(wait.subtask, "")].append(wait)
    by_manager.pop("", None)
    stages = {manager: sorted({wait.end_ns for wait in found}) for manager, found in by_manager.items()}
    for manager, found in by_manager.items():
        still = max(_gaps(found, stages[manager], usual), key=lambda gap: gap[1] - gap[0], default=None)
        if still is not None and still[1] - still[0] >= max(
            _LEAST_NS, _MIN_PAUSE_SHARE * point.end_to_end_duration * MS
        ):
            others = [time_ns for other, times in stages.items() if other != manager for time_ns in times]
            moved = any(still[0] < time_ns < still[1] for time_ns in others) if others else None
            yield Stillness(manager, *still, moved)


def waits(history: History, reached: Mapping[SubtaskId, Moments]) -> Iterator[DueWork]:
    """All that a subtask was given to do in a checkpoint, and when it was through.  Alignments are left out: others decide them."""
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


def _gaps(
    found: list[DueWork], stages: list[int], usual: Mapping[tuple[SubtaskId, PathKind], float]
) -> Iterator[tuple[int, int, int]]:
    """(begin, end, subtasks that waited): times between two stages in which all that was due took far longer than usually."""
    for begin_ns, end_ns in pairwise([0, *stages]):
        if end_ns - begin_ns < _LEAST_NS:
            continue
        late = end_ns - (end_ns - begin_ns) // 2
        during = [wait for wait in found if wait.begin_ns <= late and wait.end_ns >= end_ns]
        if not during or not all(_overran(wait, end_ns - begin_ns, usual) for wait in during):
            continue
        subtasks = {wait.subtask for wait in during}
        if len(subtasks) > 1 and len({wait.kind for wait in during}) > 1 and _FREE & {wait.kind for wait in during}:
            yield begin_ns, end_ns, len(subtasks)


def _overran(wait: DueWork, pause_ns: int, usual: Mapping[tuple[SubtaskId, PathKind], float]) -> bool:
    usual_ns = usual.get((wait.subtask, wait.kind))
    took_ns = wait.end_ns - wait.begin_ns
    return usual_ns is not None and took_ns >= _BEYOND * usual_ns and took_ns - usual_ns >= pause_ns / 2


def _usual_ns(history: History, but: int) -> Mapping[tuple[SubtaskId, PathKind], float]:
    """The median of each kind of work over the other checkpoints."""
    seen: dict[tuple[SubtaskId, PathKind], list[int]] = defaultdict(list)
    for number, found in _all_waits(history).items():
        for wait in found if number != but else ():
            seen[wait.subtask, wait.kind].append(wait.end_ns - wait.begin_ns)
    return {what: median(times) for what, times in seen.items() if len(times) >= _MIN_OTHER_CHECKPOINTS}


@lru_cache(maxsize=1)
def _all_waits(history: History) -> Mapping[int, tuple[DueWork, ...]]:
    """By checkpoint.  Each checkpoint is compared with all others; they are read once."""
    return {
        point.id: tuple(waits(history, moments(history, point))) for point in history.detailed if not point.is_savepoint
    }


# ---- A step of a real checkpoint -> why it took so long, in words: what Flink's statistics show beside it, and what they leave open.

_PRESSED = 0.2
"""A thread that is back-pressured for a smaller share of its time is hardly kept by its readers."""
_FULL = 0.5
"""A thread that works for a smaller share of its time is not what others wait for."""
_HOT = 1.5
"""A subtask with so many times its even share of the records is named."""
_UNLIKE = 1.5
"""Subtasks or checkpoints that differ by a smaller factor are alike."""
_SLOW_FILE_FACTOR = 3
"""A file is slow for its bytes from so many times the usual on."""
_AT_ONCE = 0.1
"""Asynchronous parts end with another if they do within this share of its length."""
_MIN_RHYTHM_CHECKPOINTS = 8
"""A rhythm is told from so many checkpoints on."""


def place(step: PathStep) -> str:
    """A subtask, the way from one subtask to another, or the coordinator: as in simulated paths."""
    if step.subtask is None:
        return "coordinator"
    return name_of(step.at) if step.writer is None else f"{name_of(step.at)} < {name_of(step.writer)}"


def name_of(subtask: SubtaskId) -> str:
    """``count[1]``"""
    return f"{one_line(subtask[0], 24)}[{subtask[1]}]"


class HistoryCauses:
    """The causes of the steps of one checkpoint, in words."""

    def __init__(self, history: History, point: RecordedCheckpoint) -> None:
        self.history = history
        self.point = point
        self.rows = subtasks_of(point)
        self._clauses: set[str] = set()  # about threads: once per checkpoint

    @cached_property
    def moments(self) -> Mapping[SubtaskId, Moments]:
        return moments(self.history, self.point)

    @cached_property
    def stillnesses(self) -> Mapping[str, Stillness]:
        """By task manager."""
        return {still.manager: still for still in stillnesses(self.history, self.point)}

    def text(self, step: PathStep) -> str:
        """Why so long: a clause without a full stop."""
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
            case PathKind.FINALISATION:
                return f"every subtask had acknowledged: the JobManager writes _metadata{cut}"
            case _:
                return "Flink's statistics do not name it"

    def _still(self, step: PathStep) -> str:
        """That the process of the step stood still during most of it."""
        manager = "" if step.subtask is None else self.history.task_managers.get(step.subtask, "")
        still = self.stillnesses.get(manager)
        if (
            still is None
            or 2 * (min(still.end_ns, step.end_ns) - max(still.begin_ns, step.begin_ns)) < step.duration_ns
        ):
            return ""
        others = {True: ", while others did", False: ", and none of the others did", None: ""}[still.moved]
        collects = self.history.garbage.get(manager)
        spent = (
            f" ({ms_text(collects.ms)} since it began)" if collects and is_much(collects, self.history.age_ms) else ""
        )
        return (
            f"nothing of task manager {one_line(manager, 40)} moved for {ms_text(still.duration_ns / 1e6)}{others}: its process stood "
            f"still or had no core (garbage collection{spent}, a stopped or swapped process, a busy host)"
        )

    # ------------------------------------------------------------------------------------------ on the way

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
        vertex = None if step.subtask is None else self.history.vertex(step.subtask[0])
        return vertex is not None and any(self.history.vertex(edge.upstream).parallelism > 1 for edge in vertex.inputs)

    def _overtakes(self, step: PathStep) -> bool:
        rows = [self.rows.get(name) for name in (step.subtask, step.writer) if name is not None]
        return (
            any(row is not None and row.unaligned_checkpoint for row in rows)
            and step.begin_ns >= self.history.aligned_for_ns
        )

    def _compared(self, step: PathStep) -> str:
        """Where the other subtasks of the vertex had their barrier much earlier."""
        others = [row.start_delay for name, row in self._siblings(step.at) if row.start_delay >= 0]
        if not others:
            return ""
        usual_ns = median(others) * MS
        if step.end_ns - usual_ns < step.duration_ns / 2:
            return ""
        earlier = ms_text((step.end_ns - usual_ns) / 1e6)
        return f"; {'the other subtask' if len(others) == 1 else 'other subtasks'} had theirs {earlier} earlier"

    def _kept(self, step: PathStep) -> str:
        """Whose thread kept the reader from taking data: its own, or that of a subtask behind it."""
        text = self._thread(step)
        if text in self._clauses:
            return ""
        self._clauses.add(text)
        return text

    def _thread(self, step: PathStep) -> str:
        thread = self.history.threads.get(step.at)
        if thread is None:
            return ""
        if thread.back_pressured >= _PRESSED and (bottleneck := self.bottleneck(step.at[0])) is not None:
            busy = share_text(self.history.threads[bottleneck].busy)
            back = share_text(thread.back_pressured)
            by = f"{name_of(bottleneck)}, which is busy {busy}{self._slow(bottleneck)}{self._hot(bottleneck)}"
            return f"; {name_of(step.at)} is back-pressured {back} of its time, by {by}"
        if thread.busy >= _FULL:
            return f"; {name_of(step.at)} is busy {share_text(thread.busy)} of its time{self._slow(step.at)}{self._hot(step.at)}"
        return ""

    def bottleneck(self, vertex: str) -> SubtaskId | None:
        """The busiest subtask behind a back-pressured vertex, followed until one is not back-pressured itself."""
        for _ in self.history.vertices:
            behind = {reader.name for reader in self.history.readers(vertex)}
            threads = {name: thread for name, thread in self.history.threads.items() if name[0] in behind}
            if not threads:
                return None
            busiest = max(threads, key=lambda name: threads[name].busy)
            pressed = max(threads, key=lambda name: threads[name].back_pressured)
            if threads[busiest].busy >= max(_FULL, threads[pressed].back_pressured):
                return busiest
            vertex = pressed[0]
        return None

    def _slow(self, subtask: SubtaskId) -> str:
        """The time per record of a subtask that needs longer than the others of its vertex."""
        found = next((slow for slow in slow_subtasks(self.history) if slow.subtask == subtask), None)
        return f", needs {found.phrase}" if found else ""

    def _hot(self, subtask: SubtaskId) -> str:
        """The share of a subtask in the records of its vertex, if that is far from even."""
        share = self.share_of(subtask)
        return f", and reads {share_text(share)} of the records of its vertex" if share else ""

    def share_of(self, subtask: SubtaskId) -> float:
        """The share of a subtask in the records of its vertex; 0: not known, or about even."""
        served = {name: count for name, count in self.history.served.items() if name[0] == subtask[0]}
        total = sum(served.values())
        share = served.get(subtask, 0.0) / total if total else 0.0
        return share if len(served) > 1 and share >= min(_HOT / len(served), (1 + 1 / len(served)) / 2 - 0.1) else 0.0

    def _rhythm(self, step: PathStep) -> str:
        """The rhythm that long checkpoints of the history keep, if this is one of them."""
        durations = [point.end_to_end_duration for point in self.history.usual]
        if (
            len(durations) < _MIN_RHYTHM_CHECKPOINTS
            or self.point.end_to_end_duration < _UNLIKE * median(durations)
            or 10 * step.duration_ns < step.end_ns
        ):
            return ""
        text = "".join(
            f"; long checkpoints of this history keep the rhythm of {rhythm.of} (p = {p:.2g})"
            for rhythm, p in chances(self.history)
            if p < MAX_P_VALUE
        )
        if (rhythm := unnamed(self.history)) is not None:
            text += f"; long checkpoints of this history {unnamed_text(rhythm)} (p = {rhythm.p:.2g})"
        if text in self._clauses:
            return ""
        self._clauses.add(text)
        return text

    # ------------------------------------------------------------------------------------------ files

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
        """In-flight data of its task manager, whose subtasks share files that are written one subtask after the other."""
        places = self.history.task_managers
        if step.at not in places:
            return ""
        stored = [
            max(row.alignment.persisted, 0) for name, row in self.rows.items() if places.get(name) == places[step.at]
        ]
        rate = bytes_text(sum(stored) * 1e9 / step.duration_ns)
        return f"; with those of its task manager, {one_line(places[step.at], 40)}, {bytes_text(sum(stored))}: {rate}/s"

    def _others_wrote(self, step: PathStep, own: RecordedSubtask) -> str:
        """Other checkpoints of the subtask, where they differ by much."""
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
        if own.checkpoint.async_ < _UNLIKE * usual_ms:
            return ""
        text = f"; in its other {len(other)} checkpoints {ms_text(usual_ms)} for {bytes_text(max(usual_bytes, 0))} (median)"
        if own.checkpointed_size > _UNLIKE * usual_bytes and not self._is_slow_for_its_bytes(own):
            return text
        why = "a savepoint has a folder and a format of its own" if self.point.is_savepoint else self._ended_with(step)
        return f"{text}: bytes do not explain it; {why}"

    def _is_slow_for_its_bytes(self, own: RecordedSubtask) -> bool:
        """Beside files of other checkpoints that are at least half as large, of any subtask."""
        rates = [
            row.checkpoint.async_ / row.checkpointed_size
            for point in self.history.detailed
            if point.id != self.point.id
            for row in subtasks_of(point).values()
            if row.checkpoint.async_ > 0 and 2 * row.checkpointed_size >= own.checkpointed_size > 0
        ]
        return len(
            rates
        ) >= _MIN_RHYTHM_CHECKPOINTS and own.checkpoint.async_ > _SLOW_FILE_FACTOR * own.checkpointed_size * median(
            rates
        )

    def _ended_with(self, step: PathStep) -> str:
        """Whose asynchronous parts ended with this one: all that wait for one thing are through at the same time."""
        found = self.moments
        ended_ns = found[step.at].written_ns if step.is_open and step.at in found else step.end_ns
        other = {
            name: ended_ns - row.written_ns
            for name, row in found.items()
            if name != step.at and row.written_ns > row.synced_ns
        }
        with_it = [name for name, earlier_ns in other.items() if abs(earlier_ns) <= _AT_ONCE * step.duration_ns]
        places = self.history.task_managers
        collects = self.history.garbage.get(places.get(step.at, ""))
        if collects is not None and is_much(collects, self.history.age_ms):
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
        """Subtasks of the vertex in other task managers that wrote as much, and far quicker: it is not all of the storage that is slow."""
        if step.kind is PathKind.CHANNEL_STATE:  # a subtask waits for those before it in the file
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

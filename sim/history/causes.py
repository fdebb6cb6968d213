"""A step of a real checkpoint -> why it took so long, in words: what Flink's statistics show beside it, and what they leave open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from statistics import median

from sim.analysis.number_texts import bytes_text, ms_text, share_text
from sim.foreign import one_line
from sim.history.garbage import is_much
from sim.history.history import History, SubtaskId, subtasks_of
from sim.history.moments import Moments, moments
from sim.history.path import PathStep, failed_asynchronously
from sim.history.rhythms import RARE, chances, unnamed, unnamed_text
from sim.history.service_times import slow_subtasks
from sim.history.stillness import Stillness, stillnesses
from sim.metrics.critical_path import PathKind
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.units import MS, format_duration

_PRESSED = 0.2
"""A thread that is back-pressured for a smaller share of its time is hardly kept by its readers."""
_FULL = 0.5
"""A thread that works for a smaller share of its time is not what others wait for."""
_HOT = 1.5
"""A subtask with so many times its even share of the records is named."""
_UNLIKE = 1.5
"""Subtasks or checkpoints that differ by a smaller factor are alike."""
_SLOW = 3
"""A file is slow for its bytes from so many times the usual on."""
_AT_ONCE = 0.1
"""Asynchronous parts end with another if they do within this share of its length."""
_FEWEST = 8
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
                return (
                    f"the task thread was inside a record, back-pressured or at other work before it took the call{cut}{self._kept(step)}"
                )
            case PathKind.QUEUE:
                return self._queue(step)
            case PathKind.TIMEOUT:
                allowed = format_duration(self.history.aligned_for_ns)
                return f"data lay before it; the barrier may overtake only {allowed} after the trigger (alignment timeout)"
            case PathKind.ALIGNMENT:
                return self._alignment(step)
            case PathKind.END_OF_INPUT:
                return f"the statistics name no subtask whose barrier it could have waited for: its inputs may have ended{cut}"
            case PathKind.PRE_BARRIER:
                return (
                    "work of the operator on the task thread, before the barrier goes on: what Flink's statistics leave of the checkpoint"
                )
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
        if still is None or 2 * (min(still.end_ns, step.end_ns) - max(still.begin_ns, step.begin_ns)) < step.duration_ns:
            return ""
        others = {True: ", while others did", False: ", and none of the others did", None: ""}[still.moved]
        collects = self.history.garbage.get(manager)
        spent = f" ({ms_text(collects.ms)} since it began)" if collects and is_much(collects, self.history.age_ms) else ""
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
        text = "this barrier is taken for the last, by when it set out" if self._has_choice(step) else "it is the last that was missing"
        return f"{text}{read}{self._kept(step)}{self._rhythm(step)}"

    def _has_choice(self, step: PathStep) -> bool:
        vertex = None if step.subtask is None else self.history.vertex(step.subtask[0])
        return vertex is not None and any(self.history.vertex(edge.upstream).parallelism > 1 for edge in vertex.inputs)

    def _overtakes(self, step: PathStep) -> bool:
        rows = [self.rows.get(name) for name in (step.subtask, step.writer) if name is not None]
        return any(row is not None and row.unaligned_checkpoint for row in rows) and step.begin_ns >= self.history.aligned_for_ns

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
        if len(durations) < _FEWEST or self.point.end_to_end_duration < _UNLIKE * median(durations) or 10 * step.duration_ns < step.end_ns:
            return ""
        text = "".join(
            f"; long checkpoints of this history keep the rhythm of {rhythm.of} (p = {p:.2g})"
            for rhythm, p in chances(self.history)
            if p < RARE
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
            through = f"through {ms_text(later_ns / 1e6)} later ({size} at {speed}/s)" if later_ns > 0 else f"aborted after {size}"
            return f"its snapshot had begun, and was not acknowledged{self._until()}; it was {through}{self._others_wrote(step, row)}"
        if step.kind is PathKind.CHANNEL_STATE:
            stored = bytes_text(max(row.alignment.persisted, 0))
            text = f"{stored} of in-flight data are written to the file of channel state{self._with_channels(step)}"
        elif step.kind is PathKind.ASYNC_WORK:
            wrote = f"{bytes_text(row.checkpointed_size)}, too little for a file" if row.checkpointed_size > 0 else "no bytes"
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
        stored = [max(row.alignment.persisted, 0) for name, row in self.rows.items() if places.get(name) == places[step.at]]
        rate = bytes_text(sum(stored) * 1e9 / step.duration_ns)
        return f"; with those of its task manager, {one_line(places[step.at], 40)}, {bytes_text(sum(stored))}: {rate}/s"

    def _others_wrote(self, step: PathStep, own: RecordedSubtask) -> str:
        """Other checkpoints of the subtask, where they differ by much."""
        other = [
            row
            for point in self.history.detailed
            if point.id != self.point.id and (row := subtasks_of(point).get(step.at)) is not None and row.checkpoint.async_ >= 0
        ]
        if len(other) < 3:
            return ""
        usual_ms, usual_bytes = median(row.checkpoint.async_ for row in other), median(row.checkpointed_size for row in other)
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
        return len(rates) >= _FEWEST and own.checkpoint.async_ > _SLOW * own.checkpointed_size * median(rates)

    def _ended_with(self, step: PathStep) -> str:
        """Whose asynchronous parts ended with this one: all that wait for one thing are through at the same time."""
        found = self.moments
        ended_ns = found[step.at].written_ns if step.is_open and step.at in found else step.end_ns
        other = {name: ended_ns - row.written_ns for name, row in found.items() if name != step.at and row.written_ns > row.synced_ns}
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
            return f"the other subtasks of its task manager were through {earlier} earlier: no pause of the process does"
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
            if name in self.moments and places.get(name, here) != here and 2 * row.checkpointed_size >= own.checkpointed_size > 0
            and _SLOW * row.checkpoint.async_ * own.checkpointed_size <= own.checkpoint.async_ * row.checkpointed_size
        ]  # fmt: skip
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
            ", and is not through yet" if self.point.status == "IN_PROGRESS" else ", and was not through when the checkpoint was given up"
        )

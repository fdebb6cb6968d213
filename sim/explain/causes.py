"""Place and cause of each wait on the critical path of a simulated checkpoint, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sim.model.job import Vertex
from sim.model.state import State
from sim.model.storage import SlowPlaces
from sim.model.text import one_line
from sim.model.units import SECOND, format_duration
from sim.plane.interface import channels_out
from sim.protocol.options import forced_aligned_edges
from sim.results.critical_path import PathKind, PathPart
from sim.results.formats import bytes_text
from sim.results.journal import EventType
from sim.results.tables import CheckpointStats
from sim.storage.ledger import FileId, StoredFile
from sim.storage.media.dfs import DistributedFileSystem
from sim.storage.media.flat import FlatStorage
from sim.storage.media.object_store import ObjectStorage
from sim.storage.media.slow_nodes import slowness

if TYPE_CHECKING:
    from sim.explain.close_up import ObservedInstance, Queued
    from sim.runtime.context import Context


# ---- Slow files: a slow node of a distributed file system, prefix of an object store, or stream of flat storage.

_MAX_BLOCKS = 1000
"""Maximum blocks of a file whose nodes are searched."""


class SlowPlace(NamedTuple):
    """A slow part of storage that delayed a file: a node, a prefix or a stream."""

    factor: Fraction  # the bandwidth is divided by it
    place: str  # clause, e.g. ``node 3 was slow``


def slow_file(context: Context, file: StoredFile) -> SlowPlace | None:
    """Return the slowest part of storage that a file was written to, or None if none was slow or the file is on a local disk."""
    if file.disk:
        return None
    medium = context.storage.medium
    physical = file if file.inside is None else context.storage.files[file.inside]
    if isinstance(medium, FlatStorage):
        factor = medium.slowness(physical.name)
        return SlowPlace(Fraction(factor), "the stream was a slow one") if factor > 1 else None
    if isinstance(medium, DistributedFileSystem) and medium.options.slow is not None:
        return _slowest_place(medium.options.slow, medium.seed, _nodes(medium, physical), "node", physical)
    if isinstance(medium, ObjectStorage) and medium.options.slow is not None:
        return _slowest_place(medium.options.slow, medium.seed, {medium.prefix(physical.name)}, "prefix", physical)
    return None


def _nodes(dfs: DistributedFileSystem, file: StoredFile) -> set[int]:
    """Return the numbers of the nodes that hold blocks of a file."""
    blocks = min(_MAX_BLOCKS, max(1, -(-file.size_bytes // dfs.options.block_bytes)))
    return {node for block in range(blocks) for node in dfs.replicas(file.name, file.host, block)}


def _slowest_place(slow: SlowPlaces, seed: int, numbers: set[int], title: str, file: StoredFile) -> SlowPlace | None:
    """Return the slowest of these nodes or prefixes while the file was written, or None if none was slow."""
    end_ns = file.created_ns if file.durable_ns is None else file.durable_ns
    moments = [file.created_ns + (end_ns - file.created_ns) * i // 8 for i in range(9)]
    slowest: SlowPlace | None = None
    for number in sorted(numbers):
        history = slowness(slow, seed, number)
        factor = max(history.at(moment)[0] for moment in moments)
        if factor > 1 and (slowest is None or factor > slowest.factor):
            slowest = SlowPlace(factor, f"{title} {number} was slow")
    return slowest


# ---- Descriptions of the parts of a critical path: place and cause.

COMMON = {
    PathKind.TRIGGER: "the coordinator prepares the checkpoint, and its calls travel",
    PathKind.TASK_THREAD: "the task thread was inside a record, back-pressured or at other work before it took the call",
    PathKind.PRE_BARRIER: "prepareSnapshotPreBarrier: work of the operator on the task thread, before the barrier goes on",
    PathKind.SYNC: "the synchronous part of the snapshot, on the task thread",
    PathKind.FINALISATION: "the coordinator writes _metadata and completes the checkpoint",
}
"""Causes that are the same in simulated runs and in real jobs."""


def subtask_name(vertex: str, index: int) -> str:
    """Return the name of a subtask, e.g. ``sink[3]``."""
    return f"{one_line(vertex, 24)}[{index}]"


def _flush_text(state: State | None, part: PathPart) -> str:
    """Return a clause on the memtable that most of a synchronous part flushes, or "" if other work takes longer."""
    if state is None or state.changelog is not None or not state.kind.keeps_files:
        return ""
    flush_ns = part.duration_ns - state.sync_ns - state.lsm.freeze_ns
    if flush_ns < part.duration_ns / 2:
        return ""
    rate = state.lsm.flush_bytes_per_second
    size = bytes_text(flush_ns * rate / SECOND)
    return f": it flushes what the memtable has got since the last flush, {size} at {bytes_text(rate)}/s (state.lsm.memtable, flush)"


class Causes:
    """Describes the places and causes of the critical path parts of one checkpoint.

    `instance`: observations of its job.  `checkpoint`: its id.
    """

    def __init__(self, instance: ObservedInstance, checkpoint: int) -> None:
        self.instance = instance
        self.context = instance.context
        self.checkpoint = checkpoint

    def place(self, part: PathPart) -> str:
        """Return where a part was spent: a subtask, a channel (``reader < writer``), or the coordinator."""
        if part.channel >= 0:
            return f"{self._task(part.task)} < {self._task(self.context.layout.writer[part.channel])}"
        return "coordinator" if part.task < 0 else self._task(part.task)

    def slow(self, parts: Sequence[PathPart]) -> SlowPlace | None:
        """Return the slowest part of storage that the files of these parts were written to, or None if none was slow."""
        places = [slow_file(self.context, file) for file in self._files(parts)]
        return max((slow for slow in places if slow is not None), key=lambda slow: slow.factor, default=None)

    def text(self, parts: Sequence[PathPart]) -> str:
        """Return the cause of consecutive parts of the same kind and place, as a clause without a full stop."""
        part, options = parts[0], self.context.scenario.checkpoint
        vertex = None if part.task < 0 else self._vertex(part)
        match part.kind:
            case PathKind.QUEUE:
                return self._queue_cause(part)
            case PathKind.TIMEOUT:
                allowed = options.barriers.timeout_ns or 0
                return f"{self._data_ahead(part)}; the barrier may overtake only {format_duration(allowed)} after the trigger (alignment timeout)"
            case PathKind.ALIGNMENT:
                return self._alignment_cause(part)
            case PathKind.END_OF_INPUT:
                return "an input of the task ends instead of sending a barrier, and its end was awaited"
            case PathKind.FLUSH:
                return (
                    f"the operator writes before it forwards the barrier, on the task thread: {self._file_cause(parts)}"
                )
            case PathKind.ASYNC_QUEUE:
                return "the one asynchronous thread of the task was still at work for an older checkpoint"
            case PathKind.ASYNC_WORK:
                return self._async_work_cause(part)
            case PathKind.SYNC:
                return COMMON[part.kind] + _flush_text(None if vertex is None else vertex.state, part)
            case PathKind.UPLOAD:
                return self._file_cause(parts)
            case PathKind.OUTPUT:
                return (
                    "its own barriers had not left its output queues, and what they overtake belongs to the checkpoint"
                )
            case PathKind.CHANNEL_STATE:
                return self._channel_state_cause(part)
            case PathKind.ACKNOWLEDGEMENT:
                return "the acknowledgement travels to the coordinator and takes its turn there"
            case PathKind.NOTIFICATION:
                return "the notification travels, and waits for the thread of the committer"
            case PathKind.COMMIT:
                commit = None if vertex is None else vertex.commit
                return f"the commit makes the output visible{'' if commit is None or not commit.time_ns else ', on the task thread'}"
            case _:
                return COMMON[part.kind]

    # ------------------------------------------------------------------------------------------ channels

    def _data_ahead(self, part: PathPart) -> str:
        """Return a clause on the data in front of the barrier, in one channel or in all outputs of the task."""
        channels = [part.channel] if part.channel >= 0 else list(self._outputs(part.task))
        queued = [
            row for channel in channels if (row := self.instance.before_barrier(self.checkpoint, channel)) is not None
        ]
        total = sum(row.total for row in queued)
        if not total:
            return "no data was queued ahead of it"
        sender, reader = sum(row.at_writer for row in queued), sum(row.at_reader for row in queued)
        barriers = self.context.scenario.checkpoint.barriers
        is_stuck = sender and barriers.record.has_deadline and not barriers.reaches_output
        stuck = ", where barriers overtake nothing before Flink 1.16 (FLINK-27251)" if is_stuck else ""
        return f"{bytes_text(total)} queued ahead of it ({bytes_text(sender)} not sent yet{stuck}, {bytes_text(reader)} received or in transit)"

    def _queue_cause(self, part: PathPart) -> str:
        """Return why a barrier waited in a channel."""
        row = self._queued(part)
        if (firing := self._firing_text(part) or self._commit_text(part)) is not None:
            return f"{firing}; {self._data_ahead(part)}"
        if row is None or not row.total:
            return f"no data was queued ahead of it: it waited until the thread of {self._task(part.task)} was free{self._full_requests_text(part)}"
        if self._overtook(part):
            return f"it overtook data, and waited for the thread of {self._task(part.task)}{self._full_requests_text(part)}"
        if self._is_open(part):
            return f"{self._data_ahead(part)}, not drained {self._until}"
        if self._is_in_progress(part):
            return f"the thread of {self._task(part.task)} was processing a record, which no barrier overtakes: its service time decides"
        rate = f"{bytes_text(row.total * SECOND / part.duration_ns)}/s"
        full = self._full_requests_text(part)
        return f"{self._data_ahead(part)}, drained at {rate}{f' by {self._task(part.task)}{full}' if full else ''}"

    def _full_requests_text(self, part: PathPart) -> str:
        """Return a clause if all asynchronous requests of the reader were pending when the barrier was sent, or ""."""
        requests = self._vertex(part).async_io
        writer = self.context.layout.writer[part.channel]
        pending = self.instance.waiting.get((self.checkpoint, writer, part.task), 0)
        if requests is None or pending < requests.capacity:
            return ""
        return f", which waits until the oldest of its {requests.capacity} asynchronous requests returns (async-io.capacity)"

    def waits_for_thread(self, part: PathPart) -> bool:
        """Return whether the barrier waits for the thread of the task, and not for the data in front of it.

        Unaligned barriers would then not shorten the part.
        """
        row = self._queued(part)
        is_held = (self._firing_text(part) or self._commit_text(part)) is not None
        return is_held or row is None or not row.total or self._overtook(part) or self._is_in_progress(part)

    def _is_in_progress(self, part: PathPart) -> bool:
        """Return whether less than a record lay before the barrier in the only input of the task: the rest of one that it serves."""
        row, layout = self._queued(part), self.context.layout
        edge = self.context.spec.edges[layout.edge[part.channel]]
        return row is not None and 0 < row.total < min(edge.record_bytes) and layout.reader.count(part.task) == 1

    def _firing_text(self, part: PathPart) -> str | None:
        """Return a clause if a firing window occupied the thread for at least half of the part, else None."""
        vertex = self._vertex(part)
        window, fired = vertex.window, self.instance.fired(self.checkpoint, part.channel)
        if window is None or fired * vertex.fan_out * window.fire_ns < part.duration_ns // 2:
            return None
        emitted = math.ceil(fired * vertex.fan_out)
        return f"its window ended, and {emitted} records or more left it on the task thread, {format_duration(window.fire_ns)} each"

    def _commit_text(self, part: PathPart) -> str | None:
        """Return a clause if commits of older checkpoints occupied the thread for at least half of the part, else None."""
        job = self.context.scenario.job
        vertex = job.vertices[self.context.layout.vertex[part.task]]
        commit = job.vertex(vertex.committer_of or vertex.name).commit
        if commit is None or not commit.time_ns:
            return None
        ends_ns = [row.time_ns for row in self.context.commits if row.task == part.task]
        held_ns = sum(max(0, min(part.end_ns, end) - max(part.begin_ns, end - commit.time_ns)) for end in ends_ns)
        if 2 * held_ns < part.duration_ns:
            return None
        return f"the thread of {self._task(part.task)} commits an older checkpoint, which takes {format_duration(commit.time_ns)} (commit.time)"

    def _alignment_cause(self, part: PathPart) -> str:
        """Return why the last barrier of a task arrived later than the first."""
        entries = [
            entry for entry in self.instance.path_finder().entries_of(self.checkpoint) if entry.task == part.task
        ]
        arrivals = [entry for entry in entries if entry.event_type is EventType.BARRIER_ARRIVED]
        text = ""
        if arrivals and arrivals[0].number != part.channel:
            text = f"the first barrier came from {self._task(self.context.layout.writer[arrivals[0].number])}, the last through this channel: "
        if self._overtook(part):
            return f"{text}it overtook data, and waited for the thread of {self._task(part.task)}{self._full_requests_text(part)}"
        sent_ns = self._time(EventType.BARRIER_FORWARDED, self.context.layout.writer[part.channel])
        row = self._queued(part)
        if sent_ns is not None and sent_ns > part.begin_ns:
            text += "its writer sent it later; "
        if row is None or not row.total:
            return f"{text}no data was queued ahead of it any more"
        return f"{text}{self._data_ahead(part)} when it set out"

    def _overtook(self, part: PathPart) -> bool:
        """Return whether the barrier was allowed to overtake when this part began."""
        scenario, writer = self.context.scenario, self.context.layout.writer[part.channel]
        edge = self.context.names[writer][0], self.context.names[part.task][0]
        if edge in forced_aligned_edges(scenario.job, scenario.checkpoint.forced_aligned, scenario.cluster.version):
            return False
        kind = scenario.checkpoint.barriers.record
        if kind.overtakes and not kind.has_deadline:
            return True
        times = self._time(EventType.OUTPUT_CONVERTED, writer), self._time(EventType.INPUT_PRIORITISED, part.task)
        row = self._queued(part)
        if not scenario.checkpoint.barriers.reaches_output and row is not None and row.at_writer:
            return False
        return any(time_ns is not None and time_ns <= part.begin_ns for time_ns in times)

    # ------------------------------------------------------------------------------------------ files

    def _file_cause(self, parts: Sequence[PathPart]) -> str:
        """Return a clause on the files of these parts: their size, their rate, and slow storage."""
        files, spent_ns = self._files(parts), sum(part.duration_ns for part in parts)
        unfinished = [file for file in files if file.durable_ns is None or file.durable_ns > parts[-1].end_ns]
        longest = max(unfinished or files, key=lambda file: (file.durable_ns or self._end_ns) - file.created_ns)
        size = sum(file.size_bytes for file in files)
        name = one_line("/".join(map(str, longest.name)), 60)
        which = "of which" if unfinished else "the longest"
        subject = f"file {name}" if len(files) == 1 else f"{len(files)} files one after the other, {which} {name}"
        if unfinished:
            text = f"{subject} was not durable {self._until}"
        else:
            text = f"{subject}, {bytes_text(size)} at {bytes_text(size * SECOND / spent_ns)}/s{self._compacted_text(parts[0].task, files)}"
        if self._stats.savepoint_format == "canonical" and (
            rate := self.context.scenario.checkpoint.state.savepoint_bytes_per_second
        ):
            text += f"; its entries are serialised at most at {bytes_text(rate)}/s (checkpoint.savepoint-rate), whatever storage takes"
        text += self._refused_text(longest)
        slow = self.slow(parts)
        return text if slow is None else f"{text}; {slow.place} (bandwidth divided by {float(slow.factor):g})"

    def _refused_text(self, file: StoredFile) -> str:
        """Return a clause on requests that an object store refused while a file was written, or "" if there are none."""
        medium = self.context.storage.medium
        if file.disk or not isinstance(medium, ObjectStorage) or (limit := medium.options.requests_per_second) is None:
            return ""
        seconds = range(file.created_ns // SECOND, (file.durable_ns or self._end_ns) // SECOND + 1)
        refused = sum(second.refused for second in medium.requests if second.time in seconds)
        if not refused:
            return ""
        return f"; {refused} requests were refused meanwhile (503), as a prefix takes {limit}/s, and tried again"

    def _compacted_text(self, task: int, files: Sequence[StoredFile]) -> str:
        """Return a clause on bytes that a compaction wrote, or "" if they are at most half of the upload."""
        names = self.instance.compacted(self.checkpoint, task)
        anew = sum(file.size_bytes for file in files if str(file.name[-1]) in names)
        return (
            f", of which a compaction wrote {bytes_text(anew)} anew"
            if 2 * anew > sum(file.size_bytes for file in files)
            else ""
        )

    def _async_work_cause(self, part: PathPart) -> str:
        """Return what the asynchronous part did apart from writing files."""
        vertex = self._vertex(part)
        own_ns = vertex.snapshot.async_ns
        if own_ns and part.duration_ns <= own_ns:
            return "the operator's own work in the asynchronous part"
        if vertex.state is not None and vertex.state.changelog is not None:
            if vertex.state.changelog.in_memory:
                return "the changelog in memory is sent with the acknowledgement"
            return "the task waits for files of the changelog"
        form = self._stats.savepoint_format
        return (
            f"state is serialised for the {form} savepoint"
            if form
            else "work of the asynchronous part, beside its files"
        )

    def _channel_state_cause(self, part: PathPart) -> str:
        """Return a clause on the channel state file, and the tasks that share it."""
        group = self.instance.path_finder().graph.groups
        members = [task for task, number in enumerate(group) if number == group[part.task]]
        subtasks = self._stats.subtasks
        size = bytes_text(sum(subtasks[task].persisted_bytes for task in members if task in subtasks))
        if len(members) == 1:
            return f"{size} of in-flight data are written to the file of channel state"
        return (
            f"{size} of in-flight data of {len(members)} subtasks share a file of channel state, which {self._task(members[-1])} and the "
            "others await"
        )

    def _files(self, parts: Sequence[PathPart]) -> list[StoredFile]:
        """Return the stored files of these parts."""
        return [self.context.storage.files[FileId(part.file)] for part in parts if part.file >= 0]

    # ------------------------------------------------------------------------------------------ the checkpoint

    @property
    def _stats(self) -> CheckpointStats:
        return self.context.stats[self.checkpoint]

    @property
    def _end_ns(self) -> int:
        """Return the time of the last acknowledgement or of the failure, or, for a checkpoint in progress, the end of the run."""
        if self._stats.status == "IN_PROGRESS":
            return self.context.env.now
        return max(self._stats.latest_ack_ns, self._stats.failed_ns)

    @property
    def _until(self) -> str:
        return "when the run ended" if self._stats.status == "IN_PROGRESS" else "when the checkpoint was given up"

    def _is_open(self, part: PathPart) -> bool:
        """Return whether the checkpoint did not complete and this is its last part."""
        return self._stats.status != "COMPLETED" and part.end_ns == self._end_ns

    def _time(self, event_type: EventType, task: int) -> int | None:
        """Return the time of the first such event of a task in this checkpoint [ns], or None."""
        entries = self.instance.path_finder().entries_of(self.checkpoint)
        return next((entry.time_ns for entry in entries if entry.event_type is event_type and entry.task == task), None)

    def _outputs(self, task: int) -> Sequence[int]:
        return channels_out(self.context.layout, task)

    def _vertex(self, part: PathPart) -> Vertex:
        return self.context.scenario.job.vertices[self.context.layout.vertex[part.task]]

    def _queued(self, part: PathPart) -> Queued | None:
        """Return the data in the channel of a part when its barrier was sent, or None if it was not sent."""
        return self.instance.before_barrier(self.checkpoint, part.channel)

    def _task(self, task: int) -> str:
        return subtask_name(*self.context.names[task])

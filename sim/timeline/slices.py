"""The journal and the files of a job instance -> slices: snapshots, asynchronous work, checkpoints, files on their nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sim.metrics.journal import Happening
from sim.runtime.context import Context
from sim.storage.media.dfs import DistributedFileSystem
from sim.timeline.events import TimelineSlice
from sim.timeline.samples import STATES, TimelineSample

_Times = dict[Happening, int]
Stories = dict[tuple[int, int], tuple[_Times, list[tuple[int, int]]]]
"""By checkpoint and task: when what happened first, and the barriers that arrived: (time, channel)."""
_SHORTEST_NS = 1
"""An instant, as long as it must be to be seen and to end an arrow."""


def threads(samples: Sequence[TimelineSample], task: int, step_ns: int) -> Iterator[TimelineSlice]:
    """What the thread did most, step by step; equal neighbours are one slice."""
    begin_ns = end_ns = 0
    current = ""
    for sample in samples:
        spent = sample.spent[task]
        state = STATES[int(spent.argmax())] if spent.sum() else ""
        if state != current or sample.time_ns - step_ns > end_ns:
            if current:
                yield TimelineSlice(current, begin_ns, end_ns, {})
            current, begin_ns = state, max(end_ns, sample.time_ns - step_ns)
        end_ns = sample.time_ns
    if current:
        yield TimelineSlice(current, begin_ns, end_ns, {})


def snapshots(found_stories: Stories) -> dict[int, list[TimelineSlice]]:
    """By task: waiting for the last barrier, work before the barrier, the synchronous part."""
    found: dict[int, list[TimelineSlice]] = defaultdict(list)
    for (checkpoint, task), (times, arrivals) in found_stories.items():
        begun_ns, forwarded_ns = times.get(Happening.SNAPSHOT_BEGUN), times.get(Happening.BARRIER_FORWARDED)
        if arrivals:
            last_ns = arrivals[-1][0] if begun_ns is None else begun_ns
            found[task] += _slice(f"waits for alignment {checkpoint}", arrivals[0][0], last_ns)
        found[task] += _slice(f"before barrier {checkpoint}", begun_ns, forwarded_ns)
        found[task] += _slice(f"sync {checkpoint}", forwarded_ns, times.get(Happening.SYNC_FINISHED))
    return found


def asynchronous(context: Context, found_stories: Stories) -> dict[int, list[TimelineSlice]]:
    """By task: the wait for its asynchronous thread, the work there, and the wait for channel state and its file."""
    found: dict[int, list[TimelineSlice]] = defaultdict(list)
    for (checkpoint, task), (times, _) in found_stories.items():
        row = context.stats[checkpoint].subtasks.get(task) if checkpoint in context.stats else None
        begun_ns, finished_ns = times.get(Happening.SYNC_FINISHED), times.get(Happening.ASYNC_FINISHED)
        if begun_ns is None or row is None:
            continue
        free_ns = begun_ns + row.async_queue_ns
        written_ns = times.get(Happening.STATE_WRITTEN)
        found[task] += _slice(f"waits for the async thread {checkpoint}", begun_ns, free_ns)
        found[task] += _slice(f"async {checkpoint}", free_ns, written_ns, bytes=row.written_bytes)
        found[task] += _slice(f"waits for channel state {checkpoint}", written_ns, finished_ns, bytes=row.persisted_bytes)
    return found


def checkpoints(context: Context) -> list[TimelineSlice]:
    """From the trigger to the end of each."""
    slices: list[TimelineSlice] = []
    for row in context.stats.values():
        end_ns = row.failed_ns if row.status == "FAILED" else row.completed_ns
        name = f"{row.savepoint_format} savepoint {row.number}" if row.savepoint_format else f"checkpoint {row.number}"
        slices += _slice(name, row.trigger_ns, context.env.now if end_ns < 0 else end_ns, status=row.status, failure=row.failure)
    return slices


def files(context: Context) -> dict[str, list[TimelineSlice]]:
    """By the node or the task manager that takes it: every file, from its first byte until it is durable."""
    found: dict[str, list[TimelineSlice]] = defaultdict(list)
    medium = context.storage.medium
    for file in context.storage.files:
        end_ns = file.durable_ns if file.given_up_ns is None else file.given_up_ns
        rows = _slice("/".join(map(str, file.name)), file.created_ns, context.env.now if end_ns is None else end_ns, bytes=file.size_bytes)
        if file.disk:
            places = [f"local disk of task manager {file.host}"]
        elif isinstance(medium, DistributedFileSystem) and file.inside is None:
            places = [f"storage node {node}" for node in medium.replicas(file.name, file.host, 0)]
        else:
            places = ["storage, written by the JobManager" if file.host < 0 else f"storage, written by task manager {file.host}"]
        for place in places:
            found[place] += rows
    return found


def barriers(context: Context, found_stories: Stories) -> tuple[dict[int, list[TimelineSlice]], list[tuple[int, int, int, int, int]]]:
    """Barriers as they leave and arrive, by task; and their ways: (checkpoint, writer, left [ns], reader, arrived [ns])."""
    moments: dict[int, list[TimelineSlice]] = defaultdict(list)
    ways: list[tuple[int, int, int, int, int]] = []
    for (checkpoint, task), (times, arrivals) in found_stories.items():
        forwarded_ns = times.get(Happening.BARRIER_FORWARDED)
        if forwarded_ns is not None:
            moments[task].append(TimelineSlice(f"barrier {checkpoint} leaves", forwarded_ns, forwarded_ns + _SHORTEST_NS, {}))
        writers: dict[int, list[int]] = {}
        for time_ns, channel in dict.fromkeys(arrivals):
            writers.setdefault(time_ns, []).append(context.layout.writer[channel])
        for time_ns, senders in writers.items():
            names = {"from": ", ".join("{}[{}]".format(*context.names[writer]) for writer in senders)}
            moments[task].append(TimelineSlice(f"barrier {checkpoint} arrives", time_ns, time_ns + _SHORTEST_NS, names))
            for writer in senders:
                left_ns = found_stories.get((checkpoint, writer), ({}, []))[0].get(Happening.BARRIER_FORWARDED)
                if left_ns is not None:
                    ways.append((checkpoint, writer, left_ns, task, time_ns))
    return moments, ways


def stories(context: Context) -> Stories:
    """Read from the journal once."""
    found: Stories = {}
    for entry in context.journal:
        if entry.checkpoint < 0 or entry.task < 0:
            continue
        times, arrivals = found.setdefault((entry.checkpoint, entry.task), ({}, []))
        times.setdefault(entry.happening, entry.time_ns)
        if entry.happening is Happening.BARRIER_ARRIVED:
            arrivals.append((entry.time_ns, entry.number))
    return found


def _slice(name: str, begin_ns: int | None, end_ns: int | None, **values: object) -> list[TimelineSlice]:
    """A slice; nothing if it did not begin, is not over, or took no time."""
    if begin_ns is None or end_ns is None or end_ns <= begin_ns:
        return []
    return [TimelineSlice(name, begin_ns, end_ns, values)]

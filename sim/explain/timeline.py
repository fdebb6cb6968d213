"""The timeline of a run as Trace Event JSON, for Perfetto: threads, snapshots, barriers, files and queues."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sim.explain.close_up import ObservedInstance
from sim.model.scenario import Scenario
from sim.model.text import PrintableError, one_line
from sim.model.units import MS, format_duration
from sim.results.journal import Happening
from sim.runtime.context import Context
from sim.runtime.job_instance import JobInstance
from sim.storage.media.dfs import DistributedFileSystem

# ---- Events of the Trace Event Format: tracks with slices that do not overlap, arrows between slices, and counters.
#
# Times are in ns here, and in µs with three decimals in the file. Source: "Trace Event Format" of the Chromium project,
# which Perfetto reads.

Event = dict[str, Any]


class TimelineSlice(NamedTuple):
    """A period of time with a name on a track."""

    name: str
    begin_ns: int
    end_ns: int
    values: dict[str, Any]  # details that a viewer shows when the slice is selected


def lanes(slices: Iterable[TimelineSlice]) -> list[list[TimelineSlice]]:
    """Distribute slices over lanes without overlaps, because viewers would nest overlapping slices."""
    found: list[list[TimelineSlice]] = []
    for row in sorted(slices, key=lambda row: (row.begin_ns, row.end_ns)):
        lane = next((lane for lane in found if lane[-1].end_ns <= row.begin_ns), None)
        if lane is None:
            found.append(lane := [])
        lane.append(row)
    return found


def slice_event(process: int, track: int, row: TimelineSlice) -> Event:
    """Return the event of a slice."""
    times = {"ts": row.begin_ns / 1e3, "dur": (row.end_ns - row.begin_ns) / 1e3}
    return {"ph": "X", "pid": process, "tid": track, "name": row.name, **times, "args": row.values}


def flow(number: int, name: str, start: tuple[int, int, int], end: tuple[int, int, int]) -> list[Event]:
    """Return the two events of an arrow between two slices, each given as (process, track, time [ns])."""
    common = {"cat": "barrier", "name": name, "id": number}
    return [
        {"ph": "s", **common, "pid": start[0], "tid": start[1], "ts": start[2] / 1e3},
        {"ph": "f", "bp": "e", **common, "pid": end[0], "tid": end[1], "ts": end[2] / 1e3},
    ]


def counter(process: int, name: str, time_ns: int, values: Mapping[str, float]) -> Event:
    """Return the event that sets the values of a counter."""
    return {"ph": "C", "pid": process, "tid": 0, "name": name, "ts": time_ns / 1e3, "args": dict(values)}


def named(process: int, name: str, tracks: dict[int, str]) -> list[Event]:
    """Return the events that name a process and its tracks."""
    events: list[Event] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": one_line(name)}},
        {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}},
    ]
    for track, text in tracks.items():
        events.append(
            {"ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": one_line(text)}}
        )
        events.append(
            {"ph": "M", "pid": process, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}}
        )
    return events


# ---- The drawing: processes with tracks, arrows between them, and a time window that keeps the file small.


@dataclass(frozen=True, slots=True)
class Timeline:
    """A finished timeline."""

    events: list[Event]
    begin_ns: int
    end_ns: int
    left_out: int  # number of events after `end_ns`, which the limit cut off


@dataclass(slots=True)
class Drawing:
    """A timeline under construction."""

    begin_ns: int
    end_ns: int
    events: list[Event] = field(default_factory=list)
    names: list[Event] = field(default_factory=list)
    processes: int = 0
    flows: int = 0

    def process(
        self, name: str, tracks: Iterable[tuple[str, Iterable[TimelineSlice]]]
    ) -> tuple[int, dict[tuple[str, int], int]]:
        """Add a process with its tracks.  Overlapping slices get additional tracks with the same title.

        `tracks`: (title, slices).  Returns (number of the process, {(name of a slice, begin [ns]): number of its track}).
        """
        self.processes += 1
        titles: dict[int, str] = {}
        where: dict[tuple[str, int], int] = {}
        for title, slices in tracks:
            for lane in lanes(filter(None, map(self._clipped, slices))) or [[]]:
                titles[len(titles) + 1] = title
                self.events += [slice_event(self.processes, len(titles), row) for row in lane]
                where |= {(row.name, row.begin_ns): len(titles) for row in lane}
        self.names += named(self.processes, name, titles)
        return self.processes, where

    def arrow(self, name: str, start: tuple[int, int, int], end: tuple[int, int, int]) -> None:
        """Add an arrow between two slices, each given as (process, track, time [ns])."""
        self.flows += 1
        self.events += flow(self.flows, name, start, end)

    def inside(self, time_ns: int) -> bool:
        """Return whether a time is in the window."""
        return self.begin_ns <= time_ns <= self.end_ns

    def _clipped(self, row: TimelineSlice) -> TimelineSlice | None:
        """Return the part of a slice that is in the window, or None if there is none."""
        begin_ns, end_ns = max(row.begin_ns, self.begin_ns), min(row.end_ns, self.end_ns)
        return row._replace(begin_ns=begin_ns, end_ns=end_ns) if end_ns > begin_ns else None

    def cut(self, limit: int) -> Timeline:
        """Return the timeline with at most `limit` events, not counting names.

        If there are more, the later ones are left out, and the window ends before the first of them.
        """
        events = sorted(self.events, key=lambda event: event["ts"])
        if len(events) <= limit:
            return Timeline([*self.names, *events], self.begin_ns, self.end_ns, 0)
        end_ns = int(events[limit]["ts"] * 1e3)
        kept = bisect_right(events, end_ns / 1e3, key=lambda event: event["ts"], hi=limit)
        return Timeline([*self.names, *_whole_arrows(events[:kept])], self.begin_ns, end_ns, len(events) - kept)


def _whole_arrows(events: list[Event]) -> list[Event]:
    """Return the events, except arrows whose end is missing."""
    ended = {event["id"] for event in events if event["ph"] == "f"}
    return [event for event in events if event["ph"] != "s" or event["id"] in ended]


# ---- Samples of threads and queues at fixed steps. The data plane counts totals, so a step is the difference of two totals.

STATES = ("processing", "idle", "back-pressured")
"""States of a task thread.  Work for checkpoints counts as processing, as in Flink."""
_COLUMNS = (("busy_ns",), ("idle_ns",), ("soft_ns", "hard_ns"))


@dataclass(frozen=True, slots=True)
class TimelineSample:
    """Thread states and queue contents in one step."""

    time_ns: int  # end of the step
    spent: np.ndarray  # tasks x STATES: time since the previous sample [ns]
    input_bytes: np.ndarray  # by vertex: received and not read yet
    output_bytes: np.ndarray  # by vertex: written and not sent yet
    in_flight_bytes: int  # in all channels


@dataclass(slots=True)
class Samples:
    """The samples of all job instances between two times.  Call `attach` with each instance when it starts."""

    step_ns: int
    begin_ns: int
    end_ns: int
    by_instance: list[list[TimelineSample]] = field(default_factory=list)

    def attach(self, instance: JobInstance) -> None:
        _Looking(self, instance)


class _Looking:
    """The sampler of one job instance."""

    def __init__(self, samples: Samples, instance: JobInstance) -> None:
        self.samples = samples
        self.instance = instance
        self._rows: list[TimelineSample] = []
        samples.by_instance.append(self._rows)
        self._vertex = np.array(instance.layout.vertex)
        self._before = self._spent()
        now = instance.env.now
        self._arm(max(0, samples.begin_ns - now) or samples.step_ns)

    def _arm(self, delay_ns: int) -> None:
        self.instance.env.timeout(delay_ns).callbacks.append(lambda _: self._look())

    def _look(self) -> None:
        """Take a sample, and schedule the next one."""
        now, spent = self.instance.env.now, self._spent()
        if now > self.samples.end_ns:
            return
        channels = self.instance.plane.channels()
        count = len(self.instance.spec.vertices)
        reader, writer = (
            self._vertex[np.array(self.instance.layout.reader)],
            self._vertex[np.array(self.instance.layout.writer)],
        )
        received = np.bincount(reader, channels["arrived"] - channels["taken"], count)
        unsent = np.bincount(writer, channels["written"] - channels["sent"], count)
        in_flight = int((channels["written"] - channels["taken"]).sum())
        self._rows.append(TimelineSample(now, spent - self._before, received, unsent, in_flight))
        self._before = spent
        self._arm(self.samples.step_ns)

    def _spent(self) -> np.ndarray:
        """Return the total time of each task in each state [ns]."""
        rows = self.instance.plane.tasks()
        return np.stack([sum(rows[column] for column in columns) for columns in _COLUMNS], axis=1)


# ---- Slices from the journal and the files of a job instance: snapshots, asynchronous work, checkpoints, files, barriers.

_Times = dict[Happening, int]
Stories = dict[tuple[int, int], tuple[_Times, list[tuple[int, int]]]]
"""(checkpoint, task) -> (first time of each event [ns], arrivals of barriers as (time [ns], channel))."""
_SHORTEST_NS = 1
"""Length of the slice of an instant, so that it is visible and arrows can end at it."""


def threads(samples: Sequence[TimelineSample], task: int, step_ns: int) -> Iterator[TimelineSlice]:
    """Yield slices with the state in which a task thread spends most of each step.  Consecutive equal states are one slice."""
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
    """Return the slices on each task thread, by task: alignment, work before the barrier, synchronous phase."""
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
    """Return the slices of asynchronous phases, by task: waiting for the thread, its work, waiting for channel state."""
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
        found[task] += _slice(
            f"waits for channel state {checkpoint}", written_ns, finished_ns, bytes=row.persisted_bytes
        )
    return found


def checkpoints(context: Context) -> list[TimelineSlice]:
    """Return a slice per checkpoint, from the trigger to its end."""
    slices: list[TimelineSlice] = []
    for row in context.stats.values():
        end_ns = row.failed_ns if row.status == "FAILED" else row.completed_ns
        name = f"{row.savepoint_format} savepoint {row.number}" if row.savepoint_format else f"checkpoint {row.number}"
        slices += _slice(
            name, row.trigger_ns, context.env.now if end_ns < 0 else end_ns, status=row.status, failure=row.failure
        )
    return slices


def files(context: Context) -> dict[str, list[TimelineSlice]]:
    """Return a slice per file, from its first byte until it is durable, by storage node, local disk or writing process."""
    found: dict[str, list[TimelineSlice]] = defaultdict(list)
    medium = context.storage.medium
    for file in context.storage.files:
        end_ns = file.durable_ns if file.given_up_ns is None else file.given_up_ns
        rows = _slice(
            "/".join(map(str, file.name)),
            file.created_ns,
            context.env.now if end_ns is None else end_ns,
            bytes=file.size_bytes,
        )
        if file.disk:
            places = [f"local disk of task manager {file.host}"]
        elif isinstance(medium, DistributedFileSystem) and file.inside is None:
            places = [f"storage node {node}" for node in medium.replicas(file.name, file.host, 0)]
        else:
            places = [
                "storage, written by the JobManager"
                if file.host < 0
                else f"storage, written by task manager {file.host}"
            ]
        for place in places:
            found[place] += rows
    return found


def barriers(
    context: Context, found_stories: Stories
) -> tuple[dict[int, list[TimelineSlice]], list[tuple[int, int, int, int, int]]]:
    """Return (slices of sent and received barriers by task, transits of barriers).

    A transit is (checkpoint, writer, time of sending [ns], reader, time of arrival [ns]).
    """
    moments: dict[int, list[TimelineSlice]] = defaultdict(list)
    ways: list[tuple[int, int, int, int, int]] = []
    for (checkpoint, task), (times, arrivals) in found_stories.items():
        forwarded_ns = times.get(Happening.BARRIER_FORWARDED)
        if forwarded_ns is not None:
            moments[task].append(
                TimelineSlice(f"barrier {checkpoint} leaves", forwarded_ns, forwarded_ns + _SHORTEST_NS, {})
            )
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
    """Group the events of the journal by checkpoint and task."""
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
    """Return a list with a slice, or [] if it has not begun, has not ended, or took no time."""
    if begin_ns is None or end_ns is None or end_ns <= begin_ns:
        return []
    return [TimelineSlice(name, begin_ns, end_ns, values)]


# ---- The timeline of an observed run: subtasks, asynchronous threads, storage nodes, coordinator, and barriers as arrows.
#
# A time window and a limit keep the file small enough for viewers. The number of omitted events is reported.


def timeline(instances: Sequence[ObservedInstance], samples: Samples, limit: int) -> Timeline:
    """Return the timeline of observed job instances.

    `samples`: their samples, which also define the time window.  `limit`: maximum number of events, see `Drawing.cut`.
    """
    page = Drawing(samples.begin_ns, samples.end_ns)
    for number, (instance, looked) in enumerate(zip(instances, samples.by_instance, strict=True)):
        _draw(page, instance.context, looked, samples.step_ns, f"job {number}: " if len(instances) > 1 else "")
    return page.cut(limit)


def _draw(page: Drawing, context: Context, samples: Sequence[TimelineSample], step_ns: int, prefix: str) -> None:
    """Add the tracks of one job instance."""
    found, names = stories(context), [f"{vertex}[{index}]" for vertex, index in context.names]
    page.process(f"{prefix}coordinator", [("checkpoints", checkpoints(context))])
    _draw_vertices(page, context, samples, step_ns, prefix, found)
    work = asynchronous(context, found)
    page.process(f"{prefix}asynchronous threads", [(names[task], work[task]) for task in sorted(work)])
    places = files(context)
    page.process(f"{prefix}storage", [(place, places[place]) for place in sorted(places, key=_in_order)])


def _draw_vertices(
    page: Drawing, context: Context, samples: Sequence[TimelineSample], step_ns: int, prefix: str, found: Stories
) -> None:
    """Add the tracks and queues of vertices, and the arrows of barriers between them."""
    phases, (moments, ways) = snapshots(found), barriers(context, found)
    where: dict[int, tuple[int, dict[tuple[str, int], int]]] = {}
    for v, vertex in enumerate(context.scenario.job.vertices):
        tasks = [task for task, number in enumerate(context.layout.vertex) if number == v]
        tracks: list[tuple[str, Iterable[TimelineSlice]]] = []
        for task in tasks:
            name = f"{vertex.name}[{context.layout.subtask[task]}]"
            tracks.append((f"{name} thread", threads(samples, task, step_ns)))
            tracks.append((f"{name} snapshots", phases.get(task, [])))
            tracks.append((f"{name} barriers", moments.get(task, [])))
        process, slices = page.process(f"{prefix}{vertex.name}", tracks)
        where |= dict.fromkeys(tasks, (process, slices))
        for sample in samples:
            if page.inside(sample.time_ns):
                queues = {"input": int(sample.input_bytes[v]), "output": int(sample.output_bytes[v])}
                page.events.append(counter(process, f"queues of {vertex.name} [bytes]", sample.time_ns, queues))
    page.processes += 1
    page.names += named(page.processes, f"{prefix}all channels", {})
    page.events += [
        counter(page.processes, "in flight [bytes]", sample.time_ns, {"bytes": sample.in_flight_bytes})
        for sample in samples
        if page.inside(sample.time_ns)
    ]
    for checkpoint, writer, left_ns, reader, arrived_ns in ways:
        if page.inside(left_ns) and page.inside(arrived_ns + 1):
            (start, starts), (end, ends) = where[writer], where[reader]
            tail, head = (
                starts.get((f"barrier {checkpoint} leaves", left_ns)),
                ends.get((f"barrier {checkpoint} arrives", arrived_ns)),
            )
            if tail is not None and head is not None:
                page.arrow(f"barrier {checkpoint}", (start, tail, left_ns), (end, head, arrived_ns))


def _in_order(place: str) -> tuple[str, int]:
    """Return a key that sorts names in natural order: node 10 after node 9."""
    stem, _, number = place.rpartition(" ")
    return (stem, int(number)) if number.isdigit() else (place, 0)


# ---- The time window, and the text of the file.

_LOOKS = 1000
"""Number of samples in a time window."""


class WindowError(PrintableError, ValueError):
    """A time window contains no part of the run."""


def samples_in(run_ns: int, begin_ns: int, end_ns: int | None) -> Samples:
    """Return a sampler for a time window of a run, with a thousand steps of at least 1 ms.

    `run_ns`: duration of the run.  `end_ns`: None if the window ends with the run.  Raises `WindowError` if the window is
    empty.
    """
    end_ns = run_ns if end_ns is None else min(end_ns, run_ns)
    if begin_ns >= end_ns:
        raise WindowError(f"the window ends at {format_duration(end_ns)}: nothing lies in it")
    return Samples(max(MS, (end_ns - begin_ns) // _LOOKS), begin_ns, end_ns)


def document(strategy: str, scenario: Scenario, samples: Samples, drawn: Timeline) -> str:
    """Return the timeline as Trace Event JSON in one line."""
    about = {
        "run": f"{scenario.name}, {strategy}",
        "question": scenario.question,
        "step_ns": samples.step_ns,
        "left_out": drawn.left_out,
    }
    return trace_text(drawn, about)


def trace_text(drawn: Timeline, about: Mapping[str, object]) -> str:
    """Return a timeline as Trace Event JSON.  `about`: metadata of the run."""
    return json.dumps({"traceEvents": drawn.events, "displayTimeUnit": "ms", "otherData": about}) + "\n"

"""The timeline of a run as Trace Event JSON, for Perfetto: snapshots, barriers, files, and the load of vertices."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from sim.explain.close_up import CloseUp
from sim.model.scenario import Scenario
from sim.model.text import one_line
from sim.model.units import SECOND
from sim.plane.interface import channels_out
from sim.results.journal import EventType
from sim.runtime.context import Context
from sim.storage.media.dfs import DistributedFileSystem

# ---- A timeline: processes with tracks of slices, arrows between slices, and counters, in a time window.
#
# Times are in ns here, and in µs with three decimals in the file. Source: "Trace Event Format" of the Chromium project,
# which Perfetto reads.

Event = dict[str, Any]
Channel = tuple[int, int, int]
"""(job instance, checkpoint, channel) of a barrier.  Its arrow leads from the slice of the writer to that of the reader."""


class TimelineSlice(NamedTuple):
    """A period of time with a name on a track."""

    name: str
    begin_ns: int
    end_ns: int
    values: dict[str, Any]  # details that a viewer shows when the slice is selected
    starts: Iterable[Channel] = ()  # barriers whose arrows start at this slice
    ends: Iterable[Channel] = ()  # barriers whose arrows end at it


def lanes(slices: Iterable[TimelineSlice]) -> list[list[TimelineSlice]]:
    """Distribute slices over lanes without overlaps, because viewers would nest overlapping slices."""
    lanes_so_far: list[list[TimelineSlice]] = []
    for row in sorted(slices, key=lambda row: (row.begin_ns, row.end_ns)):
        lane = next((lane for lane in lanes_so_far if lane[-1].end_ns <= row.begin_ns), None)
        if lane is None:
            lanes_so_far.append(lane := [])
        lane.append(row)
    return lanes_so_far


@dataclass(slots=True)
class Timeline:
    """A timeline."""

    begin_ns: int
    end_ns: int
    events: list[Event] = field(default_factory=list)
    names: list[Event] = field(default_factory=list)  # events that name processes and tracks
    processes: int = 0
    arrows: dict[Channel, int] = field(default_factory=dict)  # ids

    def add_process(self, name: str, tracks: Iterable[tuple[str, Iterable[TimelineSlice]]] = ()) -> int:
        """Add a process with its tracks (title, slices), and return its number.

        Overlapping slices get additional tracks with the same title.
        """
        self.processes += 1
        self._add_name("process", name, {"sort_index": self.processes})
        number = 0
        for title, slices in tracks:
            for lane in lanes(filter(None, map(self._clipped, slices))) or [[]]:
                number += 1
                self._add_name("thread", title, {"sort_index": number}, tid=number)
                for row in lane:
                    self._add_slice(row, {"pid": self.processes, "tid": number, "ts": row.begin_ns / 1e3})
        return self.processes

    def _add_name(self, kind: str, name: str, sort: dict[str, int], **track: int) -> None:
        where = {"ph": "M", "pid": self.processes, **track}
        self.names.append({**where, "name": f"{kind}_name", "args": {"name": one_line(name)}})
        self.names.append({**where, "name": f"{kind}_sort_index", "args": sort})

    def _add_slice(self, row: TimelineSlice, where: dict[str, Any]) -> None:
        took = {"dur": (row.end_ns - row.begin_ns) / 1e3}
        self.events.append({"ph": "X", **where, **took, "name": row.name, "args": row.values})
        for phase, barriers in (("s", row.starts), ("f", row.ends)):
            for barrier in barriers:
                number = self.arrows.setdefault(barrier, len(self.arrows) + 1)
                arrow = {"cat": "barrier", "name": f"barrier {barrier[1]}", "id": number, "bp": "e"}
                self.events.append({"ph": phase, **where, **arrow})

    def add_counter(self, process: int, name: str, time_ns: int, values: dict[str, float]) -> None:
        """Set the values of a counter, if the time is in the window."""
        if self.begin_ns <= time_ns <= self.end_ns:
            event = {"ph": "C", "pid": process, "tid": 0, "name": name, "ts": time_ns / 1e3, "args": values}
            self.events.append(event)

    def _clipped(self, row: TimelineSlice) -> TimelineSlice | None:
        """Return the part of a slice that is in the window, or None if there is none."""
        begin_ns, end_ns = max(row.begin_ns, self.begin_ns), min(row.end_ns, self.end_ns)
        return row._replace(begin_ns=begin_ns, end_ns=end_ns) if end_ns > begin_ns else None

    def document(self, strategy: str, scenario: Scenario) -> str:
        """Return the timeline as Trace Event JSON in one line, with metadata of the run.

        Arrows whose other end is outside of the window are left out.
        """
        starts, ends = ({event["id"] for event in self.events if event["ph"] == phase} for phase in "sf")
        events = [event for event in self.events if event["ph"] not in "sf" or event["id"] in starts & ends]
        content = {
            "traceEvents": [*self.names, *sorted(events, key=lambda event: event["ts"])],
            "displayTimeUnit": "ms",
            "otherData": {"run": f"{scenario.name}, {strategy}", "question": scenario.question},
        }
        return json.dumps(content) + "\n"


# ---- Slices from the journal and the files of a job instance: snapshots, asynchronous work, checkpoints, files, barriers.

_SHORTEST_NS = 1
"""Length of the slice of an instant, so that it is visible and arrows can end at it."""


def checkpoints(context: Context) -> Iterator[TimelineSlice]:
    """Yield a slice per checkpoint, from the trigger to its end."""
    for row in context.stats.values():
        end_ns = row.failed_ns if row.status == "FAILED" else row.completed_ns
        name = f"{row.savepoint_format} savepoint {row.number}" if row.savepoint_format else f"checkpoint {row.number}"
        end_ns = context.env.now if end_ns < 0 else end_ns
        yield from _slice(name, row.trigger_ns, end_ns, status=row.status, failure=row.failure)


def files(context: Context) -> dict[str, list[TimelineSlice]]:
    """Return a slice per file, from its first byte until it is durable, by storage node, local disk or writing process."""
    slices: dict[str, list[TimelineSlice]] = defaultdict(list)
    medium = context.storage.medium
    for file in context.storage.files:
        end_ns = file.durable_ns if file.given_up_ns is None else file.given_up_ns
        if file.disk:
            places = [f"local disk of task manager {file.host}"]
        elif isinstance(medium, DistributedFileSystem) and file.inside is None:
            places = [f"storage node {node}" for node in medium.replicas(file.name, file.host, 0)]
        else:
            places = [f"storage, written by {'the JobManager' if file.host < 0 else f'task manager {file.host}'}"]
        end_ns = context.env.now if end_ns is None else end_ns
        for place in places:
            slices[place] += _slice("/".join(map(str, file.name)), file.created_ns, end_ns, bytes=file.size_bytes)
    return slices


def task_slices(context: Context, job: int) -> dict[str, dict[int, list[TimelineSlice]]]:
    """Return the slices of each task, by kind: snapshots (on its thread), barriers, and asynchronous phases.

    `job`: number of the job instance.
    """
    slices: dict[str, dict[int, list[TimelineSlice]]] = defaultdict(lambda: defaultdict(list))
    times_of: dict[tuple[int, int], dict[EventType, int]] = defaultdict(dict)
    arrivals_of: dict[tuple[int, int], dict[tuple[int, int], None]] = defaultdict(dict)  # (time [ns], channel)
    for entry in context.journal:
        if entry.checkpoint >= 0 and entry.task >= 0:
            times_of[entry.checkpoint, entry.task].setdefault(entry.event_type, entry.time_ns)
            if entry.event_type is EventType.BARRIER_ARRIVED:
                arrivals_of[entry.checkpoint, entry.task][entry.time_ns, entry.number] = None
    for (checkpoint, task), times in times_of.items():
        arrivals = arrivals_of[checkpoint, task]
        begun_ns, forwarded_ns = times.get(EventType.SNAPSHOT_BEGUN), times.get(EventType.BARRIER_FORWARDED)
        synced_ns = times.get(EventType.SYNC_FINISHED)
        snapshots, barriers, phases = (slices[kind][task] for kind in ("snapshots", "barriers", "asynchronous"))
        if arrivals:
            last_ns = [*arrivals][-1][0] if begun_ns is None else begun_ns
            snapshots += _slice(f"waits for alignment {checkpoint}", next(iter(arrivals))[0], last_ns)
        snapshots += _slice(f"before barrier {checkpoint}", begun_ns, forwarded_ns)
        snapshots += _slice(f"sync {checkpoint}", forwarded_ns, synced_ns)
        if forwarded_ns is not None:
            sent = [(job, checkpoint, channel) for channel in channels_out(context.layout, task)]
            end_ns = forwarded_ns + _SHORTEST_NS
            barriers.append(TimelineSlice(f"barrier {checkpoint} leaves", forwarded_ns, end_ns, {}, sent))
        for time_ns, group in groupby(sorted(arrivals), key=lambda arrival: arrival[0]):
            channels = [channel for _, channel in group]
            writers = ["{}[{}]".format(*context.names[context.layout.writer[channel]]) for channel in channels]
            arrived = [(job, checkpoint, channel) for channel in channels]
            name, values = f"barrier {checkpoint} arrives", {"from": ", ".join(writers)}
            barriers.append(TimelineSlice(name, time_ns, time_ns + _SHORTEST_NS, values, (), arrived))
        row = context.stats[checkpoint].subtasks.get(task) if checkpoint in context.stats else None
        if synced_ns is not None and row is not None:
            free_ns, written_ns = synced_ns + row.async_queue_ns, times.get(EventType.STATE_WRITTEN)
            finished_ns, persisted = times.get(EventType.ASYNC_FINISHED), row.persisted_bytes
            phases += _slice(f"waits for the async thread {checkpoint}", synced_ns, free_ns)
            phases += _slice(f"async {checkpoint}", free_ns, written_ns, bytes=row.written_bytes)
            phases += _slice(f"waits for channel state {checkpoint}", written_ns, finished_ns, bytes=persisted)
    return slices


def _slice(name: str, begin_ns: int | None, end_ns: int | None, **values: object) -> list[TimelineSlice]:
    """Return a list with a slice, or [] if it has not begun, has not ended, or took no time."""
    if begin_ns is None or end_ns is None or end_ns <= begin_ns:
        return []
    return [TimelineSlice(name, begin_ns, end_ns, values)]


# ---- The timeline of a run: coordinator, subtasks, asynchronous threads and storage, with barriers as arrows.


def timeline(run: CloseUp, begin_ns: int, end_ns: int) -> Timeline:
    """Return the timeline of a run in a time window.  The load of vertices is that of the table `series`."""
    drawn = Timeline(begin_ns, end_ns)
    for job, instance in enumerate(run.instances):
        _draw(drawn, instance.context, job, f"job {job}: " if len(run.instances) > 1 else "")
    process = drawn.add_process("vertices")
    for row in run.result.series.to_dict("records"):
        time_ns, vertex = round(row["time"] * SECOND), row["vertex"]
        shares = {"busy": row["busy"], "idle": row["idle"], "back-pressured": row["backPressured"]}
        queues = {"input": row["inputQueueSize"], "output": row["outputQueueSize"]}
        drawn.add_counter(process, f"threads of {vertex} [share of time]", time_ns, shares)
        drawn.add_counter(process, f"queues of {vertex} [bytes]", time_ns, queues)
    return drawn


def _draw(drawn: Timeline, context: Context, job: int, prefix: str) -> None:
    """Add the tracks of one job instance."""
    slices, names = task_slices(context, job), [f"{vertex}[{index}]" for vertex, index in context.names]
    drawn.add_process(f"{prefix}coordinator", [("checkpoints", checkpoints(context))])
    for v, vertex in enumerate(context.scenario.job.vertices):
        tasks = [task for task, number in enumerate(context.layout.vertex) if number == v]
        tracks = [(f"{names[task]} {kind}", slices[kind][task]) for task in tasks for kind in ("snapshots", "barriers")]
        drawn.add_process(f"{prefix}{vertex.name}", tracks)
    work, places = slices["asynchronous"], files(context)
    drawn.add_process(
        f"{prefix}asynchronous threads", [(names[task], work[task]) for task in sorted(work) if work[task]]
    )
    drawn.add_process(f"{prefix}storage", [(place, places[place]) for place in sorted(places, key=_natural_order)])


def _natural_order(place: str) -> tuple[str, int]:
    """Return a key that sorts names in natural order: node 10 after node 9."""
    stem, _, number = place.rpartition(" ")
    return (stem, int(number)) if number.isdigit() else (place, 0)

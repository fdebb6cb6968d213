"""Events of the Trace Event Format: tracks with slices that never overlap, flows between them, counters.

Times are ns here and µs with three digits in the file.  Format: "Trace Event Format" of the Chromium project, which Perfetto reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sim.foreign import one_line

Event = dict[str, Any]


class TimelineSlice(NamedTuple):
    """A slice of a track."""

    name: str
    begin_ns: int
    end_ns: int
    values: dict[str, Any]  # what a viewer shows when it is chosen


def lanes(slices: Iterable[TimelineSlice]) -> list[list[TimelineSlice]]:
    """Slices dealt into lanes in which none overlap: a viewer nests those that do."""
    found: list[list[TimelineSlice]] = []
    for row in sorted(slices, key=lambda row: (row.begin_ns, row.end_ns)):
        lane = next((lane for lane in found if lane[-1].end_ns <= row.begin_ns), None)
        if lane is None:
            found.append(lane := [])
        lane.append(row)
    return found


def slice_event(process: int, track: int, row: TimelineSlice) -> Event:
    times = {"ts": row.begin_ns / 1e3, "dur": (row.end_ns - row.begin_ns) / 1e3}
    return {"ph": "X", "pid": process, "tid": track, "name": row.name, **times, "args": row.values}


def flow(number: int, name: str, start: tuple[int, int, int], end: tuple[int, int, int]) -> list[Event]:
    """An arrow; both ends are (process, track, time [ns]) of a slice."""
    common = {"cat": "barrier", "name": name, "id": number}
    return [
        {"ph": "s", **common, "pid": start[0], "tid": start[1], "ts": start[2] / 1e3},
        {"ph": "f", "bp": "e", **common, "pid": end[0], "tid": end[1], "ts": end[2] / 1e3},
    ]


def counter(process: int, name: str, time_ns: int, values: Mapping[str, float]) -> Event:
    return {"ph": "C", "pid": process, "tid": 0, "name": name, "ts": time_ns / 1e3, "args": dict(values)}


def named(process: int, name: str, tracks: dict[int, str]) -> list[Event]:
    """The names of a process and of its tracks, in their order."""
    events: list[Event] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": one_line(name)}},
        {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": process}},
    ]
    for track, text in tracks.items():
        events.append({"ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": one_line(text)}})
        events.append({"ph": "M", "pid": process, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}})
    return events

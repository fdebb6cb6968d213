"""What a timeline is drawn on: processes with tracks, arrows between them, and a window that keeps the file small."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from sim.timeline.events import Event, TimelineSlice, flow, lanes, named, slice_event


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline: the events of its tracks."""

    events: list[Event]
    begin_ns: int
    end_ns: int
    left_out: int  # events behind `end_ns`, cut off by the limit


@dataclass(slots=True)
class Drawing:
    """A timeline in the making: the events of its window, as they come."""

    begin_ns: int
    end_ns: int
    events: list[Event] = field(default_factory=list)
    names: list[Event] = field(default_factory=list)
    processes: int = 0
    flows: int = 0

    def process(self, name: str, tracks: Iterable[tuple[str, Iterable[TimelineSlice]]]) -> tuple[int, dict[tuple[str, int], int]]:
        """A process and its tracks, each in as many lanes as it needs; returns its number and the track of (slice, begin)."""
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
        self.flows += 1
        self.events += flow(self.flows, name, start, end)

    def inside(self, time_ns: int) -> bool:
        return self.begin_ns <= time_ns <= self.end_ns

    def _clipped(self, row: TimelineSlice) -> TimelineSlice | None:
        begin_ns, end_ns = max(row.begin_ns, self.begin_ns), min(row.end_ns, self.end_ns)
        return row._replace(begin_ns=begin_ns, end_ns=end_ns) if end_ns > begin_ns else None

    def cut(self, limit: int) -> Timeline:
        """`limit`: events at most, names apart; later ones are left out, and the window ends before the first of them."""
        events = sorted(self.events, key=lambda event: event["ts"])
        if len(events) <= limit:
            return Timeline([*self.names, *events], self.begin_ns, self.end_ns, 0)
        end_ns = int(events[limit]["ts"] * 1e3)
        kept = bisect_right(events, end_ns / 1e3, key=lambda event: event["ts"], hi=limit)
        return Timeline([*self.names, *_whole_arrows(events[:kept])], self.begin_ns, end_ns, len(events) - kept)


def _whole_arrows(events: list[Event]) -> list[Event]:
    """An arrow needs both ends."""
    ended = {event["id"] for event in events if event["ph"] == "f"}
    return [event for event in events if event["ph"] != "s" or event["id"] in ended]

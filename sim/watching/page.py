"""A watch as one page: what is said now, durations beside their forecast, state through time, and the latest events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import bytes_text, ms_text
from sim.analysis.section import TextTable
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart
from sim.report.page import Block, Page
from sim.watching.events import WatchEvent, stamp
from sim.watching.watcher import LATEST, Watcher, percentiles_text

if TYPE_CHECKING:
    from sim.watching.look import SeenCheckpoint

_MOST_EVENTS = 30
_MOST_ROWS = 20
_MOST_VERTICES = 4


class Published:
    """What is served now.  A thread reads it while another one replaces it; each attribute is replaced as a whole."""

    def __init__(self) -> None:
        self.metrics = "# EOF\n"
        self.page = ""


def page_of(watcher: Watcher, events: Sequence[WatchEvent], now_ms: int, command: str = "", made: str = "") -> Page:
    """`events`: the latest ones, oldest first."""
    look = watcher.course.look
    name = "a job" if look is None else look.name
    return Page(
        f"Checkpoints of {name}, watched", "Do checkpoints take as long as was forecast?", verdict(watcher),
        list(_blocks(watcher, events)), (), command, [f"Drawn at {stamp(now_ms)} UTC."], made,
    )  # fmt: skip


def verdict(watcher: Watcher) -> str:
    """What holds at present, in sentences."""
    course, forecast = watcher.course, watcher.course.forecast
    latest = [point for point in watcher.recent[-LATEST:] if not point.is_savepoint]
    now, done = percentiles_text(latest), sum(point.status == "COMPLETED" for point in latest)
    now = f"{done} of the last {len(latest)} checkpoints completed{f', with {now}' if done else ''}."
    away = "" if course.away_ms is None else f"The JobManager gives no answer since {stamp(course.away_ms)}. "
    if forecast is None:
        return f"{away}There is no forecast yet. {now}"
    held = sum(point.trigger_ms >= forecast.made_ms and point.status == "COMPLETED" for point in latest)
    keep = "Checkpoints keep their forecast" if held else "No checkpoint of these is held to the forecast"
    state = keep if course.left_ms is None else f"Checkpoints left their forecast at {stamp(course.left_ms)}"
    return f"{away}{state}: {forecast}. {now}"


def _blocks(watcher: Watcher, events: Sequence[WatchEvent]) -> Iterator[Block]:
    done = [point for point in watcher.recent if point.status == "COMPLETED"]
    if done:
        yield Block(
            "Durations",
            chart=_durations(watcher, done),
            caption="Completed checkpoints by their trigger, and the range of the forecast.",
        )
    if events:
        rows = [[stamp(event.time_ms), event.kind, event.text] for event in reversed(events[-_MOST_EVENTS:])]
        yield Block("What was said", table=TextTable("", ["UTC", "", ""], rows))
    if any(point.state for point in done):
        yield Block("State", chart=_state(done), caption="Full state of the largest vertices, checkpoint by checkpoint.")
    if done:
        rows = [
            [str(point.number), stamp(point.trigger_ms), ms_text(point.duration_ms), bytes_text(point.full_bytes), _part(point)]
            for point in reversed(done[-_MOST_ROWS:])
        ]
        yield Block("The latest checkpoints", table=TextTable("", ["Id", "Trigger, UTC", "Took", "State", "Longest part"], rows))


def _part(point: SeenCheckpoint) -> str:
    if not point.parts_ms:
        return "-"
    name, ms = max(point.parts_ms.items(), key=lambda pair: pair[1])
    return f"{name}, {ms_text(ms)}"


def _durations(watcher: Watcher, done: Sequence[SeenCheckpoint]) -> Chart:
    """Against the minutes until the last one."""
    marks: list[dict[str, Any]] = [
        {
            "series": "checkpoints", "x": (point.trigger_ms - done[-1].trigger_ms) / 6e4, "y": point.duration_ms / 1e3,
            "text": f"checkpoint {point.number}, {stamp(point.trigger_ms)}: {ms_text(point.duration_ms)}",
        }
        for point in done
    ]  # fmt: skip
    if (forecast := watcher.course.forecast) is not None:
        last = done[-1].trigger_ms
        begin = (min(max(forecast.made_ms, done[0].trigger_ms), last) - last) / 6e4
        bounds = {
            "p50, longest": forecast.longest_p50_ms,
            "p50, shortest": forecast.shortest_p50_ms,
            "p90, longest": forecast.longest_p90_ms,
        }
        for name, ms in bounds.items():
            marks.append({"series": f"forecast of {name}", "shape": "span", "x": begin, "x2": 0.0, "y": ms / 1e3, "text": ms_text(ms)})
    return chart(marks, [Panel("", ChartAxis("minutes before the last checkpoint"), ChartAxis("seconds", low=0.0))])


def _state(done: Sequence[SeenCheckpoint]) -> Chart:
    largest = {vertex: size for point in done for vertex, size in point.state.items()}
    marks = [
        {
            "series": vertex, "shape": "line", "x": (point.trigger_ms - done[-1].trigger_ms) / 6e4, "y": point.state[vertex] / 1e6,
            "text": f"{vertex}: {bytes_text(point.state[vertex])}",
        }
        for vertex in sorted(largest, key=lambda name: -largest[name])[:_MOST_VERTICES]
        for point in done
        if vertex in point.state
    ]  # fmt: skip
    return chart(marks, [Panel("", ChartAxis("minutes before the last checkpoint"), ChartAxis("megabytes", low=0.0))])

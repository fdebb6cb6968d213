"""Serve a watch over HTTP: as OpenMetrics text at `/metrics`, and as a page at `/`."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

from sim.jobs.watch.look import mean_circumstances
from sim.jobs.watch.watcher import (
    MIN_LOOKS_OF_LOAD,
    RECENT_CHECKPOINTS,
    Watcher,
    WatchEvent,
    percentiles,
    percentiles_text,
    time_text,
)
from sim.results.charts import Chart, ChartAxis, Panel, chart
from sim.results.formats import TextTable, bytes_text, ms_text
from sim.results.page import Block, Page

if TYPE_CHECKING:
    from sim.jobs.watch.look import SeenCheckpoint


# ---- A watch as OpenMetrics text 1.0 (github.com/prometheus/OpenMetrics, specification/OpenMetrics.md).
#
# The textfile collector of Prometheus' node exporter can read it, too, because it contains neither timestamps nor
# exemplars.

Samples = Iterable[tuple[Mapping[str, str], float]]
"""Pairs of labels and value."""


def open_metrics_text(watcher: Watcher, requests: int) -> str:
    """Return a watch as OpenMetrics text.  An unknown value has no sample.  `requests` is the number of requests so far."""
    look = watcher.course.look
    job = {} if look is None else {"flink_job": look.name}
    return "".join(line for family in _families(watcher, requests) for line in _lines(*family, job=job)) + "# EOF\n"


def _families(watcher: Watcher, requests: int) -> Iterator[tuple[str, str, str, Samples]]:
    """Yield (name, type, help text, samples) of each metric family.  The last word of a name is the unit, if there is one."""
    course, forecast, counts = watcher.course, watcher.course.forecast, watcher.course.counts
    last = next((point for point in reversed(watcher.recent) if point.status == "COMPLETED"), None)
    is_fine = course.away_ms is None and not course.strange
    yield "ckptsim_answers", "gauge", "1: the JobManager answers.", [({}, is_fine)]
    looks = _samples_by(counts, "looks", "outcome")
    yield "ckptsim_looks", "counter", "Looks at the job, by how they ended.", looks
    yield "ckptsim_requests", "counter", "Requests since this process began.", [({}, requests)]
    restarts = counts.get("restarts", 0)
    yield "ckptsim_restarts", "counter", "How often the job was seen to begin again.", [({}, restarts)]
    yield "ckptsim_missed_checkpoints", "counter", "Checkpoints that ended unseen.", [({}, counts.get("missed", 0))]
    verdicts = _samples_by(counts, "checkpoints", "verdict")
    yield "ckptsim_checkpoints", "counter", "Checkpoints that ended, by verdict.", verdicts
    if last is not None:
        yield "ckptsim_checkpoint_seconds", "gauge", "The last completed checkpoint.", [({}, last.duration_ms / 1e3)]
        state = _by("vertex", last.state_bytes.items())
        yield "ckptsim_state_bytes", "gauge", "Full state of each vertex in it.", state
    observed = _percentiles(percentiles(watcher.recent[-RECENT_CHECKPOINTS:]), 1e3)
    meaning = f"Percentiles of the last {RECENT_CHECKPOINTS} checkpoints."
    yield "ckptsim_observed_seconds", "gauge", meaning, observed
    if forecast is not None:
        expected = _percentiles((forecast.p50_ms, forecast.p90_ms), 1e3)
        yield "ckptsim_forecast_seconds", "gauge", "The same, as forecast.", expected
        factors = _percentiles(forecast.factors)
        yield "ckptsim_forecast_factor", "gauge", "Within which factor the forecast holds.", factors
        holds = course.left_ms is None
        yield "ckptsim_forecast_holds", "gauge", "0: checkpoints have left the forecast.", [({}, holds)]
    if watcher.limit is not None:
        yield "ckptsim_limit_seconds", "gauge", "The limit of p90.", [({}, watcher.limit / 1e3)]
    if watcher.rows:
        load = _by("vertex", mean_circumstances(watcher.rows[-MIN_LOOKS_OF_LOAD:], []).load.items())
        meaning = f"Load of each source, over the last {MIN_LOOKS_OF_LOAD} looks."
        yield "ckptsim_source_records_per_second", "gauge", meaning, load


def _by(label: str, values: Iterable[tuple[str, float]], divisor: float = 1) -> Samples:
    return [({label: name}, value / divisor) for name, value in values]


def _percentiles(values: tuple[float, float], divisor: float = 1) -> Samples:
    return _by("percentile", zip(("50", "90"), values, strict=True), divisor)


def _samples_by(counts: Mapping[str, int], prefix: str, label: str) -> Samples:
    found = ((key.partition(" "), count) for key, count in sorted(counts.items()))
    return _by(label, [(name, count) for (first, _, name), count in found if first == prefix])


def _lines(name: str, kind: str, meaning: str, samples: Samples, job: Mapping[str, str]) -> Iterator[str]:
    known = [({**job, **labels}, value) for labels, value in samples if math.isfinite(value)]
    if not known:
        return
    yield f"# TYPE {name} {kind}\n"
    if (unit := name.rpartition("_")[2]) in ("seconds", "bytes"):
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {_escaped(meaning)}\n"
    for labels, value in known:
        given = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        suffix = "_total" if kind == "counter" else ""
        yield f"{name}{suffix}{f'{{{given}}}' if given else ''} {value:.12g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


# ---- A watch as a page: verdict, durations and their forecast, state over time, latest events and checkpoints.

_MAX_EVENTS = 30
_MAX_ROWS = 20
_MAX_VERTICES = 4


class Published:
    """The texts that the server returns.

    The server thread reads them.  Another thread replaces each attribute as a whole, so no lock is needed.
    """

    def __init__(self) -> None:
        self.metrics = "# EOF\n"
        self.page = ""


def page_of(watcher: Watcher, events: Sequence[WatchEvent], now_ms: int, command: str = "") -> Page:
    """Return the page of a watch.  `events` are the latest events, oldest first."""
    look = watcher.course.look
    name = "a job" if look is None else look.name
    return Page(
        f"Checkpoints of {name}, watched",
        "Do checkpoints take as long as was forecast?",
        verdict(watcher),
        list(_blocks(watcher, events)),
        (),
        command,
        [f"Drawn at {time_text(now_ms)} UTC."],
    )


def verdict(watcher: Watcher) -> str:
    """Return sentences on the current state of the job: is it reachable, and are checkpoints within the forecast?"""
    course, forecast = watcher.course, watcher.course.forecast
    latest = [point for point in watcher.recent[-RECENT_CHECKPOINTS:] if not point.is_savepoint]
    now, done = percentiles_text(latest), sum(point.status == "COMPLETED" for point in latest)
    now = f"{done} of the last {len(latest)} checkpoints completed{f', with {now}' if done else ''}."
    away = "" if course.away_ms is None else f"The JobManager gives no answer since {time_text(course.away_ms)}. "
    if forecast is None:
        return f"{away}There is no forecast yet. {now}"
    held = sum(point.trigger_ms >= forecast.made_ms and point.status == "COMPLETED" for point in latest)
    keep = "Checkpoints keep their forecast" if held else "No checkpoint of these is held to the forecast"
    state = keep if course.left_ms is None else f"Checkpoints left their forecast at {time_text(course.left_ms)}"
    return f"{away}{state}: {forecast}. {now}"


def _blocks(watcher: Watcher, events: Sequence[WatchEvent]) -> Iterator[Block]:
    done = [point for point in watcher.recent if point.status == "COMPLETED"]
    if done:
        yield Block(
            "Durations",
            chart=_durations_chart(watcher, done),
            caption="Completed checkpoints by their trigger, and the range of the forecast.",
        )
    if events:
        rows = [[time_text(event.time_ms), event.kind, event.text] for event in reversed(events[-_MAX_EVENTS:])]
        yield Block("What was said", table=TextTable("", ["UTC", "", ""], rows))
    if any(point.state_bytes for point in done):
        yield Block(
            "State", chart=_state_chart(done), caption="Full state of the largest vertices, checkpoint by checkpoint."
        )
    if done:
        rows = [
            [
                str(point.checkpoint),
                time_text(point.trigger_ms),
                ms_text(point.duration_ms),
                bytes_text(point.full_bytes),
                _longest_part_text(point),
            ]
            for point in reversed(done[-_MAX_ROWS:])
        ]
        yield Block(
            "The latest checkpoints", table=TextTable("", ["Id", "Trigger, UTC", "Took", "State", "Longest part"], rows)
        )


def _longest_part_text(point: SeenCheckpoint) -> str:
    if not point.parts_ms:
        return "-"
    name, ms = max(point.parts_ms.items(), key=lambda pair: pair[1])
    return f"{name}, {ms_text(ms)}"


def _durations_chart(watcher: Watcher, done: Sequence[SeenCheckpoint]) -> Chart:
    """Return a chart of the durations over time, with the bounds of the forecast."""
    marks: list[dict[str, Any]] = [
        {
            "series": "checkpoints",
            "x": (point.trigger_ms - done[-1].trigger_ms) / 6e4,
            "y": point.duration_ms / 1e3,
            "text": f"checkpoint {point.checkpoint}, {time_text(point.trigger_ms)}: {ms_text(point.duration_ms)}",
        }
        for point in done
    ]
    if (forecast := watcher.course.forecast) is not None:
        last = done[-1].trigger_ms
        begin = (min(max(forecast.made_ms, done[0].trigger_ms), last) - last) / 6e4
        names = ("p90, longest", "p50, longest", "p50, shortest")
        for name, ms in zip(names, forecast.limits_ms.values(), strict=True):
            marks.append(
                {
                    "series": f"forecast of {name}",
                    "shape": "span",
                    "x": begin,
                    "x2": 0.0,
                    "y": ms / 1e3,
                    "text": ms_text(ms),
                }
            )
    return chart(marks, [Panel("", ChartAxis("minutes before the last checkpoint"), ChartAxis("seconds", low=0.0))])


def _state_chart(done: Sequence[SeenCheckpoint]) -> Chart:
    """Return a chart of the state of the largest vertices over time."""
    largest = {vertex: size for point in done for vertex, size in point.state_bytes.items()}
    marks = [
        {
            "series": vertex,
            "shape": "line",
            "x": (point.trigger_ms - done[-1].trigger_ms) / 6e4,
            "y": point.state_bytes[vertex] / 1e6,
            "text": f"{vertex}: {bytes_text(point.state_bytes[vertex])}",
        }
        for vertex in sorted(largest, key=lambda name: -largest[name])[:_MAX_VERTICES]
        for point in done
        if vertex in point.state_bytes
    ]
    return chart(marks, [Panel("", ChartAxis("minutes before the last checkpoint"), ChartAxis("megabytes", low=0.0))])


# ---- The HTTP server: `/metrics` for Prometheus, and the page at `/`.
#
# Tornado serves all clients from one thread without blocking on a slow one.  A connection serves one request, and is
# closed after CONNECTION_LIMIT_S in any case.  On a loopback address only host names of this machine are accepted:
# otherwise a web site could let its name resolve to this address, and read the page through the user's browser (DNS
# rebinding).

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONNECTION_LIMIT_S = 5.0
"""Maximum time from the connection to the last byte of the response."""
_MAX_HEADER_BYTES = 16_384
_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PublishedHandler(RequestHandler):
    """A handler for GET and HEAD of one path, which returns one of the published texts."""

    def initialize(self, published: Published, attribute: str, content_type: str, host_names: frozenset[str]) -> None:
        """Set up the handler.

        Args:
            published: The texts.
            attribute: Name of the text to return.
            content_type: Its media type.
            host_names: Accepted values of the Host header.  If empty, all are accepted.
        """
        self.published, self.attribute, self.content_type, self.host_names = (
            published,
            attribute,
            content_type,
            host_names,
        )

    def set_default_headers(self) -> None:
        self.set_header("Server", "ckptsim")
        for name, value in _SECURITY_HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if self.host_names and self.request.host_name.lower() not in self.host_names:
            raise HTTPError(421)

    def get(self) -> None:
        text = getattr(self.published, self.attribute)
        if not text:
            raise HTTPError(404)
        self.set_header("Content-Type", self.content_type)
        self.write(text)

    def head(self) -> None:
        self.get()

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


class _NotFoundHandler(PublishedHandler):
    def get(self) -> None:
        raise HTTPError(404)


class _LimitedServer(HTTPServer):
    """A server that closes each connection after CONNECTION_LIMIT_S."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        IOLoop.current().call_later(CONNECTION_LIMIT_S, stream.close)  # no effect if it is closed by then
        super().handle_stream(stream, address)


@contextmanager
def serve(published: Published, host: str, port: int) -> Iterator[str]:
    """Run the server in a thread, and yield its URL.  Raises `OSError` if the port is in use, or not permitted."""
    sockets = bind_sockets(port, host, family=socket.AF_UNSPEC)
    names = _host_names(host)
    common = {"published": published, "host_names": names}
    paths = {"/metrics": ("metrics", OPENMETRICS), "/": ("page", "text/html; charset=utf-8")}
    routes = [
        (path, PublishedHandler, common | {"attribute": name, "content_type": kind})
        for path, (name, kind) in paths.items()
    ]
    application = Application(
        routes,
        default_handler_class=_NotFoundHandler,
        default_handler_args=common | {"attribute": "", "content_type": ""},
        log_function=lambda _handler: None,
    )
    loop = asyncio.new_event_loop()
    started = threading.Event()

    def run_server() -> None:
        asyncio.set_event_loop(loop)
        server = _LimitedServer(application, no_keep_alive=True, max_header_size=_MAX_HEADER_BYTES, max_body_size=0)
        server.add_sockets(sockets)
        loop.call_soon(started.set)
        loop.run_forever()
        server.stop()
        loop.run_until_complete(server.close_all_connections())
        loop.close()

    thread = threading.Thread(target=run_server, daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _host_names(host: str) -> frozenset[str]:
    """Return the accepted host names for a loopback address, or an empty set for other addresses, whose names are unknown."""
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    return frozenset({host, "localhost", "127.0.0.1", "[::1]", "::1"}) if is_loopback else frozenset()

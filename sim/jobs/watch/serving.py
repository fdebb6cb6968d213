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

from sim.jobs.source.job_log import clock
from sim.jobs.watch.forecast import LOWER, TAIL, UPPER
from sim.jobs.watch.observation import mean_circumstances
from sim.jobs.watch.watcher import (
    MIN_FORECAST_CHECKPOINTS,
    RECENT_CHECKPOINTS,
    SHOWN_ACTIVITIES,
    Watcher,
    WatchEvent,
    percentiles,
    percentiles_text,
)
from sim.model.text import listed
from sim.results.charts import Chart, ChartAxis, Panel, make_chart
from sim.results.formats import TextTable, apart_text, bytes_text, ms_text
from sim.results.page import Block, Page

if TYPE_CHECKING:
    from sim.jobs.watch.observation import SeenCheckpoint


# ---- A watch as OpenMetrics text 1.0 (github.com/prometheus/OpenMetrics, specification/OpenMetrics.md).
#
# The textfile collector of Prometheus' node exporter can read it, too, because it contains neither timestamps nor
# exemplars.

Samples = Iterable[tuple[Mapping[str, str], float]]
"""Pairs of labels and value."""


def open_metrics_text(watcher: Watcher, requests: int) -> str:
    """Return a watch as OpenMetrics text.  An unknown value has no sample.  `requests` is the number of requests so far."""
    observation = watcher.state.observation
    job = {} if observation is None else {"flink_job": observation.name}
    return "".join(line for family in _families(watcher, requests) for line in _lines(*family, job=job)) + "# EOF\n"


def _families(watcher: Watcher, requests: int) -> Iterator[tuple[str, str, str, Samples]]:
    """Yield (name, type, help text, samples) of each metric family.  The last word of a name is the unit, if there is one."""
    state, forecast = watcher.state, watcher.state.forecast
    last = next((point for point in reversed(watcher.state.recent) if point.status == "COMPLETED"), None)
    yield "ckptsim_answers", "gauge", "1: the JobManager answers.", [({}, state.is_reachable)]
    polls, checkpoints = (
        _samples_by(state.counts, *names) for names in (("polls", "outcome"), ("checkpoints", "verdict"))
    )
    yield "ckptsim_polls", "counter", "Polls of the job, by how they ended.", polls
    yield "ckptsim_requests", "counter", "Requests since this process began.", [({}, requests)]
    yield "ckptsim_restarts", "counter", "How often the job was seen to begin again.", [({}, state.counts["restarts"])]
    yield "ckptsim_missed_checkpoints", "counter", "Checkpoints that ended unseen.", [({}, state.counts["missed"])]
    yield "ckptsim_checkpoints", "counter", "Checkpoints that ended, by verdict.", checkpoints
    if last is not None:
        yield "ckptsim_checkpoint_seconds", "gauge", "The last completed checkpoint.", [({}, last.duration_ms / 1e3)]
        yield (
            "ckptsim_state_bytes",
            "gauge",
            "Full state of each vertex in it.",
            _by("vertex", last.state_bytes.items()),
        )
    observed = _percentiles(percentiles(watcher.state.recent[-RECENT_CHECKPOINTS:]), 1e3)
    yield "ckptsim_observed_seconds", "gauge", f"Percentiles of the last {RECENT_CHECKPOINTS} checkpoints.", observed
    if forecast is not None:
        expected = _percentiles((forecast.p50_ms, forecast.p90_ms), 1e3)
        yield "ckptsim_forecast_seconds", "gauge", "The same, as forecast.", expected
        factors = _percentiles(forecast.factors)
        yield "ckptsim_forecast_factor", "gauge", "Within which factor the forecast holds.", factors
        holds = state.left_ms is None
        yield "ckptsim_forecast_holds", "gauge", "0: checkpoints have left the forecast.", [({}, holds)]
    if watcher.limit is not None:
        yield "ckptsim_limit_seconds", "gauge", "The limit of p90.", [({}, watcher.limit / 1e3)]
    if watcher.state.activities:
        load = _by("vertex", mean_circumstances(watcher.state.activities[-SHOWN_ACTIVITIES:], []).load.items())
        help_text = f"Load of each source, over the last {SHOWN_ACTIVITIES} polls with new counters."
        yield "ckptsim_source_records_per_second", "gauge", help_text, load


def _by(label: str, values: Iterable[tuple[str, float]], divisor: float = 1) -> Samples:
    return [({label: name}, value / divisor) for name, value in values]


def _percentiles(values: tuple[float, float], divisor: float = 1) -> Samples:
    return _by("percentile", zip(("50", "90"), values, strict=True), divisor)


def _samples_by(counts: Mapping[str, int], prefix: str, label: str) -> Samples:
    pairs = ((key.partition(" "), count) for key, count in sorted(counts.items()))
    return _by(label, [(name, count) for (first, _, name), count in pairs if first == prefix])


def _lines(name: str, kind: str, help_text: str, samples: Samples, job: Mapping[str, str]) -> Iterator[str]:
    finite = [({**job, **labels}, value) for labels, value in samples if math.isfinite(value)]
    if not finite:
        return
    yield f"# TYPE {name} {kind}\n"
    if (unit := name.rpartition("_")[2]) in ("seconds", "bytes"):
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {_escaped(help_text)}\n"
    suffix = "_total" if kind == "counter" else ""
    for labels, value in finite:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{f'{{{pairs}}}' if pairs else ''} {value:.12g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


# ---- A watch as a page: verdict, durations and their forecast, latest events and checkpoints.

_MAX_EVENTS = 30
_MAX_ROWS = 20


Published = dict[str, str]
"""Path -> text that the server returns.  The server thread reads it, another one replaces each text as a whole, without a lock."""


def page_of(watcher: Watcher, events: Sequence[WatchEvent], now_ms: int, command: str = "") -> Page:
    """Return the page of a watch.  `events` are the latest events, oldest first."""
    observation = watcher.state.observation
    name = "a job" if observation is None else observation.name
    return Page(
        f"Checkpoints of {name}, watched",
        "Do checkpoints take as long as was forecast?",
        verdict(watcher),
        list(_blocks(watcher, events)),
        (),
        command,
        [f"Drawn at {clock(now_ms)} UTC."],
    )


def verdict(watcher: Watcher) -> str:
    """Return sentences on the current state of the job: is it reachable, and are checkpoints within limit and forecast?"""
    state, forecast = watcher.state, watcher.state.forecast
    latest = [point for point in watcher.state.recent[-RECENT_CHECKPOINTS:] if not point.is_savepoint]
    completed = sum(point.status == "COMPLETED" for point in latest)
    durations = f", with {percentiles_text(latest)}" if completed else ""
    now = f"{completed} of the last {len(latest)} checkpoints completed{durations}."
    away = "" if state.away_ms is None else f"The JobManager gives no answer since {clock(state.away_ms)}. "
    away += _over_limit_text(watcher, percentiles(latest)[1]) if completed >= MIN_FORECAST_CHECKPOINTS else ""
    if forecast is None:
        return f"{away}There is no forecast yet. {now}"
    if state.left_ms is not None:
        comparison = f"Checkpoints left their forecast at {clock(state.left_ms)}"
    elif any(point.trigger_ms >= forecast.made_ms and point.status == "COMPLETED" for point in latest):
        p50_ms, p90_ms = percentiles(latest)
        limits_ms = forecast.limits_ms
        beyond = [
            *["p50 is below it"] * (p50_ms < limits_ms[LOWER.name]),
            *["p50 is above it"] * (p50_ms > limits_ms[UPPER.name]),
            *["p90 is above it"] * (p90_ms > limits_ms[TAIL.name]),
        ]
        unsure = f"It is not sure yet whether checkpoints keep their forecast ({listed(beyond)})"
        comparison = unsure if beyond else "Checkpoints keep their forecast"
    else:
        comparison = "No checkpoint of these is held to the forecast"
    return f"{away}{comparison}: {forecast}. {now}"


def _over_limit_text(watcher: Watcher, p90_ms: float) -> str:
    """Return a sentence if the p90 of the latest checkpoints is above the limit, or ""."""
    if watcher.limit is None or p90_ms <= watcher.limit:
        return ""
    return f"Checkpoints are longer than their limit, {ms_text(watcher.limit)}: p90 {apart_text(p90_ms, watcher.limit, ms_text)}. "


def _blocks(watcher: Watcher, events: Sequence[WatchEvent]) -> Iterator[Block]:
    completed = [point for point in watcher.state.recent if point.status == "COMPLETED"]
    if completed:
        yield Block(
            "Durations",
            chart=_durations_chart(watcher, completed),
            caption="Completed checkpoints by their trigger, and the range of the forecast.",
        )
    if events:
        rows = [[clock(event.time_ms), event.kind, event.text] for event in reversed(events[-_MAX_EVENTS:])]
        yield Block("What was said", table=TextTable("", ["UTC", "", ""], rows))
    if completed:
        rows = [
            [
                str(point.checkpoint),
                clock(point.trigger_ms),
                ms_text(point.duration_ms),
                bytes_text(point.full_bytes),
                _longest_part_text(point),
            ]
            for point in reversed(completed[-_MAX_ROWS:])
        ]
        yield Block(
            "The latest checkpoints", table=TextTable("", ["Id", "Trigger, UTC", "Took", "State", "Longest part"], rows)
        )


def _longest_part_text(point: SeenCheckpoint) -> str:
    if not point.parts_ms:
        return "-"
    name, ms = max(point.parts_ms.items(), key=lambda pair: pair[1])
    return f"{name}, {ms_text(ms)}"


def _durations_chart(watcher: Watcher, completed: Sequence[SeenCheckpoint]) -> Chart:
    """Return a chart of the durations over time, with the bounds of the forecast."""
    last_ms = completed[-1].trigger_ms
    marks: list[dict[str, Any]] = [
        {
            "series": "checkpoints",
            "x": (point.trigger_ms - last_ms) / 6e4,
            "y": point.duration_ms / 1e3,
            "text": f"checkpoint {point.checkpoint}, {clock(point.trigger_ms)}: {ms_text(point.duration_ms)}",
        }
        for point in completed
    ]
    # a forecast that was made after the last checkpoint would be in the legend, but have no length
    if (forecast := watcher.state.forecast) is not None and forecast.made_ms < last_ms:
        span = {
            "shape": "span",
            "x": (max(forecast.made_ms, completed[0].trigger_ms) - last_ms) / 6e4,
            "x2": 0.0,
        }
        bounds = zip(("p90, longest", "p50, longest", "p50, shortest"), forecast.limits_ms.values(), strict=True)
        marks += [{"series": f"forecast of {name}", **span, "y": ms / 1e3, "text": ms_text(ms)} for name, ms in bounds]
    return make_chart(
        marks, [Panel("", ChartAxis("minutes before the last checkpoint"), ChartAxis("seconds", low=0.0))]
    )


# ---- The HTTP server: `/metrics` for Prometheus, and the page at `/`.
#
# Tornado serves all clients from one thread without blocking on a slow one.  A connection serves one request, and is
# closed after CONNECTION_LIMIT_S in any case.  On a loopback address only host names of this machine are accepted:
# otherwise a web site could let its name resolve to this address, and read the page through the user's browser (DNS
# rebinding).

METRICS_PATH, PAGE_PATH = "/metrics", "/"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONNECTION_LIMIT_S = 5.0
"""Maximum time from the connection to the last byte of the response."""
_MAX_HEADER_BYTES = 16_384
_DEFAULT_HEADERS = {
    "Server": "ckptsim",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PublishedHandler(RequestHandler):
    """A handler for GET and HEAD, which returns the published text of a path."""

    def initialize(self, published: Published, host_names: frozenset[str]) -> None:
        """Set up the handler.  `host_names`: accepted values of the Host header; if empty, all are accepted."""
        self.published, self.host_names = published, host_names

    def set_default_headers(self) -> None:
        for name, value in _DEFAULT_HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if self.host_names and self.request.host_name.lower() not in self.host_names:
            raise HTTPError(421)

    def get(self) -> None:
        text = self.published.get(self.request.path)
        if not text:
            raise HTTPError(404)
        self.set_header(
            "Content-Type", OPENMETRICS if self.request.path == METRICS_PATH else "text/html; charset=utf-8"
        )
        self.write(text)

    head = get

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


class _LimitedServer(HTTPServer):
    """A server that closes each connection after CONNECTION_LIMIT_S."""

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        IOLoop.current().call_later(CONNECTION_LIMIT_S, stream.close)  # no effect if it is closed by then
        super().handle_stream(stream, address)


@contextmanager
def serve(published: Published, host: str, port: int) -> Iterator[str]:
    """Run the server in a thread, and yield its URL.  Raises `OSError` if the port is in use, or not permitted."""
    sockets = bind_sockets(port, host, family=socket.AF_UNSPEC)
    arguments = {"published": published, "host_names": _host_names(host)}
    application = Application([(".*", PublishedHandler, arguments)], log_function=lambda _handler: None)
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

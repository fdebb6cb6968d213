"""`watch`: poll a running job and compare its checkpoints with a forecast.  All state is in the folder."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import urlsplit

import pandas as pd

from sim.app.verbs.common import (
    SILENT,
    Listener,
    OptionError,
    parse_option,
    parse_positive_seconds,
    stoppable,
    writable_folder,
)
from sim.app.verbs.importing import import_source
from sim.app.verbs.options import WatchOptions, command_line, path_of, with_all_options
from sim.jobs.history.reading import history_of
from sim.jobs.reading import read_source
from sim.jobs.source.fetching import JOBS, TERMINAL, choose_job, fetch
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot, rows_of
from sim.jobs.source.rest_client import Client, RestError
from sim.jobs.watch.forecast import NoForecastError, forecast_of
from sim.jobs.watch.memory import STATE, Memory, read_checkpoints
from sim.jobs.watch.observation import JobObservation, observe_job, with_checkpoints, without_earlier_checkpoints
from sim.jobs.watch.serving import METRICS_PATH, PAGE_PATH, Published, open_metrics_text, page_of, serve, verdict
from sim.jobs.watch.watcher import (
    MIN_FORECAST_CHECKPOINTS,
    Watcher,
    WatchEvent,
    WatchState,
    parse_state,
    state_to_json,
)
from sim.model.files import locked, replace_text
from sim.model.frozen import frozen
from sim.model.schema.study import load
from sim.model.schema.text import ScenarioError
from sim.model.text import Address, one_line
from sim.model.units import parse_duration
from sim.results.page import html

SCENARIO, PAGE, METRICS = "job.yaml", "index.html", "ckptsim.prom"
MAX_REQUESTS = 2000
"""REST requests per poll.  A job of 30 vertices with 30 new checkpoints takes half of them."""
MIN_POLL_TIME_LIMIT_S = 30.0
"""Time limit of a poll: the polling interval, or this if that is shorter."""
MAX_EVENTS = 1000
"""Events kept in memory; the folder has all of them."""
FORECAST_RETRY_S = 900.0
"""Time between a failed forecast and the next attempt."""
MAX_PAGE_AGE_S = 300.0
"""Maximum time between two updates of the page; it is also updated after each event."""


class WatchClock:
    """Clock of a watch.  Tests replace it by one that does not sleep."""

    def now_ms(self) -> int:
        return time.time_ns() // 10**6

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


@frozen
class WatchResult:
    """The result of `watch`: the events since the command was started, and the checkpoints since its folder was created."""

    folder: Path
    events: tuple[WatchEvent, ...]
    verdict: str

    @property
    def checkpoints(self) -> pd.DataFrame:
        """A row per checkpoint that was seen: Flink's numbers, verdict, forecast, state by vertex, parts of the critical path."""
        table = pd.DataFrame(read_checkpoints(self.folder))
        return table.assign(trigger=pd.to_datetime(table["trigger"], format="ISO8601")) if len(table) else table

    def __repr__(self) -> str:
        return "\n".join([*(event.line for event in self.events), self.verdict])


@with_all_options(WatchOptions)
def watch(
    url: str, *, listener: Listener = SILENT, clock: WatchClock | None = None, **options: Unpack[WatchOptions]
) -> WatchResult:
    """Poll a running job and compare its checkpoints with a forecast, until `duration` is over or the call is interrupted.

    `url`: the JobManager (``"http://jobmanager:8081"``), or a saved job, which is replayed.  A call with the same `folder`
    resumes.  Each event is passed to `listener.result`.

    Raises:
        RestError: The first poll of a new folder fails.
        MemoryFileError: The folder is damaged.
        OptionError (a ValueError): An invalid value.
    """
    is_saved = "://" not in url and Path(url).exists()
    session = (_Replay if is_saved else _Session)(url, options, listener, clock or WatchClock())
    writable_folder(session.folder)
    with ExitStack() as stack:
        stack.enter_context(locked(session.folder, listener.warning))
        session.resume()
        if (address := options["listen"]) is not None:
            listener.message(f"serving {_serve(session.published, address, stack)}{METRICS_PATH}")
        with stoppable(f"the state is in {session.folder}; run the same command to resume"):
            session.run()
    return WatchResult(session.folder, tuple(session.events), verdict(session.watcher))


def _serve(published: Published, listen: str, stack: ExitStack) -> str:
    """Serve the texts at ``PORT`` or ``HOST:PORT`` until the stack is closed.  Return the URL."""
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdecimal() or int(port) > 65535:
        raise OptionError("listen", f"expected PORT or HOST:PORT, not '{one_line(listen)}'")
    try:
        return stack.enter_context(serve(published, host or "127.0.0.1", int(port)))
    except OSError as error:
        raise OptionError("listen", f"{listen}: {error.strerror or error}") from None


def _folder_name(url: str) -> str:
    """Return the default folder name of an address, e.g. ``jobmanager-8081``."""
    place = urlsplit(str(Address(url))).netloc
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in place) or "job"


class _Session:
    """One running `watch` command: its options with parsed quantities, and its state."""

    def __init__(self, url: str, options: WatchOptions, listener: Listener, clock: WatchClock) -> None:
        """Parse the options.  OptionError: a value is not a quantity, or out of range."""
        self.url, self.options, self.listener, self.clock = url, options, listener, clock
        self.every_s = parse_option("every", options["every"], parse_duration) / 1e9
        if self.every_s < 1:
            raise OptionError("every", "expected 1 s or more: Flink updates its REST responses every few seconds")
        duration, limit = options["duration"], options["limit"]
        self.duration_s = inf if duration is None else parse_option("duration", duration, parse_duration) / 1e9
        self.sample_s = parse_option("sample", options["sample"], parse_duration) / 1e9
        self.limit_ms = None if limit is None else 1e3 * parse_positive_seconds("limit", limit)
        self.folder = path_of(options["folder"]) or Path("watched") / (
            _folder_name(url) if "://" in url else Path(url).stem
        )
        # The command without secrets: headers, and credentials in the address, are left out.
        self.command = command_line("watch", [str(Address(url))], WatchOptions, {**options, "folder": self.folder})
        self.published: Published = {METRICS_PATH: "# EOF\n"}
        self.events: deque[WatchEvent] = deque(maxlen=MAX_EVENTS)
        self.memory = Memory(self.folder)
        self.watcher = Watcher(WatchState(), self.limit_ms)
        self.requests = 0
        # (start of the job's current settings [ms], time at which a forecast for them failed [ms])
        self.failed_forecast: tuple[int, int] | None = None
        self.page_written_ms = -(10**15)
        self.is_new = True
        self.has_news = False  # since the last update of the page
        self.has_write_error = False  # the last attempt to write to the folder failed

    def resume(self) -> None:
        """Continue the watch whose state is in the folder, if there is one."""
        stored = self.memory.open()
        if stored is None:
            return
        self.is_new = False
        state = parse_state(stored["state"], self.folder / STATE)
        self.watcher = Watcher(state, self.limit_ms)
        if self.options["renew"]:
            state.forecast = None
            state.reset_evidence()
        checkpoint_count = sum(count for name, count in state.counts.items() if name.startswith("checkpoints"))
        self.listener.message(f"resuming: {self.folder} has {checkpoint_count} checkpoints; {verdict(self.watcher)}")

    def run(self) -> None:
        """Poll until the duration is over."""
        begun_ms = self.clock.now_ms()
        while True:
            now_ms = self.clock.now_ms()
            self.poll(now_ms)
            ends_ms = begun_ms + 1e3 * self.duration_s
            next_ms = now_ms + 1e3 * self.every_s
            if next_ms > ends_ms:
                return
            self.clock.wait(max(0.0, (next_ms - self.clock.now_ms()) / 1e3))

    def poll(self, now_ms: int) -> None:
        """Poll the job once, compare with the forecast, and store and publish the result."""
        client = self._client(max(self.every_s, MIN_POLL_TIME_LIMIT_S))
        rows: list[dict[str, Any]] = []
        try:
            _, observation = self._observe_job(client, now_ms)
            events, rows = self.watcher.process_observation(observation, now_ms)
        except RestError as error:
            if self.is_new:
                raise
            events = self.watcher.on_failed_poll(now_ms, error.why, is_slow=error.is_final and client.answered > 0)
        except RecordingError as error:
            if self.is_new:
                raise
            events = self.watcher.on_invalid_response(now_ms, one_line(error, 200))
        self.is_new = False
        self._report(events)
        if self.watcher.state.is_reachable and self.watcher.wants_forecast and self._may_try_forecast(now_ms):
            rows += self._forecast(now_ms)
        self.requests += client.requests
        self._store(now_ms, rows)
        self._publish(now_ms)

    def _client(self, total_s: float) -> Client:
        return Client(
            self.url,
            headers=self.options["headers"] or {},
            total_s=total_s,
            max_requests=MAX_REQUESTS,
            pause=self.clock.wait,
        )

    def _observe_job(
        self, client: Client, now_ms: int, sample_s: float | None = None
    ) -> tuple[RestSnapshot, JobObservation]:
        """Fetch and parse the state of the job.

        `sample_s`: if set, fetch everything that an import needs, and sample metrics for this long; if None, fetch only new
        checkpoints.  RestError: the JobManager is unreachable.  RecordingError: unexpected response.
        """
        state = self.watcher.state
        overview = client.get(JOBS, attempts=1 if state.away_ms is not None else 2)
        job = _choose_watched_job(overview, self.options["job"], state.observation, client.url)
        seen = frozenset(state.seen) if state.observation is not None and state.observation.job == job else frozenset()
        snapshot = fetch(self.url, job, sample_s=sample_s or 0.0, client=client, seen=seen if sample_s is None else ())
        if error := snapshot.missing.get(f"/jobs/{job}"):
            raise RestError(f"{client.url}/jobs/{job}", error)
        try:
            return snapshot, observe_job(snapshot, now_ms, seen)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # the response does not have the format of Flink
            raise RecordingError(f"{client.url}: {type(error).__name__}: {error}") from None

    def _may_try_forecast(self, now_ms: int) -> bool:
        """Return True unless a forecast for the job's current settings failed in the last RETRY_S."""
        if self.failed_forecast is None or self.failed_forecast[0] != self.watcher.state.settings_since_ms:
            return True
        return now_ms - self.failed_forecast[1] >= 1e3 * FORECAST_RETRY_S

    def _forecast(self, now_ms: int) -> list[dict[str, Any]]:
        """Import the job and make its simulation the forecast.  Return rows of new checkpoints."""
        client = self._client(self.sample_s + max(self.every_s, MIN_POLL_TIME_LIMIT_S))
        rows: list[dict[str, Any]] = []
        watcher, state = self.watcher, self.watcher.state
        self.failed_forecast = (state.settings_since_ms, now_ms)  # assume failure; reset on success
        try:
            snapshot, observation = self._observe_job(client, now_ms, self.sample_s)
            events, rows = watcher.process_observation(observation, now_ms)
            self._report(events)
            if not watcher.wants_forecast:
                return rows  # the job has changed since the poll
            snapshot = without_earlier_checkpoints(snapshot, state.settings_since_ms)
            study = load(import_source(snapshot, observation.name, Listener()).save(self.folder / SCENARIO))
            forecast = forecast_of(study.backtest, observation.time_ms, observation.job, watcher.usual)
            self._report(watcher.use_forecast(forecast, self.clock.now_ms()))
            self.failed_forecast = None
        except RestError as error:
            self._report(watcher.on_failed_poll(now_ms, error.why))
        except (RecordingError, ScenarioError, NoForecastError) as error:
            again = f"tried again in {FORECAST_RETRY_S / 60:g} min"
            self._report([WatchEvent(self.clock.now_ms(), "forecast", f"no forecast: {one_line(error, 200)}; {again}")])
        finally:
            self.requests += client.requests
        return rows

    def _report(self, events: list[WatchEvent]) -> None:
        """Pass events to the listener."""
        for event in events:
            self.events.append(event)
            self.listener.result(event)
            self.has_news = True

    def _store(self, now_ms: int, rows: list[dict[str, Any]]) -> None:
        state = {"command": self.command, "state": state_to_json(self.watcher.state)}
        with self._writing():
            self.memory.save(now_ms, rows, state)
            self.has_write_error = False

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Warn once that the folder cannot be written.  Unwritten rows stay in memory until the next poll."""
        try:
            yield
        except OSError as error:
            if not self.has_write_error:
                self.listener.warning(
                    f"cannot write {error.filename or self.folder}: {error.strerror}; retrying at each poll"
                )
            self.has_write_error = True

    def _publish(self, now_ms: int) -> None:
        self.published[METRICS_PATH] = open_metrics_text(self.watcher, self.requests)
        metrics = path_of(self.options["metrics"]) or self.folder / METRICS
        with self._writing():
            replace_text(metrics, self.published[METRICS_PATH])
            if self.has_news or now_ms - self.page_written_ms >= 1e3 * MAX_PAGE_AGE_S:
                self.has_news, self.page_written_ms = False, now_ms
                self.published[PAGE_PATH] = html(page_of(self.watcher, list(self.events), now_ms, self.command))
                replace_text(self.folder / PAGE, self.published[PAGE_PATH])


@dataclass
class _ReplayClock(WatchClock):
    """The clock of a replay, which shows when the checkpoint ended that is polled."""

    time_ms: int = 0

    def now_ms(self) -> int:
        return self.time_ms


class _Replay(_Session):
    """A saved job, polled as if it were running: at the end of each of its checkpoints, of which the last half is compared."""

    clock: _ReplayClock

    def __init__(self, url: str, options: WatchOptions, listener: Listener, clock: WatchClock) -> None:
        """Read the file.  RecordingError: it is not a saved job with answers of the REST API, or has too few checkpoints."""
        super().__init__(url, options, listener, clock)
        source = read_source([Path(url)], options["job"])
        if not isinstance(source, RestSnapshot):
            raise RecordingError(
                f"{url}: a log; watch replays answers of the REST API: a saved job or an archive of the history server"
            )
        self.source, self.clock = source, _ReplayClock()
        ended = [point for point in history_of(source).checkpoints if point.status != "IN_PROGRESS"]
        self.ends_ms = sorted(round(point.trigger_timestamp + point.end_to_end_duration) for point in ended)
        self.first = max(MIN_FORECAST_CHECKPOINTS + 1, len(self.ends_ms) // 2)
        if len(self.ends_ms) <= self.first:
            raise RecordingError(
                f"{url}: {len(ended)} checkpoints; a replay needs {MIN_FORECAST_CHECKPOINTS + 2}, of which it forecasts the last"
            )

    def resume(self) -> None:
        """OptionError: the folder has a watch already, whose checkpoints would be listed twice."""
        if self.memory.open() is not None:
            raise OptionError("out", f"{self.folder} has a watch already: name another folder")

    def _client(self, total_s: float) -> Client:
        return Client("http://saved")  # which asks nothing

    def run(self) -> None:
        """Poll at the end of each checkpoint, from that on of which there are enough for a forecast."""
        for ended_ms in self.ends_ms[self.first - 1 :]:
            self.clock.time_ms = ended_ms
            self.poll(ended_ms)
        self.listener.message(verdict(self.watcher))

    def _observe_job(
        self, client: Client, now_ms: int, sample_s: float | None = None
    ) -> tuple[RestSnapshot, JobObservation]:
        about = f"/jobs/{self.source.job}"
        now = {about: {**self.source.answers[about], "now": now_ms}}
        snapshot = with_checkpoints(
            replace(self.source, answers={**self.source.answers, **now}),
            lambda row: row["trigger_timestamp"] + row["end_to_end_duration"] < now_ms + 1,
        )
        return snapshot, observe_job(snapshot, now_ms, frozenset(self.watcher.state.seen))


def _choose_watched_job(overview: Any, job: str | None, watched: JobObservation | None, url: str) -> str:
    """Return the id of the job to watch: the known job while it runs, then a running job of the same name.

    RestError: there is no such job, or there are several.
    """
    jobs = rows_of(overview, "jobs")
    if watched is not None:
        mine = next((row for row in jobs if row.get("jid") == watched.job), None)
        if mine is not None and mine.get("state") not in TERMINAL:
            return watched.job
        same_name = [
            row for row in jobs if row.get("state") not in TERMINAL and one_line(row.get("name")) == watched.name
        ]
        if job is None and len(same_name) == 1:
            return choose_job({"jobs": same_name}, None, url)[0]
        if mine is not None:
            return watched.job
        raise RestError(url, f"job {watched.job[:8]} ('{watched.name}') is no longer listed by the JobManager")
    return choose_job(overview, job, url)[0]

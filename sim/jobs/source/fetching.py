"""Fetch a snapshot of one job from Flink's REST API: its graph, its checkpoints, and samples of its metrics.

Answers are stored unparsed; other modules parse them.  A history server answers the same requests, except metrics.

Flink caches metrics for `metrics.fetcher.update-interval` (10 s) and checkpoints for `web.refresh-interval` (3 s), so
samples are more frequent than changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from time import monotonic, time_ns
from typing import Any
from urllib.parse import quote

from sim.jobs.source.recorded_job import MAX_CHECKPOINT_ID
from sim.jobs.source.rest_answers import (
    CPU_TIME,
    MAX_VERTICES,
    SAMPLED,
    RestSnapshot,
    is_id,
    is_path,
    list_names,
    objects_in,
    rows_of,
)
from sim.jobs.source.rest_client import ATTEMPTS, Client, RestError, answers_of
from sim.model.text import one_line

JOBS = "/jobs/overview"
TERMINAL = frozenset({"FINISHED", "CANCELED", "FAILED"})  # JobStatus.isGloballyTerminalState
POLL_S = 2.0  # minimum time between two samples
MAX_VALUES = 1_000_000  # metric values in all samples; a job with thousands of subtasks is sampled less often
LEARN_S = 12.0  # maximum wait until Flink has fetched its metrics; longer than its cache lasts
MAX_LINE_LENGTH = 3500  # bytes of a request line; Flink's REST server accepts 4096 (netty's HttpServerCodec)
MAX_CHECKPOINTS = 30  # checkpoints of a history, the newest; each takes a request per vertex
MAX_SUBTASK_REQUESTS = (
    3000  # requests about subtasks at a time; of a job with a thousand vertices, three checkpoints are requested
)
MAX_MANAGERS = 50  # TaskManagers whose garbage collections are requested
MAX_WATCHED = 10  # TaskManagers whose CPU time is sampled
MAX_RESCALES = 10  # rescales whose scheduler states are requested, the newest
RESCALE_HISTORY = "web.adaptive-scheduler.rescale-history.size"
MAX_FAILED_REQUESTS = 3  # consecutive requests without an answer, after which the server counts as unreachable
PATIENCE_S = 600.0  # maximum time of all requests, without the sampling; a cluster may be slow

SamplingWatch = Callable[[float], None]  # called with the elapsed seconds of the window


def no_progress(_: float) -> None:
    """Ignore progress."""


def fetch(
    url: str,
    job: str | None = None,
    *,
    sample_s: float = 60,
    total_s: float | None = None,
    headers: Mapping[str, str] | None = None,
    watch: SamplingWatch = no_progress,
    answered: Callable[[int], None] = no_progress,
    client: Client | None = None,
    under_way: bool = False,
    seen: Collection[int] = (),
) -> RestSnapshot:
    """Fetch the snapshot of a job.  Failed requests are in its `missing`.

    `job` is an id or a prefix of it; if None, the only running job.  Metrics are sampled for `sample_s` seconds, or until
    the job ends.  `answered` is called with the number of answers so far.  With `under_way`, details of checkpoints in
    progress are included; details of the checkpoints in `seen` are not requested.  `total_s` limits the time of all
    requests, including sampling (default: ten minutes more than that).

    Raises `RestError` if there is no answer, the server is not Flink, or the job is ambiguous, and `NoJobError` if the
    list of jobs is not available.
    """
    client = client or Client(url, headers=headers, total_s=sample_s + PATIENCE_S if total_s is None else total_s)
    answers = _Answers(client, seen, answered)
    version_error = _version_error(answers)
    answers.job, state = _chosen_job(answers, job, version_error)
    with suppress(_NoMoreAnswers):
        answers.request_all(state, sample_s, watch)
        if under_way:
            answers.request_checkpoints(("IN_PROGRESS",))
    return answers.snapshot


class _NoMoreAnswers(Exception):
    """Further requests are pointless: time or memory is used up, or the server is unreachable."""


class NoJobError(RestError):
    """The list of jobs is not available; `snapshot` contains the answers about the cluster."""

    def __init__(self, error: RestError, snapshot: RestSnapshot) -> None:
        super().__init__(snapshot.source + JOBS, error.why, status=error.status)
        self.snapshot = snapshot


class _Answers:
    """Sends the requests about a job, and collects the answers and the failed requests."""

    def __init__(self, client: Client, seen: Collection[int], answered: Callable[[int], None]) -> None:
        self.client = client
        self.seen = seen
        self.answered = answered
        self.job = ""  # id; "" until it is chosen
        self.vertices: list[str] = []  # ids of its vertices
        self.by_path: dict[str, Any] = {}
        self.samples: dict[int, Mapping[str, Any]] = {}
        self.missing: dict[str, str] = {}
        self.in_vain = 0  # number of consecutive failed requests

    @property
    def about(self) -> str:
        """The path of the requests about the job."""
        return f"/jobs/{self.job}"

    @property
    def snapshot(self) -> RestSnapshot:
        """A snapshot of all answers so far."""
        return RestSnapshot(self.client.url, self.job, self.by_path, self.samples, self.missing)

    def required(self, path: str, *, attempts: int = ATTEMPTS) -> Any:
        """Send a request.  Raises `RestError` if it fails."""
        self._keep(path, self.client.get(path, attempts=attempts))
        return self.by_path[path]

    def _keep(self, path: str, answer: Any) -> None:
        self.by_path[path] = answer
        self.missing.pop(path, None)
        self.in_vain = 0

    def _each(self, questions: Sequence[tuple[str, str]]) -> Iterator[Any | RestError]:
        """Send many optional requests (request, name in the memory budget), and yield their answers.  Failures are counted."""
        with closing(answers_of(self.client, questions)) as answers:
            for (question, _), answer in zip(questions, answers, strict=False):
                if isinstance(answer, RestError):
                    self.count_failure(question.partition("?")[0], answer)
                else:
                    self.in_vain = 0
                yield answer
                self.answered(self.client.answered)

    def optional_each(self, paths: Sequence[str]) -> None:
        """Send many optional requests of one kind."""
        for answer, path in zip(self._each([(path, path) for path in paths]), paths, strict=True):
            if not isinstance(answer, RestError):
                self._keep(path, answer)

    def metrics_of_each(self, questions: Sequence[tuple[str, str]]) -> list[list[Any]]:
        """Return the answers to (request, name in the memory budget).  An answer is empty if the request failed."""
        return [answer if isinstance(answer, list) else [] for answer in self._each(questions)]

    def optional(self, path: str, *, is_in_every_version: bool = False) -> Any:
        """Send an optional request.  Returns None if it fails, for example because this Flink version does not have it."""
        try:
            return self.required(path)
        except RestError as error:
            self.count_failure(path, error, is_in_every_version=is_in_every_version)
            return None

    def count_failure(self, path: str, error: RestError, *, is_in_every_version: bool = False) -> None:
        """Count a failed request.  Raises `_NoMoreAnswers` if further requests are pointless."""
        if error.status == HTTPStatus.NOT_FOUND and not is_in_every_version:
            return
        if path not in self.by_path:
            self.missing[path] = error.why
        self.in_vain += 1
        if error.is_final or self.in_vain == MAX_FAILED_REQUESTS:
            raise _NoMoreAnswers

    def request_all(self, state: str, sample_s: float, watch: SamplingWatch) -> None:
        """Send all requests about a job, the most important first, and sample its metrics.

        Raises `_NoMoreAnswers` if further requests are pointless.  The answers so far are kept.
        """
        about, address = self.about, self.client.url + self.about
        job = self.optional(about, is_in_every_version=True)
        self.vertices = _vertices(job, address)
        for path in ("/plan", "/checkpoints", "/config", "/checkpoints/config", "/exceptions", "/jobmanager/config"):
            self.optional(about + path)
        for path in ("/jobmanager/config", "/taskmanagers"):
            self.optional(path)
        self._request_rescales()
        if job is None:
            plan = self.by_path.get(f"{about}/plan")
            nodes = rows_of(plan.get("plan") if isinstance(plan, dict) else None, "nodes")
            self.vertices = _vertices({"vertices": nodes}, f"{address}/plan")
        if sample_s > 0 and state not in TERMINAL and about in self.by_path:
            self._sample(sample_s, watch)
        self.optional_each([about, f"{about}/checkpoints", *(f"{about}/vertices/{vertex}" for vertex in self.vertices)])
        self.request_checkpoints()
        for manager in self._managers():
            self.optional(f"/taskmanagers/{manager}")

    def _request_rescales(self) -> None:
        """Request the completed rescales of the adaptive scheduler, if it keeps a history of them (off by default)."""
        configured = (self.by_path.get(f"{start}/jobmanager/config") for start in (self.about, ""))
        sizes = [
            row.get("value") for rows in configured for row in objects_in(rows) if row.get("key") == RESCALE_HISTORY
        ]
        if not {*sizes} - {"0"}:
            return
        history = objects_in(self.optional(f"{self.about}/rescales/history"))
        ids = [str(row.get("rescaleUuid")) for row in history if row.get("terminalState") == "COMPLETED"][:MAX_RESCALES]
        self.optional_each([path for name in ids if is_path(path := f"{self.about}/rescales/details/{name}")])

    def _managers(self) -> list[str]:
        """Return the ids of the TaskManagers on which the job runs, at most `MAX_MANAGERS`."""
        details = (self.by_path.get(f"{self.about}/vertices/{vertex}") for vertex in self.vertices)
        managers = (subtask.get("taskmanager-id") for answer in details for subtask in rows_of(answer, "subtasks"))
        ids = (name for name in managers if isinstance(name, str) and is_path(f"/taskmanagers/{name}"))
        return list(dict.fromkeys(ids))[:MAX_MANAGERS]

    def _sample(self, sample_s: float, watch: SamplingWatch) -> None:
        """Sample the metrics of all subtasks for `sample_s` seconds.  Also request new checkpoints, because Flink keeps few."""
        of_vertices = [f"{self.about}/vertices/{vertex}/metrics" for vertex in self.vertices]
        questions = [
            (path, question) for path, asking in self._questions(of_vertices, sample_s).items() for question in asking
        ]
        managers = rows_of(self.by_path.get("/taskmanagers"), "taskmanagers")
        paths = [path for row in managers if is_path(path := f"/taskmanagers/{row.get('id')}/metrics")][:MAX_WATCHED]
        begun = monotonic()
        while True:
            job = self.optional(self.about)
            now = _now_ms(job, self.samples)
            sample: dict[str, list[Any]] = {}
            self.samples[now] = sample
            requests = [*questions, *((path, f"{path}?get={CPU_TIME}") for path in paths)]
            metrics = self.metrics_of_each([(question, f"{now} {question}") for _, question in requests])
            for (path, _), values in zip(requests, metrics, strict=True):
                if values:
                    sample.setdefault(path, []).extend(values)
            self.optional(f"{self.about}/checkpoints")
            self.request_checkpoints()
            passed = monotonic() - begun
            watch(min(passed, sample_s))
            if passed >= sample_s or not isinstance(job, dict) or job.get("state") in TERMINAL:
                return
            every_s = max(POLL_S, sample_s * sum(map(len, sample.values())) / MAX_VALUES)
            self.client.pause(max(0.0, min(every_s, sample_s - passed)))

    def _questions(self, paths: Sequence[str], patience_s: float) -> dict[str, list[str]]:
        """Return the requests for the metrics of each vertex.

        Flink may not have fetched the names of the metrics yet.  Then it is asked again until `LEARN_S` has passed.
        """
        deadline = monotonic() + min(LEARN_S, patience_s)
        asking: dict[str, list[str]] = {path: [] for path in paths}
        while waiting := [path for path in paths if not asking[path]]:
            listed = self.metrics_of_each([(path, f"names of {path}") for path in waiting])
            asking |= {path: _short_questions(path, _names(names)) for path, names in zip(waiting, listed, strict=True)}
            if all(asking.values()) or monotonic() >= deadline:
                break
            self.client.pause(1.0)
        return asking

    def request_checkpoints(self, states: tuple[str, ...] = ("COMPLETED", "FAILED")) -> None:
        """Request the details of the new checkpoints in these states, with their subtasks."""
        history = rows_of(self.by_path.get(f"{self.about}/checkpoints"), "history")
        ids = {point.get("id") for point in history if point.get("status") in states}
        numbers = sorted(number for number in ids if isinstance(number, int) and 0 <= number <= MAX_CHECKPOINT_ID)
        for number in numbers[-min(MAX_CHECKPOINTS, MAX_SUBTASK_REQUESTS // max(1, len(self.vertices))) :]:
            path = f"{self.about}/checkpoints/details/{number}"
            if number in self.seen or path in self.by_path or (details := self.optional(path)) is None:
                continue
            tasks = details.get("tasks") if isinstance(details, dict) else None
            self.optional_each(
                [f"{path}/subtasks/{vertex}" for vertex in (tasks if isinstance(tasks, dict) else ()) if is_id(vertex)]
            )


def _version_error(answers: _Answers) -> RestError | None:
    """Request `/config`, which contains the version since Flink 1.0.  Returns the error if only this request fails.

    It gets few retries, so that a wrong address is reported soon.
    """
    try:
        config = answers.required("/config", attempts=2)
    except RestError as error:
        if error.is_final or error.status == HTTPStatus.NOT_FOUND or not (error.is_retryable or error.status):
            raise
        answers.missing["/config"] = error.why
        return error
    if not isinstance(config, dict) or "flink-version" not in config:
        raise RestError(
            f"{answers.client.url}/config", "answers, but names no version of Flink: is this Flink's REST address?"
        )
    return None


def _chosen_job(answers: _Answers, job: str | None, version_error: RestError | None) -> tuple[str, str]:
    """Return (id, state) of the job.  The state is "" if the list of jobs is not available.

    Raises `NoJobError` if the job cannot be chosen without that list, and `RestError` if no request has an answer.
    """
    try:
        overview = answers.required(JOBS, attempts=ATTEMPTS if version_error is None else 1)
    except RestError as error:
        if version_error is not None:  # no request has an answer
            raise version_error from None
        answers.missing[JOBS] = error.why
        overview = _overview(answers)
        if overview is None and is_id(job):
            return str(job), ""
        if overview is None:
            with suppress(_NoMoreAnswers):
                answers.optional("/jobmanager/config")
                answers.optional("/taskmanagers")
            raise NoJobError(error, answers.snapshot) from None
    return choose_job(overview, job, answers.client.url)


def _overview(answers: _Answers) -> Any:
    """Return a replacement for `/jobs/overview` from `/jobs`, which has fewer fields, or None if that request fails, too."""
    jobs = None
    with suppress(_NoMoreAnswers):
        jobs = answers.optional("/jobs")
    if not isinstance(jobs, dict) or not isinstance(jobs.get("jobs"), list):
        return None
    return {"jobs": [{"jid": job.get("id"), "state": job.get("status")} for job in rows_of(jobs, "jobs")]}


def choose_job(overview: Any, prefix: str | None, source: str) -> tuple[str, str]:
    """Return (id, state) of the job whose id begins with `prefix` or, if it is None, of the only running job.

    Raises `RestError` if there is no such job, or several.
    """
    jobs = [job for job in rows_of(overview, "jobs") if "jid" in job]
    if strange := [job["jid"] for job in jobs if not is_id(job["jid"])]:
        raise RestError(
            source, f"names a job {one_line(repr(strange[0]))}, which is not an id of Flink's: 32 hexadecimal digits"
        )
    if not jobs:
        raise RestError(source, "there is no job")
    running = [job for job in jobs if job.get("state") not in TERMINAL]
    if prefix is None and not running:
        raise RestError(source, f"no job is running; --job ID imports what is known of one that ended: {_named(jobs)}")
    chosen = running if prefix is None else [job for job in jobs if str(job["jid"]).startswith(prefix.lower())]
    if len(chosen) > 1:
        condition = "run" if prefix is None else f"begin with {one_line(prefix)!r}"
        raise RestError(source, f"several jobs {condition}, choose one with --job: {_named(chosen)}")
    if not chosen:
        others = f"running: {_named(running)}" if running else f"none is running: {_named(jobs)}"
        raise RestError(source, f"has no job {one_line(prefix or '')!r}; {others}")
    return str(chosen[0]["jid"]), str(chosen[0].get("state", ""))


def _named(jobs: list[dict[str, Any]]) -> str:
    return list_names(
        [f"{job['jid']} ({one_line(job.get('name', '?'), 40)}, {one_line(job.get('state', '?'), 20)})" for job in jobs]
    )


def _vertices(job: Any, source: str) -> list[str]:
    """Return the ids of the vertices of a job.  Raises `RestError` if an id is invalid, or if there are too many."""
    ids = [vertex["id"] for vertex in rows_of(job, "vertices") if "id" in vertex]
    if len(ids) > MAX_VERTICES:
        raise RestError(source, f"the job has {len(ids)} vertices; more than {MAX_VERTICES} are not read")
    if strange := [vertex for vertex in ids if not is_id(vertex)]:
        raise RestError(
            source, f"names a vertex {one_line(repr(strange[0]))}, which is not an id of Flink's: 32 hexadecimal digits"
        )
    return list(dict.fromkeys(ids))


def _now_ms(job: Any, samples: Mapping[int, Any]) -> int:
    """Return the time of a new sample [epoch ms] by the JobManager's clock, which is also that of checkpoints.

    It is always later than that of earlier samples.
    """
    now = job.get("now") if isinstance(job, dict) else None
    return max(now if isinstance(now, int) and 0 <= now < 2**53 else time_ns() // 10**6, max(samples, default=-1) + 1)


def _short_questions(path: str, names: Iterable[str]) -> list[str]:
    """Return the requests for these metrics.  Each is short enough for Flink's server."""
    asking: list[str] = []
    for name in names:
        if asking and len(asking[-1]) + len(name) + 1 < MAX_LINE_LENGTH:
            asking[-1] += f",{name}"
        else:
            asking.append(f"{path}?get={name}")
    return asking


def _names(listed: Any) -> list[str]:
    names = {str(metric.get("id")) for metric in objects_in(listed)}
    return sorted(
        quote(name, safe="") for name in names if len(name) < MAX_LINE_LENGTH // 2 and SAMPLED.fullmatch(name)
    )

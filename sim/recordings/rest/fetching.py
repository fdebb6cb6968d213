"""A live Flink REST API -> a snapshot of one job: what it is, how it checkpoints, and its metrics over a while.

Only asks and keeps; what the answers mean is read elsewhere.  A history server is asked the same, and has no metrics.

Flink caches: metrics are fetched from task managers at most every `metrics.fetcher.update-interval` (10 s), checkpoints every
`web.refresh-interval` (3 s).  So samples are taken more often than they change, and whoever reads them looks at the changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from time import monotonic, time_ns
from typing import Any

from sim.recordings.rest.client import Client, RestError
from sim.recordings.rest.snapshot import Snapshot

__all__ = ["METRICS", "TERMINAL", "Watch", "choose_job", "fetch", "nobody_watches"]

TERMINAL = frozenset({"FINISHED", "CANCELED", "FAILED"})  # JobStatus.isGloballyTerminalState
POLL_S = 2.0
MOST_VALUES = 1_000_000  # of metrics, all samples together: a job of thousands of subtasks is sampled less often
LEARN_S = 12.0  # the first question makes Flink fetch what metrics there are: longer than its cache lasts
LONGEST_LINE = 3500  # bytes of a request line; Flink's REST server takes 4096 (netty's HttpServerCodec)
MOST_CHECKPOINTS = 30  # of a history, the newest: each costs a request per vertex
SHOWN = 8  # jobs named in one message

METRICS = (
    "numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "numBuffersOut", "accumulateBusyTimeMs", "accumulateIdleTimeMs",
    "accumulateBackPressuredTimeMs", "busyTimeMsPerSecond", "idleTimeMsPerSecond", "backPressuredTimeMsPerSecond",
    "Shuffle.Netty.Input.Buffers.inputQueueLength", "Shuffle.Netty.Input.Buffers.inputQueueSize",
    "Shuffle.Netty.Output.Buffers.outputQueueLength", "Shuffle.Netty.Output.Buffers.outputQueueSize",
)  # fmt: skip
"""Of each subtask."""
_WANTED = re.compile(
    rf"\d+\.(?:{'|'.join(map(re.escape, METRICS))}|[^.]*Source[^.]*\.(?:numRecordsIn|numRecordsOut|pendingRecords))"
    r"|0\..*\.currentInput2Watermark",  # only where an operator has two inputs
)

Watch = Callable[[float], None]  # told the seconds of the window that have passed


def nobody_watches(_seconds: float) -> None:
    """Nobody wants to know."""


def fetch(
    url: str,
    job: str | None = None,
    *,
    sample_s: float = 60,
    headers: Mapping[str, str] | None = None,
    watch: Watch = nobody_watches,
    client: Client | None = None,
) -> Snapshot:
    """All about one job: `job` is its id, or the first characters of it; None: the only one that runs.

    Metrics are sampled for `sample_s` seconds (0: not at all).  A job that ends meanwhile ends the sampling.
    RestError: there is no answer, it is not Flink's, or it is not clear which job is meant.
    """
    client = client or Client(url, headers=headers)
    asked = _Asked(client)
    _is_flink(asked)
    state = choose_job(asked.need("/jobs/overview"), job, client.url)
    about = f"/jobs/{state[0]}"
    asked.need(about)
    asked.need(f"{about}/checkpoints")
    for path in ("/plan", "/config", "/checkpoints/config", "/exceptions", "/jobmanager/config"):
        asked.want(about + path)
    for path in ("/jobmanager/config", "/taskmanagers"):
        asked.want(path)
    vertices = _vertices(asked.answers[about])
    samples: dict[int, Mapping[str, Any]] = {}
    if sample_s > 0 and state[1] not in TERMINAL:
        samples = _sampled(asked, about, vertices, sample_s, watch)
    for path in (about, f"{about}/checkpoints", *(f"{about}/vertices/{vertex}" for vertex in vertices)):
        asked.want(path)
    _checkpoints(asked, about)
    return Snapshot(client.url, state[0], asked.answers, samples)


class _Asked:
    """The answers so far."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.answers: dict[str, Any] = {}

    def need(self, path: str) -> Any:
        self.answers[path] = self.client.get(path)
        return self.answers[path]

    def want(self, path: str) -> Any:
        """None if this version of Flink has no such thing, or has it no longer; what it said before stays."""
        try:
            return self.need(path)
        except RestError as error:
            if error.status in (0, 401, 403):
                raise
            return None


def _is_flink(asked: _Asked) -> None:
    """Its `/config` has named the version since 1.0; asked with few retries: a wrong address should be said at once."""
    config = asked.answers["/config"] = asked.client.get("/config", attempts=2)
    if not isinstance(config, dict) or "flink-version" not in config:
        raise RestError(f"{asked.client.url}/config: answers, but names no version of Flink: is this Flink's REST address?")


def choose_job(overview: Any, wanted: str | None, source: str) -> tuple[str, str]:
    """(id, state) of the job that is meant.  RestError: none, or several; they are named."""
    listed = overview.get("jobs") if isinstance(overview, dict) else None
    jobs = [job for job in listed if isinstance(job, dict) and job.get("jid")] if isinstance(listed, list) else []
    if not jobs:
        raise RestError(f"{source}: there is no job")
    running = [job for job in jobs if job.get("state") not in TERMINAL]
    if wanted is None and not running:
        raise RestError(f"{source}: no job is running; --job ID imports what is known of one that ended: {_named(jobs)}")
    meant = running if wanted is None else [job for job in jobs if str(job["jid"]).startswith(wanted.lower())]
    if len(meant) > 1:
        what = "run" if wanted is None else f"begin with {wanted!r}"
        raise RestError(f"{source}: several jobs {what}, choose one with --job: {_named(meant)}")
    if not meant:
        others = f"running: {_named(running)}" if running else f"none is running: {_named(jobs)}"
        raise RestError(f"{source}: has no job {wanted!r}; {others}")
    return str(meant[0]["jid"]), str(meant[0].get("state", ""))


def _named(jobs: list[dict[str, Any]]) -> str:
    shown = [f"{job['jid']} ({job.get('name', '?')}, {job.get('state', '?')})" for job in jobs[:SHOWN]]
    return ", ".join(shown) + (f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else "")


def _vertices(job: Any) -> list[str]:
    listed = job.get("vertices") if isinstance(job, dict) else None
    return [str(vertex["id"]) for vertex in listed if isinstance(vertex, dict) and "id" in vertex] if isinstance(listed, list) else []


def _sampled(asked: _Asked, about: str, vertices: list[str], sample_s: float, watch: Watch) -> dict[int, Mapping[str, Any]]:
    """Metrics of all subtasks, over and over; and the checkpoints that happen meanwhile: their history is short."""
    questions = {vertex: _questions(asked, f"{about}/vertices/{vertex}/metrics", sample_s) for vertex in vertices}
    samples: dict[int, Mapping[str, Any]] = {}
    begun = monotonic()
    while True:
        job = asked.want(about)
        now = _now_ms(job, samples)
        sample = {
            f"{about}/vertices/{vertex}/metrics": [value for question in asking for value in _values(asked, question)]
            for vertex, asking in questions.items()
        }
        samples[now] = {path: values for path, values in sample.items() if values}
        asked.want(f"{about}/checkpoints")
        _checkpoints(asked, about)
        passed = monotonic() - begun
        watch(min(passed, sample_s))
        if passed >= sample_s or not isinstance(job, dict) or job.get("state") in TERMINAL:
            return samples
        every_s = max(POLL_S, sample_s * sum(map(len, sample.values())) / MOST_VALUES)
        asked.client.pause(max(0.0, min(every_s, sample_s - passed)))


def _now_ms(job: Any, samples: Mapping[int, Any]) -> int:
    """By the clock of the JobManager, which dates checkpoints, too; always later than the last sample."""
    now = job.get("now") if isinstance(job, dict) else None
    return max(now if isinstance(now, int) and 0 <= now < 2**53 else time_ns() // 10**6, max(samples, default=-1) + 1)


def _questions(asked: _Asked, path: str, patience_s: float) -> list[str]:
    """Requests for all wanted metrics of a vertex, each short enough."""
    deadline = monotonic() + min(LEARN_S, patience_s)
    while not (names := _names(asked.client.get(path))) and monotonic() < deadline:
        asked.client.pause(1.0)
    asking: list[str] = []
    for name in names:
        if asking and len(asking[-1]) + len(name) + 1 < LONGEST_LINE:
            asking[-1] += f",{name}"
        else:
            asking.append(f"{path}?get={name}")
    return asking


def _values(asked: _Asked, question: str) -> list[Any]:
    """None of a vertex that is gone: the job ended, or was restarted with other parts."""
    try:
        return _list(asked.client.get(question))
    except RestError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return []


def _names(listed: Any) -> list[str]:
    names = (str(metric.get("id")) for metric in _list(listed) if isinstance(metric, dict))
    return sorted(name for name in names if _WANTED.fullmatch(name))


def _checkpoints(asked: _Asked, about: str) -> None:
    """Details of every checkpoint of the history that is over and not known yet, down to the subtasks."""
    overview = asked.answers.get(f"{about}/checkpoints")
    history = overview.get("history") if isinstance(overview, dict) else None
    for number in _over(_list(history))[-MOST_CHECKPOINTS:]:
        path = f"{about}/checkpoints/details/{number}"
        if path in asked.answers or (details := asked.want(path)) is None:
            continue
        tasks = details.get("tasks") if isinstance(details, dict) else None
        for vertex in tasks if isinstance(tasks, dict) else ():
            asked.want(f"{path}/subtasks/{vertex}")


def _over(history: Iterable[Any]) -> list[int]:
    """Ids of the checkpoints that are no longer in progress, oldest first."""
    return sorted(
        point["id"]
        for point in history
        if isinstance(point, dict) and isinstance(point.get("id"), int) and point.get("status") in ("COMPLETED", "FAILED")
    )


def _list(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else []

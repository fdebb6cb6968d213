"""Read a source that describes a real job (REST answers, archive, log, recording), and return its recorded job and scenario."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import Field, InstanceOf

from sim.jobs.infer.file_history import seconds_between
from sim.jobs.infer.log import infer_log
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.job_log import JobLog, event_lines, read_logs
from sim.jobs.source.recorded_job import (
    ConfiguredJob,
    ImportedScenario,
    RecordedCheckpoint,
    RecordedJob,
    RecordingError,
    open_uncompressed,
    parse,
    refuse_special,
)
from sim.jobs.source.rest_answers import HOW_TO_SAVE, RestSnapshot, parsed
from sim.jobs.source.rest_job import RestJob, RestVertex, Series
from sim.jobs.source.saved import is_archive, is_saved, read_archive, read_lone_answer, read_saved
from sim.model.schema.flink_file import IS_CONFIGURATION, is_configuration
from sim.model.schema.text import Reading, compose
from sim.model.series.monitoring import MonitoringError, table_of_document
from sim.model.text import one_line
from sim.model.units import format_duration

# ---- Read a file or folder.  Its kind is detected from the content, not from the name.
#
# The kinds are: saved answers of the REST API (folder or ZIP), an archive of a history server, logs of a JobManager.

RecordingSource = ConfiguredJob | RestSnapshot | JobLog

FORMATS: dict[str, Callable[[Any, Path], ConfiguredJob]] = {}
"""Readers of further JSON formats, by the value of the field `format`.  `benchmarks.lab` adds its own."""


def read_source(paths: Sequence[Path], job: str | None = None) -> RecordingSource:
    """Read a source.

    Args:
        paths: A file or folder, or the parts of one log.
        job: Id of the job, or the beginning of it; required if the source has several jobs.

    Raises:
        RecordingError: The kind is unknown, the content is damaged, or it is a single REST answer.
    """
    for path in paths:
        refuse_special(path)
    if len(paths) > 1:
        return read_logs(paths, job)
    try:
        return _read_one(paths[0], job)
    except RecordingError:
        if (lone := read_lone_answer(paths[0])) is None:
            if kind := other_kind(paths[0]):
                raise RecordingError(f"{paths[0]}: {kind}") from None
            raise
    raise RecordingError(
        f"{lone.name}: is one answer of Flink, to {lone.path}: `ckptsim explain` says what it tells; a scenario needs the graph and the "
        "counters of the job as well, which `ckptsim import http://HOST:8081 --save FOLDER` asks for"
    )


def _read_one(path: Path, job: str | None) -> RecordingSource:
    """Read a source from one path.  Raises `RecordingError`."""
    if logs := logs_in(path):
        return read_logs(logs, job)
    if is_saved(path):
        return read_saved(path, job)
    if _begins_like_text(path):
        return read_logs([path], job)
    try:
        document = parse(path)
    except RecordingError as damaged:
        try:
            return read_logs([path], job)  # the lines of a log may be JSON, too
        except RecordingError:
            raise damaged from None
    if is_archive(document):
        return read_archive(document, path, job)
    if not isinstance(document, dict) or "format" not in document:
        if lines := list(event_lines(document)):
            return read_logs([path], job, lines)
        raise RecordingError(
            f"{path}: is JSON, but neither a recording nor saved responses of a Flink job; {_WHAT_EXPLAIN_READS}"
        )
    if (reader := FORMATS.get(str(document["format"]))) is None:
        raise RecordingError(
            f"{path}: has the format {one_line(repr(document['format']), 60)}, which ckptsim does not read: expected saved REST answers, "
            "an archive of a history server or a JobManager's log (for recordings of this project: python -m benchmarks.lab)"
        )
    return reader(document, path)


def other_kind(path: Path) -> str:
    """Return what a file or folder is that is not a source, and which command reads it, or "" if it is not recognized."""
    if path.is_dir():
        if answers := answers_next_to(path):
            name, request = next(iter(answers.items()))
            return f"{name} in it is the answer to {request}, and would have to be called {request[1:]}.json; {HOW_TO_SAVE}"
        is_kept = any((path / name).is_file() for name in ("comparison.json", "manifest.json"))
        return (
            "is a folder of results of `ckptsim run`: `ckptsim explain` and `ckptsim report` read it" if is_kept else ""
        )
    with open_uncompressed(path) as file:
        text = file.read(_LARGEST_TEXT).decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        return "is a page, not an answer of Flink: a proxy's sign-in? `--header 'NAME: VALUE'` sends what it asks for"
    with suppress(ValueError, RecursionError):
        match json.loads(text):
            case {"errors": [str(error), *_]}:
                return f"is an error of Flink's REST API: {one_line(error.partition(chr(10))[0], 200)}"
            case {"status": {"id": str()}, "operation": dict(operation)}:
                root = re.search(
                    r".*\b(\w+(?:Exception|Error): [^\\\n]+)", str(operation.get("failure-cause")), re.DOTALL
                )
                failed = f", which failed: {one_line(root[1], 200)}" if root else ""
                return f"is the answer to a savepoint that was asked for{failed}; {_WHAT_EXPLAIN_READS}"
            case [{"key": str(), "value": str()}, *_]:
                return f"is the answer to /jobmanager/config, which tells nothing of a job; {_WHAT_EXPLAIN_READS}"
    try:
        is_monitoring = table_of_document(text) is not None
    except MonitoringError:  # its metrics are not rates
        is_monitoring = True
    if is_monitoring:
        return (
            "has metrics of a monitoring system, no answers of Flink's REST API: `ckptsim traces read` takes rates of records "
            "from an answer of Prometheus; "
            "sizes and durations of checkpoints are in the answer to /jobs/JOB/checkpoints, which `ckptsim explain` reads"
        )
    if is_scenario(text):
        return (
            "is a scenario, not a source of one: `ckptsim run` simulates it, `ckptsim explain` explains its checkpoints"
        )
    return IS_CONFIGURATION if is_configuration(_mapping(text)) else ""


_WHAT_EXPLAIN_READS = "`ckptsim explain` reads the answer to /jobs/JOB/checkpoints"
_LARGEST_TEXT, _LARGEST_MAPPING = 20_000_000, 1_000_000


def is_scenario(text: str) -> bool:
    """Return whether a text is a scenario file."""
    return {"job", "checkpoint"} <= set(_mapping(text))


def _mapping(text: str) -> Mapping[str, Any]:
    """Return the mapping in a YAML text.

    It is empty if the text is not YAML, or larger than any scenario or configuration.
    """
    plain = None if len(text) > _LARGEST_MAPPING or text.lstrip()[:1] in ("{", "[", "<") else compose(text, Reading(""))
    return plain if isinstance(plain, dict) else {}


def answers_next_to(folder: Path) -> dict[str, str]:
    """Return file name -> request of the REST answers in a folder that do not have the file names that are expected."""
    requests = {}
    for file in [] if (folder / "jobs").is_dir() else sorted(folder.glob("*.json"))[:_MAX_ANSWERS]:
        with suppress(RecordingError):
            if (lone := read_lone_answer(file)) is not None:
                requests[file.name] = lone.path
    return requests


_MAX_ANSWERS = 20


def read_any(path: str | Path) -> RecordedJob:
    """Read a source of any kind, and return its recorded job.  Raises `RecordingError`."""
    path = Path(path)
    return recorded_job(read_source([path]), path.name.removesuffix(".zip") or str(path))


def recorded_job(source: RecordingSource, name: str = "") -> RecordedJob:
    """Return the recorded job of a source, with its checkpoints and metrics.

    `name` replaces the name in REST answers and logs.  A recording with its configuration keeps its own name.
    """
    match source:
        case ConfiguredJob():
            return source
        case RestSnapshot():
            return to_recording(source, name)
        case JobLog():
            return to_log_recording(source, name)


def logs_in(path: Path) -> list[Path]:
    """Return the log files in a folder, or an empty list if it contains JSON files or is not a folder."""
    if not path.is_dir() or any(path.rglob("*.json")):
        return []
    return [
        file
        for file in sorted(path.iterdir())
        if ".log" in file.name and file.is_file() and not file.name.startswith(".")
    ]


def _begins_like_text(path: Path) -> bool:
    """Return whether a file is text that is not JSON, judged by its first 200 bytes."""
    try:
        with open_uncompressed(path) as file:
            start = file.read(200).lstrip()
    except RecordingError:
        return False  # a later reader reports the error
    plain = (
        all(byte >= 32 or byte in b"\t\r\n\x1b" for byte in start)
        and "\ufffd" not in start.decode(errors="replace")[:-1]
    )
    return bool(start) and start[:1] not in b"{[" and plain


# ---- Measured jobs, from REST answers or a log: their observations, and the scenario inferred from them.
#
# The scenario is inferred from the same measurements that it is compared with, so agreement only shows that the model
# reproduces the job that it was inferred from.  Only the graph of the program is known.  A log has neither that, nor
# subtasks and metrics.


class Measured(RecordedJob):
    """A job whose configuration is inferred from measurements."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    duration_s: Annotated[float, Field(gt=0, le=1e7)]  # length of the observation
    graph: InstanceOf[tuple[RestVertex, ...]] = ()  # with names as ids, in topological order; empty if unknown
    series: InstanceOf[Mapping[str, Series]] = Field(default_factory=dict)
    source: InstanceOf[RestJob] | InstanceOf[JobLog]

    @property
    def vertices(self) -> Sequence[RestVertex]:
        return self.graph

    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        if vertex not in self.series:
            return pd.DataFrame()
        times_ms, values = self.series[vertex]
        samples = values.get(name, values.get(f"Shuffle.Netty.{name}"))
        return pd.DataFrame(samples, times_ms if samples is not None else None)


def to_log_recording(log: JobLog, name: str = "") -> Measured:
    """Return the recorded job of a log.  Durations in logs include the time to write the metadata."""
    points = log.recorded
    lines_ms = [log.running_ms, *(point.line_ms for point in log.checkpoints.values() if point.line_ms >= 0)]
    fields = {
        "name": (name or log.job)[:200],
        "flink_version": log.version,
        "duration_s": _covered_s(points),
        "failures": log.failures,
        "ran_ms": max(log.ended_ms - min(lines_ms), 0)
        if log.running_ms >= 0
        else 0,  # a log may begin later than its job
        "source": log,
        "checkpoints": {"list": points},
    }
    return parsed(Measured, fields, log.source, "the checkpoints of the log")


def to_recording(snapshot: RestSnapshot, name: str = "") -> Measured:
    """Return the recorded job of a snapshot.  `name` defaults to the name of the job.

    Raises `RecordingError` if the answers contradict each other.
    """
    job = RestJob(snapshot)
    ended = [point for point in job.checkpoints if point.end_to_end_duration >= 0]
    fields = {
        "name": (name or job.job.name or job.job.jid)[:200],
        "flink_version": job.flink_version,
        "duration_s": _covered_s(ended, snapshot.samples, job.job.duration),
        "failures": len(job.failures_ms),
        "ran_ms": max(job.job.now - _start_ms(job), 0),
        "graph": tuple(replace(vertex, id=vertex.name) for vertex in job.vertices),
        "checkpoints": {"list": job.checkpoints},
        "series": job.series,
        "source": job,
    }
    return parsed(Measured, fields, snapshot.source, "the job")


def _covered_s(points: Sequence[RecordedCheckpoint], samples_ms: Iterable[int] = (), unknown_ms: int = 0) -> float:
    """Return the length of the observed period [s]: from the first checkpoint or sample to the last.

    `unknown_ms` is the length without any.
    """
    times_ms = [*samples_ms, *(point.trigger_timestamp for point in points)]
    times_ms += [point.trigger_timestamp + max(point.end_to_end_duration, 0) for point in points]
    return max((max(times_ms) - min(times_ms) if times_ms else unknown_ms) / 1000, 1)


MAX_EXCEPTION_HISTORY = 16
"""Default of web.exception-history-size.  If the job has failed more often, the first failures are unknown."""


def _start_ms(job: RestJob) -> int:
    """Return the time from which on all failures of the job are known [epoch ms]."""
    failures = job.failures_ms
    return failures[0] if len(failures) >= MAX_EXCEPTION_HISTORY else max(job.job.start_time, 0)


# ---- The scenario of a source: from the configuration of a recording, or inferred from measurements.


def infer(source: RestSnapshot | RestJob | JobLog) -> ImportedScenario:
    """Infer the scenario of a source from its measurements."""
    return infer_log(source) if isinstance(source, JobLog) else infer_scenario(source)


def to_document(recording: RecordedJob) -> ImportedScenario:
    """Return the scenario of a recorded job: its configuration or, if that is unknown, the inferred scenario.

    The latter has a run of the length of the history, and no comments at its values.
    """
    match recording:
        case ConfiguredJob():
            return recording.to_document()
        case Measured():
            run = {"duration": format_duration(round(_known_s(recording)) * 10**9)}
            inference = infer(recording.source)
            return replace(inference, document=inference.document | {"run": run}, comments={"": inference.comments[""]})
        case _:
            raise TypeError(f"no scenario is made of a {type(recording).__name__}")


def _known_s(job: Measured) -> float:
    """Return the time that the history of a job covers [s], at most until the trigger after the last listed checkpoint."""
    if len(points := job.triggered) < 2:
        return job.duration_s
    listed_s = (points[-1].trigger_timestamp - points[0].trigger_timestamp) / 1000
    return min(job.duration_s, listed_s + seconds_between(points))

"""JobManager logs -> the history of a job's checkpoints, its vertices and its configuration.

Messages of 1.9 to 2.3 are known (CheckpointCoordinator, CheckpointFailureManager, ExecutionGraph, GlobalConfiguration), in any layout.
Trigger times are epoch milliseconds in the message itself.  Other times are those of the lines; only their differences count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sim.recordings.source.files import RecordingError, opened
from sim.recordings.source.rest.secrets import masked_text
from sim.recordings.source.rest.snapshot import first_names

LONGEST_LINE = 20_000
DAY_MS = 86_400_000
LARGEST = 10**15  # limit of any count: bytes, ms since 1970
_JOB = r"(?P<job>[0-9a-f]{32})"
_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d:\d\d)[.,](\d{3})")
_PATTERNS: dict[str, re.Pattern[str]] = {
    "triggered": re.compile(rf"Triggering checkpoint (?P<id>\d+) (?:\(type=(?P<type>.+?)\) )?@ (?P<at>\d+) for job {_JOB}"),
    "completed": re.compile(
        rf"Completed checkpoint (?P<id>\d+) for job {_JOB} \((?P<size>\d+) bytes"
        r"(?:, checkpointDuration=(?P<ms>\d+) ms, finalizationTime=(?P<final>-?\d+) ms| in (?P<old>\d+) ms)\)",
    ),
    "expired": re.compile(rf"Checkpoint (?P<id>\d+) of job {_JOB} expired before completing"),
    "declined": re.compile(rf"Decline checkpoint (?P<id>\d+) by task \S+ of job {_JOB}"),
    "discarded": re.compile(rf"Discarding checkpoint (?P<id>\d+) of job {_JOB}(?: because: (?P<why>.*))?"),
    "failed": re.compile(rf"(?:Failed to trigger or complete|Failed to trigger) checkpoint (?P<id>\d+) for job {_JOB}"),
    "refused": re.compile(rf"Failed to trigger checkpoint for job {_JOB} (?:since|because) (?P<why>.*)"),
    "restored": re.compile(rf"Restoring job {_JOB} from "),
}
_TASK = re.compile(r" - (?P<name>.+) \((?P<index>\d+)/(?P<of>\d+)\) \([0-9a-f_]+\) switched from CREATED to SCHEDULED")
_OPTION = re.compile(r"Loading configuration property: (?P<key>[\w.-]+), (?P<value>.*)")
_VERSION = re.compile(r"(?:Starting .*\(Version: |Flink Version: )(?P<version>\d+\.\d+[\w.-]*)")


@dataclass(slots=True)
class LogCheckpoint:
    """A checkpoint in a log.  -1: the log does not tell."""

    id: int
    triggered_ms: int = -1  # epoch
    line_ms: int = -1  # of the trigger's line
    is_savepoint: bool = False
    status: str = "IN_PROGRESS"
    size_bytes: int = -1
    duration_ms: int = -1  # trigger -> metadata written; failed: -> failure
    reason: str = ""  # why it failed


@dataclass(slots=True)
class JobLog:
    """The content of logs about a job."""

    source: str
    job: str
    checkpoints: dict[int, LogCheckpoint] = field(default_factory=dict)
    refused: int = 0  # triggers that got no id
    restored: int = 0
    vertices: dict[str, int] = field(default_factory=dict)  # name -> scheduled parallelism; empty if there are several jobs
    options: dict[str, str] = field(default_factory=dict)  # of the cluster
    version: str = ""


def read_logs(paths: Sequence[Path], job: str | None = None) -> JobLog:
    """Read one log, or the parts of a rotated log in any order.  RecordingError: no checkpoint lines, or several jobs and none chosen."""
    found = read_jobs(paths)
    prefix = job.lower() if job else ""
    chosen = [log for name, log in found.items() if name.startswith(prefix)]
    if len(chosen) != 1:
        what = "has several jobs, choose one with --job" if chosen else f"has no job {job!r}"
        raise RecordingError(f"{_named(paths)}: {what}: {first_names(list(found))}")
    return chosen[0]


def read_jobs(paths: Sequence[Path]) -> dict[str, JobLog]:
    """Job id -> log, for all jobs with checkpoints.  RecordingError: there are none."""
    source = _named(paths)
    jobs: dict[str, JobLog] = {}
    shared = JobLog(source, "")
    for path in paths:
        clock = _Clock()
        for line in _lines(path):
            _read(line, clock, jobs, shared, source)
    found = {name: log for name, log in jobs.items() if log.checkpoints}
    if not found:
        raise RecordingError(
            f"{source}: no lines of checkpoints ('Triggering checkpoint', 'Completed checkpoint'): is it a JobManager's log, at level INFO?"
        )
    for log in found.values():
        log.options, log.version = shared.options, shared.version
        log.vertices = shared.vertices if len(jobs) == 1 else {}
    return found


def _named(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


class _Clock:
    """The time of a file's lines [ms]; only differences count.  A log without dates wraps at midnight."""

    def __init__(self) -> None:
        self.day = 0
        self.last = -1

    def read(self, line: str) -> int:
        match = _TIME.search(line, 0, 200)
        if match is None:
            return -1
        date, clock, millis = match.groups()
        try:
            day = datetime.fromisoformat(f"{date or '1970-01-02'}T{clock}+00:00")
        except ValueError:
            return -1
        now = int(day.timestamp()) * 1000 + int(millis)
        if date is None and now + self.day < self.last - DAY_MS // 2:
            self.day += DAY_MS
        self.last = now + (self.day if date is None else 0)
        return self.last


def _read(line: str, clock: _Clock, jobs: dict[str, JobLog], shared: JobLog, source: str) -> None:
    if "heckpoint" in line or "Restoring job" in line:
        for kind, pattern in _PATTERNS.items():
            if match := pattern.search(line):
                log = jobs.setdefault(match["job"], JobLog(source, match["job"]))
                _note(kind, match.groupdict(), clock.read(line), log)
                return
    if (match := _TASK.search(line)) and len(shared.vertices) < 1000:
        shared.vertices[masked_text(match["name"])] = min(max(int(match["of"]), 1), 32768)
    elif match := _OPTION.search(line):
        shared.options[match["key"]] = match["value"].strip().strip("'\"")
    elif match := _VERSION.search(line):
        shared.version = match["version"]


def _note(kind: str, fields: dict[str, str | None], line_ms: int, log: JobLog) -> None:
    if kind == "refused":
        log.refused += 1
        return
    if kind == "restored":
        log.restored += 1
        return
    number = int(fields["id"] or 0)
    if max(number, int(fields.get("size") or 0), int(fields.get("ms") or fields.get("old") or 0), int(fields.get("at") or 0)) > LARGEST:
        return  # no coordinator writes such numbers
    point = log.checkpoints.setdefault(number, LogCheckpoint(number))
    match kind:
        case "triggered":
            point.triggered_ms, point.line_ms = int(fields["at"] or 0), line_ms
            point.is_savepoint = "savepoint" in (fields["type"] or "").lower()
        case "completed":
            point.status, point.size_bytes = "COMPLETED", int(fields["size"] or 0)
            point.duration_ms = int(fields["ms"] or fields["old"] or 0)
        case _ if point.status == "IN_PROGRESS":  # several lines report one failure, the first of them at once
            point.status, point.reason = "FAILED", masked_text(fields.get("why") or kind)[:200]
            point.duration_ms = max(line_ms - point.line_ms, 0) if line_ms >= 0 and point.line_ms >= 0 else -1


def _lines(path: Path) -> Iterator[str]:
    with opened(path) as file:
        while line := file.readline(LONGEST_LINE):
            yield line.decode("utf-8", "replace")

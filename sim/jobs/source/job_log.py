"""Read JobManager logs: the checkpoints of a job, its failures, and whether it has stopped completing checkpoints."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordingError, open_uncompressed
from sim.jobs.source.rest_answers import choose, list_names, parsed
from sim.model.schema.flink_keys import with_current_names
from sim.model.text import masked_text, one_line
from sim.model.units import MS
from sim.results.formats import ms_text

# ---- Read logs of a JobManager: the checkpoints of a job, its vertices, its failures and its configuration.
#
# The messages of Flink 1.12 to 2.3 are recognized (CheckpointCoordinator, CheckpointFailureManager, ExecutionGraph,
# GlobalConfiguration), in any log layout.  Trigger times are epoch milliseconds in the messages.  Other times are those of
# the lines, whose time zone is unknown, so only their differences are used.

MAX_LINE_LENGTH = 20_000
DAY_MS = 86_400_000
LARGEST = 10**15  # maximum of any number in a message: bytes, ms since 1970
LAST_MS = 253_402_300_799_999  # the end of the year 9999
MAX_NAMES = 1000  # maximum number of tasks, and of TaskManagers, that are stored
_JOB = r"(?P<job>[0-9a-f]{32})"
_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d:\d\d)[.,](\d{3})")
_SECONDS = re.compile(r"[\W\d]{0,20}?(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d:\d\d)()\b")
"""The time of a line whose layout has no milliseconds, e.g. ``[11.06.2024 01:59:40] INFO``."""
_PATTERNS: dict[str, re.Pattern[str]] = {
    "triggered": re.compile(
        rf"Triggering checkpoint (?P<id>\d+) (?:\(type=(?P<type>.+?)\) )?@ (?P<at>\d+) for job {_JOB}"
    ),
    "requested": re.compile(rf"Triggering a manual checkpoint for job {_JOB}"),
    "completed": re.compile(
        rf"Completed checkpoint (?P<id>\d+) for job {_JOB} \((?P<size>\d+) bytes"
        r"(?:, checkpointDuration=(?P<ms>\d+) ms, finalizationTime=(?P<final>-?\d+) ms| in (?P<old>\d+) ms)\)",
    ),
    "expired": re.compile(rf"Checkpoint (?P<id>\d+) of job {_JOB} expired before completing"),
    "declined": re.compile(
        rf"Decline checkpoint (?P<id>\d+) by task (?P<attempt>\S+) of job {_JOB}"
        r"(?: at (?P<where>[^\s.]+(?:\.[^\s.]+)*))?"
    ),
    "discarded": re.compile(rf"Discarding checkpoint (?P<id>\d+) of job {_JOB}(?: because: (?P<why>.*))?"),
    "failed": re.compile(
        rf"Failed to trigger (?:or complete )?checkpoint (?P<id>\d+) for job {_JOB}(?: (?:since|because):? (?P<why>.*))?"
    ),
    "refused": re.compile(
        rf"Failed to trigger (?:or complete )?checkpoint (?:UNKNOWN_CHECKPOINT_ID )?for job {_JOB}(?: (?:since|because):? (?P<why>.*))?"
    ),
    "aborted": re.compile(rf"(?P<why>Checkpoint (?:triggering|acknowledging) task .+? of job {_JOB} is not .+)"),
    "late": re.compile(
        rf"Received late message for now expired checkpoint attempt (?P<id>\d+) from task (?P<task>\S+) of job {_JOB}"
        r"(?: at (?P<where>[^\s.]+(?:\.[^\s.]+)*))?"
    ),
    "restored": re.compile(
        rf"Restoring job {_JOB} from (?:latest valid checkpoint: )?(?:(?:[A-Z]\w* )+(?P<id>\d+)(?: @ (?P<at>\d+))?)?"
    ),
    "strategy": re.compile(rf"Using restart back off time strategy (?P<strategy>\w+(?:\(.*\))?) for .* \({_JOB}\)"),
}
_EXCEPTION = re.compile(r"Checkpoint(?:Decline\w+)?Exception: (?P<why>.*)")
"""The line that follows a failure, since Flink 1.13."""
_CAUSE = re.compile(
    r"^\s*Caused by: (?:[\w.$]+SerializedThrowable: )?(?:(?:[\w$]+\.)*(?=[\w$]+(?:: |\s*$)))?(?P<why>\S.*)"
)
"""A line of a stack trace: a class without its package, and its message, or the message alone, as SerializedThrowable has it.

The last such line is the root cause.
"""
_PENDING = re.compile(
    r"Could not (?:complete|finalize) the pending checkpoint (?P<id>\d+)\. (?P<why>Failure reason: .*)"
)
"""An exception of the JobManager, which does not name the job."""
_OPERATOR = re.compile(
    r"Could not (?:materialize checkpoint|complete snapshot|perform checkpoint) \d+ for operator (?P<task>.+? \(\d+/\d+\))"
)
"""An exception of a task that declines a checkpoint, e.g. ``... for operator agg -> map (2/12)#0.``."""
NOT_RUNNING = "Not all required tasks are currently running"
_NOT_RUNNING = re.compile(r"Checkpoint (?:triggering|acknowledging) task (?P<task>.+?) of job [0-9a-f]{32} is not ")
_ENDED_TASKS = re.compile(r"(?i)some tasks of (?:the )?job.* finished|but FINISHED instead")
"""Messages for a declined trigger because tasks have finished, before Flink 1.15."""
FINISHED = "tasks have finished, and checkpoints after that are not enabled"
_NOT_COUNTED = re.compile(
    r"subsumed|Coordinator (?:is suspending|shutdown)|scheduler is shut down|Region is restarting|declined (?:\(|because one input)"
    r"|newer checkpoint was received|received cancellation|sharing the ChannelState|Task has failed|Trigger checkpoint failure|job switched to"
)
"""Reasons that CheckpointFailureManager ignores."""
_REASON = re.compile(r"Failure reason: (?P<reason>.+)")
_TASK_FAILED = "Task has failed"
_TOLERANCE = "Exceeded checkpoint tolerable failure threshold"
_NO_CHECKPOINT = "No checkpoint found to restore"
_STATE = re.compile(rf"Job (?P<name>.+) \({_JOB}\) switched from state (?P<before>\w+) to (?P<state>\w+)")
ENDED = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED")
_LOST = re.compile(r"TaskManager with id (?P<id>\S+) (?:timed out|is no longer reachable)")
_TERMINATED = re.compile(
    r"Worker (?P<id>\S+) is terminated\. Diagnostics: (?P<why>.+)"
    r"|Disconnect TaskExecutor (?P<other>\S+) because: (?P<fatal>.+ fatal error)"
)
_LEADERSHIP = (
    "The JobManager lost its leadership, and the job restarted for that: no task and no checkpoint failed. Look at what kept it from "
    "renewing its lease (the API server or ZooKeeper, high-availability.zookeeper.client.tolerate-suspended-connections, a pause of the "
    "garbage collector)."
)
_NOTABLE = (
    (
        "OversizedPayload",
        re.compile(r"OversizedPayloadException: .*max allowed size (\d+)"),
        (
            "Messages were dropped that are larger than pekko.framesize (akka.framesize before 1.18), here {}b. A checkpoint whose "
            "acknowledgement is dropped expires, however long its timeout. Set a larger framesize, or keep less state inside of "
            "acknowledgements (state.storage.fs.memory-threshold, operator state)."
        ),
    ),
    (
        "exit gracefully",
        re.compile(r"- Task did not exit gracefully within (\d+)"),
        (
            "A task did not stop within task.cancellation.timeout ({} s), for which Flink ends its TaskManager: the restart waited "
            "for that. Look at what the task was doing then (its stack trace is in the log of its TaskManager)."
        ),
    ),
    (" leadership", re.compile("((?:was revoked|lost) leadership)"), _LEADERSHIP),
    ("to ZooKeeper suspended", re.compile("(Connection to ZooKeeper suspended)"), _LEADERSHIP),
)
"""Lines that explain failed checkpoints or a downtime: (words that are quick to find, pattern, sentence with the group of the pattern)."""
_TASK = re.compile(
    r" - (?P<name>.+) (?P<place>\(\d+/(?P<of>\d+)\)) \((?P<attempt>[0-9a-f_]+)\) switched from CREATED to SCHEDULED"
)
_FAILED_TASK = re.compile(
    r" - (?P<name>.+ \(\d+/\d+\)) (?:- execution #\d+ )?\([0-9a-f_#]+\) switched from \w+ to FAILED"
)
_ATTEMPT = re.compile(r"^(?:.*_)?([0-9a-f]+)_(\d+)_\d+$")
"""Execution attempt id since Flink 1.15: vertex and subtask index."""
_PACKAGE = re.compile(r"^(?:[\w$]+\.)+(?=[\w$]+)")
_COMPOSE = re.compile(r"^[\w.-]+ +\| ")  # container of docker compose, before each line
_OPTION = re.compile(r"Loading configuration property: (?P<key>[\w.-]+), (?P<value>.*)")
_VERSION = re.compile(r"(?:Starting .*\(Version: |Flink Version: )(?P<version>\d+\.\d+[\w.-]*)")
_JAR = re.compile(r"\bflink-(?:dist|runtime)(?:_\d\.\d+)?-(?P<version>\d+\.\d+(?:\.\d+)?(?:-[A-Za-z]\w*)*)\.jar\b")
"""The name of a JAR in a class path, or at the end of a stack frame."""


@dataclass(slots=True)
class LogCheckpoint:
    """A checkpoint in a log.  Unknown numbers are -1."""

    id: int
    trigger_timestamp: int = -1  # [epoch ms]
    line_ms: int = -1  # time of the line of the trigger, by the clock of the log
    is_savepoint: bool = False
    is_requested: bool = False  # by a request (REST, `collect`), not by the interval
    status: str = "IN_PROGRESS"
    state_size: int = -1  # [bytes]
    end_to_end_duration: int = (
        -1
    )  # [ms] from the trigger until the last acknowledgement (in older versions the end), or the failure
    finalization_ms: int = 0  # from the last acknowledgement to the end; 0 in older versions
    reason: str = ""  # failure reason
    where: str = ""  # TaskManager of the task that declined it
    task: str = ""  # that task, e.g. ``agg -> map (2/12)``; "" if unknown
    cause: str = ""  # root cause of the exception
    # acknowledgements after it expired: (time after the trigger [ms], execution attempt, TaskManager)
    late: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def failure_message(self) -> str:
        """The failure as text, for example ``declined by a task on tm-3: S3Exception: Please reduce your request rate``."""
        who = f"{self.reason} by {self.task or 'a task'} on {self.where}" if self.where else self.reason
        # the exception of an expired checkpoint says only that it expired
        return who if self.is_expired or not self.cause or self.cause in who else f"{who}: {self.cause}"

    @property
    def is_expired(self) -> bool:
        return "expired" in self.reason


Checkpoint = LogCheckpoint | RecordedCheckpoint


@dataclass(slots=True)
class LogRefusal:
    """A trigger that the JobManager declined before the checkpoint got an id."""

    line_ms: int  # time of the line by the clock of the log; -1 if unknown
    reason: str = ""  # Flink's reason; "" if the log does not contain it
    task: str = ""  # the task that was not running; "" if unknown
    is_announced: bool = False  # by the line that names its task (before Flink 1.13); another line may report it, too


@dataclass(slots=True)
class LogTaskFailure:
    """The first failure of a task between two restarts of a job."""

    task: str
    reason: str = ""  # exception
    cause: str = ""  # root cause of the exception


class LogRestore(NamedTuple):
    """A line that says from which checkpoint the job is restored."""

    line_ms: int  # time of the line by the clock of the log; -1 if unknown
    checkpoint: int  # id; 0 if the line does not have it
    trigger_timestamp: (
        int  # trigger time of the checkpoint [epoch ms]; 0 if unknown, for example after a start from a savepoint
    )
    newest: int = 0  # the newest checkpoint that had completed by then; 0 if unknown


class LogReplay(NamedTuple):
    """A restart after a failure, whose sources read again from the positions in a checkpoint."""

    checkpoint: int  # id
    ms: int  # from the trigger of the checkpoint to the failure


@dataclass(slots=True)
class JobLog:
    """The content of the logs of a job.  Unknown times are -1; times are by the clock of the log [ms]."""

    source: str
    job: str
    checkpoints: dict[int, LogCheckpoint] = field(default_factory=dict)
    refusals: list[LogRefusal] = field(default_factory=list)  # declined triggers, oldest first
    completed_ms: int = -1  # time of the last completed checkpoint
    # changes of the job status: (time, status before, status after)
    switches: list[tuple[int, str, str]] = field(default_factory=list)
    ended_ms: int = -1  # time of the last line of the log
    # per failure of the job by too many failed checkpoints: their number; None if the log begins later than they do
    exceeding: list[int | None] = field(default_factory=list)
    is_requested: bool = False  # a checkpoint was requested, and none triggered since
    failed: list[LogCheckpoint] | None = None  # failed since the last completed one; None if the log begins later
    lost: dict[str, int] = field(default_factory=dict)  # lost TaskManager -> time
    terminated: dict[str, tuple[int, str]] = field(default_factory=dict)  # TaskManager -> (time, exit code and reason)
    notable: dict[str, str] = field(default_factory=dict)  # sentence of `_NOTABLE` -> its last value, of the cluster
    attempts: dict[str, str] = field(default_factory=dict)  # execution attempt id -> task, of all jobs
    failing: LogTaskFailure | None = None  # failed task of any job, until a line tells which job failed
    task_failures: list[LogTaskFailure] = field(default_factory=list)  # task failures that failed the job
    name: str = ""
    restores: list[LogRestore] = field(default_factory=list)  # oldest first
    fresh_restarts: int = 0  # number of restarts without a checkpoint to restore
    strategy: str = ""  # restart strategy, as Flink prints it
    # vertex -> scheduled parallelism; empty if the log has several jobs
    vertices: dict[str, int] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)  # cluster options, by current name
    version: str = ""  # the last one

    @property
    def recorded(self) -> tuple[RecordedCheckpoint, ...]:
        """The checkpoints whose trigger is known, oldest first.  Raises `RecordingError` if a value is invalid."""
        fields = []
        for _, point in sorted(self.checkpoints.items()):
            if point.trigger_timestamp >= 0:
                ended_ms = point.trigger_timestamp + point.end_to_end_duration if point.status == "COMPLETED" else -1
                values = {
                    name: getattr(point, name) for name in RecordedCheckpoint.model_fields if hasattr(point, name)
                }
                fields.append({**values, "latest_ack_timestamp": ended_ms, "persisted_data": -1})
        return parsed(tuple[RecordedCheckpoint, ...], fields, self.source, "its checkpoints")

    @property
    def runs_ms(self) -> list[int]:
        """The times at which the job switched to RUNNING."""
        return [at_ms for at_ms, _, state in self.switches if state == "RUNNING"]

    @property
    def last_switch(self) -> tuple[int, str, str]:
        """The latest change of the job status: (time, before, after), or (-1, "", "") if there is none.

        It need not be the last one that was read, because the parts of a log may be read in any order.
        """
        return max([*reversed(self.switches), (-1, "", "")], key=itemgetter(0))

    @property
    def failures(self) -> int:
        """The number of failures of the job, for any reason."""
        return len(self.failures_ms)

    @property
    def failures_ms(self) -> list[int]:
        """The times of these failures, in ascending order."""
        return sorted(
            at_ms
            for at_ms, before, state in self.switches
            if before == "RUNNING" and state in ("RESTARTING", "FAILING", "FAILED")
        )

    @property
    def restarts_ms(self) -> list[int]:
        """The times at which the job stopped to restart, in ascending order: failures, and starts by another JobManager."""
        begun = sorted(at_ms for at_ms, before, state in self.switches if (before, state) == ("CREATED", "RUNNING"))
        return sorted({*self.failures_ms, *self._departures_ms, *begun[1:]})

    @property
    def _departures_ms(self) -> list[int]:
        """The times at which leadership was lost, or the adaptive scheduler restarted the job."""
        return [at_ms for at_ms, _, state in self.switches if state in ("SUSPENDED", "CANCELLING")]

    @property
    def replays(self) -> list[LogReplay]:
        """The restarts from a checkpoint, oldest first, without those whose failure or checkpoint has no known time."""
        replays, offset_ms = list[LogReplay](), self.clock_offset_ms
        failures_ms = sorted([*self.failures_ms, *self._departures_ms])
        for line_ms, checkpoint, trigger_timestamp, _ in sorted(self.restores):
            point = self.checkpoints.get(checkpoint)
            if point is not None and point.line_ms >= 0:
                begin_ms = point.line_ms
            elif trigger_timestamp and offset_ms is not None:  # the log begins after the trigger
                begin_ms = trigger_timestamp + offset_ms
            else:
                continue
            if (index := bisect_right(failures_ms, line_ms)) and failures_ms[index - 1] >= begin_ms:
                replays.append(LogReplay(checkpoint, failures_ms[index - 1] - begin_ms))
        return replays

    @property
    def running_ms(self) -> int:
        """The time at which the job first switched to RUNNING, or -1 if it is unknown."""
        return self.runs_ms[0] if self.runs_ms else -1

    @property
    def clock_offset_ms(self) -> int | None:
        """Time by the clock of the log - epoch time, from the lines of triggers, which have both; None without any."""
        points = [point for point in self.checkpoints.values() if min(point.line_ms, point.trigger_timestamp) >= 0]
        return round(median(point.line_ms - point.trigger_timestamp for point in points)) if points else None

    @property
    def tolerable(self) -> int | None:
        """The tolerable number of consecutive failed checkpoints, inferred from such job failures, or None if unknown."""
        counts = set(self.exceeding)
        return max(counts.pop() or 1, 1) - 1 if len(counts) == 1 and None not in counts else None


def read_logs(paths: Sequence[Path], job: str | None = None, lines: Iterable[str] | None = None) -> JobLog:
    """Return the log of a job, from one file or from the parts of a rotated log in any order.

    `job` is an id or the beginning of one; it is required if the log has several jobs.  `lines` replaces those of a file
    in another format.  Raises `RecordingError` if there are no checkpoints, or if the job is missing or ambiguous.
    """
    logs = read_jobs(paths, lines)
    return logs[choose(list(logs), job, _file_names(paths))]


def read_jobs(paths: Sequence[Path], lines: Iterable[str] | None = None) -> dict[str, JobLog]:
    """Return the logs of all jobs with checkpoints, by job id.  Raises `RecordingError` if there are none."""
    source = _file_names(paths)
    jobs: dict[str, JobLog] = {}
    cluster, is_task_manager = JobLog(source, ""), False
    for path in paths:
        clock, failure, ended_ms = _Clock(), None, cluster.ended_ms
        loggers = set[str]()
        for line in _in_time_order(iter(lines or _read_lines(path))):
            at_ms = clock.read(line)
            cluster.ended_ms = max(cluster.ended_ms, at_ms)
            loggers.update(_LOGGERS.findall(line, 0, 200))
            failure = _read_line(line, at_ms, jobs, cluster, failure)
        if loggers and "CheckpointCoordinator" not in loggers:  # a TaskManager's log, which shows nothing of triggers
            cluster.ended_ms, is_task_manager = ended_ms, True
    for log in jobs.values():
        log.version, log.ended_ms = cluster.version, cluster.ended_ms
        log.options = with_current_names(cluster.options)
        log.fresh_restarts = cluster.fresh_restarts if len(jobs) == 1 else 0
    if len(jobs) > 1:  # lines of vertices do not say to which job they belong
        cluster.vertices.clear()
    logs = {name: log for name, log in jobs.items() if log.checkpoints or log.refusals}
    if not logs:
        raise RecordingError(
            f"{source}: no lines of checkpoints ('Triggering checkpoint', 'Completed checkpoint'): "
            f"{_why_without_checkpoints(jobs, cluster, is_task_manager=is_task_manager)}"
        )
    for log in logs.values():
        # CheckpointCoordinatorDeActivator aborts pending checkpoints when the job leaves RUNNING.
        for point in log.checkpoints.values():
            later = [switch for switch in log.switches if switch[0] >= point.line_ms >= 0 and switch[2] != "RUNNING"]
            if point.status == "IN_PROGRESS" and later:
                at_ms, _, state = min(later)
                point.status, point.reason = "FAILED", f"the job switched to {state}"
                point.end_to_end_duration = at_ms - point.line_ms
    return logs


def _why_without_checkpoints(jobs: Mapping[str, JobLog], cluster: JobLog, *, is_task_manager: bool) -> str:
    """Return why a log may have no lines about checkpoints."""
    running = next((log for log in jobs.values() if log.running_ms >= 0), None)
    if running is None:
        if is_task_manager:
            return "it is the log of a TaskManager; explain the JobManager's, or a folder with both"
        if cluster.ended_ms >= 0:
            return "is it a JobManager's log, at level INFO?"
        return "no line has a time, so it is not a log of a JobManager"
    if not running.failures:
        return f"job {running.job} runs without them: is execution.checkpointing.interval set, and the level INFO?"
    times = f"{running.failures} time{'s' * (running.failures > 1)}"
    lasts_ms = max(running.ended_ms - running.running_ms, 0)
    hint = ": is execution.checkpointing.interval set?" if lasts_ms > _MIN_WITHOUT_INTERVAL_MS else "."
    none = f"job {running.job} failed {times}, and none was triggered in {ms_text(lasts_ms, 3)}{hint}"
    return " ".join([none, *log_remarks(running)])


_MIN_WITHOUT_INTERVAL_MS = 600_000
_LOGGERS = re.compile(
    r"\bCheckpointCoordinator\b|runtime\.taskexecutor|runtime\.taskmanager|streaming\.runtime\.tasks|TaskManagerRunner"
)
"""The logger of triggers, and those of a TaskManager."""


def _file_names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _match_time(line: str) -> re.Match[str] | None:
    return _TIME.search(line, 0, 200) or _SECONDS.match(line)


class _Clock:
    """A parser for the times of lines.  In a log without dates, a day is added at each midnight."""

    def __init__(self) -> None:
        self.day = 0
        self.last = -1

    def read(self, line: str) -> int:
        """Return the time of a line [ms], or -1 if it has none."""
        match = _match_time(line)
        if match is None:
            return -1
        date, clock, millis = match.groups()
        try:
            day = datetime.fromisoformat(f"{date or '1970-01-02'}T{clock}+00:00")
        except ValueError:
            return -1
        now = int(day.timestamp()) * 1000 + int(millis or 0)
        if date is None and now + self.day < self.last - DAY_MS // 2:
            self.day += DAY_MS
        self.last = now + (self.day if date is None else 0)
        return self.last


Failure = LogCheckpoint | LogRefusal | LogTaskFailure


def _read_line(
    line: str, at_ms: int, jobs: dict[str, JobLog], cluster: JobLog, failure: Failure | None
) -> Failure | None:
    """Store the content of a line in its job or, if the line does not name the job, in `cluster`.

    `failure` is the failure that the lines before described.  A stack trace that follows completes it.  Return the failure
    that this line describes, or None.
    """
    for words, pattern, sentence in _NOTABLE:
        if words in line and (match := pattern.search(line)):  # the pattern takes longer
            cluster.notable[sentence] = match[1]
    if isinstance(failure, LogCheckpoint) and at_ms < 0 and (match := _OPERATOR.search(line)):
        failure.task = _mask(match["task"], 200)
    if failure is not None and not isinstance(failure, LogRefusal) and at_ms < 0 and (match := _CAUSE.search(line)):
        if failure.cause.startswith(_TASK_FAILED):
            failure.cause = _mask_line(f"{_TASK_FAILED}: {match['why']}")
        elif not _NOT_COUNTED.search(failure.cause):
            failure.cause = _mask_line(match["why"])
        return failure
    if isinstance(failure, LogTaskFailure) and at_ms < 0:
        failure.reason = failure.reason or _mask_line(_PACKAGE.sub("", _COMPOSE.sub("", line.strip())))
        return failure
    if "heckpoint" in line or "Restoring job" in line or "restart back off" in line:
        if failure is not None and at_ms < 0 and (match := _EXCEPTION.search(line)):
            if failure.reason in ("", "failed"):
                _set_reason(failure, match["why"])
            elif isinstance(failure, LogCheckpoint):
                stated = _REASON.search(match["why"])
                failure.cause = _mask_line(stated["reason"] if stated else match["why"])
            return failure
        if at_ms < 0 and (match := _PENDING.search(line)):
            for log in jobs.values():
                if (point := log.checkpoints.get(int(match["id"]))) is not None and point.status == "IN_PROGRESS":
                    return _store_message("failed", match.groupdict(), cluster.ended_ms, log)
        for kind, pattern in _PATTERNS.items():
            if match := pattern.search(line):
                return _store_message(kind, match.groupdict(), at_ms, _find_or_create_log(match["job"], jobs, cluster))
        if _TOLERANCE in line:
            cluster.exceeding = [None]
        elif _NO_CHECKPOINT in line and any(log.running_ms >= 0 for log in jobs.values()):
            cluster.fresh_restarts += 1
    if match := _STATE.search(line):
        log = _find_or_create_log(match["job"], jobs, cluster)
        log.name = _mask(match["name"], 200)
        log.switches.append((at_ms, match["before"], match["state"]))
        log.failed = [] if match["before"] == "CREATED" else log.failed
        if cluster.failing is not None and match["before"] == "RUNNING":
            log.task_failures.append(cluster.failing)
        cluster.failing = None
        if cluster.exceeding:
            log.exceeding.append(None if log.failed is None else sum(map(is_counted, log.failed)))
            log.failed, cluster.exceeding = [], []
    elif (match := _TASK.search(line)) and len(cluster.vertices) < MAX_NAMES:
        name = masked_text(match["name"])
        cluster.vertices[name] = min(max(int(match["of"]), 1), 32768)
        if len(cluster.attempts) < MAX_NAMES:
            cluster.attempts[match["attempt"]] = f"{name[:200]} {match['place']}"
    elif cluster.failing is None and (match := _FAILED_TASK.search(line)):
        cluster.failing = LogTaskFailure(_mask(match["name"], 200))
        return cluster.failing
    elif (
        "askManager with id" in line and (match := _LOST.search(line)) and at_ms >= 0 and len(cluster.lost) < MAX_NAMES
    ):
        cluster.lost.setdefault(_mask(match["id"]), at_ms)
    elif (
        (" is terminated. " in line or "Disconnect TaskExecutor" in line)
        and (match := _TERMINATED.search(line))
        and len(cluster.terminated) < MAX_NAMES
    ):
        name, why = match["id"] or match["other"], match["why"] or match["fatal"]
        cluster.terminated.setdefault(_mask(name), (at_ms, _mask_line(why)))
    elif match := _OPTION.search(line):
        cluster.options[match["key"]] = match["value"].strip().strip("'\"")
    elif match := _VERSION.search(line) or (None if cluster.version else _JAR.search(line)):
        cluster.version = match["version"]
    return failure if at_ms < 0 else None  # a stack trace has no times


def _find_or_create_log(job: str, jobs: dict[str, JobLog], cluster: JobLog) -> JobLog:
    """Return the log of a job, which is created at its first line.  It shares what the lines tell of the cluster."""
    tables = {
        name: getattr(cluster, name) for name in ("options", "lost", "terminated", "notable", "attempts", "vertices")
    }
    return jobs.setdefault(job, JobLog(cluster.source, job, **tables))


def _mask(text: str | None, chars: int = 100) -> str:
    """Return the first characters of a text, with secrets masked."""
    return masked_text(text or "")[:chars]


def _mask_line(text: str) -> str:
    """Return text of a log as one line, shortened, with secrets masked."""
    return masked_text(text).rstrip(". \n\r")[:200]


def _set_reason(failure: Failure, why: str) -> None:
    """Set the reason of a failure from Flink's message `why` and, for a declined trigger, the task that it names."""
    stated, task = _REASON.search(why), _NOT_RUNNING.search(why)
    reason = FINISHED if _ENDED_TASKS.search(why) else stated["reason"] if stated else NOT_RUNNING if task else why
    failure.reason = _mask_line(reason)
    if isinstance(failure, LogRefusal) and task is not None:
        failure.task = _mask(task["task"], 200)


def _store_message(kind: str, fields: dict[str, str | None], line_ms: int, log: JobLog) -> Failure | None:
    """Store a message about a checkpoint.  `kind` is a key of `_PATTERNS`.  Return the failure in it, or None."""
    if kind in ("refused", "aborted"):
        last = log.refusals[-1] if log.refusals else LogRefusal(-1)
        is_same = kind == "refused" and last.is_announced and line_ms - last.line_ms < 1000
        if not is_same:
            log.refusals.append(LogRefusal(line_ms))
        log.refusals[-1].is_announced = kind == "aborted"
        if fields["why"]:
            _set_reason(log.refusals[-1], fields["why"])
        return log.refusals[-1]
    if kind == "requested":
        log.is_requested = True
        return None
    if kind == "strategy":
        log.strategy = (fields["strategy"] or "")[:1000]
        return None
    numbers = {name: int(fields.get(name) or 0) for name in ("id", "size", "ms", "old", "final", "at")}
    if max(numbers.values()) > LARGEST:
        return None  # invalid: the coordinator does not write such numbers
    if kind == "restored":
        done = (p.id for p in log.checkpoints.values() if p.status == "COMPLETED" and 0 <= p.line_ms < line_ms)
        log.restores.append(LogRestore(line_ms, numbers["id"], numbers["at"], max(done, default=0)))
        return None
    point = log.checkpoints.setdefault(numbers["id"], LogCheckpoint(numbers["id"]))
    match kind:
        case "late":
            if min(line_ms, point.line_ms) >= 0 and len(point.late) < MAX_NAMES:
                point.late.append((line_ms - point.line_ms, _mask(fields["task"]), _mask(fields["where"])))
        case "triggered":
            point.trigger_timestamp, point.line_ms = numbers["at"], line_ms
            point.is_savepoint = "savepoint" in (fields["type"] or "").lower()
            point.is_requested, log.is_requested = log.is_requested, False
        case "completed":
            point.status, point.state_size = "COMPLETED", numbers["size"]
            point.end_to_end_duration = numbers["ms"] or numbers["old"]
            point.finalization_ms = max(numbers["final"], 0)
            log.completed_ms = max(log.completed_ms, line_ms)
            log.failed = []
            if point.trigger_timestamp < 0 <= line_ms:  # the log begins after the trigger
                point.trigger_timestamp = max(line_ms - point.end_to_end_duration - point.finalization_ms, 0)
        case _ if point.status == "IN_PROGRESS":  # several lines may report one failure; the first has its time
            point.status, point.reason, point.where = "FAILED", kind, _mask(fields.get("where"))
            point.task = log.attempts.get(fields.get("attempt") or "", "")
            if log.failed is not None and not point.is_savepoint:
                log.failed.append(point)
            if why := fields.get("why"):
                _set_reason(point, why)
            point.end_to_end_duration = max(line_ms - point.line_ms, 0) if line_ms >= 0 and point.line_ms >= 0 else -1
            return point
        case _ if point.status == "FAILED" and not point.cause:
            return point  # a later line about it, which may have the exception
    return None


_PREFIX = re.compile(r"^(?:\[pod/[^\]\s]+\] )?(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}Z )?")
"""What `kubectl logs --prefix --timestamps` and Docker put in front of each line, also of those of a stack trace."""


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a log, which may be compressed.  Longer lines are split at MAX_LINE_LENGTH.

    A line of JSON with a message becomes what `event_lines` makes of it.
    """
    with open_uncompressed(path) as file:
        while content := file.readline(MAX_LINE_LENGTH):
            line, events = _PREFIX.sub("", content.decode("utf-8", "replace")), list[str]()
            if line.startswith("{"):
                with suppress(ValueError, RecursionError):
                    events = list(event_lines(json.loads(line)))
            if events:
                yield from events
            else:
                yield line


def _in_time_order(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines in the order of their times: a log viewer exports the newest first, each with its stack trace behind it."""
    first, clock = list(islice(lines, _MAX_LINES_FOR_ORDER)), _Clock()
    times = [at_ms for at_ms in map(clock.read, first) if at_ms >= 0]
    if not times or times[0] <= times[-1]:
        yield from chain(first, lines)
        return
    rows = list[list[str]]()
    for line in chain(first, lines):
        if not rows or _match_time(line):
            rows.append([])
        rows[-1].append(line)
    yield from chain.from_iterable(reversed(rows))


_MAX_LINES_FOR_ORDER = 1000


def event_lines(document: Any) -> Iterator[str]:
    """Yield time, logger and message of each event in JSON, and its stack trace.

    Events are lines of a JSON layout, or answers of a log service, e.g. of `aws logs filter-log-events`.
    """
    if isinstance(document, list):
        yield from chain.from_iterable(map(event_lines, document))
    elif isinstance(document, dict):
        if (message := _first_field(document, _MESSAGES, str)) is None:
            yield from event_lines(list(document.values()))
            return
        at = _first_field(document, ("timestamp", "@timestamp", "time", "timeMillis"), str | int)
        if isinstance(instant := document.get("instant"), dict):  # JsonLayout of Log4j
            seconds, nanoseconds = instant.get("epochSecond"), instant.get("nanoOfSecond")
            at = seconds * 1000 + nanoseconds // MS if isinstance(seconds, int) and isinstance(nanoseconds, int) else at
        if isinstance(at, int):
            at = datetime.fromtimestamp(min(max(at, 0), LAST_MS) / 1000, UTC).isoformat(timespec="milliseconds")
        logger = _first_field(document, ("loggerName", "logger_name", "logger"), str)
        first, *others = message.splitlines() or [""]
        yield " ".join(filter(None, [at, f"{logger} -" if logger else "", first]))
        yield from others
        if isinstance(error := document.get("error"), dict):  # of ECS, nested or with dots in its names
            document = {**document, "thrown": error.get("stack_trace")}
        yield from _stack_trace(_first_field(document, _THROWN, str | dict))


_MESSAGES = ("message", "@message", "textPayload", "log", "msg")
_THROWN = ("thrown", "stack_trace", "error.stack_trace", "throwable", "exception")


def _first_field(document: Mapping[str, Any], names: Iterable[str], kind: Any) -> Any:
    """Return the first of these fields that has a value of a type, or None."""
    return next((document[name] for name in names if isinstance(document.get(name), kind)), None)


def _stack_trace(thrown: str | dict[str, Any] | None) -> Iterator[str]:
    """Yield the lines of an exception in JSON: a text, or its name and message, and those of its causes."""
    prefix = ""
    while isinstance(thrown, dict):
        if isinstance(text := thrown.get("extendedStackTrace"), str):
            thrown = text
        else:
            yield f"{prefix}{thrown.get('name', '')}: {thrown.get('message', '')}"
            thrown, prefix = thrown.get("cause"), "Caused by: "
    yield from thrown.splitlines() if thrown else ()


# ---- Silence: a period without completed checkpoints at the end of the history, while the job is running.
#
# completed   completed   declined  declined  declined  end of the log, or the time of the REST answers
# ----|-----------|----------x---------x---------x------|
#                 <------------- silence -------------->

SILENT_GAPS = 3
"""Minimum length of a silence / usual time between checkpoints."""
_EXCEPTIONS = "Look at the exceptions of the job"
_STORAGE = "Checkpoint storage could not be written: look at its address, access rights and quota"
_WHAT_TO_DO = (
    (
        "memory-backed state",
        (
            "Checkpoints are kept in the JobManager's memory, which takes 5 MB per state: set execution.checkpointing.storage: filesystem and "
            "execution.checkpointing.dir (before 1.20: state.checkpoint-storage and state.checkpoints.dir)"
        ),
    ),
    (
        "tasks are currently running",
        "Look at why tasks do not run (slots, a restart loop, a long restore, their last exception), not at checkpoints",
    ),
    ("minimum time between", "The pause is as configured (execution.checkpointing.min-pause): no fault by itself"),
    (
        "checkpoint expired",
        "Not all tasks acknowledged within execution.checkpointing.timeout",
    ),
    ("declined", "A task declined: its exception, which the log of its TaskManager has too, says why"),
    (
        "finalize checkpoint",
        (
            "All tasks had acknowledged, and the JobManager could not write _metadata, or the entry of the checkpoint for its recovery "
            "(high-availability). Before 1.17.2 such failures are not counted (FLINK-32347): the job runs on without checkpoints"
        ),
    ),
    ("IO-problem", _STORAGE),
    ("IOException", _STORAGE),
    ("task checkpoint failed", "A task could not write its state: the log of its TaskManager says why"),
    (
        "finished",
        "Once tasks finish, checkpoints need execution.checkpointing.checkpoints-after-tasks-finish.enabled (since 1.14; true by default since 1.15)",
    ),
    ("suspending", _EXCEPTIONS),
    ("the job switched to", _EXCEPTIONS),
    ("has failed", _EXCEPTIONS),
)
"""(part of Flink's failure reason, what to check); messages of CheckpointFailureReason, 1.9 to 2.3."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A period without completed checkpoints up to the end of the history."""

    since: str  # its start as text, for example "the job began to run at 09:30:00"; "" if unknown
    lasts_ms: int
    is_whole: bool  # whether no checkpoint completed before it, either
    refusals: tuple[LogRefusal, ...]  # declined triggers in it
    failed: tuple[str, ...]  # failure messages of the checkpoints in it
    intolerable: int = 0  # number of job failures because too many checkpoints failed
    tolerable: int | None = None  # number of consecutive failed checkpoints that the job tolerates; None if unknown
    end: str = "the end of the log"  # its end as text
    stopped: str = ""  # sentence on triggers that stopped, without a refusal; "" if they did not

    def sentences(self) -> Iterator[str]:
        """Yield sentences: since when no checkpoint completes, why, and what to check."""
        begun = f" since {self.since}" if self.since else ""
        until = f": {ms_text(self.lasts_ms, 3)} to {self.end}" if self.lasts_ms >= 1000 else ""
        yield f"No checkpoint has completed{begun}{until}."
        reasons = [refusal.reason for refusal in self.refusals]
        yield from _refusal_sentences(self.refusals)
        for reason, count in Counter(self.failed).most_common(3):
            yield f"{count} checkpoint{'s' if count > 1 else ''} failed: {one_line(reason, 160) or 'no reason is known'}."
            reasons.append(reason)
        yield from _tolerance_sentences(self.intolerable, self.tolerable)
        yield from [self.stopped] if self.stopped else where_to_look(reasons)

    def is_unusual(self, triggers: Sequence[int], points: Sequence[Checkpoint]) -> bool:
        """Return whether there is something to explain.

        There is if checkpoints failed in it: at least two, or one if none ever completed.  There also is if it lasts longer
        than `SILENT_GAPS` times the usual time between triggers, or the longest checkpoint.
        """
        gaps = [after - before for before, after in pairwise(triggers) if after > before]
        took = (point.end_to_end_duration for point in points if point.status == "COMPLETED")
        typical_ms = max(median(gaps) if gaps else 0, max(took, default=0))
        not_completed = len(self.refusals) + len(self.failed)
        return not_completed > (0 if self.is_whole else 1) or (0 < typical_ms * SILENT_GAPS < self.lasts_ms)


def _tolerance_sentences(count: int, tolerable: int | None) -> Iterator[str]:
    """Yield a sentence if the job failed because of failed checkpoints.  `tolerable` is as in `JobLog`."""
    if count:
        times = "once" if count == 1 else f"{count} times"
        limit = (
            ""
            if tolerable is None
            else f", which is {tolerable} by the log (execution.checkpointing.tolerable-failed-checkpoints)"
        )
        yield f"The job failed {times}: more checkpoints failed in a row than it tolerates{limit}."


def _refusal_sentences(refusals: Sequence[LogRefusal]) -> Iterator[str]:
    """Yield sentences about declined triggers, per reason: how many, when, and because of which tasks."""
    for reason, count in Counter(refusal.reason for refusal in refusals).most_common():
        with_reason = [refusal for refusal in refusals if refusal.reason == reason]
        first, last = (clock(refusal.line_ms) for refusal in (with_reason[0], with_reason[-1]))
        times = f" from {first} to {last}" if count > 1 else f" at {first}"
        why = one_line(reason, 160) or "the log gives no reason"
        yield f"{count} trigger{'s were' if count > 1 else ' was'} refused{times * (with_reason[0].line_ms >= 0)}: {why}."
        if tasks := Counter(refusal.task for refusal in with_reason if refusal.task):
            names = [f"'{one_line(task, 120)}'" for task, _ in tasks.most_common()]
            yield f"The task that did not run: {list_names(names, 2)}."


def where_to_look(reasons: Sequence[str]) -> Iterator[str]:
    """Yield up to two sentences on what to check after checkpoints failed for these reasons."""
    kinds = [_kind_of_reason(reason).lower() for reason in reasons]
    advice = [*{hint: 0 for pattern, hint in _WHAT_TO_DO if any(pattern.lower() in kind for kind in kinds)}]
    yield from (f"{hint}." for hint in advice[:2])


def _kind_of_reason(reason: str) -> str:
    """Return the part of a failure reason that `_WHAT_TO_DO` is about."""
    if reason == "expired":  # not, for example, an expired token
        return "checkpoint expired"
    if reason.startswith(FINISHED):  # it is declined, but without an exception
        return FINISHED
    return NOT_RUNNING if "(tasks not ready)" in reason else reason


def silence_of_log(log: JobLog) -> Silence | None:
    """Return the silence at the end of a log, or None if the job completes checkpoints as usual, or has ended.

    A job that failed for good may have failed because of the silence, which then lasts until the end of the job.
    """
    points = [point for _, point in sorted(log.checkpoints.items())]
    is_whole = not any(point.status == "COMPLETED" for point in points)
    switched_ms, _, state = log.last_switch
    end_ms, end = (switched_ms, "the end of the job") if state == "FAILED" else (log.ended_ms, "the end of the log")
    since_ms, begun = (log.running_ms, "the job began to run at ") if is_whole else (log.completed_ms, "")
    refusals = [refusal for refusal in log.refusals if is_whole or refusal.line_ms > log.completed_ms]
    if is_whole and since_ms < 0:
        begun = "the first line about them at "
        times = [*(refusal.line_ms for refusal in refusals), *(point.line_ms for point in points)]
        since_ms = min((at for at in times if at >= 0), default=-1)
    lasts_ms = end_ms - since_ms if 0 <= since_ms <= end_ms else 0
    since = f"{begun}{clock(since_ms)}" if since_ms >= 0 else ""
    failed = _failed_since_completion(points)
    triggers = [point.trigger_timestamp for point in points if point.trigger_timestamp >= 0]
    stopped = _stopped_triggers_text(points, triggers, end_ms) if state in ("", "RUNNING") else ""
    is_refused = any(refusal.line_ms > max(triggers, default=0) for refusal in refusals)
    silence = Silence(
        since,
        lasts_ms,
        is_whole,
        tuple(refusals),
        failed,
        len(log.exceeding),
        log.tolerable,
        end,
        stopped="" if is_refused else stopped,
    )
    has_ended = state in ENDED and state != "FAILED"
    return None if has_ended or not silence.is_unusual(triggers, points) else silence


def _stopped_triggers_text(points: Sequence[Checkpoint], triggers: Sequence[int], end_ms: int) -> str:
    """Return a sentence if a running job has triggered nothing for many of the usual times between triggers, or "".

    A checkpoint without a trigger is one that failed in its trigger, so the coordinator still works.
    """
    gaps = [after - before for before, after in pairwise(triggers) if after > before]
    if len(gaps) < SILENT_GAPS or points[-1].status == "IN_PROGRESS" or points[-1].trigger_timestamp < 0:
        return ""
    due = (end_ms - triggers[-1] - max(points[-1].end_to_end_duration, 0)) / median(gaps)
    if due < _MIN_STOPPED_GAPS:
        return ""
    return (
        f"Nothing is triggered after checkpoint {points[-1].id} at {clock(triggers[-1])}, although about {due:.0f} more were due, and no trigger "
        "is refused: the CheckpointCoordinator has stopped, and no timeout helps. Restart the JobManager, and look for a defect of this release."
    )


_MIN_STOPPED_GAPS = 10
"""Triggers that are due and missing from which they have stopped."""


def log_remarks(log: JobLog) -> Iterator[str]:
    """Yield sentences about the end of the job, lost TaskManagers, declined triggers, and failures."""
    ended_ms, _, state = log.last_switch
    points = [point for _, point in sorted(log.checkpoints.items())]
    yield from _time_zone_sentence(log.clock_offset_ms)
    if state == "FAILED":
        yield _failed_for_good_text(log, ended_ms)
    yield from _restart_sentences(log)
    lost = [
        f"{one_line(name, 100)} ({clock(at_ms)})"
        for name, at_ms in sorted(log.lost.items(), key=itemgetter(1))
        if state not in ENDED or at_ms <= ended_ms
    ]
    if lost:
        yield (
            f"{len(lost)} TaskManager{'s' if len(lost) > 1 else ''} did not answer heartbeats: {list_names(lost, 4)}. Look at the log of "
            "each, and at what ended or paused it (memory limit, eviction, network)."
        )
    for name, (at_ms, why) in [*log.terminated.items()][:_MAX_TERMINATED]:
        at = f" at {clock(at_ms)}" if at_ms >= 0 else ""
        yield f"TaskManager {one_line(name, 100)} was terminated{at}: {one_line(why, 160)}."
    yield from _notable_sentences(log)
    silence = silence_of_log(log)
    reported = {id(refusal) for refusal in (silence.refusals if silence else ())}
    if refusals := [refusal for refusal in log.refusals if id(refusal) not in reported]:
        look = where_to_look([refusal.reason for refusal in refusals]) if len(refusals) >= SILENT_GAPS else ()
        yield " ".join([*_refusal_sentences(refusals), *look])
    yield from _long_finalizations(points)
    yield from failures_apart(points)
    if silence is None:
        yield from _tolerance_sentences(len(log.exceeding), log.tolerable)
    yield from _late_acknowledgements(log, points)
    yield from _task_failures(log)
    if count := log.fresh_restarts:
        yield (
            f"{'1 restart' if count == 1 else f'{count} restarts'} found no checkpoint to restore: the job began again with empty state, and "
            "its sources where they begin without a position. Each time the records before are read again, and sinks that neither replace "
            "rows by key nor commit with checkpoints get them once more."
        )


def _notable_sentences(log: JobLog) -> Iterator[str]:
    """Yield sentences about the lines of `_NOTABLE`, and a JobManager that began anew."""
    restarted = len(log.restarts_ms) > log.failures
    for sentence, value in log.notable.items():
        if sentence is not _LEADERSHIP or restarted:
            yield sentence.format(value)
    states = pairwise(sorted(log.switches))
    begun = [
        clock(at_ms) for (_, _, before), (at_ms, created, _) in states if (before, created) == ("RUNNING", "CREATED")
    ]
    if begun:
        yield (
            f"The JobManager began anew without a failure of the job before ({list_names(begun, 4)}): its process ended. Look at what ended it "
            "(memory limit, eviction, node, an upgrade); each time sources read again from the latest checkpoint."
        )


_MAX_TERMINATED = 3
"""Maximum number of terminated TaskManagers that are named."""


def _failed_for_good_text(log: JobLog, at_ms: int) -> str:
    """Return sentences on a job that failed for good: when, and after how many restarts of which strategy."""
    restarts = sum(state == "RESTARTING" for _, _, state in log.switches)
    at = f" at {clock(at_ms)}" if at_ms >= 0 else ""
    strategy = f"; its restart strategy is {one_line(log.strategy, 160)}" if log.strategy else ""
    # exceptions of failed checkpoints only say what `_tolerance_sentences` says
    look = "" if 0 < log.failures == len(log.exceeding) else f" {_EXCEPTIONS}."
    return f"The job failed for good{at}, after {restarts} restart{'' if restarts == 1 else 's'}{strategy}.{look}"


def _restart_sentences(log: JobLog) -> Iterator[str]:
    """Yield a sentence on how far restarts went back, and whether a checkpoint completed between them."""
    if not (replays := log.replays):
        return
    ids = list(dict.fromkeys(replay.checkpoint for replay in replays))
    times = sorted({ms_text(replay.ms, 3): replay.ms for replay in replays}.items(), key=itemgetter(1))
    count, (shortest, _), (longest, _) = len(replays), times[0], times[-1]
    back = longest if len(times) == 1 else f"{shortest} to {longest}"
    between = ", and no checkpoint completed between them" if count > len(ids) == 1 else ""
    yield (
        f"{count} restart{'s' if count > 1 else ''} went back {back}, to checkpoint{'s' if len(ids) > 1 else ''} "
        f"{list_names([str(number) for number in ids], 4)}: sources read again from there{between}."
    )
    for restore in log.restores:
        if 0 < restore.checkpoint < restore.newest:
            yield (
                f"The restore at {clock(restore.line_ms)} took checkpoint {restore.checkpoint}, although {restore.newest} had completed: look at "
                "what stores completed checkpoints for a recovery (high-availability). What sinks committed with later ones is written "
                "again, and their ids are used twice (the first are not listed)."
            )


def _time_zone_sentence(offset_ms: int | None) -> Iterator[str]:
    """Yield a sentence if the clock of a log is not in UTC, in which the triggers of checkpoints are listed."""
    days = round((offset_ms or 0) / DAY_MS)  # of a log without dates, or of one that is more than 12 h ahead
    zone_ms = (offset_ms or 0) - days * DAY_MS * (abs(days) > 1)
    if hours := round(zone_ms / _ZONE_STEP_MS) * _ZONE_STEP_MS / 3_600_000:
        yield (
            f"The clock of the log is {abs(hours):g} h {'ahead of' if hours > 0 else 'behind'} UTC: triggers of checkpoints are listed "
            "in UTC, other times are those of its lines."
        )


_ZONE_STEP_MS = 900_000
"""Time zones differ by quarters of an hour."""


def _long_finalizations(points: Sequence[LogCheckpoint]) -> Iterator[str]:
    """Yield a sentence about checkpoints whose finalization takes longer than all that precedes it."""
    long = [
        point for point in points if point.finalization_ms > max(point.end_to_end_duration, _MIN_LONG_FINALIZATION_MS)
    ]
    if long:
        times = [point.finalization_ms for point in long]
        yield (
            f"The JobManager needs longer to finalize {len(long)} of the completed checkpoints than their subtasks to acknowledge them: "
            f"{ms_text(median(times), 3)} (median; {ms_text(max(times), 3)} at most) after the last acknowledgement. Only then are they complete, "
            "do sinks commit, and may the next one be triggered. Look at what writes _metadata and stores the checkpoint for a recovery of "
            "the JobManager (high-availability)."
        )


_MIN_LONG_FINALIZATION_MS = 1000


def _late_acknowledgements(log: JobLog, points: Sequence[LogCheckpoint]) -> Iterator[str]:
    """Yield a sentence about the tasks that acknowledged checkpoints after they had expired."""
    late = [point for point in points if point.late]
    if not late:
        return
    named = _names_of_tasks(log, chain.from_iterable(point.late for point in late))
    last_ms = max(after_ms for point in late for after_ms, _, _ in point.late)
    yield (
        f"{len(late)} expired checkpoint{' was' if len(late) == 1 else 's were'} acknowledged late, by {named}: "
        f"{ms_text(last_ms, 3)} after the trigger at most. A longer execution.checkpointing.timeout would have been enough for these; a "
        "task that stops when a checkpoint is aborted sends none."
    )


def _names_of_tasks(log: JobLog, acknowledgements: Iterable[tuple[int, str, str]]) -> str:
    """Return the tasks that sent most of these acknowledgements, with their TaskManagers and how many each sent."""
    tasks = Counter((log.attempts.get(task, _subtask(task)), where) for _, task, where in acknowledgements)
    return list_names(
        [
            f"{one_line(task, 120)}{f' on {one_line(where, 100)}' if where else ''} ({count})"
            for (task, where), count in tasks.most_common()
        ],
        3,
    )


def _subtask(attempt: str) -> str:
    """Return the name of the subtask of an execution attempt, or the attempt itself before Flink 1.15."""
    return _ATTEMPT.sub(r"subtask \2 of vertex \1", attempt)


def _exception(failure: LogTaskFailure) -> str:
    return "; ".join(one_line(text, 160) for text in dict.fromkeys((failure.reason, failure.cause)) if text)


_MISSING_FILE = re.compile(r"StreamOperatorStateContext.*(?:FileNotFound|NoSuchFile|NoSuchKey)")


def _task_failures(log: JobLog) -> Iterator[str]:
    """Yield sentences about the tasks whose failures failed the job."""
    if not log.task_failures:
        return
    tasks = Counter(failure.task for failure in log.task_failures)
    named = [f"'{one_line(task, 120)}' ({count})" for task, count in tasks.most_common()]
    reasons = Counter(map(_exception, log.task_failures))
    why = _exception(log.task_failures[-1])
    count = f" ({reasons.pop(why)} times)" if len(reasons) > 1 else ""
    yield f"A task failed the job: {list_names(named, 3)}. The last exception{count}: {why or 'not in the log'}."
    for other, times in reasons.most_common(2 if count else 0):
        yield f"Before it ({'once' if times == 1 else f'{times} times'}): {other or 'not in the log'}."
    if _MISSING_FILE.search(why):
        yield (
            "Files of the checkpoint that is restored are missing: each further restart fails in the same way. Begin from an older "
            "retained checkpoint or a savepoint, and look for what deleted them (a lifecycle rule of the bucket, another job's cleanup)."
        )


def failures_apart(points: Iterable[Checkpoint], which: str = "checkpoints") -> Iterator[str]:
    """Yield sentences on how Flink counts the failures of checkpoints.

    One is about reasons that do not count, one about failures that are not consecutive, so that they do not add up.
    `points` are sorted by id, and `which` names them in the text.
    """
    points = [point for point in points if point.status == "COMPLETED" or not point.is_savepoint]
    counted = [point for point in points if point.status == "COMPLETED" or is_counted(point)]
    reasons = Counter(
        point.failure_message.rstrip(". ") for point in points if point.status == "FAILED" and not is_counted(point)
    )
    if reasons:
        named = ", ".join(f"{one_line(reason, 200)} ({count})" for reason, count in reasons.most_common(3))
        yield (
            "Checkpoints ended for reasons that Flink does not compare with execution.checkpointing.tolerable-failed-checkpoints: "
            f"{named}."
        )
    messages = [point.failure_message.rstrip(". ") for point in points if point.status == "FAILED"]
    declined = [match for message in messages if (match := _DECLINED.fullmatch(message))]
    if 1 < len(declined) == len(messages) and len({_NUMBER.sub("", match["cause"]) for match in declined}) == 1:
        where = list_names(sorted({match["where"] for match in declined}), 4)
        yield f"All {len(messages)} {which} that failed have one cause, on {where}: {one_line(declined[0]['cause'], 150)}."
    stretches = [
        [point.id for point in group]
        for failed, group in groupby(counted, lambda point: point.status == "FAILED")
        if failed
    ]
    if len(stretches) < 2:
        return
    longest = max(stretches, key=len)
    ids = f"{longest[0]}" if len(longest) == 1 else f"{longest[0]} to {longest[-1]}"
    yield (
        f"{sum(map(len, stretches))} {which} failed, at most {len(longest)} in a row ({ids}). Flink compares the failures in a row "
        "with execution.checkpointing.tolerable-failed-checkpoints: a completed checkpoint sets their count to 0."
    )


_NUMBER = re.compile(r"[0-9a-f-]*\d[0-9a-f-]*")
"""A number or a random name: paths have the number of their checkpoint."""
_DECLINED = re.compile(r"declined by .+ on (?P<where>\S+?): (?P<cause>.+)")


def is_counted(point: Checkpoint) -> bool:
    """Return whether a checkpoint failed for a reason that CheckpointFailureManager counts."""
    return point.status == "FAILED" and not _NOT_COUNTED.search(point.failure_message)


def silence_of_job(
    points: Sequence[RecordedCheckpoint], now_ms: int, interval_ms: int, counts: Mapping[str, int], end: str
) -> Silence | None:
    """Return the silence of a running job from REST answers, or None if it completes checkpoints as it should.

    Args:
        points: The checkpoints, oldest first.
        now_ms: Time of the answers [epoch ms], or -1 if unknown.
        interval_ms: The checkpoint interval, or 0 if unknown.
        counts: Flink's number of checkpoints by outcome.
        end: The time of the answers as text.
    """
    completed = [point for point in points if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
    if not points or now_ms < 0:
        return None
    ends = [point.trigger_timestamp + point.end_to_end_duration for point in completed]
    since_ms = max(ends, default=points[0].trigger_timestamp)
    triggers = [point.trigger_timestamp for point in points] if interval_ms <= 0 else [0, interval_ms]
    begun = "" if completed else "the first one that is known, at "
    ever = "" if counts.get("completed", 1) else f", nor before (0 of {counts.get('total', 0)})"
    since, failed = f"{begun}{clock(since_ms)}{ever}", _failed_since_completion(points)
    silence = Silence(since, now_ms - since_ms, not completed, (), failed, end=end)
    return silence if silence.is_unusual(triggers, points) else None


def _failed_since_completion(points: Sequence[Checkpoint]) -> tuple[str, ...]:
    """Return the failure messages of the checkpoints behind the last completed one, without savepoints."""
    last = max((point.id for point in points if point.status == "COMPLETED"), default=-1)
    failed = (point for point in points if point.status == "FAILED" and point.id > last and not point.is_savepoint)
    return tuple(point.failure_message.rstrip(". ") for point in failed)


def clock(at_ms: int) -> str:
    """Format a time.  The date is left out for logs without dates, whose times are in the first days of 1970."""
    at = datetime.fromtimestamp(min(max(at_ms, 0), LAST_MS) / 1000, UTC)
    return f"{at:%H:%M:%S}" if at_ms < 365 * DAY_MS else f"{at:%Y-%m-%d %H:%M:%S}"

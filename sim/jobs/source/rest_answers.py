"""Typed answers of Flink's REST API, snapshots of answers, and short names of vertices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from sim.jobs.source.recorded_job import (
    RecordedCheckpoint,
    RecordedSubtask,
    RecordingError,
    RestObject,
    Text,
    normalize_unknown,
    summary,
)
from sim.model.schema.flink_keys import current_names, modelled_keys
from sim.model.series.columns import is_known
from sim.model.text import one_line

# ---- Short names of vertices.  Flink's names list all chained operators, and may be very long.
#
# ``Source: orders -> Map -> (Sink: Writer, Filter)`` becomes ``orders+map+writer+filter``, unique and usable as a YAML key.

MAX_NAME_CHARS = 40  # characters of a name, without the number that makes it unique
_OPEN, _CLOSE = "([{", ")]}"


def operators(vertex: str) -> list[str]:
    """Return the operators of a chain in order, branches one after the other.

    Arrows and commas inside brackets are part of an operator's name.
    """
    parts, depth, branches, start, i = [], 0, 0, 0, 0
    while i < len(vertex):
        step = 1
        if depth == 0 and vertex.startswith(" -> ", i):
            step = 4
            if vertex.startswith("(", i + 4):
                branches, step = branches + 1, 5
        elif depth == 0 and branches and vertex.startswith(", ", i):
            step = 2
        elif depth == 0 and branches and vertex[i] == ")":
            branches -= 1
        else:
            depth += (vertex[i] in _OPEN) - (vertex[i] in _CLOSE and depth > 0)
            i += 1
            continue
        parts.append(vertex[start:i])
        start = i = i + step
    parts.append(vertex[start:])
    return [part.strip() for part in parts if part.strip()]


def short_names(vertices: Sequence[str]) -> list[str]:
    """Return a unique short name for each vertex."""
    names: list[str] = []
    used: set[str] = set()
    for vertex in vertices:
        labels = [label for operator in operators(vertex) if (label := _label(operator))] or ["vertex"]
        name = "+".join(labels)
        if len(name) > MAX_NAME_CHARS:
            name = labels[0][:MAX_NAME_CHARS].rstrip("-") + (f"+{len(labels) - 1}" if len(labels) > 1 else "")
        names.append(next(unique for n in count(1) if (unique := name if n == 1 else f"{name}-{n}") not in used))
        used.add(names[-1])
    return names


def _label(operator: str) -> str:
    """Return a label for an operator: ``Source: Kafka Source`` -> ``kafka-source``; ``Calc[2](select=[a])`` -> ``calc-2``."""
    head = re.sub(r"^(?:Source|Sink|SinkWriter|SinkCommitter): *", "", re.sub(r"<[^>]*>", "", operator))
    head = re.sub(r"\[(\d+)\]", r" \1", head)
    head = re.split(r"[(\[{]", head)[0] or head
    return "-".join(re.findall(r"[a-z0-9_]+", head.lower()))


# ---- Snapshots: the answers about one job by path, and samples of metrics.
#
# Answers come from a live endpoint, a saved folder, or an archive of a history server.  Ids of jobs and vertices become
# parts of file names, so they are validated: both are AbstractIDs, 16 bytes in hexadecimal digits.

ID = "[0-9a-f]{32}"
_ID = re.compile(ID)
_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")  # ids of task managers have dots and colons
MAX_STEPS = 12
_NAMED_JOBS = frozenset({"overview"})  # names behind /jobs/ that are no jobs


def rows_of(answer: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in a list of an answer, or of a part of one, which any server may have sent."""
    return objects_in(answer.get(key) if isinstance(answer, dict) else None)


def objects_in(rows: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or [] if it is not a list."""
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def is_id(text: object) -> bool:
    """Return whether a text is the id of a job or of a vertex."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def is_path(path: str) -> bool:
    """Return whether a path such as ``/jobs/<id>/plan`` is a valid request, and safe as a file name."""
    first, *steps = path.split("/")
    if first or not 1 <= len(steps) <= MAX_STEPS or not all(_STEP.fullmatch(step) for step in steps):
        return False
    return steps[0] != "jobs" or len(steps) == 1 or is_id(steps[1]) or steps[1] in _NAMED_JOBS


def escapes_folder(name: str) -> bool:
    """Return whether a name in an archive would leave the folder that it is unpacked to."""
    steps = re.split(r"[/\\]", name)
    return ".." in steps or not steps[0] or ":" in steps[0] or "\x00" in name


MAX_NAMED = 8  # number of jobs in one message


@dataclass(frozen=True, slots=True)
class RestSnapshot:
    """The answers of a REST API about one job."""

    source: str  # where the answers were read, without credentials
    job: str  # id of the job, 32 hexadecimal digits
    answers: Mapping[str, Any]  # path ("/jobs/<id>/plan") -> JSON
    samples: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # time [epoch ms] -> path -> JSON, ascending
    missing: Mapping[str, str] = field(default_factory=dict)  # path of a request without an answer -> reason

    def of_job(self, path: str = "") -> Any:
        """Return an answer about the job, e.g. ``of_job("/plan")``, or None if it was not requested."""
        return self.answers.get(f"/jobs/{self.job}{path}")


HOW_TO_SAVE = (
    "`ckptsim import http://HOST:8081 --save FOLDER` saves all responses, `ckptsim explain FILE` reads a single one"
)


def list_names(names: Sequence[str], max_names: int = MAX_NAMED) -> str:
    """Return the first names, and the number of the others, as text."""
    return ", ".join(names[:max_names]) + (f" and {len(names) - max_names} more" if len(names) > max_names else "")


def job_ids_in(answers: Mapping[str, Any]) -> list[str]:
    """Return the ids of the jobs that answers are about."""
    return sorted({name for path in answers if path.startswith("/jobs/") and is_id(name := path.split("/")[2])})


def choose(ids: Sequence[str], prefix: str | None, source: str) -> str:
    """Return the id that begins with `prefix`, or the only one.  Raises `RecordingError` if there is none, or several."""
    chosen = [name for name in ids if name.startswith(prefix.lower())] if prefix else ids
    if len(chosen) == 1:
        return chosen[0]
    names = list_names(ids)
    if chosen:
        raise RecordingError(f"{source}: contains several jobs; select one with --job: {names}")
    named = repr(one_line(prefix or ""))
    if ids:
        raise RecordingError(f"{source}: contains no job {named}; jobs: {names}")
    expected = "expected a file jobs/ID.json with the response to /jobs/ID (ID: 32 hexadecimal digits)"
    raise RecordingError(f"{source}: contains no job: {expected}; {HOW_TO_SAVE}")


# ---- The answers of Flink's REST API as typed values.  Field names are Flink's; other fields are ignored, and not saved.
#
# Sources: the message classes of flink-runtime (`rest.messages.job`, `.checkpoints`), 1.11 to 2.3.  Later fields have a
# default.

MAX_PARALLELISM = 32768  # subtasks of a vertex: KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM
MAX_VERTICES = 1000  # a job has tens
CPU_TIME = "Status.JVM.CPU.Time"
"""Metric of a TaskManager: CPU time of its process [ns], which unlike busy time does not include blocked threads."""
Parallelism = Annotated[int, Field(ge=1, le=MAX_PARALLELISM)]
Id = Annotated[str, Field(pattern=rf"\A{ID}\z")]
Ms = Annotated[int, BeforeValidator(normalize_unknown), Field(ge=-1, le=10**15)]  # the year 33658
Count = Annotated[int, BeforeValidator(normalize_unknown), Field(ge=-1, le=10**9)]
OptionalNumber = Annotated[float | None, BeforeValidator(lambda value: value if is_known(value) else None)]


class Version(RestObject):
    """The answer to /config."""

    flink_version: Text = Field(alias="flink-version")


class Totals(RestObject):
    """The counters of a vertex or a subtask since its start, named as in `sim.jobs.source.rest_job`; -1 if unknown."""

    records_in: OptionalNumber = Field(default=None, alias="read-records")
    records_out: OptionalNumber = Field(default=None, alias="write-records")
    bytes_in: OptionalNumber = Field(default=None, alias="read-bytes")
    bytes_out: OptionalNumber = Field(default=None, alias="write-bytes")
    busy_ms: OptionalNumber = Field(default=None, alias="accumulated-busy-time")
    idle_ms: OptionalNumber = Field(default=None, alias="accumulated-idle-time")
    backpressured_ms: OptionalNumber = Field(default=None, alias="accumulated-backpressured-time")


class JobVertex(RestObject):
    """A vertex in the details of a job."""

    id: Id
    name: Text
    parallelism: Parallelism
    max_parallelism: int = Field(default=-1, alias="maxParallelism")
    metrics: Totals = Totals()


class PlanInput(RestObject):
    """An input of a vertex in the plan."""

    id: Id
    num: int = 0  # which gate of the task it is
    ship_strategy: Text | None = None
    exchange: Text = ""


class PlanNode(RestObject):
    """A vertex in the plan."""

    id: Id
    parallelism: int = -1
    description: Text = ""
    inputs: tuple[PlanInput, ...] = ()


class JobPlan(RestObject):
    """The plan of a job."""

    nodes: Annotated[tuple[PlanNode, ...], Field(min_length=1, max_length=MAX_VERTICES)]


class PlanAnswer(RestObject):
    """The answer to /jobs/:id/plan."""

    plan: JobPlan | None = None


class JobDetails(PlanAnswer):
    """The answer to /jobs/:id."""

    jid: Id
    name: Text = ""
    state: Text = ""
    start_time: Ms = Field(default=-1, alias="start-time")
    end_time: Ms = Field(default=-1, alias="end-time")
    duration: Ms = -1
    now: Ms = -1
    vertices: Annotated[tuple[JobVertex, ...], Field(min_length=1, max_length=MAX_VERTICES)]


class ExecutionConfig(RestObject):
    """The execution configuration of a job."""

    restart_strategy: Text = Field(default="", alias="restart-strategy")


class JobConfig(RestObject):
    """The answer to /jobs/:id/config."""

    execution_config: ExecutionConfig = Field(default=ExecutionConfig(), alias="execution-config")


class ConfigEntry(RestObject):
    """An entry of /jobmanager/config."""

    key: Text
    value: Text


def _read_options(entries: tuple[ConfigEntry, ...]) -> tuple[ConfigEntry, ...]:
    names, modelled = current_names(), modelled_keys()
    return tuple(row for row in entries if row.key in _OTHER_OPTIONS or names.get(row.key, row.key) in modelled)


ClusterOptions = Annotated[tuple[ConfigEntry, ...], AfterValidator(_read_options)]
"""The answer to /jobmanager/config: the options that a scenario models, and those that say something else about the job."""
_OTHER_OPTIONS = frozenset(
    {
        "execution.checkpointing.dir",
        "kubernetes.cluster-id",
        "state.checkpoints.dir",
        "yarn.application.id",
        "yarn.application.name",
        "yarn.appmaster.vcores",
    }
)


class TaskFailure(RestObject):
    """An entry of a job's exceptions."""

    timestamp: int = -1


class TaskFailures(RestObject):
    """The entries of a job's exceptions."""

    entries: tuple[TaskFailure, ...] = ()


class Exceptions(RestObject):
    """/jobs/:id/exceptions (since 1.13)."""

    exceptionHistory: TaskFailures = TaskFailures()  # noqa: N815 - Flink's name


class SchedulerState(RestObject):
    """A state of the adaptive scheduler in a rescale (SchedulerStateSpan)."""

    state: Text = ""
    duration: Ms = Field(default=-1, alias="durationInMillis")


class Rescale(RestObject):
    """/jobs/:id/rescales/details/:rescaleuuid, and a row of /jobs/:id/rescales/history, which has no states (FLIP-487, since 2.3)."""

    trigger_cause: Text | None = Field(default=None, alias="triggerCause")
    terminal_state: Text | None = Field(default=None, alias="terminalState")  # None: in progress
    states: tuple[SchedulerState, ...] | None = Field(default=None, alias="schedulerStates")


class CheckpointConfig(RestObject):
    """/jobs/:id/checkpoints/config; times in ms, a day-long interval means none (Long.MAX_VALUE)."""

    mode: Text = "exactly_once"
    interval: int = -1
    timeout: int | None = None
    min_pause: int | None = None
    max_concurrent: int | None = None
    tolerable_failed_checkpoints: int | None = None
    unaligned_checkpoints: bool | None = None
    aligned_checkpoint_timeout: int | None = None
    checkpoints_after_tasks_finish: bool | None = None
    state_backend: Text | None = None
    checkpoint_storage: Text | None = None
    state_changelog_enabled: bool | None = None
    changelog_periodic_materialization_interval: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether any value differs from the defaults, which stand for an unknown configuration."""
        return self != CheckpointConfig()


class RestoredCheckpoint(RestObject):
    """The checkpoint that a job was last restored from."""

    id: int


class LatestCheckpoints(RestObject):
    """The latest checkpoints of a job by outcome."""

    restored: RestoredCheckpoint | None = None


class StatsSummary(RestObject):
    """The values of a number over all completed checkpoints."""

    max: Ms = -1


class CheckpointSummary(RestObject):
    """Statistics over all completed checkpoints, including those no longer listed."""

    end_to_end_duration: StatsSummary = StatsSummary()


class CheckpointStatistics(RestObject):
    """The answer to /jobs/:id/checkpoints."""

    counts: dict[str, int] = Field(default_factory=dict)
    latest: LatestCheckpoints = LatestCheckpoints()
    summary: CheckpointSummary | None = None
    history: tuple[RecordedCheckpoint, ...] = ()

    @property
    def slowest_ms(self) -> int:
        """The duration of the slowest completed checkpoint of the job, or -1 if unknown."""
        return (self.summary.end_to_end_duration.max if self.summary else 0) or -1  # 0: none has completed


class TaskDetails(RestObject):
    """The answer to /jobs/:id/checkpoints/details/:n/subtasks/:vertex."""

    subtasks: tuple[RecordedSubtask, ...] = ()


class SubtaskDetails(RestObject):
    """A subtask with the TaskManager that it runs on."""

    subtask: int
    status: Text = ""
    host: Text = ""
    endpoint: Text = ""
    taskmanager_id: Text = Field(default="", alias="taskmanager-id")
    attempt: int = 0
    duration: Ms = -1
    metrics: Totals = Totals()
    status_duration: dict[str, Ms] = Field(default_factory=dict, alias="status-duration")


class VertexDetails(RestObject):
    """The answer to /jobs/:id/vertices/:vertex."""

    subtasks: tuple[SubtaskDetails, ...] = ()


class Hardware(RestObject):
    """The hardware of a TaskManager."""

    cpu_cores: Count = Field(default=-1, alias="cpuCores")


class TaskManagerInfo(RestObject):
    """A TaskManager of the cluster."""

    id: Text = ""
    path: Text = ""
    slots: Count = Field(default=-1, alias="slotsNumber")
    free_slots: Count = Field(default=-1, alias="freeSlots")
    hardware: Hardware = Hardware()

    @property
    def address(self) -> str:
        """The host in its path, ``pekko.tcp://flink@HOST:PORT/...``; empty if it runs in the JobManager's process."""
        authority = self.path.partition("://")[2].partition("/")[0]
        return authority.partition("@")[2].rpartition(":")[0]


class GarbageCollector(RestObject):
    """The collections of one garbage collector since the start of the JVM."""

    name: Text = ""
    count: Count = -1
    time: Ms = -1


class TaskManagerMetrics(RestObject):
    """The metrics in the answer to /taskmanagers/:id."""

    garbage_collectors: tuple[GarbageCollector, ...] = Field(default=(), alias="garbageCollectors")


class TaskManagerDetails(RestObject):
    """The answer to /taskmanagers/:id."""

    metrics: TaskManagerMetrics = TaskManagerMetrics()


class TaskManagersInfo(RestObject):
    """The answer to /taskmanagers."""

    taskmanagers: tuple[TaskManagerInfo, ...] = ()


T = TypeVar("T")


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # making one takes longer than using it


def parsed(kind: type[T], answer: Any, source: str, path: str) -> T:
    """Parse an answer.  Raises `RecordingError` if it is invalid."""
    try:
        value: T = _adapter(kind).validate_python(answer)
        return value
    except (ValidationError, RecursionError) as error:
        mistakes = summary(error) if isinstance(error, ValidationError) else "is nested too deeply"
        raise RecordingError(f"{source}: {path}: {mistakes}") from None


# ---- What is saved of answers: nothing but the fields above, so that what nobody reads, such as a password, is not passed on.

METRICS = (
    "numRecordsIn",
    "numRecordsOut",
    "numBytesIn",
    "numBytesOut",
    "numBuffersOut",
    "accumulateBusyTimeMs",
    "accumulateIdleTimeMs",
    "accumulateBackPressuredTimeMs",
    "Shuffle.Netty.Input.Buffers.inputQueueLength",
    "Shuffle.Netty.Input.Buffers.inputQueueSize",
    "Shuffle.Netty.Output.Buffers.outputQueueLength",
    "Shuffle.Netty.Output.Buffers.outputQueueSize",
)
"""Metrics that are sampled of each subtask."""
SAMPLED = re.compile(
    rf"\d+\.(?:{'|'.join(map(re.escape, METRICS))}|[^.]*Source[^.]*\.(?:numRecordsIn|numRecordsOut|pendingRecords))"
    r"|0\..*\.currentInput2Watermark"  # only where an operator has two inputs
    rf"|{re.escape(CPU_TIME)}"
)
_READ: tuple[tuple[str, Any], ...] = (
    ("/config", Version),
    (f"(?:/jobs/{ID})?/jobmanager/config", ClusterOptions),
    ("/taskmanagers", TaskManagersInfo),
    ("/taskmanagers/[^/]+", TaskManagerDetails),
    (f"/jobs/{ID}", JobDetails),
    (f"/jobs/{ID}/plan", PlanAnswer),
    (f"/jobs/{ID}/config", JobConfig),
    (f"/jobs/{ID}/exceptions", Exceptions),
    (rf"/jobs/{ID}/rescales/details/[^/]+", Rescale),
    (f"/jobs/{ID}/vertices/{ID}", VertexDetails),
    (f"/jobs/{ID}/checkpoints", CheckpointStatistics),
    (f"/jobs/{ID}/checkpoints/config", CheckpointConfig),
    (r"/jobs/[^/]+/checkpoints/details/\d+", RecordedCheckpoint),
    (r"/jobs/[^/]+/checkpoints/details/\d+/subtasks/[^/]+", TaskDetails),
)
"""(path of a request, the type of its answer)."""


def filter_response(path: str, answer: Any, source: str) -> Any:
    """Return what is read of an answer, or None if nothing is.  Raises `RecordingError` if it is not one of Flink's."""
    kind = next((kind for pattern, kind in _READ if re.fullmatch(pattern, path)), None)
    if kind is None:
        return None
    return _adapter(kind).dump_python(
        parsed(kind, answer, source, path), mode="json", by_alias=True, exclude_unset=True
    )


def filter_metrics(sample: Any) -> list[dict[str, Any]]:
    """Return what is read of sampled metrics: their numbers, by names without those of operators."""
    metrics = []
    for metric in objects_in(sample):
        name = str(metric.get("id"))
        if SAMPLED.fullmatch(name) and _is_number(metric.get("value")):
            number, _, short = name.partition(".")
            is_of_operator = short not in METRICS and name != CPU_TIME
            name = f"{number}..{short.rpartition('.')[2]}" if is_of_operator else name
            metrics.append({"id": name, "value": metric["value"]})
    return metrics


def _is_number(value: Any) -> bool:
    try:
        return float(value) is not None
    except (TypeError, ValueError):
        return False

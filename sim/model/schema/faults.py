"""The sections `faults:`, `restart:` and `rescale:`: their schema, traces of faults, and the conversion to the model."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, Tag

from sim.model import faults, units
from sim.model.cluster import Cluster
from sim.model.faults import GAPS, Target, When
from sim.model.job import Distribution
from sim.model.options import ValidationContext, attribute_of
from sim.model.schema.sections import (
    ONE_OR_LIST,
    Axis,
    DistributionSection,
    DurationField,
    OneOf,
    OnlyWith,
    Options,
    Section,
    build_distribution,
)
from sim.model.schema.text import DocumentPath, Reading
from sim.model.schema.trace import TraceError, TraceTable, file_signature
from sim.model.text import did_you_mean
from sim.model.units import MS, SECOND, UnitError, parse_number
from sim.model.value_types import Duration, Parallelism, Positive, Switch, ValueType, choice, either

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sim.model.job import Job


# ---- The sections: what goes wrong, and what the job does about it.
#
# Defaults live in the model: a key that is not written is None here.

ANY_TASK = "random-task"


def _subtask(value: object) -> tuple[str, int | None]:
    """'enrich[3]' -> ("enrich", 3); 'enrich' -> ("enrich", None)."""
    match = (
        re.fullmatch(r"([^\[\]]+?)\s*(?:\[\s*([0-9]{1,9})\s*\])?", value.strip()) if isinstance(value, str) else None
    )
    if match is None:
        raise ValueError(f"'{value}' names no task: write a vertex, or a subtask as 'vertex[3]'")
    return match[1], None if match[2] is None else int(match[2])


def _down_for(value: object) -> int:
    match = re.fullmatch(r"down-for\s+(\S.*)", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"expected 'down-for 30 s', not '{value}'")
    return units.parse_duration(match[1])


def _host(value: object) -> int | Literal["random"]:
    if value == "random":
        return "random"
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"expected the number of a task manager, counted from 0, or random, not '{value}'")
    return value


def _trace_value(value: object) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(
            f"expected a text or a number of the trace, not {'a list' if isinstance(value, list) else value}"
        )
    return float(value) if isinstance(value, Decimal) else value


SubtaskName = Annotated[
    tuple[str, int | None], ValueType(_subtask, {"type": "string", "examples": ["enrich[3]", "enrich", ANY_TASK]})
]
DownFor = Annotated[
    int, ValueType(_down_for, {"type": "string", "pattern": "^down-for .+$", "examples": ["down-for 30 s"]})
]
Host = Annotated[
    int | Literal["random"], ValueType(_host, {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["random"]}]})
]
TraceValue = Annotated[
    str | int | float, ValueType(_trace_value, {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]})
]


FAULT_KEYS = ("kill", "task-manager", "job-manager", "storage", "network", "slow", "commit")


class Fault(Section):
    """One of kill, task-manager, job-manager, storage, network, slow, commit; and one of at, every, trace."""

    ONE_OF: ClassVar = (
        OneOf(dict.fromkeys(FAULT_KEYS, "")),
        OneOf({"lasts": "", "lasts-column": ""}, is_needed=False),
        OneOf({"at": "", "from": ""}, is_needed=False),
    )
    ONLY_WITH: ClassVar = (
        OnlyWith(("factor",), ("slow",)),
        OnlyWith(
            ("lasts", "lasts-column"),
            ("storage", "network", "slow", "commit"),
            "other faults have no duration of their own",
        ),
        OnlyWith(("silent", "orderly"), ("task-manager",)),
        OnlyWith(("column", "lasts-column", "between", "unit", "where", "from"), ("trace",)),
    )

    kill: SubtaskName | None = None
    """An exception in 'vertex[3]', in all subtasks of 'vertex', or in a random-task; or the loss of a random task-manager."""
    task_manager: Host | None = None
    """Loss of a TaskManager: its index from 0, or random."""
    job_manager: DownFor | None = None
    """'down-for 30 s': no JobManager runs for this time; then a new one restarts the job from the latest completed checkpoint."""
    storage: Annotated[str, choice("outage")] | None = None
    """Outage of checkpoint storage: requests fail immediately, and clients retry after storage.retry.backoff."""
    network: Host | None = None
    """A TaskManager is disconnected from all others: its index from 0, or random."""
    slow: SubtaskName | None = None
    """Slows down 'vertex[1]', or all subtasks of 'vertex', by `factor`."""
    commit: str | None = None
    """Transactional sink whose commits fail for `lasts`; without `lasts`, only its next commit fails.
    See commit: {retries, gives-up} for what follows."""
    factor: Positive | None = None
    """Factor on service times."""
    lasts: Duration | None = None
    """Duration of the fault."""
    silent: Switch | None = None
    """task-manager: no connection is reset, so that only the heartbeat timeout detects the loss.  Default: false, peers notice it at once."""
    orderly: Switch | None = None
    """task-manager: graceful shutdown (SIGTERM), which deregisters at JobMaster and ResourceManager.  Default: false."""
    at: Duration | None = None
    """Time of the fault; with `trace`, of the first one."""
    every: DurationField | None = None
    """Recurring fault: time between two of them, as a duration or a distribution."""
    trace: str | None = Field(None, min_length=1)
    """CSV or Parquet file with the times of faults; the path is relative to the scenario."""
    column: str | None = None
    """Column with times (seconds or ISO 8601), relative to the earliest one."""
    between: Switch | None = None
    """Whether the column has times between faults instead.  Default: false."""
    unit: Duration | None = None
    """Unit of numbers in the column.  Default: 1 s."""
    from_: Duration | None = Field(None, alias="from")
    """Offset into the trace at which the run starts, from its first fault, after conversion by `unit`.  Default: the first fault happens
    at `at`."""
    where: dict[str, TraceValue] | None = None
    """Selects rows: {column: value}."""
    lasts_column: str | None = None
    """Column with the duration of each fault, in the same unit."""


class Restart(Options, of=(faults.Restart,)):
    """restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*"""


class Rescale(Section):
    """The job is restarted with another parallelism."""

    at: Duration
    """Time since the start of the run."""
    parallelism: dict[str, Parallelism] = Field(min_length=1)
    """New parallelism by vertex."""
    from_: Axis[Annotated[str, choice("checkpoint", "savepoint")]] | None = None
    """The latest completed checkpoint (default), or a savepoint that is taken first; one that fails is retried after 10 s."""


RescaleField = Annotated[
    Annotated[Rescale, Tag("one")] | Annotated[list[Rescale], Field(min_length=1), Tag("list")], ONE_OR_LIST
]


# ---- Times of faults from a CSV or Parquet file: when each happens, and how long it lasts if the file says so.


def read_faults(fault: Fault, folder: Path) -> list[tuple[int, int]]:
    """Return (time, duration or 0) [ns] of each row of a trace, sorted by time.

    The earliest fault happens `at` (default: at the start of the run).  With `from`, the run starts that long after the
    earliest fault, and earlier faults are dropped, possibly all.  Times between faults count from the start.
    """
    file, between = folder / (fault.trace or ""), bool(fault.between)
    where = tuple((fault.where or {}).items())
    rows = _read_rows(file, file_signature(file), fault.column or "", fault.lasts_column, where, fault.unit, between)
    begin_ns = (fault.at or 0) - (fault.from_ or 0) - (Fraction(0) if between else rows[0][0])
    times = [(round(at_ns + begin_ns), round(lasts_ns)) for at_ns, lasts_ns in rows]
    return [(at_ns, lasts_ns) for at_ns, lasts_ns in times if at_ns >= 0]


@lru_cache(maxsize=8)
def _read_rows(
    file: Path,
    stamp: tuple[int, int],
    column: str,
    lasts_column: str | None,
    where: tuple[tuple[str, Any], ...],
    unit_ns: int | None,
    between: bool,
) -> tuple[tuple[Fraction, Fraction], ...]:
    """Return (time, duration) [ns] of the rows that `where` selects, sorted.  Cached for the cells of a sweep.

    `stamp` only keys the cache: it changes when the file does.
    """
    faults, sum_ns = list[tuple[Fraction, Fraction]](), Fraction(0)
    table = TraceTable(file)
    table.require_columns(column, *([lasts_column] if lasts_column else []), *dict(where))
    table.detect_times(column, None if unit_ns is None else Fraction(unit_ns, SECOND))
    unit_ns = unit_ns or SECOND
    for line, row in table.rows:
        if any(not _same(row[name], value) for name, value in where) or not (row[column] or "").strip():
            continue
        if between:
            sum_ns += table.number(row[column], line, "number") * unit_ns
        at_ns = sum_ns if between else table.seconds(line, row) * SECOND
        lasts = table.number(row[lasts_column], line, "number") if lasts_column else Fraction(0)
        faults.append((at_ns, lasts * unit_ns))
    if not faults:
        raise TraceError(f"{file} has no faults in column '{column}'{' with these values' if where else ''}")
    return tuple(sorted(faults))


def _same(value: object, required: object) -> bool:
    try:
        return parse_number(str(value).strip()) == parse_number(str(required))
    except UnitError:
        return str(value).strip() == str(required)


# ---- Conversion to the model, with every check that needs the job or a file.

_Parallelisms = tuple[dict[str, int], ...]  # by vertex; initially, then after each rescaling

_MAX_SLOW_FACTOR = 1_000_000
_OUTAGES = (faults.StorageOutage, faults.NetworkOutage, faults.SlowTask, faults.FailedCommits)
"""Faults with a duration."""


def parallelisms(job: Job, rescale: Sequence[faults.Rescale]) -> _Parallelisms:
    """Return the parallelism of each vertex initially and after each rescaling."""
    rows = [{vertex.name: vertex.parallelism for vertex in job.vertices}]
    for change in rescale:
        rows.append(rows[-1] | {name: number for name, number in change.parallelism if name in rows[-1]})
    return tuple(rows)


def build_faults(
    sections: Sequence[Fault],
    subtasks: _Parallelisms,
    sinks: Collection[str],
    cluster: Cluster,
    reading: Reading,
    folder: Path,
) -> tuple[faults.Fault, ...]:
    """Return the faults in the order of the file; a trace with durations becomes a fault per row.

    `sinks`: the vertices that commit.
    """
    for i, section in enumerate(sections):
        if section.commit in subtasks[0] and section.commit not in sinks:
            reading.wrong(
                ("faults", i, "commit"),
                f"'{section.commit}' commits nothing: write commit: two-phase or as-connector there",
            )
    max_parallelism = max(max(row.values(), default=0) for row in subtasks)
    max_tasks = max(sum(row.values()) for row in subtasks)
    hosts = {"isolated": max_tasks, "spread": -(-max_parallelism // (cluster.slots or 1))}.get(cluster.placement, 1)
    max_subtasks = {name: max(row[name] for row in subtasks) for name in subtasks[0]}
    return tuple(
        fault
        for i, section in enumerate(sections)
        for fault in _faults(section, ValidationContext(("faults", i), reading, folder), max_subtasks, hosts)
    )


def _faults(section: Fault, at: ValidationContext, max_subtasks: Mapping[str, int], hosts: int) -> list[faults.Fault]:
    target = _target(section, at, max_subtasks, hosts)
    if target is None:
        return []
    if section.trace is None:
        if (section.at is None) == (section.every is None):
            at.error("write exactly one of at, every and trace")
            return []
        if section.every is not None:
            return [faults.Fault(target, When(every=_gap(section.every, at.child("every"))))]
        return [faults.Fault(target, When((section.at or 0,)))]
    if section.every is not None or section.column is None:
        at.error("a trace has a column, and its own times: remove every")
        return []
    try:
        rows = read_faults(section, at.folder)
    except TraceError as error:
        at.error(str(error), "trace")
        return []
    if section.lasts_column is None or not isinstance(target, _OUTAGES):
        return [faults.Fault(target, When(tuple(at_ns for at_ns, _ in rows)))] if rows else []
    return [faults.Fault(replace(target, lasts_ns=lasts_ns), When((at_ns,))) for at_ns, lasts_ns in rows if lasts_ns]


def _target(section: Fault, at: ValidationContext, max_subtasks: Mapping[str, int], hosts: int) -> Target | None:
    """Return what the fault happens to, or None after an error."""
    key = next(key for key in FAULT_KEYS if getattr(section, attribute_of(key)) is not None)
    written, lasts_ns = getattr(section, attribute_of(key)), section.lasts or 0
    _check_details(section, key, at)
    match written:
        case ("random-task" | "task-manager", None) if key == "kill":
            return faults.Kill() if written[0] == ANY_TASK else faults.TaskManagerLost()
        case (vertex, subtask) if not _exists(vertex, subtask, at.child(key), max_subtasks):
            return None
    if key == "commit" and not _exists(written, None, at.child(key), max_subtasks):
        return None
    if key in ("task-manager", "network") and written != "random" and written >= hosts:
        at.error(f"there is no task manager {written}: the placement makes {hosts}, counted from 0", key)
        return None
    host = None if written == "random" else written
    match key:
        case "kill":
            return faults.Kill(*written)
        case "task-manager":
            return faults.TaskManagerLost(host, bool(section.silent), bool(section.orderly))
        case "job-manager":
            return faults.JobManagerDown(written)
        case "storage":
            return faults.StorageOutage(lasts_ns)
        case "network":
            return faults.NetworkOutage(lasts_ns, host)
        case "slow":
            vertex, subtask = written
            return faults.SlowTask(vertex, section.factor or 1, section.lasts, subtask)
        case _:
            return faults.FailedCommits(written, section.lasts)


def _check_details(section: Fault, key: str, at: ValidationContext) -> None:
    """Report keys that are missing, and values that make no sense."""
    if key in ("storage", "network") and section.lasts is None and section.lasts_column is None:
        at.error(f"write lasts: the duration of the {key} outage")
    if section.lasts == 0:
        at.error("is 0: nothing would happen", "lasts")
    if section.factor is not None and section.factor > _MAX_SLOW_FACTOR:
        stop = "a task that makes no progress is not modelled; kill makes it fail and restart"
        at.error(f"is {section.factor}, more than {_MAX_SLOW_FACTOR}: {stop}", "factor")
    if section.unit == 0:
        at.error("is 0: all faults would happen at once", "unit")
    if key == "slow" and section.factor is None:
        at.error("write factor: how many times as long services take")
    if section.silent and section.orderly:
        at.error("contradicts silent: a graceful shutdown is reported to the JobManager", "orderly")


def _exists(vertex: str, subtask: int | None, at: ValidationContext, max_subtasks: Mapping[str, int]) -> bool:
    parallelism = max_subtasks.get(vertex)
    if parallelism is None:
        at.error(f"there is no vertex '{vertex}'{did_you_mean(vertex, list(max_subtasks))}")
    elif subtask is not None and subtask >= parallelism:
        at.error(f"'{vertex}' has {parallelism} subtasks, counted from 0: there is no {vertex}[{subtask}]")
    else:
        return True
    return False


def _gap(every: DistributionSection | int, at: ValidationContext) -> Distribution:
    """Build the distribution of the time from one fault to the next."""
    gap = build_distribution(every, Distribution(0), at)
    if gap.kind not in ("constant", *GAPS):
        at.error(f"is not supported between faults: write a duration, {either([*GAPS])}", gap.kind)
    if gap.mean == 0:
        at.error("must be more than 0: all faults would happen at once")
    elif gap.mean < MS:
        at.error("is less than 1 ms: the job would do nothing but restart")
    return gap


def build_rescale(written: Rescale | list[Rescale] | None, job: Job, reading: Reading) -> tuple[faults.Rescale, ...]:
    """Return the changes of parallelism, sorted by time.  Errors are added to `reading`."""
    vertices = {vertex.name: vertex for vertex in job.vertices}
    changes = []
    for path, change in rescale_sections(written):
        for name, parallelism in change.parallelism.items():
            vertex = vertices.get(name)
            at = ValidationContext((*path, "parallelism", name), reading)
            if vertex is None:
                at.error(f"there is no vertex '{name}'{did_you_mean(name, list(vertices))}")
            elif parallelism > vertex.max_parallelism:
                at.error(f"{parallelism} is more than the max-parallelism, {vertex.max_parallelism}")
            elif vertex.commit is not None or vertex.committer_of:
                at.error("rescaling of transactional sinks is not modelled: keep the parallelism")
            elif vertex.window is not None and vertex.window.time != "event":
                at.error("rescaling of processing-time timers is not modelled: keep the parallelism")
            elif vertex.source is not None:
                at.error("a source keeps its parallelism: each of its subtasks reads its own part of the log")
        is_savepoint = change.from_ == "savepoint"
        changes.append(faults.Rescale(change.at, tuple(change.parallelism.items()), savepoint=is_savepoint))
    return tuple(sorted(changes, key=lambda change: change.at_ns))


def rescale_sections(written: Rescale | list[Rescale] | None) -> list[tuple[DocumentPath, Rescale]]:
    """Return the changes of parallelism with their paths; `rescale:` is one section or a list of them."""
    if isinstance(written, list):
        return [(("rescale", i), change) for i, change in enumerate(written)]
    return [] if written is None else [(("rescale",), written)]

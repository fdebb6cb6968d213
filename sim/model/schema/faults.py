"""`faults:`, `restart:` and `rescale:` as they are written, traces of faults, and the model of them."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag, create_model

from sim.model import faults, units
from sim.model.catalog import At
from sim.model.cluster import Cluster
from sim.model.faults import (
    FAULT_KINDS,
    FailedCommits,
    FaultLaw,
    JobManagerDown,
    Kill,
    NetworkOutage,
    SlowTask,
    StorageOutage,
    Target,
    TaskManagerLost,
    When,
)
from sim.model.faults import Fault as FaultsFault
from sim.model.faults import Rescale as FaultsRescale
from sim.model.fields import Duration, Leaf, Number, Parallelism, Positive, Switch, choice
from sim.model.schema.sections import MAP_OR_TEXT, Axis, OneOf, OnlyWith, Options, Section, Texts
from sim.model.schema.text import DocumentPath, Reading
from sim.model.schema.trace import (
    TraceError,
    columns_and_rows,
    detect_clock,
    file_signature,
    parse_time,
    require_columns,
)
from sim.model.text import did_you_mean
from sim.model.units import MS, SECOND, UnitError, parse_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sim.model.job import Job


# ---- The `faults:`, `restart:` and `rescale:` sections as they are written: what goes wrong, and what the job does about it.
#
# Defaults live in the model: a key that is not given is None here.

ANY_TASK = "random-task"
ANY_TASK_MANAGER = "task-manager"


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


def _host(value: object) -> int:
    if value == "random":
        return -1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"expected the number of a task manager, counted from 0, or random, not '{value}'")
    return value


def _cell(value: object) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError(
            f"expected a text or a number of the trace, not {'a list' if isinstance(value, list) else value}"
        )
    return float(value) if isinstance(value, Decimal) else value


SubtaskName = Annotated[
    tuple[str, int | None], Leaf(_subtask, {"type": "string", "examples": ["enrich[3]", "enrich", ANY_TASK]})
]
DownFor = Annotated[int, Leaf(_down_for, {"type": "string", "pattern": "^down-for .+$", "examples": ["down-for 30 s"]})]
Host = Annotated[int, Leaf(_host, {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["random"]}]})]

Cell = Annotated[
    str | int | float, Leaf(_cell, {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "number"}]})
]


class FaultSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Duration
    """Between two faults."""
    cv: Number
    """Standard deviation over the mean."""


class FaultWeibull(Section):
    """Mean and shape: below 1 the rate of faults falls (bursts), above 1 it grows with age (wear-out)."""

    mean: Duration
    """Between two faults."""
    shape: Number
    """Below 1: faults come in bursts."""


class FaultTimes(Section):
    """Exactly one law, by its name."""

    HINTS: ClassVar[Texts] = {"constant": "write the value alone, without a mapping"}


_WRITTEN: dict[str, Any] = {"": Duration, "shape": FaultWeibull, "cv": FaultSpread}
_LAWS: dict[str, Any] = {
    kind.name: (_WRITTEN[kind.parameter] | None, Field(None, description=kind.sentence))
    for kind in FAULT_KINDS.values()
}
Every = create_model(
    "Every", __base__=FaultTimes, __doc__="Time from one fault to the next; exactly one.", __module__=__name__, **_LAWS
)


class Fault(Section):
    """One of kill, task-manager, job-manager, storage, network, slow, commit; and one of at, every, trace."""

    ONE_OF: ClassVar = (
        OneOf(dict.fromkeys(("kill", "task-manager", "job-manager", "storage", "network", "slow", "commit"), "")),
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
    """An exception in 'vertex[3]', in all of 'vertex', in a random-task; or the loss of a random task-manager."""
    task_manager: Host | None = None
    """A task manager whose process ends: a number, or random."""
    job_manager: DownFor | None = None
    """'down-for 30 s': no coordinator for so long, then a new one restarts the job."""
    storage: Annotated[str, choice("outage")] | None = None
    """Nothing written or read makes progress."""
    network: Host | None = None
    """A task manager is cut off from all others: a number, or random."""
    slow: SubtaskName | None = None
    """Services of 'vertex[1]', or of all of 'vertex', take `factor` times as long."""
    commit: str | None = None
    """A transactional sink whose commits fail while it lasts; without lasts the next one.  commit: {retries, gives-up} say what follows."""
    factor: Positive | None = None
    """Service times are multiplied by this."""
    lasts: Duration | None = None
    """How long it goes on."""
    silent: Switch | None = None
    """task-manager: it is missed when its heartbeats time out; default: its process is killed, and its peers notice at once."""
    orderly: Switch | None = None
    """task-manager: it ends in an orderly way (SIGTERM), and JobMaster and ResourceManager are told; default: false."""
    at: Duration | None = None
    """When; of a trace: when the first one happens."""
    every: Annotated[Annotated[Duration, Tag("text")] | Annotated[Every, Tag("map")], MAP_OR_TEXT] | None = None  # type: ignore[valid-type]
    """Again and again, so long after the one before: a duration, or a law of it."""
    trace: str | None = Field(None, min_length=1)
    """CSV or Parquet file of times, relative to the scenario."""
    column: str | None = None
    """Column of the trace: times (seconds or ISO 8601), counted from the earliest one."""
    between: Switch | None = None
    """The column holds the times from one fault to the next; default: false."""
    unit: Duration | None = None
    """Unit of the numbers in the column; default: 1 s."""
    from_: Duration | None = Field(None, alias="from")
    """Time in the trace at which the run starts, from its first fault, in time of the run (see unit). Default: the first fault happens at `at`."""
    where: dict[str, Cell] | None = None
    """Rows to take: column -> value."""
    lasts_column: str | None = None
    """Column of the trace: how long each one lasts, in the same unit."""


class Restart(Options, of=(faults.Restart,)):
    """restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*"""


class Rescale(Section):
    """The job is restarted with another parallelism."""

    at: Duration
    """Moment of the run."""
    parallelism: dict[str, Parallelism] = Field(min_length=1)
    """Vertex -> its new parallelism."""
    from_: Axis[Annotated[str, choice("checkpoint", "savepoint")]] | None = None
    """The latest completed checkpoint (default), or a savepoint taken for it; one that fails is requested again after 10 s."""


def _one_or_several(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


RescaleField = Annotated[
    Annotated[Rescale, Tag("one")] | Annotated[list[Rescale], Field(min_length=1), Tag("several")],
    Discriminator(_one_or_several),
]


# ---- Times of faults from a CSV or Parquet file: when each happens, and how long it lasts if the file says so.


def read_faults(fault: Fault, folder: FilePath) -> list[tuple[int, int]]:
    """(ns in the run, duration in ns or 0) of each row, in the order of time.

    Times count from the earliest one, which happens `at` (default: at the start of the run).  With `from` they count
    from so long after the earliest one, and there may be none.  Times between faults count from the start.
    """
    file, unit_ns, between = folder / (fault.trace or ""), fault.unit, bool(fault.between)
    where = tuple((fault.where or {}).items())
    rows = _selected(file, file_signature(file), fault.column or "", fault.lasts_column, where, unit_ns, between)
    begin_ns, earliest_ns = Fraction(fault.at or 0), Fraction(0) if between else rows[0][0]
    since_ns = [
        (round(at_ns - earliest_ns + begin_ns) - (fault.from_ or 0), round(lasts_ns)) for at_ns, lasts_ns in rows
    ]
    return [(at_ns, lasts_ns) for at_ns, lasts_ns in since_ns if at_ns >= 0]


@lru_cache(maxsize=8)
def _selected(
    file: FilePath,
    stamp: tuple[int, int],
    column: str,
    lasts_column: str | None,
    where: tuple[tuple[str, Any], ...],
    unit_ns: int | None,
    between: bool,
) -> tuple[tuple[Fraction, Fraction], ...]:
    """(time, duration) [ns] of the rows that `where` selects, in order, read once for the many cells of a sweep.

    `stamp` is not used here: another one is another file.
    """
    rows, sum_ns = list[tuple[Fraction, Fraction]](), Fraction(0)
    given_s = None if unit_ns is None else Fraction(unit_ns, SECOND)
    columns, written = columns_and_rows(file)
    require_columns(file, columns, [column, *([lasts_column] if lasts_column else []), *dict(where)])
    clock, read = detect_clock(column, written, given_s)
    unit_ns = unit_ns or SECOND
    for line, row in read:
        if any(not _same(row[name], value) for name, value in where) or not (row[column] or "").strip():
            continue
        if between:
            sum_ns += _number(row[column], file, line) * unit_ns
        at_ns = sum_ns if between else parse_time(clock, row[column], file, line) * SECOND
        lasts = _number(row[lasts_column], file, line) if lasts_column else Fraction(0)
        rows.append((at_ns, lasts * unit_ns))
    if not rows:
        raise TraceError(f"{file} has no faults in column '{column}'{' with these values' if where else ''}")
    return tuple(sorted(rows))


def _same(value: object, required: object) -> bool:
    try:
        return parse_number(str(value).strip()) == parse_number(str(required))
    except UnitError:
        return str(value).strip() == str(required)


def _number(value: object, file: FilePath, line: int) -> Fraction:
    try:
        return parse_number(str(value).strip())
    except UnitError:
        raise TraceError(f"{file}:{line}: '{value}' is not a number") from None


# ---- `faults:`, `restart:` and `rescale:` -> the model, and every check that needs the job or a file.

_Parallelisms = tuple[dict[str, int], ...]  # by vertex; of the job, then after each rescaling

_WHATS = ("kill", "task_manager", "job_manager", "storage", "network", "slow", "commit")
_MAX_SLOW = 1_000_000


def parallelisms(job: Job, rescale: Sequence[FaultsRescale]) -> _Parallelisms:
    """The parallelisms of the job in the course of the run."""
    rows = [{vertex.name: vertex.parallelism for vertex in job.vertices}]
    for change in rescale:
        rows.append(rows[-1] | {name: number for name, number in change.parallelism if name in rows[-1]})
    return tuple(rows)


def build_faults(
    given: Sequence[Fault],
    subtasks: _Parallelisms,
    sinks: Collection[str],
    cluster: Cluster,
    reading: Reading,
    folder: FilePath,
) -> tuple[FaultsFault, ...]:
    """The faults in the order of the file; a trace that says how long each one lasts becomes a fault per row.

    `sinks`: the vertices that commit.
    """
    for i, section in enumerate(given):
        if section.commit in subtasks[0] and section.commit not in sinks:
            nothing = f"'{section.commit}' commits nothing: write commit: two-phase or as-connector there"
            reading.wrong(("faults", i, "commit"), nothing)
    indices = max(max(row.values(), default=0) for row in subtasks)
    isolated = max(sum(row.values()) for row in subtasks)
    hosts = {"isolated": isolated, "spread": -(-indices // (cluster.slots or 1))}.get(cluster.placement, 1)
    most = {name: max(row[name] for row in subtasks) for name in subtasks[0]}
    return tuple(
        fault
        for i, section in enumerate(given)
        for fault in _faults(section, At(("faults", i), reading, folder), most, hosts)
    )


def _faults(given: Fault, at: At, job: Mapping[str, int], hosts: int) -> list[FaultsFault]:
    """`job`: vertices and how many subtasks they have at most."""
    what = next(name for name in _WHATS if getattr(given, name) is not None)
    _check_details(given, what, at)
    target = _target(given, what, at, job, hosts)
    if target is None:
        return []
    if given.trace is None:
        if (given.at is None) == (given.every is None):
            at.wrong("write exactly one of at, every and trace")
            return []
        when = When(every=_law(given.every, at.below("every"))) if given.at is None else When((given.at,))
        return [FaultsFault(target, when)]
    if given.every is not None or given.column is None:
        at.wrong("a trace has a column, and its own times: remove every")
        return []
    try:
        rows = read_faults(given, at.folder)
    except TraceError as error:
        at.wrong(str(error), "trace")
        return []
    if given.lasts_column is None or not isinstance(target, StorageOutage | NetworkOutage | SlowTask | FailedCommits):
        return [FaultsFault(target, When(tuple(at_ns for at_ns, _ in rows)))] if rows else []
    return [FaultsFault(replace(target, lasts_ns=lasts_ns), When((at_ns,))) for at_ns, lasts_ns in rows if lasts_ns]


def _check_details(given: Fault, what: str, at: At) -> None:
    """Report keys that are missing, and values that make no sense."""
    if what in ("storage", "network") and given.lasts is None and given.lasts_column is None:
        at.wrong(f"say how long the {what} outage lasts")
    if given.lasts == 0:
        at.wrong("is 0: nothing would happen", "lasts")
    if given.factor is not None and given.factor > _MAX_SLOW:
        at.wrong(f"is {given.factor}: at most {_MAX_SLOW}; for a task that stands still write kill", "factor")
    if given.unit == 0:
        at.wrong("is 0: all faults would come at once", "unit")
    if what == "slow" and given.factor is None:
        at.wrong("say how slow: factor")
    if given.silent and given.orderly:
        at.wrong("is written beside silent: one that ends in an orderly way says so", "orderly")


def _target(given: Fault, what: str, at: At, job: Mapping[str, int], hosts: int) -> Target | None:
    if what == "kill" and given.kill is not None:
        if given.kill == (ANY_TASK, None):
            return Kill()
        if given.kill == (ANY_TASK_MANAGER, None):
            return TaskManagerLost()
        return Kill(*given.kill) if _exists(given.kill, at.below("kill"), job) else None
    if what == "slow" and given.slow is not None:
        vertex, subtask = given.slow
        known = _exists(given.slow, at.below("slow"), job)
        return SlowTask(vertex, given.factor or 1, given.lasts, subtask) if known else None
    if what == "commit" and given.commit is not None:
        known = _exists((given.commit, None), at.below("commit"), job)
        return FailedCommits(given.commit, given.lasts) if known else None
    if what == "job_manager":
        return JobManagerDown(given.job_manager or 0)
    if what == "storage":
        return StorageOutage(given.lasts or 0)
    host = given.task_manager if what == "task_manager" else given.network
    if host is not None and host >= hosts:
        none = f"there is no task manager {host}: the placement makes {hosts}, counted from 0"
        at.wrong(none, what.replace("_", "-"))
        return None
    number = None if host is None or host < 0 else host
    lost = TaskManagerLost(number, bool(given.silent), bool(given.orderly))
    return lost if what == "task_manager" else NetworkOutage(given.lasts or 0, number)


def _exists(name: tuple[str, int | None], at: At, job: Mapping[str, int]) -> bool:
    vertex, subtask = name
    parallelism = job.get(vertex)
    if parallelism is None:
        at.wrong(f"there is no vertex '{vertex}'{did_you_mean(vertex, list(job))}")
    elif subtask is not None and subtask >= parallelism:
        at.wrong(f"'{vertex}' has {parallelism} subtasks, counted from 0: there is no {vertex}[{subtask}]")
    else:
        return True
    return False


def _law(given: FaultTimes | int | None, at: At) -> FaultLaw:
    law = FaultLaw(given) if isinstance(given, int) else None
    if isinstance(given, FaultTimes):
        named = {kind: value for kind in FAULT_KINDS.values() if (value := getattr(given, kind.name)) is not None}
        if len(named) != 1:
            *known, last = FAULT_KINDS
            at.wrong(f"write exactly one distribution: {', '.join(known)} or {last}")
        else:
            ((kind, value),) = named.items()
            parameters = {kind.parameter: float(getattr(value, kind.parameter))} if kind.parameter else {}
            law = FaultLaw(value.mean if kind.parameter else value, kind.name, **parameters)
    if law is None:
        return FaultLaw(1)
    if law.mean_ns == 0:
        at.wrong("faults without a time between them never end")
    elif law.mean_ns < MS:
        at.wrong("is less than 1 ms: the job would do nothing but restart")
    if not 0.1 <= law.shape <= 100 or not 0 < law.cv <= 100:
        at.wrong("must lie between 0.1 and 100" if law.kind == "weibull" else "cv must lie in (0, 100]", law.kind)
    return law


def build_rescale(given: Rescale | list[Rescale] | None, job: Job, reading: Reading) -> tuple[FaultsRescale, ...]:
    """The changes of parallelism, in the order of time.  Mistakes go to `reading`."""
    several = given if isinstance(given, list) else [given] if given is not None else []
    for i, change in enumerate(several):
        here: DocumentPath = ("rescale", i) if isinstance(given, list) else ("rescale",)
        for name, parallelism in change.parallelism.items():
            vertex = next((v for v in job.vertices if v.name == name), None)
            at = At((*here, "parallelism", name), reading)
            if vertex is None:
                at.wrong(f"there is no vertex '{name}'{did_you_mean(name, [v.name for v in job.vertices])}")
            elif parallelism > vertex.max_parallelism:
                at.wrong(f"{parallelism} is more than the max-parallelism, {vertex.max_parallelism}")
            elif vertex.commit is not None or vertex.committer_of:
                at.wrong("what a transactional sink has committed is not carried over: keep the parallelism")
            elif vertex.window is not None and vertex.window.time != "event":
                at.wrong("timers of processing time are not dealt out anew: keep the parallelism")
            elif vertex.source is not None:
                at.wrong("a source keeps its parallelism: each of its subtasks reads its own part of the log")
    rows = [
        FaultsRescale(change.at, tuple(change.parallelism.items()), savepoint=change.from_ == "savepoint")
        for change in several
    ]
    return tuple(sorted(rows, key=lambda row: row.at_ns))

"""`faults:`, `restart:` and `rescale:` -> the model, and every check that needs the job or a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sim.model.cluster import Cluster
from sim.model.faults import (
    FailedCommits,
    Fault,
    FaultLaw,
    JobManagerDown,
    Kill,
    NetworkOutage,
    Rescale,
    Restart,
    SlowTask,
    StorageOutage,
    Target,
    TaskManagerLost,
    When,
)
from sim.model.randomness.fault_times import FAULT_KINDS
from sim.scenario.faults import document as doc
from sim.scenario.faults.fault_trace import read_faults
from sim.scenario.grammar.options import built
from sim.scenario.job.trace import TraceError
from sim.scenario.text.problems import DocumentPath, Reading, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sim.model.job import Job

_Parallelisms = tuple[dict[str, int], ...]  # by vertex; of the job, then after each rescaling

_WHATS = ("kill", "task_manager", "job_manager", "storage", "network", "slow", "commit")
_MOST_SLOW = 1_000_000


def parallelisms(job: Job, rescale: Sequence[Rescale]) -> _Parallelisms:
    """The parallelisms of the job in the course of the run."""
    rows = [{vertex.name: vertex.parallelism for vertex in job.vertices}]
    for change in rescale:
        rows.append(rows[-1] | {name: number for name, number in change.parallelism if name in rows[-1]})
    return tuple(rows)


def build_faults(
    given: Sequence[doc.Fault], subtasks: _Parallelisms, sinks: Collection[str], cluster: Cluster, reading: Reading, folder: Path
) -> tuple[Fault, ...]:
    """The faults in the order of the file; a trace that says how long each one lasts becomes a fault per row.

    `sinks`: the vertices that commit.
    """
    for i, section in enumerate(given):
        if section.commit in subtasks[0] and section.commit not in sinks:
            reading.wrong(("faults", i, "commit"), f"'{section.commit}' commits nothing: write commit: two-phase or as-connector there")
    indices = max(max(row.values(), default=0) for row in subtasks)
    isolated = max(sum(row.values()) for row in subtasks)
    hosts = {"isolated": isolated, "spread": -(-indices // (cluster.slots or 1))}.get(cluster.placement, 1)
    most = {name: max(row[name] for row in subtasks) for name in subtasks[0]}
    return tuple(fault for i, section in enumerate(given) for fault in _faults(section, ("faults", i), most, hosts, reading, folder))


def _faults(given: doc.Fault, here: DocumentPath, job: Mapping[str, int], hosts: int, reading: Reading, folder: Path) -> list[Fault]:
    """`job`: vertices and how many subtasks they have at most."""
    what = next(name for name in _WHATS if getattr(given, name) is not None)
    _check_details(given, what, here, reading)
    target = _target(given, what, here, job, hosts, reading)
    if target is None:
        return []
    if given.trace is None:
        if (given.at is None) == (given.every is None):
            reading.wrong(here, "write exactly one of at, every and trace")
            return []
        return [
            Fault(target, When() if given.at is None else When((given.at,)))
            if given.every is None
            else Fault(target, When(every=_law(given.every, here, reading)))
        ]
    if given.every is not None or given.column is None:
        reading.wrong(here, "a trace has a column, and its own times: remove every")
        return []
    try:
        rows = read_faults(given, folder)
    except TraceError as error:
        reading.wrong((*here, "trace"), str(error))
        return []
    if given.lasts_column is None or not isinstance(target, StorageOutage | NetworkOutage | SlowTask | FailedCommits):
        return [Fault(target, When(tuple(at for at, _ in rows)))] if rows else []
    return [Fault(replace(target, lasts_ns=lasts), When((at,))) for at, lasts in rows if lasts]


def _check_details(given: doc.Fault, what: str, here: DocumentPath, reading: Reading) -> None:
    """Keys that are missing, and values that make no sense."""
    if what in ("storage", "network") and given.lasts is None and given.lasts_column is None:
        reading.wrong(here, f"say how long the {what} outage lasts")
    if given.lasts == 0:
        reading.wrong((*here, "lasts"), "is 0: nothing would happen")
    if given.factor is not None and given.factor > _MOST_SLOW:
        reading.wrong((*here, "factor"), f"is {given.factor}: at most {_MOST_SLOW}; for a task that stands still write kill")
    if given.unit == 0:
        reading.wrong((*here, "unit"), "is 0: all faults would come at once")
    if what == "slow" and given.factor is None:
        reading.wrong(here, "say how slow: factor")
    if given.silent == given.orderly == "true":
        reading.wrong((*here, "orderly"), "is written beside silent: one that ends in an orderly way says so")


def _target(given: doc.Fault, what: str, here: DocumentPath, job: Mapping[str, int], hosts: int, reading: Reading) -> Target | None:
    if what == "kill" and given.kill is not None:
        if given.kill == (doc.ANY_TASK, None):
            return Kill()
        if given.kill == (doc.ANY_TASK_MANAGER, None):
            return TaskManagerLost()
        return Kill(*given.kill) if _exists(given.kill, (*here, "kill"), job, reading) else None
    if what == "slow" and given.slow is not None:
        vertex, subtask = given.slow
        known = _exists(given.slow, (*here, "slow"), job, reading)
        return SlowTask(vertex, given.factor or 1, given.lasts, subtask) if known else None
    if what == "commit" and given.commit is not None:
        known = _exists((given.commit, None), (*here, "commit"), job, reading)
        return FailedCommits(given.commit, given.lasts) if known else None
    if what == "job_manager":
        return JobManagerDown(given.job_manager or 0)
    if what == "storage":
        return StorageOutage(given.lasts or 0)
    host = given.task_manager if what == "task_manager" else given.network
    if host is not None and host >= hosts:
        reading.wrong((*here, what.replace("_", "-")), f"there is no task manager {host}: the placement makes {hosts}, counted from 0")
        return None
    number = None if host is None or host < 0 else host
    lost = TaskManagerLost(number, given.silent == "true", given.orderly == "true")
    return lost if what == "task_manager" else NetworkOutage(given.lasts or 0, number)


def _exists(name: tuple[str, int | None], here: DocumentPath, job: Mapping[str, int], reading: Reading) -> bool:
    vertex, subtask = name
    parallelism = job.get(vertex)
    if parallelism is None:
        reading.wrong(here, f"there is no vertex '{vertex}'{did_you_mean(vertex, list(job))}")
    elif subtask is not None and subtask >= parallelism:
        reading.wrong(here, f"'{vertex}' has {parallelism} subtasks, counted from 0: there is no {vertex}[{subtask}]")
    else:
        return True
    return False


def _law(given: doc.FaultTimes | int | None, here: DocumentPath, reading: Reading) -> FaultLaw:
    law = FaultLaw(given) if isinstance(given, int) else None
    if isinstance(given, doc.FaultTimes):
        named = {kind: value for kind in FAULT_KINDS.values() if (value := getattr(given, kind.name)) is not None}
        if len(named) != 1:
            *known, last = FAULT_KINDS
            reading.wrong((*here, "every"), f"write exactly one distribution: {', '.join(known)} or {last}")
        else:
            ((kind, value),) = named.items()
            parameters = {kind.parameter: float(getattr(value, kind.parameter))} if kind.parameter else {}
            law = FaultLaw(value.mean if kind.parameter else value, kind.name, **parameters)
    if law is None:
        return FaultLaw(1)
    if law.mean_ns == 0:
        reading.wrong((*here, "every"), "faults without a time between them never end")
    elif law.mean_ns < 1_000_000:
        reading.wrong((*here, "every"), "is less than 1 ms: the job would do nothing but restart")
    if not 0.1 <= law.shape <= 100 or not 0 < law.cv <= 100:
        reading.wrong((*here, "every", law.kind), "must lie between 0.1 and 100" if law.kind == "weibull" else "cv must lie in (0, 100]")
    return law


def build_restart(given: doc.Restart | None, reading: Reading) -> Restart:
    return built(Restart, given, ("restart",), reading)


def build_rescale(given: doc.Rescale | list[doc.Rescale] | None, job: Job, reading: Reading) -> tuple[Rescale, ...]:
    """The changes of parallelism, in the order of time.  Mistakes go to `reading`."""
    several = given if isinstance(given, list) else [given] if given is not None else []
    for i, change in enumerate(several):
        here: DocumentPath = ("rescale", i) if isinstance(given, list) else ("rescale",)
        for name, parallelism in change.parallelism.items():
            vertex = next((v for v in job.vertices if v.name == name), None)
            place = (*here, "parallelism", name)
            if vertex is None:
                reading.wrong(place, f"there is no vertex '{name}'{did_you_mean(name, [v.name for v in job.vertices])}")
            elif parallelism > vertex.max_parallelism:
                reading.wrong(place, f"{parallelism} is more than the max-parallelism, {vertex.max_parallelism}")
            elif vertex.commit is not None or vertex.committer_of:
                reading.wrong(place, "what a transactional sink has committed is not carried over: keep the parallelism")
            elif vertex.window is not None and vertex.window.time != "event":
                reading.wrong(place, "timers of processing time are not dealt out anew: keep the parallelism")
            elif vertex.source is not None:
                reading.wrong(place, "a source keeps its parallelism: each of its subtasks reads its own part of the log")
    rows = [Rescale(change.at, tuple(change.parallelism.items()), savepoint=change.from_ == "savepoint") for change in several]
    return tuple(sorted(rows, key=lambda row: row.at_ns))

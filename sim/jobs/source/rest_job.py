"""A job as described by Flink's REST API: its vertices with short names and inputs, checkpoints, counters, and options.

This module parses and validates the answers of a snapshot.  The `infer` modules derive a scenario from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedTask, RecordingError
from sim.jobs.source.rest_answers import (
    CPU_TIME,
    HOW_TO_SAVE,
    CheckpointConfig,
    CheckpointStatistics,
    ClusterOptions,
    Exceptions,
    GarbageCollector,
    JobConfig,
    JobDetails,
    JobPlan,
    PlanAnswer,
    Rescale,
    RestSnapshot,
    TaskDetails,
    TaskManagerDetails,
    TaskManagerInfo,
    TaskManagersInfo,
    Version,
    VertexDetails,
    objects_in,
    operators,
    parsed,
    short_names,
)
from sim.model.schema.flink_keys import with_current_names
from sim.model.text import one_line

Numbers = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RestInput:
    """An input of a vertex."""

    upstream: str  # name of the upstream vertex
    ship: str  # Flink's ship strategy, for example HASH; "" if unknown
    is_pipelined: bool = True  # False for a blocking exchange, which is read after the upstream vertex has finished


@dataclass(frozen=True, slots=True)
class RestVertex:
    """A vertex of the job graph: a chain of operators."""

    id: str
    name: str  # short name, used in scenarios
    chain: tuple[str, ...]  # Flink's names of the operators
    parallelism: int
    max_parallelism: int  # -1 if unknown
    inputs: tuple[RestInput, ...]
    description: str = ""  # description of its operators in the plan, with the sizes of windows


class JobGraph:
    """A job with vertices in topological order."""

    vertices: tuple[RestVertex, ...]

    def vertex(self, name: str) -> RestVertex:
        return next(vertex for vertex in self.vertices if vertex.name == name)

    def readers(self, name: str) -> list[RestVertex]:
        """Return the vertices directly downstream of a vertex."""
        return self._readers[name]

    @cached_property
    def _readers(self) -> Mapping[str, list[RestVertex]]:
        readers: dict[str, list[RestVertex]] = {vertex.name: [] for vertex in self.vertices}
        for vertex in self.vertices:
            for upstream in {edge.upstream for edge in vertex.inputs}:
                readers[upstream].append(vertex)
        return readers


# ---- Records through each subtask, and use of its thread, in a period of time: differences of Flink's counters.
#
# Samples of metrics are preferred.  The period is from the first to the last *change* after the last restart, because
# Flink caches metrics for some seconds, so consecutive samples may be equal.  Without samples, the totals since the start
# of a subtask are used.
#
# Flink's averages (`busyTimeMsPerSecond`, `*PerSecond`) cover the last 60 s and are refreshed every 5 s.  Differences
# of counters and of `accumulate*TimeMs` have no such lag.  The three `accumulate*TimeMs` of a subtask add up to its
# running time, whenever they were fetched.

COUNTERS = {
    "records_in": "numRecordsIn",
    "records_out": "numRecordsOut",
    "bytes_in": "numBytesIn",
    "bytes_out": "numBytesOut",
    "busy_ms": "accumulateBusyTimeMs",
    "idle_ms": "accumulateIdleTimeMs",
    "backpressured_ms": "accumulateBackPressuredTimeMs",
}
"""Quantity -> metric.  The last three add up to the running time."""
_TIMES = ("busy_ms", "idle_ms", "backpressured_ms")
MIN_SAMPLE_DISTANCE_MS = 500  # if a running time grew by less, Flink returned a cached value
# TimerGauge adds a long wait to a subtask's times only every 5 s, so a shorter period is not a measurement.
MIN_MEASURED_MS = 5000

_Sample = tuple[int, dict[str, list[float]]]  # time [epoch ms], metric -> value of each subtask


class Series(NamedTuple):
    """The sampled metrics of a vertex, at the times when they changed."""

    times_ms: npt.NDArray[np.int64]  # [epoch ms]
    values: Mapping[str, Numbers]  # metric -> value by time and subtask; NaN if it is unknown


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """The records, bytes and thread times of a vertex's subtasks in a period of time."""

    subtasks: Mapping[str, Numbers]  # quantity (of `COUNTERS`, or "elapsed_ms") -> by subtask; NaN if not measured
    source: str  # origin of the values, as text
    begun_ms: int = 0  # start of the period [epoch ms]
    ended_ms: int = 0  # end of the period [epoch ms]

    def total(self, quantity: str) -> float:
        """Return the sum over the subtasks, or NaN if the quantity was not measured for all of them."""
        values = self.subtasks[quantity]
        return float(values.sum()) if len(values) else math.nan

    @property
    def bytes_per_record(self) -> float:
        """The mean size of an input record [bytes], or NaN if there are none or it was not measured."""
        records = self.total("records_in")
        return self.total("bytes_in") / records if records > 0 else math.nan

    @property
    def elapsed_s(self) -> float:
        """The mean period of a subtask [s]."""
        return float(self.subtasks["elapsed_ms"].mean()) / 1000

    def share(self, quantity: str) -> float:
        """Return a time as a share of the elapsed time, over all subtasks."""
        return self.total(quantity) / self.total("elapsed_ms")

    def rates(self, quantity: str) -> Numbers:
        """Return the rate per second of each subtask; of a time in ms, a thousand times its share of the elapsed time."""
        return self.subtasks[quantity] / self.subtasks["elapsed_ms"] * 1000

    def per_second(self, quantity: str) -> float:
        """Return the rate per second of the vertex: the sum over its subtasks, or NaN if it was not measured."""
        rates = self.rates(quantity)
        return float(rates.sum()) if len(rates) else math.nan


class RestJob(JobGraph):
    """The job of a snapshot.  Properties raise `RecordingError` if an answer that they need is missing or invalid."""

    def __init__(self, snapshot: RestSnapshot) -> None:
        self.snapshot = snapshot
        self.job: JobDetails = self._answer(JobDetails, f"/jobs/{snapshot.job}")
        self.vertices = self._vertices()

    @cached_property
    def flink_version(self) -> str:
        return self._answer(Version, "/config").flink_version if "/config" in self.snapshot.answers else ""

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The cluster options that the JobManager reports, by current name, without options that the program sets."""
        for path in (f"/jobs/{self.snapshot.job}/jobmanager/config", "/jobmanager/config"):
            if path in self.snapshot.answers:
                return with_current_names({row.key: row.value for row in self._answer(ClusterOptions, path)})
        return {}

    @cached_property
    def job_config(self) -> JobConfig:
        return self._job_answer(JobConfig, "/config", JobConfig())

    @cached_property
    def checkpoint_config(self) -> CheckpointConfig:
        """The checkpoint configuration; not known if it was not requested or the job does not take checkpoints."""
        return self._job_answer(CheckpointConfig, "/checkpoints/config", CheckpointConfig())

    @cached_property
    def task_managers(self) -> tuple[TaskManagerInfo, ...]:
        """The TaskManagers of the cluster; empty if they were not requested."""
        path = "/taskmanagers"
        return self._answer(TaskManagersInfo, path).taskmanagers if path in self.snapshot.answers else ()

    @cached_property
    def collectors(self) -> Mapping[str, tuple[GarbageCollector, ...]]:
        """The garbage collectors of each TaskManager whose details were requested."""
        start = "/taskmanagers/"
        paths = [path for path in self.snapshot.answers if path.startswith(start)]
        return {
            path.removeprefix(start): self._answer(TaskManagerDetails, path).metrics.garbage_collectors
            for path in paths
        }

    @cached_property
    def cores_used(self) -> Mapping[str, float]:
        """The number of cores that the process of each TaskManager used: CPU time / elapsed time.

        Flink refreshes a metric only every few seconds, so only the times at which a value changes are used.  TaskManagers
        with too few changes are left out.
        """
        changes: dict[str, list[tuple[int, float]]] = {}
        for now_ms, sample in self.snapshot.samples.items():
            for path, values in sample.items():
                if path.startswith("/taskmanagers/") and (time_ns := _cpu_time_ns(values)) is not None:
                    changes_of_manager = changes.setdefault(path.split("/")[2], [])
                    if not changes_of_manager or changes_of_manager[-1][1] != time_ns:
                        changes_of_manager.append((now_ms, time_ns))
        # The age of the first value is unknown, so the period begins with the second one.
        spans = {name: (values[1], values[-1]) for name, values in changes.items() if len(values) > 2}
        return {
            name: (last[1] - first[1]) / (last[0] - first[0]) / 1e6
            for name, (first, last) in spans.items()
            if last[1] > first[1]
        }

    @cached_property
    def failures_ms(self) -> tuple[int, ...]:
        """The times of task failures in ascending order [epoch ms]; empty if the answer is missing or invalid."""
        with suppress(RecordingError):
            entries = self._job_answer(Exceptions, "/exceptions", Exceptions()).exceptionHistory.entries
            return tuple(sorted(entry.timestamp for entry in entries if entry.timestamp >= 0))
        return ()

    @cached_property
    def rescales(self) -> tuple[Rescale, ...]:
        """The rescales of the adaptive scheduler whose details are known."""
        start = f"/jobs/{self.snapshot.job}/rescales/details/"
        return tuple(self._answer(Rescale, path) for path in self.snapshot.answers if path.startswith(start))

    @cached_property
    def restored(self) -> RecordedCheckpoint | None:
        """The checkpoint that the job was last restored from, or None if there is none, or its details are unknown."""
        restored = self.statistics.latest.restored
        return next((point for point in self.checkpoints if restored is not None and point.id == restored.id), None)

    @cached_property
    def statistics(self) -> CheckpointStatistics:
        return self._job_answer(CheckpointStatistics, "/checkpoints", CheckpointStatistics())

    @cached_property
    def checkpoints(self) -> tuple[RecordedCheckpoint, ...]:
        """The checkpoints whose details are known, by ascending id.  Their subtasks are keyed by short vertex name."""
        start = f"/jobs/{self.snapshot.job}/checkpoints/details/"
        numbers = (path.removeprefix(start) for path in self.snapshot.answers if path.startswith(start))
        checkpoints = (self._checkpoint(start + number) for number in numbers if number.isdecimal())
        return tuple(sorted(checkpoints, key=lambda checkpoint: checkpoint.id))

    @cached_property
    def details(self) -> Mapping[str, VertexDetails]:
        """The details of each vertex; empty details if they were not requested."""
        return {
            vertex.name: self._job_answer(VertexDetails, f"/vertices/{vertex.id}", VertexDetails())
            for vertex in self.vertices
        }

    @cached_property
    def series(self) -> Mapping[str, Series]:
        """The sampled metrics of each vertex."""
        return {vertex.name: self._series(vertex) for vertex in self.vertices}

    @cached_property
    def flows(self) -> Mapping[str, Flows]:
        """The flows of each vertex, from samples if at least two of them differ, otherwise from the totals since the start."""
        return {
            vertex.name: _flows_from_samples(self.series[vertex.name]) or self.flows_since_start(vertex)
            for vertex in self.vertices
        }

    def _series(self, vertex: RestVertex) -> Series:
        """Return the sampled metrics of a vertex at the times when they changed.

        Names of operator metrics are shortened to a dot and their last part, for example `.pendingRecords`.  A sample is
        dated by the running time of the subtasks if possible, because Flink may have cached it; otherwise by the time at
        which it was fetched.
        """
        path = f"/jobs/{self.snapshot.job}/vertices/{vertex.id}/metrics"
        changed = _without_repetitions(
            (time_ms, _subtask_values(vertex, path, sample[path]))
            for time_ms, sample in self.snapshot.samples.items()
            if path in sample
        )
        clocks = [fmean(_running_times_ms(metrics) or [math.nan]) for _, metrics in changed]
        if any(math.isnan(clock) for clock in clocks) or any(after <= before for before, after in pairwise(clocks)):
            changed = changed[1:]  # the first sample may have been cached for an unknown time
            times_ms = [time_ms for time_ms, _ in changed]
        else:
            start_ms = min((time_ms - clock for (time_ms, _), clock in zip(changed, clocks, strict=True)), default=0)
            times_ms = [round(clock + start_ms) for clock in clocks]
        unknown = [math.nan] * vertex.parallelism
        names = dict.fromkeys(name for _, metrics in changed for name in metrics)
        values = {name: np.array([metrics.get(name, unknown) for _, metrics in changed]) for name in names}
        return Series(np.array(times_ms, dtype=np.int64), values)

    def flows_since_start(self, vertex: RestVertex) -> Flows:
        """Return the flows since the start of each subtask, from its totals."""
        subtasks = sorted(self.details[vertex.name].subtasks, key=lambda subtask: subtask.subtask)
        totals = {
            name: np.array([_known_total(getattr(subtask.metrics, name)) for subtask in subtasks]) for name in COUNTERS
        }
        passed_ms = np.array([max(subtask.duration, 1) for subtask in subtasks], dtype=float)
        begun_ms = self.job.start_time
        source = "totals since its start (/jobs/:id/vertices/:id)"
        return Flows(_with_elapsed(totals, passed_ms), source, begun_ms, begun_ms + self.job.duration)

    def _checkpoint(self, path: str) -> RecordedCheckpoint:
        details = self.snapshot.answers[path]
        tasks = {
            vertex.name: RecordedTask(subtasks=self._answer(TaskDetails, subtasks).subtasks)
            for vertex in self.vertices
            if (subtasks := f"{path}/subtasks/{vertex.id}") in self.snapshot.answers
        }
        details = {**details, "tasks": tasks} if isinstance(details, dict) else details
        return parsed(RecordedCheckpoint, details, self.snapshot.source, path)

    def _vertices(self) -> tuple[RestVertex, ...]:
        """Return the vertices in topological order.  Their parallelism is from the job details, their inputs from the plan.

        Raises `RecordingError` if the two contradict each other, or if the job has a cycle.
        """
        short = short_names([vertex.name for vertex in self.job.vertices])
        names = {vertex.id: name for vertex, name in zip(self.job.vertices, short, strict=True)}
        if len(names) < len(short):
            raise RecordingError(f"{self.snapshot.source}: the job has a duplicate vertex")
        plan = self._plan()
        edges = {node.id: node.inputs for node in plan.nodes}
        descriptions = {node.id: node.description for node in plan.nodes}
        if missing := [vertex.name for vertex in self.job.vertices if vertex.id not in edges]:
            raise RecordingError(
                f"{self.snapshot.source}: the plan of the job lacks its vertex '{one_line(missing[0])}'"
            )
        if unknown := [edge.id for inputs in edges.values() for edge in inputs if edge.id not in names]:
            raise RecordingError(
                f"{self.snapshot.source}: the plan has an edge from vertex {unknown[0]}, which is not in the job"
            )
        vertices = {
            names[vertex.id]: RestVertex(
                vertex.id,
                names[vertex.id],
                tuple(operators(vertex.name)),
                vertex.parallelism,
                vertex.max_parallelism,
                tuple(
                    RestInput(
                        names[edge.id], (edge.ship_strategy or "").upper(), "blocking" not in edge.exchange.lower()
                    )
                    for edge in sorted(edges[vertex.id], key=lambda edge: edge.num)
                ),
                descriptions[vertex.id],
            )
            for vertex in self.job.vertices
        }
        sorter = TopologicalSorter(
            {name: [edge.upstream for edge in vertex.inputs] for name, vertex in vertices.items()}
        )
        try:
            sorter.prepare()
        except CycleError:
            raise RecordingError(
                f"{self.snapshot.source}: the job has a cycle (an iteration), which is not modelled"
            ) from None
        ordered: list[RestVertex] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=[*vertices].index)
            ordered += [vertices[name] for name in ready]
            sorter.done(*ready)
        return tuple(ordered)

    def _plan(self) -> JobPlan:
        """Return the plan, from its own answer or from the job details.  Raises `RecordingError` if both are missing."""
        if (plan := self._job_answer(PlanAnswer, "/plan", self.job).plan or self.job.plan) is not None:
            return plan
        raise RecordingError(
            f"{self.snapshot.source}: the plan of the job is unknown: /jobs/{self.snapshot.job}/plan is missing"
        )

    def _answer(self, kind: type[T], path: str) -> T:
        """Return the parsed answer to a request.  Raises `RecordingError` if it is missing or invalid."""
        if path not in self.snapshot.answers:
            why = self.snapshot.missing.get(path)
            reason = f"({why})" if why else f"(in a folder, the file {path[1:]}.json); {HOW_TO_SAVE}"
            raise RecordingError(f"{self.snapshot.source}: the answer to {path} is missing {reason}")
        return parsed(kind, self.snapshot.answers[path], self.snapshot.source, path)

    def _job_answer(self, kind: type[T], path: str, default: T) -> T:
        """Return the parsed answer to a request below `/jobs/JOB`, or `default` if it is missing."""
        full_path = f"/jobs/{self.snapshot.job}{path}"
        return self._answer(kind, full_path) if full_path in self.snapshot.answers else default


def _cpu_time_ns(values: Any) -> float | None:
    """Return the CPU time [ns] in a sample of a TaskManager's metrics, or None if the platform does not report it."""
    for metric in objects_in(values):
        if metric.get("id") == CPU_TIME:
            with suppress(TypeError, ValueError):
                time_ns = float(metric["value"])
                return time_ns if 0 < time_ns < 1e18 else None
    return None


def _subtask_values(vertex: RestVertex, path: str, answer: object) -> dict[str, list[float]]:
    """Return the value of each subtask, by metric.  Raises `RecordingError` if the answer is invalid.

    It is parsed without pydantic, because jobs with thousands of subtasks have millions of values.
    """
    if not isinstance(answer, list):
        raise RecordingError(f"{path}: is not a list of metrics")
    values: dict[str, list[float]] = {}
    for metric in answer:
        if not isinstance(metric, dict):
            raise RecordingError(f"{path}: a metric is not an object")
        number, _, name = str(metric.get("id")).partition(".")
        if number.isdecimal() and len(number) < 6 and int(number) < vertex.parallelism:
            short = name if "." not in name or name.startswith("Shuffle.") else "." + name.rpartition(".")[2]
            values.setdefault(short, [math.nan] * vertex.parallelism)[int(number)] = _parse_metric(metric.get("value"))
    return values


def _without_repetitions(samples: Iterable[_Sample]) -> list[_Sample]:
    """Return the samples that are new for every subtask.

    Flink queries each TaskManager separately, so a sample may contain new and cached values.
    """
    kept: list[_Sample] = []
    for time_ms, metrics in samples:
        if kept:
            pairs = zip(_running_times_ms(kept[-1][1]), _running_times_ms(metrics), strict=False)
            steps = [now - before for before, now in pairs]
            if metrics == kept[-1][1] or (
                steps and all(step > -MIN_SAMPLE_DISTANCE_MS for step in steps) and min(steps) < MIN_SAMPLE_DISTANCE_MS
            ):
                continue
        if metrics:
            kept.append((time_ms, metrics))
    return kept


def _running_times_ms(metrics: Mapping[str, list[float]]) -> list[float]:
    """Return the running time of each subtask (busy + idle + back-pressured time), or NaN if it was not measured."""
    times = [metrics.get(COUNTERS[key], [math.nan]) for key in _TIMES]
    return [sum(values) for values in zip(*times, strict=False)]


def _flows_from_samples(sampled: Series) -> Flows | None:
    """Return the flows between the first and the last sample, or None if the samples cover too little time."""
    counters = {quantity: sampled.values[name] for quantity, name in COUNTERS.items() if name in sampled.values}
    if "records_in" not in counters:
        return None
    complete = np.flatnonzero(~np.isnan(counters["records_in"]).any(axis=1))
    # a restart resets the counters to 0
    falls = [np.diff(counters[key][complete], axis=0) < 0 for key in ("records_in", "records_out") if key in counters]
    restarts = np.flatnonzero(np.any(falls, axis=(0, 2)))
    since = complete[restarts[-1] + 1 :] if len(restarts) else complete
    if len(since) < 2:
        return None
    first, last = since[0], since[-1]
    begun_ms, ended_ms = int(sampled.times_ms[first]), int(sampled.times_ms[last])
    if ended_ms - begun_ms < MIN_MEASURED_MS:
        return None
    growth = {quantity: counter[last] - counter[first] for quantity, counter in counters.items()}
    passed_ms = np.full_like(growth["records_in"], ended_ms - begun_ms)
    source = f"metrics that changed {len(since) - 1} times in {(ended_ms - begun_ms) / 1000:.0f} s"
    return Flows(_with_elapsed(growth, passed_ms), source, begun_ms, ended_ms)


def _with_elapsed(growth: dict[str, Numbers], passed_ms: Numbers) -> dict[str, Numbers]:
    """Return the growth of all counters by subtask, with the elapsed time: that of the running time, if it is plausible."""
    subtasks = dict.fromkeys(COUNTERS, np.full_like(passed_ms, math.nan)) | growth
    running_ms = subtasks["busy_ms"] + subtasks["idle_ms"] + subtasks["backpressured_ms"]  # NaN if one is missing
    # The sum of the times lacks at most the current wait.  If it is far from the elapsed time, it is not used.
    is_plausible = (passed_ms / 2 < running_ms) & (running_ms < passed_ms * 2)
    return subtasks | {"elapsed_ms": np.where(is_plausible, running_ms, passed_ms)}


def _known_total(total: float | None) -> float:
    return math.nan if total is None or total < 0 else total


def _parse_metric(value: object) -> float:
    """Return the value of a metric, or NaN if it is not a finite number."""
    if not isinstance(value, str) or not value:
        return math.nan
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan

"""A job as described by Flink's REST API: its vertices with short names and inputs, checkpoints, and options.

This module parses and validates the answers of a snapshot.  The `infer` modules derive a scenario from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

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
from sim.model.text import one_line

Series = dict[str, list[tuple[int, list[float]]]]
"""Metric -> list of (time [epoch ms], value of each subtask).  A value is NaN if it is unknown."""

T = TypeVar("T")
D = TypeVar("D")


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


class RestJob:
    """The job of a snapshot.  Properties raise `RecordingError` if an answer that they need is missing or invalid."""

    def __init__(self, snapshot: RestSnapshot) -> None:
        self.snapshot = snapshot
        self.job: JobDetails = self._answer(JobDetails, f"/jobs/{snapshot.job}")
        self.vertices = self._vertices()
        # Cache of `sim.jobs.infer.flows.series`, which parses millions of numbers.
        self.series_by_vertex: dict[str, Series] = {}

    @cached_property
    def flink_version(self) -> str:
        return self._answer(Version, "/config").flink_version if "/config" in self.snapshot.answers else ""

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The cluster options that the JobManager reports, without options that the program sets."""
        for path in (f"/jobs/{self.snapshot.job}/jobmanager/config", "/jobmanager/config"):
            if path in self.snapshot.answers:
                return {option.key: option.value for option in self._answer(ClusterOptions, path)}
        return {}

    @cached_property
    def job_config(self) -> JobConfig:
        return self._job_answer(JobConfig, "/config", JobConfig())

    @cached_property
    def checkpoint_config(self) -> CheckpointConfig | None:
        """The checkpoint configuration, or None if it was not requested or the job does not take checkpoints."""
        return self._job_answer(CheckpointConfig, "/checkpoints/config", None)

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

    def _job_answer(self, kind: type[T], path: str, default: D) -> T | D:
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

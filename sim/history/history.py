"""The history of a real job's checkpoints, from any source: what Flink counted of each, and what is known of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sim.history.garbage import Garbage
from sim.recordings.infer.windows.plan import PlannedWindow
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.recordings.source.rest.answers import CheckpointConfig
from sim.recordings.source.rest.job import RestVertex
from sim.recordings.source.silence import Silence
from sim.units import MS, format_duration

SubtaskId = tuple[str, int]
"""Vertex (our short name), index."""


class ThreadShares(NamedTuple):
    """Shares of a task thread's time since it was started."""

    busy: float
    back_pressured: float
    busy_ms: float = 0.0  # since then; 0: not known


@dataclass(frozen=True, eq=False)
class History:
    """The history of a job's checkpoints: `checkpoints` and `vertices` as `sim.recordings` reads them.  Times are epoch milliseconds."""

    name: str  # of the job, or of the file
    flink_version: str  # empty: not known
    vertices: tuple[RestVertex, ...]  # upstream first; empty: the source does not tell
    checkpoints: tuple[RecordedCheckpoint, ...]  # oldest first; without subtasks where Flink kept none
    checkpoint_config: CheckpointConfig | None = None
    task_managers: Mapping[SubtaskId, str] = field(default_factory=dict)  # where each subtask runs now
    served: Mapping[SubtaskId, float] = field(default_factory=dict)  # records it read since it was started
    threads: Mapping[SubtaskId, ThreadShares] = field(default_factory=dict)
    windows: Mapping[str, PlannedWindow] = field(default_factory=dict)  # by vertex
    failures_ms: tuple[int, ...] = ()  # when tasks of the job failed
    kept: int | None = None  # checkpoints whose statistics the JobManager keeps (web.checkpoints.history)
    restored: int = 0  # how often the job began again from a checkpoint
    counted: int = 0  # checkpoints that the job has had, as Flink counts them; 0: not known
    garbage: Mapping[str, Garbage] = field(default_factory=dict)  # by task manager
    age_ms: int = 0  # how long the job has run; 0: not known
    silence: Silence | None = None  # None: checkpoints complete as often as they should, or it is not known
    slowest_ms: int = -1  # of all completed checkpoints, those that Flink has forgotten included; -1: not known
    partial: tuple[str, ...] = ()  # what the source is and lacks, if it is one answer only
    remarks: tuple[str, ...] = ()  # what else the source shows of the job, in sentences
    contention: str = ""  # that threads wait for cores, in a sentence; empty: they do not, or it is not known

    @property
    def overtakes(self) -> bool:
        return self.checkpoint_config is not None and bool(self.checkpoint_config.unaligned_checkpoints)

    @property
    def aligned_for_ns(self) -> int:
        """After so long barriers may overtake, where they may at all."""
        timeout = None if self.checkpoint_config is None else self.checkpoint_config.aligned_checkpoint_timeout
        return (timeout or 0) * MS

    @property
    def strategy(self) -> str:
        """The kind of barriers, as a simulation of the job labels it; empty: not known."""
        if self.checkpoint_config is None:
            return ""
        if not self.overtakes:
            return "aligned"
        return f"aligned-timeout {format_duration(self.aligned_for_ns)}" if self.aligned_for_ns else "unaligned"

    @property
    def is_on_disk(self) -> bool:
        """Whether RocksDB keeps the state."""
        return self.checkpoint_config is not None and "RocksDB" in (self.checkpoint_config.state_backend or "")

    @cached_property
    def detailed(self) -> tuple[RecordedCheckpoint, ...]:
        """The checkpoints whose subtasks are known."""
        return tuple(point for point in self.checkpoints if point.tasks)

    @cached_property
    def usual(self) -> tuple[RecordedCheckpoint, ...]:
        """Completed ones without savepoints and the first, which uploads everything: they tell how long a checkpoint takes."""
        done = [point for point in self.checkpoints if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
        return tuple(point for point in done if not point.is_savepoint and point.id != 1)

    def checkpoint(self, number: int) -> RecordedCheckpoint | None:
        return next((point for point in self.checkpoints if point.id == number), None)

    def vertex(self, name: str) -> RestVertex:
        return next(vertex for vertex in self.vertices if vertex.name == name)

    def readers(self, name: str) -> list[RestVertex]:
        return [vertex for vertex in self.vertices if any(edge.upstream == name for edge in vertex.inputs)]


def subtasks_of(point: RecordedCheckpoint) -> dict[SubtaskId, RecordedSubtask]:
    """Every subtask that the statistics of a checkpoint name."""
    return {(vertex, subtask.index): subtask for vertex, task in point.tasks.items() for subtask in task.subtasks}


def durations_ms(history: History) -> list[float]:
    """The durations of its usual checkpoints, oldest first."""
    return [float(point.end_to_end_duration) for point in history.usual]

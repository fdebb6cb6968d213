"""A real Flink job that was watched: its graph, checkpoints and metrics, from any kind of source.

Fields have the names, units and meaning of Flink's REST API (`/jobs/:id/checkpoints/details/:id` and its subtasks).  Times are epoch
milliseconds, durations milliseconds, sizes bytes, -1 is unknown.  Other fields of the API are ignored.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sim.recordings.source.graph import RecordedVertex
from sim.stand_ins import is_known

Number = Annotated[int, Field(ge=-(2**63), le=2**63)] | Annotated[float, Field(allow_inf_nan=False)]
_Sample = int | float  # NaN where nothing was sampled


def without_stand_in(value: object) -> object:
    """-1 in place of whatever stands for an unknown number.  An integer beyond a long is no value of Flink, and is left to be refused."""
    if isinstance(value, int) and abs(value) > 2**63:
        return value
    return -1 if value in (None, "", "NaN") or (isinstance(value, int | float) and not is_known(value)) else value


Known = Annotated[int, BeforeValidator(without_stand_in), Field(ge=-1, le=10**16)]
"""A time, duration, size or count; -1: unknown."""
LARGEST_ID = 10**12  # of a checkpoint


class _RestObject(BaseModel):
    """An object of Flink's REST API."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RecordedAlignment(_RestObject):
    """The alignment of a subtask."""

    duration: Known = -1
    processed: Known = 0
    persisted: Known = 0


class Phases(_RestObject):
    """The phases of one subtask's snapshot."""

    sync: Known = -1
    async_: Known = Field(default=-1, alias="async")


class RecordedSubtask(_RestObject):
    """The acknowledgement of a subtask, or its absence (`pending_or_failed`)."""

    index: Known
    status: Literal["completed", "pending_or_failed"]
    ack_timestamp: Known = -1
    end_to_end_duration: Known = -1
    start_delay: Known = -1
    alignment: RecordedAlignment = RecordedAlignment()
    checkpoint: Phases = Phases()
    checkpointed_size: Known = -1
    state_size: Known = -1
    unaligned_checkpoint: bool = False
    aborted: bool = False


class RecordedTask(_RestObject):
    """The subtasks of a vertex in one checkpoint."""

    subtasks: tuple[RecordedSubtask, ...] = ()


class RecordedCheckpoint(_RestObject):
    """A checkpoint with its subtasks."""

    id: Annotated[int, Field(ge=0, le=LARGEST_ID)]
    status: Literal["IN_PROGRESS", "COMPLETED", "FAILED"]
    is_savepoint: bool = False
    checkpoint_type: str = "CHECKPOINT"
    trigger_timestamp: Known
    latest_ack_timestamp: Known = -1
    end_to_end_duration: Known = -1  # last acknowledgement - trigger; failed: failure - trigger
    checkpointed_size: Known = -1
    state_size: Known = -1
    processed_data: Known = 0
    persisted_data: Known = 0
    alignment_buffered: Known = 0
    num_subtasks: Known = 0
    num_acknowledged_subtasks: Known = 0
    failure_message: Annotated[str, BeforeValidator(lambda text: text or "")] = ""  # null: the checkpoint did not fail
    tasks: dict[str, RecordedTask] = Field(default_factory=dict)  # vertex -> task


class Checkpoints(_RestObject):
    """The checkpoints of a job.  `counts` includes triggers that were refused before they got an id; `list` does not."""

    counts: dict[str, int]
    list: tuple[RecordedCheckpoint, ...]


class RecordedJob(_RestObject, ABC):
    """A job that was watched.  Subclasses add its configuration."""

    name: str
    family: str = ""
    flink_version: str
    started_ms: Number
    ended_ms: Number
    final_state: str = ""
    checkpoints: Checkpoints
    failures: Known = 0  # of the job, as far as the source tells
    ran_ms: Known = 0  # the time in which it failed so often
    metrics: dict[str, dict[str, tuple[_Sample | tuple[_Sample | str | None, ...] | None, ...]]] = Field(default_factory=dict)

    @property
    @abstractmethod
    def vertices(self) -> Sequence[RecordedVertex]:
        """Upstream first."""

    def checkpoints_table(self) -> pd.DataFrame:
        """A row per checkpoint, savepoints included; Flink's columns."""
        return checkpoints_table(self.checkpoints.list)

    def subtasks_table(self) -> pd.DataFrame:
        """A row per checkpoint and subtask; the nested REST fields flattened as in our own `subtasks` table."""
        return subtasks_table(self.checkpoints.list)

    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        """Samples of a metric: a row per time [ms], a column per subtask; NaN: not sampled.  Empty: the metric is unknown."""
        table = self.metrics.get(vertex, {})
        times, samples = table.get("t", ()), table.get(name, ())
        rows = [sample if isinstance(sample, tuple) else () for sample in samples]
        width = max((len(row) for row in rows), default=0)
        rows += [()] * (len(times) - len(rows))  # a metric that ended with its tasks
        padded = [[*row, *[None] * (width - len(row))] for row in rows[: len(times)]]
        numbers = [[_number(value) for value in row] for row in padded]
        samples_of = pd.DataFrame(numbers, index=pd.Index([_number(time) for time in times], name="t"), columns=range(width), dtype=float)
        return samples_of[samples_of.index.notna()]


class Import(NamedTuple):
    """An imported document, with its question, its comments, and the features that it lacks."""

    document: dict[str, Any]
    question: str
    comments: list[str]
    not_modelled: list[str]


class ConfiguredJob(RecordedJob):
    """A recording that holds the configuration of its job, of a format in `sim.recordings.reading.FORMATS`."""

    @abstractmethod
    def to_document(self, *, compare: bool = False) -> Import:
        """The scenario of its configuration; `compare`: with three kinds of barriers."""

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """A value for each independent choice of the configuration."""

    @abstractmethod
    def observed_values(self) -> Iterable[tuple[str, str, float]]:
        """(quantity, vertex, value) of the whole run, all but those of single checkpoints."""

    @abstractmethod
    def predicted_values(self, result: Any) -> Iterable[tuple[str, str, float]]:
        """The same of a simulated run, where `sim.evidence.predicted` does not compute it."""

    @abstractmethod
    def history(self) -> Any:
        """As `sim.history.reading.history_of` has it."""


def checkpoints_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """A row per checkpoint, savepoints included; Flink's columns."""
    columns = [name for name in RecordedCheckpoint.model_fields if name != "tasks"]
    return pd.DataFrame([[getattr(row, name) for name in columns] for row in checkpoints], columns=columns)


def subtasks_table(checkpoints: Iterable[RecordedCheckpoint]) -> pd.DataFrame:
    """A row per checkpoint and subtask; the nested REST fields flattened as in our own `subtasks` table."""
    rows = [
        {
            "id": checkpoint.id,
            "vertex": vertex,
            "index": subtask.index,
            "status": subtask.status,
            "ack_timestamp": subtask.ack_timestamp,
            "end_to_end_duration": subtask.end_to_end_duration,
            "start_delay": subtask.start_delay,
            "alignment_duration": subtask.alignment.duration,
            "alignment_processed": subtask.alignment.processed,
            "alignment_persisted": subtask.alignment.persisted,
            "sync_duration": subtask.checkpoint.sync,
            "async_duration": subtask.checkpoint.async_,
            "checkpointed_size": subtask.checkpointed_size,
            "state_size": subtask.state_size,
            "unaligned_checkpoint": subtask.unaligned_checkpoint,
            "aborted": subtask.aborted,
        }
        for checkpoint in checkpoints
        for vertex, task in checkpoint.tasks.items()
        for subtask in task.subtasks
    ]
    return pd.DataFrame(rows, columns=SUBTASK_COLUMNS)


def _number(value: object) -> float:
    """The number in a foreign value; NaN: it is none."""
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else math.nan


_LARGEST = 1e30
SUBTASK_COLUMNS = [
    "id", "vertex", "index", "status", "ack_timestamp", "end_to_end_duration", "start_delay", "alignment_duration", "alignment_processed",
    "alignment_persisted", "sync_duration", "async_duration", "checkpointed_size", "state_size", "unaligned_checkpoint", "aborted",
]  # fmt: skip

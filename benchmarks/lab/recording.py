"""A recording of our own recorder: a configured run of a real job, with events that its operators logged.

Its file is JSON, plain or compressed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from benchmarks.lab.config import Configuration, Node
from sim.jobs.source.recorded_job import (
    MAX_RECORDING_BYTES,
    ConfiguredJob,
    ImportedScenario,
    Number,
    RecordingError,
    parse,
    summary,
)
from sim.model.text import one_line

if TYPE_CHECKING:
    from sim.jobs.evidence.prediction import RunValue
    from sim.jobs.history.history import History

FORMAT = "flink-lab/1"
_MAX_SAMPLE = 1e30


def _to_number(value: object) -> float:
    """Return a sample as a float, or NaN if it is not a number."""
    return float(value) if isinstance(value, int | float) and abs(value) < _MAX_SAMPLE else math.nan


class JobTimes(BaseModel):
    """The times of a recorded job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    timestamps: dict[str, int] = Field(default_factory=dict)  # status -> time when the job last entered it; 0: never


class Events(BaseModel):
    """The events of one kind that the job itself has logged."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cols: tuple[str, ...]
    rows: tuple[tuple[str | bool | Number | None, ...], ...]

    @model_validator(mode="after")
    def _is_rectangular(self) -> Self:
        if any(len(row) != len(self.cols) for row in self.rows):
            raise ValueError("a row has not as many values as there are columns")
        return self


class Recording(ConfiguredJob):
    """A recording of our own recorder."""

    format: Literal["flink-lab/1"]
    started_ms: Number
    ended_ms: Number
    final_state: str = ""
    config: Configuration
    job: JobTimes = JobTimes()
    events: dict[str, Events] = Field(default_factory=dict)
    metrics: dict[str, dict[str, tuple[int | float | tuple[int | float | str | None, ...] | None, ...]]] = Field(
        default_factory=dict
    )

    @property
    def vertices(self) -> Sequence[Node]:
        return self.config.nodes

    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        table = self.metrics.get(vertex, {})
        times, samples = table.get("t", ()), table.get(name, ())
        rows = [sample if isinstance(sample, tuple) else () for sample in samples]
        width = max((len(row) for row in rows), default=0)
        rows += [()] * (len(times) - len(rows))  # the tasks with the metric finished before the end of the recording
        padded = [[*row, *[None] * (width - len(row))] for row in rows[: len(times)]]
        numbers = [[_to_number(value) for value in row] for row in padded]
        samples_of = pd.DataFrame(
            numbers, index=pd.Index([_to_number(time) for time in times], name="t"), columns=range(width), dtype=float
        )
        return samples_of[samples_of.index.notna()]

    def to_document(self) -> ImportedScenario:
        from benchmarks.lab.scenario import to_document

        return to_document(self)

    def settings(self) -> Mapping[str, Any]:
        from benchmarks.lab.settings import settings_of

        return settings_of(self.config, self.flink_version)

    def observed_values(self) -> Iterator[RunValue]:
        from benchmarks.lab.ends import of_the_end
        from benchmarks.lab.failures import of_failures
        from benchmarks.lab.series import of_counted_series

        yield from of_counted_series(self)
        yield from of_the_end(self)
        yield from of_failures(self)

    def predicted_values(self, result: Any) -> Iterator[RunValue]:
        from benchmarks.lab.predicted_ends import of_ends_and_failures

        return of_ends_and_failures(result)

    def history(self) -> History:
        from benchmarks.lab.history import history_of_recording

        return history_of_recording(self)

    def event_table(self, kind: str) -> pd.DataFrame:
        events = self.events.get(kind, Events(cols=(), rows=()))
        return pd.DataFrame(list(events.rows), columns=list(events.cols))


def read(path: str | Path, *, largest_bytes: int = MAX_RECORDING_BYTES) -> Recording:
    """The recording in a `.json` or `.json.gz` file; the content tells which."""
    path = Path(path)
    return recording_of(parse(path, largest_bytes=largest_bytes), path)


def recording_of(document: Any, path: Path) -> Recording:
    """The recording in a document, checked; `path` is for messages."""
    if not isinstance(document, dict) or "format" not in document:
        raise RecordingError(f"{path}: is JSON, but no recording of a Flink job: it has no field 'format'")
    if document["format"] != FORMAT:
        raise RecordingError(
            f"{path}: has the format {one_line(repr(document['format']), 60)}; this version reads '{FORMAT}'"
        )
    try:
        return Recording.model_validate(document)
    except ValidationError as error:
        raise RecordingError(f"{path}: {summary(error)}") from None

"""Observations of a real job as a tidy table: a row per quantity, vertex and checkpoint or sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from sim.jobs.infer.draft import Inference
from sim.jobs.infer.flows import series
from sim.jobs.infer.log import infer_log
from sim.jobs.infer.scenario import infer_job
from sim.jobs.source.job_log import JobLog
from sim.jobs.source.recorded_job import ConfiguredJob, RecordedJob, RecordedVertex, check_graph, has_readers
from sim.jobs.source.rest_answers import RestSnapshot, parsed
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.quantities import QUANTITIES, quantities
from sim.model.schema.job import upstream_of
from sim.model.series.tables import is_known

# ---- Tables of observations, tidy: a row per quantity, vertex and checkpoint or sample.  `sim.model.quantities` says what each is.

WHOLE_RUN = -1
"""Number in place of a checkpoint: a row about the whole run, or a sample of a series."""
COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")

Observation = tuple[str, str, int, bool, float]  # quantity, vertex ("": the whole job), checkpoint, first, value
RunValue = tuple[str, str, float]  # quantity, vertex, value of the whole run


def table_of(rows: Iterable[Observation]) -> pd.DataFrame:
    """A table with `COLUMNS`, of fixed types even without rows."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).astype(types)
    return table.assign(unit=table["quantity"].map({name: quantity.unit for name, quantity in QUANTITIES.items()}))


def values_of(values: Iterable[RunValue]) -> pd.DataFrame:
    """A table with `COLUMNS`, of values about the whole run."""
    return table_of([(quantity, vertex, WHOLE_RUN, False, float(value)) for quantity, vertex, value in values])


# ---- Observations between checkpoints: rates, shares of time, queues, latency.
#
# All values come after `SETTLED_AFTER`.  Rates and shares are growths of counters over whole checkpoints (`steady`), so
# they are numbers of the whole run:  Flink's own meters cover 60 s.  The other quantities have a row per sample.
# Flink's counters are sampled, and may be seconds old: where a recording knows exact counts, they come first.
#
# Simulated runs are judged by the same rules.  The first quarter is left out: queues fill and a JVM warms up.  The rest
# is cut to whole checkpoints, from trigger to trigger.  A job that stands still for seconds in every checkpoint has a
# meaningful rate only over whole ones.

_SHARES = {
    "busyTimeMsPerSecond": "accumulateBusyTimeMs",
    "idleTimeMsPerSecond": "accumulateIdleTimeMs",
    "backPressuredTimeMsPerSecond": "accumulateBackPressuredTimeMs",
}
_QUEUES = {
    "outputQueueLength": "Output.Buffers.outputQueueLength",
    "outputQueueSize": "Output.Buffers.outputQueueSize",
    "inputQueueLength": "Input.Buffers.inputQueueLength",
    "inputQueueSize": "Input.Buffers.inputQueueSize",
}


def of_series(
    recording: RecordedJob, counted: Callable[[RecordedVertex], float | None] = lambda _: None
) -> Iterator[RunValue]:
    """Values of the whole run and its samples.  `counted`: records per ms of a vertex as its job has counted them; None: it has not."""
    for node in recording.vertices:
        source = not node.inputs
        rate = counted(node)
        if rate is None:
            rate = _growth(recording, recording.metric(node.id, "numRecordsOut" if source else "numRecordsIn"))
        if rate is not None:
            yield "numRecordsOutPerSecond" if source else "numRecordsInPerSecond", node.id, rate * 1000
        for quantity, counter in _SHARES.items():
            if (spent := _growth(recording, recording.metric(node.id, counter))) is not None:
                yield quantity, node.id, 1000 * spent / node.parallelism
        for quantity, metric in _QUEUES.items():
            if source if quantity.startswith("input") else not has_readers(recording.vertices, node.id):
                continue
            samples = _settled(recording.metric(node.id, metric))
            yield from ((quantity, node.id, float(value)) for value in samples.mean(axis=1))


def _settled(samples: pd.DataFrame) -> pd.DataFrame:
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _growth(recording: RecordedJob, samples: pd.DataFrame) -> float | None:
    """Growth of a sampled counter per ms, summed over subtasks; a restarted counter begins at 0 again."""
    complete = samples.dropna(how="any")
    if len(complete) < 2:
        return None
    steps = complete.diff()
    steps.iloc[0] = 0
    grown = steps.where(steps >= 0, complete)
    times_ms = complete.index.to_numpy(dtype=float)
    return growth(
        times_ms, grown.sum(axis=1).to_numpy(dtype=float).cumsum(), window_of(recording, times_ms[0], times_ms[-1])
    )


def window_of(recording: RecordedJob, begin_ms: float, end_ms: float) -> tuple[float, float]:
    """`steady` by the completed checkpoints of a recording."""
    done = (point for point in recording.checkpoints.list if not point.is_savepoint and point.status == "COMPLETED")
    return steady(begin_ms, end_ms, (float(point.trigger_timestamp) for point in done))


SETTLED_AFTER = 0.25
"""Share of a run that is left out."""

Numbers = npt.NDArray[np.float64]


def steady(begin_ms: float, end_ms: float, triggers_ms: Iterable[float]) -> tuple[float, float]:
    """(from, to) of the window; the uncut window if the cut would leave less than half of it."""
    settled_ms = begin_ms + SETTLED_AFTER * (end_ms - begin_ms)
    inside = [time for time in triggers_ms if settled_ms <= time <= end_ms]
    if inside and max(inside) - min(inside) >= (end_ms - settled_ms) / 2:
        return min(inside), max(inside)
    return settled_ms, end_ms


def growth(times_ms: Numbers, counted: Numbers, window: tuple[float, float]) -> float | None:
    """Growth of a counter per ms, linear between its samples.  None: fewer than two samples in the window."""
    begin, end = (
        max(window[0], float(times_ms[0])) if len(times_ms) else 0.0,
        min(window[1], float(times_ms[-1])) if len(times_ms) else 0.0,
    )
    if np.count_nonzero((times_ms >= begin) & (times_ms <= end)) < 2 or end <= begin:
        return None
    there, here = np.interp([end, begin], times_ms, counted)
    return float(there - here) / (end - begin)


# ---- Observations in a recording, as a tidy table: a row per quantity, vertex and checkpoint or sample.  It judges nothing.
#
# `sim.model.quantities` says what each quantity is.  What has a row per checkpoint or subtask is read here, off Flink's columns;
# `series` computes the others, and a job whose configuration is known has more.  Rows of a whole run and samples have the checkpoint -1.
# `first` marks the first checkpoint: it meets queues that are not yet full.

# Flink's CheckpointFailureReason: its name, and its text in REST
_EXPIRED = "CHECKPOINT_EXPIRED|expired before completing"


def observed(recording: RecordedJob) -> pd.DataFrame:
    """The observations of a recording; savepoints and unfinished checkpoints are left out."""
    checkpoints = recording.checkpoints_table()
    periodic = checkpoints[~checkpoints["is_savepoint"].astype(bool)]
    rest = (
        recording.observed_values()
        if isinstance(recording, ConfiguredJob)
        else [*of_series(recording), *of_savepoints(recording)]
    )
    return pd.concat([of_checkpoints(periodic, recording.subtasks_table()), values_of(rest)], ignore_index=True)


def of_savepoints(recording: RecordedJob) -> Iterator[RunValue]:
    """The durations of completed savepoints."""
    done = (point for point in recording.checkpoints.list if point.is_savepoint and point.status == "COMPLETED")
    yield from (("savepoint_duration", "", float(point.end_to_end_duration)) for point in done)


def of_checkpoints(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """The observations in two tables with Flink's columns, recorded or simulated."""
    first = 1  # a history that begins later lacks the job's first checkpoint
    completed = checkpoints[checkpoints["status"] == "COMPLETED"]
    failed = checkpoints[checkpoints["status"] == "FAILED"]
    expired = failed[failed["failure_message"].astype(str).str.contains(_EXPIRED)]
    counts = (("completed", completed), ("failed", failed), ("expired", expired))
    rows = [
        (quantity.name, "", number, number == first, float(value))
        for quantity in quantities(lambda quantity: quantity.rows == "checkpoint")
        for number, value in completed[["id", quantity.flink_column]].itertuples(index=False, name=None)
        if is_known(float(value))
    ]
    rows += [(name, "", WHOLE_RUN, False, float(len(table))) for name, table in counts]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in quantities(lambda quantity: quantity.rows == "subtask"):
        column = quantity.flink_column
        medians = judged[judged[column] >= 0].groupby(["vertex", "id"], as_index=False, sort=False)[column].median()
        for number, vertex, value in medians[["id", "vertex", column]].itertuples(index=False, name=None):
            rows.append((quantity.name, vertex, number, number == first, float(value)))
    return table_of(rows)


# A job that was measured but not configured by us, of REST answers or of a log: its observations, and the scenario
# inferred from them.
#
# That scenario knows the measurements, the observed checkpoints included.  Comparing it with the same measurements only
# shows whether the model reproduces the job that it was made from.  Of its configuration the graph alone is known, and
# its operators log no events.  A log has no subtasks and no metrics, either.

COMPARED_TIMEOUT = "1 s"


Name = Annotated[str, Field(min_length=1, max_length=200)]


class MeasuredInput(BaseModel):
    """An input of a measured vertex."""

    model_config = ConfigDict(frozen=True)

    upstream: Name
    exchange: str = "hash"


class MeasuredVertex(BaseModel):
    """A vertex of a measured job."""

    model_config = ConfigDict(frozen=True)

    id: Name
    parallelism: Annotated[int, Field(ge=1, le=32768)]
    inputs: tuple[MeasuredInput, ...] = ()
    commits: bool = False

    @property
    def is_even(self) -> bool:
        """True: no source tells of weights."""
        return True


class Measured(RecordedJob):
    """A job that was measured and not configured by the recorder."""

    name: Name
    duration_s: Annotated[float, Field(gt=0, le=1e7)]  # as long as the job was watched
    graph: Annotated[tuple[MeasuredVertex, ...], Field(min_length=1)]
    inference: InstanceOf[Inference]

    @model_validator(mode="after")
    def _is_a_graph(self) -> Self:
        check_graph(self.graph)
        return self

    @property
    def vertices(self) -> Sequence[MeasuredVertex]:
        return self.graph


def compared(inference: Inference) -> Inference:
    """The scenario of the job with three kinds of barriers, its own first."""
    checkpoint = dict(inference.document["checkpoint"])
    own = checkpoint.get("barriers")
    timeout = own["aligned-timeout"] if isinstance(own, dict) else COMPARED_TIMEOUT
    kinds: list[Any] = ["aligned", "unaligned", {"aligned-timeout": timeout}]
    checkpoint["barriers"] = sorted(kinds, key=lambda kind: kind != own)
    lost = list(inference.not_modelled)
    if checkpoint.pop("max-concurrent", None):
        lost.append("several checkpoints at once: Flink runs unaligned ones one by one, so all are compared that way")
    comments = {
        key: text
        for key, text in inference.comments.items()
        if key not in ("checkpoint.barriers", "checkpoint.max-concurrent")
    }
    return replace(
        inference, document=inference.document | {"checkpoint": checkpoint}, comments=comments, not_modelled=tuple(lost)
    )


def to_log_recording(log: JobLog, name: str = "") -> Measured:
    """The recorded job of a log.  Its durations include the writing of metadata: a log has no others."""
    inference = infer_log(log)
    points = log.recorded
    ends = [point.trigger_timestamp + max(point.end_to_end_duration, 0) for point in points] or [0]
    begun_ms, ended_ms = min((point.trigger_timestamp for point in points), default=0), max(ends)
    counts = {
        status.lower(): sum(point.status == status for point in points)
        for status in ("COMPLETED", "FAILED", "IN_PROGRESS")
    }
    seen = {
        "name": (name or log.job)[:200],
        "flink_version": log.version,
        "started_ms": begun_ms,
        "ended_ms": ended_ms,
        "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "failures": log.failures,
        "ran_ms": max(log.ended_ms - log.running_ms, 0) if log.running_ms >= 0 else 0,
        "graph": [_vertex(vertex, details) for vertex, details in inference.document["job"].items()],
        "inference": inference,
        "checkpoints": {"counts": counts, "list": points},
    }
    return parsed(Measured, seen, log.source, "the checkpoints of the log")


def _vertex(name: str, details: dict[str, Any]) -> dict[str, Any]:
    upstreams = [upstream_of(key, given) for key, given in details.get("input", {}).items()]
    return {
        "id": name,
        "parallelism": details["parallelism"],
        "inputs": [{"upstream": upstream} for upstream in upstreams],
    }


def to_recording(snapshot: RestSnapshot, name: str = "") -> Measured:
    """The recorded job of a snapshot; `name` defaults to that of the job.  RecordingError: the answers contradict each other."""
    job = RestJob(snapshot)
    begun_ms, ended_ms = _window(job)
    seen = {
        "name": (name or job.job.name or job.job.jid)[:200],
        "flink_version": job.flink_version,
        "started_ms": begun_ms,
        "ended_ms": ended_ms,
        "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "final_state": job.job.state,
        "failures": len(job.failures_ms),
        "ran_ms": max(job.job.now - _begun_ms(job), 0),
        "graph": [_measured_vertex(vertex) for vertex in job.vertices],
        "checkpoints": {"counts": dict(job.counts), "list": job.checkpoints},
        "metrics": {vertex.name: _metrics(job, vertex) for vertex in job.vertices},
        "inference": infer_job(job),
    }
    return parsed(Measured, seen, snapshot.source, "the job")


def _measured_vertex(vertex: RestVertex) -> dict[str, Any]:
    inputs = [{"upstream": edge.upstream, "exchange": edge.ship.lower() or "rebalance"} for edge in vertex.inputs]
    commits = any("Committer" in operator for operator in vertex.chain)
    return {"id": vertex.name, "parallelism": vertex.parallelism, "inputs": inputs, "commits": commits}


MAX_EXCEPTION_HISTORY = 16
"""web.exception-history-size, by default: of more failures the first are not known."""


def _begun_ms(job: RestJob) -> int:
    """Since when all failures of the job are known."""
    failures = job.failures_ms
    return failures[0] if len(failures) >= MAX_EXCEPTION_HISTORY else max(job.job.start_time, 0)


def _window(job: RestJob) -> tuple[int, int]:
    """The observed time: from the first checkpoint or sample to the last."""
    points = [point for point in job.checkpoints if point.end_to_end_duration >= 0]
    times = [*job.snapshot.samples, *(point.trigger_timestamp for point in points)]
    times += [point.trigger_timestamp + point.end_to_end_duration for point in points]
    return (min(times), max(times)) if times else (job.job.start_time, job.job.start_time + max(job.job.duration, 0))


def _metrics(job: RestJob, vertex: RestVertex) -> dict[str, list[Any]]:
    """Metrics in the recorder's layout: times, and for each metric the values of the subtasks at each time."""
    samples_of = series(job, vertex)
    times = sorted({time_ms for samples in samples_of.values() for time_ms, _ in samples})
    table: dict[str, list[Any]] = {"t": times}
    for name, samples in samples_of.items():
        values = dict(samples)
        short = name.removeprefix("Shuffle.Netty.")
        table[short] = [
            [None if value != value else value for value in values[t]] if t in values else None for t in times
        ]
    return table

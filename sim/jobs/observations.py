"""Observations of a recorded job as a table, with a row per quantity, vertex and checkpoint or sample.

Simulated runs have the same rows, so the two can be compared (`sim.jobs.evidence`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, InstanceOf

from sim.jobs.infer.log import infer_log
from sim.jobs.infer.scenario import infer_job
from sim.jobs.source.job_log import JobLog
from sim.jobs.source.recorded_job import (
    ConfiguredJob,
    ImportedScenario,
    RecordedJob,
    RecordedVertex,
    checkpoints_table,
    has_readers,
    subtasks_table,
)
from sim.jobs.source.rest_answers import RestSnapshot, parsed
from sim.jobs.source.rest_job import RestJob, RestVertex, Series
from sim.model.quantities import QUANTITIES, quantities
from sim.model.series.columns import is_known

# ---- Tables of observations.  The quantities are defined in `sim.model.quantities`.

WHOLE_RUN = -1
"""The checkpoint id of rows that are not about a checkpoint: values of the whole run, and samples of a series."""
COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")

Observation = tuple[str, str, int, bool, float]  # quantity, vertex ("" for the job), checkpoint, first, value
RunValue = tuple[str, str, float]  # quantity, vertex, value of the whole run


def observation_table(rows: Iterable[Observation]) -> pd.DataFrame:
    """Return a table with `COLUMNS`.  A table without rows has the same column types."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).astype(types)
    return table.assign(unit=table["quantity"].map({name: quantity.unit for name, quantity in QUANTITIES.items()}))


def run_values_table(values: Iterable[RunValue]) -> pd.DataFrame:
    """Return a table with `COLUMNS` of values about the whole run."""
    return observation_table([(quantity, vertex, WHOLE_RUN, False, float(value)) for quantity, vertex, value in values])


# ---- Observations of series: rates, shares of time, queues.
#
# The first quarter of a run is left out (`SETTLED_AFTER`), because queues fill and the JVM warms up.  Rates and shares
# are differences of counters from the first trigger after that to the last one (`steady_window`): if a job stops for
# seconds in each checkpoint, its rate is meaningful only over whole checkpoint intervals.  There is one number per run,
# because Flink's own meters cover only 60 s.  Queues have a row per sample.  Sampled counters may be seconds old, so
# exact counts are preferred if a recording contains them.  The same rules apply to simulated runs.

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


def series_values(
    recording: RecordedJob, counted: Callable[[RecordedVertex], float | None] = lambda _: None
) -> Iterator[RunValue]:
    """Yield rates and shares of time of the whole run, and the queue lengths of each sample.

    `counted` returns the exact records per ms of a vertex, or None if the recording does not contain them.
    """
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
    """Return the complete samples after the first quarter."""
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _growth(recording: RecordedJob, samples: pd.DataFrame) -> float | None:
    """Return the growth of a sampled counter per ms, summed over subtasks, or None with too few samples.

    A counter that falls was reset to 0 by a restart, and has grown to its new value since.
    """
    complete = samples.dropna(how="any")
    if len(complete) < 2:
        return None
    steps = complete.diff()
    steps.iloc[0] = 0
    grown = steps.where(steps >= 0, complete)
    times_ms = complete.index.to_numpy(dtype=float)
    return growth_per_ms(
        times_ms,
        grown.sum(axis=1).to_numpy(dtype=float).cumsum(),
        steady_window_of_recording(recording, times_ms[0], times_ms[-1]),
    )


def steady_window_of_recording(recording: RecordedJob, begin_ms: float, end_ms: float) -> tuple[float, float]:
    """Return the `steady_window` of a recording, from the triggers of its completed checkpoints."""
    done = (point for point in recording.checkpoints.list if not point.is_savepoint and point.status == "COMPLETED")
    return steady_window(begin_ms, end_ms, (float(point.trigger_timestamp) for point in done))


SETTLED_AFTER = 0.25
"""Share at the start of a run that is left out."""

Numbers = npt.NDArray[np.float64]


def steady_window(begin_ms: float, end_ms: float, triggers_ms: Iterable[float]) -> tuple[float, float]:
    """Return (begin, end) of the period over which rates are computed, without the first quarter of the run.

    It begins and ends with a trigger, unless that would leave less than half of the remaining run.
    """
    settled_ms = begin_ms + SETTLED_AFTER * (end_ms - begin_ms)
    inside = [time for time in triggers_ms if settled_ms <= time <= end_ms]
    if inside and max(inside) - min(inside) >= (end_ms - settled_ms) / 2:
        return min(inside), max(inside)
    return settled_ms, end_ms


def growth_per_ms(times_ms: Numbers, counted: Numbers, window: tuple[float, float]) -> float | None:
    """Return the growth of a counter per ms in a window (begin, end), or None with fewer than two samples in it.

    The counter is interpolated linearly between samples.
    """
    begin, end = (
        max(window[0], float(times_ms[0])) if len(times_ms) else 0.0,
        min(window[1], float(times_ms[-1])) if len(times_ms) else 0.0,
    )
    if np.count_nonzero((times_ms >= begin) & (times_ms <= end)) < 2 or end <= begin:
        return None
    at_end, at_begin = np.interp([end, begin], times_ms, counted)
    return float(at_end - at_begin) / (end - begin)


# ---- Observations of checkpoints.  `first` marks the job's first checkpoint: it is atypical, because queues are not full.

# A regular expression for Flink's CheckpointFailureReason: its name, or its text in the REST API.
_EXPIRED = "CHECKPOINT_EXPIRED|expired before completing"


def observed(recording: RecordedJob) -> pd.DataFrame:
    """Return the observations of a recording.  Checkpoints in progress are left out; savepoints have only their duration."""
    checkpoints, subtasks = checkpoints_table(recording.checkpoints.list), subtasks_table(recording.checkpoints.list)
    rest = recording.observed_values() if isinstance(recording, ConfiguredJob) else series_values(recording)
    return pd.concat([checkpoint_observations(checkpoints, subtasks), run_values_table(rest)], ignore_index=True)


def checkpoint_observations(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """Return the observations of recorded or simulated checkpoints, from two tables with Flink's columns.

    Of savepoints, only the duration counts.
    """
    is_recorded = "is_savepoint" in checkpoints
    is_savepoint = checkpoints["is_savepoint"].astype(bool) if is_recorded else checkpoints["savepointFormat"] != ""
    first = 1  # id of the job's first checkpoint; a history may begin later
    savepoints, checkpoints = checkpoints[is_savepoint], checkpoints[~is_savepoint]
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
    durations = savepoints[savepoints["status"] == "COMPLETED"]["end_to_end_duration"]
    rows += [("savepoint_duration", "", WHOLE_RUN, False, float(duration)) for duration in durations]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in quantities(lambda quantity: quantity.rows == "subtask"):
        column = quantity.flink_column
        medians = judged[judged[column] >= 0].groupby(["vertex", "id"], as_index=False, sort=False)[column].median()
        for number, vertex, value in medians[["id", "vertex", column]].itertuples(index=False, name=None):
            rows.append((quantity.name, vertex, number, number == first, float(value)))
    return observation_table(rows)


# ---- Measured jobs, from REST answers or a log: their observations, and the scenario inferred from them.
#
# The scenario is inferred from the same measurements that it is compared with, so agreement only shows that the model
# reproduces the job that it was inferred from.  Only the graph of the program is known.  A log has neither that, nor
# subtasks and metrics.


class Measured(RecordedJob):
    """A job whose configuration is inferred from measurements."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    duration_s: Annotated[float, Field(gt=0, le=1e7)]  # length of the observation
    graph: InstanceOf[tuple[RestVertex, ...]] = ()  # with names as ids, in topological order; empty if unknown
    series: InstanceOf[Mapping[str, Series]] = Field(default_factory=dict)
    source: InstanceOf[RestJob] | InstanceOf[JobLog]

    @property
    def vertices(self) -> Sequence[RestVertex]:
        return self.graph

    def infer(self) -> ImportedScenario:
        """Infer the scenario from the measurements."""
        return infer_job(self.source) if isinstance(self.source, RestJob) else infer_log(self.source)

    def metric(self, vertex: str, name: str) -> pd.DataFrame:
        if vertex not in self.series:
            return pd.DataFrame()
        times_ms, values = self.series[vertex]
        samples = values.get(name, values.get(f"Shuffle.Netty.{name}"))
        return pd.DataFrame(samples, times_ms if samples is not None else None)


def to_log_recording(log: JobLog, name: str = "") -> Measured:
    """Return the recorded job of a log.  Durations in logs include the time to write the metadata."""
    points = log.recorded
    ends = [point.trigger_timestamp + max(point.end_to_end_duration, 0) for point in points] or [0]
    begun_ms, ended_ms = min((point.trigger_timestamp for point in points), default=0), max(ends)
    counts = {
        status.lower(): sum(point.status == status for point in points)
        for status in ("COMPLETED", "FAILED", "IN_PROGRESS")
    }
    fields = {
        "name": (name or log.job)[:200],
        "flink_version": log.version,
        "started_ms": begun_ms,
        "ended_ms": ended_ms,
        "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "failures": log.failures,
        "ran_ms": max(log.ended_ms - log.running_ms, 0) if log.running_ms >= 0 else 0,
        "source": log,
        "checkpoints": {"counts": counts, "list": points},
    }
    return parsed(Measured, fields, log.source, "the checkpoints of the log")


def to_recording(snapshot: RestSnapshot, name: str = "") -> Measured:
    """Return the recorded job of a snapshot.  `name` defaults to the name of the job.

    Raises `RecordingError` if the answers contradict each other.
    """
    job = RestJob(snapshot)
    begun_ms, ended_ms = _window(job)
    fields = {
        "name": (name or job.job.name or job.job.jid)[:200],
        "flink_version": job.flink_version,
        "started_ms": begun_ms,
        "ended_ms": ended_ms,
        "duration_s": max((ended_ms - begun_ms) / 1000, 1),
        "final_state": job.job.state,
        "failures": len(job.failures_ms),
        "ran_ms": max(job.job.now - _begun_ms(job), 0),
        "graph": tuple(replace(vertex, id=vertex.name) for vertex in job.vertices),
        "checkpoints": {"counts": job.statistics.counts, "list": job.checkpoints},
        "series": job.series,
        "source": job,
    }
    return parsed(Measured, fields, snapshot.source, "the job")


MAX_EXCEPTION_HISTORY = 16
"""Default of web.exception-history-size.  If the job has failed more often, the first failures are unknown."""


def _begun_ms(job: RestJob) -> int:
    """Return the time from which on all failures of the job are known [epoch ms]."""
    failures = job.failures_ms
    return failures[0] if len(failures) >= MAX_EXCEPTION_HISTORY else max(job.job.start_time, 0)


def _window(job: RestJob) -> tuple[int, int]:
    """Return (begin, end) of the observed period [epoch ms]: from the first checkpoint or sample to the last."""
    points = [point for point in job.checkpoints if point.end_to_end_duration >= 0]
    times = [*job.snapshot.samples, *(point.trigger_timestamp for point in points)]
    times += [point.trigger_timestamp + point.end_to_end_duration for point in points]
    return (min(times), max(times)) if times else (job.job.start_time, job.job.start_time + max(job.job.duration, 0))

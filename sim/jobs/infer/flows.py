"""Compute the records, bytes and thread times of each vertex from Flink's counters, and infer the cost of RocksDB flushes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from sim.jobs.infer.draft import Section, format_whole_ms
from sim.jobs.infer.file_history import Files, acknowledged
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask, RecordingError
from sim.jobs.source.rest_job import RestJob, RestVertex, Series
from sim.model.state import Lsm
from sim.model.units import format_byte_rate

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
MIN_SAMPLE_DISTANCE_MS = 500  # if a running time grew by less, Flink returned a cached value
# TimerGauge adds a long wait to a subtask's times only every 5 s, so a shorter period is not a measurement.
MIN_MEASURED_MS = 5000

_Sample = tuple[int, dict[str, list[float]]]  # time [epoch ms], quantity -> value of each subtask


@dataclass(frozen=True, slots=True)
class Flow:
    """The records, bytes and thread times of a subtask in a period of time.  A value is NaN if it was not measured."""

    elapsed_ms: float
    records_in: float = math.nan
    records_out: float = math.nan
    bytes_in: float = math.nan
    bytes_out: float = math.nan
    busy_ms: float = math.nan
    idle_ms: float = math.nan
    backpressured_ms: float = math.nan


@dataclass(frozen=True, slots=True)
class Flows:
    """The flows of a vertex's subtasks."""

    subtasks: tuple[Flow, ...]
    source: str  # origin of the values, as text
    begun_ms: int = 0  # start of the period [epoch ms]
    ended_ms: int = 0  # end of the period [epoch ms]

    def total(self, quantity: str) -> float:
        """Return the sum over the subtasks, or NaN if the quantity was not measured for all of them."""
        return math.fsum(getattr(flow, quantity) for flow in self.subtasks) if self.subtasks else math.nan

    @property
    def bytes_per_record(self) -> float:
        """The mean size of an input record [bytes], or NaN if there are none or it was not measured."""
        records = self.total("records_in")
        return self.total("bytes_in") / records if records > 0 else math.nan

    def share(self, quantity: str) -> float:
        """Return a time as a share of the elapsed time, over all subtasks."""
        elapsed = self.total("elapsed_ms")
        return self.total(quantity) / elapsed if elapsed > 0 else math.nan

    def per_second(self, quantity: str) -> float:
        """Return the rate per second of the vertex: the sum over its subtasks, or NaN if it was not measured."""
        if not self.subtasks or any(flow.elapsed_ms <= 0 for flow in self.subtasks):
            return math.nan
        return math.fsum(getattr(flow, quantity) / flow.elapsed_ms * 1000 for flow in self.subtasks)


def flows(job: RestJob) -> dict[str, Flows]:
    """Return the flows by vertex, from samples if at least two of them differ, otherwise from the totals since the start."""
    return {
        vertex.name: _flows_from_samples(vertex, series(job, vertex)) or _flows_since_start(job, vertex)
        for vertex in job.vertices
    }


def series(job: RestJob, vertex: RestVertex) -> Series:
    """Return the sampled metrics of a vertex at the times when they changed.

    Names of operator metrics are shortened to a dot and their last part, for example `.pendingRecords`.  A sample is
    dated by the running time of the subtasks if possible, because Flink may have cached it; otherwise by the time at
    which it was fetched.
    """
    path = f"/jobs/{job.snapshot.job}/vertices/{vertex.id}/metrics"
    if vertex.name in job.series_by_vertex:
        return job.series_by_vertex[vertex.name]
    sampled = [
        (time_ms, _subtask_values(vertex, path, sample[path]))
        for time_ms, sample in job.snapshot.samples.items()
        if path in sample
    ]
    changed = _without_repetitions(sampled)
    clocks = [fmean(_running_times_ms(metrics) or [math.nan]) for _, metrics in changed]
    if any(math.isnan(clock) for clock in clocks) or any(after <= before for before, after in pairwise(clocks)):
        dated = changed[1:]  # the first sample may have been cached for an unknown time
    else:
        start_ms = min((time_ms - clock for (time_ms, _), clock in zip(changed, clocks, strict=True)), default=0)
        dated = [(round(clock + start_ms), metrics) for (_, metrics), clock in zip(changed, clocks, strict=True)]
    series_of_vertex = job.series_by_vertex.setdefault(vertex.name, {})
    for time_ms, metrics in dated:
        for name, values in metrics.items():
            series_of_vertex.setdefault(name, []).append((time_ms, values))
    return series_of_vertex


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


def _without_repetitions(samples: list[_Sample]) -> list[_Sample]:
    """Return the samples that are new for every subtask.

    Flink queries each TaskManager separately, so a sample may contain new and cached values.
    """
    kept: list[_Sample] = []
    for time_ms, metrics in samples:
        if kept:
            steps = [
                now - before
                for before, now in zip(_running_times_ms(kept[-1][1]), _running_times_ms(metrics), strict=False)
            ]
            if metrics == kept[-1][1] or (
                steps
                and all(step > -MIN_SAMPLE_DISTANCE_MS for step in steps)
                and any(step < MIN_SAMPLE_DISTANCE_MS for step in steps)
            ):
                continue
        if metrics:
            kept.append((time_ms, metrics))
    return kept


def _running_times_ms(metrics: Mapping[str, list[float]]) -> list[float]:
    """Return the running time of each subtask (busy + idle + back-pressured time), or NaN if it was not measured."""
    times = [metrics.get(COUNTERS[key], [math.nan]) for key in ("busy_ms", "idle_ms", "backpressured_ms")]
    return [sum(values) for values in zip(*times, strict=False)]


def _flows_from_samples(vertex: RestVertex, sampled: Series) -> Flows | None:
    """Return the flows between the first and the last sample, or None if the samples cover too little time."""
    counters = {quantity: sampled[name] for quantity, name in COUNTERS.items() if name in sampled}
    by_time: dict[int, dict[str, list[float]]] = {}
    for quantity, measured in counters.items():
        for time_ms, values in measured:
            by_time.setdefault(time_ms, {})[quantity] = values
    complete = [
        (t, sample)
        for t, sample in sorted(by_time.items())
        if not any(map(math.isnan, sample.get("records_in", [math.nan])))
    ]
    samples = _samples_since_restart(complete)
    if len(samples) < 2 or samples[-1][0] - samples[0][0] < MIN_MEASURED_MS:
        return None
    (begun_ms, first), (ended_ms, last) = samples[0], samples[-1]
    subtasks = tuple(
        _flow({key: last[key][i] - first[key][i] for key in first.keys() & last.keys()}, ended_ms - begun_ms)
        for i in range(vertex.parallelism)
    )
    return Flows(
        subtasks,
        f"metrics that changed {len(samples) - 1} times in {(ended_ms - begun_ms) / 1000:.0f} s",
        begun_ms,
        ended_ms,
    )


def _samples_since_restart(samples: list[_Sample]) -> list[_Sample]:
    """Return the samples after the last restart, which resets counters to 0."""
    begin = 0
    for i, ((_, before), (_, after)) in enumerate(pairwise(samples)):
        pairs = (
            pair
            for key in ("records_in", "records_out")
            for pair in zip(before.get(key, ()), after.get(key, ()), strict=False)
        )
        begin = i + 1 if any(new < old for old, new in pairs) else begin
    return samples[begin:]


def _flow(growth: Mapping[str, float], passed_ms: float) -> Flow:
    """Return a flow from the growth of the counters, by quantity.  Its time is the growth of the running time, if that is plausible."""
    times = [growth.get(key, math.nan) for key in ("busy_ms", "idle_ms", "backpressured_ms")]
    running_ms = sum(times)  # NaN if one is missing
    # The sum of the times lacks at most the current wait.  If it is far from the elapsed time, it is not used.
    return Flow(running_ms if passed_ms / 2 < running_ms < passed_ms * 2 else passed_ms, **growth)


def _flows_since_start(job: RestJob, vertex: RestVertex) -> Flows:
    subtasks = sorted(job.details[vertex.name].subtasks, key=lambda subtask: subtask.subtask)
    return Flows(
        tuple(
            _flow(
                {name: total for name, total in subtask.metrics if total is not None and total >= 0},
                max(subtask.duration, 1),
            )
            for subtask in subtasks
        ),
        "totals since its start (/jobs/:id/vertices/:id)",
        job.job.start_time,
        job.job.start_time + job.job.duration,
    )


def _parse_metric(value: object) -> float:
    """Return the value of a metric, or NaN if it is not a finite number."""
    if not isinstance(value, str) or not value:
        return math.nan
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


# ---- Cost of RocksDB snapshots apart from uploading: the flush in the synchronous phase.
#
# A snapshot whose flush fills level 0 starts a compaction, and shares the disk with it.  Such snapshots are left out.
# Their additional time is part of the residuals.


def infer_flushes(
    section: Section, points: Sequence[RecordedCheckpoint], vertex: str, files_by_subtask: Mapping[int, Files]
) -> None:
    """Set `state.lsm.freeze` and `state.lsm.flush`.  `files_by_subtask` has the files of each subtask, by index."""
    by_subtask = acknowledged(points, vertex)
    quiet_ms = [
        ms for index, files in files_by_subtask.items() for ms in _quiet_sync_phases_ms(by_subtask[index], files)
    ]
    if not quiet_ms:
        return
    sync_ms, flushed = median(quiet_ms), median(files.increment_bytes for files in files_by_subtask.values())
    flush_ms = flushed / Lsm().flush_bytes_per_second * 1000
    origin = f"median of {len(quiet_ms)} synchronous phases: {sync_ms:g} ms"
    if sync_ms >= flush_ms:
        freeze = format_whole_ms(sync_ms - flush_ms)
        section.put("state.lsm.freeze", freeze, f"{origin}, less the flush of {flushed:,.0f} bytes")
    else:
        rate = format_byte_rate(max(round(flushed / max(sync_ms, 1) * 1000), 1))
        section.put("state.lsm.flush", rate, f"{flushed:,.0f} bytes / {origin}")
        section.put("state.lsm.freeze", "0 s")


def _quiet_sync_phases_ms(
    acknowledgements: Iterable[tuple[RecordedCheckpoint, RecordedSubtask]], files: Files
) -> Iterator[int]:
    """Yield the synchronous phases [ms] of snapshots that do not start a compaction.

    The files of the next checkpoint show whether there was a compaction.
    """
    falls = {point.checkpoint for point in files.falls}
    measured = [
        (point, subtask)
        for point, subtask in acknowledgements
        if min(subtask.checkpoint.sync, subtask.checkpoint.async_) >= 0
    ]
    for i, (_, subtask) in enumerate(measured):
        if i + 1 == len(measured) or measured[i + 1][0].id not in falls:
            yield subtask.checkpoint.sync

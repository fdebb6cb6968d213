"""Infer the checkpoint storage of a job: latency and bandwidth of files, and how operators and in-flight data use it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from sim.jobs.infer.cores import (
    ALL_TO_ALL,
    acknowledged_in,
    is_unaligned,
    last_barrier_ms,
    task_managers_of,
    typical_checkpoints,
    works_before_barrier,
)
from sim.jobs.infer.draft import Draft, format_whole_ms, rate_3_digits
from sim.jobs.infer.file_history import acknowledged_by, inline_bytes, written_bytes
from sim.jobs.infer.heap import LOCAL_FILE_MS, MAX_LOCAL_FILE_MS, HeapSerialization, heap_serialization, is_local
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.cluster import NetworkMemory
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import Overheads
from sim.model.state import Changelog, Lsm, StateOptions
from sim.model.units import format_byte_rate

# ---- Fit a line to asynchronous phases: their duration over the bytes of the longest stream.
#
# The intercept is the latency of a file, the slope is the time per byte.  The Theil-Sen estimator (the median of the slopes
# between all pairs) is insensitive to single slow checkpoints.

MIN_PHASES_FOR_LINE = 8
MAX_PHASES_FOR_LINE = 600
"""Maximum number of phases.  More are sampled, because time and memory grow with the square of their number."""
MIN_SIZE_RATIO = 1.5
"""Minimum largest / smallest stream.  Similar sizes show only the sum of latency and transfer time."""


class AsyncPhase(NamedTuple):
    """The asynchronous phase of one subtask in one checkpoint."""

    stream_bytes: float  # bytes of its longest stream
    took_ms: float


class FittedLine(NamedTuple):
    """A line fitted to asynchronous phases."""

    latency_ms: float
    bytes_per_ms: float
    slowest: float  # lower bound of bytes_per_ms, with 95 % confidence
    fastest: float  # upper bound of bytes_per_ms; infinite if the duration may be independent of the bytes
    is_significant: bool  # whether the slope is larger than 0 with 95 % confidence


def stream_bytes(written: int, table: int, threads: int) -> float:
    """Return the bytes of the longest of `threads` parallel streams that write `written` bytes in files of at most `table`."""
    return max(min(written, table), written / threads)


def fit_async_phases(phases: Sequence[AsyncPhase]) -> FittedLine | None:
    """Fit a line to phases.  Return None if there are too few, or if their sizes are too similar."""
    if len(phases) < MIN_PHASES_FOR_LINE:
        return None
    chosen = sorted(phases)[:: -(-len(phases) // MAX_PHASES_FOR_LINE)]
    sizes, took = np.array(chosen, dtype=float).T
    if sizes[-1] <= MIN_SIZE_RATIO * sizes[0]:
        return None
    from scipy.stats import theilslopes  # imported here, because the import takes 0.4 s

    with np.errstate(invalid="ignore"):  # the bounds are NaN if too many phases have the same duration
        fit = theilslopes(took, sizes)
    slope, low, high = float(fit.slope), float(fit.low_slope), float(fit.high_slope)
    if slope <= 0:
        return FittedLine(
            float(np.median(took)),
            float("inf"),
            1 / high if high > 0 else float("inf"),
            float("inf"),
            is_significant=False,
        )
    latency = float(np.median(took - slope * sizes))
    if latency < 0:  # then all of the time is assumed to be transfer
        latency, slope = 0.0, float(np.median(took / sizes))
    return FittedLine(latency, 1 / slope, 1 / high, 1 / low if low > 0 else float("inf"), is_significant=low > 0)


# ---- Speed of checkpoint storage, from asynchronous phases: latency per file, and bandwidth.
#
# Each subtask gives a point per checkpoint: the bytes of its longest stream, and the duration of its asynchronous phase.
# State below `data-inline-threshold` is not written to a file and gives no point.  RocksDB uploads its files in
# parallel.  A changelog collects a batch before it writes.  If all subtasks write the same amount, a line cannot be
# fitted.  Then the latency of the metadata is used as the latency of all files.  It shows if a checkpoint takes longer
# than the interval, because the next one is then triggered as soon as the metadata is written.
#
# With unaligned checkpoints, an asynchronous phase also waits for the remaining barriers, and for tasks that share its
# channel state file (FLINK-26803).  With an aligned timeout, it also waits for the barrier to leave the output queue.
# Then only some points are used, the first of these sets that has any:
#   1. vertices without outputs, snapshots that did not wait for a barrier; only if a line can be fitted to them
#   2. vertices without outputs, snapshots with little in-flight data
#   3. the first set, even without a line
#   4. all vertices, if each task has a file of channel state of its own.  State and channel state are written in parallel, so
#      the longer stream counts
#   5. vertices with outputs, snapshots with little in-flight data that waited for at most half of the phase, after their last
#      barrier: a file is closed then, that of the state or that of the channel state

ASSUMED_BYTES_PER_SECOND = 100_000_000
ASSUMED_LATENCY_MS = 20
MAX_LATENCY_MS = 1000
"""Maximum latency of a file that is taken for likelier than a slow stream."""
MAX_BYTES_PER_SECOND = 10**12
TRANSFER_LATENCIES = 3  # minimum duration / latency of an asynchronous phase that is mostly transfer
MAX_IDLE_ALIGNMENT_MS = 10  # maximum alignment of a snapshot that did not wait for a barrier
MAX_IN_FLIGHT_SHARE = 0.1  # maximum in-flight data / state, so that writing in-flight data does not delay the state
MAX_WAIT_SHARE = 0.25  # maximum wait for barriers / median asynchronous phase, so that the wait does not delay its end
_LATENCY_QUESTION = "How long does it take to write the smallest file?"
_QUESTION = "How fast does checkpoint storage write one file, in bytes per second?"


def infer_storage(draft: Draft, job: RestJob) -> None:
    """Set the `storage:` section, and `state.serialize`, because serialization is part of the same asynchronous phases."""
    if job.checkpoint_config.checkpoint_storage == "JobManagerCheckpointStorage":
        draft.not_modelled.append("checkpoints on the heap of the JobManager: simulated as files")
    work = heap_serialization(draft, job)
    phases = _select_phases(draft, job)
    metadata_ms, gaps = _metadata_latency(job)
    if not phases:
        rate, latency = (
            format_byte_rate(ASSUMED_BYTES_PER_SECOND),
            f"{ASSUMED_LATENCY_MS if metadata_ms is None else metadata_ms} ms",
        )
        draft.ask("storage.bandwidth", rate, _QUESTION, f"{rate}: no completed checkpoint shows it.")
        draft.ask("storage.file-latency", latency, _LATENCY_QUESTION, f"{latency}.")
        if metadata_ms is not None:
            draft.put("storage.metadata-latency", latency, gaps)
        return
    line = fit_async_phases(phases)
    if line is not None and line.is_significant:
        low, high, sizes = _rate(line.slowest), _rate(line.fastest), [phase.stream_bytes for phase in phases]
        many = f"{len(phases)} asynchronous phases of {min(sizes):,.0f} to {max(sizes):,.0f} bytes in one stream"
        origin = f"line (Theil-Sen) through {many}; {low} to {high} with 95 % confidence"
        draft.put("storage.bandwidth", _rate(line.bytes_per_ms), origin)
        draft.put("storage.file-latency", format_whole_ms(line.latency_ms), "intercept of that line")
        latency_ms = line.latency_ms
    else:
        latency_ms = _put_median(draft, job, phases, metadata_ms, work)
    if metadata_ms is None:
        metadata_ms, gaps = round(latency_ms), "as for any file: only late checkpoints show it"
    draft.put("storage.metadata-latency", format_whole_ms(metadata_ms), gaps)


def _put_median(
    draft: Draft, job: RestJob, phases: list[AsyncPhase], metadata_ms: int | None, work: HeapSerialization | None
) -> float:
    """Set latency and bandwidth from the median phase, which is the sum of latency, transfer and serialization.

    The largest part is inferred from the phase.  The others are assumed, and the user is asked.

    Args:
        draft: The scenario under construction.
        job: The job.
        phases: Asynchronous phases that wrote a file.
        metadata_ms: Latency of the metadata [ms], or None if it is unknown.
        work: Serialization of state on the heap, or None if the job has none.

    Returns:
        The latency of a file [ms].
    """
    took_ms, size = median(phase.took_ms for phase in phases), median(phase.stream_bytes for phase in phases)
    origin = f"median of {len(phases)} asynchronous phases: {size:,.0f} bytes in {took_ms:g} ms"
    works = work is not None and work.work_ms(size) > took_ms / 2
    if metadata_ms is not None and took_ms > TRANSFER_LATENCIES * metadata_ms and not works:
        rate = _rate(size / (took_ms - metadata_ms))
        draft.put("storage.bandwidth", rate, f"{origin}; less the latency of the metadata")
        draft.put("storage.file-latency", format_whole_ms(metadata_ms), "as for the metadata")
        return metadata_ms
    fastest = max(phases, key=lambda phase: phase.stream_bytes / max(phase.took_ms, 1))
    at_least = fastest.stream_bytes / max(fastest.took_ms, 1)
    is_mostly_transfer = not is_unaligned(job) and fastest.took_ms > TRANSFER_LATENCIES * took_ms
    per_ms = max(0 if is_mostly_transfer else ASSUMED_BYTES_PER_SECOND / 1000, at_least)
    least, most = (pick(phase.stream_bytes for phase in phases) for pick in (min, max))
    why = (
        f"subtasks write {least:,.0f} to {most:,.0f} bytes, too similar to separate transfer from latency; "
        f"the fastest wrote {at_least * 1000:,.0f} bytes/s"
    )
    latency_ms = max(took_ms - size / per_ms, 0.0)
    if not works and latency_ms > MAX_LATENCY_MS and took_ms / (size / per_ms) < latency_ms / ASSUMED_LATENCY_MS:
        # a rate further below the assumed one is likelier than a latency as far above
        rate, latency = _rate(size / (took_ms - ASSUMED_LATENCY_MS)), f"{ASSUMED_LATENCY_MS} ms"
        draft.ask("storage.bandwidth", rate, _QUESTION, f"{rate}, from the {origin}; {why}.")
        draft.ask(
            "storage.file-latency", latency, _LATENCY_QUESTION, f"{latency}, so that nearly all of it is transfer."
        )
        return ASSUMED_LATENCY_MS
    draft.ask("storage.bandwidth", _rate(per_ms), _QUESTION, f"{_rate(per_ms)}; {why}.")
    if work is None or not (works or (is_local(job) and latency_ms > MAX_LOCAL_FILE_MS)):
        draft.put("storage.file-latency", format_whole_ms(latency_ms), f"{origin}, less the bytes at that rate")
        return latency_ms
    shared = f" x {work.slower:.2g}, by contention for cores" if work.slower > 1 else ""
    rate = rate_3_digits(size / took_ms * 1000 * work.slower)
    why = f"{origin}{shared}: CPU time, one thread for each subtask"
    draft.vertex(work.vertex).put("state.serialize", rate, why)
    if metadata_ms is None:
        metadata_ms = round(min(latency_ms or LOCAL_FILE_MS, LOCAL_FILE_MS, took_ms / 2))
    assumed = f"{metadata_ms} ms, at most {took_ms:.0f} ms: {origin}, most of which is serialization."
    draft.ask(
        "storage.file-latency", format_whole_ms(metadata_ms), "How long does it take to write a small file?", assumed
    )
    return metadata_ms


def _rate(bytes_per_ms: float) -> str:
    """Return a rate as text, limited to MAX_BYTES_PER_SECOND."""
    return rate_3_digits(min(bytes_per_ms * 1000, MAX_BYTES_PER_SECOND))


def _select_phases(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Return the phases from which the speed of storage is inferred, as described at the top of this section."""
    if not is_unaligned(job):
        return [phase for vertex in job.vertices for phase in _phases_of_vertex(draft, job, vertex, lambda _: True)]
    sinks = [vertex for vertex in job.vertices if not job.readers(vertex.name)]
    without_wait = [phase for vertex in sinks for phase in _phases_of_vertex(draft, job, vertex, _without_barrier_wait)]
    line = fit_async_phases(without_wait)
    if line is not None and line.is_significant:
        return without_wait
    little_in_flight = [
        phase for vertex in sinks for phase in _phases_of_vertex(draft, job, vertex, _has_little_in_flight(job, vertex))
    ]
    return little_in_flight or without_wait or _with_channel_state(draft, job) or _phases_after_last_barrier(draft, job)


def _measured_phases(job: RestJob, vertex: str) -> Iterator[RecordedSubtask]:
    """Yield the subtasks of a vertex that acknowledged usual checkpoints and reported the asynchronous phase."""
    for point in typical_checkpoints(job):
        yield from (snapshot for snapshot in acknowledged_by(point, vertex) if snapshot.checkpoint.async_ >= 0)


def _with_channel_state(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Return the phases of all vertices in snapshots that did not wait for a barrier.

    The list is empty if tasks may share a channel state file, or with an aligned timeout: then a phase includes an unknown
    wait for the barrier to leave the output queue.
    """
    is_isolated = draft.document.get("cluster", {}).get("placement") == "isolated"
    if job.checkpoint_config.aligned_checkpoint_timeout or not is_isolated:
        return []
    return [
        AsyncPhase(float(size), float(snapshot.checkpoint.async_))
        for vertex in job.vertices
        if "async" not in draft.document["job"][vertex.name].get("snapshot", {})
        for snapshot in _measured_phases(job, vertex.name)
        if snapshot.alignment.duration <= MAX_IDLE_ALIGNMENT_MS
        and (size := max(written_bytes(snapshot), snapshot.alignment.persisted)) > inline_bytes(job)
    ]


def _phases_after_last_barrier(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Return the phases of all vertices after their last barrier, in snapshots with little in-flight data and not much of a wait."""
    return [
        AsyncPhase(float(size), after_ms)
        for vertex in job.vertices
        if "async" not in draft.document["job"][vertex.name].get("snapshot", {})
        for snapshot in _measured_phases(job, vertex.name)
        if (size := written_bytes(snapshot)) > inline_bytes(job)
        and snapshot.alignment.persisted < MAX_IN_FLIGHT_SHARE * size
        and (after_ms := _phase_after_ms(snapshot, last_barrier_ms(snapshot))) >= snapshot.checkpoint.async_ / 2
    ]


def _without_barrier_wait(subtask: RecordedSubtask) -> bool:
    """Return whether the snapshot was aligned, and all barriers arrived at about the same time."""
    return not subtask.unaligned_checkpoint and subtask.alignment.duration <= MAX_IDLE_ALIGNMENT_MS


def _has_little_in_flight(job: RestJob, vertex: RestVertex) -> Callable[[RecordedSubtask], bool]:
    """Return a predicate: a snapshot has little in-flight data, and the wait for barriers did not delay its end.

    The wait is compared with the median phase of the subtask.  If it were compared with the phase of the same snapshot,
    mostly long phases would be selected, and storage would seem slow.
    """
    phases_ms: dict[int, list[int]] = defaultdict(list)
    for snapshot in _measured_phases(job, vertex.name):
        phases_ms[snapshot.index].append(snapshot.checkpoint.async_)
    median_ms = {index: median(durations) for index, durations in phases_ms.items()}

    def is_selected(subtask: RecordedSubtask) -> bool:
        waited_ms = subtask.alignment.duration
        is_delayed = (
            waited_ms > max(subtask.checkpoint.sync, 0) + MAX_IDLE_ALIGNMENT_MS
            and waited_ms > MAX_WAIT_SHARE * median_ms[subtask.index]
        )
        return not is_delayed and subtask.alignment.persisted < MAX_IN_FLIGHT_SHARE * written_bytes(subtask)

    return is_selected


def _phases_of_vertex(
    draft: Draft, job: RestJob, vertex: RestVertex, is_selected: Callable[[RecordedSubtask], bool]
) -> list[AsyncPhase]:
    """Return the phases of the selected snapshots of a vertex that wrote a file."""
    inline, state = inline_bytes(job), draft.document["job"][vertex.name].get("state", {})
    has_tables = "backend" in state and "changelog" not in state
    batch_ms = Changelog().batch_delay_ns / 10**6 if "changelog" in state else 0.0
    return [
        AsyncPhase(
            stream_bytes(size, Lsm().table_bytes, StateOptions().transfer_threads) if has_tables else float(size),
            max(snapshot.checkpoint.async_ - batch_ms, 0.0),
        )
        for snapshot in _measured_phases(job, vertex.name)
        if is_selected(snapshot) and (size := written_bytes(snapshot)) > inline
    ]


def _metadata_latency(job: RestJob) -> tuple[int | None, str]:
    """Return (latency of the metadata [ms], origin), or (None, "") if the history does not show it.

    If a checkpoint takes longer than the interval, the next one is triggered as soon as its metadata is written.
    """
    config, points = job.checkpoint_config, typical_checkpoints(job)
    if config.interval <= 0 or config.max_concurrent != 1 or config.min_pause:
        return None, ""
    gaps = [
        after.trigger_timestamp - before.latest_ack_timestamp
        for before, after in pairwise(points)
        if after.id == before.id + 1 and before.latest_ack_timestamp - before.trigger_timestamp > config.interval
    ]
    if len(gaps) < 3:
        return None, ""
    origin = f"median of {len(gaps)} gaps between the last acknowledgement of a late checkpoint and the next trigger"
    return max(0, round(median(gaps) - Overheads().complete_ns / 10**6)), origin


# ---- Other work of operators in their asynchronous phase, for example their snapshot uploads (FLINK-37375).
#
# Flink reports only the whole phase.  If state and in-flight data need no file, all of the phase is such work.  With
# unaligned checkpoints, the phase also waits for the remaining barriers, and for a channel state file that tasks of one
# TaskManager share (FLINK-26803).  Files of other vertices give an upper bound on the time of that file: because of the
# latency, a file that is k times as large takes at most k times as long.  With an aligned timeout, the phase also waits
# for the barrier to leave the output queue for an unknown time, so nothing is inferred.


def infer_uploads(draft: Draft, job: RestJob) -> None:
    """Set `snapshot.async` of each vertex whose asynchronous phase takes longer than barriers and files explain."""
    if is_unaligned(job) and job.checkpoint_config.aligned_checkpoint_timeout:
        return
    managers = task_managers_of(job)
    checkpoints_of: dict[str, list[_SmallSnapshots]] = defaultdict(list)
    for point in typical_checkpoints(job):
        for vertex, snapshots in _small_snapshots(job, point, managers):
            checkpoints_of[vertex].append(snapshots)
    for vertex, checkpoints in checkpoints_of.items():
        if median(snapshots.work_ms for snapshots in checkpoints) <= NEGLIGIBLE_MS:
            continue
        took_ms = [ms for snapshots in checkpoints if snapshots.work_ms > NEGLIGIBLE_MS for ms in snapshots.took_ms]
        origin = f"median asynchronous duration of {len(took_ms)} snapshots with too little state for a file"
        if is_unaligned(job):
            origin += "; longer than the wait for barriers, and than other vertices take for as much in-flight data"
        draft.vertex(vertex).put("snapshot.async", format_whole_ms(median(took_ms)), origin)


class _SmallSnapshots(NamedTuple):
    """The asynchronous phases of those subtasks of a vertex that wrote no state to a file, in one checkpoint."""

    took_ms: Sequence[int]
    work_ms: float  # median phase, without the time that barriers and files explain


def _small_snapshots(
    job: RestJob, point: RecordedCheckpoint, managers: Mapping[str, Mapping[int, str]]
) -> Iterator[tuple[str, _SmallSnapshots]]:
    """Yield (vertex, its phases without a state file) in a checkpoint.

    `managers` has the TaskManager of each subtask, by vertex and index.
    """
    inline, waits = inline_bytes(job), is_unaligned(job)
    snapshots_of = {
        name: [snapshot for snapshot in subtasks.values() if snapshot.checkpoint.async_ >= 0]
        for name, subtasks in acknowledged_in(job, point).items()
    }
    last_barrier_of: dict[str, float] = defaultdict(float)  # TaskManager -> ms after the trigger
    in_flight_of: dict[str, int] = defaultdict(int)
    for name, snapshots in snapshots_of.items():
        for snapshot in snapshots:
            manager = managers[name].get(snapshot.index, "")
            last_barrier_of[manager] = max(last_barrier_of[manager], last_barrier_ms(snapshot))
            in_flight_of[manager] += max(snapshot.alignment.persisted, 0)
    files = []  # (phase after the last barrier [ms], bytes, vertex) of each vertex that writes files, as medians
    for name, snapshots in snapshots_of.items():
        sizes = [
            max(snapshot.alignment.persisted, written if (written := written_bytes(snapshot)) > inline else 0)
            for snapshot in snapshots
        ]
        if sizes and median(sizes) > 0:
            phases_ms = (
                _phase_after_ms(snapshot, last_barrier_ms(snapshot) if waits else 0.0) for snapshot in snapshots
            )
            files.append((median(phases_ms), median(sizes), name))
    for name, snapshots in snapshots_of.items():
        small = [snapshot for snapshot in snapshots if written_bytes(snapshot) <= inline]
        if small:
            manager_ids = [managers[name].get(snapshot.index, "") for snapshot in small]
            rest_ms = median(
                _phase_after_ms(snapshot, last_barrier_of[manager_id] if waits else 0.0)
                for snapshot, manager_id in zip(small, manager_ids, strict=True)
            )
            # Writing k times as many bytes takes at most k times as long as the file of another vertex.
            shared_bytes = max(in_flight_of[manager_id] for manager_id in manager_ids)
            bounds_ms = [took_ms * max(1.0, shared_bytes / size) for took_ms, size, other in files if other != name]
            file_ms = min(bounds_ms, default=math.inf) if shared_bytes else 0.0
            yield name, _SmallSnapshots([snapshot.checkpoint.async_ for snapshot in small], rest_ms - file_ms)


def _phase_after_ms(subtask: RecordedSubtask, barrier_ms: float) -> float:
    """Return the part of an asynchronous phase [ms] after a barrier that arrived `barrier_ms` after the trigger."""
    begun_ms = max(subtask.start_delay, 0) + max(subtask.checkpoint.sync, 0)
    return max(subtask.checkpoint.async_ - max(barrier_ms - begun_ms, 0.0), 0.0)


# ---- Delay with which an idle task processes a barrier, and the bandwidth of in-flight data in unaligned checkpoints.
#
# A history shows the delay if tasks are idle: between the last barriers of two vertices or, if barriers overtake, between the
# first ones.  Without unaligned checkpoints, or with few that timed out, it does not show the bandwidth.  Both are needed to predict
# unaligned checkpoints, so what it does not show is taken from recordings of other jobs.  In a history of unaligned
# checkpoints, the bandwidth is part of the measured file latency, and so is the delay if tasks are busy.

ASSUMED_WAKE_UP_MS, OBSERVED_WAKE_UP_RANGE = 12, "2 to 43 ms"
"""Delay from one vertex to the next: medians of jobs on Flink 2.3 (`tests/data/users-jobs`)."""
MIN_IDLE_SHARE = 0.75
"""Minimum idle share of a task, so that barriers hardly ever wait behind records."""
MIN_BARRIERS = 5
"""Minimum number of barriers to infer the delay."""
ASSUMED_IN_FLIGHT_BANDWIDTH, OBSERVED_IN_FLIGHT_BANDWIDTHS = "25 MB/s", "11 MB/s to 46 MB/s"
"""Bandwidth of the one channel state writer of a TaskManager in these jobs.  The local disk wrote other files at 100 MB/s
and more.
"""
_AFTER_IN_FLIGHT_ORIGIN = (
    "assumed: operators of a chain are finalized in hash order; the last operator was first in all recorded jobs"
)


def infer_in_flight(draft: Draft, job: RestJob) -> None:
    """Set how late idle tasks take a barrier and, unless barriers always overtake, what only unaligned checkpoints show.

    The keys are `cluster.barrier-wake-up`, `storage.in-flight-bandwidth` and, for operator chains with state,
    `snapshot.after-in-flight`.
    """
    late_ms, always = list(_wake_up_delays_ms(draft, job)), _has_overtaking_barriers(job)
    if not any(vertex.inputs for vertex in job.vertices) or (always and len(late_ms) < MIN_BARRIERS):
        return
    wake_up_ms: float = ASSUMED_WAKE_UP_MS
    origin = f"assumed, because the history does not show it; {OBSERVED_WAKE_UP_RANGE} in recordings of other jobs"
    if len(late_ms) >= MIN_BARRIERS:
        wake_up_ms, barriers = max(median(late_ms), 0), f"{len(late_ms)} barriers from the last upstream task"
        origin = f"median of {barriers} to an idle task, less the buffer timeout"
        if always:
            origin = f"median of {len(late_ms)} barriers from the first upstream task to an idle task"
    draft.put("cluster.barrier-wake-up", format_whole_ms(wake_up_ms), origin)
    if always:
        return
    draft.put(
        "storage.in-flight-bandwidth",
        ASSUMED_IN_FLIGHT_BANDWIDTH,
        f"assumed, because aligned checkpoints do not show it; {OBSERVED_IN_FLIGHT_BANDWIDTHS} in recordings of other jobs",
    )
    for vertex in job.vertices:
        if len(vertex.chain) > 1 and "state" in draft.document["job"][vertex.name]:
            draft.vertex(vertex.name).put("snapshot.after-in-flight", True, _AFTER_IN_FLIGHT_ORIGIN)


def _has_overtaking_barriers(job: RestJob) -> bool:
    """Return whether barriers overtake records in most checkpoints, so that the history shows what that takes."""
    if not is_unaligned(job) or not job.checkpoint_config.aligned_checkpoint_timeout:
        return is_unaligned(job)
    tasks_of = [list(point.tasks.values()) for point in typical_checkpoints(job)]
    overtaken = [any(subtask.unaligned_checkpoint for task in tasks for subtask in task.subtasks) for tasks in tasks_of]
    return 2 * sum(overtaken) > len(overtaken)


def _wake_up_delays_ms(draft: Draft, job: RestJob) -> Iterator[float]:
    """Yield the delays with which idle tasks processed barriers [ms].

    Tasks are left out if they are busy, because barriers then wait behind records, or if an upstream vertex works before it
    forwards the barrier, as local windows that flush their rows.
    """
    flush_ms = 0.0 if _has_overtaking_barriers(job) else NetworkMemory().buffer_timeout_ns / 2 / 10**6
    for vertex in job.vertices:
        flow = job.flows[vertex.name]
        is_idle = flow.share("idle_ms") >= MIN_IDLE_SHARE
        if is_idle and not any(
            works_before_barrier(job, edge.upstream) or "stage" in draft.vertex(edge.upstream).values.get("window", {})
            for edge in vertex.inputs
        ):
            for wait_ms in _waits_ms(job, vertex):
                yield wait_ms - flow.share("busy_ms") * flush_ms


def _waits_ms(job: RestJob, vertex: RestVertex) -> Iterator[float]:
    """Yield, per checkpoint and subtask of a vertex, the time between the last barriers upstream and at the subtask [ms].

    If barriers overtake records, it is the time between the first barriers, with which snapshots begin.

    Yields nothing if an input is not all-to-all, because the last barrier upstream may then be meant for other subtasks.
    """
    upstream = {edge.upstream for edge in vertex.inputs if edge.is_pipelined and edge.ship in ALL_TO_ALL}
    if len(upstream) < len(vertex.inputs):
        return
    for point in typical_checkpoints(job):
        tasks = acknowledged_in(job, point)
        sent = [task for name in upstream for task in tasks[name].values()]
        for task in tasks[vertex.name].values() if sent else ():
            if _has_overtaking_barriers(job):
                yield task.start_delay - min(upstream_task.start_delay for upstream_task in sent)
            else:
                yield last_barrier_ms(task) - max(map(last_barrier_ms, sent))

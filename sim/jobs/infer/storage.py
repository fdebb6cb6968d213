"""The storage of a job: latency, bandwidth, uploads, in-flight data."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from sim.jobs.infer.cores import ALL_TO_ALL, acknowledged_in, usual_checkpoints, works_before_barrier
from sim.jobs.infer.draft import Draft, rate_text
from sim.jobs.infer.file_history import written_bytes
from sim.jobs.infer.flows import Flows
from sim.jobs.infer.heap import LOCAL_FILE_MS, MAX_LOCAL_FILE_MS, HeapSerialization, heap_serialization, is_local
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.cluster import NetworkMemory
from sim.model.job import Distribution
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.randomness import quantile_table
from sim.model.scenario import Overheads
from sim.model.state import Changelog, Lsm, StateOptions
from sim.model.storage import Storage
from sim.model.units import UnitError, format_byte_rate, format_duration, parse_duration, parse_flink_size

# ---- A line through asynchronous phases: the bytes of one stream, and how long the phase took.
#
# Theil and Sen's line: the median of the slopes between all pairs, which single slow checkpoints do not bend.  It
# begins at the latency of a file, and its slope is the time per byte.

MIN_PHASES_FOR_LINE = 8
"""Fewer phases are no line."""
MAX_PHASES_FOR_LINE = 600
"""More phases are thinned out: time and memory grow with their square."""
SPREAD = 1.5
"""Ratio of the most to the least bytes: closer ones show only a sum."""


class AsyncPhase(NamedTuple):
    """The asynchronous phase of one subtask in one checkpoint."""

    stream_bytes: float
    took_ms: float


class FittedLine(NamedTuple):
    """A line through asynchronous phases.  `is_told`: whether the slope is larger than 0 with 95 % confidence."""

    latency_ms: float
    bytes_per_ms: float
    slowest: float  # bytes per ms
    fastest: float  # infinite: the time may not depend on the bytes
    is_told: bool


def stream_bytes(written: int, table: int, threads: int) -> float:
    """Bytes that one of so many streams carries, if a file has at most `table` bytes: files go side by side."""
    return max(min(written, table), written / threads)


def line_through(phases: Sequence[AsyncPhase]) -> FittedLine | None:
    """The line through phases.  None: there are too few, or all write alike."""
    if len(phases) < MIN_PHASES_FOR_LINE:
        return None
    chosen = sorted(phases)[:: -(-len(phases) // MAX_PHASES_FOR_LINE)]
    sizes, took = np.array(chosen, dtype=float).T
    if sizes[-1] < SPREAD * sizes[0]:
        return None
    from scipy.stats import theilslopes  # 0.4 s of processor time, which other commands need not spend

    with np.errstate(invalid="ignore"):  # too many phases take equally long: the bounds are not numbers
        fitted = theilslopes(took, sizes)
    slope, low, high = float(fitted.slope), float(fitted.low_slope), float(fitted.high_slope)
    if slope <= 0:
        return FittedLine(
            float(np.median(took)), float("inf"), 1 / high if high > 0 else float("inf"), float("inf"), is_told=False
        )
    latency = float(np.median(took - slope * sizes))
    if latency < 0:  # then all of the time goes into the bytes
        latency, slope = 0.0, float(np.median(took / sizes))
    return FittedLine(latency, 1 / slope, 1 / high, 1 / low if low > 0 else float("inf"), is_told=low > 0)


# ---- The speed of checkpoint storage, read off the asynchronous phases: latency per file, and bandwidth.
#
# Every subtask gives a point per checkpoint: the bytes of its longest stream, and the duration of its asynchronous
# phase.  A line through all points begins at the latency, and its slope is the bandwidth.  State below
# `data-inline-threshold` is written to no file and gives no point.  Tables of RocksDB are written side by side.  A
# changelog waits for its batch before it writes.  Subtasks that write alike show only the sum.  Then late checkpoints
# may show the latency of the metadata, which stands for all.
#
# With unaligned checkpoints an asynchronous phase also waits for the remaining barriers, and for tasks that share its
# file of channel state (FLINK-26803).  Under an aligned timeout it waits for the barrier to leave the output queue as
# well.  Then only vertices without readers give points, from snapshots that waited for no barrier; if these are no
# line, from those with little in flight.  Those may write no file.  Then all vertices give points, if each task has a
# file of channel state for itself: state and channel state are written side by side, so the longer stream counts.

INLINE_OPTIONS = (
    "execution.checkpointing.data-inline-threshold",
    "state.storage.fs.memory-threshold",
    "state.backend.fs.memory-threshold",
)
"""Names of one option over the years, the newest first."""
ASSUMED_BYTES_PER_SECOND = 100_000_000
FASTEST_BYTES_PER_SECOND = 10**12
TRANSFER_LATENCIES = 3  # latencies: a longer asynchronous phase is mostly transfer of bytes
MAX_IDLE_ALIGNMENT_MS = 10  # alignment of a snapshot that waited for no barrier
MAX_IN_FLIGHT_SHARE = 0.1  # of the bytes of the state: so much in flight is written beside it
LONG_BEFORE = 0.25  # of the usual asynchronous phase: a barrier that came by then held nothing up
_QUESTION = "How fast does checkpoint storage write one file, in bytes per second?"


def infer_storage(draft: Draft, job: RestJob, flowed: Mapping[str, Flows] = MappingProxyType({})) -> None:
    """Set `storage:`, and `state.serialize`: what a core does in the same phase."""
    work = heap_serialization(draft, job, flowed)
    phases = _phases_of_storage(draft, job)
    metadata_ms, gaps = _metadata(job)
    if not phases:
        draft.ask(
            "storage.bandwidth",
            format_byte_rate(ASSUMED_BYTES_PER_SECOND),
            _QUESTION,
            "100 MB/s: no completed checkpoint tells.",
        )
        latency = f"{20 if metadata_ms is None else metadata_ms} ms"
        draft.ask("storage.file-latency", latency, "How long does it take to write the smallest file?", f"{latency}.")
        if metadata_ms is not None:
            draft.put("storage.metadata-latency", latency, gaps)
        return
    line = line_through(phases)
    told = line is not None and line.is_told
    latency_ms = (
        _from_line(draft, phases, line)
        if line is not None and told
        else _from_sums(draft, job, phases, metadata_ms, work)
    )
    if metadata_ms is None:
        metadata_ms, gaps = round(latency_ms), "as for any file: only late checkpoints show it"
    draft.put("storage.metadata-latency", format_duration(metadata_ms * 10**6), gaps)


def _from_line(draft: Draft, phases: list[AsyncPhase], line: FittedLine) -> float:
    """Set latency and bandwidth by a line.  Returns the latency [ms]."""
    low, high, sizes = _rate(line.slowest), _rate(line.fastest), [phase.stream_bytes for phase in phases]
    draft.put(
        "storage.bandwidth",
        _rate(line.bytes_per_ms),
        (
            f"line (Theil-Sen) through {len(phases)} asynchronous phases of {min(sizes):,.0f} to {max(sizes):,.0f} bytes in one stream; "
            f"{low} to {high} with 95 % confidence"
        ),
    )
    draft.put("storage.file-latency", format_duration(round(line.latency_ms) * 10**6), "where that line begins")
    return line.latency_ms


def _from_sums(
    draft: Draft, job: RestJob, phases: list[AsyncPhase], metadata_ms: int | None, work: HeapSerialization | None = None
) -> float:
    """Set latency or bandwidth by sums of latency and transfer, and what a core serialises if that is most.  Returns the latency [ms]."""
    took_ms, size = median(phase.took_ms for phase in phases), median(phase.stream_bytes for phase in phases)
    origin = f"median of {len(phases)} asynchronous phases: {size:,.0f} bytes in {took_ms:g} ms"
    works = work is not None and work.work_ms(size) > took_ms / 2
    if metadata_ms is not None and took_ms > TRANSFER_LATENCIES * metadata_ms and not works:
        draft.put(
            "storage.bandwidth", _rate(size / (took_ms - metadata_ms)), f"{origin}; less the latency of the metadata"
        )
        draft.put("storage.file-latency", format_duration(metadata_ms * 10**6), "as for the metadata")
        return metadata_ms
    fastest = max(phases, key=lambda phase: phase.stream_bytes / max(phase.took_ms, 1))
    at_least = fastest.stream_bytes / max(fastest.took_ms, 1)
    lasted = not is_unaligned(job) and fastest.took_ms > TRANSFER_LATENCIES * took_ms
    per_ms = max(0 if lasted else ASSUMED_BYTES_PER_SECOND / 1000, at_least)
    least, most = (pick(phase.stream_bytes for phase in phases) for pick in (min, max))
    alike = (
        f"subtasks write {least:,.0f} to {most:,.0f} bytes, and the time does not tell how much of it goes into bytes"
    )
    draft.ask(
        "storage.bandwidth",
        _rate(per_ms),
        _QUESTION,
        f"{_rate(per_ms)}; {alike}; one wrote {at_least * 1000:,.0f} bytes/s.",
    )
    latency_ms = max(took_ms - size / per_ms, 0.0)
    if work is None or not (works or (is_local(job) and latency_ms > MAX_LOCAL_FILE_MS)):
        draft.put(
            "storage.file-latency", format_duration(round(latency_ms) * 10**6), f"{origin}, less the bytes at that rate"
        )
        return latency_ms
    shared = f" x {work.slower:.2g}, for other threads want its cores" if work.slower > 1 else ""
    rate = rate_text(size / took_ms * 1000 * work.slower)
    draft.put(
        "state.serialize", rate, f"{origin}{shared}: work of a core, one thread for each subtask", job=work.vertex
    )
    latency_ms = (
        round(min(latency_ms or LOCAL_FILE_MS, LOCAL_FILE_MS, took_ms / 2)) if metadata_ms is None else metadata_ms
    )
    assumed = f"{latency_ms:.0f} ms, at most {took_ms:.0f} ms: {origin}, most of which a core needs to serialise them."
    draft.ask(
        "storage.file-latency",
        format_duration(int(latency_ms) * 10**6),
        "How long does it take to write a small file?",
        assumed,
    )
    return latency_ms


def _rate(bytes_per_ms: float) -> str:
    return rate_text(min(bytes_per_ms * 1000, FASTEST_BYTES_PER_SECOND))


def _phases_of_storage(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Phases of all subtasks that write files, in all checkpoints."""
    if not is_unaligned(job):
        return [phase for vertex in job.vertices for phase in _of_vertex(draft, job, vertex, lambda _: True)]
    ends = [vertex for vertex in job.vertices if not job.readers(vertex.name)]
    prompt = [phase for vertex in ends for phase in _of_vertex(draft, job, vertex, _is_prompt)]
    line = line_through(prompt)
    if len(prompt) >= MIN_PHASES_FOR_LINE and line is not None and line.is_told:
        return prompt
    calm = [phase for vertex in ends for phase in _of_vertex(draft, job, vertex, _has_little_in_flight(job, vertex))]
    return calm or prompt or _with_channel_state(draft, job)


def _with_channel_state(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Phases of all vertices whose barriers came together; none where a file of channel state may hold that of other tasks as well.

    Under an aligned timeout a phase waits for the barrier to leave the output queue, which nothing tells.
    """
    timeout = job.checkpoint_config.aligned_checkpoint_timeout if job.checkpoint_config else None
    if timeout or draft.document.get("cluster", {}).get("placement") != "isolated":
        return []
    return [
        AsyncPhase(float(max(written_bytes(subtask), subtask.alignment.persisted)), float(subtask.checkpoint.async_))
        for point in usual_checkpoints(job)
        for name, task in point.tasks.items()
        for subtask in task.subtasks
        if subtask.status == "completed"
        and subtask.checkpoint.async_ >= 0
        and subtask.alignment.duration <= MAX_IDLE_ALIGNMENT_MS
        and "async" not in draft.document["job"][name].get("snapshot", {})
        and max(written_bytes(subtask), subtask.alignment.persisted) > inline_bytes(job)
    ]


def _is_prompt(subtask: RecordedSubtask) -> bool:
    return not subtask.unaligned_checkpoint and subtask.alignment.duration <= MAX_IDLE_ALIGNMENT_MS


def _has_little_in_flight(job: RestJob, vertex: RestVertex) -> Callable[[RecordedSubtask], bool]:
    """Beside its state; and the last barrier was there when the asynchronous phase began, or long before it usually ends.

    The usual phase decides, not the own one: that would choose long phases among those that waited, and make storage
    slow.
    """
    usual_ms = _usual_ms(job, vertex)

    def counts(subtask: RecordedSubtask) -> bool:
        waited_ms = subtask.alignment.duration
        waits = (
            waited_ms > max(subtask.checkpoint.sync, 0) + MAX_IDLE_ALIGNMENT_MS
            and waited_ms > LONG_BEFORE * usual_ms[subtask.index]
        )
        return not waits and subtask.alignment.persisted < MAX_IN_FLIGHT_SHARE * written_bytes(subtask)

    return counts


def _usual_ms(job: RestJob, vertex: RestVertex) -> dict[int, float]:
    """The median asynchronous phase of each subtask."""
    phases: dict[int, list[int]] = {}
    for point in usual_checkpoints(job):
        for subtask in point.tasks[vertex.name].subtasks if vertex.name in point.tasks else ():
            if subtask.status == "completed" and subtask.checkpoint.async_ >= 0:
                phases.setdefault(subtask.index, []).append(subtask.checkpoint.async_)
    return {index: median(durations) for index, durations in phases.items()}


def _of_vertex(
    draft: Draft, job: RestJob, vertex: RestVertex, counts: Callable[[RecordedSubtask], bool]
) -> list[AsyncPhase]:
    inline, state = inline_bytes(job), draft.document["job"][vertex.name].get("state", {})
    logs, tables = "changelog" in state, "backend" in state
    batch_ms = Changelog().batch_delay_ns / 10**6 if logs else 0.0
    return [
        AsyncPhase(
            stream_bytes(size, Lsm().table_bytes, StateOptions().transfer_threads)
            if tables and not logs
            else float(size),
            max(subtask.checkpoint.async_ - batch_ms, 0.0),
        )
        for point in usual_checkpoints(job)
        if vertex.name in point.tasks
        for subtask in point.tasks[vertex.name].subtasks
        if subtask.status == "completed"
        and subtask.checkpoint.async_ >= 0
        and counts(subtask)
        and (size := written_bytes(subtask)) > inline
    ]


def inline_bytes(job: RestJob) -> int:
    """The largest state that travels in the acknowledgement instead of a file."""
    threshold = next((job.options[key] for key in INLINE_OPTIONS if key in job.options), None)
    try:
        return Storage().inline_threshold_bytes if threshold is None else parse_flink_size(threshold)
    except UnitError:
        return Storage().inline_threshold_bytes


def is_unaligned(job: RestJob) -> bool:
    return job.checkpoint_config is not None and bool(job.checkpoint_config.unaligned_checkpoints)


def _metadata(job: RestJob) -> tuple[int | None, str]:
    """(latency [ms], origin): after a late checkpoint the next is triggered as soon as the metadata is written."""
    config, points = job.checkpoint_config, usual_checkpoints(job)
    if config is None or config.max_concurrent != 1 or config.min_pause:
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


# ---- What operators do in their asynchronous phase beside writing state: what they upload themselves, for instance (FLINK-37375).
#
# Flink reports the phase as a whole.  Where state and data in flight need no file, all of it is work.  With unaligned
# checkpoints the phase also waits for the remaining barriers, and for a file of channel state that tasks of one
# TaskManager share (FLINK-26803).  The files of other vertices bound that: a file has a latency and a bandwidth, so one
# that is k times as large takes at most k times as long.  Under an aligned timeout the phase waits for the barrier to
# leave the output queue as well, which nothing tells.


def infer_uploads(draft: Draft, job: RestJob) -> None:
    """Set `snapshot: {async}` of vertices whose asynchronous phase takes longer than barriers and files explain."""
    if job.checkpoint_config is not None and is_unaligned(job) and job.checkpoint_config.aligned_checkpoint_timeout:
        return
    hosts = {
        (name, place.subtask): place.taskmanager_id
        for name, details in job.details.items()
        for place in details.subtasks
    }
    found: dict[str, list[_Phases]] = defaultdict(list)
    for point in usual_checkpoints(job):
        for vertex, phases in _phases(job, point, hosts).items():
            found[vertex].append(phases)
    for vertex, own in found.items():
        working = [phases for phases in own if phases.work_ms > NEGLIGIBLE_MS]
        if median(phases.work_ms for phases in own) <= NEGLIGIBLE_MS:
            continue
        took_ms = [ms for phases in working for ms in phases.took_ms]
        origin = f"median asynchronous duration of {len(took_ms)} snapshots whose state is too small for a file"
        if is_unaligned(job):
            origin += "; longer than the remaining barriers, and than others take for as much data in flight"
        draft.put("snapshot.async", format_duration(round(median(took_ms)) * 10**6), origin, job=vertex)


@dataclass(frozen=True, slots=True)
class _Phases:
    """The asynchronous phases of the subtasks of a vertex in one checkpoint, if they write no state to files."""

    took_ms: Sequence[int]
    work_ms: float  # in the median: beyond barriers and files


def _phases(job: RestJob, point: RecordedCheckpoint, hosts: Mapping[tuple[str, int], str]) -> Mapping[str, _Phases]:
    """Vertex -> phases.  `hosts`: the TaskManager of each vertex and subtask."""
    acknowledged = {
        name: {i: own for i, own in subtasks.items() if own.checkpoint.async_ >= 0}
        for name, subtasks in acknowledged_in(job, point).items()
    }
    files, inline, waits = sorted(_files(job, acknowledged)), inline_bytes(job), is_unaligned(job)
    last_ms: dict[str, float] = defaultdict(float)
    in_flight: dict[str, int] = defaultdict(int)
    for name, subtasks in acknowledged.items():
        for index, own in subtasks.items():
            host = hosts.get((name, index), "")
            last_ms[host] = max(last_ms[host], _last_barrier_ms(own))
            in_flight[host] += max(own.alignment.persisted, 0)
    found = {}
    for name, subtasks in acknowledged.items():
        small = {index: own for index, own in subtasks.items() if written_bytes(own) <= inline}
        if not small:
            continue
        rest_ms = median(
            _after_ms(own, last_ms[hosts.get((name, index), "")] if waits else 0.0) for index, own in small.items()
        )
        shared_bytes = max(in_flight[hosts.get((name, index), "")] for index in small)
        storage_ms = (
            _storage_ms(shared_bytes, (file for file in files if file[2] != name)) if rest_ms > NEGLIGIBLE_MS else 0.0
        )
        found[name] = _Phases([own.checkpoint.async_ for own in small.values()], rest_ms - storage_ms)
    return found


def _files(
    job: RestJob, acknowledged: Mapping[str, Mapping[int, RecordedSubtask]]
) -> Iterator[tuple[float, float, str]]:
    """(time after the last barrier [ms], bytes, vertex) of the vertices that write files."""
    waits, inline = is_unaligned(job), inline_bytes(job)
    for name, subtasks in acknowledged.items():
        sizes = [
            max(own.alignment.persisted, written if (written := written_bytes(own)) > inline else 0)
            for own in subtasks.values()
        ]
        if sizes and median(sizes) > 0:
            yield (
                median(_after_ms(own, _last_barrier_ms(own) if waits else 0.0) for own in subtasks.values()),
                median(sizes),
                name,
            )


def _storage_ms(size: int, files: Iterable[tuple[float, float, str]]) -> float:
    """What a file of so many bytes takes at most.  `files`: of other vertices, the fastest first; infinite: there are none."""
    if not size:
        return 0.0
    bound_ms = math.inf
    for took_ms, file_bytes, _ in files:
        if took_ms >= bound_ms:
            break
        bound_ms = min(bound_ms, took_ms * max(1.0, size / file_bytes))
    return bound_ms


def _after_ms(subtask: RecordedSubtask, barrier_ms: float) -> float:
    """The part of the asynchronous phase after a barrier.  `barrier_ms`: when that came, after the trigger."""
    begun_ms = max(subtask.start_delay, 0) + max(subtask.checkpoint.sync, 0)
    return max(subtask.checkpoint.async_ - max(barrier_ms - begun_ms, 0.0), 0.0)


def _last_barrier_ms(subtask: RecordedSubtask) -> float:
    return max(subtask.start_delay, 0) + max(subtask.alignment.duration, 0)


# ---- How late a task is for a barrier, and how fast unaligned checkpoints write in-flight data.
#
# A history of aligned checkpoints tells the first where tasks are idle, and never the second.  Values of recordings
# stand for what it does not tell, as they decide what unaligned checkpoints gain.  In a history of unaligned ones both
# are part of what each file takes (`sim.jobs.infer.storage`).

WAKE_UP_MS, WAKE_UP_RANGE = 12, "2 to 43 ms"
"""From one vertex to the next, medians of jobs on Flink 2.3 (`tests/data/users-jobs`): code that runs once in a checkpoint is slow."""
IDLE = 0.75
"""Idle share of a task before which few records wait when a barrier comes."""
MIN_BARRIERS = 5
"""Barriers that tell how late tasks are."""
BANDWIDTH, BANDWIDTH_RANGE = "25 MB/s", "11 MB/s to 46 MB/s"
"""Of the one thread that writes for a task manager, in the same jobs, on a local disk that took other files at 100 MB/s and more."""
ASSUMED = "assumed, as no unaligned checkpoint tells; {} in recordings of other jobs"
AFTER = (
    "assumed: operators of a chain are finalized in the order of a hash; the last one came first in all recorded jobs"
)


def infer_in_flight(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `cluster.barrier-wake-up`, `storage.in-flight-bandwidth` and `snapshot.after-in-flight` of chains, for an aligned history."""
    if is_unaligned(job) or not any(vertex.inputs for vertex in job.vertices):
        return
    late_ms = list(_wake_ups_ms(job, flowed))
    if len(late_ms) < MIN_BARRIERS:
        draft.put(
            "cluster.barrier-wake-up",
            f"{WAKE_UP_MS} ms",
            f"assumed, as no task is idle; {WAKE_UP_RANGE} in recordings of other jobs",
        )
    else:
        origin = f"median of {len(late_ms)} barriers, from the last task that sent one to tasks that are idle"
        late = format_duration(max(round(median(late_ms)), 0) * 10**6)
        draft.put("cluster.barrier-wake-up", late, f"{origin}, less what waits to be flushed")
    draft.put("storage.in-flight-bandwidth", BANDWIDTH, ASSUMED.format(BANDWIDTH_RANGE))
    for vertex in job.vertices:
        if len(vertex.chain) > 1 and "state" in draft.document["job"][vertex.name]:
            draft.put("snapshot.after-in-flight", True, AFTER, job=vertex.name)


def _wake_ups_ms(job: RestJob, flowed: Mapping[str, Flows]) -> Iterator[float]:
    """How long barriers waited where little waits before them: the task is idle, and nothing before it works before its barrier."""
    flush_ms = NetworkMemory().buffer_timeout_ns / 2 / 10**6
    for vertex in job.vertices:
        flow = flowed[vertex.name]
        is_idle = flow.share("idle_ms") >= IDLE
        if is_idle and not any(works_before_barrier(job, edge.upstream) for edge in vertex.inputs):
            for _, wait_ms in _waits_ms(job, vertex):
                yield wait_ms - flow.share("busy_ms") * flush_ms


def _waits_ms(job: RestJob, vertex: RestVertex) -> Iterator[tuple[int, float]]:
    """(subtask, time) from the last barrier that the tasks before a vertex sent, to the last one that each of its tasks took."""
    upstream = {edge.upstream for edge in vertex.inputs if edge.is_pipelined and edge.ship in ALL_TO_ALL}
    if len(upstream) < len(vertex.inputs):
        return
    for point in usual_checkpoints(job):
        tasks = acknowledged_in(job, point)
        sent_ms = [_took_barriers_ms(task) for name in upstream for task in tasks[name].values()]
        for index, task in tasks[vertex.name].items() if sent_ms else ():
            yield index, _took_barriers_ms(task) - max(sent_ms)


# ---- How irregularly work comes to a busy task: barriers wait behind it.
#
# Records that come evenly and take alike hardly wait, however busy their task is.  Joins and hot keys bring theirs in
# bursts, and what then waits is in proportion to ``load / (1 - load)`` and to the variance (Pollaczek and Khinchine).  A
# scenario has all of the variance in its services.  In such a queue the median wait is ln 2 of the mean.

BURSTY_LOADS = (0.7, 0.98)
"""Busy shares that tell: others make little wait, and behind a full one waits what buffers hold.  Threads that wait for cores are busy, too."""


def infer_bursts(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set a law of `service` where barriers wait longer for a busy task than for records that take alike."""
    for vertex in () if is_unaligned(job) or draft.scarce else job.vertices:
        given, flows = draft.document["job"][vertex.name], flowed[vertex.name].subtasks
        # a task that waits for room makes barriers wait, too
        shares = [
            flow.busy_ms / flow.elapsed_ms if flow.elapsed_ms > 20 * flow.backpressured_ms else 0.0 for flow in flows
        ]
        load = max(shares, default=0.0)
        if not BURSTY_LOADS[0] <= load <= BURSTY_LOADS[1] or given.keys() & {"window", "async-io"}:
            continue
        busiest, buffered_ms = shares.index(load), load * NetworkMemory().buffer_timeout_ns / 10**6 + WAKE_UP_MS
        waits_ms = [wait_ms for index, wait_ms in _waits_ms(job, vertex) if index == busiest]
        if len(waits_ms) >= MIN_BARRIERS and (wait_ms := median(waits_ms)) > buffered_ms + NEGLIGIBLE_MS:
            mean_ns = (wait_ms - buffered_ms) / math.log(2) * 10**6
            variance = 2 * mean_ns * (1 - load) / (load * parse_duration(given["service"])) - 1
            why = f"{wait_ms:,.0f} ms in which barriers wait for subtask {busiest}, {load:.0%} busy (median), show bursts: cv has them"
            draft.add_to("service", why, job=vertex.name)
            given["service"] = {"lognormal": {"mean": given["service"], "cv": _lognormal_cv(max(variance, 1) ** 0.5)}}


def _lognormal_cv(cv: float) -> int:
    """Return the `cv` to write for draws that have this one: tables of draws cut the tail of a law off."""
    laws = [Distribution(10**6, "lognormal", written) for written in range(1, 101)]
    return next(int(law.cv) for law in laws if np.std(quantile_table(law)) >= cv * law.mean or law is laws[-1])


def _took_barriers_ms(task: RecordedSubtask) -> float:
    return max(task.start_delay, 0) + max(task.alignment.duration, 0)

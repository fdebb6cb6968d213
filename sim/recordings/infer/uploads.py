"""What operators do in their asynchronous phase beside writing state: what they upload themselves, for instance (FLINK-37375).

Flink reports the phase as a whole.  Where state and data in flight need no file, all of it is work.  With unaligned checkpoints the
phase also waits for the remaining barriers, and for a file of channel state that tasks of one TaskManager share (FLINK-26803).  The files
of other vertices bound that: a file has a latency and a bandwidth, so one that is k times as large takes at most k times as long.
Under an aligned timeout the phase waits for the barrier to leave the output queue as well, which nothing tells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.infer.before_barrier import acknowledged_in, usual_checkpoints
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.file_history import written_bytes
from sim.recordings.infer.storage import inline_bytes, is_unaligned
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.recordings.source.rest.job import RestJob
from sim.units import format_duration


def infer_uploads(draft: Draft, job: RestJob) -> None:
    """Set `snapshot: {async}` of vertices whose asynchronous phase takes longer than barriers and files explain."""
    if job.checkpoint_config is not None and is_unaligned(job) and job.checkpoint_config.aligned_checkpoint_timeout:
        return
    hosts = {(name, place.subtask): place.taskmanager_id for name, details in job.details.items() for place in details.subtasks}
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
    acknowledged = {name: {i: own for i, own in subtasks.items() if own.checkpoint.async_ >= 0}
                    for name, subtasks in acknowledged_in(job, point).items()}  # fmt: skip
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
        rest_ms = median(_after_ms(own, last_ms[hosts.get((name, index), "")] if waits else 0.0) for index, own in small.items())
        shared_bytes = max(in_flight[hosts.get((name, index), "")] for index in small)
        storage_ms = _storage_ms(shared_bytes, (file for file in files if file[2] != name)) if rest_ms > NEGLIGIBLE_MS else 0.0
        found[name] = _Phases([own.checkpoint.async_ for own in small.values()], rest_ms - storage_ms)
    return found


def _files(job: RestJob, acknowledged: Mapping[str, Mapping[int, RecordedSubtask]]) -> Iterator[tuple[float, float, str]]:
    """(time after the last barrier [ms], bytes, vertex) of the vertices that write files."""
    waits, inline = is_unaligned(job), inline_bytes(job)
    for name, subtasks in acknowledged.items():
        sizes = [max(own.alignment.persisted, written if (written := written_bytes(own)) > inline else 0) for own in subtasks.values()]
        if sizes and median(sizes) > 0:
            yield median(_after_ms(own, _last_barrier_ms(own) if waits else 0.0) for own in subtasks.values()), median(sizes), name


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

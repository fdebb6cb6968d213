"""Work before the barrier, told from the latency of scheduling and acknowledgement: no field of Flink names either.

Both are the rest of the time to a subtask's acknowledgement: less start delay, alignment, synchronous and asynchronous phase.  Two things
tell them apart.  Work before the barrier (`prepareSnapshotPreBarrier`: flushes of sinks, of SQL windows, of mini-batches, asynchronous
state that is drained) delays the barrier, so no reader can have it earlier.  And latency strikes all vertices of a job alike: a vertex
works before the barrier only if its rests exceed those of vertices that provably do not.

An unaligned snapshot does not wait for the other barriers; that wait belongs to its asynchronous phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.recordings.source.rest.answers import CheckpointConfig
from sim.recordings.source.rest.job import RestInput, RestVertex

LEAST_MS = NEGLIGIBLE_MS / 3
"""A lower average of long rests is noise with some outliers."""
AGAIN = 2
"""Checkpoints with a long rest: what happened once is an outlier, not what an operator does."""
ALL_TO_ALL = ("HASH", "REBALANCE", "BROADCAST", "SHUFFLE", "CUSTOM", "GLOBAL")

Acknowledged = Mapping[str, Mapping[int, RecordedSubtask]]
"""Vertex -> index -> acknowledgement, in one checkpoint."""


class WatchedJob(Protocol):
    """A job with a history of checkpoints, from any source.  It equals no other job, so that what is found of it can be cached."""

    def __hash__(self) -> int: ...

    @property
    def vertices(self) -> tuple[RestVertex, ...]: ...

    @property
    def checkpoints(self) -> tuple[RecordedCheckpoint, ...]: ...

    @property
    def checkpoint_config(self) -> CheckpointConfig | None: ...


@dataclass(frozen=True, slots=True)
class Rest:
    """The part of the time to an acknowledgement that no field explains [ms]."""

    checkpoint: RecordedCheckpoint
    subtask: RecordedSubtask
    all_ms: float
    at_most_ms: float  # of it before the barrier: the readers had the barrier then

    @property
    def before_barrier_ms(self) -> float:
        return max(min(self.all_ms, self.at_most_ms), 0.0)

    @property
    def latency_ms(self) -> float:
        """The part that is certainly no work before the barrier."""
        return max(self.all_ms, 0.0) - self.before_barrier_ms


def usual_checkpoints(job: WatchedJob) -> list[RecordedCheckpoint]:
    """Completed periodic checkpoints, without the job's first if there are others: it met cold caches and short queues."""
    done = [point for point in job.checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return done[1:] if len(done) > 1 and done[0].id == 1 else done


@lru_cache(maxsize=1)
def rests(job: WatchedJob) -> Mapping[str, list[Rest]]:
    """Vertex -> rests of all its acknowledgements in usual checkpoints."""
    found: dict[str, list[Rest]] = {vertex.name: [] for vertex in job.vertices}
    for point in usual_checkpoints(job):
        acknowledged = acknowledged_in(job, point)
        for vertex in job.vertices:
            for subtask in acknowledged[vertex.name].values():
                begun_ms = _begun_ms(subtask, job)
                phases_ms = max(subtask.checkpoint.sync, 0) + max(subtask.checkpoint.async_, 0)
                at_most_ms = barrier_at_readers_ms(job, vertex.name, subtask, acknowledged) - begun_ms
                found[vertex.name].append(Rest(point, subtask, subtask.end_to_end_duration - begun_ms - phases_ms, at_most_ms))
    return found


def works_before_barrier(job: WatchedJob, vertex: str) -> bool:
    """Whether its rests are work: long, before the barrier, and beyond the latency that the other vertices show."""
    found = rests(job)
    if len({rest.checkpoint.id for rest in found[vertex] if rest.before_barrier_ms > NEGLIGIBLE_MS}) < AGAIN:
        return False
    likely = {name for name, own in found.items() if _mean_of_long(rest.before_barrier_ms for rest in own) > LEAST_MS}
    latencies = [rest.latency_ms if name in likely else rest.all_ms for name, own in found.items() if name != vertex for rest in own]
    return _mean_of_long(rest.before_barrier_ms for rest in found[vertex]) > LEAST_MS + _mean_of_long(latencies)


def _mean_of_long(durations_ms: Iterable[float]) -> float:
    """The mean of all, where those that are noise count as nothing."""
    values = list(durations_ms)
    return math.fsum(value for value in values if value > NEGLIGIBLE_MS) / max(len(values), 1)


def acknowledged_in(job: WatchedJob, point: RecordedCheckpoint) -> Acknowledged:
    """The acknowledgements of all vertices in one checkpoint."""
    return {vertex.name: dict(_acknowledged(point, vertex.name)) for vertex in job.vertices}


def _acknowledged(point: RecordedCheckpoint, vertex: str) -> Iterator[tuple[int, RecordedSubtask]]:
    for subtask in point.tasks[vertex].subtasks if vertex in point.tasks else ():
        if subtask.status == "completed" and subtask.end_to_end_duration >= 0:
            yield subtask.index, subtask


def _begun_ms(subtask: RecordedSubtask, job: WatchedJob) -> float:
    """From the trigger to the last barrier; unaligned: to the first one.  A barrier that timed out began somewhere in between."""
    config = job.checkpoint_config
    unaligned = config is not None and bool(config.unaligned_checkpoints) and not config.aligned_checkpoint_timeout
    return max(subtask.start_delay, 0) + (0 if unaligned else max(subtask.alignment.duration, 0))


def barrier_at_readers_ms(job: WatchedJob, vertex: str, subtask: RecordedSubtask, acknowledged: Acknowledged) -> float:
    """When the first of its readers had all barriers, this subtask's among them; infinite: it has no readers."""
    bounds = [
        _arrival_ms(edge, subtask, acknowledged[reader.name])
        for reader in job.vertices
        for edge in reader.inputs
        if edge.upstream == vertex and edge.is_pipelined and acknowledged[reader.name]
    ]
    return min(bounds, default=math.inf)


def _arrival_ms(edge: RestInput, subtask: RecordedSubtask, readers: Mapping[int, RecordedSubtask]) -> float:
    arrivals_ms = {index: max(reader.start_delay, 0) + max(reader.alignment.duration, 0) for index, reader in readers.items()}
    if edge.ship in ALL_TO_ALL:
        return min(arrivals_ms.values())
    return arrivals_ms.get(subtask.index, math.inf) if edge.ship == "FORWARD" else max(arrivals_ms.values())

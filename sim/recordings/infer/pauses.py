"""The pauses of the task thread during snapshots, read off the history of checkpoints.

Flink reports the synchronous phase.  It has no field for work before the barrier is forwarded (`prepareSnapshotPreBarrier`).
That work is the rest of the time to a subtask's acknowledgement: less start delay, alignment, synchronous and asynchronous phase.
An unaligned snapshot does not wait for the other barriers; that wait belongs to its asynchronous phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.flows import Flows
from sim.recordings.source.recorded_job import Checkpoint, Subtask
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_duration, format_share

__all__ = ["NOISE_MS", "busy_in_snapshots_ms", "infer_pauses", "settled"]

NOISE_MS = 60
"""Shorter differences of durations are scheduling noise of a busy machine (`sim.validation.truth.NEGLIGIBLE_MS`)."""


def settled(job: RestJob) -> list[Checkpoint]:
    """Completed periodic checkpoints, without the job's first if there are others: it met cold caches and short queues."""
    done = [point for point in job.checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return done[1:] if len(done) > 1 and done[0].id == 1 else done


def infer_pauses(draft: Draft, job: RestJob, vertex: RestVertex) -> None:
    """Set `snapshot: {pre-barrier, sync}` if they take longer than noise."""
    pauses = [before_barrier_ms(subtask, job) for _, subtask in _snapshots(job, vertex)]
    long = [pause for pause in pauses if pause > NOISE_MS]
    if sum(long) * 3 > NOISE_MS * len(pauses):  # a lower average is noise with some outliers
        found = f"in {len(long)} of {len(pauses)} snapshots"
        origin = f"median of what remains of end-to-end without start delay, alignment, sync and async {found}"
        draft.put("snapshot.pre-barrier", format_duration(round(median(long)) * 10**6), origin, job=vertex.name)
        if len(long) * 20 < len(pauses) * 19:
            share = Fraction(round(100 * len(long) / len(pauses)), 100)
            draft.put("snapshot.probability", format_share(share), f"{len(long)} / {len(pauses)}", job=vertex.name)
    syncs = [subtask.checkpoint.sync for _, subtask in _snapshots(job, vertex) if subtask.checkpoint.sync >= 0]
    if syncs and median(syncs) > NOISE_MS and "pre-barrier" not in draft.document["job"][vertex.name].get("snapshot", {}):
        origin = f"median sync duration of {len(syncs)} snapshots"
        draft.put("snapshot.sync", format_duration(round(median(syncs)) * 10**6), origin, job=vertex.name)


def before_barrier_ms(subtask: Subtask, job: RestJob) -> int:
    """The time from the last barrier (unaligned: the first) to the synchronous phase."""
    config = job.checkpoint_config
    unaligned = config is not None and bool(config.unaligned_checkpoints)
    phases = (subtask.start_delay, subtask.checkpoint.sync, subtask.checkpoint.async_, 0 if unaligned else subtask.alignment.duration)
    return subtask.end_to_end_duration - sum(max(phase, 0) for phase in phases)


def busy_in_snapshots_ms(job: RestJob, vertex: RestVertex, flow: Flows) -> float:
    """Busy time [ms] that the snapshots of a vertex took, summed over its subtasks."""
    within = [
        subtask
        for point, subtask in _snapshots(job, vertex)
        if flow.begun_ms <= point.trigger_timestamp + max(subtask.start_delay, 0) <= flow.ended_ms
    ]
    pauses = [before_barrier_ms(subtask, job) for subtask in within]
    return float(sum(pause for pause in pauses if pause > NOISE_MS) + sum(max(subtask.checkpoint.sync, 0) for subtask in within))


def _snapshots(job: RestJob, vertex: RestVertex) -> Iterator[tuple[Checkpoint, Subtask]]:
    for point in settled(job):
        for subtask in point.tasks[vertex.name].subtasks if vertex.name in point.tasks else ():
            if subtask.status == "completed" and subtask.end_to_end_duration >= 0:
                yield point, subtask

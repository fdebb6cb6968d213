"""How long snapshots keep the task thread, read off the history of checkpoints.

Flink reports the synchronous phase.  Work before the barrier has no field: `sim.recordings.infer.before_barrier` tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.infer.before_barrier import Rest, rests, works_before_barrier
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_duration, format_share


def infer_pauses(draft: Draft, job: RestJob, vertex: RestVertex, *, with_sync: bool = True) -> None:
    """Set `snapshot: {pre-barrier, sync}` if they take longer than noise; `with_sync`: whether the backend does not explain it."""
    works = works_before_barrier(job, vertex.name)
    pauses = [_work_ms(rest, works=works) for rest in rests(job)[vertex.name]]
    if long := [pause for pause in pauses if pause]:
        found = f"in {len(long)} of {len(pauses)} snapshots"
        origin = f"median of what remains of end-to-end without start delay, alignment, sync and async {found}"
        if job.readers(vertex.name):
            origin += ", and is missing until its readers have the barrier"
        draft.put("snapshot.pre-barrier", format_duration(round(median(long)) * 10**6), origin, job=vertex.name)
        if len(long) * 20 < len(pauses) * 19:
            share = Fraction(round(100 * len(long) / len(pauses)), 100)
            draft.put("snapshot.probability", format_share(share), f"{len(long)} / {len(pauses)}", job=vertex.name)
    syncs = [rest.subtask.checkpoint.sync for rest in rests(job)[vertex.name] if rest.subtask.checkpoint.sync >= 0]
    if (
        with_sync
        and syncs
        and median(syncs) > NEGLIGIBLE_MS
        and "pre-barrier" not in draft.document["job"][vertex.name].get("snapshot", {})
    ):
        origin = f"median sync duration of {len(syncs)} snapshots"
        draft.put("snapshot.sync", format_duration(round(median(syncs)) * 10**6), origin, job=vertex.name)


def busy_in_snapshots_ms(job: RestJob, vertex: RestVertex, flow: Flows) -> float:
    """Busy time [ms] that the snapshots of a vertex took, summed over its subtasks."""
    works = works_before_barrier(job, vertex.name)
    within = list(_within(rests(job)[vertex.name], flow))
    return float(sum(_work_ms(rest, works=works) + max(rest.subtask.checkpoint.sync, 0) for rest in within))


def _work_ms(rest: Rest, *, works: bool) -> float:
    """Work before the barrier; 0: none, or as short as noise."""
    return rest.before_barrier_ms if works and rest.before_barrier_ms > NEGLIGIBLE_MS else 0.0


def _within(found: list[Rest], flow: Flows) -> Iterator[Rest]:
    for rest in found:
        if flow.begun_ms <= rest.checkpoint.trigger_timestamp + max(rest.subtask.start_delay, 0) <= flow.ended_ms:
            yield rest

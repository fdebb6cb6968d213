"""How long a TaskManager takes that ran nothing of the job: the first start of the job on it, which Flink's answers tell.

One that replaces a lost one is in the same state: classes are not loaded, libraries not fetched, the state backend never opened.
"""

from __future__ import annotations

from statistics import median

from sim.model.scenario import Overheads
from sim.recordings.infer.draft import Draft
from sim.recordings.source.rest.job import RestJob
from sim.units import format_duration


def infer_fresh_start(draft: Draft, job: RestJob) -> None:
    """Set `restart.fresh-start`, unless tasks have been restarted, or began with state: that is restored in the same time."""
    if job.counts.get("restored") or any(place.attempt for details in job.details.values() for place in details.subtasks):
        return
    started_ms: dict[str, int] = {}
    for details in job.details.values():
        for place in details.subtasks:
            spent = place.status_duration
            if place.taskmanager_id and spent.get("DEPLOYING", -1) >= 0 and spent.get("INITIALIZING", -1) >= 0:
                took_ms = spent["DEPLOYING"] + spent["INITIALIZING"]
                started_ms[place.taskmanager_id] = max(started_ms.get(place.taskmanager_id, 0), took_ms)
    if not started_ms:
        return
    found_ms = round(median(started_ms.values()))
    deploy_ms = Overheads().deploy_ns // 10**6
    origin = (
        f"{found_ms:,} ms from DEPLOYING to RUNNING when the job began, less {deploy_ms} ms (overheads: deploy); "
        f"median over {len(started_ms)} task managers of their slowest task"
    )
    draft.put("restart.fresh-start", format_duration(max(found_ms - deploy_ms, 0) * 10**6), origin)

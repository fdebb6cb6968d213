"""The start of a job: how long it took, and how long a TaskManager takes that ran nothing of the job, which Flink's answers tell.

One that replaces a lost one is in the same state: classes are not loaded, libraries not fetched, the state backend never opened.
"""

from __future__ import annotations

from statistics import median

from sim.model.scenario import Overheads
from sim.recordings.infer.draft import Draft
from sim.recordings.source.rest.job import RestJob
from sim.units import format_duration

STATE_START, STATE_START_ORIGIN = "400 ms", "assumed: 300 to 900 ms in recordings of other jobs"
"""INITIALIZING of restarted tasks with keyed state, less that of tasks beside them without, in two recorded jobs (`tests/data/lost`)."""
SHORT_MS = 180_000
"""A history that is shorter shows a job which has just begun: its checkpoints meet queues that the start has left."""
LONGEST_START_MS = 60_000
BACKLOG_MS = 1000
"""Records that wait when tasks begin: rate limits and fetchers make up for a second, and 0 to 5 s of a log waited in recorded jobs."""
WARM_UP, WARM_UP_FACTOR = "3 s", 2
"""Served by two recorded jobs on busy hosts: a quarter of what they could for the first 2 to 4 s; by four with priority: about half."""


def infer_cold_start(draft: Draft, job: RestJob) -> None:
    """Set `run.cold-start` and `restart.warm-up`, if the history begins with the job and is short."""
    first = next((point for point in job.checkpoints if point.id == 1), None)
    begun_ms = job.job.start_time
    if first is None or begun_ms < 0 or job.counts.get("restored") or draft.document["cluster"].get("profile") != "2.x":
        return  # Flink 1.x waits for a random time before it triggers
    start_ms = first.trigger_timestamp - begun_ms - Overheads().first_trigger_ns // 10**6
    if not 0 < start_ms <= LONGEST_START_MS or max(point.trigger_timestamp for point in job.checkpoints) - begun_ms > SHORT_MS:
        return
    draft.put("run.cold-start", format_duration(min(start_ms, BACKLOG_MS) * 10**6), (
        f"assumed, as a history of less than {SHORT_MS // 60_000} min shows the queues that the start left; of a log up to "
        f"{format_duration(start_ms * 10**6)} wait, from the start of the job to its first checkpoint"
    ))  # fmt: skip
    draft.put("restart.warm-up", WARM_UP, "assumed: 2 to 4 s in recordings of other jobs")
    draft.put("restart.warm-up-factor", WARM_UP_FACTOR, "likewise: 2 to 5")


def infer_state_start(draft: Draft) -> None:
    """Set `restart.state-start`, if a vertex keeps state.  No history without a restart tells it, and few with one."""
    if any("state" in vertex for vertex in draft.document["job"].values()):
        draft.put("restart.state-start", STATE_START, STATE_START_ORIGIN)


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

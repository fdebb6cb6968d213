"""A snapshot of a real job -> the scenario of that job: every value with its source, every gap with a question.

Unlike the import of a recording, which reads a configuration and nothing else, this one has to read measurements: a real job nowhere says
how long a record takes.  Each part of the scenario is inferred in a module of its own, this one puts them together.
"""

from __future__ import annotations

from statistics import median

from sim.foreign import shown
from sim.recordings.infer.draft import Draft, Inference
from sim.recordings.infer.flows import flows
from sim.recordings.infer.options import infer_checkpoint, infer_cluster
from sim.recordings.infer.state import infer_state
from sim.recordings.infer.storage import infer_storage
from sim.recordings.infer.work import infer_work
from sim.recordings.source.rest.job import RestJob
from sim.recordings.source.rest.snapshot import Snapshot
from sim.units import format_duration

__all__ = ["infer_job", "infer_scenario"]

CHECKPOINTS = 12  # a run shows so many
SHORTEST_RUN_MS, LONGEST_RUN_MS = 60_000, 3_600_000


def infer_scenario(snapshot: Snapshot) -> Inference:
    """RecordingError: the answers make no sense."""
    return infer_job(RestJob(snapshot))


def infer_job(job: RestJob) -> Inference:
    """The same, of answers that are read already."""
    draft = Draft()
    draft.put("version", 1)
    flowed = flows(job)
    _head(draft, job)
    for vertex in job.vertices:
        infer_work(draft, job, vertex, flowed)
    infer_checkpoint(draft, job)
    infer_state(draft, job, flowed)
    infer_cluster(draft, job)
    infer_storage(draft, job)
    _run(draft, job)
    draft.miss({path.replace(job.snapshot.job, ":id"): why for path, why in job.snapshot.missing.items()})
    return draft.finished(f"How does the job '{shown(job.job.name)}' checkpoint, and how would it otherwise?")


def _head(draft: Draft, job: RestJob) -> None:
    origin = f"Imported from {shown(job.snapshot.source)}, job {job.snapshot.job} ({shown(job.job.state) or 'state unknown'})"
    counts = ", ".join(f"{job.counts[key]} {key}" for key in ("completed", "failed", "in_progress") if key in job.counts)
    draft.head.append(f"{origin}, Flink {shown(job.flink_version) or 'of unknown version'}.")
    draft.head.append(f"Checkpoints: {counts or 'not counted'}; details of {len(job.checkpoints)}.")


def _run(draft: Draft, job: RestJob) -> None:
    config = job.checkpoint_config
    took = [point.end_to_end_duration for point in job.checkpoints if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
    each_ms = max(config.interval if config and 0 < config.interval < LONGEST_RUN_MS else 0, median(took) if took else 0)
    run_ms = min(max(round(CHECKPOINTS * each_ms, -3), SHORTEST_RUN_MS), LONGEST_RUN_MS)
    draft.put("run.duration", format_duration(int(run_ms) * 10**6))

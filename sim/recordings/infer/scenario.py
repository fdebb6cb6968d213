"""A snapshot of a real job -> its scenario: every value with its origin, every gap with a question.

The import of a recording reads a configuration only.  This one has to read measurements, as no answer tells the time per record.
Each part of the scenario has a module of its own; this one puts them together.
"""

from __future__ import annotations

from statistics import median

from sim.foreign import one_line
from sim.recordings.infer.async_io import infer_async_io
from sim.recordings.infer.cores import infer_cores
from sim.recordings.infer.draft import Draft, Inference
from sim.recordings.infer.edges.counted import edge_flows, unbalanced
from sim.recordings.infer.edges.inputs import EdgeFlows
from sim.recordings.infer.flows import flows
from sim.recordings.infer.fresh_start import infer_cold_start, infer_fresh_start, infer_state_start
from sim.recordings.infer.heap_restore import infer_heap_restore
from sim.recordings.infer.in_flight import infer_in_flight
from sim.recordings.infer.options import infer_checkpoint, infer_cluster
from sim.recordings.infer.residuals import infer_residuals
from sim.recordings.infer.state import infer_state
from sim.recordings.infer.storage import infer_storage
from sim.recordings.infer.updates import ask_for_updates
from sim.recordings.infer.uploads import infer_uploads
from sim.recordings.infer.windows.inferred import infer_windows, longest_run_ns
from sim.recordings.infer.windows.silent import infer_idleness
from sim.recordings.infer.work import infer_work
from sim.recordings.source.rest.job import RestJob
from sim.recordings.source.rest.snapshot import RestSnapshot
from sim.units import format_duration

CHECKPOINTS = 12  # number of checkpoints in a run
SHORTEST_RUN_MS, LONGEST_RUN_MS = 60_000, 3_600_000


def infer_scenario(snapshot: RestSnapshot) -> Inference:
    """The scenario of a snapshot.  RecordingError: its answers contradict each other."""
    return infer_job(RestJob(snapshot))


def infer_job(job: RestJob) -> Inference:
    """The scenario of a job whose answers are checked already."""
    draft = Draft()
    draft.put("version", 1)
    flowed = flows(job)
    _head(draft, job)
    contradictions = list(unbalanced(job, flowed))
    carried = EdgeFlows(flowed, edge_flows(job, flowed), {place for found in contradictions for place in found.edges})
    for vertex in job.vertices:
        infer_work(draft, job, vertex, carried)
    draft.unbalanced += [found.phrase for found in contradictions]
    infer_checkpoint(draft, job)
    infer_state(draft, job, flowed)
    infer_heap_restore(draft, job, flowed)
    infer_uploads(draft, job)
    infer_windows(draft, job, flowed)
    ask_for_updates(draft, job, flowed)
    infer_idleness(draft, flowed)
    infer_async_io(draft, job, flowed)
    infer_cluster(draft, job)
    infer_fresh_start(draft, job)
    infer_state_start(draft)
    infer_cores(draft, job, flowed)
    infer_storage(draft, job, flowed)
    infer_in_flight(draft, job, flowed)
    infer_residuals(draft, job)
    _run(draft, job)
    infer_cold_start(draft, job)
    draft.ask_for_missing({path.replace(job.snapshot.job, ":id"): why for path, why in job.snapshot.missing.items()})
    return draft.inference(f"How does the job '{one_line(job.job.name)}' checkpoint, and how would it otherwise?")


def _head(draft: Draft, job: RestJob) -> None:
    origin = f"Imported from {one_line(job.snapshot.source)}, job {job.snapshot.job} ({one_line(job.job.state) or 'state unknown'})"
    counts = ", ".join(f"{job.counts[key]} {key}" for key in ("completed", "failed", "in_progress") if key in job.counts)
    draft.head.append(f"{origin}, Flink {one_line(job.flink_version) or 'of unknown version'}.")
    draft.head.append(f"Checkpoints: {counts or 'not counted'}; details of {len(job.checkpoints)}.")


def _run(draft: Draft, job: RestJob) -> None:
    config = job.checkpoint_config
    took = [point.end_to_end_duration for point in job.checkpoints if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
    each_ms = max(config.interval if config and 0 < config.interval < LONGEST_RUN_MS else 0, median(took) if took else 0)
    run_ms = min(max(round(CHECKPOINTS * each_ms, -3), SHORTEST_RUN_MS), LONGEST_RUN_MS)
    draft.put("run.duration", format_duration(max(int(run_ms) * 10**6, longest_run_ns(job))))

"""Infer the scenario of a recorded job, and the residuals of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.jobs.infer.cores import (
    Rest,
    infer_async_io,
    infer_cores,
    is_unaligned,
    pre_barrier_ms,
    rests,
    typical_checkpoints,
    works_before_barrier,
)
from sim.jobs.infer.draft import Draft
from sim.jobs.infer.file_history import written_bytes
from sim.jobs.infer.heap import (
    infer_cold_start,
    infer_fresh_start,
    infer_heap_restore,
    infer_restart,
    infer_state_start,
)
from sim.jobs.infer.options import MAX_RUN_MS, infer_checkpoint, infer_cluster, run_ns
from sim.jobs.infer.state import ask_for_updates, infer_state
from sim.jobs.infer.storage import AsyncPhase, fit_async_phases, infer_in_flight, infer_storage, infer_uploads
from sim.jobs.infer.windows import infer_idleness, infer_windows, longest_run_ns
from sim.jobs.infer.work import edge_flows, infer_work
from sim.jobs.source.recorded_job import ImportedScenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import Overheads
from sim.model.state import BACKENDS
from sim.model.text import one_line
from sim.model.units import format_duration

# ---- Residuals: the time that checkpoints of the history took beyond the model.  They give a simulation its tail.
#
# A residual is the time of one subtask in one checkpoint minus the expected time.  Expected is the median of a phase
# or, if sizes differ, a line fitted to the asynchronous phases of the vertex over the bytes written, because large files
# and growth are not random.  Time that the protocol explains is excluded: alignment, channel state, barriers that queue
# behind records, work before the barrier.
#
# The phases of one subtask are added: a long synchronous phase that is followed by a short asynchronous phase is not a
# residual.

MIN_RESIDUAL_CHECKPOINTS, MAX_RESIDUAL_CHECKPOINTS = 8, 50
"""Maximum checkpoints; the latest are used.  Fewer do not show a tail, more make the file longer but not more accurate."""
MAX_SUBTASKS_PER_VERTEX = 4
"""Maximum subtasks.  Of more, the slowest, the fastest, and two between them are kept for each checkpoint."""


_PARTS = ("scheduling", "sync", "async", "acknowledgement")

Residuals = npt.NDArray[np.float64]
"""Residuals [ms] by checkpoint, subtask, and part (in the order of `_PARTS`)."""


def infer_residuals(draft: Draft, job: RestJob) -> None:
    """Set `residuals:` if the history is long enough and contains any residual."""
    points = typical_checkpoints(job)[-MAX_RESIDUAL_CHECKPOINTS:]
    if len(points) < MIN_RESIDUAL_CHECKPOINTS:
        return
    by_vertex = {}
    for vertex in job.vertices:
        table = np.rint(_slowest_subtasks(_residuals(job, vertex, [point.id for point in points]))).astype(int)
        by_part = {part: table[:, :, k].T.tolist() for k, part in enumerate(_PARTS) if table[:, :, k].any()}
        if by_part:
            by_vertex[vertex.name] = by_part | _backend_key(draft, vertex.name)
    if by_vertex:
        origin = f"time that {len(points)} checkpoints of the history took beyond the model, without waits that the protocol explains"
        draft.put("residuals", {"checkpoints": len(points), "unit": "1 ms", "of": by_vertex}, origin)


def _backend_key(draft: Draft, vertex: str) -> dict[str, Any]:
    """Return the key `backend` of a vertex with keyed state, because residuals depend on it, or {} without keyed state."""
    state = draft.document["job"][vertex].get("state", {})
    if "size" not in state:
        return {}
    return {"backend": f"{state.get('backend', next(iter(BACKENDS)))}{'+changelog' if 'changelog' in state else ''}"}


def _slowest_subtasks(residuals: Residuals) -> Residuals:
    """Return the subtasks that are kept, in each checkpoint from the slowest to the fastest, if there are many."""
    subtasks = residuals.shape[1]
    if subtasks <= MAX_SUBTASKS_PER_VERTEX:
        return residuals
    ranks = np.arange(MAX_SUBTASKS_PER_VERTEX) * (subtasks - 1) // (MAX_SUBTASKS_PER_VERTEX - 1)
    order = np.argsort(-residuals.sum(axis=2), axis=1, kind="stable")[:, ranks]
    return np.take_along_axis(residuals, order[:, :, np.newaxis], axis=1)


def _residuals(job: RestJob, vertex: RestVertex, checkpoints: Sequence[int]) -> Residuals:
    """Return the residuals of a vertex [ms], by checkpoint, subtask and part; 0 where a subtask did not acknowledge."""
    vertex_rests, works, overheads = rests(job)[vertex.name], works_before_barrier(job, vertex.name), Overheads()
    sync_ms = _median_of_known(rest.subtask.checkpoint.sync for rest in vertex_rests)
    working_ms = _median_of_known(work_ms for rest in vertex_rests if (work_ms := pre_barrier_ms(rest, works=works)))
    started_ms = _median_of_known(rest.subtask.start_delay for rest in vertex_rests)
    triggered_ms = started_ms if started_ms > NEGLIGIBLE_MS else overheads.trigger_ns / 1e6
    writing = _writing_residuals(job, vertex, vertex_rests)
    row_of = {number: k for k, number in enumerate(checkpoints)}
    residuals = np.zeros((len(checkpoints), vertex.parallelism, len(_PARTS)))
    for rest in vertex_rests:
        subtask = rest.subtask
        if rest.checkpoint.id in row_of and subtask.index < vertex.parallelism:  # it may have had more subtasks
            explained_ms = working_ms if pre_barrier_ms(rest, works=works) else overheads.acknowledge_ns / 1e6
            residuals[row_of[rest.checkpoint.id], subtask.index] = (
                0.0 if vertex.inputs else max(subtask.start_delay - triggered_ms, 0.0),
                max(subtask.checkpoint.sync, 0) - sync_ms,
                writing.get((rest.checkpoint.id, subtask.index), 0.0),
                max(rest.all_ms - explained_ms, 0.0),
            )
    # The phases of a subtask are reduced in proportion, so that they add up to the sum of all phases (0 if negative).
    phases = residuals[:, :, 1:]
    positive = phases.clip(min=0.0)
    total = positive.sum(axis=2, keepdims=True)
    residuals[:, :, 1:] = positive * (phases.sum(axis=2, keepdims=True).clip(min=0.0) / np.where(total > 0, total, 1.0))
    return residuals


def _median_of_known(values: Iterable[float]) -> float:
    known_values = [value for value in values if value >= 0]
    return median(known_values) if known_values else 0.0


def _writing_residuals(
    job: RestJob, vertex: RestVertex, vertex_rests: Sequence[Rest]
) -> Mapping[tuple[int, int], float]:
    """Return the residuals of asynchronous phases by (checkpoint, subtask).

    Unaligned snapshots also wait for barriers and channel state in this phase, so they count only for vertices without
    readers.
    """
    unaligned = is_unaligned(job)
    if unaligned and job.readers(vertex.name):
        return {}
    points = {
        (rest.checkpoint.id, rest.subtask.index): AsyncPhase(
            float(written_bytes(rest.subtask)),
            max(rest.subtask.checkpoint.async_ - (max(rest.subtask.alignment.duration, 0) if unaligned else 0), 0.0),
        )
        for rest in vertex_rests
        if rest.subtask.checkpoint.async_ >= 0
    }
    line = fit_async_phases(list(points.values()))
    slope = 0.0 if line is None else 1 / line.bytes_per_ms
    rests_ms = {snapshot: phase.took_ms - slope * phase.stream_bytes for snapshot, phase in points.items()}
    intercept = median(rests_ms.values()) if rests_ms else 0.0
    return {snapshot: rest_ms - intercept for snapshot, rest_ms in rests_ms.items()}


# ---- Snapshot of a real job -> scenario: every value with its origin, every missing value with a question.
#
# Service times and rates have to be inferred from measurements, because no REST answer contains them.  Each section of
# the scenario has a module; this one calls them in order.


def infer_scenario(source: RestSnapshot | RestJob) -> ImportedScenario:
    """Infer the scenario of a job.  Raises `RecordingError` if its answers contradict each other."""
    job, draft = source if isinstance(source, RestJob) else RestJob(source), Draft()
    draft.put("version", 1)
    _put_head(draft, job)
    edges = edge_flows(job)
    for vertex in job.vertices:
        infer_work(draft, vertex, edges)
    draft.warnings += [f"a flow does not balance: {flow}" for flow in edges.unbalanced.values()]
    infer_checkpoint(draft, job)
    infer_state(draft, job)
    infer_heap_restore(draft, job)
    infer_uploads(draft, job)
    infer_windows(draft, job)
    ask_for_updates(draft, job)
    infer_idleness(draft, job)
    infer_async_io(draft, job)
    infer_cluster(draft, job)
    infer_fresh_start(draft, job)
    infer_restart(draft, job)
    infer_state_start(draft)
    infer_cores(draft, job)
    infer_storage(draft, job)
    infer_in_flight(draft, job)
    infer_residuals(draft, job)
    _put_run_duration(draft, job)
    infer_cold_start(draft, job)
    draft.ask_for_missing({path.replace(job.snapshot.job, ":id"): why for path, why in job.snapshot.missing.items()})
    if not any(path.endswith("/jobmanager/config") for path in (*job.snapshot.answers, *job.snapshot.missing)):
        draft.remark_question("Which options are configured (/jobmanager/config)?", "Flink's defaults.")
    return draft.finish(
        f"How does the job '{one_line(job.job.name)}' checkpoint, and how would it with other settings?"
    )


def _put_head(draft: Draft, job: RestJob) -> None:
    origin = f"Imported from {one_line(job.snapshot.source)}, job {job.snapshot.job} ({one_line(job.job.state) or 'state unknown'})"
    counted = job.statistics.counts
    counts = ", ".join(f"{counted[key]} {key}" for key in ("completed", "failed", "in_progress") if key in counted)
    draft.remark(f"{origin}, Flink {one_line(job.flink_version) or 'of unknown version'}.")
    draft.remark(f"Checkpoints: {counts or 'not counted'}; details of {len(job.checkpoints)}.")


def _put_run_duration(draft: Draft, job: RestJob) -> None:
    config = job.checkpoint_config
    took = [
        point.end_to_end_duration
        for point in job.checkpoints
        if point.status == "COMPLETED" and point.end_to_end_duration >= 0
    ]
    each_ms = max(config.interval if 0 < config.interval < MAX_RUN_MS else 0, median(took) if took else 0)
    draft.put("run.duration", format_duration(max(run_ns(each_ms), longest_run_ns(job))))

"""The scenario of a recorded job, and residuals of its prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from sim.jobs.infer.cores import Rest, infer_async_io, infer_cores, rests, usual_checkpoints, works_before_barrier
from sim.jobs.infer.draft import Draft, Inference
from sim.jobs.infer.edges import EdgeFlows, edge_flows, unbalanced
from sim.jobs.infer.file_history import written_bytes
from sim.jobs.infer.flows import explained_ms, flows
from sim.jobs.infer.heap import infer_cold_start, infer_fresh_start, infer_heap_restore, infer_state_start
from sim.jobs.infer.options import infer_checkpoint, infer_cluster
from sim.jobs.infer.service_times import infer_work
from sim.jobs.infer.state import ask_for_updates, infer_state
from sim.jobs.infer.storage import infer_bursts, infer_in_flight, infer_storage, infer_uploads
from sim.jobs.infer.windows import infer_idleness, infer_windows, longest_run_ns
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import Overheads
from sim.model.state import BACKENDS
from sim.model.text import one_line
from sim.model.units import format_duration

# ---- What the checkpoints of a history took beyond the model: the tails that a mean or a median never shows.
#
# A residual is what one subtask took in one checkpoint beyond what is usual for it.  Usual is the median of a phase or,
# where sizes differ, the line of the vertex's own asynchronous phases over what they wrote: growth and large files are
# no chance.  Waits that the protocol explains are no residuals: alignment, channel state, barriers that wait behind
# data, work before the barrier.
#
# Parts of one subtask belong together: a long synchronous phase beside a short asynchronous one is nothing unusual, so
# their sum counts.

MIN_RESIDUAL_CHECKPOINTS, MAX_RESIDUAL_CHECKPOINTS = 8, 50
"""Checkpoints to draw from: fewer show no tail, more make the file longer and it no truer.  The latest count."""
COLUMNS = 4
"""Subtasks of a vertex that are kept: of more, the slowest, the fastest, and two between."""
POINTS = 120
"""Asynchronous phases that a line is drawn through."""
SPREAD = 1.5
"""Sizes that differ by a smaller factor need no line."""


class _Parts(NamedTuple):
    """The times of one subtask in one checkpoint [ms]."""

    scheduling: float = 0.0
    sync: float = 0.0
    async_: float = 0.0
    acknowledgement: float = 0.0


def infer_residuals(draft: Draft, job: RestJob) -> None:
    """Set `residuals:`, if the history is long enough and some checkpoint took longer than the model has it."""
    points = usual_checkpoints(job)[-MAX_RESIDUAL_CHECKPOINTS:]
    if len(points) < MIN_RESIDUAL_CHECKPOINTS:
        return
    found = {vertex.name: _columns(draft, job, vertex, [point.id for point in points]) for vertex in job.vertices}
    of = {name: kept | _backend(draft, name) for name, columns in found.items() if (kept := _written(columns))}
    if not of:
        return
    what = f"what {len(points)} checkpoints of the history took beyond the model; waits that the protocol explains are left out"
    draft.put("residuals", {"checkpoints": len(points), "unit": "1 ms", "of": of}, what)


def _backend(draft: Draft, vertex: str) -> dict[str, Any]:
    """The backend of its keyed state, whose pauses these are; empty: it has none."""
    state = draft.document["job"][vertex].get("state", {})
    if "size" not in state:
        return {}
    return {"backend": f"{state.get('backend', next(iter(BACKENDS)))}{'+changelog' if 'changelog' in state else ''}"}


def _written(columns: Sequence[Sequence[_Parts]]) -> dict[str, list[list[int]]]:
    """The parts that are not 0 throughout."""
    table = {
        field.rstrip("_"): [[round(getattr(parts, field)) for parts in column] for column in columns]
        for field in _Parts._fields
    }
    return {part: lists for part, lists in table.items() if any(map(any, lists))}


def _columns(draft: Draft, job: RestJob, vertex: RestVertex, checkpoints: Sequence[int]) -> list[list[_Parts]]:
    """For each subtask that is kept its parts, a row per checkpoint.  A subtask that did not acknowledge has none."""
    measured = _residuals(job, vertex, explained_ms(draft, usual_checkpoints(job), vertex.name))
    rows = [[measured.get((number, index), _Parts()) for index in range(vertex.parallelism)] for number in checkpoints]
    if vertex.parallelism > COLUMNS:
        ranks = [step * (vertex.parallelism - 1) // (COLUMNS - 1) for step in range(COLUMNS)]
        rows = [[sorted(row, key=sum, reverse=True)[rank] for rank in ranks] for row in rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _residuals(
    job: RestJob, vertex: RestVertex, explained: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], _Parts]:
    """(checkpoint, subtask) -> parts.  `explained`: the time that the model takes beyond the usual, in any part."""
    own = rests(job)[vertex.name]
    sync_ms = _usual(rest.subtask.checkpoint.sync for rest in own)
    works = works_before_barrier(job, vertex.name)
    working_ms = (
        _usual(rest.before_barrier_ms for rest in own if rest.before_barrier_ms > NEGLIGIBLE_MS) if works else 0.0
    )
    started_ms = _usual(rest.subtask.start_delay for rest in own)
    overheads = Overheads()
    triggered_ms = started_ms if started_ms > NEGLIGIBLE_MS else overheads.trigger_ns / 1e6
    writing = _writing_residuals(job, vertex, own)
    found = {}
    for rest in own:
        late_ms = rest.all_ms - (
            working_ms if works and rest.before_barrier_ms > NEGLIGIBLE_MS else overheads.acknowledge_ns / 1e6
        )
        found[rest.checkpoint.id, rest.subtask.index] = _together(
            _Parts(
                0.0 if vertex.inputs else max(rest.subtask.start_delay - triggered_ms, 0.0),
                max(rest.subtask.checkpoint.sync, 0)
                - sync_ms
                - explained.get((rest.checkpoint.id, rest.subtask.index), 0.0),
                writing.get((rest.checkpoint.id, rest.subtask.index), 0.0),
                max(late_ms, 0.0),
            )
        )
    return found


def _usual(values: Iterable[float]) -> float:
    known = [value for value in values if value >= 0]
    return median(known) if known else 0.0


def _together(parts: _Parts) -> _Parts:
    """Parts that are shorter than usual make up for those that are longer."""
    phases = parts[1:]
    longer_ms, all_ms = sum(phase for phase in phases if phase > 0), sum(phases)
    share = max(all_ms, 0.0) / longer_ms if longer_ms else 0.0
    return _Parts(parts.scheduling, *(max(phase, 0.0) * share for phase in phases))


def _writing_residuals(job: RestJob, vertex: RestVertex, own: Sequence[Rest]) -> Mapping[tuple[int, int], float]:
    """Asynchronous phases.  Unaligned ones also wait for barriers and channel state: then only vertices without readers count."""
    config = job.checkpoint_config
    unaligned = config is not None and bool(config.unaligned_checkpoints)
    if unaligned and job.readers(vertex.name):
        return {}
    points = {
        (rest.checkpoint.id, rest.subtask.index): (
            float(written_bytes(rest.subtask)),
            max(rest.subtask.checkpoint.async_ - (max(rest.subtask.alignment.duration, 0) if unaligned else 0), 0.0),
        )
        for rest in own
        if rest.subtask.checkpoint.async_ >= 0
    }
    slope, begin = _line(list(points.values()))
    return {place: took - begin - slope * size for place, (size, took) in points.items()}


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(slope, value at 0) of the median line (Theil and Sen); outliers are what it is drawn for, and do not move it."""
    few = points[:: max(-(-len(points) // POINTS), 1)]
    sizes = [size for size, _ in few]
    slope = 0.0
    if few and max(sizes) > SPREAD * min(sizes):
        slopes = [
            (there - here) / (other - size) for (size, here), (other, there) in combinations(few, 2) if other != size
        ]
        slope = max(median(slopes), 0.0)
    return slope, median(took - slope * size for size, took in few) if few else 0.0


# ---- A snapshot of a real job -> its scenario: every value with its origin, every gap with a question.
#
# The import of a recording reads a configuration only.  This one has to read measurements, as no answer tells the time
# per record.  Each part of the scenario has a module of its own; this one puts them together.

CHECKPOINTS = 12  # number of checkpoints in a run
MIN_RUN_MS, MAX_RUN_MS = 60_000, 3_600_000


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
    infer_bursts(draft, job, flowed)
    infer_residuals(draft, job)
    _run(draft, job)
    infer_cold_start(draft, job)
    draft.ask_for_missing({path.replace(job.snapshot.job, ":id"): why for path, why in job.snapshot.missing.items()})
    return draft.inference(f"How does the job '{one_line(job.job.name)}' checkpoint, and how would it otherwise?")


def _head(draft: Draft, job: RestJob) -> None:
    origin = f"Imported from {one_line(job.snapshot.source)}, job {job.snapshot.job} ({one_line(job.job.state) or 'state unknown'})"
    counts = ", ".join(
        f"{job.counts[key]} {key}" for key in ("completed", "failed", "in_progress") if key in job.counts
    )
    draft.head.append(f"{origin}, Flink {one_line(job.flink_version) or 'of unknown version'}.")
    draft.head.append(f"Checkpoints: {counts or 'not counted'}; details of {len(job.checkpoints)}.")


def _run(draft: Draft, job: RestJob) -> None:
    config = job.checkpoint_config
    took = [
        point.end_to_end_duration
        for point in job.checkpoints
        if point.status == "COMPLETED" and point.end_to_end_duration >= 0
    ]
    each_ms = max(config.interval if config and 0 < config.interval < MAX_RUN_MS else 0, median(took) if took else 0)
    run_ms = min(max(round(CHECKPOINTS * each_ms, -3), MIN_RUN_MS), MAX_RUN_MS)
    draft.put("run.duration", format_duration(max(int(run_ms) * 10**6, longest_run_ns(job))))

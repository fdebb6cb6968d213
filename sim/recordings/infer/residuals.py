"""What the checkpoints of a history took beyond the model: the tails that a mean or a median never shows.

A residual is what one subtask took in one checkpoint beyond what is usual for it.  Usual is the median of a phase or, where sizes differ,
the line of the vertex's own asynchronous phases over what they wrote: growth and large files are no chance.  Waits that the protocol
explains are no residuals: alignment, channel state, barriers that wait behind data, work before the barrier.

Parts of one subtask belong together: a long synchronous phase beside a short asynchronous one is nothing unusual, so their sum counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from sim.model.catalogs.backends import BACKENDS
from sim.model.scenario import Overheads
from sim.quantities.observed import NEGLIGIBLE_MS
from sim.recordings.infer.before_barrier import Rest, rests, usual_checkpoints, works_before_barrier
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.file_history import written_bytes
from sim.recordings.infer.flushes import explained_ms
from sim.recordings.source.rest.job import RestJob, RestVertex

FEWEST, MOST = 8, 50
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
    points = usual_checkpoints(job)[-MOST:]
    if len(points) < FEWEST:
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
    table = {field.rstrip("_"): [[round(getattr(parts, field)) for parts in column] for column in columns] for field in _Parts._fields}
    return {part: lists for part, lists in table.items() if any(map(any, lists))}


def _columns(draft: Draft, job: RestJob, vertex: RestVertex, checkpoints: Sequence[int]) -> list[list[_Parts]]:
    """For each subtask that is kept its parts, a row per checkpoint.  A subtask that did not acknowledge has none."""
    measured = _residuals(job, vertex, explained_ms(draft, usual_checkpoints(job), vertex.name))
    rows = [[measured.get((number, index), _Parts()) for index in range(vertex.parallelism)] for number in checkpoints]
    if vertex.parallelism > COLUMNS:
        ranks = [step * (vertex.parallelism - 1) // (COLUMNS - 1) for step in range(COLUMNS)]
        rows = [[sorted(row, key=sum, reverse=True)[rank] for rank in ranks] for row in rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _residuals(job: RestJob, vertex: RestVertex, explained: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], _Parts]:
    """(checkpoint, subtask) -> parts.  `explained`: the time that the model takes beyond the usual, in any part."""
    own = rests(job)[vertex.name]
    sync_ms = _usual(rest.subtask.checkpoint.sync for rest in own)
    works = works_before_barrier(job, vertex.name)
    working_ms = _usual(rest.before_barrier_ms for rest in own if rest.before_barrier_ms > NEGLIGIBLE_MS) if works else 0.0
    started_ms = _usual(rest.subtask.start_delay for rest in own)
    overheads = Overheads()
    triggered_ms = started_ms if started_ms > NEGLIGIBLE_MS else overheads.trigger_ns / 1e6
    writing = _writing_residuals(job, vertex, own)
    found = {}
    for rest in own:
        late_ms = rest.all_ms - (working_ms if works and rest.before_barrier_ms > NEGLIGIBLE_MS else overheads.acknowledge_ns / 1e6)
        found[rest.checkpoint.id, rest.subtask.index] = _together(
            _Parts(
                0.0 if vertex.inputs else max(rest.subtask.start_delay - triggered_ms, 0.0),
                max(rest.subtask.checkpoint.sync, 0) - sync_ms - explained.get((rest.checkpoint.id, rest.subtask.index), 0.0),
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
        slopes = [(there - here) / (other - size) for (size, here), (other, there) in combinations(few, 2) if other != size]
        slope = max(median(slopes), 0.0)
    return slope, median(took - slope * size for size, took in few) if few else 0.0

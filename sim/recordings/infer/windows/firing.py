"""What one end of a window does to the counters of its vertex: records that leave together, and busy time for each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sim.recordings.source.rest.job import Series

_SHIFTS = 40  # moments tried for the ends, within one period
_SURE = 3.0  # standard errors: a smaller time of an output may be none
FEWEST_STEPS = 4
UNEVEN = 0.1  # of an end: steps that are off by more hold parts of them


@dataclass(frozen=True, slots=True)
class BusySplit:
    """The busy time [ms] of the task thread, split between records that it reads and records that leave."""

    per_record: float
    per_output: float


def outputs_per_end(sampled: Series, falls_ms: float, period_ms: float) -> tuple[float, int] | None:
    """(records that leave at an end, ends seen): the steps of the counter are whole multiples of one number; None: they are not."""
    samples = [(time_ms, math.fsum(values)) for time_ms, values in sampled.get("numRecordsOut", ()) if not any(map(math.isnan, values))]
    steps = [after - before for (_, before), (_, after) in pairwise(samples)]
    if not steps or min(steps) < 0 or not sum(steps):
        return None
    best: tuple[float, float, int] | None = None
    for shift in range(_SHIFTS):
        begin = falls_ms + shift * period_ms / _SHIFTS
        seen = [math.floor((time_ms - begin) / period_ms) for time_ms, _ in samples]
        ends = [after - before for before, after in pairwise(seen)]
        if not sum(ends):
            continue
        per_end = sum(steps) / sum(ends)
        off = sum((step - number * per_end) ** 2 for step, number in zip(steps, ends, strict=True))
        if best is None or off < best[0]:
            best = off, per_end, sum(ends)
    if best is None or best[0] > len(steps) * (UNEVEN * best[1]) ** 2:
        return None
    return best[1:]


def split_of_busy_time(sampled: Series) -> BusySplit | None:
    """By least squares over all steps of all subtasks, none below 0, all busy time dealt out; None: they do not tell the two apart."""
    from scipy.optimize import nnls

    columns = [_steps(sampled, name) for name in ("numRecordsIn", "numRecordsOut", "accumulateBusyTimeMs")]
    if len(columns[2]) < FEWEST_STEPS or len({len(column) for column in columns}) > 1:
        return None
    read, left, busy = (np.array(column) for column in columns)
    work = np.column_stack([read, left])
    if np.isnan(work).any() or np.isnan(busy).any() or np.linalg.matrix_rank(work) < 2:
        return None
    free = np.linalg.lstsq(work, busy, rcond=None)[0]
    variance = float(((busy - work @ free) ** 2).sum()) / (len(busy) - 2)
    error = math.sqrt(variance * float(np.linalg.inv(work.T @ work)[1, 1]))
    times = nnls(work, busy)[0]
    if free[1] <= _SURE * error or times[1] <= 0:
        return None
    scale = float(busy.sum() / (work @ times).sum())
    return BusySplit(float(times[0]) * scale, float(times[1]) * scale)


def _steps(sampled: Mapping[str, Sequence[tuple[int, list[float]]]], name: str) -> list[float]:
    """The growth of a counter between two samples, subtask by subtask."""
    values = [column for _, column in sampled.get(name, ())]
    return [now - then for before, after in pairwise(values) for then, now in zip(before, after, strict=False)]

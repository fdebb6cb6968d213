"""The time per record of a vertex and of its subtasks, read off counters: busy time by records.

Busy time is all that is neither waiting for input nor for output.  A thread that is full pays for records only.  One that waits now and
then also pays for waking up, and finds its caches cold: records of the same work take it up to a third longer.  So full subtasks tell
the time per record.  What others need is an upper bound: it may say that a subtask is faster than the full ones, never that it is slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, stdev

from sim.recordings.infer.draft import Draft, duration_text
from sim.recordings.infer.flows import Flows, series
from sim.recordings.infer.pauses import busy_in_snapshots_ms
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_number

FULL = 0.9  # of its time busy: a subtask that sets the pace of all others
SAME_WORK = 0.03  # times of a record that differ by less are one
SAME_SPEED = 0.1  # on one machine, subtasks of equal work differed by up to 8 % while they were full: ten busy threads on two cores
CHANCE = 3  # standard errors
PIECES, LEAST_PIECES = 12, 4  # of the window, by which the standard error of a time per record is told
UNSURE_BUSY_MS = 500.0  # one wait enters a subtask's counters up to 5 s late: less busy time than this is no measurement


@dataclass(frozen=True, slots=True)
class _Worker:
    """The load of a subtask: busy time without snapshots, records, and the share of its time that it was busy."""

    subtask: int
    busy_ms: float
    records: float
    load: float

    @property
    def is_full(self) -> bool:
        return self.load >= FULL and self.records > 0


def infer_service(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    """Set `service`, and `service-factor` of subtasks that differ by more than noise."""
    way = "in" if vertex.inputs else "out"
    records, busy_ms = flow.total(f"records_{way}"), flow.total("busy_ms")
    question = "How long does one record keep it busy?"
    if math.isnan(busy_ms) or not records > 0:
        if vertex.inputs:
            why = "nothing counts its records" if not records > 0 else "its busy time is not measured"
            draft.ask("service", "1 us", question, f"next to nothing, because {why}.", job=vertex.name)
        return
    if busy_ms < UNSURE_BUSY_MS * len(flow.subtasks) and not vertex.inputs:
        return  # the default: a source that costs nothing
    paused_ms = busy_in_snapshots_ms(job, vertex, flow)
    without = f" - {paused_ms:,.0f} ms in snapshots" if paused_ms else ""
    origin = f"{busy_ms:,.0f} ms busy{without} / {records:,.0f} records {way}, {flow.source}"
    if busy_ms < UNSURE_BUSY_MS * len(flow.subtasks):
        origin += "; so little that it is hardly a measurement"
    mean_ms = max(busy_ms - paused_ms, 0.0) / records
    workers = list(_workers(flow, way, paused_ms))
    full = [worker for worker in workers if worker.is_full]
    full_ms = _each_ms(full) if full else mean_ms
    if mean_ms > 0 and abs(full_ms / mean_ms - 1) > SAME_WORK:
        origin = f"{_measured(full, way)}, which {'is' if len(full) == 1 else 'are'} full and set{'s' if len(full) == 1 else ''} the pace; "
        origin += (
            f"mean {duration_text(1e6 * mean_ms)}. A subtask that waits at times needs longer for a record, so the others do not count"
        )
    else:
        full_ms = mean_ms
    draft.put("service", duration_text(1e6 * full_ms), origin, job=vertex.name)
    if full and len(workers) > 1 and full_ms > 0:
        _factors(draft, job, vertex, flow, workers, full_ms)


def _workers(flow: Flows, way: str, paused_ms: float) -> Iterator[_Worker]:
    for index, own in enumerate(flow.subtasks):
        load = own.busy_ms / own.elapsed_ms if own.elapsed_ms > 0 else 0.0
        yield _Worker(index, max(own.busy_ms - paused_ms / len(flow.subtasks), 0.0), getattr(own, f"records_{way}"), load)


def _each_ms(workers: list[_Worker]) -> float:
    return math.fsum(worker.busy_ms for worker in workers) / math.fsum(worker.records for worker in workers)


def _measured(workers: list[_Worker], way: str) -> str:
    busy_ms, records = math.fsum(worker.busy_ms for worker in workers), math.fsum(worker.records for worker in workers)
    who = f"subtask {workers[0].subtask}" if len(workers) == 1 else f"{len(workers)} subtasks"
    return f"{busy_ms:,.0f} ms busy / {records:,.0f} records {way} of {who}"


def _factors(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows, workers: list[_Worker], full_ms: float) -> None:
    """Set the factor of each full subtask that differs from `full_ms`, and of others that are faster although they wait."""
    way = "in" if vertex.inputs else "out"
    for worker in workers:
        if not worker.busy_ms > UNSURE_BUSY_MS or not worker.records > 0:
            continue
        factor = worker.busy_ms / worker.records / full_ms
        noise = _noise(job, vertex, flow, way, worker.subtask)
        if not abs(factor - 1) > max(SAME_SPEED, CHANCE * noise) or (factor > 1 and not worker.is_full):
            continue
        bound = "" if worker.is_full else f"; busy {worker.load:.0%} of its time, so at most"
        origin = f"{_measured([worker], way)}: {duration_text(1e6 * (worker.busy_ms / worker.records))} ± {noise:.1%}{bound}"
        draft.put(f"service-factor.{worker.subtask}", format_number(Fraction(f"{factor:.3g}")), origin, job=vertex.name)


def _noise(job: RestJob, vertex: RestVertex, flow: Flows, way: str, subtask: int) -> float:
    """The relative standard error of a subtask's time per record, from pieces of the window; infinite: there are too few."""
    sampled = series(job, vertex)
    busy, records = (dict(sampled.get(name, ())) for name in ("accumulateBusyTimeMs", f"numRecords{way.capitalize()}"))
    times = [time_ms for time_ms in sorted(busy.keys() & records.keys()) if flow.begun_ms <= time_ms <= flow.ended_ms]
    step = max(1, (len(times) - 1) // PIECES)
    ends = [(busy[time_ms][subtask], records[time_ms][subtask]) for time_ms in times[::step]]
    pieces = [(after[0] - before[0]) / (after[1] - before[1]) for before, after in pairwise(ends) if after[1] > before[1]]
    if len(pieces) < LEAST_PIECES or not (mean := fmean(pieces)) > 0:
        return math.inf
    return stdev(pieces) / math.sqrt(len(pieces)) / mean

"""Service times of vertices, and the services that they call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, stdev

from sim.jobs.infer.draft import Draft, duration_text
from sim.jobs.infer.edges import EdgeFlows, emitted_size, infer_inputs, outputs_of, size_counted
from sim.jobs.infer.flows import Flows, series
from sim.jobs.infer.options import busy_in_snapshots_ms
from sim.jobs.infer.windows import infer_silent
from sim.jobs.source.rest_job import RestJob, RestVertex
from sim.model.units import format_number, format_rate, format_size

# ---- The time per record of a vertex and of its subtasks, read off counters: busy time by records.
#
# Busy time is all that is neither waiting for input nor for output.  A thread that is full pays for records only.  One
# that waits now and then also pays for waking up, and finds its caches cold: records of the same work take it up to a
# third longer.  So full subtasks tell the time per record.  What others need is an upper bound: it may say that a
# subtask is faster than the full ones, never that it is slower.

FULL = 0.9  # of its time busy: a subtask that sets the pace of all others
SAME_WORK = 0.03  # times of a record that differ by less are one
# on one machine, subtasks of equal work differed by up to 8 % while they were full: ten busy threads on two cores
SAME_SPEED = 0.1
SERVICE_STANDARD_ERRORS = 3  # standard errors
PIECES, MIN_PIECES = 12, 4  # of the window, by which the standard error of a time per record is told
# one wait enters a subtask's counters up to 5 s late: less busy time than this is no measurement
UNSURE_BUSY_MS = 500.0


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
        origin += f"mean {duration_text(1e6 * mean_ms)}. A subtask that waits at times needs longer for a record, so the others do not count"
    else:
        full_ms = mean_ms
    draft.put("service", duration_text(1e6 * full_ms), origin, job=vertex.name)
    if full and len(workers) > 1 and full_ms > 0:
        _factors(draft, job, vertex, flow, workers, full_ms)


def _workers(flow: Flows, way: str, paused_ms: float) -> Iterator[_Worker]:
    for index, own in enumerate(flow.subtasks):
        load = own.busy_ms / own.elapsed_ms if own.elapsed_ms > 0 else 0.0
        yield _Worker(
            index, max(own.busy_ms - paused_ms / len(flow.subtasks), 0.0), getattr(own, f"records_{way}"), load
        )


def _each_ms(workers: list[_Worker]) -> float:
    return math.fsum(worker.busy_ms for worker in workers) / math.fsum(worker.records for worker in workers)


def _measured(workers: list[_Worker], way: str) -> str:
    busy_ms, records = math.fsum(worker.busy_ms for worker in workers), math.fsum(worker.records for worker in workers)
    who = f"subtask {workers[0].subtask}" if len(workers) == 1 else f"{len(workers)} subtasks"
    return f"{busy_ms:,.0f} ms busy / {records:,.0f} records {way} of {who}"


def _factors(
    draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows, workers: list[_Worker], full_ms: float
) -> None:
    """Set the factor of each full subtask that differs from `full_ms`, and of others that are faster although they wait."""
    way = "in" if vertex.inputs else "out"
    for worker in workers:
        if not worker.busy_ms > UNSURE_BUSY_MS or not worker.records > 0:
            continue
        factor = worker.busy_ms / worker.records / full_ms
        noise = _noise(job, vertex, flow, way, worker.subtask)
        if not abs(factor - 1) > max(SAME_SPEED, SERVICE_STANDARD_ERRORS * noise) or (
            factor > 1 and not worker.is_full
        ):
            continue
        bound = "" if worker.is_full else f"; busy {worker.load:.0%} of its time, so at most"
        origin = (
            f"{_measured([worker], way)}: {duration_text(1e6 * (worker.busy_ms / worker.records))} ± {noise:.1%}{bound}"
        )
        draft.put(f"service-factor.{worker.subtask}", format_number(Fraction(f"{factor:.3g}")), origin, job=vertex.name)


def _noise(job: RestJob, vertex: RestVertex, flow: Flows, way: str, subtask: int) -> float:
    """The relative standard error of a subtask's time per record, from pieces of the window; infinite: there are too few."""
    sampled = series(job, vertex)
    busy, records = (dict(sampled.get(name, ())) for name in ("accumulateBusyTimeMs", f"numRecords{way.capitalize()}"))
    times = [time_ms for time_ms in sorted(busy.keys() & records.keys()) if flow.begun_ms <= time_ms <= flow.ended_ms]
    step = max(1, (len(times) - 1) // PIECES)
    ends = [(busy[time_ms][subtask], records[time_ms][subtask]) for time_ms in times[::step]]
    pieces = [
        (after[0] - before[0]) / (after[1] - before[1]) for before, after in pairwise(ends) if after[1] > before[1]
    ]
    if len(pieces) < MIN_PIECES or not (mean := fmean(pieces)) > 0:
        return math.inf
    return stdev(pieces) / math.sqrt(len(pieces)) / mean


# ---- The work of each vertex, read off counters: origin, number and size of its records, and the time for each (`infer.services`).
#
# =============
# ==================================================================================================================
# service        busy time / records in (sources: out), without what its snapshots kept the task thread busy
# fan-out        records out / records in
# record         bytes / records of an edge
# source rate    its output, if it is idle at times: then it keeps up.  A source that is never idle has more records than it can emit.
#                Counters do not tell how many more; only the growth of its backlog (`pendingRecords`) would
# silent         subtasks that emit nothing while others do; the rest is what the others do
# waits          with the lock, if its busy time is NaN: a thread of its own emits, and Flink does not measure that one
# weights        records in of each subtask behind a hash, less what its inputs without keys bring (`infer.edges.shares`)
# =============
# ==================================================================================================================

WAITS = 0.02  # of its time idle: such a source has no backlog
PRESSED = 0.05  # of its time back-pressured


def infer_work(draft: Draft, job: RestJob, vertex: RestVertex, flowed: EdgeFlows) -> None:
    """Set everything under `job: {vertex: ...}` but its state."""
    flow = flowed.vertices[vertex.name]
    if vertex.inputs:
        infer_inputs(draft, job, vertex, flowed)
    else:
        _source(draft, job, vertex, flowed)
    draft.put("parallelism", vertex.parallelism, job=vertex.name)
    if vertex.max_parallelism > 0:
        draft.put("max-parallelism", max(vertex.max_parallelism, vertex.parallelism), job=vertex.name)
    infer_service(draft, job, vertex, flow)
    if vertex.inputs and job.readers(vertex.name):
        _fan_out(draft, vertex, flow)
        _record(draft, job, vertex, flowed)
    draft.remark(f"chain: {' -> '.join(vertex.chain)}", job=vertex.name)
    if any("Committer" in name for name in vertex.chain):
        draft.put("commit", "two-phase", "its chain has a committer", job=vertex.name)


def _source(draft: Draft, job: RestJob, vertex: RestVertex, flowed: EdgeFlows) -> None:
    flow = infer_silent(draft, vertex.name, flowed.vertices[vertex.name])
    emitted = flow.per_second("records_out")
    _pace(draft, job, vertex, flow, emitted)
    written = flow.total("records_out")
    if (
        job.job.state == "FINISHED"
        and written > 0
        and not any(point.checkpoint_type == "SYNC_SAVEPOINT" for point in job.checkpoints)
    ):
        draft.put("source.records", round(written), "the job came to its end without being stopped", job=vertex.name)
    if flow.subtasks and all(math.isnan(own.busy_ms) and not math.isnan(own.idle_ms) for own in flow.subtasks):
        draft.put("source.waits", "lock", "its busy time is NaN: a legacy SourceFunction", job=vertex.name)
    outputs = outputs_of(job, vertex.name)
    has_one = len(outputs) < 2 and not any(flowed.edges[place].copies > 1 for place in outputs if place in flowed.edges)
    size = size_counted(flow, "out") if has_one else emitted_size(job, vertex.name, flowed.vertices, flowed.edges)
    if size is None:
        draft.ask("source.record", "1 kB", "How large are its records on the wire?", "1 kB.", job=vertex.name)
    elif size.range.is_exact:
        draft.put("source.record", format_size(size.likely), size.source, job=vertex.name)
    else:
        question = "How large are its records on the wire?"
        draft.ask("source.record", format_size(size.likely), question, "as large on all its edges.", job=vertex.name)


def _pace(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows, emitted: float) -> None:
    name, idle, pressed = vertex.name, flow.share("idle_ms"), flow.share("backpressured_ms")
    question = "How many records per second arrive here?"
    if not emitted > 0:
        why = (
            "no records were counted, the job may be reading nothing now"
            if emitted == 0
            else "nothing counts its records"
        )
        draft.ask("source.rate", "1k/s", question, f"1000/s, because {why}.", job=name)
        return
    shares = f"{_percent(idle)} idle, {_percent(flow.share('busy_ms'))} busy, {_percent(pressed)} back-pressured"
    origin = f"{emitted:,.1f} records/s out: {flow.source}"
    rate = format_rate(_round(emitted))
    grows = _backlog_per_second(job, vertex)
    if grows is not None:
        arriving = max(emitted + grows, 0.0)
        why = f"{origin}; its backlog (pendingRecords) grows by {grows:,.1f}/s"
        draft.put("source.rate", format_rate(_round(arriving)), why, job=name)
    elif pressed > PRESSED and not idle > WAITS:
        bounds = f"at least the {emitted:,.1f}/s it emits ({flow.source}); no upper bound, because it never waited for records ({shares})"
        draft.ask("source.rate", "unlimited", question, f"a backlog without end. What is known: {bounds}.", job=name)
    else:
        draft.put("source.rate", rate, f"{origin}; {shares}" if not math.isnan(idle) else origin, job=name)


def _backlog_per_second(job: RestJob, vertex: RestVertex) -> float | None:
    """Growth of FLIP-33's pendingRecords, from the first to the last sample; None: not reported, or too short."""
    samples = series(job, vertex).get(".pendingRecords", ())
    totals = [(time_ms, math.fsum(values)) for time_ms, values in samples if not any(map(math.isnan, values))]
    if len(totals) < 2:
        return None
    (begun_ms, first), (ended_ms, last) = totals[0], totals[-1]
    return (last - first) / (ended_ms - begun_ms) * 1000


def _fan_out(draft: Draft, vertex: RestVertex, flow: Flows) -> None:
    read, written = flow.total("records_in"), flow.total("records_out")
    if not read > 0 or math.isnan(written):
        draft.ask(
            "fan-out",
            1,
            "How many records does it emit per record it reads?",
            "1, because nothing counts them.",
            job=vertex.name,
        )
    elif abs(written / read - 1) > 0.005:
        origin = f"{written:,.0f} records out / {read:,.0f} in, {flow.source}"
        draft.put("fan-out", format_number(_round(written / read)), origin, job=vertex.name)


def _record(draft: Draft, job: RestJob, vertex: RestVertex, flowed: EdgeFlows) -> None:
    """Set the size of records, by the edge that carries most of them."""
    size = emitted_size(job, vertex.name, flowed.vertices, flowed.edges)
    if size is None and len(outputs_of(job, vertex.name)) == 1:
        size = size_counted(flowed.vertices[vertex.name], "out")
    question = "How large are the records it emits?"
    if size is None:
        read = draft.document["job"][vertex.inputs[0].upstream]
        draft.ask(
            "record",
            (read.get("source") or read).get("record", "1 kB"),
            question,
            "as large as those it reads.",
            job=vertex.name,
        )
    elif size.range.is_exact:
        draft.put("record", format_size(size.likely), size.source, job=vertex.name)
    else:
        draft.ask("record", format_size(size.likely), question, "as large on all its edges.", job=vertex.name)


def _round(value: float) -> Fraction:
    """The value in four digits."""
    return Fraction(f"{value:.4g}")


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{max(share, 0):.0%}"

"""The work of each vertex, read off counters: origin, number and size of its records, and the time for each (`infer.services`).

=============  ==================================================================================================================
service        busy time / records in (sources: out), without what its snapshots kept the task thread busy
fan-out        records out / records in
record         bytes / records of an edge
source rate    its output, if it is idle at times: then it keeps up.  A source that is never idle has more records than it can emit.
               Counters do not tell how many more; only the growth of its backlog (`pendingRecords`) would
silent         subtasks that emit nothing while others do; the rest is what the others do
waits          with the lock, if its busy time is NaN: a thread of its own emits, and Flink does not measure that one
weights        records in of each subtask behind a hash, less what its inputs without keys bring (`infer.edges.shares`)
=============  ==================================================================================================================
"""

from __future__ import annotations

import math
from fractions import Fraction

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.edges.counted import outputs_of
from sim.recordings.infer.edges.inputs import EdgeFlows, infer_inputs
from sim.recordings.infer.edges.sizes import emitted_size, size_counted
from sim.recordings.infer.flows import Flows, series
from sim.recordings.infer.services import infer_service
from sim.recordings.infer.windows.silent import infer_silent
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_number, format_rate, format_size

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
    if job.job.state == "FINISHED" and written > 0 and not any(point.checkpoint_type == "SYNC_SAVEPOINT" for point in job.checkpoints):
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
        why = "no records were counted, the job may be reading nothing now" if emitted == 0 else "nothing counts its records"
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
        draft.ask("fan-out", 1, "How many records does it emit per record it reads?", "1, because nothing counts them.", job=vertex.name)
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
        draft.ask("record", (read.get("source") or read).get("record", "1 kB"), question, "as large as those it reads.", job=vertex.name)
    elif size.range.is_exact:
        draft.put("record", format_size(size.likely), size.source, job=vertex.name)
    else:
        draft.ask("record", format_size(size.likely), question, "as large on all its edges.", job=vertex.name)


def _round(value: float) -> Fraction:
    """The value in four digits."""
    return Fraction(f"{value:.4g}")


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{max(share, 0):.0%}"

"""Infer the service times of vertices, and the rates and record sizes of sources."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sim.jobs.infer.draft import Draft, Section, duration_3_digits
from sim.jobs.infer.edges import EdgeFlows, Size, infer_inputs, measured_size, outputs_of
from sim.jobs.infer.options import busy_in_snapshots_ms
from sim.jobs.infer.windows import infer_silent
from sim.jobs.source.rest_job import Flows, RestJob, RestVertex
from sim.model.units import format_number, format_rate, format_size

# ---- Service time of a vertex: busy time / records.
#
# Busy time is all time that is neither idle nor back-pressured.  A thread that never waits spends it on records only.
# A thread that waits at times also spends busy time on wake-ups and cold caches: up to a third more per record.
# Therefore the service time is that of fully loaded subtasks.

MIN_FULL_LOAD = 0.9  # busy share of a fully loaded subtask, which limits the throughput of the vertex
MAX_MEAN_DEVIATION = 0.03  # below this difference between fully loaded subtasks and the mean, the mean is used
# A wait enters a subtask's counters up to 5 s late, so less busy time than this is not a measurement.
MIN_BUSY_MS = 500.0


def infer_service(section: Section, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    """Set `service`."""
    direction = "in" if vertex.inputs else "out"
    records, busy_ms = flow.total(f"records_{direction}"), flow.total("busy_ms")
    busy, counts = flow.subtasks["busy_ms"], flow.subtasks[f"records_{direction}"]
    has_little_time = busy_ms < MIN_BUSY_MS * len(busy)
    if math.isnan(busy_ms) or not records > 0:
        if vertex.inputs:
            why = "its records are not counted" if not records > 0 else "its busy time is not measured"
            section.ask("service", "1 us", "How long does one record keep it busy?", f"1 us, because {why}.")
        return
    if has_little_time and not vertex.inputs:
        return  # a source without service time, the default
    paused_ms = busy_in_snapshots_ms(job, vertex, flow)
    without = f" - {paused_ms:,.0f} ms in snapshots" if paused_ms else ""
    origin = f"{busy_ms:,.0f} ms busy{without} / {records:,.0f} records {direction}, {flow.source}"
    if has_little_time:
        origin += "; too little busy time for an accurate value"
    service_ms = mean_ms = max(busy_ms - paused_ms, 0.0) / records
    full = np.flatnonzero((flow.rates("busy_ms") >= MIN_FULL_LOAD * 1000) & (counts > 0))
    if len(full) and mean_ms > 0:
        busy_of_full_ms, read = (busy[full] - paused_ms / len(busy)).clip(min=0.0).sum(), counts[full].sum()
        if abs(busy_of_full_ms / read / mean_ms - 1) > MAX_MEAN_DEVIATION:
            service_ms = float(busy_of_full_ms / read)
            who = f"subtask {full[0]}, which is" if len(full) == 1 else f"{len(full)} subtasks, which are"
            origin = (
                f"{busy_of_full_ms:,.0f} ms busy / {read:,.0f} records {direction} of {who} fully loaded and "
                f"limit{'s' * (len(full) == 1)} the throughput; mean {duration_3_digits(1e6 * mean_ms)}. "
                "Subtasks that wait at times need longer per record and are not used"
            )
    section.put("service", duration_3_digits(1e6 * service_ms), origin)


# ---- The section of each vertex except its state, from counters.
#
# service        busy time without snapshots / records in (of a source: records out)
# fan-out        records out / records in
# record         bytes / records of an edge
# source rate    records out, if the source is idle at times: then it keeps up with its input.  A source that is never idle
#                has a backlog.  Its input rate is known only if the growth of the backlog (`pendingRecords`) is reported
# silent         number of subtasks that emit nothing while others do; the other values are those of the other subtasks
# waits          `lock`, if the busy time is NaN: a legacy SourceFunction emits from its own thread, which Flink does not measure
# weights        records in of each subtask of a keyed input, less those of its inputs without keys (edges.py)

MIN_IDLE_SHARE = 0.02  # a source that is idle for a larger share of its time has no backlog,
MIN_IDLE_PER_BACKPRESSURED = (
    0.05  # unless it is back-pressured for more than twenty times as long: it waits for its next records only
)
MIN_BACKPRESSURED_SHARE = 0.05


def infer_work(draft: Draft, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    """Set all keys of a vertex except its state."""
    section, job, flow = draft.vertex(vertex.name), edge_flows.job, edge_flows.job.flows[vertex.name]
    if vertex.inputs:
        infer_inputs(draft, vertex, edge_flows)
    else:
        _infer_source(section, vertex, edge_flows)
    section.put("parallelism", vertex.parallelism)
    if vertex.max_parallelism > 0:
        section.put("max-parallelism", max(vertex.max_parallelism, vertex.parallelism))
    infer_service(section, job, vertex, flow)
    if vertex.inputs and job.readers(vertex.name):
        _infer_fan_out(section, flow)
        _infer_record_size(section, vertex, edge_flows)
    section.remark(f"chain: {' -> '.join(vertex.chain)}")
    if any("Committer" in name for name in vertex.chain):
        section.put("commit", "two-phase", "its chain has a committer")


def _infer_source(section: Section, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    job, flow = edge_flows.job, infer_silent(section, edge_flows.job.flows[vertex.name])
    _infer_source_rate(section, flow, _backlog_per_second(job, vertex))
    written, types = flow.total("records_out"), {point.checkpoint_type for point in job.checkpoints}
    if job.job.state == "FINISHED" and written > 0 and "SYNC_SAVEPOINT" not in types:
        section.put("source.records", round(written), "the job finished without being stopped")
    is_measured = [~np.isnan(flow.subtasks[name]) for name in ("busy_ms", "idle_ms")]
    if not is_measured[0].any() and is_measured[1].all() and len(is_measured[1]):
        section.put("source.waits", "lock", "its busy time is NaN: a legacy SourceFunction")
    outputs = outputs_of(job, vertex.name)
    has_one_copy = len(outputs) < 2 and not any(
        edge_flows.edges[edge].copies > 1 for edge in outputs if edge in edge_flows.edges
    )
    size = measured_size(flow, "out") if has_one_copy else edge_flows.emitted_size(vertex.name)
    _put_size(section, "source.record", size, "How large are its records on the wire?", "1 kB", "1 kB.")


def _put_size(
    section: Section, path: str, size: Size | None, question: str, unknown_size: str, why_unknown: str
) -> None:
    """Set the size of records if it was measured, otherwise ask for it."""
    if size is None:
        section.ask(path, unknown_size, question, why_unknown)
    else:
        section.put(path, format_size(size.bytes), size.source)


def _infer_source_rate(section: Section, flow: Flows, backlog_growth: float | None) -> None:
    """Set `source.rate`.  `backlog_growth` is in records per second, or None if it is not measured."""
    emitted, idle, backpressured = flow.per_second("records_out"), flow.share("idle_ms"), flow.share("backpressured_ms")
    question = "How many records per second arrive here?"
    if not emitted > 0:
        why = "no records were emitted while it was measured" if emitted == 0 else "its records are not counted"
        section.ask("source.rate", "1k/s", question, f"1000/s, because {why}.")
        return
    shares = f"{_percent(idle)} idle, {_percent(flow.share('busy_ms'))} busy, {_percent(backpressured)} back-pressured"
    origin = f"{emitted:,.1f} records/s out: {flow.source}"
    if backlog_growth is not None:
        origin += f"; its backlog (pendingRecords) grows by {backlog_growth:,.1f}/s"
        section.put("source.rate", format_rate(_four_digits(max(emitted + backlog_growth, 0.0))), origin)
    elif backpressured > MIN_BACKPRESSURED_SHARE and not idle > max(
        MIN_IDLE_SHARE, MIN_IDLE_PER_BACKPRESSURED * backpressured
    ):
        waited = "hardly ever" if idle > MIN_IDLE_SHARE else "never"
        bounds = f"at least the {emitted:,.1f}/s it emits ({flow.source}); no upper bound, because it {waited} waited for records ({shares})"
        section.ask("source.rate", "unlimited", question, f"an unlimited backlog. Known is {bounds}.")
    else:
        rate = format_rate(_four_digits(emitted))
        section.put("source.rate", rate, f"{origin}; {shares}" if not math.isnan(idle) else origin)


def _backlog_per_second(job: RestJob, vertex: RestVertex) -> float | None:
    """Return the growth of pendingRecords (FLIP-33) per second, or None with fewer than two samples."""
    times_ms, values = job.series[vertex.name]
    if ".pendingRecords" not in values:
        return None
    totals = values[".pendingRecords"].sum(axis=1)
    known = np.flatnonzero(~np.isnan(totals))
    if len(known) < 2:
        return None
    (first, last), (begun_ms, ended_ms) = (column[known[[0, -1]]] for column in (totals, times_ms))
    return float((last - first) / (ended_ms - begun_ms) * 1000)


def _infer_fan_out(section: Section, flow: Flows) -> None:
    read, written = flow.total("records_in"), flow.total("records_out")
    if not read > 0 or math.isnan(written):
        question = "How many records does it emit per record it reads?"
        section.ask("fan-out", 1, question, "1, because they are not counted.")
    elif abs(written / read - 1) > 0.005:
        origin = f"{written:,.0f} records out / {read:,.0f} in, {flow.source}"
        section.put("fan-out", format_number(_four_digits(written / read)), origin)


def _infer_record_size(section: Section, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    """Set the size of the records that a vertex emits, from the edge with the highest rate."""
    size = edge_flows.emitted_size(vertex.name)
    if size is None and len(outputs_of(edge_flows.job, vertex.name)) == 1:
        size = measured_size(edge_flows.job.flows[vertex.name], "out")
    upstream = section.draft.vertex(vertex.inputs[0].upstream).values
    size_read = (upstream.get("source") or upstream).get("record", "1 kB")
    _put_size(section, "record", size, "How large are the records it emits?", size_read, "as large as those it reads.")


def _four_digits(value: float) -> Fraction:
    return Fraction(f"{value:.4g}")


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{max(share, 0):.0%}"

"""The work of each vertex, read off counters: origin, number and size of its records, and the time for each.

=============  ==================================================================================================================
service        busy time / records in (sources: out), without what its snapshots kept the task thread busy
fan-out        records out / records in
record         bytes / records of an edge
source rate    its output, if it is idle at times: then it keeps up.  A source that is never idle has more records than it can emit.
               Counters do not tell how many more; only the growth of its backlog (`pendingRecords`) would
weights        records in of each subtask behind a hash
=============  ==================================================================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from sim.model.catalogs.shipping import SHIPPING
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.edges.counted import Edge
from sim.recordings.infer.flows import Flows, series
from sim.recordings.infer.pauses import busy_in_snapshots_ms
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import format_duration, format_number, format_rate, format_size

__all__ = ["infer_work"]

ALIKE = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a partitioner of its own")}
"""Ship strategies that a scenario lacks -> (the nearest one, a description)."""
CHANCE = 3  # standard deviations of a count: independent keys differ by less, and need no weights
WAITS = 0.02  # of its time idle: such a source has no backlog
PRESSED = 0.05  # of its time back-pressured
ALIKE_SHARE = 0.03  # an edge that carries nearly all that its writer writes is no edge of its own
FULL = 0.9  # of its time busy: a subtask that sets the pace of all others
SAME_WORK = 0.03  # times of a record that differ by less are one
UNSURE_BUSY_MS = 500.0  # one wait enters a subtask's counters up to 5 s late: less busy time than this is no measurement


def infer_work(draft: Draft, job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows], edges: Mapping[tuple[str, str], Edge]) -> None:
    """Set everything under `job: {vertex: ...}` but its state."""
    flow = flowed[vertex.name]
    if vertex.inputs:
        _inputs(draft, job, vertex, flow)
        _amounts(draft, job, vertex, flowed, edges)
    else:
        _source(draft, job, vertex, flow)
    draft.put("parallelism", vertex.parallelism, job=vertex.name)
    if vertex.max_parallelism > 0:
        draft.put("max-parallelism", max(vertex.max_parallelism, vertex.parallelism), job=vertex.name)
    _service(draft, job, vertex, flow)
    if vertex.inputs and job.readers(vertex.name):
        _fan_out(draft, vertex, flow)
        _record(draft, job, vertex, flowed)
    draft.remark(f"chain: {' -> '.join(vertex.chain)}", job=vertex.name)
    if any("Committer" in name for name in vertex.chain):
        draft.put("commit", "two-phase", "its chain has a committer", job=vertex.name)


def _shipped(in_plan: str) -> str:
    """The ship strategy of a scenario for a name in Flink's plan; empty: there is none."""
    return next((name for name in SHIPPING if name.upper() == in_plan), "")


def _inputs(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    if len({edge.upstream for edge in vertex.inputs}) < len(vertex.inputs):
        draft.not_modelled.append(f"'{vertex.name}' reads one vertex over several edges: one is kept")
    for edge in vertex.inputs:
        if not edge.is_pipelined:
            draft.not_modelled.append(f"'{vertex.name}' reads '{edge.upstream}' only when that is done (a blocking exchange)")
        ship, origin = _shipped(edge.ship), f"{edge.ship} in the plan"
        if not ship:
            unknown = f"sent by '{edge.ship}', which is unknown here" if edge.ship else "sent nobody says how"
            ship, what = ALIKE.get(edge.ship, ("rebalance", unknown))
            draft.not_modelled.append(f"records from '{edge.upstream}' to '{vertex.name}' are {what}: taken as {ship}")
            origin = f"{edge.ship or 'nothing'} in the plan, taken as {ship}"
        path = f"input.{edge.upstream}"
        weights = _weights(flow) if all(_shipped(other.ship) == "hash" for other in vertex.inputs) else None
        if weights is None:
            draft.put(path, ship, origin, job=vertex.name)
        else:
            draft.put(f"{path}.ship", ship, origin, job=vertex.name)
            draft.put(f"{path}.weights", weights, f"records in of each subtask, {flow.source}", job=vertex.name)
    if len(vertex.inputs) > 1:
        _combine(draft, job, vertex)


def _amounts(draft: Draft, job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows], edges: Mapping[tuple[str, str], Edge]) -> None:
    """Set fan-out and record size of each edge that carries other records than its writer writes on the whole."""
    for upstream in dict.fromkeys(edge.upstream for edge in vertex.inputs):
        edge, writer = edges.get((upstream, vertex.name)), next(other for other in job.vertices if other.name == upstream)
        flow = flowed[upstream]
        base, written = flow.per_second("records_in" if writer.inputs else "records_out"), flow.per_second("records_out")
        if edge is None or not base > 0 or not written > 0:
            continue
        path, bounds = f"input.{upstream}", f"between 0 and {edge.at_most / base:.4g}"
        if math.isnan(edge.per_second):
            question = f"How many records does '{upstream}' send it per record that it {'reads' if writer.inputs else 'emits'}?"
            _as_section(draft, vertex, path)
            value = format_number(_round(min(written, edge.at_most) / base))
            draft.ask(
                f"{path}.fan-out", value, question, f"as many as it writes; {bounds}, nothing tells its outputs apart.", job=vertex.name
            )
        elif abs(edge.per_second / written - 1) > ALIKE_SHARE:
            _as_section(draft, vertex, path)
            origin = f"{edge.source} / {base:,.4g}/s {'into' if writer.inputs else 'out of'} '{upstream}'"
            draft.put(f"{path}.fan-out", format_number(_round(edge.per_second / base)), origin, job=vertex.name)
            size, size_origin = _size(flowed[vertex.name], "in") if len(vertex.inputs) == 1 else (None, "")
            if size is not None:
                draft.put(f"{path}.record", format_size(size), size_origin, job=vertex.name)


def _as_section(draft: Draft, vertex: RestVertex, path: str) -> None:
    """`upstream: hash` becomes `upstream: {ship: hash}`; its comment goes with it."""
    inputs, (_, name) = draft.document["job"][vertex.name]["input"], path.split(".", 1)
    if isinstance(inputs[name], str):
        place = f"job.{vertex.name}.{path}"
        inputs[name] = {"ship": inputs[name]}
        if place in draft.comments:
            draft.comments[f"{place}.ship"] = draft.comments.pop(place)


def _combine(draft: Draft, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine`.  The plan draws a union like an operator of two inputs; some versions of Flink give the latter a watermark each."""
    question, first = "Are its inputs joined, or one stream?", vertex.chain[0] if vertex.chain else ""
    if ".currentInput2Watermark" in series(job, vertex):
        draft.put("combine", "join", "an operator of its chain has a metric currentInput2Watermark", job=vertex.name)
    elif re.search(r"join|\bco-|\bcoprocess", first, re.IGNORECASE):
        draft.put("combine", "join", "by its name", job=vertex.name)
    elif any(edge.ship == "HASH" for edge in vertex.inputs):
        draft.ask("combine", "join", question, "joined, because they are keyed.", job=vertex.name)
    else:
        draft.ask("combine", "union", question, "one stream, because none is keyed.", job=vertex.name)


def _weights(flow: Flows) -> list[int] | None:
    """Per mille of the records by subtask, if they differ by more than chance.

    A few per cent matter: under back-pressure the channels to subtasks with a smaller share run empty, and hold no in-flight data.
    """
    counts = [sub.records_in for sub in flow.subtasks]
    total = math.fsum(counts)
    mean = total / max(len(counts), 1)
    if not total > 0 or all(abs(count - mean) <= CHANCE * math.sqrt(mean) for count in counts):
        return None
    return [round(1000 * count / total) for count in counts]


def _source(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
    emitted = flow.per_second("records_out")
    size, origin = _size(flow, "out")
    _pace(draft, job, vertex, flow, emitted)
    written = flow.total("records_out")
    if job.job.state == "FINISHED" and written > 0 and not any(point.checkpoint_type == "SYNC_SAVEPOINT" for point in job.checkpoints):
        draft.put("source.records", round(written), "the job came to its end without being stopped", job=vertex.name)
    if size is None:
        draft.ask("source.record", "1 kB", "How large are its records on the wire?", "1 kB.", job=vertex.name)
    else:
        draft.put("source.record", format_size(size), origin, job=vertex.name)


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


def _service(draft: Draft, job: RestJob, vertex: RestVertex, flow: Flows) -> None:
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
    own_ms = max(busy_ms - paused_ms, 0.0)
    without = f" - {paused_ms:,.0f} ms in snapshots" if paused_ms else ""
    origin = f"{busy_ms:,.0f} ms busy{without} / {records:,.0f} records {way}, {flow.source}"
    if busy_ms < UNSURE_BUSY_MS * len(flow.subtasks):
        origin += "; so little that it is hardly a measurement"
    each_ms = own_ms / records
    full = _full_subtask(flow, way)
    if full is not None:
        own, counted = flow.subtasks[full], getattr(flow.subtasks[full], f"records_{way}")
        full_ms = max(own.busy_ms - paused_ms / len(flow.subtasks), 0.0) / counted
        if abs(full_ms / each_ms - 1) > SAME_WORK:
            mean = format_duration(_digits(each_ms * 1e6))
            origin = (
                f"{own.busy_ms:,.0f} ms busy / {counted:,.0f} records {way} of subtask {full}, which is full and sets the pace; mean {mean}"
            )
            each_ms = full_ms
    draft.put("service", format_duration(_digits(each_ms * 1e6)), origin, job=vertex.name)


def _full_subtask(flow: Flows, way: str) -> int | None:
    """The only subtask that has no time left; None: none is full, or several are."""
    shares = [subtask.busy_ms / subtask.elapsed_ms if subtask.elapsed_ms > 0 else 0.0 for subtask in flow.subtasks]
    full = [index for index, share in enumerate(shares) if share >= FULL]
    return full[0] if len(full) == 1 < len(shares) and getattr(flow.subtasks[full[0]], f"records_{way}") > 0 else None


def _fan_out(draft: Draft, vertex: RestVertex, flow: Flows) -> None:
    read, written = flow.total("records_in"), flow.total("records_out")
    if not read > 0 or math.isnan(written):
        draft.ask("fan-out", 1, "How many records does it emit per record it reads?", "1, because nothing counts them.", job=vertex.name)
    elif abs(written / read - 1) > 0.005:
        origin = f"{written:,.0f} records out / {read:,.0f} in, {flow.source}"
        draft.put("fan-out", format_number(_round(written / read)), origin, job=vertex.name)


def _record(draft: Draft, job: RestJob, vertex: RestVertex, flowed: Mapping[str, Flows]) -> None:
    """Set the size of records.  A reader with a single input counts its edge exactly; a writer counts all its edges together."""
    readers = job.readers(vertex.name)
    sides = [_size(flowed[reader.name], "in") for reader in readers if len(reader.inputs) == 1]
    sides += [_size(flowed[vertex.name], "out")] if len(readers) == 1 else []
    known = [side for side in sides if side[0] is not None]
    if known and known[0][0] is not None:
        draft.put("record", format_size(known[0][0]), known[0][1], job=vertex.name)
    else:
        read = draft.document["job"][vertex.inputs[0].upstream]
        size = (read.get("source") or read).get("record", "1 kB")
        draft.ask("record", size, "How large are the records it emits?", "as large as those it reads.", job=vertex.name)


def _size(flow: Flows, way: str) -> tuple[int | None, str]:
    """Bytes per record on the wire, with a source's timestamp."""
    size, records = flow.total(f"bytes_{way}"), flow.total(f"records_{way}")
    if not (records > 0 and size > 0):
        return None, ""
    return max(1, round(size / records)), f"{size:,.0f} bytes / {records:,.0f} records {way}, {flow.source}"


def _round(value: float) -> Fraction:
    """The value in four digits."""
    return Fraction(f"{value:.4g}")


def _digits(value: float) -> int:
    """A number of ns in three digits, at least 1."""
    return max(1, int(float(f"{value:.3g}")))


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{max(share, 0):.0%}"

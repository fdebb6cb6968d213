"""Infer the work of each vertex from its counters: edges, record rates and sizes, sources, and service times.

Flink counts the records and bytes of a task, not of an edge.  Where a task has several inputs or outputs, the rates of
its edges are computed from the counters on both sides.  What they leave open becomes a question to the user.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter

import numpy as np

from sim.jobs.infer.cores import busy_in_snapshots_ms
from sim.jobs.infer.draft import Draft, Section, duration_3_digits
from sim.jobs.source.rest_job import Flows, RestInput, RestJob, RestVertex
from sim.model.job import SHIPPING, Shipping
from sim.model.units import format_number, format_rate, format_size

# ---- Names of the inputs of a vertex in a scenario.  Several edges from the same upstream vertex need different names.


def input_names(upstreams: Sequence[str], vertices: Collection[str]) -> list[str]:
    """Return a name for each input: that of the upstream vertex, or `upstream-2`, `upstream-3` for further edges from it.

    `vertices` are the names that are taken.
    """
    names: list[str] = []
    for upstream in upstreams:
        name, number = upstream, 1
        while name in names or (name != upstream and name in vertices):
            number += 1
            name = f"{upstream}-{number}"
        names.append(name)
    return names


# ---- Records on each edge, and their size.  Flink has one counter for all outputs of a task, and one for all its inputs.
#
# `numRecordsOut` is incremented once per record, regardless of the number of outputs that the record is sent to.
# `numRecordsIn` counts the records of all inputs.  Bytes are counted once per downstream subtask that they are sent to.
#
#                          reader has one input    reader has several inputs
# writer has one output    records out of the writer
# writer has several       records in of the       records in of the reader less its other inputs; of several such
#                          reader                  inputs, in proportion to what their writers emit (asked)

EdgeId = tuple[str, int]  # (downstream vertex, index of its input)
RELATIVE_TOLERANCE = 0.05
"""Relative difference up to which two counters count as equal, because they are not sampled at the same time."""
MAX_COUNT_DEVIATIONS = 3  # number of standard deviations by which counts may differ by chance


@dataclass(frozen=True, slots=True)
class Edge:
    """The records per second over an edge."""

    upstream: str
    copies: int  # copies of each record on the wire: the parallelism of the reader for a broadcast, otherwise 1
    per_second: float  # a record that is broadcast counts once
    is_measured: bool  # False if several edges are counted together
    source: str  # origin of the record rate, as text


@dataclass(frozen=True, slots=True)
class Size:
    """The mean size of a record on the wire [bytes], including the timestamp of a source."""

    bytes: int
    source: str  # origin, as text


@dataclass(frozen=True, slots=True)
class EdgeFlows:
    """The flows over the edges of a job."""

    job: RestJob
    edges: Mapping[EdgeId, Edge]  # only edges whose reader has a record counter
    unbalanced: Mapping[str, str]  # vertex -> how its counter contradicts those of its upstreams

    def edge_size(self, edge_id: EdgeId) -> Size | None:
        """Return the size of the records on an edge, or None if they are counted together with those of other edges."""
        reader, edge = self.job.vertex(edge_id[0]), self.edges.get(edge_id)
        if len(reader.inputs) == 1:
            return measured_size(self.job.flows[reader.name], "in")
        if edge is not None and edge.copies == 1 and len(outputs_of(self.job, edge.upstream)) == 1:
            return measured_size(self.job.flows[edge.upstream], "out")
        return None

    def emitted_size(self, writer: str) -> Size | None:
        """Return the record size on the output of `writer` with the highest rate, or None if no output has a known size."""
        sizes = [
            (self.edges[edge].per_second, size)
            for edge in outputs_of(self.job, writer)
            if edge in self.edges and (size := self.edge_size(edge))
        ]
        return max(sizes, key=itemgetter(0))[1] if sizes else None


def edge_flows(job: RestJob) -> EdgeFlows:
    """Return the flows over all edges, computed from the counters of the vertices."""
    edges = {(vertex.name, i): edge for vertex in job.vertices for i, edge in enumerate(_edges_into(job, vertex))}
    return EdgeFlows(job, edges, dict(find_unbalanced(job)))


def _edges_into(job: RestJob, reader: RestVertex) -> Iterator[Edge]:
    """Yield the edges into a vertex, in the order of its inputs; nothing if its records are not counted."""
    flow = job.flows[reader.name]
    read = flow.per_second("records_in")
    if math.isnan(read):
        return
    written, copies = _written(job, reader), [_copies(reader, i) for i in range(len(reader.inputs))]
    rates = [
        rate if len(outputs_of(job, edge.upstream)) == 1 else math.nan
        for edge, rate in zip(reader.inputs, written, strict=True)
    ]
    unknown = [i for i, rate in enumerate(rates) if math.isnan(rate)]
    rest = max(read - math.fsum(rate * many for rate, many in zip(rates, copies, strict=True) if rate >= 0), 0.0)
    weights = [written[i] * copies[i] if written[i] > 0 else 0.0 for i in unknown]  # False for NaN, too
    for i, weight in zip(unknown, weights, strict=True):
        share = weight / sum(weights) if sum(weights) > 0 else 1 / len(unknown)
        rates[i] = rest * share / copies[i]
    less = "" if len(reader.inputs) == 1 else " less what its other inputs carry"
    origin = f"{read:,.4g}/s into '{reader.name}'{less}, {flow.source}"
    for i, edge in enumerate(reader.inputs):
        yield Edge(edge.upstream, copies[i], rates[i], i not in unknown or len(unknown) == 1, origin)


def find_unbalanced(job: RestJob) -> Iterator[tuple[str, str]]:
    """Yield (vertex, contradiction between the records that it reads and those that its upstream vertices write).

    For example "'map' reads 50 records/s and upstreams that feed only it write 100/s".  It may read more than all of them
    write, or less than those of its upstreams that feed no other vertex.
    """
    for reader in job.vertices:
        flow = job.flows[reader.name]
        read = flow.per_second("records_in")
        rates = [rate * _copies(reader, i) for i, rate in enumerate(_written(job, reader))]
        if not rates or math.isnan(read) or any(map(math.isnan, rates)):
            continue
        total, reads_text = math.fsum(rates), f"'{reader.name}' reads {read:,.4g} records/s"
        exclusive = math.fsum(
            rate for edge, rate in zip(reader.inputs, rates, strict=True) if len(outputs_of(job, edge.upstream)) == 1
        )
        # sampling times, and random arrivals
        counted, elapsed_s = max(max(read, total) * flow.elapsed_s, 1.0), max(flow.elapsed_s, 1.0)
        slack = RELATIVE_TOLERANCE * max(read, total) + MAX_COUNT_DEVIATIONS * math.sqrt(counted) / elapsed_s
        if read > total + slack:
            yield reader.name, f"{reads_text} and its inputs write {total:,.4g}/s"
        elif read < exclusive - slack:
            yield reader.name, f"{reads_text} and upstreams that feed only it write {exclusive:,.4g}/s"


def outputs_of(job: RestJob, writer: str) -> list[EdgeId]:
    """Return the outputs of a vertex."""
    return [
        (reader.name, i)
        for reader in job.readers(writer)
        for i, edge in enumerate(reader.inputs)
        if edge.upstream == writer
    ]


def _written(job: RestJob, reader: RestVertex) -> list[float]:
    """Return the records per second that the upstream vertex of each input writes, or NaN if they are not counted."""
    return [job.flows[edge.upstream].per_second("records_out") for edge in reader.inputs]


def _copies(vertex: RestVertex, i: int) -> int:
    """Return how many subtasks of `vertex` receive each record of its input `i`: all for a broadcast, otherwise 1."""
    return vertex.parallelism if vertex.inputs[i].ship == "BROADCAST" else 1


def measured_size(flow: Flows, direction: str) -> Size | None:
    """Return the mean size of the records that a vertex reads ("in") or writes ("out"), or None if it was not measured."""
    size, records = flow.total(f"bytes_{direction}"), flow.total(f"records_{direction}")
    if not (records > 0 and size > 0):
        return None
    return Size(max(1, round(size / records)), f"{size:,.0f} bytes / {records:,.0f} records {direction}, {flow.source}")


# ---- Share of a keyed edge's records that each subtask of its reader receives.
#
# A subtask has one counter for the records of all its inputs.  Each subtask receives all records of a broadcast, and an
# even share of a rebalance.  The remaining records are keyed.  Two keyed inputs are assumed to have the same skew.

MIN_SKEW = 1.1
"""Minimum records of the most loaded subtask / mean of all subtasks to ask for the skew of two keyed inputs."""


def keyed_shares(
    vertex: RestVertex, shippings: Sequence[Shipping], flow: Flows, edges: Mapping[EdgeId, Edge]
) -> tuple[list[int], str, tuple[str, str] | None] | None:
    """Return (share of each subtask of `vertex` in the records of its keyed inputs [per mille], origin, question and assumption).

    Return None if no share differs from the mean by more than `MAX_COUNT_DEVIATIONS` standard deviations (Poisson), or if
    they cannot be computed.  `shippings` has the ship
    strategy of each input.  A difference of a few per cent matters: under back-pressure, the channels to subtasks with a
    smaller share run empty, and contain no in-flight data.
    """
    rates = flow.rates("records_in")
    unkeyed = {i: edges.get((vertex.name, i)) for i, shipping in enumerate(shippings) if not shipping.keyed}
    keyed_inputs = len(shippings) - len(unkeyed)
    to_each = math.fsum(_rate_of_each_reader(edge, shippings[i], vertex.parallelism) for i, edge in unkeyed.items())
    if not keyed_inputs or vertex.parallelism < 2 or len(rates) < 2 or np.isnan([*rates, to_each]).any():
        return None
    keyed = (rates - to_each).clip(min=0.0)
    counts, total = keyed * flow.elapsed_s, keyed.sum()
    if not total > 0 or (abs(counts - counts.mean()) <= MAX_COUNT_DEVIATIONS * math.sqrt(counts.mean())).all():
        return None
    question = None
    if keyed_inputs > 1 and keyed.max() > MIN_SKEW * keyed.mean():
        question = (
            "Do the keys of its inputs have the same skew?",
            "yes; each subtask counts the records of all its inputs together.",
        )
    elif any(edge is not None and not edge.is_measured for edge in unkeyed.values()):
        question = "What are the record rates of its unkeyed inputs?", "in proportion to what their writers emit."
    less = ", less those of its other inputs" if unkeyed else ""
    source = f"records in of each subtask{less}, {flow.source}"
    return np.rint(1000 * keyed / total).astype(int).tolist(), source, question


def _rate_of_each_reader(edge: Edge | None, shipping: Shipping, readers: int) -> float:
    """Return the records per second that each subtask reads from an unkeyed input, or NaN if subtasks may read different rates."""
    if edge is None or shipping.to_one or shipping.one_to_one:
        return math.nan
    return edge.per_second / (1 if shipping.copies else readers)


# ---- The `input:` section of a vertex: name, ship strategy, key skew, fan-out and record size of each edge.

NEAREST_SHIPPING = {"SHUFFLE": ("rebalance", "sent at random"), "CUSTOM": ("hash", "sent by a custom partitioner")}
"""Ship strategies of Flink that scenarios do not have -> (the most similar one, a description of the difference)."""
MAX_SHARE_DIFFERENCE = 0.03
"""Relative difference between an edge and its upstream vertex up to which fan-out and record size are not set."""


def infer_inputs(draft: Draft, vertex: RestVertex, edge_flows: EdgeFlows) -> None:
    """Set the `input:` section of a vertex, and `combine` if it has several inputs."""
    section, job = draft.vertex(vertex.name), edge_flows.job
    names = input_names([edge.upstream for edge in vertex.inputs], [other.name for other in job.vertices])
    shippings = [SHIPPING[_nearest_shipping(edge.ship)[0]] for edge in vertex.inputs]
    shares = keyed_shares(vertex, shippings, job.flows[vertex.name], edge_flows.edges)
    for i, (edge, name) in enumerate(zip(vertex.inputs, names, strict=True)):
        path = f"input.{name}"
        if name != edge.upstream:
            section.put(f"{path}.from", edge.upstream)
        ship, origin = _infer_shipping(draft, vertex, edge)
        section.put(f"{path}.ship", ship)
        if shares is not None and shippings[i].keyed:
            per_mille, source, question = shares
            section.put(f"{path}.weights.counted", per_mille, source)
            if question:
                section.add_question(f"{path}.weights.counted", *question)
        _infer_amounts(section, (vertex.name, i), path, edge_flows)
        has_only_ship = section.values["input"][name].keys() == {"ship"}  # `upstream: hash`
        section.put(path if has_only_ship else f"{path}.ship", ship, origin)
    if len(vertex.inputs) > 1:
        _infer_combine(section, job, vertex)


def _nearest_shipping(in_plan: str) -> tuple[str, str]:
    """Return the ship strategy of a scenario for that of Flink's plan, and a description of the difference.

    The description is "" if they are the same.
    """
    if in_plan.lower() in SHIPPING:
        return in_plan.lower(), ""
    unknown = f"sent by the unknown ship strategy '{in_plan}'" if in_plan else "sent by an unknown ship strategy"
    return NEAREST_SHIPPING.get(in_plan, ("rebalance", unknown))


def _infer_shipping(draft: Draft, vertex: RestVertex, edge: RestInput) -> tuple[str, str]:
    """Return the ship strategy of an edge in a scenario, and its origin.  Notes in the draft what is not modelled."""
    if not edge.is_pipelined:
        draft.not_modelled.append(
            f"'{vertex.name}' reads '{edge.upstream}' only after that has finished (a blocking exchange)"
        )
    ship, difference = _nearest_shipping(edge.ship)
    if not difference:
        return ship, f"{edge.ship} in the plan"
    draft.not_modelled.append(
        f"records from '{edge.upstream}' to '{vertex.name}' are {difference}: simulated as {ship}"
    )
    return ship, f"{edge.ship or 'no ship strategy'} in the plan, simulated as {ship}"


def _infer_amounts(section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows) -> None:
    """Set fan-out and record size of an edge if they differ from those of its upstream vertex, or if counters contradict."""
    edge = edge_flows.edges.get(edge_id)
    if edge is None:
        return
    has_siblings = len(outputs_of(edge_flows.job, edge.upstream)) > 1
    is_contradicted = edge_id[0] in edge_flows.unbalanced
    if has_siblings or is_contradicted:
        _infer_edge_fan_out(section, edge_id, path, edge_flows, is_contradicted=is_contradicted)
    size, emitted = edge_flows.edge_size(edge_id), edge_flows.emitted_size(edge.upstream)
    if has_siblings and size and emitted and abs(size.bytes / emitted.bytes - 1) > MAX_SHARE_DIFFERENCE:
        section.put(f"{path}.record", format_size(size.bytes), size.source)


def _infer_edge_fan_out(
    section: Section, edge_id: EdgeId, path: str, edge_flows: EdgeFlows, *, is_contradicted: bool
) -> None:
    """Set the fan-out of an edge: records on the edge / records that its upstream vertex reads (or emits, if a source).

    * If the counters contradict each other because the upstream vertex also writes to an external system, the reader's
      counter is used.
    * If they contradict each other for another reason, or count several edges together, the user is asked.
    * Otherwise the fan-out is set if it differs from that of the upstream vertex.
    """
    edge, job = edge_flows.edges[edge_id], edge_flows.job
    reader, writer, flow = job.vertex(edge_id[0]), job.vertex(edge.upstream), job.flows[edge.upstream]
    base, written = flow.per_second("records_in" if writer.inputs else "records_out"), flow.per_second("records_out")
    if not base > 0 or not written > 0:
        return
    per_second = f"{base:,.4g}/s {'into' if writer.inputs else 'out of'} '{writer.name}'"
    read = job.flows[reader.name].per_second("records_in") / edge.copies
    value, origin, assumed = edge.per_second, "", ""
    writes_outside = any("writer" in name.lower() for name in writer.chain)
    if is_contradicted and writes_outside and len(reader.inputs) == 1 and 0 < read < written:
        # The reader has one input, so its counter is that of this edge.  The upstream counter also has the records that a
        # sink writer writes to the external system (FLIP-33).
        value = read
        origin = (
            f"{read:,.4g}/s into '{reader.name}', which reads nothing else / {per_second}, whose {written:,.4g}/s out "
            "include those of its sink writer to the external system"
        )
    elif is_contradicted:
        least, most = min(written, read, value), max(written, min(read, value))
        value = min(value, most)
        between = f"between {least / base:.4g} and {most / base:.4g}"
        assumed = f"{between}; the counters of its two ends contradict each other."
    elif not edge.is_measured:
        assumed = "in proportion to what the upstreams of its reader write: these edges are counted together."
    elif abs(value / written - 1) > MAX_SHARE_DIFFERENCE:
        origin = f"{edge.source} / {per_second}"
    else:
        return
    fan_out = format_number(Fraction(f"{value / base:.4g}"))
    if origin:
        section.put(f"{path}.fan-out", fan_out, origin)
    else:
        per = f"per record that '{writer.name}' {'reads' if writer.inputs else 'emits'}"
        question = f"How many records does '{writer.name}' send over this edge {per}?"
        section.ask(f"{path}.fan-out", fan_out, question, assumed)


def _infer_combine(section: Section, job: RestJob, vertex: RestVertex) -> None:
    """Set `combine` to join or union, which look the same in Flink's plan.

    A join is recognized by its watermark metric per input, which some Flink versions have, or by the name of the operator.
    Otherwise the user is asked.
    """
    has_watermarks = ".currentInput2Watermark" in job.series[vertex.name].values
    if has_watermarks or re.search(r"join|\bco-|\bcoprocess", vertex.chain[0] if vertex.chain else "", re.IGNORECASE):
        if len(vertex.inputs) > 2:
            assumed = (
                "none: each edge is a join input of its own. If two edges form one input, set `union: left` on both."
            )
            section.ask("combine", "join", "Which of its edges are a union, one input of the join?", assumed)
        else:
            metric = "an operator of its chain has a metric currentInput2Watermark"
            section.put("combine", "join", metric if has_watermarks else "by its name")
        return
    is_keyed = any(edge.ship == "HASH" for edge in vertex.inputs)
    kind, why = (
        ("join", "joined, because they are keyed.") if is_keyed else ("union", "one stream, because none is keyed.")
    )
    section.ask("combine", kind, "Are its inputs joined (two inputs) or a union (one stream)?", why)


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


# ---- Silent subtasks of a source emit no records while others do: their partitions are empty, or they have no partition.

MIN_RECORDS_PER_SUBTASK = 20  # minimum mean number of records of the other subtasks to call a subtask silent


def infer_silent(section: Section, flow: Flows) -> Flows:
    """Set the number of silent subtasks of a source.  Return the flows of the other subtasks, from which rates are inferred."""
    emitted = flow.subtasks["records_out"]
    silent, is_active = np.flatnonzero(emitted == 0).tolist(), emitted > 0
    if not silent or not is_active.any() or not emitted.sum() >= MIN_RECORDS_PER_SUBTASK * is_active.sum():  # or NaN
        return flow
    origin = (
        f"subtask{'s' if len(silent) > 1 else ''} {', '.join(map(str, silent))} emitted nothing while others did "
        f"(simulated as the last subtasks): {flow.source}"
    )
    section.put("source.silent", len(silent), origin)
    return replace(flow, subtasks={name: values[is_active] for name, values in flow.subtasks.items()})


# ---- The section of each vertex except its state, from counters.
#
# service        busy time without snapshots / records in (of a source: records out)
# fan-out        records out / records in
# record         bytes / records of an edge
# source rate    records out, if the source is idle at times: then it keeps up with its input.  A source that is never idle
#                has a backlog.  Its input rate is known only if the growth of the backlog (`pendingRecords`) is reported
# silent         number of subtasks that emit nothing while others do; the other values are those of the other subtasks
# waits          `lock`, if the busy time is NaN: a legacy SourceFunction emits from its own thread, which Flink does not measure
# weights        records in of each subtask of a keyed input, less those of its inputs without keys

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

"""Translate a scenario to the specification of its data plane.

Vertices and edges are numbered, distributions are tabulated as quantiles, and rates become segments of record ordinals.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from math import lcm

from sim.model.faults import Restart
from sim.model.job import LOCK_WON, Input, Job, Source, Vertex, owners
from sim.model.packed_records import PackedRecords
from sim.model.randomness import quantile_table, share_table, size_table
from sim.model.scenario import Scenario
from sim.model.units import SECOND
from sim.plane.interface import (
    EdgeSpec,
    OutputDelay,
    PlaneSpec,
    QuantileTable,
    RateSegment,
    Ship,
    SourceSpec,
    VertexSpec,
    Wait,
)

_Segment = tuple[int, int, int, int]
"""The fields of a `plane.RateSegment`."""


def plane_spec(scenario: Scenario, *, digests: bool = False, begin_ns: int = 0) -> PlaneSpec:
    """Return the specification of the data plane of a scenario.

    Random streams depend only on the run's seed and the names of vertices and edges.  With `digests`, the plane computes
    a digest of the events of each task and channel (G1).  `begin_ns` is the simulated time at which the plane starts.
    """
    job, network = scenario.job, scenario.cluster.network
    number = {vertex.name: i for i, vertex in enumerate(job.vertices)}
    edges = [_edge(job, number, reader, gate) for reader in job.vertices for gate in range(len(reader.inputs))]
    return PlaneSpec(
        vertices=tuple(_vertex(vertex, yields=scenario.yields(vertex)) for vertex in job.vertices),
        edges=tuple(edges),
        hosts=hosts(scenario),
        seed=scenario.run.seed,
        latency_ns=scenario.cluster.latency_ns,
        nic=_nic(scenario.cluster.nic_bytes_per_second),
        segment_bytes=network.segment_bytes,
        starting_buffer_bytes=network.starting_segment_bytes if network.debloat else network.segment_bytes,
        exclusive=network.exclusive_per_channel,
        floating=network.floating_per_gate,
        max_per_channel=network.max_per_channel,
        overdraft=network.overdraft,
        stretching=network.stretching,
        max_traverse=0 if network.adaptive_partitioner is None else network.adaptive_partitioner.max_traverse_size,
        opens_at_once=scenario.checkpoint.during_recovery,
        buffer_timeout_ns=_flush_period_ns(scenario),
        debloating=network.debloat,
        digests=digests,
        begin_ns=begin_ns,
    )


def hosts(scenario: Scenario) -> tuple[int, ...]:
    """Return the number of each task's TaskManager, by `cluster.placement`.

    `isolated`: every task has its own TaskManager.  `single`: all tasks share one.  Otherwise (`spread`): subtask i of
    each vertex is in slot i (slot sharing), and slots are numbered TaskManager by TaskManager.
    """
    subtasks = [i for vertex in scenario.job.vertices for i in range(vertex.parallelism)]
    placement = scenario.cluster.placement
    if placement == "isolated":
        return tuple(range(len(subtasks)))
    return tuple(0 if placement == "single" else i // (scenario.cluster.slots or 1) for i in subtasks)


def restarts_after_loss(scenario: Scenario, lost: Collection[int | None] = (None,)) -> list[Restart]:
    """Return `restart:` for each kind of TaskManager that may be killed.  `lost`: their numbers; None: any.

    If no task elsewhere reads from its tasks, nobody reports its end before the JobMaster detects it.
    """
    placed, restart, first = hosts(scenario), scenario.restart, 0
    of_vertex: dict[str, tuple[int, ...]] = {}
    read = set[int]()  # TaskManagers with readers elsewhere
    for vertex in scenario.job.vertices:
        readers = of_vertex[vertex.name] = placed[first : first + vertex.parallelism]
        first += vertex.parallelism
        for inlet in vertex.inputs:
            writers = of_vertex[inlet.upstream]
            if inlet.shipping.one_to_one:
                read |= {writer for writer, reader in zip(writers, readers, strict=False) if writer != reader}
            else:
                read |= {writer for writer in writers if set(readers) - {writer}}
    late = replace(restart, connection_reset_ns=restart.heartbeat_timeout_ns + restart.heartbeat_interval_ns)
    kinds = {number in read for number in (placed if None in lost else lost)}
    return [restart if is_read else late for is_read in sorted(kinds)]


def service_factors(job: Job) -> dict[int, Fraction]:
    """Return the factor by which service times are multiplied, for each task that has one.

    Factors belong to a subtask index, so after rescaling the subtask with the same index has the factor.
    """
    factors, first = dict[int, Fraction](), 0
    for vertex in job.vertices:
        factors |= {
            first + subtask: factor for subtask, factor in vertex.service_factors if subtask < vertex.parallelism
        }
        first += vertex.parallelism
    return factors


def _vertex(vertex: Vertex, *, yields: bool) -> VertexSpec:
    distributions = [inlet.service for inlet in vertex.inputs] or [vertex.service]
    source = None if vertex.source is None else _source(vertex.source)
    return VertexSpec(
        vertex.name,
        vertex.parallelism,
        tuple(quantile_table(distribution) for distribution in distributions),
        source,
        vertex.joined,
        _lag(vertex, yields=yields),
        vertex.gates_of_inputs,
    )


def _lag(vertex: Vertex, *, yields: bool) -> OutputDelay | None:
    """Return how the outputs of a vertex are delayed: by asynchronous I/O, a window, or a commit.

    Return None if records are emitted when they are served.
    """
    if vertex.async_io is not None:
        return OutputDelay(quantile_table(vertex.async_io.latency), vertex.async_io.capacity)
    if vertex.window is not None:
        outputs = vertex.fan_out.numerator, vertex.fan_out.denominator
        return OutputDelay(firing_ns=vertex.window.fire_ns, outputs=outputs, yields=yields)
    return OutputDelay() if vertex.commit is not None and vertex.commit.emits == "on-commit" else None


def _edge(job: Job, number: dict[str, int], reader: Vertex, gate: int) -> EdgeSpec:
    """Return the specification of the edge to an input of `reader`.  Its name must be unique because it seeds random streams."""
    inlet = reader.inputs[gate]
    writer = job.vertex(inlet.upstream)
    fan_out = job.fan_out(inlet)
    return EdgeSpec(
        name=f"{writer.name}->{reader.name}#{gate}",
        upstream=number[writer.name],
        downstream=number[reader.name],
        ship=Ship[inlet.shipping.routing],
        record_bytes=size_table(inlet.record_bytes),
        weights=_readers(inlet, reader),
        # committers get no records, only committables
        fan_out=(0, 1) if reader.committer_of else (fan_out.numerator, fan_out.denominator),
    )


def _readers(inlet: Input, reader: Vertex) -> QuantileTable:
    """Return the reader subtask of each of equally large slices of the records, by weight or by key group.

    Return an empty table if all readers get the same share.
    """
    if shares := reader.shares(inlet):
        return share_table(shares)
    if not inlet.shipping.keyed or reader.max_parallelism % reader.parallelism == 0:
        return ()
    return owners(reader.parallelism, reader.max_parallelism)


def _source(source: Source) -> SourceSpec:
    """Return the specification of a source: convert piecewise constant rates to segments of record ordinals.

    A segment begins with a record.  A record that begins under one rate and is completed under the next one belongs to
    the second.  No record is due while the rate is 0.
    """
    rates = tuple(source.rates)  # `source.rates` builds its rows from columns on each pass
    # a record is divided into this many parts, so that each rate is a whole number of parts per ns
    record = lcm(*{rate.per_second.denominator for rate in rates}) * SECOND
    segments, due = list[_Segment](), 0  # parts due before the segment begins
    for rate, following in zip_longest(rates, rates[1:]):
        num, den_ns = rate.per_second.numerator, rate.per_second.denominator * SECOND
        per_ns = num * (record // den_ns)
        if num > 0:
            first = -(-due // record)
            missing = first * record - due  # of the first record, at the start
            start_ns = rate.start_ns + round(Fraction(missing, per_ns))
            segments.append((first, start_ns, num, den_ns))
        if following is not None:
            due += per_ns * (following.start_ns - rate.start_ns)
    total = -1 if source.total is None else source.total
    if rates and rates[-1].per_second == 0:  # the log ends with the last segment that has records
        last = -(-due // record)
        total = last if total < 0 else min(total, last)
    packed = PackedRecords(RateSegment, _without_empty(segments))
    return SourceSpec(packed, total, source.silent, Wait[source.waits.upper()], int(LOCK_WON * 2**32))


def _without_empty(segments: list[_Segment]) -> list[_Segment]:
    """Return the segments that contain at least one record.  The last one is always kept."""
    return [row for i, row in enumerate(segments) if i + 1 == len(segments) or segments[i + 1][0] > row[0]]


def _flush_period_ns(scenario: Scenario) -> int:
    """Return the period of Flink's OutputFlusher [ns]; 0 flushes after each record, -1 only full buffers.

    The flusher thread sleeps for the buffer timeout and then works, so its period is the sum of both.
    """
    timeout_ns = scenario.cluster.network.buffer_timeout_ns
    return timeout_ns + scenario.overheads.flusher_ns if timeout_ns > 0 else timeout_ns


def _nic(bytes_per_second: int | None) -> tuple[int, int] | None:
    """Return the bandwidth in bytes per ns as a ratio (numerator, denominator), or None if it is unlimited."""
    if bytes_per_second is None:
        return None
    ratio = Fraction(bytes_per_second, SECOND)
    return ratio.numerator, ratio.denominator

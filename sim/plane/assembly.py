"""Create the rows of a plane from its specification, and copy tables from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, cast

import numpy as np

from sim.model.randomness import draw, stream
from sim.plane.interface import (
    MAX_SERVED_SAMPLES,
    Layout,
    PlaneSpec,
    QuantileTable,
    Ship,
    Wait,
    channels_in,
    channels_out,
    create_layout,
)
from sim.plane.rows import Channel, DelayLine, Element, Gate, General, Partition, PlaneState, Task, record_dtype
from sim.plane.text.basics import (
    BITS,
    COUNT_HEAD,
    COUNTS,
    EDGE_SUMS,
    NEVER,
    NOTE_WORDS,
    SERIES,
    TIMED,
    UNTIMED,
    VERTEX_SUMS,
)

# ---- Copies of rows as tables, with the columns defined by the interface.

Column = np.ndarray[Any, np.dtype[np.int64]]
TASK_COLUMNS = (
    "state",
    "served",
    "records_out",
    "bytes_in",
    "bytes_out",
    "buffers_in",
    "buffers_out",
    "busy_ns",
    "idle_ns",
    "soft_ns",
    "hard_ns",
    "digest",
)
CHANNEL_COLUMNS = (
    "written",
    "sent",
    "arrived",
    "taken",
    "consumed",
    "records_in",
    "records_out",
    "credit",
    "blocked",
    "queued",
    "received",
    "buffer_bytes",
    "cap_in",
    "cap_out",
    "digest",
)
TOTALS = {  # column: (of the task's earlier attempts, end of the channel, of the channel)
    "records_out": ("earlier_records", "writer", "records_out"),
    "bytes_in": ("earlier_in", "reader", "taken"),
    "bytes_out": ("earlier_out", "writer", "written"),
}


def column(rows: Any, name: str) -> Column:
    """Return one field of all rows, which are objects (interpreted) or an array of records (compiled)."""
    if isinstance(rows, General):
        rows = [rows]
    if isinstance(rows, list):
        return np.fromiter((getattr(row, name) for row in rows), np.int64, len(rows))
    return np.array(rows[name], np.int64)


def select_field(rows: Any, name: str, places: Sequence[int] | Column | slice) -> Column:
    """Return one field of the rows with these numbers."""
    if isinstance(rows, list):
        places = range(len(rows))[places] if isinstance(places, slice) else places
        return np.fromiter((getattr(rows[place], name) for place in places), np.int64, len(places))
    values: Column = rows[name][places].astype(np.int64, copy=isinstance(places, slice))
    return values


def assign(rows: Any, name: str, places: Sequence[int], values: Any) -> None:
    """Set one field of the rows with these numbers to a common value, or to one value each."""
    if not isinstance(rows, list):
        rows[name][places] = values
        return
    one_each = values.tolist() if isinstance(values, np.ndarray) else [values] * len(places)
    for place, value in zip(places, one_each, strict=True):
        setattr(rows[place], name, value)


@cache
def _row(names: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in names])


def table(columns: dict[str, Column]) -> np.ndarray[Any, Any]:
    """Return columns as a structured array."""
    n = len(next(iter(columns.values())))
    rows = np.empty(n, _row(tuple(columns)))
    for name, values in columns.items():
        rows[name] = values
    return rows


def sum_by_owner(n: int, owner: Column, values: Column) -> Column:
    """Return the sum of the values of each owner, of which there are n."""
    total = np.zeros(n, np.int64)
    np.add.at(total, owner, values)
    return total


def total(state: PlaneState, name: str) -> Column:
    """Return, by task, a total of all attempts (P3).  `name` is a key of TOTALS."""
    earlier, end, of_channel = TOTALS[name]
    return column(state.tasks, earlier) + sum_by_owner(
        len(state.tasks), column(state.channels, end), column(state.channels, of_channel)
    )


def totals(state: PlaneState) -> dict[str, Column]:
    """Return all columns of TOTALS, by task."""
    return {name: total(state, name) for name in TOTALS}


# ---- The initial rows of a plane, created from its specification.
#
# They are arrays of records.  For the interpreter, `as_objects` converts them to lists of objects.

Rows = np.ndarray[Any, np.dtype[np.void]]
LINE_OF_CACHE = 64
FIT_INTO_CACHE = 4096  # channels; if a job has more, they are prefetched
NOTES = 512  # a step reports at most one number per open count and two more


ROWS = {
    "g": General,
    "tasks": Task,
    "partitions": Partition,
    "gates": Gate,
    "channels": Channel,
    "elements": Element,
    "lines": DelayLine,
}


def new_rows(row: type, n: int) -> Rows:
    """Return n rows with default values.  The array begins on a cache line."""
    dtype = record_dtype(row)
    raw = np.zeros(n * dtype.itemsize + LINE_OF_CACHE, np.uint8)
    begin = -raw.ctypes.data % LINE_OF_CACHE
    rows = raw[begin : begin + n * dtype.itemsize].view(dtype)
    if row is not Element:  # pages of the element pool are not touched until they are used
        for field in fields(row):
            if field.default != 0:
                rows[field.name] = field.default
    return rows


def as_objects(arrays: PlaneState) -> PlaneState:
    """Convert the state of a plane from arrays to objects, for the interpreter."""
    lists = [
        [ROWS[name](*values) for values in array.tolist()] if name in ROWS else array.tolist()
        for name, array in arrays._asdict().items()
    ]
    return PlaneState(lists[0][0], *lists[1:])


def with_more_elements(state: PlaneState, n: int) -> PlaneState:
    """Return the state of the plane with n more elements in the pool."""
    elements: Any = state.elements
    if isinstance(elements, list):
        return state._replace(elements=elements + [Element() for _ in range(n)])
    rows = new_rows(Element, len(elements) + n)
    rows[: len(elements)] = elements
    return state._replace(elements=cast(list[Element], rows))


class WordTable:
    """Builder of `PlaneState.words`: tables one after the other.  Equal distributions are stored once."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, np.ndarray[Any, Any]]] = []  # (index, values); all other words are 0
        self.n = 0
        self.known: dict[QuantileTable, int] = {}

    def add(self, values: Any) -> int:
        """Add values, and return the index of the first one."""
        part = np.asarray(values, np.int64)
        at = self.zeros(len(part))
        self.parts.append((at, part))
        return at

    def zeros(self, n: int) -> int:
        """Add n zeros, and return the index of the first one.  They need no memory until `all` is called."""
        at = self.n
        self.n += n
        return at

    def table(self, values: QuantileTable) -> int:
        """Add a distribution unless it is stored already, and return its index."""
        if values not in self.known:
            self.known[values] = self.add(values)
        return self.known[values]

    def all(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return all words."""
        words = np.zeros(self.n + 1, np.int64)
        for at, part in self.parts:
            words[at : at + len(part)] = part
        return words


def assemble(spec: PlaneSpec, marker_room: int) -> tuple[PlaneState, Layout]:
    """Return the initial state of a plane, before the operation START, and its layout.

    The element pool has room for `marker_room` markers, or for one per channel if that is more.
    """
    plan = create_layout(spec)
    words = WordTable()
    lines = sorted(set(spec.hosts)) if spec.nic else [0]
    inputs, outputs = (
        [*(words.add(channels) for _, _, channels in rows), words.n] for rows in (plan.gates, plan.partitions)
    )
    tasks = task_rows(spec, plan, words, inputs, outputs)
    tasks["line"] = 1 + np.searchsorted(lines, spec.hosts) if spec.nic else 1
    partitions = partition_rows(spec, plan, words)
    gates = gate_rows(spec, plan, words, inputs)
    channels = channel_rows(spec, plan)
    g = general_rows(spec, plan, 1 + len(lines), words)
    n = 1 << (len(tasks) + len(channels) - 1).bit_length()  # the smallest power of two that is not below
    g["work_mask"] = n - 1
    arrays: tuple[Any, ...] = (
        g,
        tasks,
        partitions,
        gates,
        channels,
        new_rows(Element, elements_bound(spec, plan, partitions) + max(marker_room, len(channels))),
        new_rows(DelayLine, 1 + len(lines)),
        np.full(2 * int(g["leaf0"][0]), NEVER, np.int64),
        np.zeros(n, np.int64),
        words.all(),
        np.zeros(NOTES * NOTE_WORDS, np.int64),
    )
    return PlaneState(*arrays), plan


def elements_bound(spec: PlaneSpec, plan: Layout, partitions: Rows) -> int:
    """Return the maximum number of elements other than markers.

    Each buffer has a segment or a credit, each channel has at most one RESUME message, and RESIZE messages are sent once
    per debloating period.
    """
    # a broadcast segment is in the queues of all channels
    queues = np.where(partitions["ship"] == Ship.BROADCAST, partitions["channels"], 1)
    n = (
        int((partitions["limit"] * queues).sum())
        + len(plan.writer) * (spec.exclusive + 1)
        + len(plan.gates) * spec.floating
    )
    if spec.debloating and spec.latency_ns:
        n += len(plan.writer) * (spec.latency_ns // spec.debloating.period_ns + 2)
    return n


def task_rows(spec: PlaneSpec, plan: Layout, words: WordTable, inputs: list[int], outputs: list[int]) -> Rows:
    """Return the rows of tasks.  `inputs`, `outputs`: where the channels of each gate and partition begin in `words`, and the end."""
    rows = new_rows(Task, len(plan.vertex))
    rows["since"], rows["runs_ahead"] = spec.begin_ns, runs_ahead(spec, plan)
    segments = []
    for vertex in spec.vertices:
        begin = words.n
        for segment in vertex.source.segments if vertex.source else ():
            words.add(
                (
                    segment.first,
                    segment.start_ns,
                    segment.records,
                    segment.per_ns // segment.records,
                    segment.per_ns % segment.records,
                )
            )
        segments.append((begin, words.n))
    for t, v in enumerate(plan.vertex):
        vertex = spec.vertices[v]
        row = rows[t]
        row["first_partition"], row["last_partition"] = plan.task_partitions[t].start, plan.task_partitions[t].stop
        row["first_gate"], row["last_gate"] = plan.task_gates[t].start, plan.task_gates[t].stop
        row["first_input"], row["last_input"] = inputs[row["first_gate"]], inputs[row["last_gate"]]
        row["first_output"], row["last_output"] = outputs[row["first_partition"]], outputs[row["last_partition"]]
        row["joined"], row["last_used"] = vertex.joined, row["last_gate"] - 1
        row["stride"], row["offset"] = stream(spec.seed, "service", vertex.name, plan.subtask[t])
        if vertex.lag is not None:
            row["lag"], row["lag_capacity"] = TIMED if vertex.lag.times else UNTIMED, vertex.lag.capacity
            row["firing_ns"], row["yields"] = vertex.lag.firing_ns, vertex.lag.yields
            row["fired_num"], row["fired_den"] = vertex.lag.outputs
            row["lag_stride"], row["lag_offset"] = stream(spec.seed, "lag", vertex.name, plan.subtask[t])
            if vertex.lag.times:
                row["lag_table"], row["lag_n"] = words.table(vertex.lag.times), len(vertex.lag.times)
                row["lag_ring"] = words.zeros(vertex.lag.capacity)
        if not plan.task_gates[t]:
            log = vertex.log(plan.subtask[t])
            row["source"] = log.waits if log else Wait.MAILBOX
            if log and log.waits == Wait.LOCK:
                row["lock_stride"], row["lock_offset"] = stream(spec.seed, "lock", vertex.name, plan.subtask[t])
                row["lock_wins"] = log.mail_lock_probability_q32
            row["total"] = log.total if log else -1
            row["service_table"], row["service_n"] = words.table(vertex.service[0]), len(vertex.service[0])
            if log and log.segments:
                row["first_segment"], row["last_segment"] = segments[v]
                row["segment"] = row["first_segment"]
                row["due"] = log.segments[0].start_ns
    return rows


def runs_ahead(spec: PlaneSpec, plan: Layout) -> list[bool]:
    """Return, by task, whether it may serve records ahead: buffers hold several records, and a record has at most one copy."""
    small = [2 * min(edge.record_bytes) <= spec.segment_bytes for edge in spec.edges]

    def has_no_visible_effect(t: int) -> bool:
        vertex = spec.vertices[plan.vertex[t]]
        log = vertex.log(plan.subtask[t])
        outputs = [plan.partitions[p][1] for p in plan.task_partitions[t]]
        inputs = [plan.gates[g][1] for g in plan.task_gates[t]]
        compared = [e for e in outputs if spec.compares(spec.edges[e].ship)]
        copying = [
            e
            for e in outputs
            if spec.edges[e].ship == Ship.BROADCAST or spec.edges[e].fan_out[0] > spec.edges[e].fan_out[1]
        ]
        visible = (
            vertex.joined,
            vertex.lag is not None,
            log is not None and log.waits == Wait.LOCK,
            len(outputs) > 1,
            len(copying) > 0,
            len(compared) > 0,  # what readers have done decides where a record goes
            len(outputs) > 0 and spec.buffer_timeout_ns == 0,  # every record is flushed
        )
        return all(small[e] for e in (*inputs, *outputs)) and not any(visible)

    return [has_no_visible_effect(t) for t in range(len(plan.vertex))]


def partition_rows(spec: PlaneSpec, plan: Layout, words: WordTable) -> Rows:
    rows = new_rows(Partition, len(plan.partitions))
    for p, (t, e, channels) in enumerate(plan.partitions):
        edge, row = spec.edges[e], rows[p]
        row["task"], row["ship"], row["first_channel"], row["channels"] = t, edge.ship, channels.start, len(channels)
        row["last_channel"] = channels.stop
        row["pool"] = len(channels) * spec.exclusive + spec.floating
        row["limit"] = row["pool"] + spec.overdraft * spec.vertices[edge.upstream].uses_overdraft_buffers
        row["fan_num"], row["fan_den"] = edge.fan_out
        row["size_table"], row["size_n"] = words.table(edge.record_bytes), len(edge.record_bytes)
        if edge.ship == Ship.HASH:
            row["stride"], row["offset"] = stream(spec.seed, "route", edge.name, plan.subtask[t])
            if edge.weights:
                row["weights"], row["weights_n"] = words.table(edge.weights), len(edge.weights)
        elif spec.compares(edge.ship):
            row["traverse"] = min(spec.max_traverse, len(channels))
        elif edge.ship == Ship.REBALANCE:
            row["turn"] = (draw(stream(spec.seed, "start", edge.name, plan.subtask[t]), 0) * len(channels)) >> 32
    return rows


def gate_rows(spec: PlaneSpec, plan: Layout, words: WordTable, inputs: list[int]) -> Rows:
    """Return the rows of gates.  `inputs`: where the channels of each gate begin in `words`, and the end."""
    rows = new_rows(Gate, len(plan.gates))
    for i, (t, e, channels) in enumerate(plan.gates):
        edge, row = spec.edges[e], rows[i]
        vertex = spec.vertices[plan.vertex[t]]
        bit_words = -(-len(channels) // BITS)
        row["task"], row["place"] = t, i - plan.task_gates[t].start
        row["input_end"] = plan.task_gates[t].start + vertex.input_of(row["place"]).stop
        row["first_channel"], row["last_channel"], row["channels"] = inputs[i], inputs[i + 1], len(channels)
        row["idle"] = spec.floating
        service = vertex.service[row["place"]]
        row["service_table"], row["service_n"] = words.table(service), len(service)
        row["size_table"], row["size_n"] = words.table(edge.record_bytes), len(edge.record_bytes)
        row["settled"] = words.zeros(SERIES)
        row["closed_bits"] = words.zeros(bit_words)
        row["count_words"] = COUNT_HEAD + bit_words
        row["counts"] = words.zeros(COUNTS * (COUNT_HEAD + bit_words))
        row["last_size"], row["announced_bytes"] = spec.starting_buffer_bytes << 32, spec.starting_buffer_bytes
    return rows


def channel_rows(spec: PlaneSpec, plan: Layout) -> Rows:
    rows = new_rows(Channel, len(plan.writer))
    local = np.array(plan.local, np.int64)
    rows["writer"], rows["reader"] = plan.writer, plan.reader
    rows["partition"], rows["gate"], rows["local"] = plan.partition, plan.gate, local
    rows["buffer_bytes"] = spec.starting_buffer_bytes
    for name in ("credit", "required", "ex_free"):
        rows[name] = np.where(local, 0, spec.exclusive)
    for _, _, channels in plan.gates:
        rows["place"][list(channels)] = np.arange(len(channels))
    drawn = [edge.name if len(edge.record_bytes) > 1 else "" for edge in spec.edges]
    if not any(drawn):
        return rows
    for c, (w, r, e) in enumerate(zip(plan.writer, plan.reader, plan.edge, strict=True)):
        if drawn[e]:
            reader = 0 if spec.edges[e].ship == Ship.BROADCAST else plan.subtask[r]
            rows["stride"][c], rows["offset"][c] = stream(spec.seed, "size", drawn[e], plan.subtask[w], reader)
    return rows


def general_rows(spec: PlaneSpec, plan: Layout, lines: int, words: WordTable) -> Rows:
    n = len(plan.vertex)
    rows = new_rows(General, 1)
    shift = (n + lines + 1).bit_length()
    values: dict[str, int] = {
        "now": spec.begin_ns,
        "flush_base": spec.begin_ns,
        "debloat_base": spec.begin_ns,
        "tasks": n,
        "channels": len(plan.writer),
        "vertices": len(spec.vertices),
        "edges": len(spec.edges),
        "first_tasks": words.add((*plan.first_task, n)),
        "first_channels": words.add([number for pair in first_channels(spec, plan) for number in pair]),
        "sums": words.add(np.zeros(len(spec.vertices) * VERTEX_SUMS + len(spec.edges) * EDGE_SUMS)),
        "copied": words.zeros(
            max(n, *(1 + 2 * (len(channels_in(plan, t)) + len(channels_out(plan, t))) for t in range(n)))
        ),
        "served_samples": words.zeros(MAX_SERVED_SAMPLES * n),
        "shift": shift,
        "leaf0": 1 << shift,
        "horizon": (1 << (63 - shift)) - 2,
        "latency": spec.latency_ns,
        "segment_bytes": spec.segment_bytes,
        "exclusive": spec.exclusive,
        "max_per_channel": spec.max_per_channel,
        "stretching": int(spec.stretching),
        "opens_at_once": int(spec.opens_at_once),
        "timeout": spec.buffer_timeout_ns,
        "digests": int(spec.digests),
        "fetches": int(len(plan.writer) > FIT_INTO_CACHE),
        "flush_rank": n + lines,
        "debloat_rank": n + lines + 1,
    }
    if spec.nic:
        values["nic_num"], values["nic_den"] = spec.nic
    if spec.buffer_timeout_ns > 0:
        writers = [t for t in range(n) if plan.task_partitions[t]]
        names = {t: ("flush", spec.vertices[plan.vertex[t]].name, plan.subtask[t]) for t in writers}
        values["flush_n"], values["flush_from"] = len(writers), words.add(circle(spec, names, spec.buffer_timeout_ns))
    if spec.debloating:
        bloat = spec.debloating
        gates = {i: ("debloat", spec.edges[e].name, plan.subtask[t]) for i, (t, e, _) in enumerate(plan.gates)}
        values["debloat_n"], values["debloat_from"] = len(gates), words.add(circle(spec, gates, bloat.period_ns))
        values |= {
            "period": bloat.period_ns,
            "target": bloat.target_ns,
            "samples": bloat.samples,
            "threshold": bloat.threshold_percent,
            "min_bytes": bloat.min_bytes,
        }
    for name, value in values.items():
        rows[name] = value
    return rows


def first_channels(spec: PlaneSpec, plan: Layout) -> list[tuple[int, int]]:
    """Return (first channel, vertex that writes) of each edge, then (number of channels, 0).  Channels of an edge are adjacent (N3)."""
    first = np.searchsorted(np.array(plan.edge, np.int64), np.arange(len(spec.edges))).tolist()
    return [*zip(first, (edge.upstream for edge in spec.edges), strict=True), (len(plan.edge), 0)]


def circle(spec: PlaneSpec, names: Mapping[int, tuple[str | int, ...]], period: int) -> list[int]:
    """Return (offset in the period [ns], member) for each member of a timer, by offset, as a flat list.

    Offsets are drawn from the stream of the member's name.
    """
    phases = sorted(
        (1 + ((draw(stream(spec.seed, *name), 0) * period) >> 32), member) for member, name in names.items()
    )
    return [number for pair in phases for number in pair]

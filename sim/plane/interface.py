"""Data types of the data plane's interface: specification, layout, markers, notices, positions.

The operations are the methods of `sim.plane.kernel.KernelPlane`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sim.model.cluster import Debloating
from sim.model.frozen import frozen
from sim.model.packed_records import PackedRecords

# ---- The specification of a data plane.  All times are int64 nanoseconds, all volumes int64 bytes.
#
# ``sim/plane/RULES.md`` specifies the behaviour; letters and numbers here refer to its rules.


class Ship(IntEnum):
    """How records of an edge select a channel (Flink's StreamPartitioner)."""

    FORWARD = 0
    RESCALE = 1
    REBALANCE = 2
    HASH = 3
    BROADCAST = 4
    GLOBAL = 5


class Wait(IntEnum):
    """Where a source waits for its next record (W3)."""

    MAILBOX = 1
    POLL = 2
    LOCK = 3


QuantileTable = tuple[int, ...]
"""A distribution as a table of integer quantiles.  A table with one entry is a constant."""


@frozen
class RateSegment:
    """From record number `first` on, which is due at `start_ns`, `records` records are due every `per_ns`."""

    first: int
    start_ns: int
    records: int
    per_ns: int


FIRST_COLUMN, START_COLUMN = 0, 1
"""Columns of packed segments."""


@frozen
class SourceSpec:
    """The log that each subtask of a source reads."""

    # per subtask; empty: unlimited rate.  Any sequence is accepted
    segments: PackedRecords[RateSegment] = PackedRecords(RateSegment)
    total: int = -1  # records per subtask; -1: unbounded
    idle_subtasks: int = 0  # number of subtasks, the last ones, without records (T6)
    waits: Wait = Wait.MAILBOX
    mail_lock_probability_q32: int = (
        1 << 32
    )  # probability x 2**32 that a mail gets the lock after an emission that waited for output

    def __post_init__(self) -> None:
        """Pack the segments to save memory: a day with a rate per second has 86,400."""
        if not isinstance(self.segments, PackedRecords):
            rows = [(row.first, row.start_ns, row.records, row.per_ns) for row in self.segments]
            object.__setattr__(self, "segments", PackedRecords(RateSegment, rows))

    def due(self, i: int) -> int:
        """Return when record i is due (W1) [ns]."""
        place = self.segments.last_until(FIRST_COLUMN, i)
        if place < 0:
            return 0
        segment = self.segments[place]
        return segment.start_ns + (i - segment.first) * segment.per_ns // segment.records


@frozen
class OutputDelay:
    """Outputs are written some time after the service of their record (L1-L5), or when they are released (L7, L8)."""

    times: QuantileTable = ()  # ns; empty: outputs wait until they are released
    capacity: int = 0  # with times: maximum late records, at least 1
    firing_ns: int = 0  # without times: thread time of each output, before it is written
    outputs: tuple[int, int] = (1, 1)  # fired per served record, as a ratio
    yields: bool = False  # mails and priority markers are processed between two outputs

    def __post_init__(self) -> None:
        """Raise ValueError if outputs are both delayed and fired (L7)."""
        if self.times and (self.firing_ns or self.yields):
            raise ValueError("times exclude firing_ns and yields: delayed outputs are not fired")


@frozen
class VertexSpec:
    """The specification of a vertex."""

    name: str
    parallelism: int
    service: tuple[QuantileTable, ...]  # ns, one table per gate (a source: exactly one)
    source: SourceSpec | None = None
    joined: bool = False  # several logical inputs, read alternately (T9); otherwise all gates are one input
    lag: OutputDelay | None = None
    gates_of_inputs: tuple[int, ...] = ()  # joined: gates of each input; empty: one each

    def __post_init__(self) -> None:
        """Raise ValueError unless each gate belongs to one input."""
        if self.gates_of_inputs and (sum(self.gates_of_inputs) != len(self.service) or min(self.gates_of_inputs) < 1):
            raise ValueError(
                f"vertex {self.name}: gates_of_inputs sums to {sum(self.gates_of_inputs)}, but it has {len(self.service)} gates"
            )

    @property
    def uses_overdraft_buffers(self) -> bool:
        """Whether outputs may use overdraft buffers; not those of a legacy source (SourceStreamTask#init, FLINK-27789)."""
        return self.source is None or self.source.waits != Wait.LOCK

    def input_of(self, gate: int) -> range:
        """Return the gates of the logical input that a gate belongs to (T9)."""
        begin = 0
        for gates in self.gates_of_inputs:
            if gate < begin + gates:
                return range(begin, begin + gates)
            begin += gates
        return range(gate, gate + 1)

    def log(self, subtask: int) -> SourceSpec | None:
        """Return the source specification of a subtask; idle ones read nothing."""
        if self.source is None or subtask < self.parallelism - self.source.idle_subtasks:
            return self.source
        return SourceSpec(total=0)


@frozen
class EdgeSpec:
    """The specification of an edge."""

    name: str
    upstream: int  # index into vertices
    downstream: int
    ship: Ship
    record_bytes: QuantileTable  # size on the wire, at least 1
    # hash only: downstream subtask of each key group, or of each slice of the records; empty: uniform
    weights: QuantileTable = ()
    fan_out: tuple[int, int] = (1, 1)  # copies per served record, as a ratio

    def __post_init__(self) -> None:
        """Raise ValueError if a record has no bytes (B1)."""
        if min(self.record_bytes) < 1:
            raise ValueError(f"edge {self.name}: a record of {min(self.record_bytes)} B; every record has at least 1 B")


@frozen
class PlaneSpec:
    """The specification of a data plane.  Vertices are in topological order; edges go from earlier to later vertices."""

    vertices: tuple[VertexSpec, ...]
    edges: tuple[EdgeSpec, ...]
    hosts: tuple[int, ...]  # host of each task; channels between tasks of one host are local
    seed: int = 0
    latency_ns: int = 0
    nic: tuple[int, int] | None = None  # (bytes, ns): outgoing bandwidth of a host
    segment_bytes: int = 32768
    starting_buffer_bytes: int = 32768
    exclusive: int = 2
    floating: int = 8
    max_per_channel: int = 10
    overdraft: int = 20
    stretching: bool = True  # whether a shrunk buffer may grow (O4)
    max_traverse: int = 0  # channels of rebalance and rescale that are compared for a record (O8); 0: none
    buffer_timeout_ns: int = 100_000_000
    debloating: Debloating | None = None
    digests: bool = False
    opens_at_once: bool = False  # a started task requests its partitions before it reads its recovered input (P9)
    begin_ns: int = 0  # start time; not 0 if the plane is built during a run (E2)

    def compares(self, ship: Ship) -> bool:
        """Return whether records of such an edge go to the least loaded channel (O8)."""
        return self.max_traverse > 0 and ship in (Ship.REBALANCE, Ship.RESCALE)


# ---- The channels of a job, and the numbers of tasks, partitions, gates and channels (rules N1-N4).


def targets(ship: Ship, writer: int, p_up: int, p_down: int) -> range:
    """Return the downstream subtasks of one upstream subtask.

    Forward and rescale are pointwise (VertexInputInfoComputationUtils); all others are all-to-all.
    """
    if ship not in (Ship.FORWARD, Ship.RESCALE):
        return range(p_down)
    if p_up >= p_down:  # consumer j reads producers [j*p_up/p_down, (j+1)*p_up/p_down)
        reader = next(j for j in range(writer * p_down // p_up, p_down) if (j + 1) * p_up // p_down > writer)
        return range(reader, reader + 1)
    return range((writer * p_down + p_up - 1) // p_up, ((writer + 1) * p_down + p_up - 1) // p_up)


@frozen
class Layout:
    """The tasks, partitions, gates and channels of a plane, as sequences indexed by their numbers (N1-N3)."""

    first_task: Sequence[int]  # by vertex
    vertex: Sequence[int]  # by task
    subtask: Sequence[int]
    partitions: Sequence[tuple[int, int, range]]  # (task, edge, channels), by task then edge
    gates: Sequence[tuple[int, int, Sequence[int]]]  # (task, edge, channels by writer), by task then edge
    task_partitions: Sequence[range]  # by task: its numbers in `partitions`
    task_gates: Sequence[range]
    writer: Sequence[int]  # by channel: task
    reader: Sequence[int]
    edge: Sequence[int]
    partition: Sequence[int]  # by channel: number in `partitions`
    gate: Sequence[int]
    local: Sequence[bool]


def create_layout(spec: PlaneSpec) -> Layout:
    """Number the tasks, partitions, gates and channels of a specification."""
    first_task: list[int] = []
    vertex: list[int] = []
    subtask: list[int] = []
    for v, vertex_spec in enumerate(spec.vertices):
        first_task.append(len(vertex))
        vertex += [v] * vertex_spec.parallelism
        subtask += range(vertex_spec.parallelism)
    outputs: list[list[tuple[int, range]]] = [[] for _ in vertex]
    inputs: list[list[tuple[int, Sequence[int]]]] = [[] for _ in vertex]
    task_numbers = list(range(len(vertex)))  # shared int objects save memory: there are many channels per task
    writer: list[int] = []
    reader: list[int] = []
    edge: list[int] = []
    for e, row in enumerate(spec.edges):
        up, down = spec.vertices[row.upstream], spec.vertices[row.downstream]
        first = len(writer)
        readers = range(first_task[row.downstream], first_task[row.downstream] + down.parallelism)
        numbers = task_numbers[readers.start : readers.stop]
        for i in range(up.parallelism):
            w, begin = first_task[row.upstream] + i, len(writer)
            reached = targets(row.ship, i, up.parallelism, down.parallelism)
            reader += numbers[reached.start : reached.stop]
            writer += [w] * len(reached)
            outputs[w].append((e, range(begin, len(writer))))
        edge += [e] * (len(writer) - first)
        for j, members in enumerate(_inputs(reader, first, readers)):
            inputs[readers[j]].append((e, members))
    partitions: list[tuple[int, int, range]] = []
    task_partitions, partition = [], [0] * len(writer)
    for t, rows in enumerate(outputs):
        task_partitions.append(range(len(partitions), len(partitions) + len(rows)))
        for e, channels in rows:
            partition[channels.start : channels.stop] = [len(partitions)] * len(channels)
            partitions.append((t, e, channels))
    gates: list[tuple[int, int, Sequence[int]]] = []
    task_gates, gate = [], [0] * len(writer)
    for t, gate_rows in enumerate(inputs):
        task_gates.append(range(len(gates), len(gates) + len(gate_rows)))
        for e, members in gate_rows:
            number = len(gates)
            for c in members:
                gate[c] = number
            gates.append((t, e, members))
    return Layout(
        first_task,
        vertex,
        subtask,
        partitions,
        gates,
        task_partitions,
        task_gates,
        writer,
        reader,
        edge,
        partition,
        gate,
        local=[spec.hosts[w] == spec.hosts[r] for w, r in zip(writer, reader, strict=True)],
    )


def _inputs(reader: list[int], first: int, readers: range) -> list[Sequence[int]]:
    """Return the channels of each reader, by writer, among the channels from `first` on.

    In an all-to-all edge they are evenly spaced, so that ranges replace lists.
    """
    n = len(reader) - first
    if n % len(readers) == 0 and all(
        reader[begin : begin + len(readers)] == list(readers) for begin in range(first, first + n, len(readers))
    ):
        return [range(first + j, first + n, len(readers)) for j in range(len(readers))]
    members: list[list[int]] = [[] for _ in readers]
    for c in range(first, len(reader)):
        members[reader[c] - readers.start].append(c)
    return [tuple(channels) for channels in members]


# ---- Counts of a task since the plane was built.  They never decrease, not even in restarts (rule P8).


class RecordCounts(NamedTuple):
    """The number of records of all attempts of a task, in total and by channel.  Channels are in the order of its `Position`."""

    served: int
    read: np.ndarray  # by input channel
    written: np.ndarray  # by output channel


# ---- Markers, notices and the columns of tables.
#
# ``M1`` refers to a rule of ``sim/plane/RULES.md``.  All times are int64
# nanoseconds, all volumes int64 bytes.

BARRIERS = 0
"""The series of checkpoint barriers, whose markers delimit captures."""
FIRST_UNGROUPED_SERIES = 2
"""Markers of this and higher series are reported one by one, without counting them by gate (M4)."""
MAX_SERIES = 5
ANY_NUMBER = 1 << 62
"""Larger than all marker numbers."""
VERTEX_COLUMNS = ("served", "bytes_out", "busy_ns", "idle_ns", "soft_ns", "hard_ns")
"""Columns of `sums` for each vertex.  Records served count over all attempts (P8)."""
EDGE_COLUMNS = ("bytes to read", "buffers to read", "bytes to send", "buffers to send")
"""Columns of `sums` for each edge.

To read: arrived but not taken, i.e. received on a remote channel or queued on a local one.  To send: written but not sent.
"""
MAX_SERVED_SAMPLES = 8
"""Maximum rows that one call of `sample_served` returns."""
MAX_TRACKED_CHECKPOINTS = 50
"""Marker counts tracked per gate (Flink: CheckpointBarrierTracker.MAX_CHECKPOINTS_TO_TRACK)."""


class ThreadState(IntEnum):
    """The state of a task's thread."""

    IDLE = 0  # output available, nothing to read
    BUSY = 1  # serving a record
    SOFT = 2  # between records, output not available
    HARD = 3  # within a record, waiting for a memory segment
    HELD = 4  # held by the control plane
    HALTED = 5  # failed, cancelled or finished (P1)


class Trait(IntFlag):
    """A trait of a marker."""

    NONE = 0
    PRIORITY = 1  # overtakes data, which is captured
    BLOCKING = 2  # blocks the sender's queue behind it until a resume
    ANNOUNCED = 4  # the receiver is notified when it arrives, the sender when the last one has left
    FINAL = 8  # closes the channel, which counts as arrived for all later numbers


class Marker(NamedTuple):
    """A marker in the byte stream of a channel."""

    number: int  # > 0
    traits: Trait = Trait.NONE
    series: int = BARRIERS


class NoticeKind(IntEnum):
    """The kind of a notice."""

    REACHED_TIME = 0  # `until` is reached
    ARRIVED = 1  # first and / or last marker of a number processed on a gate
    ANNOUNCED = 2  # an announced marker is in a receive queue
    INTERRUPTED = 3  # an interrupted task is between records
    ANNOUNCED_SENT = 4  # all announced markers of a number have left the task's output queues
    EXHAUSTED = 5  # a bounded source has served its last record
    RECOVERED = 6  # a restarted task has read all of its recovered input (P7)
    DELAYED_OUTPUTS_WRITTEN = 7  # a task that waited for late outputs has written the last one (L6)
    WRITTEN = 8  # a task has written the released outputs (L9)


class Notice(NamedTuple):
    """An event that the control plane must handle.  Fields that do not apply are -1 or False."""

    time: int  # ns
    kind: NoticeKind
    task: int = -1
    gate: int = -1  # position among the task's gates
    series: int = -1
    number: int = -1
    channel: int = -1  # the channel of the marker that caused it
    first: bool = False
    last: bool = False


class Position(NamedTuple):
    """The position of a task in its streams (P2).  Arrays are int64 copies, one entry per channel.

    A channel, from its first byte to the last one written; `overtaken` is the part in the sender's queue at the barrier::

        consumed | captured | overtaken |
                                        ^ written
    """

    served: int  # records served; also the index of random draws
    consumed: np.ndarray  # bytes up to the end of the last record whose service began
    records_read: np.ndarray  # records read from the channel
    captured: np.ndarray  # bytes captured by the receiver, after `consumed`
    written: np.ndarray  # bytes written
    records_written: np.ndarray  # records written to the channel
    overtaken: np.ndarray  # bytes captured in the sender's queue; they end at `written`
    late: int = 0  # number of latest records served whose outputs are not written yet (L5)


# ---- Validation of start positions (P3, P5): both ends of a channel must be started, with no more in flight than written.

ChannelPlaces = slice | np.ndarray[Any, Any]
"""Indices of channels.  Usually they are equidistant and form a slice, which NumPy reads twice as fast."""


@cache
def zero_column(channels: int) -> np.ndarray[Any, Any]:
    """Return a shared, read-only column of zeros."""
    column = np.zeros(channels, np.int64)
    column.flags.writeable = False
    return column


def has_no_captured_data(position: Position) -> bool:
    """Return whether the position is known to have no captured data (without summing the columns)."""
    captured, overtaken = position.captured, position.overtaken
    return captured is zero_column(len(captured)) and overtaken is zero_column(len(overtaken))


def bytes_in_flight(position: Position) -> int:
    """Return the captured bytes, on both sides."""
    return 0 if has_no_captured_data(position) else int(position.captured.sum() + position.overtaken.sum())


def channels_in(layout: Layout, task: int) -> list[int]:
    """Return the input channels of a task, in the order of its position."""
    return [c for g in layout.task_gates[task] for c in layout.gates[g][2]]


def channels_out(layout: Layout, task: int) -> list[int]:
    """Return the output channels of a task, in the order of its position."""
    return [c for p in layout.task_partitions[task] for c in layout.partitions[p][2]]


def places(channels: Sequence[int]) -> ChannelPlaces:
    """Return the indices of channels in a column."""
    if len(channels) < 2:
        return slice(channels[0], channels[0] + 1) if channels else slice(0)
    evenly = range(channels[0], channels[-1] + 1, max(channels[1] - channels[0], 1))
    return (
        slice(evenly.start, evenly.stop, evenly.step)
        if list(evenly) == list(channels)
        else np.array(channels, np.int32)
    )


def validate_start_positions(layout: Layout, positions: Mapping[int, Position]) -> None:
    """Raise ValueError unless tasks can be started at these positions."""
    left: dict[int, int] = {}  # channel -> bytes written and not overtaken
    for t, position in positions.items():
        outputs, inputs = channels_out(layout, t), channels_in(layout, t)
        lengths = [len(column) for column in position[1:7]]
        expected = [len(inputs)] * 3 + [len(outputs)] * 3
        if lengths != expected:
            raise ValueError(f"start of task {t}: its position has columns of {lengths} channels, the task {expected}")
        if not 0 <= position.late <= position.served or any(column.min(initial=0) < 0 for column in position[1:7]):
            raise ValueError(
                f"start of task {t}: negative value, or more pending outputs than records served, in {position}"
            )
        missing = {layout.reader[c] for c in outputs} | {layout.writer[c] for c in inputs}
        missing -= positions.keys()
        if missing:
            raise ValueError(
                f"start of task {t}: tasks {sorted(missing)} at the other end of its channels are not started with it"
            )
        left |= dict(zip(outputs, (position.written - position.overtaken).tolist(), strict=True))
    for t, position in positions.items():
        for c, captured in zip(channels_in(layout, t), position.captured.tolist(), strict=True):
            if captured > left[c]:
                raise ValueError(
                    f"start of channel {c}: captured bytes exceed the written bytes by {captured - left[c]}"
                )

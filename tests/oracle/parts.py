"""What the plane is made of: buffers, channels, partitions, gates, tasks.  State only; the rules are in the other files."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from sim.model.randomness import Stream, draw
from sim.plane.interface import MAX_SERIES, EdgeSpec, Marker, Ship, SourceSpec, ThreadState, Trait, VertexSpec

Identity = tuple[int, int]
"""A source record: source task and its ordinal there."""
MERSENNE = 2**31 - 1


def quantile(table, stream, i):
    """W2: the i-th value of a stream under an integer quantile table."""
    return table[(draw(stream, i) * len(table)) >> 32]


def fold(digest, *values):
    """G1: a running digest that depends on every value and on their order."""
    for x in values:
        digest = (((digest ^ (x & MERSENNE)) * 48271) + ((x >> 31) & MERSENNE)) & MERSENNE
    return digest


@dataclass(eq=False, slots=True)
class Buffer:
    """A segment of the writer's pool holding the bytes [begin, end) of its channel (B2)."""

    channel: Channel
    begin: int  # offset in the channel's stream
    end: int
    sent: int  # offset up to which it has left the queue
    capacity: int  # bytes
    closed: bool = False
    pinned: bool = False  # C4
    slices: int = 0  # local: slices with the reader that are not recycled

    @property
    def fill(self):
        return self.end - self.begin

    @property
    def done(self):
        """Nothing will be read from it any more (O7)."""
        return self.closed and self.sent == self.end and self.slices == 0


@dataclass(eq=False, slots=True)
class Slice:
    """A data element that left the sender's queue: the bytes [begin, end), in a buffer of the reader or (local) still in the writer's."""

    channel: Channel
    begin: int
    end: int
    buffer: Buffer | None = None  # local: the writer's buffer it is a part of
    floating: bool = False  # remote: which kind of buffer holds it (R1)
    loose: bool = False  # recovered input, in no buffer at all (P6)
    pinned: bool = False  # C4
    recycled: bool = False

    @property
    def length(self):
        return self.end - self.begin


@dataclass(eq=False, slots=True)
class Channel:
    """One writer subtask to one reader subtask: the sender's end, the receiver's end and the byte stream between them."""

    number: int
    writer: Task
    reader: Task
    partition: Partition
    gate: Gate
    edge: EdgeSpec
    local: bool
    sizes: Stream  # B1
    buffer_bytes: int  # capacity of the next buffer (D4)
    exclusive: int  # buffers of its own at the receiver (R1)
    # offsets (B2)
    written: int = 0
    sent: int = 0
    arrived: int = 0
    taken: int = 0
    consumed: int = 0
    records_out: int = 0  # completely written
    records_in: int = 0  # service begun
    fragment: int = 0  # bytes before the next record that belong to none (P5)
    # the sender's end
    queue: deque[Buffer | Marker] = field(default_factory=deque)
    count: int = 0  # segments in use (O1)
    flush: bool = False
    blocked: bool = False
    credit: int = 0
    # the receiver's end
    received: deque[Slice | Marker] = field(default_factory=deque)
    ex_free: int = 0
    fl_free: int = 0
    required: int = 0
    waiting: bool = False  # in the gate's listeners
    unannounced: int = 0
    held_back: bool = False  # the sender waits for a resume (M4)
    mark: int = 0  # number of the last barrier that arrived (R5)
    mark_at: int = 0
    # captures
    capture: int = 0  # number whose marker ends the capture of this channel's input; 0: none open
    capture_from: int = 0  # consumed at capture (C2)
    pinning: bool = False  # arriving data is pinned
    pinned_slices: list[Slice] = field(default_factory=list)
    pinned_buffers: list[Buffer] = field(default_factory=list)
    cap_in: int = 0
    cap_out: int = 0
    digest: int = 1
    recovered: deque[Slice] = field(default_factory=deque)  # recovered input not yet polled (P6)
    ever_read: int = 0  # records, over all attempts (P8)
    ever_written: int = 0
    history: list[Identity] = field(default_factory=list)  # of every record ever written

    @property
    def open(self):
        """The buffer that can still grow: only the last one (S1)."""
        if self.queue and isinstance(last := self.queue[-1], Buffer) and not last.closed:
            return last
        return None

    @property
    def free(self):
        return self.ex_free + self.fl_free

    @property
    def unsent(self):
        """The data in the sender's queue, first to last."""
        return [element for element in self.queue if isinstance(element, Buffer)]

    def size(self, i):
        """B1: bytes of record i."""
        return quantile(self.edge.record_bytes, self.sizes, i)

    def head_is_priority(self):
        return bool(self.queue) and isinstance(head := self.queue[0], Marker) and bool(head.traits & Trait.PRIORITY)


@dataclass(eq=False, slots=True)
class Partition:
    """One task's output for one edge (N3) with its pool of segments (O1)."""

    task: Task
    edge_number: int
    edge: EdgeSpec
    routes: Stream
    start: Stream
    size: int
    overdraft: int
    max_per_channel: int
    channels: list[Channel] = field(default_factory=list)
    used: int = 0
    recovered: int = 0  # segments of recovered output at the start: they may exceed the limit (P6)
    turn: int = 0  # of the first channel that is compared (O8)
    copies: int = 0  # records ever emitted here, a broadcast counting once (O5)
    uncounted: int = 0  # copies no channel counts: cut off at a halt, or made before streams were dealt out anew

    @property
    def available(self):
        """O2."""
        counts = [self.used] if self.shared else [c.count for c in self.channels]
        return self.used < self.size and all(count < self.max_per_channel for count in counts)

    @property
    def shared(self):
        """O1: the buffers that its channels open together are one segment."""
        return self.edge.ship == Ship.BROADCAST

    @property
    def counted(self):
        """Copies that its channels count, a broadcast counting once."""
        return self.channels[0].records_out if self.shared else sum(c.records_out for c in self.channels)

    def count_shared(self):
        """O1: a shared segment is in use until the last channel has given it back."""
        self.used = max(c.count for c in self.channels)

    @property
    def grants(self):
        """O3."""
        return self.used < self.size + self.overdraft


@dataclass(eq=False, slots=True)
class Count:
    """The count of a gate's channels that have delivered a number, or are closed (M4)."""

    series: int
    number: int
    channels: set[int]


@dataclass(eq=False, slots=True)
class Gate:
    """One task's input of one edge (N3)."""

    number: int  # among all gates
    task: Task
    position: int  # among the task's gates
    edge_number: int
    idle_floating: int
    previous: int  # buffer size last announced (D4), bytes
    last: int  # moving average of the buffer size, 2**-32 bytes (D3)
    channels: list[Channel] = field(default_factory=list)
    # waiting for a floating buffer, first come first served (R2)
    listeners: deque[Channel] = field(default_factory=deque)
    ready: deque[Channel] = field(default_factory=deque)  # R4
    announced: int = 0  # R5
    settled: list[int] = field(default_factory=lambda: [0] * MAX_SERIES)  # M5
    closed: set[int] = field(default_factory=set)  # numbers of closed channels (M4)
    counts: list[Count] = field(default_factory=list)  # open, oldest first
    current: Slice | None = None  # the buffer being read; without joined inputs at most one gate of a task has one
    shut: bool = False  # has not requested its partitions since it was started anew (P7)
    active_since: int | None = None  # D2
    active_ns: int = 0
    bytes: int = 0
    rate: tuple[int, int] = (0, 1)  # bytes and active ns of the last run that measured


@dataclass(eq=False, slots=True)
class Event:
    """One entry of the event list; `order` breaks ties inside a rank (F1, first in first out on lines)."""

    time: int
    rank: int
    order: int
    kind: str
    payload: object = None

    def __lt__(self, other):
        return (self.time, self.rank, self.order) < (other.time, other.rank, other.order)


@dataclass(eq=False, slots=True)
class Late:
    """A served record whose outputs are not written yet (L1)."""

    ordinal: int
    record: Identity | None
    ready: int = 0  # with times


@dataclass(eq=False, slots=True)
class Task:
    """One subtask and its thread."""

    number: int
    vertex: VertexSpec
    subtask: int
    service: Stream
    log: SourceSpec | None = None  # what it reads, if it is a source
    partitions: list[Partition] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    state: ThreadState = ThreadState.IDLE
    since: int = 0  # when the state was entered
    spent: list[int] = field(default_factory=lambda: [0] * len(ThreadState))  # ns per state, up to `since`
    in_service: bool = False  # truly serving; the state may still read BUSY after the end of service (T10, T11)
    held: bool = False  # between hold and release; the state may still read HELD after release (E4)
    recovering: bool = False  # started anew, RECOVERED is not reported yet (P7)
    interrupted: bool = False
    behind: bool = False  # one element comes before SAFE (T3)
    passed_over: bool = False  # the lock went back to the source while a mail waited for it (W3)
    exhausted: bool = False  # EXHAUSTED is reported (T6)
    alarm: Event | None = None  # its one pending event: end of service, or a wake-up
    priority: deque[tuple[Channel, Marker]] = field(default_factory=deque)
    ready_gates: deque[Gate] = field(default_factory=deque)  # R4
    last_used: int = -1  # position of the gate a joined task read last (T9)
    prioritised: int = 0  # M3
    pinned_for: int = 0  # the number whose capture pins buffers of this task (C4)
    # writes left of the record; a broadcast is one to all channels
    emission: deque[list[Channel]] = field(default_factory=deque)
    rest: int = 0  # bytes left of the first of them, 0: not begun
    watched: dict[int, int] = field(default_factory=dict)  # number -> markers in the sender queues (S7)
    slow: tuple[int, int] = (1, 1)
    served: int = 0
    late: deque[Late] = field(default_factory=deque)  # L1
    in_hand: deque[Late] = field(default_factory=deque)  # L2
    release_late_outputs: int = 0
    waits_for_late: bool = False  # L6
    reports_written: bool = False  # L9
    records_out: int = 0
    buffers_in: int = 0
    buffers_out: int = 0
    earlier_in: int = 0  # bytes taken and written by earlier attempts beyond what the offsets show (P3)
    earlier_out: int = 0
    digest: int = 1
    ever_served: int = 0  # records, over all attempts (P8)
    serving: Identity | None = None
    writing: Identity | None = None  # the record whose outputs are being written
    served_records: list[Identity] = field(default_factory=list)

    @property
    def halted(self):
        """P1."""
        return self.state == ThreadState.HALTED

    @property
    def channels_in(self):
        return [c for gate in self.gates for c in gate.channels]

    @property
    def channels_out(self):
        return [c for partition in self.partitions for c in partition.channels]

    @property
    def output_available(self):
        """O2; a sink's output always is."""
        return all(p.available for p in self.partitions)

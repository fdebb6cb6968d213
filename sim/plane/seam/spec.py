"""The specification of a plane: vertices, edges, laws, sources, sizes.  All times are int64 nanoseconds, all volumes int64 bytes.

What the plane does with them stands in ``sim/plane/RULES.md``; letters and numbers here are the rules of that page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from sim.model.cluster import Debloating
from sim.packed_records import PackedRecords

__all__ = ["FIRST", "START", "Debloating", "EdgeSpec", "Lag", "Law", "PlaneSpec", "RateSegment", "Ship", "SourceSpec", "VertexSpec", "Wait"]


class Ship(IntEnum):
    """A ship strategy of Flink: how records of an edge choose their channel."""

    FORWARD = 0
    RESCALE = 1
    REBALANCE = 2
    HASH = 3
    BROADCAST = 4
    GLOBAL = 5


class Wait(IntEnum):
    """The place where a source waits for its next record (W3)."""

    MAILBOX = 1
    POLL = 2
    LOCK = 3


Law = tuple[int, ...]
"""An integer quantile table; one entry = a constant."""


@dataclass(frozen=True, slots=True)
class RateSegment:
    """From record ordinal `first` on, records are due every den_ns / num ns, beginning at start_ns."""

    first: int
    start_ns: int
    num: int
    den_ns: int


FIRST, START = 0, 1
"""Columns of packed segments."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The log that each subtask of a source reads."""

    segments: PackedRecords[RateSegment] = PackedRecords(RateSegment)  # per subtask; empty: unlimited.  Any sequence may be given
    total: int = -1  # records per subtask; -1: unbounded
    silent: int = 0  # the last so many subtasks have no records (T6)
    waits: Wait = Wait.MAILBOX
    wins: int = 1 << 32  # of 2**32: how often a mail gets the lock when an emission is complete that waited for output

    def __post_init__(self) -> None:
        """Segments are packed: there may be one per second of a day."""
        if not isinstance(self.segments, PackedRecords):
            rows = [(row.first, row.start_ns, row.num, row.den_ns) for row in self.segments]
            object.__setattr__(self, "segments", PackedRecords(RateSegment, rows))

    def due(self, i: int) -> int:
        """W1: when record i may be read."""
        place = self.segments.last_until(FIRST, i)
        if place < 0:
            return 0
        segment = self.segments[place]
        return segment.start_ns + (i - segment.first) * segment.den_ns // segment.num


@dataclass(frozen=True, slots=True)
class Lag:
    """Outputs leave some time after the service of their record (L1-L5), or are fired when they are let go (L7, L8)."""

    times: Law = ()  # ns; empty: they wait until they are let go
    capacity: int = 0  # with times: late records at most, at least 1; without: with so many all are let go (L10), 0: no bound
    firing_ns: int = 0  # without times: what each output takes the thread, before it is written; 0: nothing
    outputs: tuple[int, int] = (1, 1)  # fired per served record, as a ratio
    yields: bool = False  # mails and markers with priority pass between two firings

    def __post_init__(self) -> None:
        """Two ways to leave would be in each other's way (L7)."""
        if self.times and (self.firing_ns or self.yields):
            raise ValueError("outputs that leave after a time are not fired")


@dataclass(frozen=True, slots=True)
class VertexSpec:
    """A vertex, as the plane needs it."""

    name: str
    parallelism: int
    service: tuple[Law, ...]  # ns, one law per gate (a source: exactly one)
    source: SourceSpec | None = None
    joined: bool = False  # several logical inputs, read in turn record by record (T9); else all gates are one input
    lag: Lag | None = None
    gates_of_inputs: tuple[int, ...] = ()  # joined: how many each input has, in their order; empty: one each

    def __post_init__(self) -> None:
        """Every gate belongs to one input."""
        if self.gates_of_inputs and (sum(self.gates_of_inputs) != len(self.service) or min(self.gates_of_inputs) < 1):
            raise ValueError(f"vertex {self.name}: inputs of {self.gates_of_inputs} gates, and {len(self.service)} gates")

    @property
    def borrows(self) -> bool:
        """Whether its outputs may use overdraft segments: not those of a legacy source (SourceStreamTask#init, FLINK-27789)."""
        return self.source is None or self.source.waits != Wait.LOCK

    def input_of(self, gate: int) -> range:
        """The gates of the input that a gate is one of (T9)."""
        begin = 0
        for gates in self.gates_of_inputs:
            if gate < begin + gates:
                return range(begin, begin + gates)
            begin += gates
        return range(gate, gate + 1)

    def log(self, subtask: int) -> SourceSpec | None:
        """What a subtask of a source reads: a silent one nothing."""
        if self.source is None or subtask < self.parallelism - self.source.silent:
            return self.source
        return SourceSpec(total=0)


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """An edge, as the plane needs it."""

    name: str
    upstream: int  # index into vertices
    downstream: int
    ship: Ship
    record_bytes: Law  # size on the wire, at least 1
    weights: Law = ()  # hash only: the reader subtask of each key group, or of each slice of the records; empty: uniform
    fan_out: tuple[int, int] = (1, 1)  # copies per served record, as a ratio

    def __post_init__(self) -> None:
        """A record without bytes would leave no trace in its stream (B1)."""
        if min(self.record_bytes) < 1:
            raise ValueError(f"edge {self.name}: a record of {min(self.record_bytes)} B; every record has at least 1 B")


@dataclass(frozen=True, slots=True)
class PlaneSpec:
    """Everything the plane is told.  Vertices in topological order; an edge goes from an earlier to a later vertex."""

    vertices: tuple[VertexSpec, ...]
    edges: tuple[EdgeSpec, ...]
    hosts: tuple[int, ...]  # host of each task; channels between tasks of one host are local
    seed: int = 0
    latency_ns: int = 0
    nic: tuple[int, int] | None = None  # (bytes, per ns) of a host's outgoing line
    segment_bytes: int = 32768
    starting_buffer_bytes: int = 32768
    exclusive: int = 2
    floating: int = 8
    max_per_channel: int = 10
    overdraft: int = 20
    stretching: bool = True  # whether a shrunk buffer may grow (O4)
    buffer_timeout_ns: int = 100_000_000
    debloating: Debloating | None = None
    digests: bool = False
    opens_at_once: bool = False  # a started task requests its partitions before it reads its recovered input (P9)
    begin_ns: int = 0  # the time of the start: a plane built in mid-run begins later (E2)

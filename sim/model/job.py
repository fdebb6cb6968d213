"""The job as its author sees it: vertices, edges, service, state.  Frozen; knows nothing of time or protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import Literal

from sim.model.catalogs.shipping import SHIPPING, Shipping
from sim.model.key_groups import Excess, dealt
from sim.model.sink import Commit, Flush
from sim.model.state import State

__all__ = [
    "Alignment",
    "AsyncIO",
    "Backlog",
    "Distribution",
    "Input",
    "Job",
    "Rate",
    "Snapshot",
    "Source",
    "State",
    "Vertex",
    "Watermark",
    "Window",
]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A non-negative random quantity, integer mean; `cv` = standard deviation / mean (lognormal, erlang, shifted-exponential).

    shifted-exponential: the share 1 - `cv` of the mean is constant, an exponential part is added to it.
    With several `terms` it is the sum of so many independent quantities of one kind: `mean` is the sum's, `cv` that of each.
    """

    mean: int  # ns or bytes, as its owner says
    kind: Literal["constant", "exponential", "lognormal", "erlang", "uniform", "shifted-exponential"] = "constant"
    cv: float = 1.0  # lognormal: any > 0; erlang, shifted-exponential: in (0, 1]; others ignore it
    terms: int = 1


@dataclass(frozen=True, slots=True)
class Rate:
    """From `start_ns` on, `per_second` records are due each second and subtask (0: none)."""

    start_ns: int
    per_second: Fraction

    @classmethod
    def of_integers(cls, start_ns: int, numerator: int, denominator: int) -> Rate:
        """As series of rates are packed."""
        return cls(start_ns, Fraction(numerator, denominator))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Subtasks of a group whose watermarks are ahead of the others stop reading (withWatermarkAlignment, FLIP-182)."""

    group: str
    drift_ns: int  # as far ahead of the least watermark a subtask may be
    every_ns: int = 1_000_000_000  # watermarks are reported, and limits announced
    buffer: int = 3  # pipeline.watermark-alignment.buffer-size: a limit judges the watermark that many intervals ago; 0: the latest


@dataclass(frozen=True, slots=True)
class Watermark:
    """How a source says how far its event time has come."""

    interval_ns: int = 200_000_000  # pipeline.auto-watermark-interval
    lateness_ns: int = 0  # it stays so far behind the latest record (bounded out-of-orderness)
    idle_timeout_ns: int | None = None  # a subtask without records for so long is idle and holds no watermark back; None: never
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """When the enumerator of a source reports that it reads a backlog (FLIP-309); one of the two is given."""

    records: int | None = None  # of each subtask: history that is read first (HybridSource, snapshots of change data capture)
    lag_ns: int | None = None  # while a record that is due has waited longer; what a connector of one's own may do


LOCK_WON = Fraction(3, 10)
"""How often a mail gets the checkpoint lock when a legacy source gives it back and takes it again at once.

Java's locks are not fair.  Sources of a Flink 2.3 that waited 33 to 40 ms for each buffer kept 53 checkpoints waiting for 2 to 6 buffers.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A log that is read: what is due and not yet emitted is backlog, and is caught up."""

    rates: Sequence[Rate] = ()  # per subtask; empty: unlimited
    total: int | None = None  # records per subtask; None: unbounded
    watermark: Watermark = Watermark()
    backlog: Backlog | None = None  # None: it reports none
    silent: int = 0  # the last so many subtasks have no records: their partitions are silent, or there are fewer partitions
    waits: Literal["mailbox", "poll", "lock"] = "mailbox"  # where the thread waits for records, or for output


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An operator's own part of a snapshot, beside its keyed state.  Each piece of work is paid with `probability`."""

    pre_barrier_ns: int = 0  # prepareSnapshotPreBarrier: task thread, before the barrier is forwarded
    sync_ns: int = 0  # snapshotState: task thread, after the barrier
    async_ns: int = 0  # asynchronous phase
    probability: Fraction = Fraction(1)
    operator_state_bytes: int = 0  # per subtask: written as a file of its own after the keyed state; 0 = no such file


@dataclass(frozen=True, slots=True)
class Input:
    upstream: str
    ship: str = "hash"  # a name of SHIPPING
    weights: tuple[Fraction, ...] = ()  # hash: share of each of so many subtasks, see Vertex.shares; empty: its share of the key groups
    excess: Excess = "one-key"  # of weights, where the reader has another number of subtasks
    service: Distribution = field(default_factory=lambda: Distribution(1000))  # ns per record of this input
    record_bytes: Distribution = field(default_factory=lambda: Distribution(1000))  # on the wire
    union: str = ""  # of a join: inputs that follow each other and have the same word are one input; empty: one by itself
    output: str = ""  # tag of the side output that it reads; empty: the main one
    fan_out: Fraction | None = None  # records on this edge per record that its upstream reads or, a source, emits; None: the upstream's

    @property
    def shipping(self) -> Shipping:
        return SHIPPING[self.ship]


@dataclass(frozen=True, slots=True)
class AsyncIO:
    """Each record is a request to the outside; its outputs leave when the answer is there, in the order of the records (AsyncWaitOperator).

    Requests under way are operator state: a restore makes them again.
    """

    latency: Distribution  # ns
    capacity: int = 100  # requests under way per subtask; with so many, the task waits


@dataclass(frozen=True, slots=True)
class Window:
    """Records are held in keyed state until their window ends; then the task thread fires what they give.

    A sliding window ends every `every_ns`, and a record leaves at the first end, for all of its windows; its state stays for `size_ns`.
    A record of a session waits for `hold_ns`, and sessions end at every watermark.
    """

    size_ns: int
    time: Literal["processing", "event"] = "processing"
    fire_ns: int = 0  # of the task thread, for each record that leaves
    phase_ns: int = 0  # a window ends here, and every `step_ns` before and after
    record_bytes: int = 0  # of keyed state, for each record held
    api: Literal["sql", "datastream"] = "sql"  # operators of SQL yield to mails while they fire, if the job lets them
    every_ns: int = 0  # from one end to the next one; 0: the size
    hold_ns: int = 0
    flush_ns: int = 0  # of the task thread, for each record read since the last flush: before each barrier, and before it fires
    early: bool = False  # what is held leaves before each barrier, too
    bundle: int = 0  # with so many records all leave at once; 0: no bound

    @property
    def step_ns(self) -> int:
        """From one end to the next one."""
        return self.every_ns or self.size_ns

    @property
    def overlapping(self) -> int:
        """How many windows a record belongs to."""
        return -(-self.size_ns // self.step_ns) if self.hold_ns == 0 else 1


@dataclass(frozen=True, slots=True)
class Vertex:
    """One chain of operators; its parallel instances are the subtasks."""

    name: str
    parallelism: int = 1
    max_parallelism: int = 128  # key groups: who owns how many decides who reads how much of a hash edge, and who keeps how much state
    source: Source | None = None
    inputs: tuple[Input, ...] = ()
    joined: bool = False  # several inputs: read in turn, record by record (a join); else a union, buffer by buffer
    service: Distribution = field(default_factory=lambda: Distribution(1000))  # sources: ns per emitted record
    service_factors: tuple[tuple[int, Fraction], ...] = ()  # (subtask, how many times as long its services take); others: 1
    fan_out: Fraction = Fraction(1)  # records out per record in, on each outgoing edge
    async_io: AsyncIO | None = None
    window: Window | None = None
    state: State | None = None
    union_state: bool = False  # union list state cannot be taken from some of its tasks only
    snapshot: Snapshot = Snapshot()
    flush: Flush | None = None  # files it writes per snapshot
    commit: Commit | None = None  # its output becomes visible with the checkpoint; None: at once
    connector: str = ""  # what it writes to, a name of SINKS; empty: nobody said
    committer_of: str = ""  # it is the global committer of this vertex and reads committables only

    def total(self, subtask: int) -> int | None:
        """Records of a source's subtask; None: unbounded."""
        if self.source is None or self.source.total is None:
            return None
        return self.source.total if subtask < self.emitting else 0

    @property
    def emitting(self) -> int:
        """Subtasks of a source that have records."""
        return self.parallelism - (0 if self.source is None else self.source.silent)

    @property
    def gates_of_inputs(self) -> tuple[int, ...]:
        """How many gates each input of a join has: edges of one union follow each other."""
        if not self.joined:
            return ()
        return tuple(len(list(edges)) for _, edges in groupby(range(len(self.inputs)), lambda i: self.inputs[i].union or i))

    @property
    def owes_outputs(self) -> bool:
        """Whether the end of its data waits for outputs: answers, or what the last watermark fires."""
        return self.async_io is not None or (self.window is not None and (self.window.time == "event" or self.window.early))

    @property
    def work_ns(self) -> int | None:
        """What a record keeps its thread at work, where waiting counts as busy, too: for answers, or in poll.  None: it does not count."""
        if self.async_io is None and (self.source is None or self.source.waits != "poll"):
            return None
        return max([inlet.service.mean for inlet in self.inputs], default=self.service.mean)

    def shares(self, inlet: Input) -> tuple[Fraction, ...]:
        """The weights of one of its inputs, by its own subtasks; empty: their shares of the key groups."""
        return dealt(inlet.weights, self.parallelism, self.max_parallelism, inlet.excess) if inlet.weights else ()

    def largest_work(self, shares: Sequence[Fraction]) -> Fraction:
        """The work of the busiest subtask, if the work of all records is 1; `shares`: of the records, by subtask."""
        factors = dict(self.service_factors)
        return max(share * factors.get(subtask, 1) for subtask, share in enumerate(shares))


@dataclass(frozen=True, slots=True)
class Job:
    vertices: tuple[Vertex, ...]  # in topological order

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(upstream, downstream), in the order of readers and of their inputs: the plane numbers edges so."""
        return tuple((inlet.upstream, reader.name) for reader in self.vertices for inlet in reader.inputs)

    @property
    def committers(self) -> tuple[str, ...]:
        """Vertices that read no records, only what others have to commit."""
        return tuple(vertex.name for vertex in self.vertices if vertex.committer_of)

    @property
    def event_time_windows(self) -> tuple[Window, ...]:
        """Windows that watermarks end, of all vertices."""
        return tuple(vertex.window for vertex in self.vertices if vertex.window is not None and vertex.window.time == "event")

    def vertex(self, name: str) -> Vertex:
        return next(v for v in self.vertices if v.name == name)

    def fan_out(self, inlet: Input) -> Fraction:
        """Records on an edge per record that its upstream vertex reads or, a source, emits."""
        return self.vertex(inlet.upstream).fan_out if inlet.fan_out is None else inlet.fan_out

"""The job graph: vertices, edges, sources, ship strategies, key groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Annotated, Literal, NamedTuple

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.options import ValidationContext, option
from sim.model.sinks import SINKS, Commit, Flush, recognised
from sim.model.state import State
from sim.model.units import MS, format_duration
from sim.model.value_types import RANDOM_DURATION, Count, Duration, Number, Parallelism, Positive, Share, Size, Switch

# ---- The ways to ship records over an edge, Flink's ship strategies: one record each.
#
# The data plane implements a routing for each; documents, recordings, recovery and envelope read these records.


@frozen
class Shipping:
    """A way to ship records over an edge."""

    name: str  # as a scenario writes it; capitals in Flink's plans
    routing: str  # of the plane: a name of its Ship
    pointwise: bool = False  # a writer reaches some of the readers only
    one_to_one: bool = False  # ... exactly one: between unequal parallelisms Flink takes rebalance instead
    keyed: bool = False  # the reader of a record is the owner of its key group
    copies: bool = False  # every reader gets every record
    to_one: bool = False  # the first reader gets every record
    overtaken: bool = True  # its channels can store in-flight data: unaligned barriers are supported
    answers_to: tuple[str, ...] = ()  # what programs call it, in small letters


SHIPPING: Catalog[Shipping] = Catalog(
    Shipping("forward", "FORWARD", pointwise=True, one_to_one=True, overtaken=False),
    Shipping("rescale", "RESCALE", pointwise=True, overtaken=False),
    Shipping("rebalance", "REBALANCE"),
    Shipping("hash", "HASH", keyed=True, answers_to=("keyby", "keyed")),
    Shipping("broadcast", "BROADCAST", copies=True, overtaken=False),
    Shipping("global", "GLOBAL", to_one=True),
)


# ---- Source connectors (`connector:` of a source vertex), each with its component in the catalogue of known defects.

UNKNOWN = "unknown"
SOURCES = {
    "kafka-source": "flink-connector-kafka",
    "pulsar-source": "pulsar",
    "jdbc-source": "flink-connector-jdbc",
    "flink-cdc": "flink-cdc",
    "iceberg-source": "iceberg",
    "paimon-source": "paimon",
    "hudi-source": "hudi",
    "delta-source": "delta",
}


# ---- Key groups of subtasks, before and after rescaling (KeyGroupRangeAssignment).

Excess = Literal["one-key", "key-groups"]
"""Where the records of a subtask beyond the minimum of all subtasks are: in one hot key, or spread over its key groups."""


def default_max_parallelism(parallelism: int) -> int:
    """Return the default number of key groups (computeDefaultMaxParallelism)."""
    return min(max(1 << (parallelism + parallelism // 2 - 1).bit_length(), 128), 32768)


def key_groups(index: int, parallelism: int, groups: int) -> range:
    """Return the key groups of one subtask."""
    return range((index * groups + parallelism - 1) // parallelism, ((index + 1) * groups - 1) // parallelism + 1)


def owners(parallelism: int, groups: int) -> tuple[int, ...]:
    """Return the subtask of each key group (computeOperatorIndexForKeyGroup)."""
    return tuple(group * parallelism // groups for group in range(groups))


def overlap(index: int, parallelism: int, before: int, groups: int) -> dict[int, Fraction]:
    """Return the shares of key groups that this subtask receives from each of `before` subtasks; shares of 0 are left out."""
    own_groups = key_groups(index, parallelism, groups)
    shares = {}
    for old in range(before):
        old_groups = key_groups(old, before, groups)
        common = min(own_groups.stop, old_groups.stop) - max(own_groups.start, old_groups.start)
        if common > 0:
            shares[old] = Fraction(common, len(old_groups))
    return shares


def redistribute_shares(
    shares: Sequence[Fraction], parallelism: int, groups: int, excess: Excess = "one-key"
) -> tuple[Fraction, ...]:
    """Convert the record shares of `len(shares)` subtasks to another parallelism.  The result adds up to 1.

    Shares belong to key groups.  The minimum of all subtasks is distributed evenly over all groups.  The excess of a
    subtask is one hot key in the middle of its groups, or spread over its groups.
    """
    total, counted = sum(shares), len(shares)
    if counted == parallelism:
        return tuple(share / total for share in shares)
    ranges = [key_groups(i, counted, groups) for i in range(counted)]
    per_group = [share / total / len(own_groups) for share, own_groups in zip(shares, ranges, strict=True)]
    common = min(per_group) if excess == "one-key" else None
    by_reader = [Fraction(0)] * parallelism
    for i, own_groups in enumerate(ranges):
        even = per_group[i] if common is None else common
        for reader in range(own_groups[0] * parallelism // groups, own_groups[-1] * parallelism // groups + 1):
            reader_groups = key_groups(reader, parallelism, groups)
            by_reader[reader] += even * (
                min(own_groups.stop, reader_groups.stop) - max(own_groups.start, reader_groups.start)
            )
        by_reader[own_groups[len(own_groups) // 2] * parallelism // groups] += (per_group[i] - even) * len(own_groups)
    return tuple(by_reader)


# ---- The job: vertices, edges, service times, state.


@frozen
class Distribution:
    """The distribution of a non-negative quantity with an integer mean; `cv` = standard deviation / mean."""

    mean: int  # ns or bytes, as its owner says
    kind: str = "constant"  # or a name of sim.model.randomness
    cv: float = 1.0  # of kinds with a key `cv`; others ignore it


RandomDuration = Annotated[Distribution, RANDOM_DURATION]
"""ns."""


@frozen
class Rate:
    """From `start_ns` on, `per_second` records are due each second and subtask (0: none)."""

    start_ns: int
    per_second: Fraction

    @classmethod
    def of_integers(cls, start_ns: int, numerator: int, denominator: int) -> Rate:
        """Create a rate from the integers in which series of rates are packed."""
        return cls(start_ns, Fraction(numerator, denominator))


@frozen
class Watermark:
    """The watermarks of a source."""

    interval_ns: Duration = option(
        200_000_000,
        "Time between two watermarks of a subtask.  Default: 200 ms.",
        flink="pipeline.auto-watermark-interval",
    )
    lateness_ns: Duration = option(  # bounded out-of-orderness
        0, "Delay of watermarks behind the latest record (bounded out-of-orderness).  Default: 0."
    )
    idle_timeout_ns: Duration | None = option(
        None,
        "Time without records after which a subtask is idle and holds back no window (withIdleness, table.exec.source.idle-timeout).\n"
        "Default: 0 s, never.",
        zero_means_never=True,
        default_text="never",
        flink="table.exec.source.idle-timeout",
    )
    alignment: bool = option(
        False, "Watermark alignment (FLIP-182).  Accepted and not simulated; known defects of it are reported."
    )

    def completed(self, at: ValidationContext) -> Watermark:
        if self.interval_ns == 0:
            at.error("is 0 s: a source looks for watermarks now and then, 200 ms is Flink's default", "interval")
        if 0 < self.interval_ns < MS:
            at.error(
                f"is {format_duration(self.interval_ns)}: Flink counts milliseconds, write 1 ms or more", "interval"
            )
        if at.written("alignment") is None:
            return self
        at.warn("has no effect: watermark alignment (FLIP-182) is not simulated", "alignment")
        return replace(self, alignment=True)


@frozen
class Backlog:
    """The rule by which a source reports that it reads a backlog (FLIP-309).  One of the two is given."""

    # of each subtask: history that is read first (HybridSource, snapshots of change data capture)
    records: int | None = None
    lag_ns: int | None = None  # while a record that is due has waited longer; what a connector of one's own may do


LOCK_WON = Fraction(3, 10)
"""Probability that a mail gets the checkpoint lock when a legacy source releases and re-acquires it at once.

Java's locks are not fair: in Flink 2.3, 53 checkpoints waited for 2 to 6 buffers of sources that waited 33 to 40 ms for
each buffer.
"""


@frozen
class Source:
    """A source reads a log.  Records that are due and not yet emitted wait there, and the source catches up on them."""

    rates: Sequence[Rate] = ()  # per subtask; empty: unlimited
    total: int | None = option(
        None, "Makes the source bounded: number of records of each subtask.", key="records-per-subtask"
    )
    silent: Count = option(
        0,
        "Number of subtasks without records (the last ones), for idle partitions or more subtasks than partitions.  Default: 0.",
    )
    waits: Literal["mailbox", "poll", "lock"] = option(
        "mailbox",
        "mailbox (the default): triggers are processed between records.  poll: the reader blocks in pollNext until a record is due.\n"
        "lock: a legacy SourceFunction, which holds the checkpoint lock while it waits for output buffers.",
    )
    watermark: Watermark = option(Watermark(), "Watermarks that the source emits.")
    backlog: Backlog | None = option(
        None, "When the source reports that it processes a backlog (FLIP-309).", has_custom_section=True
    )  # None: it reports none


@frozen
class Snapshot:
    """An operator's own part of a snapshot, in addition to its keyed state.  Each piece of work is paid with `probability`."""

    pre_barrier_ns: Duration = option(
        0, "Time on the task thread before the barrier is forwarded (prepareSnapshotPreBarrier)."
    )
    sync_ns: Duration = option(0, "Time on the task thread after the barrier is forwarded (snapshotState).")
    async_ns: Duration = option(0, "Time in the asynchronous phase.")
    probability: Share = option(
        Fraction(1),
        "Probability that a snapshot of a subtask has the three costs above.  Default: 100 %.",
    )
    operator_state_bytes: Size = option(  # after the keyed state; 0 = no such file
        0, "Operator state per subtask, written to a file of its own."
    )
    # OperatorSnapshotFinalizer, one operator of a chain after the other, in the order of a hash map
    after_in_flight: Switch = option(
        False,
        "State is written after the in-flight data of its TaskManager: for chains whose last operator is finalized first.",
    )


@frozen
class UnionState:
    """Union list state: its size is `snapshot: {operator-state: ...}`, and each subtask restores that of all (getUnionListState)."""

    clears: Switch = option(
        True,
        "true: a restored subtask keeps its own elements only.  false: it keeps the whole union, so that the state is "
        "multiplied by the parallelism\n"
        "at each restart (apache/paimon#1732).",
    )


@frozen
class Input:
    """An edge, seen from its reader."""

    upstream: str
    ship: str = "hash"  # a name of SHIPPING
    # hash: share of each subtask, see Vertex.shares; empty: its share of the key groups
    weights: tuple[Fraction, ...] = ()
    excess: Excess = "one-key"  # how weights are redistributed at another parallelism
    service: Distribution = field(default_factory=lambda: Distribution(1000))  # ns per record of this input
    record_bytes: Distribution = field(default_factory=lambda: Distribution(1000))  # on the wire
    # of a join: consecutive inputs with the same name are one input; empty: it is an input by itself
    union: str = ""
    output: str = ""  # tag of the side output that it reads; empty: the main one
    # records on this edge per record that its upstream reads or, a source, emits; None: the upstream's
    fan_out: Fraction | None = None

    @property
    def shipping(self) -> Shipping:
        return SHIPPING[self.ship]


@frozen
class AsyncIO:
    """Asynchronous I/O: each record is a request, and its outputs leave with the answer, in the order of the records (AsyncWaitOperator).

    Requests under way are operator state: a restore makes them again.
    """

    latency: RandomDuration = option(MISSING, "Time from a request to its response.")
    capacity: Positive = option(
        100,
        "Maximum requests in progress per subtask; further records wait.  Responses are emitted in order (orderedWait). "
        "Default: 100, as in Flink.",
    )

    @property
    def answers_per_second(self) -> float:
        """The largest rate of answers per subtask [1/s], by Little's law."""
        return self.capacity * 1e9 / self.latency.mean


@frozen
class Window:
    """A window: records are held in keyed state until its end, then the task thread fires its outputs.

    A sliding window ends every `every_ns`, and a record leaves at the first end, for all of its windows; its state
    stays for `size_ns`. A record of a session waits for `hold_ns`, and sessions end at every watermark.
    """

    size_ns: int
    time: Literal["processing", "event"] = option(
        "processing", "processing: windows end by the clock; event: by watermarks."
    )
    fire_ns: Duration = option(
        0, "Time on the task thread per record that is emitted when a window fires.  Default: 0."
    )
    phase_ns: Duration = option(  # a window ends here, and every `step_ns` before and after
        0, "End of the first window, if not a multiple of the window's size (sliding: of `every`)."
    )
    record_bytes: Size = option(0, "Keyed state per record in the window.  Default: none.", key="state-per-record")
    api: Literal["sql", "datastream"] = option(
        "sql",
        "sql or datastream.  With interruptible timers, windows of SQL (the default) yield to barriers while they fire; "
        "the WindowOperator does not.\n"
        "Sliding windows of SQL keep a record once, the WindowOperator once per window.",
    )
    flush_ns: Duration = option(
        0,
        "Time on the task thread per record buffered since the last flush, spent before each barrier and before a window "
        "of SQL fires.\n"
        "Default: 0.",
    )
    every_ns: Duration = option(0, "sliding only: the slide, from one window end to the next.", default_text="the size")
    hold_ns: int = 0
    early: bool = False  # what is held leaves before each barrier, too

    @property
    def step_ns(self) -> int:
        """The time from one window end to the next."""
        return self.every_ns or self.size_ns

    @property
    def overlapping(self) -> int:
        """The number of windows that a record belongs to."""
        return -(-self.size_ns // self.step_ns) if self.hold_ns == 0 else 1


class EventTimeWindow(NamedTuple):
    """When an event-time window takes records and when it ends, in the event time that the records have come to.

    Watermarks stay behind records by the lateness of the sources.  Markers in channels carry the event time without the
    lateness that all sources have, and windows wait for it: so a window takes the records before its end, and no later
    ones, although its watermark follows them by the lateness.
    """

    step_ns: int  # from one end to the next
    phase_ns: int  # a window takes the records before this time, and before every `step_ns` later
    hold_ns: int  # from its size to the time at which records leave


@frozen
class Vertex:
    """A chain of operators with one parallelism.  Its parallel instances are the subtasks."""

    name: str
    joined: bool = option(
        False,
        "How several inputs are read: as one stream, buffer by buffer (union, the default), or alternately, record by record (join).",
        key="combine",
    )
    parallelism: Parallelism = option(1, "Number of subtasks.", flink="parallelism.default")
    max_parallelism: Parallelism = option(
        128,
        "Number of key groups.  Default: derived from the parallelism, as in Flink.  If the parallelism does not divide "
        "it, some subtasks own one\n"
        "key group more than others.",
        default_text="Flink's choice from the parallelism",
        flink="pipeline.max-parallelism",
    )
    source: Source | None = None
    inputs: tuple[Input, ...] = ()
    service: RandomDuration = option(Distribution(1000), "Service time per record (sources: per emitted record).")
    service_factors: tuple[tuple[int, Fraction], ...] = option(
        (),
        "Factor on service times and timers by subtask, 0.01 to 100, for slow or fast subtasks.  Default: 1.  After a "
        "rescale it applies to the\n"
        "subtask with the same index.",
        key="service-factor",
    )
    fan_out: Number = option(Fraction(1), "Emitted records per record read, on each outgoing edge.")
    async_io: AsyncIO | None = option(
        None,
        "Asynchronous I/O (AsyncDataStream.orderedWait): requests that are in progress while the task thread continues.",
    )
    window: Window | None = option(
        None,
        "Window operator: records are kept in state and fire at the end of the window.",
        has_custom_section=True,
    )
    state: State | None = option(None, "Keyed state of the vertex.", has_custom_section=True)
    union_state: UnionState | None = option(
        None,
        "true, or a mapping: the operator-state of `snapshot` is union list state.  Each subtask restores the union of "
        "all lists, and no checkpoint\n"
        "completes while only some of the vertex's tasks have finished.",
        default_text="false",
        accepts_on_off=True,
    )
    snapshot: Snapshot = option(Snapshot(), "Costs of the operator's own snapshot methods.")
    flush: Flush | None = option(None, "Files that the operator itself writes for each snapshot.")
    commit: Commit | None = option(  # None: its output becomes visible at once
        None,
        "Two-phase commit of a sink: two-phase, as-connector, or a mapping.",
        has_custom_section=True,
    )
    connector: str = option(
        "",
        "Connector of a sink or source.  It sets the defaults of commit, and whether `advise` lets barriers overtake data.\n"
        "{name: hudi, version: 1.1.0} selects known defects by version.",
        choices=lambda: (*SINKS, *SOURCES),
        has_custom_section=True,
    )
    connector_version: str = ""
    committer_of: str = ""  # it is the global committer of this vertex and reads committables only

    def completed(self, at: ValidationContext) -> Vertex:
        if self.max_parallelism < self.parallelism:
            at.error(f"is {self.max_parallelism}, less than the parallelism, {self.parallelism}", "max-parallelism")
        if self.flush is not None and not self.inputs:
            at.error("a source does not write files: write flush in a vertex with an input", "flush")
        if self.async_io is not None and self.source is not None:
            at.error("a source has no asynchronous I/O: write async-io in a vertex with an input", "async-io")
        if self.async_io is not None and at.written("commit") not in (None, "none"):
            at.error("a vertex cannot have both async-io and commit: move commit to the next vertex", "async-io")
        if self.leaves_out_commit and at.written("commit") is None:
            at.warn(f"commits of {self.connector} are not simulated: write commit: as-connector", "connector")
        return self

    @property
    def leaves_out_commit(self) -> bool:
        """Whether its connector commits, and no commits are simulated."""
        return self.commit is None and self.connector in SINKS and SINKS[self.connector].commit is not None

    @property
    def known_connector(self) -> str:
        """The connector, from the job or inferred from the name of the vertex; empty if unknown."""
        kind = None if self.connector or self.source is not None else recognised(self.name)
        return self.connector if kind is None else kind.name

    @property
    def flink_committers(self) -> tuple[str, ...]:
        """The operators of Sink V2 (CommitterOperator, GlobalCommitterOperator) that commit its output; UNKNOWN without a connector."""
        if self.commit is None:
            return ()
        return SINKS[self.known_connector].committers if self.known_connector in SINKS else (UNKNOWN,)

    def total(self, subtask: int) -> int | None:
        """The number of records of a source's subtask; None if unbounded."""
        if self.source is None or self.source.total is None:
            return None
        return self.source.total if subtask < self.emitting else 0

    @property
    def emitting(self) -> int:
        """The number of a source's subtasks that have records."""
        return self.parallelism - (0 if self.source is None else self.source.silent)

    @property
    def gates_of_inputs(self) -> tuple[int, ...]:
        """The number of gates of each input of a join; edges of one union are consecutive."""
        if not self.joined:
            return ()
        return tuple(
            len(list(edges)) for _, edges in groupby(range(len(self.inputs)), lambda i: self.inputs[i].union or i)
        )

    @property
    def has_pending_outputs(self) -> bool:
        """Whether outputs may be pending at the end of input: responses, or windows that the last watermark fires."""
        return self.async_io is not None or (
            self.window is not None and (self.window.time == "event" or self.window.early)
        )

    @property
    def work_ns(self) -> int | None:
        """The work per record on the task thread, if Flink counts waiting (for responses, or in poll) as busy.

        None if waiting does not count as busy, so that all busy time is work.
        """
        if self.async_io is None and (self.source is None or self.source.waits != "poll"):
            return None
        return max([inlet.service.mean for inlet in self.inputs], default=self.service.mean)

    def shares(self, inlet: Input) -> tuple[Fraction, ...]:
        """Return the record shares of the subtasks for one input; empty if they follow from the key groups."""
        return (
            redistribute_shares(inlet.weights, self.parallelism, self.max_parallelism, inlet.excess)
            if inlet.weights
            else ()
        )

    def largest_work(self, shares: Sequence[Fraction]) -> Fraction:
        """Return the share of the busiest subtask in the work of all records; `shares` has the record share of each subtask."""
        factors = dict(self.service_factors)
        return max(share * factors.get(subtask, 1) for subtask, share in enumerate(shares))


@dataclass(frozen=True)
class Job:
    """A job: its vertices, in topological order."""

    vertices: tuple[Vertex, ...]  # in topological order

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(upstream, downstream) of each edge, in the order of readers and their inputs, by which the data plane numbers edges."""
        return tuple((inlet.upstream, reader.name) for reader in self.vertices for inlet in reader.inputs)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """Return the vertices whose output no other vertex reads.  Committers do not count."""
        vertices = [vertex for vertex in self.vertices if not vertex.committer_of]
        read = {inlet.upstream for vertex in vertices for inlet in vertex.inputs}
        return tuple(vertex.name for vertex in vertices if vertex.name not in read)

    @property
    def committers(self) -> tuple[str, ...]:
        """The vertices that read committables instead of records."""
        return tuple(vertex.name for vertex in self.vertices if vertex.committer_of)

    @cached_property
    def lateness_ns(self) -> int:
        """The lateness of watermarks that all sources have in common."""
        return min((vertex.source.watermark.lateness_ns for vertex in self.vertices if vertex.source), default=0)

    @cached_property
    def event_time_windows(self) -> dict[str, EventTimeWindow]:
        """The event-time windows, by vertex.

        What a window emits comes with the watermark that ended it, so that windows behind it wait for no lateness.  A
        first stage of SQL lets all records go at once.
        """
        windows: dict[str, EventTimeWindow] = {}
        behind: set[str] = set()  # vertices that read what windows emit
        for vertex in self.vertices:
            is_behind = any(inlet.upstream in behind for inlet in vertex.inputs)
            window = vertex.window
            if window is not None and window.time == "event":
                at_once = is_behind or window.early or vertex.source is not None
                wait_ns = 0 if at_once else self.lateness_ns
                phase_ns = (window.phase_ns + self.lateness_ns - wait_ns) % window.step_ns
                windows[vertex.name] = EventTimeWindow(window.step_ns, phase_ns, window.hold_ns + wait_ns)
                is_behind = is_behind or not window.early
            if is_behind:
                behind.add(vertex.name)
        return windows

    def vertex(self, name: str) -> Vertex:
        return next(v for v in self.vertices if v.name == name)

    def fan_out(self, inlet: Input) -> Fraction:
        """Return the records on an edge per record that its upstream vertex reads (a source: emits)."""
        return self.vertex(inlet.upstream).fan_out if inlet.fan_out is None else inlet.fan_out

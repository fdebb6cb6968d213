"""The `job:` section as it is written: vertices, sources, inputs, distributions.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from sim.model.catalogs.shipping import SHIPPING
from sim.model.catalogs.sinks import SINKS
from sim.scenario.grammar.distribution import DurationField, SizeField
from sim.scenario.grammar.fields import (
    Axis,
    Count,
    Duration,
    Number,
    Parallelism,
    Positive,
    RecordRate,
    Share,
    Size,
    Weight,
    choice,
    choice_of,
)
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Texts
from sim.scenario.sink.document import CommitField, Flush
from sim.scenario.state.document import State

__all__ = [
    "Alignment",
    "AsyncIO",
    "Backlog",
    "Input",
    "Output",
    "Skew",
    "Snapshot",
    "Source",
    "State",
    "Step",
    "Trace",
    "Vertex",
    "upstream_of",
]

Ship = Annotated[str, choice_of(lambda: SHIPPING, lambda: {word: way.name for way in SHIPPING.values() for word in way.answers_to})]


class Step(Section):
    """From `at` on, so many records per second."""

    at: Duration
    """Moment of the run."""
    rate: RecordRate
    """From then on."""


class Trace(Section):
    """Rates from a CSV file (also .csv.gz) or a table of `ckptsim traces`, relative to the scenario."""

    trace: str = Field(min_length=1)
    """CSV file or table of rates, relative to the scenario."""
    column: str
    """Records per second."""
    time: str | None = None
    """Column of the time stamps: seconds, epoch milliseconds and the like, or ISO 8601; default: one with such a name, else the first."""
    time_unit: Annotated[str, choice("s", "ms", "us", "ns")] | None = None
    """Unit of numbers in that column; default: as its name ends, else by their size (seconds, or milliseconds and finer since 1970)."""
    every: Duration | None = None
    """Rows at a fixed distance instead of time stamps."""
    scale: Axis[Number] | None = None
    """Multiplies the rates."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """How far into the trace the run begins: a window of a long trace, or several as an axis; default: at its first row."""


def _rate_kind(value: object) -> str:
    if isinstance(value, list):
        return "steps"
    return "trace" if isinstance(value, (dict, BaseModel)) else "rate"


RateField = Annotated[
    Annotated[RecordRate, Tag("rate")] | Annotated[Trace, Tag("trace")] | Annotated[list[Step], Field(min_length=1), Tag("steps")],
    Discriminator(_rate_kind),
]


class Alignment(Section):
    """Sources of one group wait for each other (withWatermarkAlignment): a subtask too far ahead reads no record."""

    group: str = Field(min_length=1)
    """Name of the group; sources of several vertices may be in one."""
    max_drift: Axis[Duration]
    """So far a watermark may be ahead of the least one of the group."""
    update_interval: Axis[Duration] | None = None
    """From one report and announcement to the next; default: 1 s, as in Flink."""
    buffer_size: Axis[Count] | None = None
    """Update intervals by which a pause is late (pipeline.watermark-alignment.buffer-size); default: 3.  0: as before Flink 2.3."""


class Watermark(Section):
    """How a source says how far its event time has come; records are as old as they are due."""

    interval: Axis[Duration] | None = None
    """Between two watermarks of a subtask; default: 200 ms."""
    lateness: Axis[Duration] | None = None
    """How far they stay behind the latest record; default: 0."""
    idle_timeout: Axis[Duration] | None = None
    """A subtask without records for so long is idle: it holds no window back (withIdleness, table.exec.source.idle-timeout).
    Default: 0 s, never."""
    alignment: Alignment | None = None
    """The group of sources that it keeps in step with; default: none."""


class Backlog(Section):
    """When it reports a backlog, so that `checkpoint: interval-during-backlog` is in force (FLIP-309).  One of records, lag."""

    records: Axis[Count] | None = None
    """History that is read first, records of the whole vertex: as HybridSource and snapshots of change data capture report it."""
    lag: Axis[Duration] | None = None
    """While a record that is due has waited longer than this: what a connector of one's own may report; no connector of Flink does."""


class Source(Section):
    """A log that is read: what is due and not yet emitted is backlog.  One of rate, rate-per-subtask."""

    HINTS: ClassVar[Texts] = {
        "service": "service stands beside source:, in the vertex",
        "parallelism": "parallelism stands beside source:, in the vertex",
    }

    record: Axis[SizeField]
    """Size of a record on the wire, at least 1 B."""
    rate: Axis[RateField] | None = None
    """Records per second of the whole vertex."""
    rate_per_subtask: Axis[RateField] | None = None
    """Records per second of each subtask."""
    records: Axis[Count] | None = None
    """Bounded: records of the whole vertex, then end of data."""
    records_per_subtask: Axis[Count] | None = None
    """Bounded: records of each subtask, then end of data."""
    silent: Axis[Count] | None = None
    """Subtasks without records, the last ones: their partitions are silent, or there are fewer partitions than subtasks; default: 0."""
    waits: Axis[Annotated[str, choice("mailbox", "poll", "lock")]] | None = None
    """mailbox (the default): checkpoints begin at once.  poll: the reader blocks in pollNext until a record is due.
    lock: a legacy SourceFunction, which holds the checkpoint lock while it waits for output."""
    watermark: Watermark | None = None
    """Watermarks that the source emits."""
    backlog: Backlog | None = None
    """A backlog that the source reads first."""


class Skew(Section):
    """How unequally keys spread records, whatever the parallelism.  One of hot, counted."""

    hot: Axis[Share] | None = None
    """The first subtask gets this share of the records, the others the rest by their key groups."""
    counted: list[Weight] | None = Field(None, min_length=1)
    """Relative weight of each subtask at the parallelism at which they were counted.  At another one they go with the key groups."""
    excess: Axis[Annotated[str, choice("one-key", "key-groups")]] | None = None
    """counted at another parallelism: what a subtask reads beyond the least of them is one hot key (one-key, the default),
    or spread evenly over its key groups."""


class Input(Section):
    """One edge, seen from its reader."""

    HINTS: ClassVar[Texts] = {"upstream": "write from: upstream, and any name before it"}

    from_: str | None = Field(None, alias="from", min_length=1)
    """Upstream vertex, where several edges lead from it to this one; default: the name of the input."""
    union: str | None = Field(None, min_length=1)
    """combine: join only: inputs with the same word are a union, which the join reads as one input; default: it is one by itself."""
    output: str | None = Field(None, min_length=1)
    """Side output of the upstream vertex that it reads (OutputTag); default: the main output.  Edges of an output carry the same."""
    ship: Axis[Ship]
    """How records choose their reader: Flink's ship strategies."""
    weights: Annotated[Annotated[Skew, Tag("map")] | Annotated[list[Weight], Tag("text")], MAP_OR_TEXT] | None = None
    """hash only: relative weight of each reader subtask, {hot: 70 %}, or {counted: [weight of each subtask]} of another parallelism.
    Default: by their key groups, as Flink's keyBy spreads keys."""
    service: Axis[DurationField] | None = None
    """Per record of this input; default: the vertex's."""
    record: Axis[SizeField] | None = None
    """Size of a record of this edge; default: the upstream vertex's."""
    fan_out: Axis[Number] | None = None
    """Records on this edge per record that the upstream vertex reads (a source: emits); default: the upstream vertex's."""


InputField = Annotated[Annotated[Axis[Ship], Tag("text")] | Annotated[Input, Tag("map")], MAP_OR_TEXT]


class Output(Section):
    """A side output: records with a tag (ProcessFunction, late data), beside those of the main output."""

    fan_out: Axis[Number]
    """Records per record that the vertex reads (a source: emits)."""
    record: Axis[SizeField] | None = None
    """Size of a record; default: that of the main output."""


class Snapshot(Section):
    """An operator's own work per snapshot, beside its state."""

    pre_barrier: Axis[Duration] | None = None
    """Task thread, before the barrier is forwarded (prepareSnapshotPreBarrier)."""
    sync: Axis[Duration] | None = None
    """Task thread, after the barrier (snapshotState)."""
    async_: Axis[Duration] | None = None
    """Asynchronous phase."""
    probability: Axis[Share] | None = None
    """Each snapshot of a subtask pays the three above with this probability; default: 100 %."""
    operator_state: Axis[Size] | None = None
    """Per subtask, written as a file of its own."""


class AsyncIO(Section):
    """Requests to the outside (AsyncDataStream): outputs leave with the answers, in the order of the records."""

    latency: Axis[DurationField]
    """Request -> answer."""
    capacity: Axis[Positive] | None = None
    """Requests under way per subtask; with so many, the task waits.  Default: 100, as in Flink."""


class Window(Section):
    """Records are held as keyed state, and what they give leaves when their window ends.  One of tumbling, sliding, session, mini-batch."""

    tumbling: Axis[Duration] | None = None
    """Size of a window; all subtasks end theirs together."""
    sliding: Axis[Duration] | None = None
    """Size of a window that overlaps others: one begins every `every`.  A record leaves for all of its windows at the first end."""
    every: Axis[Duration] | None = None
    """sliding only: from one end to the next one."""
    session: Axis[Duration] | None = None
    """Gap without a record of a key that ends its session.  In event time sessions end at every watermark."""
    lasts: Axis[Duration] | None = None
    """session only: from its first record to its last, on average; default: 0."""
    mini_batch: Axis[Duration] | None = None
    """table.exec.mini-batch.allow-latency: records wait so long, or until the next barrier; processing time only."""
    size: Axis[Count] | None = None
    """mini-batch only: with so many records a bundle leaves at once (table.exec.mini-batch.size, python.fn-execution.bundle.size).
    Default: no bound."""
    time: Axis[Annotated[str, choice("processing", "event")]]
    """Whose time ends a window: the clock's, or that of the records, by watermarks."""
    fire: Axis[Duration] | None = None
    """Time of the task thread for each record that leaves; default: none."""
    phase: Axis[Duration] | None = None
    """When the first window ends, if not at a multiple of its size (sliding: of `every`)."""
    state_per_record: Axis[Size] | None = None
    """Keyed state per record held; default: none."""
    api: Axis[Annotated[str, choice("sql", "datastream")]] | None = None
    """Whose operator it is: with interruptible timers that of SQL yields while it fires (the default), the WindowOperator never.
    Of sliding windows SQL keeps a record once, the WindowOperator once for each of its windows."""
    flush: Axis[Duration] | None = None
    """Time of the task thread for each record buffered since the last flush: before each barrier, and before a window of SQL fires.
    Default: none."""
    stage: Axis[Annotated[str, choice("global", "local")]] | None = None
    """local: the first of two stages (table.optimizer.agg-phase-strategy); what it holds leaves before each barrier, too.
    Default: global."""


class Vertex(Section):
    """One chain of operators; its parallel instances are the subtasks.  One of source, input."""

    LATER: ClassVar[Texts] = {
        "placement": "slots per vertex",
    }
    HINTS: ClassVar[Texts] = {
        "rate": "rate stands inside source:",
        "slow": "write service-factor: {subtask: factor}",
        "inputs": "write input: {upstream: hash}",
        "output": "side outputs stand in outputs: {tag: {fan-out: 0.1}}",
        "ship": "write input: {upstream: ship}",
        "weights": "weights stand in input: {upstream: {ship: hash, weights: [...]}}",
        "size": "did you mean state: {size: ...}?",
    }

    source: Source | None = None
    """What arrives; a vertex has this or an input."""
    input: dict[str, InputField] | None = Field(None, min_length=1)
    """Upstream vertex -> how its records travel.  A second edge from the same vertex has a name of its own, and says from."""
    combine: Literal["union", "join"] | None = None
    """How several inputs are read: one stream, buffer by buffer (union, the default), or in turn, record by record (join)."""
    parallelism: Axis[Parallelism] | None = None
    """Subtasks."""
    max_parallelism: Axis[Parallelism] | None = None
    """Key groups; default: Flink's choice from the parallelism.  A subtask has the keyed state and reads the keyed records of its own;
    where the parallelism does not divide them, some own one group more than others."""
    service: Axis[DurationField] | None = None
    """Time per record (sources: per emitted record)."""
    service_factor: dict[str, Axis[Number]] | None = Field(None, min_length=1)
    """Subtask -> how many times as long its services and firings take, 0.01 to 100; default: 1.
    After a rescale the subtask of the same number has it."""
    fan_out: Axis[Number] | None = None
    """Records out per record in, on each outgoing edge."""
    record: Axis[SizeField] | None = None
    """Size of the records it emits; default: that of its inputs."""
    outputs: dict[str, Output] | None = Field(None, min_length=1)
    """Tag -> a side output.  Inputs of other vertices name it; default: there is the main output only."""
    async_io: AsyncIO | None = None
    """Requests under way beside the task thread."""
    window: Window | None = None
    """Records are held and fired at the end of a window."""
    state: State | None = None
    """Keyed state of the vertex."""
    union_state: Axis[Annotated[str, choice("true", "false")]] | None = None
    """Its operators keep union list state: no checkpoint completes while some of its tasks have finished and others have not."""
    snapshot: Snapshot | None = None
    """Work of the operator's own in a snapshot."""
    flush: Flush | None = None
    """Files that the operator writes for a snapshot."""
    commit: Axis[CommitField] | None = None
    """two-phase, or its details."""
    connector: Axis[Annotated[str, choice_of(lambda: SINKS)]] | None = None
    """What it writes to: no run depends on it, but whether advice lets barriers overtake data."""

    @property
    def upstreams(self) -> dict[str, str]:
        """Name of each input -> the vertex that it reads, in the order of the gates."""
        return {name: upstream_of(name, given) for name, given in (self.input or {}).items()}


def upstream_of(name: str, given: object) -> str:
    """The vertex that an input reads, as it is written or parsed."""
    if isinstance(given, Input):
        return given.from_ or name
    written = given.get("from") if isinstance(given, dict) else None
    return written if isinstance(written, str) and written else name

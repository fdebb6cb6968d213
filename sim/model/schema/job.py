"""`job:` and `checkpoint:` as they are written: vertices, windows, edges, rates, state, sinks, barriers."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from sim.model import job, sinks, state
from sim.model.checkpoint import BARRIERS, CheckpointOptions
from sim.model.cluster import Version
from sim.model.fields import (
    At,
    Count,
    Duration,
    EdgeName,
    Number,
    RecordRate,
    Share,
    Size,
    Switch,
    Weight,
    choice,
    choice_of,
)
from sim.model.job import SHIPPING, SOURCES
from sim.model.job import Window as JobWindow
from sim.model.schema.sections import (
    MAP_OR_TEXT,
    Axis,
    DurationField,
    OneOf,
    OnlyWith,
    Options,
    Section,
    SizeField,
    Texts,
    build_model,
)
from sim.model.sinks import SINKS
from sim.model.state import StateOptions
from sim.model.units import format_duration

# ---- `state:` of a vertex as it is written: the options of the model, and what is no single value there.


class State(Options, of=(state.State, state.Ttl)):
    """Keyed state of the whole vertex, spread over its subtasks."""

    ttl: Axis[Duration] | None = None


# ---- `flush:` and `commit:` of a vertex as they are written: what it writes outside of its state, and when that becomes visible.


class Commit(Options, of=(sinks.Commit,)):
    """Two-phase commit: output becomes visible when its checkpoint is complete."""


class Staging(Section):
    """Local room of a task manager for files that are not uploaded yet (operator-io: async)."""

    space: Axis[Size]
    """Room per task manager."""
    when_full: Axis[Annotated[str, choice("block", "fail")]] | None = None
    """block (the default): a flush without room waits for an upload to end; fail: it fails its task."""


ConnectorName = Annotated[str, choice_of(lambda: (*SINKS, *SOURCES))]


class Connector(Section):
    """What a vertex writes to or reads from, with its version."""

    name: Axis[ConnectorName]
    """A name of the catalogue of connectors."""
    version: Axis[Version] | None = None
    """Release of the connector, such as 1.1.0: known defects are judged by it; default: it is not known."""


ConnectorField = Annotated[Annotated[ConnectorName, Tag("text")] | Annotated[Connector, Tag("map")], MAP_OR_TEXT]
CommitField = Annotated[
    Annotated[str, choice("none", "two-phase", "as-connector"), Tag("text")] | Annotated[Commit, Tag("map")],
    MAP_OR_TEXT,
]


# ---- `checkpoint:` as it is written: the options of the model, and what is no single value there.

_WITH_DEADLINE = [kind.name for kind in BARRIERS.values() if kind.has_deadline]


class Deadline(Section):
    """Start aligned, go unaligned so long after the trigger."""

    ONE_OF: ClassVar = (OneOf(dict.fromkeys(_WITH_DEADLINE, "")),)


_AFTER: dict[str, Any] = {
    name.replace("-", "_"): (
        Axis[Duration] | None,
        Field(None, description="After the trigger; then barriers overtake."),
    )
    for name in _WITH_DEADLINE
}
DeadlineBarriers = create_model(
    "DeadlineBarriers", __base__=Deadline, __module__=__name__, __doc__=Deadline.__doc__, **_AFTER
)
"""It has a key for each way of barriers with a deadline."""


def _without_deadline() -> list[str]:
    """Ways of barriers that are one word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = Annotated[
    Annotated[str, choice_of(_without_deadline), Tag("text")] | Annotated[DeadlineBarriers, Tag("map")],  # type: ignore[valid-type]
    MAP_OR_TEXT,
]


class Checkpoint(Options, of=(StateOptions, CheckpointOptions)):
    """execution.checkpointing.*"""

    barriers: Axis[BarriersField] | None = None
    staging: Staging | None = None
    forced_aligned: list[EdgeName] | None = None


# ---- The `job:` section as it is written: vertices, sources, inputs, distributions.

Ship = Annotated[
    str, choice_of(lambda: SHIPPING, lambda: {word: way.name for way in SHIPPING.values() for word in way.answers_to})
]


class Step(Section):
    """From `at` on, so many records per second."""

    at: Duration
    """Moment of the run."""
    rate: RecordRate
    """Records per second from then on."""


class Trace(Section):
    """Rates from a CSV file (also .csv.gz), JSON of Prometheus, or a table of `ckptsim traces`, relative to the scenario."""

    trace: str = Field(min_length=1)
    """CSV file or table of rates, relative to the scenario."""
    column: str
    """Records per second."""
    time: str | None = None
    """Column of the time stamps: seconds, epoch milliseconds and the like, or ISO 8601; default: one with such a name, else the first."""
    time_unit: Annotated[str, choice("s", "ms", "us", "ns")] | None = None
    """Unit of numbers in that column; default: as its name ends, else by their size (seconds, or milliseconds and finer since 1970)."""
    zone: str | None = None
    """Time zone of dates that name none, such as Europe/Berlin; default: UTC."""
    every: Duration | None = None
    """Rows at a fixed distance instead of time stamps."""
    scale: Axis[Number] | None = None
    """Multiplies the rates; default: 1."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """How far into the trace the run begins: a window of a long trace, or several as an axis; default: at its first row."""


def _rate_kind(value: object) -> str:
    if isinstance(value, list):
        return "steps"
    return "trace" if isinstance(value, (dict, BaseModel)) else "rate"


RateField = Annotated[
    Annotated[RecordRate, Tag("rate")]
    | Annotated[Trace, Tag("trace")]
    | Annotated[list[Step], Field(min_length=1), Tag("steps")],
    Discriminator(_rate_kind),
]


class Watermark(Options, of=(job.Watermark,)):
    """The watermarks of a source.  A record's timestamp is when it is due."""

    alignment: dict[str, Any] | None = None


class Backlog(Section):
    """When the source reports a backlog, which puts `checkpoint: interval-during-backlog` in force (FLIP-309).  One of records, lag."""

    ONE_OF: ClassVar = (OneOf({"records": "history that is read first", "lag": "how long due records wait"}),)

    records: Axis[Count] | None = None
    """History that is read first, records of the whole vertex: as HybridSource and snapshots of change data capture report it."""
    lag: Axis[Duration] | None = None
    """While a record that is due has waited longer than this: what a connector of one's own may report; no connector of Flink does."""


class Source(Options, of=(job.Source,)):
    """A log that is read: what is due and not yet emitted is backlog.  One of rate, rate-per-subtask."""

    HINTS: ClassVar[Texts] = {
        "service": "service stands beside source:, in the vertex",
        "parallelism": "parallelism stands beside source:, in the vertex",
    }
    ONE_OF: ClassVar = (
        OneOf({"rate": "of the whole vertex, or 'unlimited'", "rate-per-subtask": ""}),
        OneOf({"records": "of the whole vertex", "records-per-subtask": ""}, is_needed=False),
    )

    record: Axis[SizeField]
    """Size of a record on the wire, at least 1 B."""
    rate: Axis[RateField] | None = None
    """Records per second of the whole vertex."""
    rate_per_subtask: Axis[RateField] | None = None
    """Records per second of each subtask."""
    records: Axis[Count] | None = None
    """Bounded: records of the whole vertex, then end of data."""
    records_per_subtask: Axis[Count] | None = None
    watermark: Watermark | None = None
    backlog: Backlog | None = None


class Skew(Section):
    """The unequal spread of keys over records, at any parallelism.  One of hot, counted."""

    ONE_OF: ClassVar = (OneOf({"hot": "the share of the first subtask", "counted": "a weight of each subtask"}),)

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
    """How records choose their reader: Flink's ship strategies; hash is keyBy."""
    weights: Annotated[Annotated[Skew, Tag("map")] | Annotated[list[Weight], Tag("text")], MAP_OR_TEXT] | None = None
    """hash only: relative weight of each reader subtask, {hot: 70 %}, or {counted: [weight of each subtask]} of another parallelism.
    Default: by their key groups, as Flink's keyBy spreads keys."""
    service: Axis[DurationField] | None = None
    """Service time per record of this input; default: that of the vertex."""
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


class Window(Options, of=(job.Window,)):
    """A window: records are held as keyed state until its end, then its outputs leave.  One of tumbling, sliding, session, mini-batch."""

    ONE_OF: ClassVar = (OneOf({"tumbling": "", "sliding": "", "session": "", "mini-batch": ""}),)
    ONLY_WITH: ClassVar = (
        OnlyWith(("every",), ("sliding",), "other windows follow one another"),
        OnlyWith(("lasts",), ("session",), "other windows last for their size"),
        OnlyWith(("phase",), ("tumbling", "sliding"), "sessions end when their keys are silent, not at fixed times"),
        OnlyWith(("size",), ("mini-batch",), "other windows hold as many records as come"),
    )

    tumbling: Axis[Duration] | None = None
    """Size of a window; all subtasks end theirs together."""
    sliding: Axis[Duration] | None = None
    """Size of a window that overlaps others: one begins every `every`.  A record leaves for all of its windows at the first end."""
    every: Axis[Duration] | None = None
    session: Axis[Duration] | None = None
    """Gap without a record of a key that ends its session.  In event time sessions end at every watermark."""
    lasts: Axis[Duration] | None = None
    """session only: from its first record to its last, on average; default: 0."""
    mini_batch: Axis[Duration] | None = None
    """Accepted and not simulated (table.exec.mini-batch.allow-latency)."""
    size: Axis[Count] | None = None
    """Of a mini-batch: accepted and not simulated."""
    time: Axis[Annotated[str, choice("processing", "event")]]
    stage: Axis[Annotated[str, choice("global", "local")]] | None = None
    """local: the first of two stages (table.optimizer.agg-phase-strategy); what it holds leaves before each barrier, too.
    Default: global."""


class UnionState(Options, of=(job.UnionState,)):
    """Union list state of a vertex, of which each subtask restores all."""


class Vertex(Options, of=(job.Vertex,)):
    """One chain of operators; its parallel instances are the subtasks.  One of source, input."""

    HINTS: ClassVar[Texts] = {
        "placement": "slots per vertex are not modelled",
        "rate": "rate stands inside source:",
        "slow": "write service-factor: {subtask: factor}",
        "inputs": "write input: {upstream: hash}",
        "output": "side outputs stand in outputs: {tag: {fan-out: 0.1}}",
        "ship": "write input: {upstream: ship}",
        "weights": "weights stand in input: {upstream: {ship: hash, weights: [...]}}",
        "size": "did you mean state: {size: ...}?",
    }
    ONE_OF: ClassVar = (OneOf({"source": "the log that it reads", "input": "the vertices that it reads"}),)

    source: Source | None = None
    """The log that the vertex reads; a vertex has this or an input."""
    input: dict[str, InputField] | None = Field(None, min_length=1)
    """Upstream vertex -> how its records travel, e.g. hash (keyBy).  A second edge from the same vertex has a name of its own, and says from."""
    combine: Literal["union", "join"] | None = None
    service_factor: dict[str, Axis[Number]] | None = Field(None, min_length=1)
    record: Axis[SizeField] | None = None
    """Size of the records it emits; default: that of its inputs."""
    outputs: dict[str, Output] | None = Field(None, min_length=1)
    """Tag -> a side output.  Inputs of other vertices name it; default: there is the main output only."""
    window: Window | None = None
    state: State | None = None
    union_state: (
        Axis[Annotated[Annotated[Switch, Tag("text")] | Annotated[UnionState, Tag("map")], MAP_OR_TEXT]] | None
    ) = None
    commit: Axis[CommitField] | None = None
    connector: Axis[ConnectorField] | None = None

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


# ---- `window:` of a vertex -> the model's window, with the mistakes that its kinds allow.

SHORTEST_NS = 1_000_000
LOOKS = 32  # at sessions of processing time, per gap: so fine is the time at which they end
KINDS = ("tumbling", "sliding", "session")


def build_window(given: Vertex, at: At) -> JobWindow | None:
    """Build the window of a vertex.  None: it has none."""
    if given.window is None:
        return None
    if given.window.mini_batch is not None:
        at.warn("has no effect: mini-batches are not modelled", "mini-batch")
        return None
    if given.source is not None and given.window.stage != "local":
        at.wrong("a source keeps no keyed state: only stage: local stands in its chain")
    if given.async_io is not None:
        at.wrong("windows and requests are two vertices: write async-io in another one")
    if given.commit not in (None, "none"):
        at.wrong("windows and transactions are two vertices: write commit in the next one")
    window = given.window
    (kind,) = (kind for kind in KINDS if getattr(window, kind) is not None)
    size_ns: int = getattr(window, kind)
    _judge(window, kind, size_ns, at)
    made = build_model(JobWindow, window, at, size_ns=max(1, size_ns))
    # every watermark ends the sessions whose gap it passes; their records have waited so long on average
    if kind == "session":
        step_ns = 1 if window.time == "event" else max(SHORTEST_NS, size_ns // LOOKS)
        made = replace(made, every_ns=step_ns, hold_ns=size_ns + (window.lasts or 0) // 2)
    return replace(made, early=window.stage == "local")


def _judge(window: Window, kind: str, size_ns: int, at: At) -> None:
    """Report keys that contradict each other."""
    if size_ns < SHORTEST_NS:
        at.wrong(f"is {format_duration(size_ns)}: Flink's windows have whole milliseconds, 1 ms or more", kind)
    if kind == "sliding":
        _judge_slide(window.every, size_ns, at.below("every"))
    step_ns = window.every or size_ns
    if window.phase is not None and window.phase >= step_ns:
        step = format_duration(step_ns)
        at.wrong(f"is {format_duration(window.phase)}, but a window of {step} ends within {step}", "phase")
    if window.flush is not None and window.api == "datastream":
        at.wrong("the WindowOperator buffers nothing: flush stands with api: sql", "flush")


def _judge_slide(every_ns: int | None, size_ns: int, at: At) -> None:
    if every_ns is None:
        at.wrong("is missing: windows that slide begin one every so often, write every: 1 s")
    elif not SHORTEST_NS <= every_ns <= size_ns:
        at.wrong(
            f"is {format_duration(every_ns)}: write 1 ms or more, and no more than the size, {format_duration(size_ns)}"
        )

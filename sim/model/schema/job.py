"""The sections `job:` and `checkpoint:`, and the job that is built from them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from sim.model import job as model
from sim.model import sinks, state
from sim.model.checkpoint import BARRIERS, CheckpointOptions
from sim.model.cluster import Version
from sim.model.job import (
    SHIPPING,
    SOURCES,
    Distribution,
    Excess,
    Job,
    Rate,
    default_max_parallelism,
    key_groups,
    redistribute_shares,
)
from sim.model.options import ValidationContext, attribute_of
from sim.model.schema.sections import (
    Axis,
    DistributionSection,
    DurationField,
    OneOf,
    OnlyWith,
    Options,
    Section,
    SizeField,
    TextOrMap,
    Texts,
    build_distribution,
    build_model,
)
from sim.model.schema.text import DocumentPath, Reading, cached_builder
from sim.model.schema.trace import Trace, TraceError, rates_of_trace, series_of
from sim.model.sinks import SINKS
from sim.model.state import BACKENDS, StateOptions
from sim.model.units import format_duration, format_number, format_share
from sim.model.value_types import (
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
    either,
)

# ---- `state:` of a vertex: the options of the model, and keys that are not a single value there.


class State(Options, of=(state.State, state.Ttl)):
    """Keyed state of the whole vertex, spread over its subtasks."""

    ttl: Axis[Duration] | None = None


# ---- `commit:`, `connector:` and `staging:`: output outside of state, and when it becomes visible.


class Commit(Options, of=(sinks.Commit,)):
    """Two-phase commit: output becomes visible when its checkpoint is complete."""


class Staging(Section):
    """Local room of a task manager for files that are not uploaded yet (operator-io: async)."""

    space: Axis[Size]
    """Space per TaskManager."""
    when_full: Axis[Annotated[str, choice("block", "fail")]] | None = None
    """block (the default): a flush waits until an upload frees space; fail: the task fails."""


ConnectorName = Annotated[str, choice_of(lambda: (*SINKS, *SOURCES))]


class Connector(Section):
    """What a vertex writes to or reads from, with its version."""

    name: Axis[ConnectorName]
    """Name in the catalogue of connectors."""
    version: Axis[Version] | None = None
    """Release of the connector, such as 1.1.0, which selects known defects.  Default: unknown."""


ConnectorField = TextOrMap[ConnectorName, Connector]
CommitField = TextOrMap[Annotated[str, choice("none", "two-phase", "as-connector")], Commit]


# ---- `checkpoint:`: the options of the model, and keys that are not a single value there.

_WITH_DEADLINE = [kind.name for kind in BARRIERS.values() if kind.has_deadline]


class Deadline(Section):
    """Barriers are aligned first, and overtake after a timeout that counts from the trigger (aligned-timeout)."""

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
"""It has a key for each barrier mode with a deadline."""


def _without_deadline() -> list[str]:
    """Barrier modes that are a single word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = TextOrMap[Annotated[str, choice_of(_without_deadline)], DeadlineBarriers]  # type: ignore[valid-type]


class Checkpoint(Options, of=(StateOptions, CheckpointOptions)):
    """execution.checkpointing.*"""

    barriers: Axis[BarriersField] | None = None
    staging: Staging | None = None
    forced_aligned: list[EdgeName] | None = None


# ---- `job:`: vertices, sources, inputs, distributions.

Ship = Annotated[
    str, choice_of(lambda: SHIPPING, lambda: {word: way.name for way in SHIPPING.values() for word in way.answers_to})
]


class Step(Section):
    """A rate from a time on."""

    at: Duration
    """Time since the start of the run."""
    rate: RecordRate
    """Records per second from this time on."""


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


class Watermark(Options, of=(model.Watermark,)):
    """The watermarks of a source.  A record's timestamp is when it is due."""

    alignment: dict[str, Any] | None = None


class Backlog(Section):
    """When the source reports a backlog, which puts `checkpoint: interval-during-backlog` in force (FLIP-309).  One of records, lag."""

    ONE_OF: ClassVar = (OneOf({"records": "history that is read first", "lag": "how long due records wait"}),)

    records: Axis[Count] | None = None
    """Number of historical records, of all subtasks together, that the source reads first and reports as a backlog (HybridSource, CDC
    snapshots)."""
    lag: Axis[Duration] | None = None
    """The source reports a backlog while due records have waited longer than this.  Custom connectors may do so; those of Flink do not."""


class Source(Options, of=(model.Source,)):
    """A log that is read: what is due and not yet emitted is backlog.  One of rate, rate-per-subtask."""

    HINTS: ClassVar[Texts] = {
        "service": "write service in the vertex, next to source:",
        "parallelism": "write parallelism in the vertex, next to source:",
    }
    ONE_OF: ClassVar = (
        OneOf({"rate": "of the whole vertex, or 'unlimited'", "rate-per-subtask": ""}),
        OneOf({"records": "of the whole vertex", "records-per-subtask": ""}, is_needed=False),
    )

    record: Axis[SizeField]
    """Serialized size of a record, at least 1 B."""
    rate: Axis[RateField] | None = None
    """Records per second of all subtasks together."""
    rate_per_subtask: Axis[RateField] | None = None
    """Records per second of each subtask."""
    records: Axis[Count] | None = None
    """Makes the source bounded: number of records of all subtasks together."""
    records_per_subtask: Axis[Count] | None = None
    watermark: Watermark | None = None
    backlog: Backlog | None = None


class Skew(Section):
    """The unequal spread of keys over records, at any parallelism.  One of hot, counted."""

    ONE_OF: ClassVar = (OneOf({"hot": "the share of the first subtask", "counted": "a weight of each subtask"}),)

    hot: Axis[Share] | None = None
    """Share of the records that the first subtask receives.  The others receive the rest in proportion to their key groups."""
    counted: list[Weight] | None = Field(None, min_length=1)
    """Relative weight of each subtask at the parallelism where it was measured.  At another parallelism weights move with the key groups."""
    excess: Axis[Annotated[str, choice("one-key", "key-groups")]] | None = None
    """For weights measured at another parallelism: what a subtask reads in excess of the least loaded one is one hot key (one-key, the
    default)
    or spread evenly over its key groups."""


class Input(Section):
    """One edge, seen from its reader."""

    HINTS: ClassVar[Texts] = {"upstream": "write from: upstream, and any name before it"}

    from_: str | None = Field(None, alias="from", min_length=1)
    """Upstream vertex, if the name of the input is another one."""
    union: str | None = Field(None, min_length=1)
    """combine: join only: inputs with the same name here form a union, which the join reads as one input.  Default: each input is read by
    itself."""
    output: str | None = Field(None, min_length=1)
    """Side output (OutputTag) of the upstream vertex that is read.  Default: the main output.  All edges of an output carry the same records."""
    ship: Axis[Ship]
    """Ship strategy of the edge, as in Flink; hash is keyBy."""
    weights: TextOrMap[list[Weight], Skew] | None = None
    """hash only: skew, as a list with the relative weight of each subtask, {hot: 70 %}, or {counted: [...]} for weights measured at
    another parallelism.
    Default: key groups, spread over subtasks as keyBy does."""
    service: Axis[DurationField] | None = None
    """Service time per record of this input.  Default: that of the vertex."""
    record: Axis[SizeField] | None = None
    """Serialized size of a record on this edge.  Default: that of the upstream vertex."""
    fan_out: Axis[Number] | None = None
    """Records on this edge per record that the upstream vertex reads (a source: emits).  Default: that of the upstream vertex."""

    @property
    def excess(self) -> Excess:
        """How the excess of weights is distributed over key groups."""
        return "key-groups" if isinstance(self.weights, Skew) and self.weights.excess == "key-groups" else "one-key"


InputField = TextOrMap[Axis[Ship], Input]


class Output(Section):
    """A side output: records with a tag (ProcessFunction, late data), in addition to those of the main output."""

    fan_out: Axis[Number]
    """Emitted records per record that the vertex reads (a source: emits)."""
    record: Axis[SizeField] | None = None
    """Serialized size of a record.  Default: that of the main output."""


class Window(Options, of=(model.Window,)):
    """A window: records are held as keyed state until its end, then its outputs leave.  One of tumbling, sliding, session, mini-batch."""

    ONE_OF: ClassVar = (OneOf({"tumbling": "", "sliding": "", "session": "", "mini-batch": ""}),)
    ONLY_WITH: ClassVar = (
        OnlyWith(("every",), ("sliding",), "only sliding windows have a slide"),
        OnlyWith(("lasts",), ("session",), "other windows last for their size"),
        OnlyWith(("phase",), ("tumbling", "sliding"), "sessions end when their keys are silent, not at fixed times"),
        OnlyWith(("size",), ("mini-batch",), "only mini-batches have a size limit"),
    )

    tumbling: Axis[Duration] | None = None
    """Size of a tumbling window.  The windows of all subtasks end at the same time."""
    sliding: Axis[Duration] | None = None
    """Size of a sliding window; `every` is its slide.  A record is emitted for all of its windows when the first of them ends."""
    every: Axis[Duration] | None = None
    session: Axis[Duration] | None = None
    """Session gap.  In event time, sessions end at watermarks."""
    lasts: Axis[Duration] | None = None
    """session only: mean time from the first to the last record of a session.  Default: 0."""
    mini_batch: Axis[Duration] | None = None
    """Mini-batches (table.exec.mini-batch.allow-latency).  Accepted and not simulated."""
    size: Axis[Count] | None = None
    """Size of a mini-batch.  Accepted and not simulated."""
    time: Axis[Annotated[str, choice("processing", "event")]]
    stage: Axis[Annotated[str, choice("global", "local")]] | None = None
    """local: first stage of a two-phase aggregation (table.optimizer.agg-phase-strategy), which emits its records before each barrier.
    Default: global."""


class UnionState(Options, of=(model.UnionState,)):
    """Union list state of a vertex, of which each subtask restores all."""


class Vertex(Options, of=(model.Vertex,)):
    """One chain of operators; its parallel instances are the subtasks.  One of source, input."""

    HINTS: ClassVar[Texts] = {
        "placement": "slots per vertex are not modelled",
        "rate": "write rate in source:",
        "slow": "write service-factor: {subtask: factor}",
        "inputs": "write input: {upstream: hash}",
        "output": "write outputs: {tag: {fan-out: 0.1}}",
        "ship": "write input: {upstream: ship}",
        "weights": "write input: {upstream: {ship: hash, weights: [...]}}",
        "size": "did you mean state: {size: ...}?",
    }
    ONE_OF: ClassVar = (OneOf({"source": "the log that it reads", "input": "the vertices that it reads"}),)

    source: Source | None = None
    """The log that a source vertex reads.  A vertex has either a source or inputs."""
    input: dict[str, InputField] | None = Field(None, min_length=1)
    """The upstream vertices and how their records are partitioned, e.g. {parse: hash} for keyBy.  A second edge from the same vertex has
    another name, and `from`."""
    combine: Literal["union", "join"] | None = None
    service_factor: dict[str, Axis[Number]] | None = Field(None, min_length=1)
    record: Axis[SizeField] | None = None
    """Serialized size of emitted records.  Default: that of the input records."""
    outputs: dict[str, Output] | None = Field(None, min_length=1)
    """Side outputs by tag, which inputs of other vertices refer to.  Default: only the main output."""
    window: Window | None = None
    state: State | None = None
    union_state: Axis[TextOrMap[Switch, UnionState]] | None = None
    commit: Axis[CommitField] | None = None
    connector: Axis[ConnectorField] | None = None

    @property
    def edges(self) -> dict[str, Input]:
        """Name of each input -> its edge, in the order of the gates."""
        given = (self.input or {}).items()
        return {name: edge if isinstance(edge, Input) else Input.model_construct(ship=edge) for name, edge in given}

    @property
    def upstreams(self) -> dict[str, str]:
        """Name of each input -> the vertex that it reads."""
        return {name: edge.from_ or name for name, edge in self.edges.items()}

    @property
    def groups(self) -> int:
        """The number of key groups."""
        return self.max_parallelism or default_max_parallelism(self.parallelism or 1)


def upstream_of(name: str, written: object) -> str:
    """Return the vertex that an input reads, in the plain document."""
    upstream = written.get("from") if isinstance(written, dict) else None
    return upstream if isinstance(upstream, str) and upstream else name


# ---- `window:` of a vertex -> the model's window, with the mistakes that its kinds allow.

MIN_WINDOW_NS = 1_000_000
SESSION_STEPS_PER_GAP = 32
"""Resolution of the end of a processing-time session."""
WINDOW_KINDS = ("tumbling", "sliding", "session")


def build_window(given: Vertex, at: ValidationContext) -> model.Window | None:
    """Build the window of a vertex.  None: it has none."""
    if given.window is None:
        return None
    if given.window.mini_batch is not None:
        at.warn("has no effect: mini-batches are not modelled", "mini-batch")
        return None
    if given.source is not None and given.window.stage != "local":
        at.error("a source has no keyed state: only a window with stage: local can be chained to it")
    if given.async_io is not None:
        at.error("a vertex cannot have both window and async-io: move async-io to another vertex")
    if given.commit not in (None, "none"):
        at.error("a vertex cannot have both window and commit: move commit to the next vertex")
    window = given.window
    (kind,) = (kind for kind in WINDOW_KINDS if getattr(window, kind) is not None)
    size_ns: int = getattr(window, kind)
    _check_window(window, kind, size_ns, at)
    made = build_model(model.Window, window, at, size_ns=max(1, size_ns))
    # a watermark closes all sessions whose gap has passed; hold_ns is the mean time that their records have waited
    if kind == "session":
        step_ns = 1 if window.time == "event" else max(MIN_WINDOW_NS, size_ns // SESSION_STEPS_PER_GAP)
        made = replace(made, every_ns=step_ns, hold_ns=size_ns + (window.lasts or 0) // 2)
    return replace(made, early=window.stage == "local")


def _check_window(window: Window, kind: str, size_ns: int, at: ValidationContext) -> None:
    """Report keys that contradict each other."""
    if size_ns < MIN_WINDOW_NS:
        at.error(f"is {format_duration(size_ns)}: Flink's windows have whole milliseconds, 1 ms or more", kind)
    if kind == "sliding" and window.every is None:
        at.error("is missing: sliding windows need a slide, e.g. every: 1 s", "every")
    elif window.every is not None and not MIN_WINDOW_NS <= window.every <= size_ns:
        most = f"write 1 ms or more, and no more than the size, {format_duration(size_ns)}"
        at.error(f"is {format_duration(window.every)}: {most}", "every")
    step_ns = window.every or size_ns
    if window.phase is not None and window.phase >= step_ns:
        step = format_duration(step_ns)
        at.error(f"is {format_duration(window.phase)}, but a window of {step} ends within {step}", "phase")
    if window.flush is not None and window.api == "datastream":
        at.error("the WindowOperator does not buffer records: flush needs api: sql", "flush")


# ---- `weights:` of an input -> shares of the reader's subtasks.

_MAX_LISTED_SHARES = 8
"""Maximum shares listed in a warning."""


def build_weights(section: Input, readers: int, groups: int, at: ValidationContext) -> tuple[Fraction, ...]:
    """Return the shares, which add up to 1.  Errors are reported at `at`."""
    weights = section.weights
    if weights is None:
        return ()
    if not SHIPPING[section.ship].keyed:
        at.error(f"only hash has weights, not {section.ship}")
        return ()
    if isinstance(weights, Skew):
        return _skew(weights, section.excess, readers, max(groups, readers), at)
    if len(weights) != readers:
        how_many = f"{len(weights)} weights for {readers} subtasks"
        at.error(
            f"{how_many}: write one each, or {{counted: [...]}} if they were counted at a parallelism of {len(weights)}"
        )
        return ()
    return _shares(weights, at)


def _skew(skew: Skew, excess: Excess, readers: int, groups: int, at: ValidationContext) -> tuple[Fraction, ...]:
    if skew.hot is not None:
        if skew.excess is not None:
            at.warn("has no effect: hot is one key already", "excess")
        return _hot(skew.hot, readers, groups) if readers > 1 else ()
    shares = _shares(skew.counted or [], at)
    counted = len(shares)
    if counted > groups:
        at.error(f"{counted} weights, more than the {groups} key groups", "counted")
        return ()
    if shares and counted != readers:
        kinds: tuple[Excess, Excess] = ("one-key", "key-groups") if excess == "one-key" else ("key-groups", "one-key")
        redistributed, alternative = (redistribute_shares(shares, readers, groups, kind) for kind in kinds)
        listed = ", ".join(
            format_share(Fraction(round(1000 * share), 1000)) for share in redistributed[:_MAX_LISTED_SHARES]
        )
        more = ", ..." if readers > _MAX_LISTED_SHARES else ""
        excess_text = (
            "is one key, and stays in its key group" if excess == "one-key" else "is spread over its key groups"
        )
        most, other = (
            format_share(Fraction(round(1000 * max(shares)), 1000)) for shares in (redistributed, alternative)
        )
        at.warn(
            f"weights for a parallelism of {counted} were redistributed to {readers} subtasks: {listed}{more}. "
            f"What a subtask reads beyond the least loaded one {excess_text}: the most loaded subtask gets {most} of the records. "
            f"With excess: {kinds[1]} it gets {other}; Flink's REST API does not count records per key group, so its share is between these two"
        )
    return shares


def _shares(weights: Sequence[Fraction], at: ValidationContext) -> tuple[Fraction, ...]:
    if (total := sum(weights)) == 0:
        at.error("all weights are 0: no subtask would get a record")
        return ()
    return tuple(Fraction(weight) / total for weight in weights)


def _hot(hot: Fraction, readers: int, groups: int) -> tuple[Fraction, ...]:
    """Return the share of the first subtask, and those of the others by their key groups."""
    others = [len(key_groups(i, readers, groups)) for i in range(1, readers)]
    return (hot, *[(1 - hot) * count / sum(others) for count in others])


# ---- Validation of the job graph, on the plain document, so that its errors are reported together with all others.


def check_graph(plain: Any, reading: Reading) -> None:
    """Check that inputs exist, that there are no cycles, and that each vertex is reachable from a source."""
    job = plain.get("job") if isinstance(plain, dict) else None
    if isinstance(job, dict) and job:
        _check_graph(job, reading)


@cached_builder
def _check_graph(job: dict[str, Any], reading: Reading) -> None:
    inputs: dict[str, list[str]] = {}
    named: dict[tuple[str, str], DocumentPath] = {}  # (upstream, vertex) -> its position
    for name, vertex in job.items():
        if not isinstance(vertex, dict):
            inputs[name] = []
            continue
        edges = vertex.get("input")
        inputs[name] = []
        for key, details in edges.items() if isinstance(edges, dict) else ():
            upstream = upstream_of(key, details)
            inputs[name].append(upstream)
            path: DocumentPath = ("job", name, "input", key)
            named.setdefault((upstream, name), path if upstream == key else (*path, "from"))
            if upstream != key and key in job:
                reading.wrong(path, f"reads '{upstream}', but has the name of another vertex: choose another name")
    for name, upstreams in inputs.items():
        for upstream in upstreams:
            if upstream not in job:
                reading.wrong(
                    named[upstream, name], f"there is no vertex '{upstream}'{reading.did_you_mean(upstream, job)}"
                )
    sources = [name for name, vertex in job.items() if isinstance(vertex, dict) and "source" in vertex]
    if not sources:
        reading.wrong(("job",), "no vertex has a source: add source: to at least one vertex")
    if (cycle := _cycle(inputs)) is not None:
        reading.wrong(("job", cycle[0]), f"is part of a cycle: {' -> '.join([*cycle, cycle[0]])}")
    elif sources:
        reached = set(sources)
        for name in topological(inputs):
            if any(upstream in reached for upstream in inputs[name]):
                reached.add(name)
        for name in job:
            if name not in reached and inputs[name] and all(upstream in job for upstream in inputs[name]):
                reading.wrong(("job", name), "no source reaches this vertex")


def topological(inputs: dict[str, list[str]]) -> list[str]:
    """Return the vertices in topological order, without those in a cycle or downstream of one."""
    sorter, names = _sorter(inputs), list(inputs)
    position = {name: i for i, name in enumerate(names)}
    with suppress(CycleError):
        sorter.prepare()
    order: list[str] = []
    ready: list[int] = []
    while True:
        for name in sorter.get_ready():
            heappush(ready, position[name])
        if not ready:
            return order
        order.append(names[heappop(ready)])
        sorter.done(order[-1])


def _sorter(inputs: dict[str, list[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter(
        {name: [upstream for upstream in upstreams if upstream in inputs] for name, upstreams in inputs.items()}
    )


def _cycle(inputs: dict[str, list[str]]) -> list[str] | None:
    """Return the vertices of one cycle in the direction of records, beginning with the first in the file."""
    try:
        _sorter(inputs).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][1:]
        first = cycle.index(min(cycle, key=list(inputs).index))
        return cycle[first:] + cycle[:first]
    return None


# ---- `state:` of a vertex.


def build_state(section: State | None, at: ValidationContext) -> state.State | None:
    """Build the state of a vertex.  Errors are reported at `at`."""
    if section is None:
        return None
    return build_model(state.State, section, at, ttl=None if section.limit else _ttl(section, at))


def _ttl(section: State, at: ValidationContext) -> state.Ttl | None:
    kind = BACKENDS[section.backend or next(iter(BACKENDS))]
    for key in ("ttl-checks", "ttl-filter"):
        if getattr(section, attribute_of(key)) is None:
            continue
        if not section.ttl:
            at.warn("has no effect without ttl: (time from the last write of a key to its expiry)", key)
        elif key not in kind.sections:
            at.warn(f"has no effect with {kind.name}: expired keys are removed by compactions", key)
    return build_model(state.Ttl, section, at, after_ns=section.ttl) if section.ttl else None


# ---- `commit:` of a vertex.  A global committer becomes a separate vertex.


def build_commit(
    section: Commit | str | None, connector: str, at: ValidationContext, *, has_input: bool
) -> sinks.Commit | None:
    """Build the commit options; defaults are those of the connector."""
    if section is None or section == "none":
        return None
    kind = SINKS.get(connector)
    usual = sinks.Commit() if kind is None else kind.commit
    if section == "as-connector" and kind is None:
        at.error("needs a connector: write connector: in the vertex, or commit: two-phase")
    if usual is None:
        if section != "as-connector":
            at.error(
                f"'{connector}' commits nothing, its output is visible at once: leave commit out, or write as-connector"
            )
        return None
    if not has_input:
        at.error("a source does not commit: write commit in a vertex with an input")
    if isinstance(section, str):
        return usual
    if section.transaction_timeout == 0:
        at.error("a timeout of 0 loses every transaction: write at least '1 ms'", "transaction-timeout")
    commit = build_model(sinks.Commit, section, at, usual)
    if commit.emits == "on-commit" and commit.committer == "global":
        at.error("a global committer is not part of the vertex: only a chained one can emit records", "emits")
    return commit


def build_connector(section: Connector | str | None, at: ValidationContext, *, is_source: bool) -> dict[str, str]:
    """Return the fields of a vertex about its connector."""
    name, version = (section.name, section.version) if isinstance(section, Connector) else (section, None)
    if name is not None and (name in SOURCES) is not is_source:
        expected = either([*(SOURCES if is_source else SINKS)])
        at.error(f"'{name}' is {'written to' if is_source else 'read'}: expected {expected}")
    return {"connector": name or "", "connector_version": version or ""}


def with_committers(vertices: tuple[model.Vertex, ...], at: ValidationContext) -> tuple[model.Vertex, ...]:
    """Insert a vertex for each global committer, which reads committables of negligible size."""
    names, committers = {vertex.name for vertex in vertices}, list[model.Vertex]()
    for vertex in vertices:
        if vertex.commit is None or vertex.commit.committer != "global":
            continue
        name = f"{vertex.name}: committer"
        if name in names:
            at.error(f"is the name of the global committer of {vertex.name}: choose another", name)
        behind = model.Input(vertex.name, "global", service=Distribution(0), record_bytes=Distribution(1))
        committers.append(model.Vertex(name, inputs=(behind,), committer_of=vertex.name))
    return (*vertices, *committers)


# ---- The `job:` section -> the model's job: vertices in topological order, rates per subtask, weights as shares.

DEFAULT_SERVICE = Distribution(1000)  # ns
DEFAULT_RECORD = Distribution(1000)  # bytes
MIN_SERVICE_FACTOR, MAX_SERVICE_FACTOR = Fraction(1, 100), 100
LARGEST_RECORD_BYTES = 2**31 - 1
"""SpanningRecordSerializer writes the length of a record as an int."""


@cached_builder
def build_job(job: dict[str, Vertex], reading: Reading, folder: Path, *, duration_ns: int) -> Job:
    """Build the job, with traces up to the end of the run.  Errors are added to `reading`."""
    at = ValidationContext(("job",), reading, folder)
    order = topological({name: [up for up in vertex.upstreams.values() if up in job] for name, vertex in job.items()})
    built: dict[str, model.Vertex] = {}
    read = {upstream for vertex in job.values() for upstream in vertex.upstreams.values()}
    emitted: dict[str, Distribution] = {}  # size of the records of its main output
    for name in order:
        vertex = job[name]
        at_vertex = at.child(name)
        inputs = [
            _input(key, vertex, job, emitted, at_vertex)
            for key, upstream in vertex.upstreams.items()
            if upstream in built
        ]
        emitted[name] = _record(vertex, inputs, name in read, at_vertex)
        built[name] = _vertex(name, vertex, tuple(inputs), at_vertex, duration_ns)
    for name in built:
        _check_unions(job[name], at.child(name))
    _check_side_outputs_read(job, at)
    return Job(with_committers(tuple(built.values()), at))


def _check_unions(vertex: Vertex, at: ValidationContext) -> None:
    """Check that the edges of one input of a join are consecutive."""
    before, closed = "", set[str]()
    for key, edge in vertex.edges.items():
        union = edge.union or ""
        if union and vertex.combine != "join":
            at.warn("has no effect: without combine: join all inputs are one stream", "input", key, "union")
        elif union in closed:
            at.error(
                f"the inputs of '{union}' do not follow each other: write them one after the other",
                "input",
                key,
                "union",
            )
        if union != before and before:
            closed.add(before)
        before = union


def _check_side_outputs_read(job: dict[str, Vertex], at: ValidationContext) -> None:
    """Warn about side outputs without readers; Flink drops their records."""
    read = {(edge.from_ or key, edge.output) for vertex in job.values() for key, edge in vertex.edges.items()}
    for name, vertex in job.items():
        for tag in vertex.outputs or {}:
            if (name, tag) not in read:
                at.warn(f"has no effect: no input says output: {tag}", name, "outputs", tag)


def _vertex(
    name: str, section: Vertex, inputs: tuple[model.Input, ...], at: ValidationContext, duration_ns: int
) -> model.Vertex:
    connector = build_connector(section.connector, at.child("connector"), is_source=section.source is not None)
    source = section.source
    return build_model(
        model.Vertex,
        section,
        at,
        name=name,
        max_parallelism=section.groups,
        inputs=inputs,
        joined=section.combine == "join",
        source=None if source is None else _source(source, at.child("source"), section.parallelism or 1, duration_ns),
        service_factors=_service_factors(section, name, at.child("service-factor")),
        window=build_window(section, at.child("window")),
        state=build_state(section.state, at.child("state")),
        commit=build_commit(section.commit, connector["connector"], at.child("commit"), has_input=bool(inputs)),
        **connector,
    )


def _service_factors(section: Vertex, name: str, at: ValidationContext) -> tuple[tuple[int, Fraction], ...]:
    parallelism, factors = section.parallelism or 1, list[tuple[int, Fraction]]()
    for subtask, factor in (section.service_factor or {}).items():
        if not (subtask.isascii() and subtask.isdecimal() and int(subtask) < parallelism):
            at.error(f"there is no subtask '{subtask}' of {name}: write a number from 0 to {parallelism - 1}", subtask)
        elif not MIN_SERVICE_FACTOR <= factor <= MAX_SERVICE_FACTOR:
            between = f"a factor is between {format_number(MIN_SERVICE_FACTOR)} and {MAX_SERVICE_FACTOR}"
            at.error(f"is {format_number(factor)}: {between}", subtask)
        else:
            factors.append((int(subtask), factor))
    return tuple(sorted(factors))


def _input(
    key: str, vertex: Vertex, job: dict[str, Vertex], emitted: dict[str, Distribution], of_vertex: ValidationContext
) -> model.Input:
    at = of_vertex.child("input").child(key)
    details = vertex.edges[key]
    upstream = details.from_ or key
    readers, writers = vertex.parallelism or 1, job[upstream].parallelism or 1
    ship = details.ship
    if SHIPPING[ship].one_to_one and readers != writers:
        at.warn(f"{ship} needs equal parallelism, not {writers} -> {readers}: using rebalance, as Flink does")
        ship = "rebalance"
    default = _distribution(vertex.service, DEFAULT_SERVICE, of_vertex.child("service"))
    fan_out, size, at_size = details.fan_out, details.record, at.child("record")
    if details.output is not None and (side := _side_output(details, job[upstream], upstream, at)) is not None:
        fan_out, size = side.fan_out, side.record
        at_size = replace(at, path=("job", upstream, "outputs", details.output, "record"))
    return model.Input(
        upstream,
        ship,
        weights=build_weights(details, readers, vertex.groups, at.child("weights")),
        excess=details.excess,
        service=_distribution(details.service, default, at.child("service")),
        record_bytes=_distribution(size, emitted[upstream], at_size),
        union=details.union or "",
        output=details.output or "",
        fan_out=fan_out,
    )


def _side_output(section: Input, writer: Vertex, upstream: str, at: ValidationContext) -> Output | None:
    """Return the side output that an edge reads, or None if there is no such output."""
    outputs, tag = writer.outputs or {}, section.output or ""
    if tag not in outputs:
        guess = at.reading.did_you_mean(tag, outputs) or f": write outputs: {{{tag}: {{fan-out: 0.1}}}} there"
        at.error(f"'{upstream}' has no side output '{tag}'{guess}", "output")
        return None
    for key, value in (("fan-out", section.fan_out), ("record", section.record)):
        if value is not None:
            at.error(f"belongs to outputs of '{upstream}': the edges of an output carry the same records", key)
    return outputs[tag]


def _record(section: Vertex, inputs: list[model.Input], has_readers: bool, at: ValidationContext) -> Distribution:
    if section.source is not None:
        if section.record is not None:
            at.error("write record in source:", "record")
        return _distribution(section.source.record, DEFAULT_RECORD, at.child("source").child("record"))
    if section.record is None and has_readers and len({edge.record_bytes for edge in inputs}) > 1:
        at.error("inputs have different record sizes: set record: (size of emitted records)")
    return _distribution(section.record, inputs[0].record_bytes if inputs else DEFAULT_RECORD, at.child("record"))


def _source(section: Source, at: ValidationContext, parallelism: int, duration_ns: int) -> model.Source:
    silent = section.silent or 0
    if silent >= parallelism:
        at.error(
            f"{silent} of {parallelism} subtasks are silent: at least one must emit records; to emit none, write rate: 0/s",
            "silent",
        )
    emitting = max(1, parallelism - silent)
    key, shared = ("rate", emitting) if section.rate is not None else ("rate-per-subtask", 1)
    rate = section.rate if section.rate is not None else section.rate_per_subtask
    total = section.records_per_subtask
    if section.records is not None:
        total, rest = divmod(section.records, emitting)
        if rest:
            at.error(
                f"{section.records} records do not divide by {emitting} subtasks: write records-per-subtask", "records"
            )
    if total == 0:
        key_of_total = "records" if section.records is not None else "records-per-subtask"
        at.error("each subtask emits at least one record", key_of_total)
    rates = _rates(rate, shared, at.child(key), duration_ns)
    backlog = _backlog(section, emitting, total, at.child("backlog"))
    return build_model(model.Source, section, at, rates=rates, total=total, backlog=backlog)


def _backlog(section: Source, parallelism: int, total: int | None, at: ValidationContext) -> model.Backlog | None:
    if section.backlog is None:
        return None
    if section.backlog.records is None:
        if section.rate == "unlimited" or section.rate_per_subtask == "unlimited":
            at.error("records of an unlimited source are never overdue: write records, or a rate", "lag")
        return model.Backlog(lag_ns=section.backlog.lag)
    records = -(-section.backlog.records // parallelism)
    if total is not None and records > total:
        at.error(f"is {section.backlog.records}, more than the source emits: {total * parallelism}", "records")
    return model.Backlog(records)


def _rates(written: object, shared: int, at: ValidationContext, duration_ns: int) -> Sequence[Rate]:
    """Return the rates of one subtask, an equal part of the vertex's; empty if unlimited."""
    if isinstance(written, Fraction):
        return (Rate(0, written / shared),)
    if isinstance(written, Trace):
        at.reading.reads_files = True
        try:
            rates = rates_of_trace(written, at.folder, until_ns=duration_ns, subtasks=shared)
            if assumed := series_of(written, at.folder).assumed:
                at.warn(f"{written.trace}: {assumed}", "trace")
            return rates
        except TraceError as error:
            at.error(str(error), "trace")
    if isinstance(written, list):
        steps: list[Step] = written
        for i, step in enumerate(steps):
            if step.rate == "unlimited":
                at.error("a step cannot be unlimited: write a rate above what the job can serve", i, "rate")
            elif i and step.at <= steps[i - 1].at:
                at.error("is not after the step before it", i, "at")
        return tuple(Rate(step.at, step.rate / shared) for step in steps if isinstance(step.rate, Fraction))
    return ()


def _distribution(
    written: int | DistributionSection | None, default: Distribution, at: ValidationContext
) -> Distribution:
    distribution = build_distribution(written, default, at)
    if at.path[-1] == "record" and distribution.mean == 0:
        at.error("a record has at least 1 B")
    if at.path[-1] == "record" and written is not None and distribution.mean > LARGEST_RECORD_BYTES:
        at.error("a record of Flink has less than 2 GiB: its length is an int")
    return distribution

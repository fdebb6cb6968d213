"""A scenario as it is written: one class per mapping of the file, one field per key (hyphens for underscores).

Says what may be written where and what it means; `sim.scenario.build` makes the model of it.  Defaults live in the model:
a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationInfo, model_validator

from sim.scenario.fields import (
    Axis,
    BufferTimeout,
    ByteRate,
    Condition,
    Count,
    Duration,
    EdgeName,
    Interval,
    Number,
    Percent,
    Positive,
    RecordRate,
    Share,
    Size,
    Weight,
    Whole,
    choice,
)
from sim.scenario.problems import Reading, did_you_mean
from sim.scenario.text import Mapping

__all__ = [
    "AlignedTimeout", "Checkpoint", "Cluster", "Debloat", "Document", "DurationLaw", "DurationSpread", "Input", "Network", "Overheads",
    "Run", "Section", "SizeLaw", "SizeSpread", "Skew", "Slow", "Snapshot", "Source", "State", "Step", "Storage", "Trace", "Vertex",
]

Ship = Annotated[str, choice("forward", "rescale", "rebalance", "hash", "broadcast", "global")]


_NO_PLAIN_LAW = {"constant": "write the value alone, without a mapping", "normal": "write lognormal: {mean: ..., cv: ...}"}


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """One mapping of the file.  Unknown, empty and not yet modelled keys are told where they stand, all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_key, use_attribute_docstrings=True)

    LATER: ClassVar[dict[str, str]] = {}
    """Keys that are known but not modelled yet, and what they will mean."""
    HINTS: ClassVar[dict[str, str]] = {}
    """Keys that are often looked for here, and where they stand."""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or not isinstance(info.context, Reading):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in data.items():
            here = (*data.path, key)
            if key in cls.LATER:
                info.context.wrong(here, f"known but not modelled yet ({cls.LATER[key]}): remove it")
            elif key not in known:
                hint = did_you_mean(key, known) or f"; known keys are {', '.join(sorted(known))}"
                hint = f": {cls.HINTS[key]}" if key in cls.HINTS else hint
                info.context.wrong(here, f"unknown key '{key}'{hint}")
            elif value is None:
                info.context.wrong(here, "has no value: write one or remove the key")
        return {key: value for key, value in data.items() if key in known and value is not None}


class DurationSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Duration]
    cv: Axis[Number]


class SizeSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Size]
    cv: Axis[Number]


class DurationLaw(Section):
    """A distribution by name; exactly one."""

    HINTS = _NO_PLAIN_LAW

    exponential: Axis[Duration] | None = None
    """Mean."""
    uniform: Axis[Duration] | None = None
    """Mean; from 0 to twice the mean."""
    lognormal: DurationSpread | None = None
    erlang: DurationSpread | None = None
    """cv in (0, 1]: 1 / cv^2 stages."""


class SizeLaw(Section):
    """A distribution by name; exactly one."""

    HINTS = _NO_PLAIN_LAW

    exponential: Axis[Size] | None = None
    """Mean."""
    uniform: Axis[Size] | None = None
    """Mean; from 0 to twice the mean."""
    lognormal: SizeSpread | None = None
    erlang: SizeSpread | None = None
    """cv in (0, 1]: 1 / cv^2 stages."""


def _map_or_text(value: object) -> str:
    return "map" if isinstance(value, (dict, BaseModel)) else "text"


_MAP_OR_TEXT = Discriminator(_map_or_text)

DurationField = Annotated[Annotated[Duration, Tag("text")] | Annotated[DurationLaw, Tag("map")], _MAP_OR_TEXT]
SizeField = Annotated[Annotated[Size, Tag("text")] | Annotated[SizeLaw, Tag("map")], _MAP_OR_TEXT]


class Step(Section):
    """From `at` on, so many records per second."""

    at: Duration
    rate: RecordRate


class Trace(Section):
    """Rates from a CSV file (also .csv.gz), relative to the scenario; the first row is the start of the run."""

    trace: str = Field(min_length=1)
    column: str
    """Records per second."""
    time: str | None = None
    """Column of the time stamps, seconds or ISO 8601; default: the first column."""
    every: Duration | None = None
    """Rows at a fixed distance instead of time stamps."""
    scale: Axis[Number] | None = None
    """Multiplies the rates."""


def _rate_kind(value: object) -> str:
    if isinstance(value, list):
        return "steps"
    return "trace" if isinstance(value, (dict, BaseModel)) else "rate"


RateField = Annotated[
    Annotated[RecordRate, Tag("rate")] | Annotated[Trace, Tag("trace")] | Annotated[list[Step], Field(min_length=1), Tag("steps")],
    Discriminator(_rate_kind),
]


class Source(Section):
    """A log that is read: what is due and not yet emitted is backlog.  One of rate, rate-per-subtask."""

    HINTS = {"service": "service stands beside source:, in the vertex", "parallelism": "parallelism stands beside source:, in the vertex"}

    record: Axis[SizeField]
    """Size of a record on the wire."""
    rate: Axis[RateField] | None = None
    """Records per second of the whole vertex."""
    rate_per_subtask: Axis[RateField] | None = None
    """Records per second of each subtask."""
    records: Axis[Count] | None = None
    """Bounded: records of the whole vertex, then end of data."""
    records_per_subtask: Axis[Count] | None = None
    """Bounded: records of each subtask, then end of data."""


class Skew(Section):
    """The first subtask gets this share of the records, the others the rest in equal parts."""

    hot: Axis[Share]


class Input(Section):
    """One edge, seen from its reader."""

    ship: Axis[Ship]
    """How records choose their reader: Flink's ship strategies."""
    weights: Annotated[Annotated[Skew, Tag("map")] | Annotated[list[Weight], Tag("text")], _MAP_OR_TEXT] | None = None
    """hash only: relative weight of each reader subtask, or {hot: 70 %}; default: all equal."""
    service: Axis[DurationField] | None = None
    """Per record of this input; default: the vertex's."""
    record: Axis[SizeField] | None = None
    """Size of a record of this edge; default: the upstream vertex's."""


InputField = Annotated[Annotated[Axis[Ship], Tag("text")] | Annotated[Input, Tag("map")], _MAP_OR_TEXT]


class State(Section):
    """Keyed state of the whole vertex, spread over its subtasks."""

    size: Axis[Size]
    backend: Axis[Annotated[str, choice("hashmap", "rocksdb")]] | None = None
    update: Axis[Share] | None = None
    """Share of the records that rewrite an entry."""
    value: Axis[Size] | None = None
    """Size of the entry rewritten."""


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


class Vertex(Section):
    """One chain of operators; its parallel instances are the subtasks.  One of source, input."""

    LATER = {
        "flush": "files a sink uploads per checkpoint", "commit": "two-phase commit of a sink", "placement": "slots per vertex",
        "slow": "a slow subtask",
    }
    HINTS = {
        "rate": "rate stands inside source:", "inputs": "write input: {upstream: hash}", "ship": "write input: {upstream: ship}",
        "weights": "weights stand in input: {upstream: {ship: hash, weights: [...]}}", "size": "did you mean state: {size: ...}?",
    }

    source: Source | None = None
    input: dict[str, InputField] | None = Field(None, min_length=1)
    """Upstream vertex -> how its records travel; several inputs are a union or join."""
    parallelism: Axis[Positive] | None = None
    max_parallelism: Axis[Positive] | None = None
    """Key groups; default: Flink's choice from the parallelism."""
    service: Axis[DurationField] | None = None
    """Time per record (sources: per emitted record)."""
    fan_out: Axis[Number] | None = None
    """Records out per record in, on each outgoing edge."""
    record: Axis[SizeField] | None = None
    """Size of the records it emits; default: that of its inputs."""
    state: State | None = None
    snapshot: Snapshot | None = None


class AlignedTimeout(Section):
    """Start aligned, go unaligned so long after the trigger."""

    aligned_timeout: Axis[Duration]


BarriersField = Annotated[
    Annotated[str, choice("aligned", "unaligned", "at-least-once"), Tag("text")] | Annotated[AlignedTimeout, Tag("map")], _MAP_OR_TEXT,
]


class Checkpoint(Section):
    """execution.checkpointing.*"""

    LATER = {
        "operator-io": "FLINK-37375", "finish": "how the last checkpoint comes about", "interval-during-backlog": "FLIP-309",
        "incremental": "shared state files",
    }

    interval: Axis[Interval]
    """Or `off`: no periodic checkpoints."""
    barriers: Axis[BarriersField] | None = None
    timeout: Axis[Duration] | None = None
    min_pause: Axis[Duration] | None = None
    max_concurrent: Axis[Positive] | None = None
    tolerable_failed: Axis[Whole] | None = None
    subtasks_per_channel_state_file: Axis[Positive] | None = None
    forced_aligned: list[EdgeName] | None = None
    """Edges 'upstream -> downstream' that stay aligned, beyond those Flink keeps aligned itself."""


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    LATER = {"lasts": "slow periods of a node"}

    share: Axis[Share]
    factor: Axis[Positive]


class Storage(Section):
    """Checkpoint storage: every open file is one stream."""

    LATER = {"dfs": "nodes of a distributed file system"}
    HINTS = {"slow-share": "write slow: {share: 2 %, factor: 20}"}

    bandwidth: Axis[ByteRate] | None = None
    """Writing, per open file."""
    read_bandwidth: Axis[ByteRate] | None = None
    """Reading, per open file."""
    file_latency: Axis[Duration] | None = None
    """Added to each file."""
    metadata_latency: Axis[Duration] | None = None
    """Of the _metadata file the coordinator writes."""
    inline_threshold: Axis[Size] | None = None
    """Smaller state travels in the acknowledgement, no file."""
    slow: Slow | None = None


class Debloat(Section):
    """taskmanager.network.memory.buffer-debloat.*"""

    target: Axis[Duration] | None = None
    period: Axis[Duration] | None = None
    samples: Axis[Positive] | None = None
    threshold: Axis[Percent] | None = None
    min: Axis[Size] | None = None


DebloatField = Annotated[
    Annotated[str, choice("on", "off", "true", "false"), Tag("text")] | Annotated[Debloat, Tag("map")], _MAP_OR_TEXT,
]


class Network(Section):
    """Buffers as Flink counts them."""

    segment_size: Axis[Size] | None = None
    starting_segment_size: Axis[Size] | None = None
    """First buffer size with debloating on."""
    buffers_per_channel: Axis[Whole] | None = None
    floating_buffers_per_gate: Axis[Positive] | None = None
    max_buffers_per_channel: Axis[Positive] | None = None
    overdraft: Axis[Whole] | None = None
    buffer_timeout: Axis[BufferTimeout] | None = None
    """0 s: after each record; or `never`."""
    debloat: Axis[DebloatField] | None = None


class Cluster(Section):
    """Where the job runs."""

    placement: Axis[Annotated[str, choice("isolated", "spread", "single")]] | None = None
    """isolated: a task manager per subtask; spread: one per subtask index; single: one in all."""
    latency: Axis[Duration] | None = None
    """One way, between task managers."""
    nic: Axis[ByteRate] | None = None
    """Outgoing, per task manager."""
    profile: Axis[Annotated[str, choice("1.20", "2.x")]] | None = None
    """Whose constants and defaults."""
    network: Network | None = None


class Run(Section):
    """How long, how often."""

    HINTS = {"seeds": "write replications: 20, or a list under seed"}

    duration: Duration
    warmup: Duration | None = None
    """Left out of the results."""
    seed: Axis[Whole] | None = None
    replications: Positive | None = None


class Overheads(Section):
    """What no configuration says: constants of an environment, see `calibrate`."""

    trigger: Duration | None = None
    barrier: Duration | None = None
    acknowledge: Duration | None = None
    complete: Duration | None = None
    notify: Duration | None = None
    first_trigger: Duration | None = None


Conditions = Annotated[
    Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("all")],
    Discriminator(lambda value: "all" if isinstance(value, list) else "one"),
]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoints, and the question they are asked."""

    LATER = {"faults": "tasks that are killed"}
    HINTS = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    job: dict[str, Vertex] = Field(min_length=1)
    """Vertex name -> vertex."""
    checkpoint: Checkpoint
    run: Run
    cluster: Cluster | None = None
    storage: Storage | None = None
    expect: dict[str, Conditions] | None = None
    """Metric -> condition, or several."""
    overheads: Overheads | None = None
    flink: dict[str, Any] | None = None
    """Flink's own configuration keys, verbatim."""

"""A scenario as it is written: one class per mapping of the file, one field per key (hyphens for underscores).

Says what may be written where and what it means; `sim.scenario.build` makes the model of it.  Defaults live in the model:
a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model.barriers import BARRIERS
from sim.scenario.actions.document import Action
from sim.scenario.faults.document import Fault, RescaleField, Restart
from sim.scenario.grammar.fields import (
    Axis,
    BufferTimeout,
    ByteRate,
    Condition,
    Duration,
    EdgeName,
    Interval,
    Percent,
    Positive,
    Share,
    Size,
    Whole,
    choice,
    choice_of,
)
from sim.scenario.grammar.section import MAP_OR_TEXT, Section, Words
from sim.scenario.instances.document import Directories, Instances
from sim.scenario.job.document import Vertex
from sim.scenario.sink.document import Staging
from sim.scenario.state.document import StateKeys
from sim.scenario.storage.document import Storage

__all__ = ["AlignedTimeout", "Checkpoint", "Cluster", "Debloat", "Document", "Network", "Overheads", "Run", "Storage"]


class AlignedTimeout(Section):
    """Start aligned, go unaligned so long after the trigger."""

    aligned_timeout: Axis[Duration]


def _without_deadline() -> list[str]:
    """Ways of barriers that are one word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = Annotated[
    Annotated[str, choice_of(_without_deadline), Tag("text")] | Annotated[AlignedTimeout, Tag("map")], MAP_OR_TEXT,
]


class Checkpoint(StateKeys):
    """execution.checkpointing.*"""

    LATER: ClassVar[Words] = {
        "interval-during-backlog": "FLIP-309",
    }

    interval: Axis[Interval]
    """Or `off`: no periodic checkpoints."""
    barriers: Axis[BarriersField] | None = None
    timeout: Axis[Duration] | None = None
    min_pause: Axis[Duration] | None = None
    max_concurrent: Axis[Positive] | None = None
    tolerable_failed: Axis[Whole] | None = None
    num_retained: Axis[Positive] | None = None
    """Completed checkpoints kept."""
    subtasks_per_channel_state_file: Axis[Positive] | None = None
    operator_io: Axis[Annotated[str, choice("pre-barrier", "async")]] | None = None
    """When operators write the files of flush: and work as long as pre-barrier: before the barrier, or in the asynchronous phase."""
    abort_policy: Axis[Annotated[str, choice("survive", "reupload", "drop")]] | None = None
    """What an abort does to asynchronous uploads; drop is known to be wrong."""
    upload_threads: Axis[Positive] | None = None
    """Of one task, for the files of its operator."""
    staging: Staging | None = None
    lost_notifications: Axis[Share] | None = None
    """Share of the notifications of a completed checkpoint that never reach their task."""
    finish: Axis[Annotated[str, choice("flink", "naive", "commit-at-finish", "discard", "off")]] | None = None
    """How a bounded job ends: FLIP-147, each task waiting for a checkpoint of its own, or without checkpoints once a task finished."""
    forced_aligned: list[EdgeName] | None = None
    """Edges 'upstream -> downstream' that stay aligned, beyond those Flink keeps aligned itself."""


class Debloat(Section):
    """taskmanager.network.memory.buffer-debloat.*"""

    target: Axis[Duration] | None = None
    period: Axis[Duration] | None = None
    samples: Axis[Positive] | None = None
    threshold: Axis[Percent] | None = None
    min: Axis[Size] | None = None


DebloatField = Annotated[
    Annotated[str, choice("on", "off", "true", "false"), Tag("text")] | Annotated[Debloat, Tag("map")], MAP_OR_TEXT,
]


class Network(Section):
    """Buffers as Flink counts them.  Every pool has as many as it may ask for: a task manager's network memory is not modelled."""

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
    """isolated: a task manager per subtask; spread: one per subtask index, or per so many as it has slots; single: one in all."""
    slots: Axis[Positive] | None = None
    """Of each task manager, filled one after the other; each holds one subtask of every vertex.  Default: 1."""
    latency: Axis[Duration] | None = None
    """One way, between task managers."""
    nic: Axis[ByteRate] | None = None
    """Outgoing, per task manager."""
    profile: Axis[Annotated[str, choice("1.15", "1.20", "2.x")]] | None = None
    """Whose constants and defaults; 1.15: without what came since: overdraft buffers, the timeout of barriers in sender queues."""
    network: Network | None = None


class Run(Section):
    """How long, how often."""

    HINTS: ClassVar[Words] = {"seeds": "write replications: 20, or a list under seed"}

    duration: Duration
    warmup: Duration | None = None
    """Left out of the results."""
    seed: Axis[Whole] | None = None
    replications: Positive | None = None


class Overheads(Section):
    """What no configuration says: constants of an environment, see `calibrate`."""

    trigger: Duration | None = None
    """Trigger timestamp -> trigger call executed by a source."""
    acknowledge: Duration | None = None
    """End of the asynchronous phase -> acknowledgement processed by the coordinator."""
    complete: Duration | None = None
    """Last acknowledgement -> next trigger possible, beside writing _metadata."""
    notify: Duration | None = None
    """Coordinator -> task."""
    close: Duration | None = None
    """A task's last wait is over -> its outputs are closed."""
    first_trigger: Duration | None = None
    """All tasks running -> first trigger, in Flink 2.x."""
    fail: Duration | None = None
    """A task's exception -> the job counts as RESTARTING."""
    restart: Duration | None = None
    """Restart delay over -> deployment begins."""
    deploy: Duration | None = None
    """Deployment begins -> a task begins to initialize."""
    file: Duration | None = None
    """A file of flat storage, beside its file-latency and its bytes."""
    start: Duration | None = None
    """Submission -> all tasks run."""
    flusher: Duration | None = None
    """A flush of a task's outputs -> the next, beside the buffer timeout."""


Conditions = Annotated[
    Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("all")],
    Discriminator(lambda value: "all" if isinstance(value, list) else "one"),
]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoints, and the question they are asked."""

    HINTS: ClassVar[Words] = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    job: dict[str, Vertex] = Field(min_length=1)
    """Vertex name -> vertex."""
    checkpoint: Checkpoint
    run: Run
    cluster: Cluster | None = None
    storage: Storage | None = None
    expect: dict[str, Conditions] | None = None
    """Metric -> condition, or several."""
    environment: str | None = None
    """Whose constants hold: one that comes with ckptsim, or a file written by `calibrate`."""
    overheads: Overheads | None = None
    """Constants that are other than there."""
    actions: list[Action] | None = None
    """Savepoints, and the stop of the job."""
    faults: list[Fault] | None = None
    """What goes wrong, and when."""
    restart: Restart | None = None
    rescale: RescaleField | None = None
    instances: Instances | None = None
    """Jobs that begin from each other's snapshots."""
    directories: Directories | None = None
    """Of checkpoint storage."""
    flink: dict[str, Any] | None = None
    """Flink's own configuration keys, verbatim."""

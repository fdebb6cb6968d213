"""The top level of a scenario file, its sections `instances:` and `actions:`, and limits on the size of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model import cluster, scenario
from sim.model import storage as model_storage
from sim.model.catalog import At
from sim.model.checkpoint import MIN_INTERVAL_NS
from sim.model.fields import Condition, Duration, Natural, Positive, choice
from sim.model.job import SHIPPING
from sim.model.schema.faults import Fault, RescaleField, Restart, rescale_sections
from sim.model.schema.history import Backtest, Residuals
from sim.model.schema.job import Checkpoint, Vertex
from sim.model.schema.sections import READ_ONCE, Axis, OneOf, OnlyWith, Options, Section, Texts, build_model
from sim.model.schema.storage import Storage
from sim.model.schema.text import Reading, cached_builder
from sim.model.state import BACKENDS, Lsm

# ---- `instances:` and `directories:`: jobs that start from each other's snapshots, and where snapshots are stored.


class Instances(Options, of=(scenario.Instances,)):
    """Job instances that follow each other in a run. Each starts from a snapshot of the previous one."""

    count: Axis[Positive]


class Directories(Options, of=(model_storage.Directories,)):
    """Directories in which snapshots are stored, and how metadata refers to their files."""


@cached_builder
def build_instances(
    section: Instances | None, reading: Reading, *, savepoints: bool, checkpoints: bool, rescaled: bool, changelog: bool
) -> scenario.Instances:
    """Return the model of `instances:`.  Errors are reported to `reading`.

    `savepoints`, `checkpoints`: whether the scenario takes them.  `rescaled`: whether a rescale changes the parallelism.
    `changelog`: whether the changelog state backend is used.
    """
    at = At(("instances",), reading)
    jobs = build_model(scenario.Instances, section, at)
    if jobs.count == 1:
        return jobs
    if rescaled:
        at.wrong("rescaling makes job instances of its own: write one of instances and rescale", "count")
    if jobs.start_from == "savepoint" and not savepoints:
        at.wrong("no action takes a savepoint: write actions: [{savepoint: native, at: 20 s}]", "from")
    if jobs.start_from == "checkpoint" and not checkpoints:
        at.wrong("there are no checkpoints to start from: write an interval under checkpoint", "from")
    if changelog and jobs.claim == "no-claim":
        conflict = (
            "no-claim wants a full checkpoint, and Flink's changelog takes none (FLINK-38307): write claim or legacy"
        )
        at.wrong(conflict, "claim")
    return jobs


# ---- `actions:`: savepoints, and stopping the job.


class Action(Section):
    """A savepoint, or a stop of the job with a savepoint, at a time of the run."""

    ONE_OF: ClassVar = (OneOf({"savepoint": "", "stop": ""}),)
    ONLY_WITH: ClassVar = (
        OnlyWith(("format",), ("stop",), "a savepoint says its format itself, {savepoint: native, at: 20 s}"),
    )

    savepoint: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Takes a savepoint in this format. The job continues."""
    stop: Axis[Annotated[str, choice("drain", "no-drain", "savepoint-then-finish")]] | None = None
    """Stops the job with a savepoint. Operators finish before it (drain), not (no-drain), or after it (as before FLIP-147)."""
    format: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of the savepoint with which the job stops; default: canonical."""
    at: Axis[Duration]
    """Time since the start of the run."""


def build_actions(sections: Sequence[Action], reading: Reading) -> tuple[scenario.Action, ...]:
    """Return the model of `actions:`, in order of time.  Errors are reported to `reading`."""
    built = [
        scenario.Action(action.at, action.savepoint or action.format or "canonical", action.stop)  # type: ignore[arg-type]
        for action in sections
    ]
    for i, action in enumerate(sections):
        if action.stop is not None and any(other.at > action.at for other in sections):
            reading.wrong(("actions", i), "the job has stopped before the other actions are due")
    return tuple(sorted(built, key=lambda action: action.at_ns))


# ---- Limits on the size of a run, which is estimated from the document. A run that is too large is rejected before it is built.

MAX_SUBTASKS = 100_000
"""Maximum number of subtasks of a job.  30,000 take a minute for three simulated seconds."""
MAX_CHANNELS = 4_000_000
"""Maximum number of channels between subtasks.  Each takes 1 to 2 KB of memory."""
MAX_ROWS = 100_000_000
"""Maximum number of rows of a result table: one per subtask and checkpoint, or one per vertex and second."""
MAX_TABLES = 1_000_000
"""Maximum number of SST files of a vertex.  Each takes about 1 KB of memory, with the snapshots that refer to it."""


def check_sizes(document: Document, reading: Reading) -> None:
    """Report an error to `reading` if a run would be too large.

    Limits are on subtasks, channels, SST files of RocksDB and rows of results.  `document`: a scenario without axes.
    """
    counts = _parallelisms(document)
    subtasks, channels = sum(counts.values()), _channels(document.job, counts)
    if subtasks > MAX_SUBTASKS:
        part = "write a part of it, with its part of the load"
        reading.wrong(("job",), f"has {subtasks} subtasks: at most {MAX_SUBTASKS} are simulated; {part}")
    elif channels > MAX_CHANNELS:
        reading.wrong(
            ("job",),
            f"has {channels} channels between subtasks, which take about {channels // 500_000} GB: at most {MAX_CHANNELS} are simulated; "
            "write a smaller parallelism, with its part of the load",
        )
    for name, vertex in document.job.items():
        if (tables := _tables(vertex)) > MAX_TABLES:
            fewer = "write a part of the job, or larger ones (lsm: {table: 1 GiB})"
            reading.wrong(
                ("job", name, "state", "size"),
                f"is {tables} tables of RocksDB: at most {MAX_TABLES} are simulated; {fewer}",
            )
    duration_ns, interval_ns = document.run.duration, document.checkpoint.interval
    every_ns = max(interval_ns or 0, MIN_INTERVAL_NS, document.checkpoint.min_pause or 0)
    if interval_ns and (rows := duration_ns // every_ns * subtasks) > MAX_ROWS:
        reading.wrong(
            ("checkpoint", "interval"),
            f"makes up to {rows} rows of subtasks and checkpoints in this run: at most {MAX_ROWS} are kept; "
            "write a shorter run or a longer interval",
        )
    if (rows := duration_ns // 1_000_000_000 * len(counts)) > MAX_ROWS:
        reading.wrong(
            ("run", "duration"),
            f"makes {rows} rows of vertices and seconds: at most {MAX_ROWS} are kept; write a shorter run",
        )


def _tables(vertex: Vertex) -> int:
    """Return the number of SST files that `state.size` of a vertex fills, or 0 if its backend does not use an LSM tree."""
    state = vertex.state
    if state is None or state.backend is None or "lsm" not in BACKENDS[state.backend].sections:
        return 0
    table_bytes = state.lsm.table if state.lsm is not None else None
    return int(state.size // (table_bytes or Lsm().table_bytes))


def _parallelisms(document: Document) -> dict[str, int]:
    """Return the maximum parallelism that each vertex has in the run, in which a rescale may change it."""
    counts = {name: vertex.parallelism or 1 for name, vertex in document.job.items()}
    for _, rescale in rescale_sections(document.rescale):
        for name, parallelism in rescale.parallelism.items():
            counts[name] = max(counts.get(name, 1), parallelism)
    return counts


def _channels(job: dict[str, Vertex], counts: dict[str, int]) -> int:
    """Return the number of channels between all subtasks of the job.

    An edge with forward or rescale has one channel per subtask of its larger side.  All other edges connect each upstream subtask to
    each downstream subtask.  `counts`: parallelism of each vertex.
    """
    total = 0
    for name, vertex in job.items():
        for key, section in (vertex.input or {}).items():
            ship = section if isinstance(section, str) else section.ship
            writers, readers = counts.get(vertex.upstreams[key], 1), counts[name]
            kind = SHIPPING[ship]
            pointwise = kind.pointwise and (writers == readers or not kind.one_to_one)  # otherwise Flink uses rebalance
            total += max(writers, readers) if pointwise else writers * readers
    return total


# ---- The top level of a scenario file: one class per mapping, one field per key (with hyphens instead of underscores).
#
# The classes define which keys are valid and what they mean; `sim.model.schema.study` builds the model from them.  Defaults are
# in the model: a key that is not set is None here.


class Cluster(Options, of=(cluster.Cluster,)):
    """The cluster that the job runs on."""


class Run(Options, of=(scenario.Run,), axes=False):
    """Duration, warm-up and replications of the run."""

    HINTS: ClassVar[Texts] = {"seeds": "write replications: 20, or a list under seed"}

    seed: Axis[Natural] | None = None


class Overheads(Options, of=(scenario.Overheads,), axes=False):
    """Times of an environment that no configuration key sets, such as those of messages and restarts."""


Conditions = Annotated[
    Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("all")],
    Discriminator(lambda value: "all" if isinstance(value, list) else "one"),
]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoint options, its cluster, and the run to simulate."""

    HINTS: ClassVar[Texts] = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    """Version of the file format; default: 1."""
    job: Annotated[dict[str, Vertex], READ_ONCE] = Field(min_length=1)
    """Vertex name -> vertex."""
    checkpoint: Checkpoint
    """How and when checkpoints are taken (execution.checkpointing.*)."""
    run: Run
    cluster: Cluster | None = None
    """Machines, network and buffers."""
    storage: Storage | None = None
    """The checkpoint storage."""
    expect: dict[str, Conditions] | None = None
    """Metric -> condition that it must meet, or a list of conditions."""
    overheads: Overheads | None = None
    """Overheads that differ from those of our own recordings (Flink 2.3 on loopback, storage in memory)."""
    actions: list[Action] | None = None
    """Savepoints, and a stop of the job."""
    faults: list[Fault] | None = None
    """Failures and other faults, and their times."""
    restart: Restart | None = None
    """Restart strategy, detection of lost TaskManagers, and their replacement."""
    rescale: RescaleField | None = None
    """Changes of parallelism in a run."""
    instances: Instances | None = None
    """Job instances that start from each other's snapshots."""
    directories: Directories | None = None
    """Directories of checkpoint storage."""
    flink: dict[str, Any] | None = None
    """Flink's own configuration keys, verbatim."""
    flink_file: str | None = None
    """A file with Flink's configuration: flink-conf.yaml, config.yaml, or a manifest of Kubernetes."""
    history: str | None = None
    """File with observations of the job, written by `import` next to this file: residuals, and a backtest."""
    residuals: Residuals | None = None
    backtest: Backtest | None = None
    """How well the simulation agrees with the history of an import."""

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
    """The run's duration is divided among job instances; each begins from a snapshot of the one before it."""

    count: Axis[Positive]


class Directories(Options, of=(model_storage.Directories,)):
    """Where files of snapshots lie, and how metadata names them."""


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
        none = "no-claim wants a full checkpoint, and Flink's changelog takes none (FLINK-38307): write claim or legacy"
        at.wrong(none, "claim")
    return jobs


# ---- `actions:`: savepoints, and stopping the job.


class Action(Section):
    """A savepoint or a stop, and its time.  Exactly one of the two."""

    ONE_OF: ClassVar = (OneOf({"savepoint": "", "stop": ""}),)
    ONLY_WITH: ClassVar = (
        OnlyWith(("format",), ("stop",), "a savepoint says its format itself, {savepoint: native, at: 20 s}"),
    )

    savepoint: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of a savepoint; the job goes on."""
    stop: Axis[Annotated[str, choice("drain", "no-drain", "savepoint-then-finish")]] | None = None
    """The job stops with a savepoint: after its operators finished, as it stands, or (as before FLIP-147) finishing afterwards."""
    format: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of the savepoint a job stops with; default: canonical."""
    at: Axis[Duration]
    """Moment of the run."""


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


# ---- The size of a run, estimated from the document. A run that needs too much memory or time is rejected before anything is built.

MAX_SUBTASKS = 100_000
"""Subtasks of the whole job: 30,000 take a minute for three simulated seconds."""
MAX_CHANNELS = 4_000_000
"""Between subtasks: each takes 1 to 2 KB."""
MAX_ROWS = 100_000_000
"""Rows of subtasks per checkpoint, and of vertices per second."""
MAX_TABLES = 1_000_000
"""Files that RocksDB keeps: each takes about 1 KB, with the snapshots that name it."""


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
    """Where the job runs."""


class Run(Options, of=(scenario.Run,), axes=False):
    """How long, how often."""

    HINTS: ClassVar[Texts] = {"seeds": "write replications: 20, or a list under seed"}

    seed: Axis[Natural] | None = None


class Overheads(Options, of=(scenario.Overheads,), axes=False):
    """What no configuration says: constants of an environment."""


Conditions = Annotated[
    Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("all")],
    Discriminator(lambda value: "all" if isinstance(value, list) else "one"),
]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoints, and the question they are asked."""

    HINTS: ClassVar[Texts] = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    """The version of the format of scenarios; default: 1."""
    job: Annotated[dict[str, Vertex], READ_ONCE] = Field(min_length=1)
    """Vertex name -> vertex."""
    checkpoint: Checkpoint
    run: Run
    cluster: Cluster | None = None
    """Machines, network and buffers."""
    storage: Storage | None = None
    """Where checkpoints are kept."""
    expect: dict[str, Conditions] | None = None
    """Metric -> condition, or several."""
    environment: str | None = None
    """Whose constants hold: one that comes with ckptsim, or a file of constants."""
    overheads: Overheads | None = None
    """Constants that are other than there."""
    actions: list[Action] | None = None
    """Savepoints, and the stop of the job."""
    faults: list[Fault] | None = None
    """What goes wrong, and when."""
    restart: Restart | None = None
    """What happens after a failure."""
    rescale: RescaleField | None = None
    """Changes of parallelism in a run."""
    instances: Instances | None = None
    """Jobs that begin from each other's snapshots."""
    directories: Directories | None = None
    """How checkpoint storage is laid out."""
    flink: dict[str, Any] | None = None
    """Flink's own configuration keys, verbatim."""
    flink_file: str | None = None
    """A file with Flink's configuration: flink-conf.yaml, config.yaml, or a manifest of Kubernetes."""
    history: str | None = None
    """A file beside this one with what was seen of the job, written by `import`: tails, and how well the simulation agrees."""
    residuals: Residuals | None = None
    backtest: Backtest | None = None
    """How well the simulation agrees with the history of an import."""

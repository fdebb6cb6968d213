"""The top level of a scenario file, its sections `instances:`, `actions:` and `storage:`, and limits on the size of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from sim.model import cluster, scenario, storage
from sim.model import storage as model_storage
from sim.model.checkpoint import MIN_CHECKPOINT_NS, MIN_INTERVAL_NS
from sim.model.cluster import spills_recovered_data
from sim.model.job import SHIPPING
from sim.model.options import ValidationContext, attribute_of, options_of
from sim.model.schema.faults import Fault, RescaleField, Restart, rescale_sections
from sim.model.schema.history_file import Backtest, Residuals
from sim.model.schema.job import Checkpoint, Vertex
from sim.model.schema.sections import (
    FORMS,
    ONE_OR_LIST,
    READ_ONCE,
    Axis,
    OneOf,
    OnlyWith,
    Options,
    Section,
    Texts,
    add_key,
    build_model,
    section_of,
    validate_as,
)
from sim.model.schema.text import DocumentPath, Mapping, Reading, cached_builder
from sim.model.schema.trace import TraceError, TraceTable, file_signature
from sim.model.state import BACKENDS, Lsm
from sim.model.storage import STORAGES, SlowTrace
from sim.model.units import SECOND, format_duration
from sim.model.value_types import Condition, Duration, Natural, Positive, Share, choice

# ---- The section `storage:` of a scenario: its keys, traces of slow nodes, and the model that is built from it.

# ---- Traces of slow nodes: measured speeds in a CSV file -> a factor over time for each machine.


class SlowSeries(Section):
    """Measured speeds from a CSV file (also .csv.gz), relative to the scenario; the median through time is a usual node."""

    trace: str = Field(min_length=1)
    """CSV file of measured speeds."""
    column: str
    """Column with speeds, in any unit."""
    time: str | None = None
    """Column with timestamps: seconds, epoch milliseconds or finer, or ISO 8601.  Default: a column with a usual name, otherwise the first
    one."""
    machine: str | None = None
    """Column that identifies machines; each machine is a separate series."""
    from_: Axis[Duration] | None = Field(None, alias="from")
    """Offset into the trace at which the run starts: nodes are its machines in turn, all at that time.  Default: each node is one of the
    machines,
    from a random time on."""

    def build(self, at: ValidationContext) -> storage.SlowPlaces | None:
        """Return the slowness in the file, or None if it cannot be read.  Errors are reported to `at.reading`."""
        at.reading.reads_files = True
        try:
            return storage.SlowPlaces(trace=read_slowness(self, at.folder))
        except TraceError as error:
            at.error(str(error), "trace")
            return None


def read_slowness(series: SlowSeries, folder: Path) -> SlowTrace:
    """Return the factor by which each machine is slow over time.

    The factor of a row is usual speed / measured speed.  It applies until the next row of that machine; rows without a speed are
    skipped.  The usual speed is the median over the time of all machines: for half of that time, machines are faster.

    `folder`: folder of the scenario.  Raises `TraceError` if the file is invalid or ends before `from`.
    """
    file = folder / series.trace
    nodes, length_ns = _all_series(file, file_signature(file), series.column, series.time, series.machine)
    begin_ns = series.from_
    if begin_ns is not None and begin_ns >= length_ns:
        raise TraceError(f"{file} ends after {format_duration(length_ns)}: from: {format_duration(begin_ns)} is later")
    return SlowTrace(nodes, length_ns, begin_ns)


@lru_cache(maxsize=8)
def _all_series(
    file: Path,
    stamp: tuple[int, int],
    column: str,
    time: str | None,
    machine: str | None,
) -> tuple[tuple[tuple[tuple[int, Fraction], ...], ...], int]:
    """Return (steps of each machine, longest recorded time of a machine [ns]).  For steps see `_steps`.

    Cached, because all combinations of a sweep read the same file.  `stamp` is only part of the cache key, so that a file that has
    changed is read again.
    """
    table, machines = TraceTable(file), dict[str, list[tuple[Fraction, Fraction]]]()  # (time [s], speed) of its rows
    time = time or table.time_column
    table.require_columns(time, column, *([machine] if machine else []))
    table.detect_times(time)
    for line, row in table.rows:
        if (text := (row[column] or "").strip()) == "":
            continue
        speeds, at = machines.setdefault((row[machine] or "") if machine else "", []), table.seconds(line, row)
        if speeds and at <= speeds[-1][0]:
            raise table.not_increasing(line)
        if (speed := table.number(text, line, "speed")) == 0:
            outage = "leave the cell empty, or write an outage in faults:"
            raise TraceError(f"{file}:{line}: a request at speed 0 would never end: {outage}")
        speeds.append((at, speed))
    if not machines or min(map(len, machines.values())) < 2:
        raise TraceError(f"{file} has fewer than two speeds of a machine in column '{column}'")
    usual = _median(
        [(speed, after - at) for speeds in machines.values() for (at, speed), (after, _) in pairwise(speeds)]
    )
    length = max(speeds[-1][0] - speeds[0][0] for speeds in machines.values())
    return tuple(_steps(speeds, usual) for speeds in machines.values()), round(length * SECOND)


def _steps(speeds: list[tuple[Fraction, Fraction]], usual: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """Return (time since the first row [ns], factor) for each change of the factor.

    Factors are rounded to fractions with a denominator of at most 100, so that noise in the speeds does not cause steps.
    `speeds`: (time [s], speed) in order of time.
    """
    steps: list[tuple[int, Fraction]] = []
    for at, speed in speeds:
        factor = (usual / speed).limit_denominator(100)
        if not steps or factor != steps[-1][1]:
            steps.append((round((at - speeds[0][0]) * SECOND), factor or Fraction(1, 100)))
    return tuple(steps)


def _median(weighted: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the weighted median of (value, weight) pairs.  Raises `ValueError` if there are none."""
    half, so_far = sum(weight for _, weight in weighted) / 2, Fraction(0)
    for value, weight in sorted(weighted):
        so_far += weight
        if so_far >= half:
            return value
    raise ValueError("no values")


# ---- The section `storage:`. Most keys are options of the model; those whose value has a special form are declared here.


def _slow_kind(value: object) -> str:
    """Return the tag of a form of `slow:`: "trace" for a CSV file, otherwise "episodes"."""
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


FORMS[storage.SlowPlaces] = Annotated[
    Annotated[section_of(storage.SlowPlaces), Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]
section_of.cache_clear()


class Slow(Section):
    """A share of the files is slow: bandwidth divided, latency multiplied by the factor."""

    HINTS: ClassVar[Texts] = {
        "lasts": "write lasts in slow: of dfs:, object-store: or disk:, whose nodes, prefixes and disks are slow at times"
    }

    share: Axis[Share]
    """Share of the files that are slow."""
    factor: Axis[Positive]
    """Divides the bandwidth and multiplies the latency of a slow file."""


class Storage(Options, of=(storage.Storage,)):
    """Checkpoint storage: every open file is one stream, unless dfs or object-store says otherwise."""

    slow: Slow | None = None


@cached_builder
def build_storage(given: Storage, reading: Reading, folder: Path) -> storage.Storage:
    """Return the model of `storage:`.  Errors are reported to `reading`.  `folder`: folder of the scenario."""
    at = ValidationContext(("storage",), reading, folder)
    others: Iterator[Any] = (
        build_model(kind.options, written, at.child(kind.name))
        for kind in STORAGES.values()
        if kind.name not in options_of(storage.Storage) and (written := getattr(given, attribute_of(kind.name)))
    )
    return build_model(storage.Storage, given, at, other=next(others, None))


for _kind in STORAGES.values():
    if _kind.name not in options_of(storage.Storage):
        add_key(Storage, _kind.name, section_of(_kind.options))


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
    at = ValidationContext(("instances",), reading)
    jobs = build_model(scenario.Instances, section, at)
    if jobs.count == 1:
        return jobs
    if rescaled:
        at.error("rescaling starts job instances itself: write either instances or rescale", "count")
    if jobs.start_from == "savepoint" and not savepoints:
        at.error("no action takes a savepoint: write actions: [{savepoint: native, at: 20 s}]", "from")
    if jobs.start_from == "checkpoint" and not checkpoints:
        at.error("there is no checkpoint to start from: write an interval in checkpoint", "from")
    if changelog and jobs.claim == "no-claim":
        conflict = "no-claim requires a full checkpoint, which the changelog backend does not take (FLINK-38307): write claim or legacy"
        at.error(conflict, "claim")
    return jobs


# ---- `actions:`: savepoints, stopping the job, and changing how it takes checkpoints.


class CheckpointUpdate(Section):
    """Interval and timeout of checkpoints from now on, kept over failovers (FLIP-571: PATCH /jobs/:jobid/checkpoints/configuration)."""

    interval: Axis[Duration] | None = None
    """New interval, from the next periodic trigger on."""
    timeout: Axis[Duration] | None = None
    """New timeout, immediately, also for checkpoints in progress."""


class Action(Section):
    """A savepoint, a stop of the job with a savepoint, or a change of its checkpoints, at a time of the run."""

    ONE_OF: ClassVar = (OneOf({"savepoint": "", "stop": "", "checkpoint": ""}),)
    ONLY_WITH: ClassVar = (
        OnlyWith(("format",), ("stop",), "a savepoint says its format itself, {savepoint: native, at: 20 s}"),
    )

    savepoint: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Takes a savepoint in this format.  The job continues."""
    stop: Axis[Annotated[str, choice("drain", "no-drain", "savepoint-then-finish")]] | None = None
    """Stops the job with a savepoint.  Operators finish before it (drain), do not finish (no-drain), or finish after it (as before FLIP-147)."""
    format: Axis[Annotated[str, choice("canonical", "native")]] | None = None
    """Format of the savepoint with which the job stops.  Default: canonical."""
    checkpoint: CheckpointUpdate | None = None
    """Changes interval and timeout at run time by REST (FLIP-571).  No release of Flink supports it yet."""
    at: Axis[Duration]
    """Time since the start of the run."""


def build_actions(sections: Sequence[Action], reading: Reading) -> tuple[scenario.Action, ...]:
    """Return the model of `actions:`, in order of time.  Errors are reported to `reading`."""
    built = [
        scenario.Action(action.at, action.savepoint or action.format or "canonical", action.stop)  # type: ignore[arg-type]
        for action in sections
        if action.checkpoint is None
    ]
    for i, action in enumerate(sections):
        if action.stop is not None and any(other.at > action.at for other in sections):
            reading.wrong(("actions", i), "the job has stopped before the other actions are due")
    return tuple(sorted(built, key=lambda action: action.at_ns))


def build_checkpoint_updates(document: Document, reading: Reading) -> tuple[scenario.CheckpointUpdate, ...]:
    """Return the changes of checkpoints in `actions:`, in order of time.  Errors are reported to `reading`."""
    built = []
    for i, action in enumerate(document.actions or ()):
        if (update := action.checkpoint) is None:
            continue
        place = ("actions", i, "checkpoint")
        if update.interval is update.timeout is None:
            reading.wrong(place, "changes nothing: write interval, timeout or both")
        if update.interval is not None and not document.checkpoint.interval:
            reading.wrong((*place, "interval"), "there are no periodic checkpoints: write an interval in checkpoint")
        for key, value_ns in (("interval", update.interval), ("timeout", update.timeout)):
            if value_ns is not None and value_ns < MIN_CHECKPOINT_NS:
                reading.wrong(
                    (*place, key),
                    f"is {format_duration(value_ns)}: Flink wants {format_duration(MIN_CHECKPOINT_NS)} or more",
                )
        built.append(scenario.CheckpointUpdate(action.at, update.interval, update.timeout))
    return tuple(sorted(built, key=lambda update: update.at_ns))


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
        for key, edge in (vertex.input or {}).items():  # `Vertex.edges` would take a tenth of the time of a plan
            upstream, ship = (key, edge) if isinstance(edge, str) else (edge.from_ or key, edge.ship)
            writers, readers, kind = counts.get(upstream, 1), counts[name], SHIPPING[ship]
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


Conditions = Annotated[Annotated[Condition, Tag("one")] | Annotated[list[Condition], Tag("list")], ONE_OR_LIST]


class Document(Section):
    """A scenario of ckptsim: a job, its checkpoint options, its cluster, and the run to simulate."""

    HINTS: ClassVar[Texts] = {"checkpoints": "did you mean 'checkpoint'?", "name": "a scenario is named by its file"}

    version: Annotated[str, choice("1")] = "1"
    """Version of the file format; default: 1."""
    job: Annotated[dict[str, Vertex], READ_ONCE] = Field(min_length=1)
    """The vertices by name."""
    checkpoint: Checkpoint
    """How and when checkpoints are taken (execution.checkpointing.*)."""
    run: Run
    cluster: Cluster | None = None
    """Machines, network and buffers."""
    storage: Storage | None = None
    """Checkpoint storage."""
    expect: dict[str, Conditions] | None = None
    """Conditions that metrics must meet: one, or a list for each metric."""
    overheads: Overheads | None = None
    """Overheads of the environment.  Defaults are those of our recordings (Flink 2.3 on loopback, storage in memory)."""
    actions: list[Action] | None = None
    """Savepoints, a stop of the job, and changes of checkpoint options."""
    faults: list[Fault] | None = None
    """Failures and other faults, with their times."""
    restart: Restart | None = None
    """Restart strategy, detection and replacement of lost TaskManagers."""
    rescale: RescaleField | None = None
    """Changes of parallelism in a run."""
    instances: Instances | None = None
    """Consecutive job instances, each started from a snapshot of the previous one."""
    directories: Directories | None = None
    """Directories of checkpoint storage."""
    flink: dict[str, Any] | None = None
    """Configuration keys of Flink, verbatim."""
    flink_file: str | None = None
    """File with Flink's configuration: flink-conf.yaml, config.yaml, or a Kubernetes manifest."""
    history: str | None = None
    """File with observations of the job, written by `import` next to the scenario: residuals and a backtest."""
    residuals: Residuals | None = None
    backtest: Backtest | None = None
    """Agreement of the simulation with the history of an imported job."""


def validate(plain: Any, reading: Reading) -> Document | None:
    """Return the validated document, or None with errors in `reading`."""
    if not isinstance(plain, Mapping):
        reading.wrong(
            (),
            "is empty; a scenario has at least job:, checkpoint: and run:"
            if plain is None
            else "is not a mapping; a scenario begins with keys such as job:, checkpoint: and run:",
        )
        return None
    return validate_as(Document, plain, reading)


# ---- Contradictions between sections.


def check(document: Document, reading: Reading) -> None:
    """Add errors and warnings about combinations of keys to `reading`, for example times after the end of the run."""
    _check_times(document, reading)
    _check_rescale(document, reading)
    check_sizes(document, reading)
    cluster = document.cluster
    is_of_manifest = any(path == ("cluster", "cores") and mark.path for path, mark in reading.marks.items())
    if (
        cluster
        and cluster.cores is not None
        and cluster.services is None
        and not (is_of_manifest or _uses_cores(document))
    ):
        advice = "write services: idle-core, or serialize: for state on the heap, or take canonical savepoints"
        reading.warn(("cluster", "cores"), f"has no effect: no snapshot takes processor time, {advice}")
    # also where it is written to be off, as other strategies may have it
    writes = document.checkpoint.local_recovery is not None or any(vertex.flush for vertex in document.job.values())
    version = str((cluster and cluster.version) or "")
    writes |= document.checkpoint.during_recovery is not None and spills_recovered_data(version)
    if document.storage and document.storage.disk and not writes:
        holds = "it stores files of operators with operator-io: async, copies for local-recovery and, from Flink 2.4 on, data of during-recovery"
        rocksdb = "the disk of RocksDB has lsm: {flush, compaction}"
        reading.warn(("storage", "disk"), f"has no effect: {holds}; {rocksdb}")
    for name, vertex in document.job.items():
        state = vertex.state
        if state is None or state.update is not None or state.growth is not None:
            continue
        if document.checkpoint.incremental and state.backend is not None and BACKENDS[state.backend].keeps_files:
            advice = "write update: (share of the records that rewrite an entry) or growth:, or update: 0 % if state is constant"
            reading.warn(
                ("job", name, "state", "backend"),
                f"state never changes, so incremental checkpoints write nothing: {advice}",
            )
        if state.ttl:
            advice = "write growth: (new keys per record) or update: (share of the records that rewrite an entry)"
            reading.warn(
                ("job", name, "state", "ttl"), f"no record writes to this state, so all of it expires: {advice}"
            )


def _uses_cores(document: Document) -> bool:
    """Return whether some snapshot uses CPU time."""
    serialized = any(vertex.state is not None and vertex.state.serialize for vertex in document.job.values())
    return serialized or bool(document.actions or document.rescale or document.instances)


def _check_times(document: Document, reading: Reading) -> None:
    times: list[tuple[DocumentPath, int | None]] = [
        (("actions", i, "at"), action.at) for i, action in enumerate(document.actions or ())
    ]
    times += [(("faults", i, "at"), fault.at) for i, fault in enumerate(document.faults or ())]
    times += [((*path, "at"), rescale.at) for path, rescale in rescale_sections(document.rescale)]
    for place, at in times:
        if at is not None and at >= document.run.duration:
            reading.warn(place, f"has no effect: the run ends at {format_duration(document.run.duration)}")


def _check_rescale(document: Document, reading: Reading) -> None:
    stop_ns = min((action.at for action in document.actions or () if action.stop is not None), default=None)
    for path, rescale in rescale_sections(document.rescale):
        if stop_ns is not None and rescale.at >= stop_ns:
            reading.wrong((*path, "at"), f"the job has been stopped before, at {format_duration(stop_ns)}")
        elif rescale.at == 0:
            reading.wrong((*path, "at"), "is 0: there is no checkpoint to restore yet")
        elif not document.checkpoint.interval and rescale.from_ != "savepoint":
            reading.wrong(
                (*path, "from"),
                "there is no checkpoint to restore: write from: savepoint, or an interval in checkpoint",
            )

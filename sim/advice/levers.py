"""Levers: kinds of changes of a job that may shorten checkpoints or recovery, from barrier modes to more cores.

The functions are the `proposes` of their `Lever`: each gets a `Situation` and yields the changes that apply to it, if any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Literal

from sim.advice.settings import (
    PAUSE,
    TIMEOUT_NS,
    Change,
    Lever,
    Situation,
    allowed_protocols,
    checkpoint_period_ns,
    later_protocols,
    options_missing_in_release,
)
from sim.advice.situation import (
    ALIGNMENT,
    ASYNC_WORK,
    CHANNEL_STATE,
    EXPIRY,
    FAILED_CHECKPOINTS,
    FOLDER,
    LOSS,
    OUTAGE,
    PARTS,
    QUEUE,
    REPLACEMENT,
    REPLAY,
    RESTORE,
    SYNC,
    UPLOAD,
)
from sim.advice.trials import slots_ms
from sim.jobs.evidence.envelope import firings_ns
from sim.model.faults import RESTARTS as KINDS
from sim.model.faults import Restart
from sim.model.job import SHIPPING, Distribution, Job
from sim.model.schema.option_values import OptionValue, option_values
from sim.model.schema.study import key_of
from sim.model.state import ROCKSDB_ACCESS_NS
from sim.model.units import MS, SECOND, format_duration
from sim.model.value_types import BUFFER_TIMEOUT
from sim.studies.sweeps.design import Point

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.model.state import State


# ---- Levers on barriers, on the times of checkpoints, and on in-flight data.

_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs"
SMALL_SEGMENT = 8192
TOLERABLE_FAILURES = 10
"""Proposed number of tolerable consecutive failures."""
LONGER_TIMEOUT_FACTOR = 6
"""Factor by which a timeout that is too short is extended."""


def _barriers(situation: Situation) -> Iterator[Change]:
    """Propose every other barrier mode that the sinks allow."""
    yield from (
        Change(BARRIERS, "", protocol=other)
        for other in allowed_protocols(situation.scenario)
        if other.name != situation.protocol.name
    )


def _no_pause(situation: Situation) -> Iterator[Change]:
    """Propose no min-pause if it delays checkpoints beyond their interval."""
    options = situation.scenario.checkpoint
    if options.min_pause_ns and checkpoint_period_ns(options, situation.checkpoint_ms * 1e6) > situation.interval_ns:
        yield Change(NO_PAUSE, "min-pause 0 s", {PAUSE: "0 s"})


def _tolerance(situation: Situation) -> Iterator[Change]:
    """Propose to tolerate more failed checkpoints if checkpoints expire, or restart the job in the run with the events in the file."""
    fails = situation.shares.get(EXPIRY) or situation.shares.get(FAILED_CHECKPOINTS)
    if fails and situation.scenario.checkpoint.tolerable_failed < TOLERABLE_FAILURES:
        yield Change(
            TOLERANCE,
            f"{TOLERABLE_FAILURES} failed checkpoints tolerated",
            {"checkpoint.tolerable-failed": TOLERABLE_FAILURES},
        )


def _timeout(situation: Situation) -> Iterator[Change]:
    """Propose a longer checkpoint timeout if checkpoints expire."""
    longer = format_duration(max(situation.scenario.checkpoint.timeout_ns, TIMEOUT_NS) * LONGER_TIMEOUT_FACTOR)
    if situation.shares.get(EXPIRY):
        yield Change(TIMEOUT, f"timeout {longer}", {"checkpoint.timeout": longer})


def _segments(situation: Situation) -> Iterator[Change]:
    """Propose smaller network buffers, unless debloating sizes them."""
    network = situation.scenario.cluster.network
    if network.debloat is None and network.segment_bytes > SMALL_SEGMENT:
        yield Change(SEGMENTS, "segments of 8 KiB", {"cluster.network.segment-size": "8 KiB"})


BARRIERS = Lever(
    "barriers",
    (QUEUE, ALIGNMENT, CHANNEL_STATE),
    _barriers,
    costs="unaligned: data in flight is written, and read at a restore; debloating: smaller buffers",
    ask="which sink does the job write to?",
    source=f"{_DOCS}/ops/state/checkpointing_under_backpressure",
)
NO_PAUSE = Lever("no min-pause", tuple(PARTS), _no_pause, costs="checkpoints may follow each other without a pause")
TOLERANCE = Lever(
    "tolerated failures",
    (EXPIRY, LOSS, FAILED_CHECKPOINTS),
    _tolerance,
    costs="a job whose checkpoints fail goes on for longer",
)
TIMEOUT = Lever("timeout", (EXPIRY,), _timeout, costs="a checkpoint that hangs is noticed later")


SEGMENTS = Lever(
    "segments",
    (QUEUE, ALIGNMENT, CHANNEL_STATE),
    _segments,
    costs="more buffers to handle, and less in flight",
    short_ask="how large is the largest record?",
    ask="how large is the largest record? One larger than a segment takes several",
    source=f"{_DOCS}/deployment/memory/network_mem_tuning",
)


# ---- Levers on keyed state: RocksDB, incremental checkpoints, the changelog, local recovery.

_STATE_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs/ops/state"
MORE_THREADS = 16
CLAIM = "execution.state-recovery.claim-mode"


def _states(situation: Situation) -> dict[str, State]:
    """Return the state of each vertex that has one."""
    return {vertex.name: vertex.state for vertex in situation.scenario.job.vertices if vertex.state is not None}


def _keeps_files(situation: Situation) -> bool:
    """Return True if a vertex has its state in files, i.e. in RocksDB."""
    return any(state.kind.keeps_files for state in _states(situation).values())


def _rocksdb(situation: Situation) -> Iterator[Change]:
    """Propose RocksDB with incremental checkpoints for all state on the heap, with longer service times for its accesses."""
    on_heap = [name for name, state in _states(situation).items() if not state.kind.keeps_files]
    if not on_heap:
        return
    point: Point = {key_of(("job", name, "state", "backend")): "rocksdb" for name in on_heap}
    point["checkpoint.incremental"] = True
    for name in on_heap:
        vertex, inputs = situation.scenario.job.vertex(name), _document(situation, name, "input")
        point[key_of(("job", name, "service"))] = _with_access(vertex.service)
        for (upstream, written), inlet in zip(inputs.items(), vertex.inputs, strict=False):
            if isinstance(written, dict) and "service" in written:
                point[key_of(("job", name, "input", upstream, "service"))] = _with_access(inlet.service)
    assumption = (
        "a record's access to RocksDB adds 10 us; 3 to 100 us are possible (dataArtisans/flink-benchmarks#27, #48)"
    )
    yield Change(ROCKSDB, "RocksDB incremental", point, assumption=assumption)


def _document(situation: Situation, vertex: str, section: str) -> Mapping[str, Any]:
    """Return a section of a vertex as it is written in the scenario, or an empty mapping without it."""
    return situation.plain["job"].get(vertex, {}).get(section) or {}


def _with_access(distribution: Distribution) -> Any:
    """Return a service time that includes an access to RocksDB, as it is written in a scenario."""
    mean = f"{distribution.mean + ROCKSDB_ACCESS_NS} ns"
    if distribution.kind == "constant":
        return mean
    return (
        {distribution.kind: mean}
        if distribution.kind in ("exponential", "uniform")
        else {distribution.kind: {"mean": mean, "cv": distribution.cv}}
    )


def _incremental(situation: Situation) -> Iterator[Change]:
    if _keeps_files(situation) and not situation.scenario.checkpoint.state.incremental:
        yield Change(INCREMENTAL, "incremental", {"checkpoint.incremental": True})


def _changelog(situation: Situation) -> Iterator[Change]:
    states = _states(situation)
    in_memory = [name for name, state in states.items() if state.changelog is not None and state.changelog.in_memory]
    if in_memory:
        keys = {key_of(("job", name, "state", "changelog", "storage")): "filesystem" for name in in_memory}
        yield Change(CHANGELOG, "changelog in files", keys)
    without = [name for name, state in states.items() if state.changelog is None]
    if without:
        yield Change(CHANGELOG, "changelog", {key_of(("job", name, "state", "changelog")): "on" for name in without})


def _local_recovery(situation: Situation) -> Iterator[Change]:
    if _states(situation) and not situation.scenario.checkpoint.state.local_recovery:
        yield Change(LOCAL_RECOVERY, "local recovery", {"checkpoint.local-recovery": True})


def _transfer_threads(situation: Situation) -> Iterator[Change]:
    if _keeps_files(situation) and situation.scenario.checkpoint.state.transfer_threads < MORE_THREADS:
        yield Change(
            TRANSFER_THREADS, f"{MORE_THREADS} transfer threads", {"checkpoint.transfer-threads": MORE_THREADS}
        )


ROCKSDB = Lever(
    "RocksDB incremental",
    (UPLOAD, ASYNC_WORK),
    _rocksdb,
    costs="each record reads and writes serialised state; local disks and managed memory; a savepoint and a restart",
    ask="does each TaskManager have local disk for its state, and managed memory for caches and write buffers?",
    short_ask="local disks for its state, and managed memory?",
    short_caution="only a canonical savepoint moves state to another backend",
    caution="only a canonical savepoint moves state to another backend: no checkpoint does",
    source=f"{_STATE_DOCS}/state_backends",
)
INCREMENTAL = Lever(
    "incremental",
    (UPLOAD,),
    _incremental,
    costs="more files in storage; a restore reads more of them",
    caution="'Checkpointed Data Size' shows the increment from then on",
    source=f"{_STATE_DOCS}/state_backends#incremental-checkpoints",
)
CHANGELOG = Lever(
    "changelog",
    (UPLOAD, ASYNC_WORK, SYNC),
    _changelog,
    costs="every change of state is written a second time; a restore replays the log; on the heap state still has to fit into memory",
    short_ask="which folder of the checkpoint storage takes the log?",
    ask="which folder of the checkpoint storage takes the log (state.changelog.dstl.dfs.base-path)?",
    short_caution="restore with claim mode CLAIM: in NO_CLAIM the job restarts forever",
    caution="restore with claim mode CLAIM: in NO_CLAIM the first checkpoint has to be full, which the changelog refuses, and the job "
    "restarts without end. Flink 2.3 did so in an experiment. A claimed checkpoint belongs to the job; keep a savepoint to go back. "
    "Storage and folder of the log are read from the TaskManagers' own configuration, never from a job's: without them there, each "
    "checkpoint carries the whole log in memory",
    source=f"{_STATE_DOCS}/state_backends#enabling-changelog",
    flink_keys={"state.changelog.dstl.dfs.base-path": FOLDER, CLAIM: "CLAIM"},
)
LOCAL_RECOVERY = Lever(
    "local recovery",
    (RESTORE,),
    _local_recovery,
    costs="a second copy of state on the disk of each TaskManager",
    ask="does each TaskManager keep its disk and its slots when a task fails?",
    short_ask="do TaskManagers keep disk and slots when a task fails?",
    short_caution="a lost TaskManager loses its local copy",
    caution="a lost TaskManager loses its copy: then state is read from storage as before",
    source=f"{_STATE_DOCS}/large_state_tuning",
)
TRANSFER_THREADS = Lever(
    "transfer threads",
    (UPLOAD, RESTORE),
    _transfer_threads,
    costs="more requests to storage at a time",
    source="state.backend.rocksdb.checkpoint.transfer.thread.num",
)


# ---- Levers on the outage after the loss of a TaskManager: heartbeats detect the loss, the restart strategy delays the restart.

_CONFIG = "nightlies.apache.org/flink/flink-docs-stable/docs/deployment/config"
SOON_NS = 2 * SECOND
"""Longest proposed interval of heartbeats, and longest delay of restarts."""
_ROUND_NS = tuple(ms * MS for ms in (100, 200, 500, 1000, 2000))
_LATER_NS = (5 * SECOND, 10 * SECOND, 30 * SECOND)
"""Delays of restarts that are proposed if shorter ones would use up the attempts."""
HEARTBEATS_PER_LIMIT, DELAYS_PER_LIMIT, HEARTBEATS_PER_TIMEOUT = 5, 12, 5
"""How often the proposed interval of heartbeats, and the proposed delay of restarts, fit into the limit on recovery."""
WITHOUT_END = 2**31 - 1
"""Number of restart attempts that is practically unlimited: Flink's largest integer."""
MAX_FAILURES_PER_INTERVAL = 100
"""Failures per interval that the restart strategy tolerates.

Deployments to a lost TaskManager fail until its loss is detected, and there are fewer of these.
"""
PATIENT = {
    "attempts": ("restarts without end", WITHOUT_END),
    "rate": (f"{MAX_FAILURES_PER_INTERVAL} failures tolerated", MAX_FAILURES_PER_INTERVAL),
}


def _soon_ns(situation: Situation, count: int) -> int:
    """Return the longest round time, up to `SOON_NS`, that fits `count` times into the limit on recovery [ns]."""
    limit_ms = situation.recovery_limit_ms
    return max((ns for ns in _ROUND_NS if limit_ms is None or count * ns <= limit_ms * MS), default=_ROUND_NS[0])


def _heartbeats(situation: Situation) -> Iterator[Change]:
    """Propose more frequent heartbeats, and failed heartbeats as a sign of a lost TaskManager (FLINK-23209).

    Heartbeats of one that falls silent do not fail: a shorter timeout is proposed.
    """
    restart, point, names = situation.scenario.restart, Point(), []
    if restart.heartbeat_interval_ns > (soon_ns := _soon_ns(situation, HEARTBEATS_PER_LIMIT)):
        point["restart.heartbeat-interval"] = format_duration(soon_ns)
        names.append(f"heartbeats every {format_duration(soon_ns)}")
    if situation.is_lost_silently and restart.heartbeat_timeout_ns > HEARTBEATS_PER_TIMEOUT * soon_ns:
        point["restart.heartbeat-timeout"] = timeout = format_duration(HEARTBEATS_PER_TIMEOUT * soon_ns)
        names.append(f"lost after {timeout}")
    elif restart.heartbeat_failures is None:
        counting: Point = {"restart.heartbeat-failures": Restart().heartbeat_failures}
        if options_missing_in_release(situation.scenario, counting):
            yield Change(HEARTBEATS, "failing heartbeats count", counting)  # reported, and not tried
        else:
            point |= counting
            names.append("failing heartbeats count")
    if point:
        yield Change(HEARTBEATS, ", ".join(names), point)


def _restarts(situation: Situation) -> Iterator[Change]:
    """Propose a restart strategy that does not give up before there are slots; or shorter delays, if it does not give up."""
    scenario, restart = situation.scenario, situation.scenario.restart
    kind = KINDS[restart.strategy]
    if slots_ms(scenario) is None:
        usual = Restart().strategy
        key = kind.limit or "strategy"
        name, value = PATIENT[key] if kind.limit else (f"restart strategy {usual}", usual)
        yield Change(RESTARTS, name, {f"restart.{key}": value})
        return
    # with shorter delays, the strategy may use up its attempts before there are slots
    for soon_ns in (_soon_ns(situation, DELAYS_PER_LIMIT), *_LATER_NS):
        long = [name for name in kind.delays if getattr(restart, f"{name}_ns") > soon_ns]
        shorter: dict[str, Any] = {f"{name}_ns": soon_ns for name in long}
        if long and slots_ms(replace(scenario, restart=replace(restart, **shorter))) is not None:
            soon = format_duration(soon_ns)
            name = f"restart delays up to {soon}" if len(kind.delays) > 1 else f"restart delay {soon}"
            yield Change(RESTARTS, name, {f"restart.{name}": soon for name in long})
            return


HEARTBEATS = Lever(
    "heartbeats",
    (OUTAGE,),
    _heartbeats,
    costs="more messages; a network that fails for two intervals loses healthy task managers",
    short_caution="heartbeat.interval is the cluster's: all its jobs get it",
    caution="heartbeat.interval is an option of the cluster, and all its jobs get it; two that fail in a row lose a task manager",
    source=f"{_CONFIG}/#heartbeat-interval, FLINK-23209",
)
RESTARTS = Lever(
    "restart strategy",
    (OUTAGE,),
    _restarts,
    costs="a job that fails again and again restarts more often",
    source="nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/task_failure_recovery",
)


# ---- Levers that need more than configuration: a spare TaskManager, parallelism of a fully busy vertex, capacity of asynchronous
# I/O, cores, file merging, prefixes of an object store.

MANY_FILES = 100
"""Minimum files per checkpoint for which merging is proposed."""
REQUESTS_PER_FILE = 3
"""Requests to the metadata server of a distributed file system for each file: it is created, gets a block, and is closed."""
MORE_PREFIXES = 8
ROOM_OF_FIRINGS = 1.5
"""Factor by which windows fire for less than the limit on checkpoints, with the proposed parallelism."""


def _spare(situation: Situation) -> Iterator[Change]:
    """Propose a spare TaskManager, unless a lost one is replaced at once already."""
    if situation.scenario.restart.replacement != Restart().replacement:
        yield Change(SPARE, "a spare TaskManager", {"restart.replacement": "0 s"})


def _async_capacity(situation: Situation) -> Iterator[Change]:
    """Propose twice the capacity of asynchronous I/O, if the fully busy vertex uses it."""
    vertex = situation.scenario.job.vertex(situation.full) if situation.full else None
    if vertex is not None and vertex.async_io is not None:
        capacity = 2 * vertex.async_io.capacity
        point = {key_of(("job", vertex.name, "async-io", "capacity")): capacity}
        yield Change(ASYNC_CAPACITY, f"async-io.capacity {capacity} of {vertex.name}", point)


def _parallelism(situation: Situation) -> Iterator[Change]:
    """Propose twice the parallelism of the fully busy vertex, or enough for windows that fire to keep the limit on checkpoints."""
    name, factor = situation.full, 2
    if situation.rare is not None and situation.rare.vertex and situation.checkpoint_limit_ms:
        name = situation.rare.vertex
        fire_ms = firings_ns(situation.scenario)[name] / 1e6
        factor = max(ceil(fire_ms * ROOM_OF_FIRINGS / situation.checkpoint_limit_ms), 2)
    if name and (point := more_subtasks(situation, name, factor)):
        yield Change(PARALLELISM, f"{factor} x parallelism of {name}", point)


def more_subtasks(situation: Situation, name: str, factor: int) -> Point:
    """Return the change that gives a vertex `factor` times as many subtasks, or {} if it cannot have as many.

    Vertices connected to it by forward edges get the same parallelism.  A list of weights per subtask is
    marked as counted at the current parallelism, so that the weights are redistributed with the key groups.
    """
    job = situation.scenario.job
    point: Point = {}
    for other in _forwarded(job, name):
        vertex = job.vertex(other)
        is_by_subtask = "rate-per-subtask" in _document(situation, other, "source")
        if vertex.parallelism * factor > vertex.max_parallelism or is_by_subtask:
            return {}
        point[key_of(("job", other, "parallelism"))] = vertex.parallelism * factor
        for inlet, written in _document(situation, other, "input").items():
            weights = written.get("weights") if isinstance(written, dict) else None
            if isinstance(weights, list):
                point[key_of(("job", other, "input", inlet, "weights"))] = {"counted": list(weights)}
    return point


def _forwarded(job: Job, name: str) -> list[str]:
    """Return the vertex and all that are connected to it by forward edges, which must have the same parallelism."""
    connected = [name]
    for member in connected:
        for vertex in job.vertices:
            for inlet in vertex.inputs:
                if SHIPPING[inlet.ship].one_to_one and member in (vertex.name, inlet.upstream):
                    connected += [other for other in (vertex.name, inlet.upstream) if other not in connected]
    return connected


def _cores(situation: Situation) -> Iterator[Change]:
    """Propose twice the cores, if the scenario limits them."""
    cores = situation.scenario.cluster.cores
    if cores is not None:
        yield Change(CORES, f"{2 * cores} cores", {"cluster.cores": 2 * cores})


def _file_merging(situation: Situation) -> Iterator[Change]:
    """Propose file merging, if checkpoints have many subtasks, and so many files, or more than the metadata server serves within the limit."""
    subtasks = sum(vertex.parallelism for vertex in situation.scenario.job.vertices)
    storage, limit_ms = situation.scenario.storage, situation.checkpoint_limit_ms
    served = (None if storage.dfs is None else storage.dfs.requests_per_second) or inf
    is_slow = limit_ms is not None and subtasks > served * limit_ms / 1e3 / REQUESTS_PER_FILE
    if storage.merging is None and (subtasks >= MANY_FILES or is_slow):
        yield Change(FILE_MERGING, "merged files", {"storage.file-merging": "on"})


def _prefixes(situation: Situation) -> Iterator[Change]:
    """Propose more prefixes of an object store, if it limits requests per prefix."""
    store = situation.scenario.storage.object_store
    if store is not None and store.requests_per_second is not None:
        prefixes = store.prefixes * MORE_PREFIXES
        yield Change(PREFIXES, f"{prefixes} prefixes", {"storage.object-store.prefixes": prefixes})


SPARE = Lever(
    "spare TaskManager",
    (REPLACEMENT,),
    _spare,
    costs="one TaskManager that is idle",
    caution="the option is of Kubernetes and YARN; a standalone cluster needs one TaskManager more than its jobs have slots for",
    short_caution="a standalone cluster: start one TaskManager more",
    source=f"{_CONFIG}/#slotmanager-redundant-taskmanager-num",
    is_configuration=False,
    flink_keys={"slotmanager.redundant-taskmanager-num": "1"},
    since="1.12",  # FLINK-18625
)
ASYNC_CAPACITY = Lever(
    "async-io.capacity",
    (QUEUE, ALIGNMENT, REPLAY),
    _async_capacity,
    costs="more requests under way, which a restore makes again",
    ask="can the service that answers take twice as many requests at a time?",
    short_ask="can the service take twice as many requests at a time?",
    caution="the capacity is an argument of AsyncDataStream; of SQL lookups: table.exec.async-lookup.buffer-capacity",
    short_caution="of SQL lookups: table.exec.async-lookup.buffer-capacity",
    source=f"{_DOCS}/dev/datastream/operators/asyncio",
    is_configuration=False,
)
PARALLELISM = Lever(
    "parallelism",
    (QUEUE, ALIGNMENT, UPLOAD, REPLAY),
    _parallelism,
    costs="as many slots more, and a restart that rescales",
    short_caution="by setParallelism; since 1.17 pipeline.jobvertex-parallelism-overrides",
    ask="is one key hot? More subtasks do not share it out",
    caution="a chain of operators scales by setParallelism, and since Flink 1.17 by pipeline.jobvertex-parallelism-overrides",
    source=f"{_DOCS}/deployment/elastic_scaling",
    is_configuration=False,
)
CORES = Lever("cores", (QUEUE, ASYNC_WORK, LOSS), _cores, costs="larger TaskManagers", is_configuration=False)
FILE_MERGING = Lever(
    "file merging",
    (UPLOAD, CHANNEL_STATE),
    _file_merging,
    costs="files live for longer than their checkpoint",
    caution="Flink 1.20 and later (FLIP-306)",
    source=f"{_DOCS}/dev/datastream/fault-tolerance/checkpointing",
)
PREFIXES = Lever(
    "prefixes",
    (UPLOAD, CHANNEL_STATE),
    _prefixes,
    costs="a layout of checkpoints that tools have to know",
    short_caution="the path of checkpoints has to contain _entropy_",
    caution="the path of checkpoints (state.checkpoints.dir) has to contain the entropy key, which Flink replaces in paths of data files",
    source=f"{_DOCS}/deployment/filesystems/s3",
    flink_keys={"s3.entropy.key": "_entropy_", "s3.entropy.length": "4"},
)


# ---- All levers, in the order in which an operator would try them: configuration first, machines last.

LEVERS: tuple[Lever, ...] = (
    BARRIERS,
    NO_PAUSE,
    TIMEOUT,
    TOLERANCE,
    PREFIXES,
    FILE_MERGING,
    INCREMENTAL,
    ROCKSDB,
    CHANGELOG,
    LOCAL_RECOVERY,
    RESTARTS,
    HEARTBEATS,
    TRANSFER_THREADS,
    SEGMENTS,
    SPARE,
    ASYNC_CAPACITY,
    PARALLELISM,
    CORES,
)
MIN_SAVED_SHARE = 0.05
"""Minimum share of the exceeding time that a lever must be able to shorten to be tried."""
_SHARE_STEPS = 4
"""Shares are rounded to quarters, so that levers that help about equally are tried in the order of LEVERS."""


def rank_levers(situation: Situation) -> Iterator[tuple[Lever, tuple[Change, ...]]]:
    """Yield (lever, its proposed changes): configuration first; among equals, the lever that may shorten most.

    Levers that do not apply or cannot shorten the exceeding time notably are left out, and changes that the job's version
    of Flink lacks.
    """
    order = sorted(
        LEVERS, key=lambda lever: (not lever.is_configuration, -round(lever.share(situation) * _SHARE_STEPS))
    )
    for lever in order:
        proposed = lever.proposes(situation) if lever.share(situation) > MIN_SAVED_SHARE else ()
        changes = tuple(change for change in proposed if not lever.later_than(situation.scenario, change))
        if changes:
            yield lever, changes


def not_released(situation: Situation) -> dict[str, str]:
    """Return {barrier mode or change: the release that brought it} of all that applies to a job and its version of Flink lacks."""
    found = later_protocols(situation.scenario)
    for lever in LEVERS:
        for change in lever.proposes(situation):
            if release := lever.later_than(situation.scenario, change):
                found[change.name] = release
    return found


# ---- Option values that can keep every candidate from the limits, and changes to values that do not.

# ---- Limiting keys. A Flink key binds (is limiting) if its value delays something: a checkpoint waits for min-pause, a restart
# for its delay, an upload for a thread. For each key that may bind, this table has a value with which it does not.
#
# If no setting keeps the limits, all of these keys are set to non-binding values. If the limits are kept then, some of the
# keys are the cause, and no more machines are needed.

DEFAULT = "default"
"""Placeholder for the default of the option, which is Flink's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The values of an option that do not bind: at most `value`, at least `value`, or only `value` ("instead")."""

    bound: Literal["at most", "at least", "instead"]
    value: Any
    costs: str

    def relaxed(self, option: OptionValue) -> Any:
        """Return the non-binding value, or None if the current value of the option does not bind."""
        value, record = option.value, option.key.record
        free = record.default if self.value == DEFAULT else self.value
        if value is None and self.bound != "instead":
            return None  # unlimited, or derived from another option
        if self.bound == "instead":
            return free if value != free else None
        number = math.inf if record.leaf is BUFFER_TIMEOUT and value < 0 else value
        return free if (number < free if self.bound == "at least" else number > free) else None


_VALUES: dict[Literal["at most", "at least", "instead"], dict[str, tuple[Any, str] | str]] = {
    "at most": {
        "checkpoint.min-pause": (0, "checkpoints may follow each other without a pause"),
        "checkpoint.max-concurrent": (1, "a checkpoint begins when the one before it has ended"),
        "checkpoint.subtasks-per-channel-state-file": (1, "more files for data in flight"),
        "job.VERTEX.state.lsm.memtable": "more files of level 0",
        "job.VERTEX.state.changelog.materialize": "state is written in full more often",
        "job.VERTEX.state.changelog.threshold": "more uploads",
        "job.VERTEX.state.changelog.batch-delay": "more uploads",
        "job.VERTEX.state.changelog.batch-size": "more uploads",
        "cluster.network.segment-size": "more buffers to handle, and less in flight",
        "cluster.network.buffers-per-channel": "less in flight",
        "cluster.network.floating-buffers-per-gate": "less in flight",
        "cluster.network.max-buffers-per-channel": "less in flight",
        "cluster.network.buffer-timeout": (100 * MS, "more and smaller buffers"),
        "cluster.network.debloat.target": "smaller buffers",
        "cluster.network.debloat.period": "buffer sizes change more often",
        "cluster.network.debloat.samples": "buffer sizes follow short bursts",
        "cluster.network.debloat.threshold": "buffer sizes change more often",
        "cluster.network.debloat.min": "smaller buffers",
        "storage.object-store.part": "more requests",
        "restart.delay": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.initial": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.multiplier": "a crash-looping job restarts more often",
        "restart.max": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.within": "a crash-looping job never reaches FAILED",
        "restart.heartbeat-timeout": "a TaskManager that pauses this long, e.g. for garbage collection, is considered lost",
        "restart.heartbeat-interval": (SOON_NS, "more messages"),
        "restart.slot-check": "slot requests are checked more often",
        "restart.stabilization": (SECOND, "the job may start with fewer slots"),
        "restart.cooldown": (SECOND, "more restarts while slots come"),
        "restart.rescale-stabilization": (SECOND, "more restarts while slots come"),
        "restart.rescale-delay": (SECOND, "rescaling reprocesses more records"),
    },
    "at least": {
        "checkpoint.timeout": (3600 * SECOND, "a checkpoint that hangs is noticed later"),
        "checkpoint.tolerable-failed": (TOLERABLE_FAILURES, "the job keeps running longer while checkpoints fail"),
        "checkpoint.transfer-threads": (MORE_THREADS, "more requests to storage at a time"),
        "job.VERTEX.state.lsm.table": "larger files are merged",
        "job.VERTEX.state.lsm.base": "larger files are merged",
        "job.VERTEX.state.changelog.upload-threads": "more requests to storage at a time",
        "job.VERTEX.state.changelog.upload-timeout": "an upload that hangs is noticed later",
        "job.VERTEX.state.changelog.upload-attempts": "an upload that fails is noticed later",
        "storage.inline-threshold": "a larger _metadata",
        "storage.object-store.parallel-parts": "more requests at a time",
        "restart.attempts": (WITHOUT_END, "a crash-looping job never reaches FAILED"),
        "restart.rate": (100, "a crash-looping job never reaches FAILED"),
        "restart.resource-wait": "a job without slots fails later",
    },
    "instead": {
        "checkpoint.local-recovery": (True, "a second copy of state on the disk of each TaskManager"),
        "checkpoint.incremental": (True, "more files in storage; a restore reads more of them"),
        "checkpoint.interruptible-timers": (True, "records come between the timers of a watermark"),
        "job.VERTEX.state.changelog.storage": ("filesystem", "the log is written to checkpoint storage"),
        "restart.strategy": ("exponential-delay", "a crash-looping job restarts more often"),
        "restart.failover": ("region", "regions restart alone"),
        "restart.heartbeat-failures": (2, "a TaskManager is lost after two failed heartbeats in a row"),
        "restart.scheduler": ("default", "the job waits for all of its slots"),
    },
}
"""Kind of bound -> {option: (non-binding value, its cost), or the cost alone if the value is the default}."""
CONSTRAINTS = {
    option: Constraint(bound, DEFAULT, value) if isinstance(value, str) else Constraint(bound, *value)
    for bound, options in _VALUES.items()
    for option, value in options.items()
}
"""Option -> its non-binding values.  Other options that may bind are changed by levers and candidates (docs/adding.md)."""
_FAILURE_OPTIONS = ("checkpoint.timeout", "checkpoint.tolerable-failed")
"""Options that matter only if checkpoints fail."""
_RECOVERY_OPTION_PREFIXES = ("restart.", "checkpoint.local-recovery")
"""Prefixes of options that matter only for recovery."""


def relaxations(scenario: Scenario, breaks: Sequence[str], *, fails: bool) -> Iterator[Change]:
    """Yield the change to a non-binding value, for each Flink key that may bind.

    `breaks`: the exceeded limits.  `fails`: True if checkpoints fail.  Keys that concern neither are left out.
    """
    for option in option_values(scenario):
        path = ".".join(option.key.path)
        constraint = CONSTRAINTS.get(path)
        concerns = (
            fails
            if path in _FAILURE_OPTIONS
            else "recovery_ms" in breaks
            if path.startswith(_RECOVERY_OPTION_PREFIXES)
            else True
        )
        value = (
            constraint.relaxed(option) if constraint is not None and concerns and _applies(scenario, option) else None
        )
        if constraint is not None and value is not None:
            name, written = option.path.rpartition(".")[2], option.scenario_value(value)
            of_cluster = HEARTBEATS if path.startswith("restart.heartbeat") else None
            caution, short = (of_cluster.caution, of_cluster.short_caution) if of_cluster else ("", "")
            lever = Lever(name, costs=constraint.costs, caution=caution, short_caution=short)
            section, is_debloating = option.path.rpartition(".")[0], path.startswith("cluster.network.debloat.")
            # the section is replaced as a whole, since `debloat: on` has no keys
            point = {section: {name: written}} if is_debloating else {option.path: written}
            if options_missing_in_release(scenario, point):
                continue
            yield Change(lever, f"{name} {str(written).lower()}", point)


def _applies(scenario: Scenario, option: OptionValue) -> bool:
    """Return False for options that have no effect in this scenario."""
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    needed: dict[str, bool] = {
        "checkpoint.incremental": any(state.kind.keeps_files for state in states),
        "checkpoint.transfer-threads": any(state.kind.keeps_files for state in states),
        "checkpoint.local-recovery": bool(states),
        "checkpoint.interruptible-timers": bool(scenario.job.event_time_windows)
        and scenario.checkpoint.barriers.record.overtakes,
        "checkpoint.subtasks-per-channel-state-file": scenario.checkpoint.barriers.record.overtakes,
        "restart.strategy": scenario.restart.strategy == "none",
    }
    return needed.get(option.path, True)

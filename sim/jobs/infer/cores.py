"""Infer work before the barrier, asynchronous I/O, and contention for cores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from statistics import fmean, median, stdev
from typing import Any, NamedTuple, Protocol

from sim.jobs.infer.draft import Draft, Section, duration_3_digits, format_whole_ms
from sim.jobs.infer.file_history import acknowledged_by, own_bytes
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_answers import CheckpointConfig, TaskManagerInfo
from sim.jobs.source.rest_job import Flows, RestInput, RestJob, RestVertex
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.randomness import slowdown
from sim.model.units import format_number, format_share, parse_duration

# ---- Distinguish work before the barrier from latency of scheduling and acknowledgement.  Flink reports neither.
#
#   trigger                                                                       acknowledgement received
#   |-- start delay --|-- alignment --|-- sync phase --|-- async phase --|-- remainder --|
#
# The remainder of the end-to-end duration contains both.  Work before the barrier (`prepareSnapshotPreBarrier`: flushes
# of sinks, SQL windows, draining asynchronous state) delays the barrier, so it ends before the first downstream subtask
# receives it.  Latency affects all vertices of a job alike.  Therefore a vertex is assumed to work before the barrier only
# if its remainders exceed those of vertices that cannot.
#
# An unaligned snapshot does not wait for the other barriers; that wait is part of its asynchronous phase.

MIN_MEAN_MS = NEGLIGIBLE_MS / 3
"""Minimum mean of the remainders of a vertex that works before the barrier.  A smaller one is noise with outliers."""
MIN_CHECKPOINTS_WITH_WORK = 2
"""Minimum number of checkpoints with a long remainder.  A single one is an outlier."""
ALL_TO_ALL = ("HASH", "REBALANCE", "BROADCAST", "SHUFFLE", "CUSTOM", "GLOBAL")

Acknowledged = Mapping[str, Mapping[int, RecordedSubtask]]
"""Vertex -> index -> acknowledgement, in one checkpoint."""


class WatchedJob(Protocol):
    """A job with a history of checkpoints, from any source.  It is hashed by identity, so that results can be cached."""

    def __hash__(self) -> int: ...

    @property
    def vertices(self) -> tuple[RestVertex, ...]: ...

    @property
    def checkpoints(self) -> tuple[RecordedCheckpoint, ...]: ...

    @property
    def checkpoint_config(self) -> CheckpointConfig: ...


@dataclass(frozen=True, slots=True)
class Rest:
    """The remainder of a subtask's end-to-end duration that no field of Flink's statistics covers [ms]."""

    checkpoint: RecordedCheckpoint
    subtask: RecordedSubtask
    all_ms: float
    at_most_ms: float  # upper bound of the work before the barrier: until the first downstream subtask had all barriers

    @property
    def before_barrier_ms(self) -> float:
        """The part that may be work before the barrier."""
        return max(min(self.all_ms, self.at_most_ms), 0.0)

    @property
    def latency_ms(self) -> float:
        """The part that cannot be work before the barrier."""
        return max(self.all_ms, 0.0) - self.before_barrier_ms


def typical_checkpoints(job: WatchedJob) -> list[RecordedCheckpoint]:
    """Return the completed periodic checkpoints, oldest first.

    The job's first checkpoint is left out if there are others, because caches were cold and queues were short.
    """
    completed = [point for point in job.checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return completed[1:] if len(completed) > 1 and completed[0].id == 1 else completed


def is_unaligned(job: WatchedJob) -> bool:
    """Return whether unaligned checkpoints are enabled, with or without an aligned timeout.

    If the configuration is unknown, the history tells.
    """
    if job.checkpoint_config.is_known:
        return bool(job.checkpoint_config.unaligned_checkpoints)
    tasks = (task for point in job.checkpoints for task in point.tasks.values())
    return any(subtask.unaligned_checkpoint for task in tasks for subtask in task.subtasks)


@lru_cache(maxsize=1)
def rests(job: WatchedJob) -> Mapping[str, list[Rest]]:
    """Return the remainders of all acknowledgements in usual checkpoints, by vertex."""
    remainders: dict[str, list[Rest]] = {vertex.name: [] for vertex in job.vertices}
    for point in typical_checkpoints(job):
        acknowledged = acknowledged_in(job, point)
        for vertex in job.vertices:
            for subtask in acknowledged[vertex.name].values():
                begun_ms = _snapshot_start_ms(subtask, job)
                phases_ms = max(subtask.checkpoint.sync, 0) + max(subtask.checkpoint.async_, 0)
                at_most_ms = barrier_at_readers_ms(job, vertex.name, subtask, acknowledged) - begun_ms
                remainders[vertex.name].append(
                    Rest(point, subtask, subtask.end_to_end_duration - begun_ms - phases_ms, at_most_ms)
                )
    return remainders


def works_before_barrier(job: WatchedJob, vertex: str) -> bool:
    """Return whether a vertex works before it forwards the barrier: its remainders exceed the latency of other vertices."""
    remainders = rests(job)
    if (
        len({rest.checkpoint.id for rest in remainders[vertex] if rest.before_barrier_ms > NEGLIGIBLE_MS})
        < MIN_CHECKPOINTS_WITH_WORK
    ):
        return False
    likely = {
        name
        for name, vertex_rests in remainders.items()
        if _mean_of_long(rest.before_barrier_ms for rest in vertex_rests) > MIN_MEAN_MS
    }
    latencies = [
        rest.latency_ms if name in likely else rest.all_ms
        for name, vertex_rests in remainders.items()
        if name != vertex
        for rest in vertex_rests
    ]
    return _mean_of_long(rest.before_barrier_ms for rest in remainders[vertex]) > MIN_MEAN_MS + _mean_of_long(latencies)


def _mean_of_long(durations_ms: Iterable[float]) -> float:
    """Return the mean, with negligible durations counted as 0."""
    values = list(durations_ms)
    return math.fsum(value for value in values if value > NEGLIGIBLE_MS) / max(len(values), 1)


def acknowledged_in(job: WatchedJob, point: RecordedCheckpoint) -> Acknowledged:
    """Return the acknowledgements of a checkpoint whose duration is known, by vertex and subtask."""
    return {
        vertex.name: {
            subtask.index: subtask
            for subtask in acknowledged_by(point, vertex.name)
            if subtask.end_to_end_duration >= 0
        }
        for vertex in job.vertices
    }


def _snapshot_start_ms(subtask: RecordedSubtask, job: WatchedJob) -> float:
    """Return the time [ms] from the trigger to the last barrier or, in an unaligned checkpoint, to the first barrier.

    With an aligned timeout, the snapshot began at an unknown time between the two.  Then the last barrier is used.
    """
    config = job.checkpoint_config
    if config.unaligned_checkpoints and not config.aligned_checkpoint_timeout:
        return max(subtask.start_delay, 0)
    return last_barrier_ms(subtask)


def barrier_at_readers_ms(job: WatchedJob, vertex: str, subtask: RecordedSubtask, acknowledged: Acknowledged) -> float:
    """Return the time [ms] from the trigger until the first subtask downstream of `subtask` had all barriers.

    It is infinite if there is no downstream subtask.
    """
    bounds = [
        _arrival_ms(edge, subtask, acknowledged[reader.name])
        for reader in job.vertices
        for edge in reader.inputs
        if edge.upstream == vertex and edge.is_pipelined and acknowledged[reader.name]
    ]
    return min(bounds, default=math.inf)


def last_barrier_ms(subtask: RecordedSubtask) -> int:
    """Return the time [ms] from the trigger until a subtask had all barriers."""
    return max(subtask.start_delay, 0) + max(subtask.alignment.duration, 0)


def _arrival_ms(edge: RestInput, subtask: RecordedSubtask, readers: Mapping[int, RecordedSubtask]) -> float:
    """Return an upper bound on the time [ms] until a reader on this edge had the barrier of `subtask`."""
    arrivals_ms = {index: last_barrier_ms(reader) for index, reader in readers.items()}
    if edge.ship in ALL_TO_ALL:
        return min(arrivals_ms.values())
    return arrivals_ms.get(subtask.index, math.inf) if edge.ship == "FORWARD" else max(arrivals_ms.values())


# ---- Time for which snapshots block the task thread, from the checkpoint history.
#
# Flink reports the synchronous phase, but not work before the barrier.


def infer_pauses(section: Section, job: RestJob, vertex: RestVertex, *, with_sync: bool = True) -> None:
    """Set `snapshot: {pre-barrier, sync}` if not negligible; `with_sync` is False if the backend explains the sync phase."""
    remainders, works = rests(job)[vertex.name], works_before_barrier(job, vertex.name)
    pauses = [pre_barrier_ms(rest, works=works) for rest in remainders]
    if long := [pause for pause in pauses if pause]:
        count = f"{len(long)} of {len(pauses)} snapshots"
        origin = f"median of end-to-end duration less start delay, alignment, sync and async duration in {count}"
        if job.readers(vertex.name):
            origin += ", at most until its readers have the barrier"
        section.put("snapshot.pre-barrier", format_whole_ms(median(long)), origin)
        if len(long) * 20 < len(pauses) * 19:
            share = Fraction(round(100 * len(long) / len(pauses)), 100)
            section.put("snapshot.probability", format_share(share), f"{len(long)} / {len(pauses)}")
    syncs = [rest.subtask.checkpoint.sync for rest in remainders if rest.subtask.checkpoint.sync >= 0]
    if with_sync and not long and syncs and median(syncs) > NEGLIGIBLE_MS:
        origin = f"median sync duration of {len(syncs)} snapshots"
        section.put("snapshot.sync", format_whole_ms(median(syncs)), origin)


def busy_in_snapshots_ms(job: RestJob, vertex: RestVertex, flow: Flows) -> float:
    """Return the busy time that snapshots of a vertex took, summed over its subtasks [ms]."""
    works = works_before_barrier(job, vertex.name)
    return float(
        sum(
            pre_barrier_ms(rest, works=works) + max(rest.subtask.checkpoint.sync, 0)
            for rest in rests(job)[vertex.name]
            if flow.begun_ms <= rest.checkpoint.trigger_timestamp + max(rest.subtask.start_delay, 0) <= flow.ended_ms
        )
    )


def pre_barrier_ms(rest: Rest, *, works: bool) -> float:
    """Return the time of work before the barrier, or 0 if it is negligible."""
    return rest.before_barrier_ms if works and rest.before_barrier_ms > NEGLIGIBLE_MS else 0.0


# ---- Asynchronous I/O: pending requests are operator state, one record per request (AsyncWaitOperator).
#
# Flink has no counter for pending requests, but snapshots contain them.  Their number / the arrival rate is the latency
# of a request (Little's law).  If the number reaches the capacity, the thread blocks until a request completes, which
# Flink counts as busy time.  Then busy time / records is not a service time.

NEGLIGIBLE_SERVICE = "1 us"
"""Service time that is assumed for an operator at its capacity."""

_ASYNC_NAME = re.compile(r"\basync", re.IGNORECASE)
"""AsyncDataStream calls its operator "async wait operator", SQL "AsyncCalc", "AsyncCorrelate" or "LookupJoin(..., async=[true])"."""
_SINK_NAME = re.compile(r"writer|committer", re.IGNORECASE)
"""The operator state of sinks consists of committables, not of requests."""
_MIN_REQUESTS, _MIN_CHECKPOINTS = 3, 3
"""Minimum median number of requests, and of checkpoints with state, to infer asynchronous I/O."""
_MIN_BUSY_SHARE_WHEN_FULL = 0.9
"""Minimum busy share of a thread that blocks because the capacity is reached."""
_EQUAL_COUNT_SPREAD = 0.25
"""Maximum standard deviation / median of the number of requests at capacity; it varies because records differ in size."""
_LENGTH_BYTES = 4  # before every record on the wire (SpanningRecordSerializer)
_CAPACITY = 100  # AsyncDataStream.DEFAULT_QUEUE_CAPACITY


def infer_async_io(draft: Draft, job: RestJob) -> None:
    """Set `async-io` of vertices whose operator state consists of pending requests."""
    for vertex in job.vertices:
        flow, section = job.flows[vertex.name], draft.vertex(vertex.name)
        is_named = any(_ASYNC_NAME.search(name) for name in (*vertex.chain, vertex.description))
        is_other = any(_SINK_NAME.search(name) for name in vertex.chain) or any(
            edge.ship == "HASH" for edge in vertex.inputs
        )
        if not vertex.inputs or (is_other and not is_named) or "window" in section.values:
            continue
        per_second = flow.per_second("records_in") / vertex.parallelism
        requests = [] if is_other else _requests_in_snapshots(job, vertex.name, flow)
        has_requests = len(requests) >= _MIN_CHECKPOINTS and median(requests) >= _MIN_REQUESTS
        if per_second > 0 and (is_named or has_requests):
            _put_async_io(section, flow, requests, per_second, is_named=is_named)


def _requests_in_snapshots(job: RestJob, vertex: str, flow: Flows) -> list[float]:
    """Return the mean number of records in the operator state of a subtask, per checkpoint; empty if sizes are unknown."""
    size = flow.bytes_per_record - _LENGTH_BYTES
    snapshots = [list(map(own_bytes, acknowledged_by(point, vertex))) for point in typical_checkpoints(job)]
    return [fmean(sizes) / size for sizes in snapshots if sizes] if size > 0 else []


def _put_async_io(
    section: Section, flow: Flows, requests: Sequence[float], per_second: float, *, is_named: bool
) -> None:
    """Set `async-io`.  `per_second` is the rate of a subtask; `is_named` if the plan names the operator as asynchronous."""
    usual, most = median(requests) if requests else 0.0, max(requests, default=0.0)
    is_full = (
        flow.share("busy_ms") >= _MIN_BUSY_SHARE_WHEN_FULL
        and len(requests) >= _MIN_CHECKPOINTS
        and stdev(requests) <= _EQUAL_COUNT_SPREAD * usual
    )
    if usual > 0:
        latency = duration_3_digits(usual / per_second * 1e9)
        why = f"{usual:,.1f} requests in the operator state of a subtask (median) / {per_second:,.1f} records/s of each"
        if is_named:
            section.put("async-io.latency", latency, why)
        else:
            question = "Does it send asynchronous requests (AsyncDataStream)?"
            section.ask("async-io.latency", latency, question, f"yes. {why}.")
        section.drop("snapshot.operator-state")
        if not section.values.get("snapshot", True):
            section.drop("snapshot")
    else:
        question = "How long does a request take until its response?"
        section.ask("async-io.latency", "50 ms", question, "50 ms: no snapshot held a request.")
    if is_full:
        origin = f"{min(requests):,.0f} to {most:,.0f} requests in each checkpoint, while its thread is always busy"
        section.put("async-io.capacity", round(usual), origin)
        question = "How long does one record keep its thread busy, without waiting for capacity?"
        assumed = f"{NEGLIGIBLE_SERVICE}, because Flink counts that wait as busy."
        section.ask("service", NEGLIGIBLE_SERVICE, question, assumed)
    else:
        capacity, question = (
            max(_CAPACITY, math.ceil(most)),
            "How many requests may be pending in a subtask (capacity)?",
        )
        section.ask("async-io.capacity", capacity, question, f"{capacity}; at most {most:,.0f} were observed.")


# ---- Cores of the job's hosts, and service times on an idle core.
#
# Flink counts a thread that waits for a core as busy, so measured service times grow with the number of busy threads,
# and with the parallelism.  A scenario has the service times on an idle core and the number of cores.
#
# Flink also counts a thread that blocks or sleeps as busy.  The CPU time of the processes distinguishes the two cases:
# only work uses it.

_MIN_SLOWDOWN = 0.02
"""Minimum slowdown (0.02 is 2 %).  A smaller one is within the error of the counters."""
_MIN_CORE_SHARE = 0.7
"""Minimum cores used / cores that the busy time implies.  With less, threads block or sleep."""
_EXCESS_ON_IDLE_CORES = 2.0
"""By how much the waiting of threads for cores exceeds that of independent ones, at no load; at full load it does not.

With it, simulations of four jobs of tests/data/users-jobs (R4, R6, R8, J4) keep as many threads busy as were recorded, within
9 %.  Where the CPU time is known, the excess was 1.8 to 8 in seven recordings of two jobs.
"""


class HostLoad(NamedTuple):
    """The task threads of a job on one host."""

    busy: Sequence[float]  # busy share of each thread
    cores: int
    used_cores: float | None  # cores that the processes with these threads use; None if their CPU time is unknown

    @property
    def threads(self) -> float:
        """The mean number of busy threads."""
        return math.fsum(self.busy)

    @property
    def independent_slowdown(self) -> float:
        """How many times as long records take as on idle cores, if threads are runnable at independent times."""
        return slowdown(self.busy, self.cores)

    @property
    def is_blocked(self) -> bool:
        """Whether threads block, sleep or wait for other processes, because they use far fewer cores than work would."""
        expected = self.threads / self.independent_slowdown
        return self.used_cores is not None and self.used_cores < _MIN_CORE_SHARE * expected

    @property
    def slowdown(self) -> float:
        """How many times as long records take as on idle cores.

        It is busy time / CPU time.  If the CPU time is unknown, it is estimated: threads are runnable together more often
        than at independent times, because buffers are flushed together, and most so on idle cores
        (`_EXCESS_ON_IDLE_CORES`).
        """
        independent = self.independent_slowdown
        if self.used_cores is not None:
            return max(independent, self.threads / self.used_cores) if self.used_cores else independent
        idle = 1 - min(self.threads / independent / self.cores, 1.0)
        return 1 + (independent - 1) * (1 + _EXCESS_ON_IDLE_CORES * idle)


def host_loads(job: RestJob, busy: Mapping[tuple[str, int], float]) -> list[HostLoad]:
    """Return the load of each host whose cores are known.  `busy` has the busy share of subtasks (vertex, index)."""
    managers = {manager.id: manager for manager in job.task_managers if manager.hardware.cpu_cores > 0}
    manager_of = task_managers_of(job)
    threads_of: dict[str, list[tuple[TaskManagerInfo, float]]] = {}
    for (vertex, subtask), share in busy.items():
        if (manager := managers.get(manager_of[vertex].get(subtask, ""))) is not None:
            threads_of.setdefault(manager.address, []).append((manager, share))
    loads = []
    for _, threads in sorted(threads_of.items(), key=itemgetter(0)):
        used = [job.cores_used.get(name) for name in {manager.id for manager, _ in threads}]
        used_cores = None if None in used else math.fsum(filter(None, used))
        cores = min(manager.hardware.cpu_cores for manager, _ in threads)
        loads.append(HostLoad([share for _, share in threads], cores, used_cores))
    return loads


def infer_cores(draft: Draft, job: RestJob) -> None:
    """Set `cluster: {cores, hosts, services}`, and divide service times by the slowdown that contention for cores caused.

    If the number of cores is unknown, nothing is set.  `draft.core_load` is set as well, because threads that serialize
    heap state share the cores.
    """
    managers = {manager.id: manager for manager in job.task_managers if manager.hardware.cpu_cores > 0}
    used = {manager for subtasks in task_managers_of(job).values() for manager in subtasks.values()}
    if not used or not used <= managers.keys():
        draft.remark_question("How many cores does each host have?", "so many that no thread waits for one.")
        return
    hosts, cores = {managers[name].address for name in used}, min(managers[name].hardware.cpu_cores for name in used)
    busy = {
        (vertex.name, subtask): ms_per_s / 1000
        for vertex in job.vertices
        if not _waits_for_requests(draft.vertex(vertex.name).values)
        for subtask, ms_per_s in enumerate(job.flows[vertex.name].rates("busy_ms").tolist())
        if not math.isnan(ms_per_s)
    }
    load = max(host_loads(job, busy), key=lambda load: load.threads, default=HostLoad((), cores, None))
    threads_busy = f"{format_number(Fraction(round(10 * load.threads), 10))} threads of tasks are busy at once"
    used_cores, contend = load.used_cores, load.independent_slowdown > 1 + _MIN_SLOWDOWN
    blocked = contend and load.is_blocked
    draft.core_load = (load.threads if not blocked or used_cores is None else used_cores) / cores
    where = "" if len(hosts) == 1 else " on the busiest host"
    slowed = "" if blocked else f", so records take {load.slowdown:.3g} times as long as on idle cores"
    draft.put("cluster.cores", cores, f"hardware.cpuCores in /taskmanagers; {threads_busy}{where}{slowed}")
    if len(used) > len(hosts):
        where = "one address" if len(hosts) == 1 else f"{len(hosts)} addresses"
        draft.put("cluster.hosts", len(hosts), f"{len(used)} task managers on {where}, which share its cores")
    if blocked and used_cores is not None:
        on_core = Fraction(f"{min(used_cores / load.threads, 1.0):.2f}")
        draft.put("cluster.on-core", format_share(on_core), f"processes use {used_cores:.2g} cores; {threads_busy}")
        wait = f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time): tasks block, sleep, or wait for other processes"
        draft.put("cluster.services", "side-by-side", f"busy time / records{wait}")
        return
    origin = "busy time / records, divided by what threads waited for cores"
    if contend and used_cores is not None:
        origin += f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time)"
    draft.put("cluster.services", "idle-core", origin)
    if contend:
        unless = ""
        if used_cores is None:
            why = "no. Flink counts that as busy, too: then they waited for no core, and services are too short."
            draft.add_question("cluster.services", "Do tasks block or sleep?", why)
            unless = " (unless tasks block or sleep: no sample of their processor time tells)"
        draft.warnings.append(
            f"cores are scarce: {threads_busy} on {cores} cores, so records take {load.slowdown:.2g} times as long as on idle ones{unless}"
        )
        _divide_services(draft, load.slowdown, f"{threads_busy} on {cores} cores")


def _waits_for_requests(values: Mapping[str, Any]) -> bool:
    """Return whether the threads of a vertex wait for asynchronous requests, which Flink counts as busy."""
    return values.get("service") == NEGLIGIBLE_SERVICE and "async-io" in values


def task_managers_of(job: RestJob) -> dict[str, dict[int, str]]:
    """Return vertex -> subtask -> TaskManager: its id or, in older versions of Flink, its endpoint or host."""
    return {
        vertex.name: {
            subtask.subtask: subtask.taskmanager_id or subtask.endpoint or subtask.host
            for subtask in job.details[vertex.name].subtasks
        }
        for vertex in job.vertices
    }


def _divide_services(draft: Draft, slowdown_factor: float, why: str) -> None:
    """Divide the service times of the draft by `slowdown_factor`: those of records, and of records that a window emits."""
    for vertex, values in draft.document["job"].items():
        for path, parent, key in (("service", values, "service"), ("window.fire", values.get("window", {}), "fire")):
            if key in parent:
                parent[key] = duration_3_digits(parse_duration(parent[key]) / slowdown_factor)
                draft.vertex(vertex).append_comment(path, f"divided by {slowdown_factor:.3g}: {why}")

"""Cores, asynchronous requests and work before a barrier: what else takes the time of a task."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import fmean, median, stdev
from typing import Any, Protocol

from sim.jobs.infer.draft import Draft, duration_text
from sim.jobs.infer.file_history import own_bytes
from sim.jobs.infer.flows import Flows
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestJob, RestVertex
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.randomness import slowdown
from sim.model.units import format_number, format_share, parse_duration

# ---- Work before the barrier, told from the latency of scheduling and acknowledgement: no field of Flink names either.
#
# Both are the rest of the time to a subtask's acknowledgement: less start delay, alignment, synchronous and
# asynchronous phase.  Two things tell them apart.  Work before the barrier (`prepareSnapshotPreBarrier`: flushes of
# sinks, of SQL windows, of mini-batches, asynchronous state that is drained) delays the barrier, so no reader can have
# it earlier.  And latency strikes all vertices of a job alike: a vertex works before the barrier only if its rests
# exceed those of vertices that provably do not.
#
# An unaligned snapshot does not wait for the other barriers; that wait belongs to its asynchronous phase.

LEAST_MS = NEGLIGIBLE_MS / 3
"""A lower average of long rests is noise with some outliers."""
AGAIN = 2
"""Checkpoints with a long rest: what happened once is an outlier, not what an operator does."""
ALL_TO_ALL = ("HASH", "REBALANCE", "BROADCAST", "SHUFFLE", "CUSTOM", "GLOBAL")

Acknowledged = Mapping[str, Mapping[int, RecordedSubtask]]
"""Vertex -> index -> acknowledgement, in one checkpoint."""


class WatchedJob(Protocol):
    """A job with a history of checkpoints, from any source.  It equals no other job, so that what is found of it can be cached."""

    def __hash__(self) -> int: ...

    @property
    def vertices(self) -> tuple[RestVertex, ...]: ...

    @property
    def checkpoints(self) -> tuple[RecordedCheckpoint, ...]: ...

    @property
    def checkpoint_config(self) -> CheckpointConfig | None: ...


@dataclass(frozen=True, slots=True)
class Rest:
    """The part of the time to an acknowledgement that no field explains [ms]."""

    checkpoint: RecordedCheckpoint
    subtask: RecordedSubtask
    all_ms: float
    at_most_ms: float  # of it before the barrier: the readers had the barrier then

    @property
    def before_barrier_ms(self) -> float:
        return max(min(self.all_ms, self.at_most_ms), 0.0)

    @property
    def latency_ms(self) -> float:
        """The part that is certainly no work before the barrier."""
        return max(self.all_ms, 0.0) - self.before_barrier_ms


def usual_checkpoints(job: WatchedJob) -> list[RecordedCheckpoint]:
    """Completed periodic checkpoints, without the job's first if there are others: it met cold caches and short queues."""
    done = [point for point in job.checkpoints if point.status == "COMPLETED" and not point.is_savepoint]
    return done[1:] if len(done) > 1 and done[0].id == 1 else done


@lru_cache(maxsize=1)
def rests(job: WatchedJob) -> Mapping[str, list[Rest]]:
    """Vertex -> rests of all its acknowledgements in usual checkpoints."""
    found: dict[str, list[Rest]] = {vertex.name: [] for vertex in job.vertices}
    for point in usual_checkpoints(job):
        acknowledged = acknowledged_in(job, point)
        for vertex in job.vertices:
            for subtask in acknowledged[vertex.name].values():
                begun_ms = _begun_ms(subtask, job)
                phases_ms = max(subtask.checkpoint.sync, 0) + max(subtask.checkpoint.async_, 0)
                at_most_ms = barrier_at_readers_ms(job, vertex.name, subtask, acknowledged) - begun_ms
                found[vertex.name].append(
                    Rest(point, subtask, subtask.end_to_end_duration - begun_ms - phases_ms, at_most_ms)
                )
    return found


def works_before_barrier(job: WatchedJob, vertex: str) -> bool:
    """Whether its rests are work: long, before the barrier, and beyond the latency that the other vertices show."""
    found = rests(job)
    if len({rest.checkpoint.id for rest in found[vertex] if rest.before_barrier_ms > NEGLIGIBLE_MS}) < AGAIN:
        return False
    likely = {name for name, own in found.items() if _mean_of_long(rest.before_barrier_ms for rest in own) > LEAST_MS}
    latencies = [
        rest.latency_ms if name in likely else rest.all_ms
        for name, own in found.items()
        if name != vertex
        for rest in own
    ]
    return _mean_of_long(rest.before_barrier_ms for rest in found[vertex]) > LEAST_MS + _mean_of_long(latencies)


def _mean_of_long(durations_ms: Iterable[float]) -> float:
    """The mean of all, where those that are noise count as nothing."""
    values = list(durations_ms)
    return math.fsum(value for value in values if value > NEGLIGIBLE_MS) / max(len(values), 1)


def acknowledged_in(job: WatchedJob, point: RecordedCheckpoint) -> Acknowledged:
    """The acknowledgements of all vertices in one checkpoint."""
    return {vertex.name: dict(_acknowledged(point, vertex.name)) for vertex in job.vertices}


def _acknowledged(point: RecordedCheckpoint, vertex: str) -> Iterator[tuple[int, RecordedSubtask]]:
    for subtask in point.tasks[vertex].subtasks if vertex in point.tasks else ():
        if subtask.status == "completed" and subtask.end_to_end_duration >= 0:
            yield subtask.index, subtask


def _begun_ms(subtask: RecordedSubtask, job: WatchedJob) -> float:
    """From the trigger to the last barrier; unaligned: to the first one.  A barrier that timed out began somewhere in between."""
    config = job.checkpoint_config
    unaligned = config is not None and bool(config.unaligned_checkpoints) and not config.aligned_checkpoint_timeout
    return max(subtask.start_delay, 0) + (0 if unaligned else max(subtask.alignment.duration, 0))


def barrier_at_readers_ms(job: WatchedJob, vertex: str, subtask: RecordedSubtask, acknowledged: Acknowledged) -> float:
    """When the first of its readers had all barriers, this subtask's among them; infinite: it has no readers."""
    bounds = [
        _arrival_ms(edge, subtask, acknowledged[reader.name])
        for reader in job.vertices
        for edge in reader.inputs
        if edge.upstream == vertex and edge.is_pipelined and acknowledged[reader.name]
    ]
    return min(bounds, default=math.inf)


def _arrival_ms(edge: RestInput, subtask: RecordedSubtask, readers: Mapping[int, RecordedSubtask]) -> float:
    arrivals_ms = {
        index: max(reader.start_delay, 0) + max(reader.alignment.duration, 0) for index, reader in readers.items()
    }
    if edge.ship in ALL_TO_ALL:
        return min(arrivals_ms.values())
    return arrivals_ms.get(subtask.index, math.inf) if edge.ship == "FORWARD" else max(arrivals_ms.values())


# ---- Asynchronous I/O, told from what its snapshots hold: requests under way are operator state, a record each (AsyncWaitOperator).
#
# No counter of Flink tells how many there are.  Their number by the rate is how long an answer takes (Little's law).
# With as many as may be under way the thread waits for room, and Flink counts that as busy.  Then busy time per record
# is no work.

NO_WORK = "1 us"
"""Assumed of a record where waiting for room counts as busy."""

_ASYNC_NAME = re.compile(r"\basync", re.IGNORECASE)
"""AsyncDataStream calls its operator "async wait operator", SQL "AsyncCalc", "AsyncCorrelate" or "LookupJoin(..., async=[true])"."""
_ENDS = re.compile(r"writer|committer", re.IGNORECASE)
"""State of sinks is what they have to commit."""
_MIN_REQUESTS, _MIN_CHECKPOINTS = 3, 3
"""State of fewer records, or in fewer checkpoints, is no sign of requests."""
_FULL = 0.9
"""A thread that is busy for so much of its time may wait for room."""
_EQUAL_COUNT_SPREAD = 0.25
"""Numbers of requests whose standard deviation is a smaller share of the median are one: records differ in size."""
_LENGTH_BYTES = 4  # before every record on the wire (SpanningRecordSerializer)
_CAPACITY = 100  # AsyncDataStream.DEFAULT_QUEUE_CAPACITY


def infer_async_io(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `async-io` of vertices that hold requests; their operator state is those requests."""
    for vertex in job.vertices:
        flow = flowed[vertex.name]
        is_named = any(_ASYNC_NAME.search(name) for name in (*vertex.chain, vertex.description))
        is_other = any(_ENDS.search(name) for name in vertex.chain) or any(
            edge.ship == "HASH" for edge in vertex.inputs
        )
        if not vertex.inputs or (is_other and not is_named) or "window" in draft.document["job"][vertex.name]:
            continue
        per_second = flow.per_second("records_in") / vertex.parallelism
        requests = [] if is_other else _requests(job, vertex, flow)
        if not per_second > 0 or not (
            is_named or (len(requests) >= _MIN_CHECKPOINTS and median(requests) >= _MIN_REQUESTS)
        ):
            continue
        _set(draft, vertex, flow, requests, per_second, is_named=is_named)


def _requests(job: RestJob, vertex: RestVertex, flow: Flows) -> list[float]:
    """Records in the operator state of a subtask, on average, by checkpoint."""
    size = flow.bytes_per_record - _LENGTH_BYTES
    snapshots = [point.tasks[vertex.name].subtasks for point in usual_checkpoints(job) if vertex.name in point.tasks]
    complete = [[own_bytes(subtask) for subtask in subtasks if subtask.status == "completed"] for subtasks in snapshots]
    return [fmean(sizes) / size for sizes in complete if sizes] if size > 0 else []


def _set(
    draft: Draft, vertex: RestVertex, flow: Flows, requests: Sequence[float], per_second: float, *, is_named: bool
) -> None:
    name, usual = vertex.name, median(requests) if requests else 0.0
    is_full = (
        flow.share("busy_ms") >= _FULL
        and len(requests) >= _MIN_CHECKPOINTS
        and stdev(requests) <= _EQUAL_COUNT_SPREAD * usual
    )
    question = "How long does a request take, from asking to the answer?"
    if usual > 0:
        latency = duration_text(usual / per_second * 1e9)
        why = f"{usual:,.1f} requests in the operator state of a subtask (median) / {per_second:,.1f} records/s of each"
        if is_named:
            draft.put("async-io.latency", latency, why, job=name)
        else:
            draft.ask(
                "async-io.latency",
                latency,
                "Does it wait for answers from outside (AsyncDataStream)?",
                f"yes. {why}.",
                job=name,
            )
        draft.drop("snapshot.operator-state", job=name)
        if not draft.document["job"][name].get("snapshot", True):
            draft.drop("snapshot", job=name)
    else:
        draft.ask("async-io.latency", "50 ms", question, "50 ms: no snapshot held a request.", job=name)
    if is_full:
        draft.put(
            "async-io.capacity",
            round(usual),
            f"{min(requests):,.0f} to {max(requests):,.0f} in each checkpoint, and it waits for room",
            job=name,
        )
        work = "next to nothing, because waiting for room counts as busy, too."
        draft.ask(
            "service", NO_WORK, "How long does one record keep its thread busy, without that wait?", work, job=name
        )
    else:
        most = max(_CAPACITY, math.ceil(max(requests, default=0.0)))
        question = "How many requests may be under way in a subtask (capacity)?"
        draft.ask(
            "async-io.capacity",
            most,
            question,
            f"{most}; {max(requests, default=0.0):,.0f} were at most seen.",
            job=name,
        )


# ---- The cores of the job's hosts, and the time per record on an idle core.
#
# Busy time counts a thread that waits for a core as busy.  So the time per record that counters give grows with the
# number of threads, and with the parallelism.  A scenario has the time on an idle core, and says how many cores there
# are.
#
# It counts a thread that blocks or sleeps as busy, too.  Processor time of the processes tells both apart: only work
# uses it.

_MIN_SLOWDOWN = 0.02
"""A smaller slowdown is no more than what counters are off by."""
_MIN_BUSY_SHARE = 0.7
"""See `threads_block`."""
_SERVICES = re.compile(r"^(service|window\.(fire|flush)|input\.[^.]+\.service)$")


def infer_cores(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `cluster: {cores, hosts, services}`, and divide services by what contention there was; nothing if no answer tells the cores.

    How busy the cores are is kept in the draft: what serialises state on the heap shares them.
    """
    managers = job.task_managers
    known = {manager.id: manager.hardware.cpu_cores for manager in managers if manager.hardware.cpu_cores > 0}
    places = {
        vertex.name: {place.subtask: place.taskmanager_id for place in job.details[vertex.name].subtasks}
        for vertex in job.vertices
    }
    used = {manager for subtasks in places.values() for manager in subtasks.values()}
    if not used or not used <= known.keys():
        return
    address = {manager.id: manager.address for manager in managers}
    hosts = sorted({address[manager] for manager in used})
    cores = min(known[manager] for manager in used)
    busy: dict[str, list[float]] = {host: [] for host in hosts}
    waiting = {
        name for name, given in draft.document["job"].items() if given.get("service") == NO_WORK and "async-io" in given
    }
    for vertex in job.vertices:
        for subtask, own in enumerate(flowed[vertex.name].subtasks):
            share = own.busy_ms / own.elapsed_ms if own.elapsed_ms > 0 else math.nan
            if subtask in places[vertex.name] and not math.isnan(share) and vertex.name not in waiting:
                busy[address[places[vertex.name][subtask]]].append(share)
    threads = {host: math.fsum(shares) for host, shares in busy.items()}
    dearest = max(hosts, key=threads.__getitem__)
    slower = slowdown(busy[dearest], cores)
    threads_busy = f"{format_number(Fraction(round(10 * threads[dearest]), 10))} threads of tasks are busy at once"
    used_cores = cores_used_by(job, [manager for manager in used if address[manager] == dearest])
    contend = slower > 1 + _MIN_SLOWDOWN
    blocked = contend and used_cores is not None and threads_block(used_cores, threads[dearest], slower)
    draft.core_load = (threads[dearest] if not blocked or used_cores is None else used_cores) / cores
    where = "" if len(hosts) == 1 else " on the busiest host"
    slowed = f", so records take {slower:.3g} times as long as on idle cores" if not blocked else ""
    draft.put("cluster.cores", cores, f"hardware.cpuCores in /taskmanagers; {threads_busy}{where}{slowed}")
    if len(used) > len(hosts):
        where = "one address" if len(hosts) == 1 else f"{len(hosts)} addresses"
        draft.put(
            "cluster.hosts", len(hosts), f"{len(used)} task managers on {where}: more of them bring no more cores"
        )
    if blocked and used_cores is not None:
        on_core = Fraction(f"{min(used_cores / threads[dearest], 1.0):.2f}")
        draft.put("cluster.on-core", format_share(on_core), f"processes use {used_cores:.2g} cores; {threads_busy}")
        wait = f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time): tasks block, sleep, or wait for other processes"
        draft.put("cluster.services", "side-by-side", f"busy time / records{wait}")
        return
    origin = "busy time / records, divided by what threads waited for cores"
    question = "; do tasks block or sleep? Flink counts that as busy, too: then they waited for no core, and services are too short"
    proof = question if used_cores is None else f"; their processes use {used_cores:.2g} cores (Status.JVM.CPU.Time)"
    draft.put("cluster.services", "idle-core", f"{origin}{proof if contend else ''}")
    if contend:
        unless = " (unless tasks block or sleep: no sample of their processor time tells)" if used_cores is None else ""
        draft.scarce.append(
            f"{threads_busy} on {cores} cores, so records take {slower:.2g} times as long as on idle ones{unless}"
        )
        _divide(draft, slower, f"{threads_busy} on {cores} cores")


def threads_block(used_cores: float, busy_threads: float, slower: float) -> bool:
    """Whether threads that count as busy sleep or wait for other processes: theirs use far fewer cores than work would."""
    return used_cores < _MIN_BUSY_SHARE * busy_threads / slower


def cores_used_by(job: RestJob, managers: Collection[str]) -> float | None:
    """The cores that these TaskManagers use together; None: not known of all."""
    known = [job.cores_used[manager] for manager in managers if manager in job.cores_used]
    return math.fsum(known) if len(known) == len(managers) else None


def _divide(draft: Draft, slower: float, why: str) -> None:
    """All services are those of an idle core."""
    for vertex, given in draft.document["job"].items():
        for path, section, key in list(_services(given)):
            section[key] = duration_text(parse_duration(section[key]) / slower)
            draft.add_to(f"{path}", f"divided by {slower:.3g}: {why}", job=vertex)


def _services(section: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """(path, section, key) of each time that a record keeps the thread busy."""
    for key, value in section.items():
        path = f"{before}{key}"
        if isinstance(value, dict):
            yield from _services(value, f"{path}.")
        elif _SERVICES.match(path) and isinstance(value, str):
            yield path, section, key

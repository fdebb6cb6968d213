"""Infer the cost of state on the heap (serialization, restore) and of the start of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from sim.jobs.infer.cores import is_unaligned
from sim.jobs.infer.draft import Draft, format_whole_ms, rate_3_digits
from sim.jobs.infer.file_history import own_bytes
from sim.jobs.infer.state import ASSUMED_ENTRY_BYTES, entry_bytes
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.model.scenario import Overheads
from sim.model.state import HEAP_SERIALIZE, LOAD_BYTES_PER_SECOND, LOAD_ENTRY_NS, heap_rate, load_rate
from sim.model.units import SECOND, format_size, parse_share, parse_size

# ---- Separate the two parts of an asynchronous phase with heap state: serialization on a core, and the latency of the file.
#
# One thread serializes the heap state entry by entry, which needs a core.  RocksDB uploads files that already exist, so
# serialization must not be counted as file latency.  If all subtasks write the same amount, the history shows only the sum
# of the two.  They are separated by the usual speed of a core, the contention for cores, and the maximum latency of a file
# on a local disk.

LOCAL_FILE_MS, MAX_LOCAL_FILE_MS = 30.0, 60.0
"""Usual and maximum latency of a file on a local disk, without the time for its bytes.

From asynchronous phases with little state, or from the intercept of a line over the bytes: 18 ms (heap, 1.6 MB), 22 ms
(heap, 0.4 MB), 19, 32, 41 and 56 ms (RocksDB), in tests/data/users-jobs and tests/data/backends.
"""
_DIRECTORIES = ("execution.checkpointing.dir", "state.checkpoints.dir")


_ROCKSDB_WAIT = "58 %"
_ROCKSDB_WAIT_ORIGIN = "assumed, and used only with RocksDB: 33 to 79 % in recordings of other jobs"
"""By how much longer a snapshot takes that starts a compaction, as a share of the time of that compaction: median of 33, 48,
54, 62, 64 and 79 % (`python -m benchmarks.lab.compactions`).  A history of RocksDB has it in its residuals."""


class HeapSerialization(NamedTuple):
    """The cost of serializing the heap state of a vertex."""

    vertex: str
    bytes_per_second: float  # on an idle core
    slower: float  # slowdown by contention for cores, at least 1

    def work_ms(self, size: float) -> float:
        """Return the time to serialize `size` bytes [ms]."""
        return size / self.bytes_per_second * 1000 * self.slower


def heap_serialization(draft: Draft, job: RestJob) -> HeapSerialization | None:
    """Return the serialization cost of the vertex with heap state, or None if there is no such vertex, or more than one.

    Vertices with RocksDB get `state.serialize` at the usual speed of a core, in case `advise` tries the heap, and
    `lsm.upload: 0 s`, because their measured file latency already includes it.
    """
    costs, cluster = [], draft.document.get("cluster", {})
    for name, vertex in draft.document["job"].items():
        state = vertex.get("state", {})
        if "size" not in state:
            continue
        entry = entry_bytes(state, job.flows[name])
        if "backend" not in state or "changelog" in state:
            draft.vertex(name).put("state.lsm.wait", _ROCKSDB_WAIT, _ROCKSDB_WAIT_ORIGIN)
        if "backend" in state:
            draft.vertex(name).put(
                "state.lsm.upload", "0 s", "included in the latency of files, measured in the same phases"
            )
            draft.vertex(name).put(
                "state.serialize",
                rate_3_digits(heap_rate(entry)),
                (
                    f"assumed, and used only with the hashmap backend: {HEAP_SERIALIZE.least / 1e6:.0f} to {HEAP_SERIALIZE.most / 1e6:.0f} MB/s in "
                    f"recordings of other jobs, by the size of entries: {format_size(round(entry))}"
                ),
            )
        elif "changelog" not in state:
            writers = job.vertex(name).parallelism / cluster.get("hosts", 1)
            slowdown = max(1.0, draft.core_load + writers / cluster["cores"]) if "cores" in cluster else 1.0
            costs.append(HeapSerialization(name, heap_rate(entry), slowdown))
    return costs[0] if len(costs) == 1 else None


def is_local(job: RestJob) -> bool:
    """Return whether checkpoints are written to a local disk (scheme `file:`)."""
    return urlsplit(next((job.options[key] for key in _DIRECTORIES if key in job.options), "?:")).scheme == "file"


# ---- Speed of restoring state into the heap: from a restore in the history, otherwise from the size of an entry.
#
# The thread that reads the state creates an object per entry, so the time depends more on the number of entries than on
# their bytes.

_MAX_SLOWDOWN = 7
"""Largest observed factor on the time: 75 MB took 1.25 and 1.35 s while other processes used the cores, and 1.6 MB took
62 and 88 ms because the code of a new process is not compiled yet (jobs of tests/data/backends); a report has 27 MB/s."""
_MIN_READ_NS = 100_000_000
"""Minimum time that a subtask needs to read its state, to set a rate."""
_MIN_INITIALIZING_MS = 200
"""Minimum time of a restore that is used.  Other work of the initialization takes about as long as shorter ones."""


def infer_heap_restore(draft: Draft, job: RestJob) -> None:
    """Set `checkpoint.restore-rate` if reading the heap state of a subtask takes noticeable time."""
    sizes = _heap_state_sizes(draft)
    if job.restored is not None and (restores := list(_observed_restores(job, job.restored, sizes))):
        rates = [size / took_ms * 1000 for size, took_ms in restores]
        origin = (
            f"{median(size for size, _ in restores):,.0f} bytes in {median(took for _, took in restores):,.0f} ms INITIALIZING, less that of "
            f"tasks without such state; median of {len(restores)} subtasks restored from checkpoint {job.restored.id}"
        )
        draft.put("checkpoint.restore-rate", rate_3_digits(median(rates)), origin)
        draft.put("restart.state-start", "0 s", "included in restore-rate")
        return
    shares = {name: size / job.vertex(name).parallelism for name, size in sizes.items()}
    if not shares:
        return
    largest = max(shares, key=lambda name: shares[name])
    read = job.flows[largest].bytes_per_record
    entry = round(read) if read >= 1 else ASSUMED_ENTRY_BYTES
    rate = load_rate(entry)
    if shares[largest] / rate * SECOND >= _MIN_READ_NS:
        draft.ask(
            "checkpoint.restore-rate",
            rate_3_digits(rate),
            "How fast does a subtask read its state into the heap?",
            f"entries of {format_size(entry)}{', as the records' if read >= 1 else ''}, {LOAD_ENTRY_NS / 1000:g} us each and "
            f"{rate_3_digits(LOAD_BYTES_PER_SECOND)}; observed between {rate_3_digits(rate / _MAX_SLOWDOWN)} and {rate_3_digits(rate)}: "
            "busy cores and little state slow it down.",
        )


def _observed_restores(
    job: RestJob, restored: RecordedCheckpoint, heap_vertices: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield (bytes, milliseconds) of each subtask of `heap_vertices` that restored its state when the job last started."""
    baseline_ms: dict[str, int] = {}  # TaskManager -> the shortest initialization of a task without heap state
    for name, details in job.details.items():
        for subtask_place in details.subtasks if name not in heap_vertices else ():
            took_ms = subtask_place.status_duration.get("INITIALIZING", -1)
            if took_ms >= 0:
                baseline_ms[subtask_place.taskmanager_id] = min(
                    baseline_ms.get(subtask_place.taskmanager_id, took_ms), took_ms
                )
    for name in heap_vertices:
        task, subtask_places = restored.tasks.get(name), job.details[name].subtasks
        if task is None or len(task.subtasks) != len(subtask_places):
            continue  # rescaled: the bytes that each subtask read are unknown
        sizes = {subtask.index: own_bytes(subtask) for subtask in task.subtasks if not subtask.alignment.persisted > 0}
        for subtask_place in subtask_places:
            took_ms = subtask_place.status_duration.get("INITIALIZING", -1) - baseline_ms.get(
                subtask_place.taskmanager_id, 0
            )
            if sizes.get(subtask_place.subtask) and took_ms >= _MIN_INITIALIZING_MS:
                yield sizes[subtask_place.subtask], took_ms


def _heap_state_sizes(draft: Draft) -> dict[str, int]:
    """Return the keyed state [bytes] of each vertex that keeps it on the heap."""
    states = {name: vertex.get("state", {}) for name, vertex in draft.document["job"].items()}
    return {
        name: parse_size(state["size"]) for name, state in states.items() if "size" in state and "backend" not in state
    }


# ---- The start of a job: how long it took, and how long the first start on a TaskManager takes.
#
# A replacement for a lost TaskManager is also a first start: classes are not loaded, libraries are not fetched, and the
# state backend was never opened.

_STATE_START, _STATE_START_ORIGIN = "400 ms", "assumed: 300 to 900 ms in recordings of other jobs"
"""INITIALIZING of restarted tasks with keyed state, less that of tasks without, in two recorded jobs (`tests/data/lost`)."""
MAX_COLD_HISTORY_MS = 180_000
"""In a shorter history checkpoints still meet the queues that built up while the job started."""
MAX_START_MS = 60_000
_RESTART_STATES = {"Restarting", "CreatingExecutionGraph"}
"""States of the adaptive scheduler in which no task runs, or waits for slots."""
BACKLOG_MS = 1000
"""Records [ms of input] that wait when tasks begin to run: rate limiters and fetchers catch up for about 1 s, and in
recorded jobs 0 to 5 s of a log waited."""
WARM_UP, WARM_UP_FACTOR = "3 s", 2
"""Throughput after the start: two recorded jobs on busy hosts had a quarter of their capacity for 2 to 4 s, four jobs
with priority about half."""


def infer_cold_start(draft: Draft, job: RestJob) -> None:
    """Set `run.cold-start` and `restart.warm-up` if the history is short and begins with the job's first checkpoint."""
    first = next((point for point in job.checkpoints if point.id == 1), None)
    begun_ms = job.job.start_time
    if (
        first is None
        or begun_ms < 0
        or job.statistics.counts.get("restored")
        or draft.document["cluster"].get("profile") != "2.x"
    ):
        return  # Flink 1.x delays the first trigger by a random time, so the start cannot be computed
    start_ms = first.trigger_timestamp - begun_ms - Overheads().first_trigger_ns // 10**6
    if (
        not 0 < start_ms <= MAX_START_MS
        or max(point.trigger_timestamp for point in job.checkpoints) - begun_ms > MAX_COLD_HISTORY_MS
    ):
        return
    draft.put(
        "run.cold-start",
        format_whole_ms(min(start_ms, BACKLOG_MS)),
        (
            f"assumed: a history of less than {MAX_COLD_HISTORY_MS // 60_000} min contains queues from the start of the job; a log may have "
            f"{format_whole_ms(start_ms)} of records waiting, from the start of the job to its first checkpoint"
        ),
    )
    draft.put("restart.warm-up", WARM_UP, "assumed: 2 to 4 s in recordings of other jobs")
    factor, why = float(WARM_UP_FACTOR), "2 to 5 in recordings of other jobs"
    if on_core := draft.document["cluster"].get("on-core"):
        factor = float(1 + (factor - 1) * parse_share(on_core))
        why = f"{WARM_UP_FACTOR} in the {on_core} of its busy time in which a task uses a core"
    second = next((point for point in job.checkpoints if point.id == 2 and point.status == "COMPLETED"), None)
    if not is_unaligned(job) and second is not None and 2 * second.end_to_end_duration <= first.end_to_end_duration:
        # the queue of the start was gone: (capacity / factor - load) x time >= records that waited
        waited = 1 + min(start_ms, BACKLOG_MS) / (second.trigger_timestamp - begun_ms - start_ms)
        busy = [share / 1000 for flow in job.flows.values() for share in flow.rates("busy_ms").tolist()]
        at_most = max(1 / max(draft.core_load, *np.nan_to_num(busy), 0.01) / waited, 1.0)
        if at_most < factor:
            factor, took = at_most, f"{second.end_to_end_duration} ms after {first.end_to_end_duration} ms"
            why = f"no more, for the second checkpoint met no queue of the start: {took}"
    draft.put("restart.warm-up-factor", f"{factor:.3g}", f"assumed: {why}")


def infer_state_start(draft: Draft) -> None:
    """Set `restart.state-start` to an assumption if a vertex has state.  Few histories contain a restart that shows it."""
    if any("state" in vertex for vertex in draft.document["job"].values()) and "state-start" not in draft.document.get(
        "restart", {}
    ):
        draft.put("restart.state-start", _STATE_START, _STATE_START_ORIGIN)


def infer_restart(draft: Draft, job: RestJob) -> None:
    """Set `overheads.restart` from rescales of the adaptive scheduler: it cancels the tasks, and creates the execution graph.

    Neither the wait for resources nor the restart delay after a failure is part of it.
    """
    took_ms = [
        sum(state.duration for state in rescale.states or () if state.state in _RESTART_STATES)
        for rescale in job.rescales
        if rescale.terminal_state == "COMPLETED"
        and rescale.trigger_cause in ("UPDATE_REQUIREMENT", "NEW_RESOURCE_AVAILABLE")
        and {state.state for state in rescale.states or () if state.duration >= 0} >= _RESTART_STATES
    ]
    if took_ms:
        rescales = f"{len(took_ms)} rescale{'s' * (len(took_ms) > 1)}"
        origin = f"Restarting and CreatingExecutionGraph in /jobs/:id/rescales/details; median over {rescales}"
        draft.put("overheads.restart", format_whole_ms(round(median(took_ms))), origin)


def infer_fresh_start(draft: Draft, job: RestJob) -> None:
    """Set `restart.fresh-start` from the first start of the tasks.  Not set if tasks were restarted, or restored state."""
    if job.statistics.counts.get("restored") or any(
        subtask.attempt for details in job.details.values() for subtask in details.subtasks
    ):
        return
    started_ms: dict[str, int] = {}
    for details in job.details.values():
        for subtask in details.subtasks:
            spent = subtask.status_duration
            if subtask.taskmanager_id and spent.get("DEPLOYING", -1) >= 0 and spent.get("INITIALIZING", -1) >= 0:
                took_ms = spent["DEPLOYING"] + spent["INITIALIZING"]
                started_ms[subtask.taskmanager_id] = max(started_ms.get(subtask.taskmanager_id, 0), took_ms)
    if not started_ms:
        return
    typical_ms = round(median(started_ms.values()))
    deploy_ms = Overheads().deploy_ns // 10**6
    origin = (
        f"{typical_ms:,} ms from DEPLOYING to RUNNING when the job began, less {deploy_ms} ms (overheads: deploy); "
        f"median over {len(started_ms)} task managers of their slowest task"
    )
    draft.put("restart.fresh-start", format_whole_ms(max(typical_ms - deploy_ms, 0)), origin)


def last_restart_ms(source: object) -> float | None:
    """Return the time from the creation of the tasks' attempts until all ran [ms], or None if not all tasks were restarted once."""
    if not isinstance(source, RestSnapshot):
        return None
    subtasks = [subtask for details in RestJob(source).details.values() for subtask in details.subtasks]
    if not subtasks or not all(subtask.attempt and "RUNNING" in subtask.status_duration for subtask in subtasks):
        return None
    waits_ms = [
        sum(
            max(subtask.status_duration.get(status, 0), 0)
            for status in ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING")
        )
        for subtask in subtasks
    ]
    return float(max(waits_ms))

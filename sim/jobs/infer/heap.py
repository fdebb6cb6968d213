"""State on the heap: serialization, restore, the first seconds of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from sim.jobs.infer.draft import Draft, rate_text
from sim.jobs.infer.file_history import own_bytes
from sim.jobs.infer.flows import Flows
from sim.jobs.infer.state import entry_bytes
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_job import RestJob
from sim.model.scenario import Overheads
from sim.model.state import HEAP_SERIALIZE, heap_rate
from sim.model.units import SECOND, format_duration, format_size, parse_share, parse_size

# ---- How fast a core serialises state on the heap, and what is left of an asynchronous phase for the file.
#
# A snapshot of the heap is written by one thread, which serialises entry by entry: work for a core.  RocksDB has its
# files already.  So what a core does must not be read as the latency of a file, which every backend has.  Where all
# subtasks write alike, history shows the sum of both.  What a core usually does, what the other threads leave of it,
# and how long a file on a local disk takes at most tell them apart.

LOCAL_MS, LOCAL_MOST_MS = 30.0, 60.0
"""A file on a local disk takes so long beside its bytes, and at most.

Medians of asynchronous phases with little state, or where lines over their bytes begin: 18 ms (heap, 1.6 MB), 22 ms
(heap, 0.4 MB), 19, 32, 41 and 56 ms (RocksDB), of tests/data/users-jobs and tests/data/backends.
"""
_DIRECTORIES = ("execution.checkpointing.dir", "state.checkpoints.dir")


class Serializing(NamedTuple):
    """What serialising the state of a vertex on the heap costs."""

    vertex: str
    bytes_per_second: float  # on a core of its own, usually
    slower: float  # by threads that want the same cores

    def work_ms(self, size: float) -> float:
        return size / self.bytes_per_second * 1000 * self.slower


def serializing(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> Serializing | None:
    """Of the vertex with state on the heap; None: there is none, or several, whose phases are not one.

    What RocksDB has in files would be serialised on the heap: there `state.serialize` is set to what a core usually
    does. What RocksDB does beside its files is in the phases that tell their latency.
    """
    found, cluster = [], draft.document.get("cluster", {})
    for name, given in draft.document["job"].items():
        state = given.get("state", {})
        if "size" not in state:
            continue
        entry = entry_bytes(state, flowed.get(name))
        if "backend" in state:
            draft.put("state.lsm.upload", "0 s", "in the latency of files, which is read off the same phases", job=name)
            draft.put(
                "state.serialize",
                rate_text(heap_rate(entry)),
                (
                    f"counts if the backend is hashmap; what a core does with entries of {format_size(round(entry))} in our recordings, "
                    f"{HEAP_SERIALIZE.least / 1e6:.0f} to {HEAP_SERIALIZE.most / 1e6:.0f} MB/s"
                ),
                job=name,
            )
        elif "changelog" not in state:
            writers = job.vertex(name).parallelism / cluster.get("hosts", 1)
            slower = max(1.0, draft.core_load + writers / cluster["cores"]) if "cores" in cluster else 1.0
            found.append(Serializing(name, heap_rate(entry), slower))
    return found[0] if len(found) == 1 else None


def is_local(job: RestJob) -> bool:
    """Whether checkpoints go to a disk of the host (file:)."""
    return urlsplit(next((job.options[key] for key in _DIRECTORIES if key in job.options), "?:")).scheme == "file"


# ---- How fast state is read into the heap: from a restore that the history knows, else from the size of an entry.
#
# The reading thread makes an object of each entry, so the time grows with the number of entries more than with their
# bytes.

ENTRY_NS = 2_800
"""Reading an entry, beside its bytes: `tests/data/heap-restores`, values of 100 B, 1 kB and 10 kB."""
BYTES_PER_SECOND = 690_000_000
"""Reading the bytes of entries: from the same runs, whose processes had the cores to themselves."""
_SLOWEST = 7
"""It took up to so many times as long: 75 MB in 1.25 and 1.35 s while other processes used the cores, and 1.6 MB in 62 and 88 ms, for the
code of a new process is not compiled (jobs of tests/data/backends); 27 MB/s in a report."""
_USUAL_BYTES = 1000
"""The assumed size of an entry, where records are not measured."""
_MATTERS_NS = 100_000_000
"""A subtask that reads its state faster needs no rate."""
_SHORTEST_MS = 200
"""Below that, other work of the initialisation is as long."""
_EXAMPLES = (100, 10_000)
"""Entries [B] whose rates the question names: the smallest and the largest of the runs."""


def infer_heap_restore(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `checkpoint.restore-rate`, if a subtask keeps much state on the heap."""
    sizes = _on_heap(draft)
    if job.restored is not None and (found := list(_restores(job, job.restored, sizes))):
        rates = [size / took_ms * 1000 for size, took_ms in found]
        origin = (
            f"{median(size for size, _ in found):,.0f} bytes in {median(took for _, took in found):,.0f} ms INITIALIZING, less what tasks "
            f"without such state took; median of {len(found)} subtasks that began from checkpoint {job.restored.id}"
        )
        draft.put("checkpoint.restore-rate", rate_text(median(rates)), origin)
        return
    shares = {name: size / job.vertex(name).parallelism for name, size in sizes.items()}
    if not shares:
        return
    largest = max(shares, key=lambda name: shares[name])
    read = flowed[largest].bytes_per_record
    entry = round(read) if read >= 1 else _USUAL_BYTES
    rate = rate_of(entry)
    if shares[largest] / rate * SECOND >= _MATTERS_NS:
        draft.ask(
            "checkpoint.restore-rate",
            rate_text(rate),
            "How fast does a subtask read its state into the heap?",
            f"entries of {format_size(entry)}{', as the records' if read >= 1 else ''}, {ENTRY_NS / 1000:g} us each and "
            f"{rate_text(BYTES_PER_SECOND)}. Entries of {_EXAMPLES[0]} B are read at {rate_text(rate_of(_EXAMPLES[0]))}, "
            f"those of {format_size(_EXAMPLES[1])} at {rate_text(rate_of(_EXAMPLES[1]))}; observed "
            f"between {rate_text(rate / _SLOWEST)} and {rate_text(rate)}, the less the busier the cores and the smaller the state.",
        )


def rate_of(entry: float) -> float:
    """Bytes per second at which a thread reads entries of so many bytes into the heap."""
    return entry * SECOND / (ENTRY_NS + entry * SECOND / BYTES_PER_SECOND)


def _restores(job: RestJob, restored: RecordedCheckpoint, kept: Collection[str]) -> Iterator[tuple[int, int]]:
    """(bytes, milliseconds) of subtasks of `kept` vertices that read their state in the latest start."""
    others: dict[str, int] = {}  # TaskManager -> the shortest initialisation without such state
    for name, details in job.details.items():
        for place in details.subtasks if name not in kept else ():
            took_ms = place.status_duration.get("INITIALIZING", -1)
            if took_ms >= 0:
                others[place.taskmanager_id] = min(others.get(place.taskmanager_id, took_ms), took_ms)
    for name in kept:
        task, places = restored.tasks.get(name), job.details[name].subtasks
        if task is None or len(task.subtasks) != len(places):
            continue  # rescaled: who read what is not known
        sizes = {subtask.index: own_bytes(subtask) for subtask in task.subtasks if not subtask.alignment.persisted > 0}
        for place in places:
            took_ms = place.status_duration.get("INITIALIZING", -1) - others.get(place.taskmanager_id, 0)
            if sizes.get(place.subtask) and took_ms >= _SHORTEST_MS:
                yield sizes[place.subtask], took_ms


def _on_heap(draft: Draft) -> dict[str, int]:
    """Vertex -> bytes of its keyed state on the heap."""
    states = {name: vertex.get("state", {}) for name, vertex in draft.document["job"].items()}
    return {
        name: max(parse_size(state["size"]), parse_size(state.get("limit", "0 B")))
        for name, state in states.items()
        if "size" in state and "backend" not in state
    }


# ---- The start of a job: how long it took, and how long a TaskManager takes that ran nothing of the job, which Flink's answers tell.
#
# One that replaces a lost one is in the same state: classes are not loaded, libraries not fetched, the state backend
# never opened.

STATE_START, STATE_START_ORIGIN = "400 ms", "assumed: 300 to 900 ms in recordings of other jobs"
"""INITIALIZING of restarted tasks with keyed state, less that of tasks beside them without, in two recorded jobs (`tests/data/lost`)."""
SHORT_MS = 180_000
"""A history that is shorter shows a job which has just begun: its checkpoints meet queues that the start has left."""
MAX_START_MS = 60_000
BACKLOG_MS = 1000
"""Records that wait when tasks begin: rate limits and fetchers make up for a second, and 0 to 5 s of a log waited in recorded jobs."""
WARM_UP, WARM_UP_FACTOR = "3 s", 2
"""Served by two recorded jobs on busy hosts: a quarter of what they could for the first 2 to 4 s; by four with priority: about half."""


def infer_cold_start(draft: Draft, job: RestJob) -> None:
    """Set `run.cold-start` and `restart.warm-up`, if the history begins with the job and is short."""
    first = next((point for point in job.checkpoints if point.id == 1), None)
    begun_ms = job.job.start_time
    if first is None or begun_ms < 0 or job.counts.get("restored") or draft.document["cluster"].get("profile") != "2.x":
        return  # Flink 1.x waits for a random time before it triggers
    start_ms = first.trigger_timestamp - begun_ms - Overheads().first_trigger_ns // 10**6
    if (
        not 0 < start_ms <= MAX_START_MS
        or max(point.trigger_timestamp for point in job.checkpoints) - begun_ms > SHORT_MS
    ):
        return
    draft.put(
        "run.cold-start",
        format_duration(min(start_ms, BACKLOG_MS) * 10**6),
        (
            f"assumed, as a history of less than {SHORT_MS // 60_000} min shows the queues that the start left; of a log up to "
            f"{format_duration(start_ms * 10**6)} wait, from the start of the job to its first checkpoint"
        ),
    )
    draft.put("restart.warm-up", WARM_UP, "assumed: 2 to 4 s in recordings of other jobs")
    draft.put("restart.warm-up-factor", WARM_UP_FACTOR, "likewise: 2 to 5")
    if on_core := draft.document["cluster"].get("on-core"):
        slower = float(1 + (WARM_UP_FACTOR - 1) * parse_share(on_core))
        draft.put(
            "restart.warm-up-factor",
            slower,
            f"{WARM_UP_FACTOR} in the {on_core} of its busy time in which a task uses a core",
        )


def infer_state_start(draft: Draft) -> None:
    """Set `restart.state-start`, if a vertex keeps state.  No history without a restart tells it, and few with one."""
    if any("state" in vertex for vertex in draft.document["job"].values()):
        draft.put("restart.state-start", STATE_START, STATE_START_ORIGIN)


def infer_fresh_start(draft: Draft, job: RestJob) -> None:
    """Set `restart.fresh-start`, unless tasks have been restarted, or began with state: that is restored in the same time."""
    if job.counts.get("restored") or any(
        place.attempt for details in job.details.values() for place in details.subtasks
    ):
        return
    started_ms: dict[str, int] = {}
    for details in job.details.values():
        for place in details.subtasks:
            spent = place.status_duration
            if place.taskmanager_id and spent.get("DEPLOYING", -1) >= 0 and spent.get("INITIALIZING", -1) >= 0:
                took_ms = spent["DEPLOYING"] + spent["INITIALIZING"]
                started_ms[place.taskmanager_id] = max(started_ms.get(place.taskmanager_id, 0), took_ms)
    if not started_ms:
        return
    found_ms = round(median(started_ms.values()))
    deploy_ms = Overheads().deploy_ns // 10**6
    origin = (
        f"{found_ms:,} ms from DEPLOYING to RUNNING when the job began, less {deploy_ms} ms (overheads: deploy); "
        f"median over {len(started_ms)} task managers of their slowest task"
    )
    draft.put("restart.fresh-start", format_duration(max(found_ms - deploy_ms, 0) * 10**6), origin)

"""How fast state is read into the heap: from a restore that the history knows, else from the size of an entry.

The reading thread makes an object of each entry, so the time grows with the number of entries more than with their bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import median

from sim.recordings.infer.draft import Draft, rate_text
from sim.recordings.infer.file_history import own_bytes
from sim.recordings.infer.flows import Flows
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.job import RestJob
from sim.units import SECOND, format_size, parse_size

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
            "checkpoint.restore-rate", rate_text(rate), "How fast does a subtask read its state into the heap?",
            f"entries of {format_size(entry)}{', as the records' if read >= 1 else ''}, {ENTRY_NS / 1000:g} us each and "
            f"{rate_text(BYTES_PER_SECOND)}. Entries of {_EXAMPLES[0]} B are read at {rate_text(rate_of(_EXAMPLES[0]))}, "
            f"those of {format_size(_EXAMPLES[1])} at {rate_text(rate_of(_EXAMPLES[1]))}; observed "
            f"between {rate_text(rate / _SLOWEST)} and {rate_text(rate)}, the less the busier the cores and the smaller the state.",
        )  # fmt: skip


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

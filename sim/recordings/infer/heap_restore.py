"""How fast state is read into the heap: from a restore that the history knows, else from the size of an entry.

The reading thread makes an object of each entry, so the time grows with the number of entries more than with their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from sim.recordings.infer.draft import Draft, rate_text
from sim.recordings.infer.file_history import own_bytes
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob
from sim.units import format_size, parse_size

ENTRY_NS = 2_800
"""Reading an entry, beside its bytes: `tests/data/heap-restores`, values of 100 B, 1 kB and 10 kB."""
BYTES_PER_SECOND = 690_000_000
"""Reading the bytes of entries: from the same runs."""
_USUAL_BYTES = 1000
"""The assumed size of an entry, where records are not measured."""
_MATTERS_NS = 100_000_000
"""A subtask that reads its state faster needs no rate."""
_SHORTEST_MS = 200
"""Below that, other work of the initialisation is as long."""


def infer_heap_restore(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `checkpoint.restore-rate`, if a subtask keeps much state on the heap."""
    if found := list(_restores(draft, job)):
        rates = [size / took_ms * 1000 for size, took_ms in found]
        origin = (
            f"{median(size for size, _ in found):,.0f} bytes in {median(took for _, took in found):,.0f} ms INITIALIZING, less what tasks "
            f"without such state took; median of {len(found)} subtasks that began from checkpoint {job.restored.id if job.restored else ''}"
        )
        draft.put("checkpoint.restore-rate", rate_text(median(rates)), origin)
        return
    shares = {name: size / job.vertex(name).parallelism for name, size in _on_heap(draft).items()}
    if not shares:
        return
    largest = max(shares, key=lambda name: shares[name])
    read = flowed[largest].bytes_per_record
    entry = round(read) if read >= 1 else _USUAL_BYTES
    rate = entry * 10**9 / (ENTRY_NS + entry * 10**9 / BYTES_PER_SECOND)
    if shares[largest] / rate * 10**9 >= _MATTERS_NS:
        draft.ask(
            "checkpoint.restore-rate", rate_text(rate), "How fast does a subtask read its state into the heap?",
            f"entries of {format_size(entry)}{', as the records' if read >= 1 else ''}, {ENTRY_NS / 1000:g} us each and "
            f"{rate_text(BYTES_PER_SECOND)}. Entries of 100 B are read at 35 MB/s, those of 10 kB at 580 MB/s.",
        )  # fmt: skip


def _restores(draft: Draft, job: RestJob) -> Iterator[tuple[int, int]]:
    """(bytes, milliseconds) of subtasks that read their state in the latest start."""
    restored, kept = job.restored, _on_heap(draft)
    if restored is None:
        return
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

"""How fast a core serialises state on the heap, and what is left of an asynchronous phase for the file.

A snapshot of the heap is written by one thread, which serialises entry by entry: work for a core.  RocksDB has its files already.  So what
a core does must not be read as the latency of a file, which every backend has.  Where all subtasks write alike, history shows the sum
of both.  What a core usually does, what the other threads leave of it, and how long a file on a local disk takes at most tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from sim.model.catalogs.backends import HEAP_SERIALIZE, heap_rate
from sim.recordings.infer.draft import Draft, rate_text
from sim.recordings.infer.flows import Flows
from sim.recordings.infer.updates import entry_bytes
from sim.recordings.source.rest.job import RestJob
from sim.units import format_size

LOCAL_MS, LOCAL_MOST_MS = 30.0, 60.0
"""A file on a local disk takes so long beside its bytes, and at most.

Medians of asynchronous phases with little state, or where lines over their bytes begin: 18 ms (heap, 1.6 MB), 22 ms (heap, 0.4 MB),
19, 32, 41 and 56 ms (RocksDB), of tests/data/users-jobs and tests/data/backends.
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

    What RocksDB has in files would be serialised on the heap: there `state.serialize` is set to what a core usually does.
    What RocksDB does beside its files is in the phases that tell their latency.
    """
    found, cluster = [], draft.document.get("cluster", {})
    for name, given in draft.document["job"].items():
        state = given.get("state", {})
        if "size" not in state:
            continue
        entry = entry_bytes(state, flowed.get(name))
        if "backend" in state:
            draft.put("state.lsm.upload", "0 s", "in the latency of files, which is read off the same phases", job=name)
            draft.put("state.serialize", rate_text(heap_rate(entry)), (
                f"counts if the backend is hashmap; what a core does with entries of {format_size(round(entry))} in our recordings, "
                f"{HEAP_SERIALIZE.least / 1e6:.0f} to {HEAP_SERIALIZE.most / 1e6:.0f} MB/s"
            ), job=name)  # fmt: skip
        elif "changelog" not in state:
            writers = job.vertex(name).parallelism / cluster.get("hosts", 1)
            slower = max(1.0, draft.core_load + writers / cluster["cores"]) if "cores" in cluster else 1.0
            found.append(Serializing(name, heap_rate(entry), slower))
    return found[0] if len(found) == 1 else None


def is_local(job: RestJob) -> bool:
    """Whether checkpoints go to a disk of the host (file:)."""
    return urlsplit(next((job.options[key] for key in _DIRECTORIES if key in job.options), "?:")).scheme == "file"

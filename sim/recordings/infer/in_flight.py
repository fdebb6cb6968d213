"""How unaligned checkpoints take in-flight data: how late a task is for a barrier that overtakes, and how fast its data is written.

A history of aligned checkpoints tells neither.  The values of recordings stand for them, as they decide what unaligned checkpoints gain.
In a history of unaligned ones both are part of what each file takes (`sim.recordings.infer.storage`).
"""

from __future__ import annotations

from sim.recordings.infer.draft import Draft, rate_text
from sim.recordings.infer.storage import is_unaligned
from sim.recordings.source.rest.job import RestJob

WAKE_UP_MS, WAKE_UP_RANGE_MS = 12, (8, 43)
"""From one vertex to the next, medians of five jobs on Flink 2.3 whose two cores were in use (`tests/data/users-jobs`)."""
BYTES_PER_SECOND, RANGE_BYTES_PER_SECOND = 25_000_000, (11_000_000, 46_000_000)
"""Of the one thread that writes for a task manager, in the same jobs, on a local disk that took other files at 100 MB/s and more."""

AFTER = "assumed: operators of a chain are finalized in the order of a hash; the last one came first in all recorded jobs"


def infer_in_flight(draft: Draft, job: RestJob) -> None:
    """Set `cluster.barrier-wake-up`, `storage.in-flight-bandwidth` and `snapshot.after-in-flight` of chains, if the history tells none."""
    if is_unaligned(job) or not any(vertex.inputs for vertex in job.vertices):
        return
    low, high = WAKE_UP_RANGE_MS
    why = "assumed, as no unaligned checkpoint tells"
    draft.put("cluster.barrier-wake-up", f"{WAKE_UP_MS} ms", f"{why}; {low} to {high} ms in recordings of other jobs")
    slow, fast = (rate_text(rate) for rate in RANGE_BYTES_PER_SECOND)
    for vertex in job.vertices:
        if len(vertex.chain) > 1 and "state" in draft.document["job"][vertex.name]:
            draft.put("snapshot.after-in-flight", True, AFTER, job=vertex.name)
    draft.put("storage.in-flight-bandwidth", rate_text(BYTES_PER_SECOND), f"{why}; {slow} to {fast} in recordings of other jobs")

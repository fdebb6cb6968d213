"""How unaligned checkpoints take in-flight data: how late a task is for a barrier that overtakes, and how fast its data is written.

A history of aligned checkpoints tells neither.  The values of recordings stand for them, as they decide what unaligned checkpoints gain.
In a history of unaligned ones both are part of what each file takes (`sim.recordings.infer.storage`).
"""

from __future__ import annotations

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.storage import is_unaligned
from sim.recordings.source.rest.job import RestJob

WAKE_UP, WAKE_UP_RANGE = "12 ms", "8 to 43 ms"
"""From one vertex to the next, medians of five jobs on Flink 2.3 whose two cores were in use (`tests/data/users-jobs`)."""
BANDWIDTH, BANDWIDTH_RANGE = "25 MB/s", "11 MB/s to 46 MB/s"
"""Of the one thread that writes for a task manager, in the same jobs, on a local disk that took other files at 100 MB/s and more."""
ASSUMED = "assumed, as no unaligned checkpoint tells; {} in recordings of other jobs"
AFTER = "assumed: operators of a chain are finalized in the order of a hash; the last one came first in all recorded jobs"


def infer_in_flight(draft: Draft, job: RestJob) -> None:
    """Set `cluster.barrier-wake-up`, `storage.in-flight-bandwidth` and `snapshot.after-in-flight` of chains, if the history tells none."""
    if is_unaligned(job) or not any(vertex.inputs for vertex in job.vertices):
        return
    draft.put("cluster.barrier-wake-up", WAKE_UP, ASSUMED.format(WAKE_UP_RANGE))
    draft.put("storage.in-flight-bandwidth", BANDWIDTH, ASSUMED.format(BANDWIDTH_RANGE))
    for vertex in job.vertices:
        if len(vertex.chain) > 1 and "state" in draft.document["job"][vertex.name]:
            draft.put("snapshot.after-in-flight", True, AFTER, job=vertex.name)

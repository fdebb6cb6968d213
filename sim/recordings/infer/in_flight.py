"""How late a task is for a barrier, and how fast unaligned checkpoints write in-flight data.

A history of aligned checkpoints tells the first where tasks are idle, and never the second.  Values of recordings stand for what it
does not tell, as they decide what unaligned checkpoints gain.  In a history of unaligned ones both are part of what each file takes
(`sim.recordings.infer.storage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from sim.model.cluster import NetworkMemory
from sim.recordings.infer.before_barrier import ALL_TO_ALL, acknowledged_in, usual_checkpoints, works_before_barrier
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.flows import Flows
from sim.recordings.infer.storage import is_unaligned
from sim.recordings.source.recorded_job import RecordedSubtask
from sim.recordings.source.rest.job import RestJob
from sim.units import format_duration

WAKE_UP, WAKE_UP_RANGE = "12 ms", "2 to 43 ms"
"""From one vertex to the next, medians of jobs on Flink 2.3 (`tests/data/users-jobs`): code that runs once in a checkpoint is slow."""
IDLE = 0.75
"""Idle share of a task before which few records wait when a barrier comes."""
FEWEST = 5
"""Barriers that tell how late tasks are."""
BANDWIDTH, BANDWIDTH_RANGE = "25 MB/s", "11 MB/s to 46 MB/s"
"""Of the one thread that writes for a task manager, in the same jobs, on a local disk that took other files at 100 MB/s and more."""
ASSUMED = "assumed, as no unaligned checkpoint tells; {} in recordings of other jobs"
AFTER = "assumed: operators of a chain are finalized in the order of a hash; the last one came first in all recorded jobs"


def infer_in_flight(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `cluster.barrier-wake-up`, `storage.in-flight-bandwidth` and `snapshot.after-in-flight` of chains, for an aligned history."""
    if is_unaligned(job) or not any(vertex.inputs for vertex in job.vertices):
        return
    late_ms = list(_wake_ups_ms(job, flowed))
    if len(late_ms) < FEWEST:
        draft.put("cluster.barrier-wake-up", WAKE_UP, f"assumed, as no task is idle; {WAKE_UP_RANGE} in recordings of other jobs")
    else:
        origin = f"median of {len(late_ms)} barriers, from the last task that sent one to tasks that are idle"
        late = format_duration(max(round(median(late_ms)), 0) * 10**6)
        draft.put("cluster.barrier-wake-up", late, f"{origin}, less what waits to be flushed")
    draft.put("storage.in-flight-bandwidth", BANDWIDTH, ASSUMED.format(BANDWIDTH_RANGE))
    for vertex in job.vertices:
        if len(vertex.chain) > 1 and "state" in draft.document["job"][vertex.name]:
            draft.put("snapshot.after-in-flight", True, AFTER, job=vertex.name)


def _wake_ups_ms(job: RestJob, flowed: Mapping[str, Flows]) -> Iterator[float]:
    """From the last barrier that the tasks before a vertex sent, to the last one that each of its tasks took.

    Only where little waits before the barrier: the task is idle, and nothing before it works before its barrier.
    """
    flush_ms = NetworkMemory().buffer_timeout_ns / 2 / 10**6
    for vertex in job.vertices:
        upstream = {edge.upstream for edge in vertex.inputs if edge.is_pipelined and edge.ship in ALL_TO_ALL}
        flow = flowed[vertex.name]
        is_idle = flow.share("idle_ms") >= IDLE
        if not is_idle or not upstream or len(upstream) < len(vertex.inputs) or any(works_before_barrier(job, name) for name in upstream):
            continue
        for point in usual_checkpoints(job):
            tasks = acknowledged_in(job, point)
            sent_ms = [_took_barriers_ms(task) for name in upstream for task in tasks[name].values()]
            for task in tasks[vertex.name].values() if sent_ms else ():
                yield _took_barriers_ms(task) - max(sent_ms) - flow.share("busy_ms") * flush_ms


def _took_barriers_ms(task: RecordedSubtask) -> float:
    return max(task.start_delay, 0) + max(task.alignment.duration, 0)

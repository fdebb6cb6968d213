"""Asynchronous I/O, told from what its snapshots hold: requests under way are operator state, a record each (AsyncWaitOperator).

No counter of Flink tells how many there are.  Their number by the rate is how long an answer takes (Little's law).  With as many as may be
under way the thread waits for room, and Flink counts that as busy.  Then busy time per record is no work.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev

from sim.recordings.infer.before_barrier import usual_checkpoints
from sim.recordings.infer.draft import Draft, duration_text
from sim.recordings.infer.file_history import own_bytes
from sim.recordings.infer.flows import Flows
from sim.recordings.source.rest.job import RestJob, RestVertex

NO_WORK = "1 us"
"""Assumed of a record where waiting for room counts as busy."""

_NAMED = re.compile(r"\basync", re.IGNORECASE)
"""AsyncDataStream calls its operator "async wait operator", SQL "AsyncCalc", "AsyncCorrelate" or "LookupJoin(..., async=[true])"."""
_ENDS = re.compile(r"writer|committer", re.IGNORECASE)
"""State of sinks is what they have to commit."""
_FEWEST, _FEWEST_CHECKPOINTS = 3, 3
"""State of fewer records, or in fewer checkpoints, is no sign of requests."""
_FULL = 0.9
"""A thread that is busy for so much of its time may wait for room."""
_ALIKE = 0.25
"""Numbers of requests whose standard deviation is a smaller share of the median are one: records differ in size."""
_LENGTH_BYTES = 4  # before every record on the wire (SpanningRecordSerializer)
_CAPACITY = 100  # AsyncDataStream.DEFAULT_QUEUE_CAPACITY


def infer_async_io(draft: Draft, job: RestJob, flowed: Mapping[str, Flows]) -> None:
    """Set `async-io` of vertices that hold requests; their operator state is those requests."""
    for vertex in job.vertices:
        flow = flowed[vertex.name]
        is_named = any(_NAMED.search(name) for name in (*vertex.chain, vertex.description))
        is_other = any(_ENDS.search(name) for name in vertex.chain) or any(edge.ship == "HASH" for edge in vertex.inputs)
        if not vertex.inputs or (is_other and not is_named) or "window" in draft.document["job"][vertex.name]:
            continue
        per_second = flow.per_second("records_in") / vertex.parallelism
        requests = [] if is_other else _requests(job, vertex, flow)
        if not per_second > 0 or not (is_named or (len(requests) >= _FEWEST_CHECKPOINTS and median(requests) >= _FEWEST)):
            continue
        _set(draft, vertex, flow, requests, per_second, is_named=is_named)


def _requests(job: RestJob, vertex: RestVertex, flow: Flows) -> list[float]:
    """Records in the operator state of a subtask, on average, by checkpoint."""
    size = flow.bytes_per_record - _LENGTH_BYTES
    snapshots = [point.tasks[vertex.name].subtasks for point in usual_checkpoints(job) if vertex.name in point.tasks]
    complete = [[own_bytes(subtask) for subtask in subtasks if subtask.status == "completed"] for subtasks in snapshots]
    return [fmean(sizes) / size for sizes in complete if sizes] if size > 0 else []


def _set(draft: Draft, vertex: RestVertex, flow: Flows, requests: Sequence[float], per_second: float, *, is_named: bool) -> None:
    name, usual = vertex.name, median(requests) if requests else 0.0
    is_full = flow.share("busy_ms") >= _FULL and len(requests) >= _FEWEST_CHECKPOINTS and stdev(requests) <= _ALIKE * usual
    question = "How long does a request take, from asking to the answer?"
    if usual > 0:
        latency = duration_text(usual / per_second * 1e9)
        why = f"{usual:,.1f} requests in the operator state of a subtask (median) / {per_second:,.1f} records/s of each"
        if is_named:
            draft.put("async-io.latency", latency, why, job=name)
        else:
            draft.ask("async-io.latency", latency, "Does it wait for answers from outside (AsyncDataStream)?", f"yes. {why}.", job=name)
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
        draft.ask("service", NO_WORK, "How long does one record keep its thread busy, without that wait?", work, job=name)
    else:
        most = max(_CAPACITY, math.ceil(max(requests, default=0.0)))
        question = "How many requests may be under way in a subtask (capacity)?"
        draft.ask("async-io.capacity", most, question, f"{most}; {max(requests, default=0.0):,.0f} were at most seen.", job=name)

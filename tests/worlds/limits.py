"""Is a job that gets nowhere held up by limits its own world sets too low?  The same world without them is run, and says so.

A limit is the reason if the job was ended by it, comes to its end without it, and takes longer there than the limit
allows. Everything else is a finding: a job that should be quick enough, or that gets nowhere without limits as well.
"""

from dataclasses import replace

import pandas as pd

LONG_NS = 3600 * 10**9
UNLIMITED = 10**6
NEARLY = 0.9  # of the requests of a second; a request that is refused waits, so the last ones are never served
ROOM = ("B to stage", "B left", "503 Slow Down")
"""What failures say of limits that no time is held against: space, requests per second."""
SAVED = (
    "CHECKPOINT_ASYNC_EXCEPTION",
    "IO_EXCEPTION",
    "FINALIZE_CHECKPOINT_FAILURE",
    "an upload of the changelog has failed",
)
"""What a checkpoint, or a task, fails with whose files could not be written."""


def lifted(scenario, held_up):
    """As much time and patience as anybody may need, and as much room if its lack held the job up; faults and outages stay.

    Room stays as it is otherwise: it is what makes checkpoints take longer than their limits.
    """
    checkpoint = replace(scenario.checkpoint, timeout_ns=LONG_NS, tolerable_failed=UNLIMITED)
    storage = replace(scenario.storage, retry=replace(scenario.storage.retry, timeout_ns=None))
    job = replace(scenario.job, vertices=tuple(map(_patient, scenario.job.vertices)))
    restart = replace(scenario.restart, cancellation_timeout_ns=0)
    free = replace(scenario, job=job, checkpoint=checkpoint, storage=storage, restart=restart)
    return _with_margin(free) if lacks_room(scenario, held_up) else free


def _with_margin(scenario):
    storage = scenario.storage
    store = None if storage.object_store is None else replace(storage.object_store, requests_per_second=None)
    storage = replace(storage, disk=replace(storage.disk, space_bytes=None), object_store=store)
    return replace(scenario, checkpoint=replace(scenario.checkpoint, staging_bytes=None), storage=storage)


def lacks_room(scenario, result):
    """As its restarts say; a checkpoint does not say why its files failed, so its store must be as busy as it may be."""
    reasons = _reasons(result)
    if any(room in reason for room in ROOM for reason in reasons):
        return True
    return any(saved in reason for saved in SAVED for reason in reasons) and _is_busy(scenario, result)


def _is_busy(scenario, result):
    """Whether in most seconds almost as many requests were served as the object store serves at all."""
    store = scenario.storage.object_store
    if store is None or store.requests_per_second is None or len(result.requests) == 0:
        return False
    served = result.requests[["put", "list", "get", "delete"]].sum(axis=1)
    return bool(served.median() > NEARLY * store.requests_per_second)


def _patient(vertex):
    if vertex.state is None or vertex.state.changelog is None:
        return vertex
    return replace(
        vertex, state=replace(vertex.state, changelog=replace(vertex.state.changelog, upload_timeout_ns=None))
    )


def exceeded(scenario, held_up, free, write_ns=0):
    """Whether limits ended checkpoints or requests of the one run, and the other, without them, takes longer than the lowest.

    `write_ns`: what a file takes there at the most; some are of no checkpoint, as those of the end of the data.
    """
    if lacks_room(scenario, held_up):
        return True
    limits_ns = list(_limits_met(scenario, _reasons(held_up)))
    times_ms = [free.checkpoints["end_to_end_duration"].max(), free.recoveries["downtime"].max(), write_ns / 1e6]
    longest_ms = pd.Series(times_ms, dtype=float).max()
    return bool(limits_ns) and bool(longest_ms > min(limits_ns) / 1e6)


def _reasons(result):
    """Why it restarted; of a job that runs, also why its checkpoints failed."""
    failed = [] if result.job_status.startswith("RESTARTING") else result.checkpoints["failure_message"].dropna()
    return {*result.recoveries["cause"], *failed}


def _limits_met(scenario, reasons):
    """Times that are over, as the reasons of failures say [ns].  A checkpoint also expires while a request is repeated again and again."""
    expired = any("CHECKPOINT_EXPIRED" in reason for reason in reasons)
    unanswered = any(saved in reason for reason in reasons for saved in ("no answer within", *SAVED))
    if expired:
        yield scenario.checkpoint.timeout_ns
    if (expired or unanswered) and scenario.storage.retry.timeout_ns is not None:
        yield scenario.storage.retry.timeout_ns
    if unanswered:
        logs = [vertex.state.changelog for vertex in scenario.job.vertices if vertex.state is not None]
        yield from (log.upload_timeout_ns for log in logs if log is not None and log.upload_timeout_ns is not None)

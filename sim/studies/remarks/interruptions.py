"""Sentences of a run on what its restarts, rescales and overlapping snapshots do to windows, slots and transactions.

Times are ms since the start of the run, as in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pandas as pd

from sim.model.faults import Restart
from sim.model.job import Vertex
from sim.model.quantities import PLANNED_RESTARTS
from sim.model.scenario import Scenario
from sim.model.text import listed
from sim.model.units import format_duration
from sim.results.estimates import is_noise
from sim.results.formats import count_text, ms_text, share_text
from sim.results.journal import EventType
from sim.results.tables import NO_SLOTS
from sim.runtime.host_loop import can_be_redistributed
from sim.runtime.result import Result
from sim.studies.remarks.load import sources_of

_MIN_WAIT_MS = 1000.0
"""Shorter waits are not reported."""
_FULL_SHARE = 0.9
"""Share of the answers that asynchronous requests allow from which they are always used up."""


def sentences_on_slots(result: Result) -> Iterator[str]:
    """Yield sentences on deployments without slots, and on how long an adaptive job waits for slots or runs on fewer."""
    scenario, rows, restart = result.scenario, result.recoveries, result.scenario.restart
    failed = sum(row.detail == NO_SLOTS for row in result.journal.only({EventType.DEPLOYMENT_FAILED}))
    if failed:
        limit = format_duration(restart.slot_timeout_ns)
        waits = f"a request for slots waits {limit} (restart.slot-timeout)"
        if restart.provider == "standalone":
            waits = f"a standalone cluster waits for task managers only in the first {limit} of a JobManager (restart.slot-timeout)"
        yield (
            f"{failed} deployment{'s' * (failed > 1)} fail{'s' * (failed == 1)} for lack of slots (NoResourceAvailableException), "
            f"and each uses an attempt of the restart strategy: {waits}"
        )
    if restart.scheduler != "adaptive" or scenario.rescale:
        return
    fixed = [f"'{vertex.name}'" for vertex in scenario.job.vertices if not can_be_redistributed(vertex)]
    if fixed and ((rows["deployed"] - rows["delayed"]) * (rows["kind"] == "task-manager")).max() >= _MIN_WAIT_MS:
        yield (
            f"The simulation waits for all slots, because of the transactions or windows of processing time of {listed(fixed)}; Flink goes "
            f"on with the slots that are left after {format_duration(restart.stabilization_ns)} (restart.stabilization)"
        )
    last = (
        result.tasks[result.tasks["x_job"] == result.tasks["x_job"].max()] if "x_job" in result.tasks else result.tasks
    )
    if len(last) < sum(vertex.parallelism for vertex in scenario.job.vertices) and result.job_status == "RUNNING":
        since = f"from {ms_text(rows['deployed'].iloc[-1])} to the end of the run"
        yield f"The job runs on fewer slots {since}: {_rescale_conditions(scenario, restart)}"
    ran_ms = (rows["failed"] - rows["deployed"].shift())[(rows["kind"] == "rescale") & (rows["deployed"].shift() >= 0)]
    if ran_ms.max() >= _MIN_WAIT_MS:
        yield f"The job runs on fewer slots for {ms_text(ran_ms.max())}: {_rescale_conditions(scenario, restart)}"


def _rescale_conditions(scenario: Scenario, restart: Restart) -> str:
    """Return a clause on what an adaptive job waits for before it is rescaled."""
    cooldown = f"it is rescaled when slots are back, {format_duration(restart.cooldown_ns)} (restart.cooldown) after it began at the earliest"
    interval_ns = scenario.checkpoint.interval_ns
    if scenario.cluster.profile != "2.x" or not interval_ns:
        return cooldown
    return (
        f"{cooldown}, and then when a checkpoint has completed, {restart.rescale_failures} have failed (restart.rescale-failures) or "
        f"{format_duration(restart.longest_rescale_delay_ns(interval_ns))} are over (restart.rescale-delay)"
    )


def sentences_on_windows(result: Result) -> Iterator[str]:
    """Yield sentences on windows that a failure delays: by the idle timeout of silent sources, or across their end."""
    rows = result.recoveries[(result.recoveries["running"] >= 0) & ~result.recoveries["kind"].isin(PLANNED_RESTARTS)]
    restarts_all = (rows["vertices"] == "").any()
    job, sources = result.scenario.job, sources_of(result.scenario.job)
    for vertex in job.vertices:
        if vertex.window is None or vertex.window.hold_ns:
            continue
        if vertex.window.time == "event":
            yield from _phase_sentences(result, vertex)
            silent = [
                own for own in job.vertices if own.name in sources[vertex.name] and own.source and own.source.silent
            ]
            yield from (
                f"After a restart no window of '{vertex.name}' ends for {format_duration(timeout_ns)}: subtasks of '{own.name}' without "
                "records count as active again until they are idle for that long (watermark.idle-timeout)"
                for own in silent
                if restarts_all
                and own.source
                and (timeout_ns := own.source.watermark.idle_timeout_ns or 0) > vertex.window.step_ns
            )
            continue
        step_ms = vertex.window.step_ns / 1e6
        for row in rows.to_dict("records"):
            end_ms = (
                math.ceil((row["failed"] - vertex.window.phase_ns / 1e6) / step_ms) * step_ms
                + vertex.window.phase_ns / 1e6
            )
            if row["running"] - end_ms >= _MIN_WAIT_MS:
                yield (
                    f"A window of '{vertex.name}' ends at {ms_text(end_ms)}, while the job is down, and fires up to "
                    f"{ms_text(row['running'] - end_ms)} late: windows of processing time take a record when it is processed, so what is "
                    f"replayed ({count_text(row['replayed_records'])} records) and what was due meanwhile are in the next one"
                )
                return


def has_one_phase(scenario: Scenario, vertex: Vertex) -> bool:
    """Return whether checkpoints are always triggered at the same distance from a firing of the vertex's windows."""
    window, interval_ns = vertex.window, scenario.checkpoint.interval_ns
    return bool(
        window
        and interval_ns
        and len({*scenario.intervals_ns}) == 1
        and window.fire_ns
        and not (window.step_ns % interval_ns and interval_ns % window.step_ns)
    )


def _phase_sentences(result: Result, vertex: Vertex) -> Iterator[str]:
    """Yield a sentence on a window whose firings no checkpoint meets, as both come at fixed times of this run."""
    window, interval_ns = vertex.window, result.scenario.checkpoint.interval_ns
    if window is None or not interval_ns or not has_one_phase(result.scenario, vertex):
        return
    emitted = result.tasks.loc[result.tasks["vertex"] == vertex.name, "numRecordsOut"].max()
    outputs = sum(own.upstream == vertex.name for reader in result.scenario.job.vertices for own in reader.inputs)
    fired = max(1, (result.ended_ns - 1) // window.step_ns)  # the last one may be due when the run ends
    fires_ms = emitted / max(1, outputs) / fired * window.fire_ns / 1e6
    longest_ms = result.checkpoints["end_to_end_duration"].max()
    if fires_ms >= _MIN_WAIT_MS and longest_ms < fires_ms / 2:
        yield (
            f"'{vertex.name}' fires for {ms_text(fires_ms)} every {format_duration(window.step_ns)}, and no checkpoint meets that: it and the "
            f"triggers, every {format_duration(interval_ns)}, have one phase in this run (job.{vertex.name}.window.phase shifts it); in a real "
            f"job {share_text(min(1.0, fires_ms * 1e6 / min(interval_ns, window.step_ns)))} of the phases do"
        )


def sentences_on_requests(result: Result) -> Iterator[str]:
    """Yield a sentence per vertex whose asynchronous requests are answered in step with the triggers, so that their phase decides."""
    scenario = result.scenario
    interval_ns = scenario.checkpoint.interval_ns or 0
    for vertex in scenario.job.vertices:
        requests = vertex.async_io
        if requests is None or requests.latency.kind != "constant" or len({*scenario.intervals_ns}) != 1:
            continue
        latency_ns = requests.latency.mean
        served = result.tasks.loc[result.tasks["vertex"] == vertex.name, "numRecordsIn"].min()
        is_full = served >= _FULL_SHARE * requests.answers_per_second * result.ended_ns / 1e9
        if is_full and latency_ns >= _MIN_WAIT_MS * 1e6 and not interval_ns % latency_ns:
            yield (
                f"'{vertex.name}' always has {requests.capacity} requests under way (async-io.capacity), each answered after "
                f"{format_duration(latency_ns)}, and every checkpoint meets them in one phase of this run: the interval, "
                f"{format_duration(interval_ns)}, is a multiple. In a real job its barriers wait up to {format_duration(latency_ns)} for an answer"
            )


def overlap_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the savepoint that waits longest for the asynchronous thread of a subtask."""
    keys = [name for name in ("x_job", "id") if name in result.subtasks]
    acknowledged = result.subtasks.sort_values("ack_timestamp", kind="stable")
    last = acknowledged.drop_duplicates(keys, keep="last")
    ended = result.checkpoints.merge(last[[*keys, "x_async_queue"]], on=keys)
    ended = ended[(ended["status"] == "COMPLETED") & ended["checkpoint_type"].str.contains("SAVEPOINT")]
    for row in ended.sort_values("x_async_queue").tail(1).to_dict("records"):
        if row["x_async_queue"] >= _MIN_WAIT_MS and not is_noise(row["x_async_queue"], 0):
            yield (
                f"Savepoint {row['id']} waits {ms_text(row['x_async_queue'])} of its {ms_text(row['end_to_end_duration'])} for files of "
                "snapshots that were triggered before it: savepoints are not held back (max-concurrent), and a subtask writes one snapshot "
                "after the other"
            )


def chained_commits_sentences(scenario: Scenario, waits_ms: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on output that waits for several commits, as a sink reads what another one emits on its commit.

    `waits_ms`: median wait of the transactions of a vertex.
    """
    waits: dict[str, list[str]] = {}  # vertex -> the most vertices whose commits a record waits for up to there
    for vertex in scenario.job.vertices:
        before = max((waits[own.upstream] for own in vertex.inputs), key=len, default=[])
        is_last = vertex.commit is not None and vertex.name in waits_ms
        emits = vertex.commit is not None and vertex.commit.emits == "on-commit"
        waits[vertex.name] = [*before, vertex.name] if is_last and emits else before
        if is_last and before:
            path = [*before, vertex.name]
            quoted = listed([f"'{name}'" for name in path])
            yield (
                f"Output of '{vertex.name}' waits for the commits of {quoted} one after the other, "
                f"{ms_text(sum(waits_ms[name] for name in path))} in sum; visible p50 is the wait for one of them"
            )


def refusal_sentences(scenario: Scenario, requests: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on requests that the object store refuses.  `requests`: the table of a run."""
    refused, answered = (
        float(requests[names].to_numpy().sum()) for names in (["refused"], ["put", "list", "get", "refused"])
    )
    store = scenario.storage.object_store
    limit = None if store is None else store.requests_per_second
    if limit is not None and refused > _MIN_REFUSED_SHARE * answered:
        yield (
            f"{100 * refused / answered:.0f} % of the requests are refused (503), as a prefix takes {float(limit):g}/s "
            "(storage.object-store.requests), and tried again: writing takes longer by these waits, and no bandwidth shortens them"
        )


_MIN_REFUSED_SHARE = 0.1
"""Share of refused requests from which they are reported."""

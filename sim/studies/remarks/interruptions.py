"""Sentences of a run on slots that restarts wait for, on phases of windows and requests, and on chains of transactions.

Times are ms since the start of the run, as in the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sim.model.job import Vertex
from sim.model.scenario import Scenario
from sim.model.text import listed
from sim.model.units import format_duration
from sim.results.formats import ms_text, share_text
from sim.results.journal import EventType
from sim.results.tables import NO_SLOTS
from sim.runtime.host_loop import can_be_redistributed
from sim.runtime.result import Result

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
        yield f"The job runs on fewer slots {since}"
    ran_ms = (rows["failed"] - rows["deployed"].shift())[(rows["kind"] == "rescale") & (rows["deployed"].shift() >= 0)]
    if ran_ms.max() >= _MIN_WAIT_MS:
        yield f"The job runs on fewer slots for {ms_text(ran_ms.max())}"


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


def sentences_on_phases(result: Result) -> Iterator[str]:
    """Yield a sentence on each window whose firings no checkpoint meets, as both come at fixed times of this run."""
    scenario, interval_ns = result.scenario, result.scenario.checkpoint.interval_ns
    for vertex in scenario.job.vertices:
        window = vertex.window
        if window is None or not interval_ns or window.time != "event" or not has_one_phase(scenario, vertex):
            continue
        emitted = result.tasks.loc[result.tasks["vertex"] == vertex.name, "numRecordsOut"].max()
        outputs = sum(own.upstream == vertex.name for reader in scenario.job.vertices for own in reader.inputs)
        fired = max(1, (result.ended_ns - 1) // window.step_ns)  # the last one may be due when the run ends
        fires_ms = emitted / max(1, outputs) / fired * window.fire_ns / 1e6
        longest_ms = result.checkpoints["end_to_end_duration"].max()
        if fires_ms >= _MIN_WAIT_MS and longest_ms < fires_ms / 2:
            yield (
                f"'{vertex.name}' fires for {ms_text(fires_ms)} every {format_duration(window.step_ns)}, and no checkpoint meets that: it and "
                f"the triggers, every {format_duration(interval_ns)}, have one phase in this run (job.{vertex.name}.window.phase shifts it); in "
                f"a real job {share_text(min(1.0, fires_ms * 1e6 / min(interval_ns, window.step_ns)))} of the phases do"
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

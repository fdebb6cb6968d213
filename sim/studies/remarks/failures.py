"""Sentences on the failures and restarts of a run: detection, restored checkpoints, attempts, replayed records, rescales, slots, windows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from sim.model.cluster import spills_recovered_data
from sim.model.faults import Restart, TaskManagerLost
from sim.model.job import Vertex
from sim.model.quantities import PLANNED_RESTARTS
from sim.model.scenario import Scenario
from sim.model.state import LOAD_BYTES_PER_SECOND, LOAD_ENTRY_NS
from sim.model.text import listed
from sim.model.units import format_duration
from sim.protocol.recovery import outages
from sim.results.consequences import replay_waits_ms
from sim.results.estimates import is_noise
from sim.results.formats import bytes_text, count_text, ms_text, per_second_text, share_text
from sim.results.journal import NO_HEARTBEAT, EventType
from sim.results.rates import overload_since
from sim.results.summary import bottleneck
from sim.results.tables import NO_SLOTS
from sim.runtime.host_loop import can_be_redistributed
from sim.runtime.plane_spec import hosts, restarts_after_loss
from sim.runtime.result import NOT_STOPPED, Result
from sim.studies.remarks.checkpoints import completed
from sim.studies.remarks.load import sources_of, uneven_subtask

# ---- The time until a killed TaskManager is replaced. It is a range, because the phase of heartbeats is random.

_TENTH_NS = 100_000_000


def outage_sentence(scenario: Scenario) -> str:
    """Return a sentence on detection and redeployment of a killed TaskManager.

    Return "" if every lost TaskManager stops orderly (SIGTERM) or falls silent, or if none is lost.
    """
    losses = [fault.what for fault in scenario.faults if isinstance(fault.what, TaskManagerLost)]
    killed = {loss.host for loss in losses if not (loss.silent or loss.orderly)}
    if not killed:
        return ""
    overheads, restart = scenario.overheads, scenario.restart
    cases = [
        case
        for own in restarts_after_loss(scenario, killed)
        for case in outages(own, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    ]
    redeployed = [case for case in cases if case.ready_ns is not None]
    share = 100 * (1 - len(redeployed) / len(cases))
    gives_up = f"the restart strategy gives up before there are slots in {share:.0f} % of all cases"
    if not redeployed:
        return f"A killed task manager fails the job: {gives_up}"
    by = "from the ResourceManager" if restart.provider != "standalone" else "by its heartbeats (heartbeat-interval)"
    missed = _range([case.missed_ns for case in cases])
    sentence = f"The JobMaster learns {by} after {missed} that a task manager was killed"
    failing = sorted({case.deployments - 1 for case in redeployed})
    if restart.scheduler != "adaptive":
        if failing[-1]:
            count = " to ".join(map(str, dict.fromkeys((failing[0], failing[-1]))))
            sentence += f"; {count} deployments fail before"
        ready = _range([case.ready_ns for case in redeployed if case.ready_ns is not None])
        sentence += f"; its tasks have slots again after {ready}"
    return sentence + (f"; {gives_up}" if len(redeployed) < len(cases) else "")


def _range(times_ns: list[int]) -> str:
    """Return ``4.2 s to 9.8 s``, rounded to 0.1 s."""
    bounds_ns = (round(bound(times_ns) / _TENTH_NS) * _TENTH_NS for bound in (min, max))
    return " to ".join(dict.fromkeys(map(format_duration, bounds_ns)))


# ---- Failures, and what restarts restore and replay.

_GROWN_DELAY = 3
"""Ratio of two restart delays of a run from which a sentence names their growth."""


def failure_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on the replacement of a killed TaskManager, the checkpoint that restarts restore, and restart attempts used."""
    scenario, rows, restart = result.scenario, result.recoveries, result.scenario.restart
    failures = rows[~rows["kind"].isin(PLANNED_RESTARTS)]
    was_lost = (rows["kind"] == "task-manager").any() or "task manager" in result.job_status
    if was_lost and (outage := outage_sentence(scenario)):
        grows = "slots" in outage and restart.strategy == "exponential-delay" and len(failures) > 1
        yield outage + "; after other failures it can take longer, as the restart delay grows" * grows
    yield from _leaderless_sentences(result)
    restored, count = {*rows["restored_checkpoint"]} - {-1}, int((rows["restored_checkpoint"] >= 0).sum())
    is_far_apart = rows["failed"].diff().min() >= (scenario.checkpoint.interval_ns or math.inf) / 1e6
    if len(restored) == 1 and count > 1 and is_far_apart:
        yield (
            f"{'All' if count == len(rows) else 'The first'} {count} restarts go back to "
            f"{f'checkpoint {max(restored)}' if max(restored) else 'the beginning'}: no checkpoint completes in between"
        )
    if result.job_status.startswith("FAILED") and NOT_STOPPED not in result.job_status:
        done = completed(result)
        begin = "there is no checkpoint to begin again from"
        if len(done):
            last = done.sort_values("id").iloc[-1]
            begin = (
                f"checkpoint {int(last['id'])} is the last to begin again from, if it is retained "
                "(execution.checkpointing.externalized-checkpoint-retention; by default it is deleted), and nothing replays "
                f"what sources emitted after it was triggered at {ms_text(last['trigger_timestamp'])}"
            )
        yield f"The job has failed for good: {begin}"
    yield from sentences_on_slots(result)
    yield from sentences_on_windows(result)
    yield from sentences_on_requests(result)
    # not of restarts whose deployment failed: they span several delays
    delays_ms = (rows["delayed"] - rows["detected"])[(rows["delayed"] >= 0) & (rows["deployments"] <= 1)]
    if restart.strategy == "exponential-delay" and delays_ms.max() >= _GROWN_DELAY * delays_ms.min() > 0:
        yield (
            f"The restart delay grows from {ms_text(delays_ms.min())} to {ms_text(delays_ms.max())}: exponential-delay begins anew "
            f"only after {ms_text(restart.reset_ns / 1e6)} without a failure (restart.reset)"
        )
    if restart.strategy == "exponential-delay" and restart.attempts and result.job_status.startswith("FAILED"):
        yield (
            f"The job uses {restart.attempts} of {restart.attempts} attempts (restart.attempts), and fails at failure {restart.attempts + 1}: "
            f"only {ms_text(restart.reset_ns / 1e6)} without a failure (restart.reset) would count anew"
        )
    deployments = failures["deployments"].clip(lower=1)
    if restart.strategy == "fixed-delay" and restart.attempts and len(failures):
        who = "The job" if scenario.run.replications == 1 else "The first run"
        later = "" if result.job_status.startswith("FAILED") else ", whenever it comes"
        used = f"{who} uses {deployments.sum()} of {restart.attempts} attempts (restart.attempts)"
        yield f"{used}, and fails at failure {restart.attempts + 1}{later}"
    if restart.strategy == "failure-rate" and len(failures):
        yield _failure_rate_sentence(result, failures["detected"].repeat(deployments.tolist()))
    yield from _restore_sentences(result)


def _leaderless_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on the longest time for which tasks ran on without a JobManager, and on what is replayed of it."""
    rows = result.recoveries[result.recoveries["kind"] == "job-manager"]
    rows = rows[rows["restored_checkpoint"] >= 0]  # the others are not restored by the end of the run
    if rows.empty:
        return  # saves a pass over a long journal
    times_ms = defaultdict[EventType, list[float]](list)
    ends = {
        EventType.JOB_MANAGER_ELECTED: "another one leads",
        EventType.TASK_MANAGER_LOST: "a task manager is lost",
        EventType.TASK_FAILED: "a task fails",
    }
    for row in result.journal.only({EventType.JOB_MANAGER_LOST, *ends}):
        if row.detail != NO_HEARTBEAT:
            times_ms[row.event_type].append(row.time_ns / 1e6)
    ran_ms, failed_ms, count, number = max(
        (
            failed_ms - max((ms for ms in times_ms[EventType.JOB_MANAGER_LOST] if ms <= failed_ms), default=failed_ms),
            failed_ms,
            replayed,
            restored,
        )
        for failed_ms, replayed, restored in zip(
            rows["failed"], rows["replayed_records"], rows["restored_checkpoint"], strict=True
        )
    )
    if ran_ms == 0:
        return  # a lost TaskManager has stopped them before
    named = (text for event_type, text in ends.items() if failed_ms in times_ms[event_type])
    end = next(named, "they miss its heartbeats (restart.heartbeat-timeout)")
    begin = f"checkpoint {number}" if number else "the beginning"
    yield (
        f"Tasks run on for {ms_text(ran_ms)} without a JobManager, until {end}: what they emit is replayed, {count_text(count)} "
        f"records since {begin}"
    )


def _failure_rate_sentence(result: Result, failed_ms: pd.Series[float]) -> str:
    """Return a sentence on the most failures within the interval of the restart strategy `failure-rate`, and on its limit."""
    restart, within_ms = result.scenario.restart, result.scenario.restart.rate_interval_ns / 1e6
    others = ", deployments that fail among them," if failed_ms.duplicated().any() else ""
    limit = f"within {ms_text(within_ms)}, of {restart.rate} that restart.rate tolerates"
    last = (failed_ms >= result.ended_ns / 1e6 - within_ms).sum()
    if result.job_status.startswith("FAILED") and last >= restart.rate:
        return f"{last + 1} failures{others} come {limit}: the job fails"
    most = max(failed_ms.between(begin_ms, begin_ms + within_ms).sum() for begin_ms in failed_ms)
    return f"At most {most} failures{others} come {limit}" if most > 1 else f"At most 1 failure comes {limit}"


def _in_canonical_format(result: Result, took_ms: float, number: int) -> str:
    """Return a clause on how much longer the savepoint of a rescale would take in Flink's default format, or ""."""
    rate = result.scenario.checkpoint.state.savepoint_bytes_per_second
    max_bytes = float(result.subtasks.loc[result.subtasks["id"] == number, "checkpointed_size"].max())
    if not result.scenario.rescale or not rate or 1e3 * max_bytes / rate < _LONGER_FACTOR * took_ms:
        return ""
    return (
        f" in native format; in canonical format, Flink's default, {bytes_text(max_bytes)} of a subtask take about "
        f"{ms_text(1e3 * max_bytes / rate)} (checkpoint.savepoint-rate)"
    )


def _restore_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on restores from local disks, and on in-flight data that is recovered while tasks run."""
    scenario, rows = result.scenario, result.recoveries
    options, tasks = scenario.checkpoint, sum(vertex.parallelism for vertex in scenario.job.vertices)
    # not of a single region, which may have no state
    restored = (rows["running"] >= 0) & (rows["restored_checkpoint"] > 0) & (rows["tasks"] == tasks)
    read = rows.loc[restored, "restored_bytes"]
    if options.state.local_recovery and any(vertex.state for vertex in scenario.job.vertices) and (read == 0).any():
        yield (
            f"{(read == 0).sum()} of {len(read)} restarts read no state from storage, as tasks have copies on their disks (local-recovery)"
            f"{', which take no time to read (storage.disk.bandwidth)' * (scenario.storage.disk.bytes_per_second is None)}"
            f"{f', others up to {bytes_text(read.max())}' * bool(read.max())}"
        )
    disk, managers = scenario.storage.disk, len({*hosts(scenario)})
    if options.state.local_recovery and disk.space_bytes is not None and read.max() > managers * disk.space_bytes:
        yield (
            f"Restarts read up to {bytes_text(read.max())} from storage, as a local copy that does not fit into the "
            f"{bytes_text(disk.space_bytes)} of its TaskManager is left out (local-recovery, storage.disk.space)"
        )
    logs = any(vertex.state and vertex.state.changelog for vertex in scenario.job.vertices)
    if logs and options.state.load_bytes_per_second is None and (rows["restored_bytes"] > 0).any():
        yield (
            f"Restores apply the log of a changelog one change after the other: assumed are {format_duration(LOAD_ENTRY_NS)} for each and "
            f"{bytes_text(LOAD_BYTES_PER_SECOND)}/s (checkpoint.restore-rate)"
        )
    recovered_bytes = rows["recovered_bytes"].max()
    if options.during_recovery and recovered_bytes > 0:
        spills = spills_recovered_data(scenario.cluster.version)
        yield (
            f"Restarted tasks run before they have processed the in-flight data that they read back, up to {bytes_text(recovered_bytes)} "
            f"(during-recovery): downtime ends before{'; since Flink 2.4 they write it to local disks first (storage.disk)' * spills}"
        )


def replayed_sentences(result: Result) -> Iterator[str]:
    """Yield a sentence on records replayed after a failure, if they wait longer for visibility than any transaction does."""
    sources = [vertex.name for vertex in result.scenario.job.vertices if vertex.source]
    others_ms = result.commits.loc[~result.commits["again"].astype(bool), "visible_latency"].max()
    longest_ms, number = max(replay_waits_ms(result.tables, sources), default=(0.0, 0))
    if others_ms < longest_ms and not is_noise(longest_ms, others_ms):
        yield (
            f"What is replayed after a failure becomes visible up to {ms_text(longest_ms)} after checkpoint {number}, from which it is "
            f"replayed: visible max counts from there, and the longest transaction is visible after {ms_text(others_ms)}"
        )


# ---- Interruptions.

_MIN_STOP_MS = 1_000
"""Minimum duration of a stop-with-savepoint that is reported."""
_LONGER_FACTOR = 2.0
"""A savepoint in another format is mentioned if it takes at least this multiple of the time."""
_MAX_GAPS = 3
"""Maximum times without a trigger that a sentence gives."""


def interruption_sentences(result: Result) -> Iterator[str]:
    """Yield sentences on interruptions of the job.

    These are: the longest time without a trigger during a backlog, stops with a savepoint, restarts before any checkpoint had
    completed, rescales, and overload after a restart.
    """
    scenario, rows, restarts = result.scenario, result.checkpoints, result.recoveries
    options, triggers_ms = scenario.checkpoint, rows["trigger_timestamp"].tolist()
    refused = int((rows["failure_message"] == "CHECKPOINT_DECLINED_TASK_CLOSING").sum())
    union = [f"'{vertex.name}'" for vertex in scenario.job.vertices if vertex.union_state]
    if refused and union and options.finish == "flink":
        yield (
            f"{refused} checkpoint{'s are' if refused > 1 else ' is'} refused while only some subtasks of {listed(union)} have finished, "
            "which Flink does not allow with union list state (PartialFinishingNotSupportedByStateException)"
        )
    gaps = [
        pair
        for pair in pairwise([0.0, *triggers_ms])
        if pair[1] - pair[0] > 2 * max(scenario.intervals_ns, default=0) / 1e6
    ]
    if options.interval_during_backlog_ns == 0 and gaps:
        when = listed(
            [f"between {ms_text(begun_ms)} and {ms_text(ended_ms)}" for begun_ms, ended_ms in gaps[:_MAX_GAPS]]
        )
        yield (
            f"No checkpoint is triggered {when}: sources report a backlog, and checkpoint.interval-during-backlog is off"
        )
    running_ms = restarts["running"][restarts["running"] >= 0]
    spans, failed = [], defaultdict[str, list[str]](list)  # ids by reason
    for stop in rows[rows["checkpoint_type"] == "SYNC_SAVEPOINT"].to_dict("records"):
        runs_ms = running_ms[running_ms > stop["trigger_timestamp"]].min()  # NaN if tasks do not run again
        if stop["status"] == "FAILED":
            failed[stop["failure_message"]].append(str(stop["id"]))
        elif stop["status"] == "COMPLETED" and runs_ms > 0:
            spans.append((runs_ms - stop["trigger_timestamp"], stop["end_to_end_duration"], stop["id"]))
    for reason, ids in failed.items():
        which = f"Savepoint{'s' * (len(ids) > 1)} {listed(ids)}, which the job was to stop with,"
        yield f"{which} fail{'s' * (len(ids) == 1)} ({reason}): the job does not stop then"
    if spans and (longest := max(spans))[1] >= _MIN_STOP_MS:
        yield (
            f"All tasks run again {ms_text(longest[0])} after the trigger of the savepoint that the job stops with, which takes "
            f"{ms_text(longest[1])}{_in_canonical_format(result, *longest[1:])}"
        )
    count = int(((restarts["restored_checkpoint"] == 0) & ~restarts["kind"].isin(PLANNED_RESTARTS)).sum())
    if count and any(vertex.state is not None for vertex in scenario.job.vertices):
        yield (
            f"{count} restart{'s' * (count > 1)} before a checkpoint had completed: a real job begins with empty state then; "
            "here state keeps the size that the scenario gives it, and nothing is read"
        )
    rescales = "x_job" in result.tasks and (scenario.rescale or scenario.restart.scheduler == "adaptive")
    if rescales and len(jobs := result.tasks.groupby("x_job")) > 1:
        tasks_of_jobs = [tasks for _, tasks in jobs]
        busiest = [bottleneck(tasks) for tasks in tasks_of_jobs]
        shares = [f"{vertex}[{index}] {share_text(share)}" for vertex, index, share in busiest]
        vertex, index, _ = busiest[-1]
        parallelism = int((tasks_of_jobs[-1]["vertex"] == vertex).sum())
        parallelism_of = {str(name): len(own) for name, own in tasks_of_jobs[-1].groupby("vertex")}
        why = uneven_subtask(replace(scenario.job.vertex(vertex), parallelism=parallelism), index, parallelism_of)
        yield f"The busiest subtask is {', after the rescale '.join(shares)}{why and ': it '}{why}"
    ran_s = restarts["running"].max() / 1e3
    planned_s = restarts.loc[restarts["kind"].isin(PLANNED_RESTARTS), "running"].max() / 1e3
    late_s = (ran_s + result.ended_ns / 1e9) / 2  # half-way to the end, when replayed records have been emitted
    if ran_s >= 0 and (rates := overload_since(result.tables, scenario.job.edges, late_s)):
        yield (
            f"After the {'planned' if planned_s == ran_s else 'last'} restart sources emit {per_second_text(rates.emitted_per_second)} of "
            f"{per_second_text(rates.due_per_second)} that are due, and their backlog grows"
        )


# ---- Slots, windows and asynchronous requests.

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

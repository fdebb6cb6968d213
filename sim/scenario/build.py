"""A document without axes -> the frozen model of one run, and every check that needs values.

Fills in what Flink would: forward between unequal parallelisms becomes rebalance, max parallelism follows the parallelism,
buffers follow the version profile.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as FilePath
from typing import TypeVar

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.cluster import Cluster, Debloat, NetworkMemory
from sim.model.scenario import Overheads, Run, Scenario
from sim.scenario import document as doc
from sim.scenario.actions.builder import build_actions
from sim.scenario.environment import chosen
from sim.scenario.faults.builder import build_faults, build_rescale, build_restart, parallelisms
from sim.scenario.flink.keys import CONSTANT_IN_2
from sim.scenario.instances.builder import build_directories, build_instances
from sim.scenario.job.builder import build_job
from sim.scenario.plausible import check
from sim.scenario.sink.builder import build_staging
from sim.scenario.sizes import LEAST_INTERVAL_NS
from sim.scenario.state.builder import build_state_options
from sim.scenario.storage.builder import build_storage
from sim.scenario.text.problems import Reading
from sim.units import format_duration

__all__ = ["build"]

T = TypeVar("T")


def build(
    document: doc.Document, reading: Reading, folder: FilePath, *, question: str, name: str, axes: tuple[tuple[str, str], ...],
) -> Scenario:
    """The scenario; mistakes go to `reading`, and the caller looks there before using it."""
    expect = [
        (metric, condition)
        for metric, given in (document.expect or {}).items()
        for condition in (given if isinstance(given, list) else [given])
    ]
    check(document, reading)
    job = build_job(document.job, reading, folder, duration_ns=document.run.duration)
    cluster = _cluster(document.cluster or doc.Cluster(), reading)
    rescale = build_rescale(document.rescale, job, reading)
    return Scenario(
        question=question, name=name, axes=axes, expect=tuple(expect), job=job, cluster=cluster,
        checkpoint=_checkpoint(document, reading),
        run=_run(document.run, reading),
        storage=build_storage(document.storage or doc.Storage(), reading, folder),
        overheads=_overheads(document.overheads or doc.Overheads(), chosen(document.environment, reading, folder)),
        actions=build_actions(document.actions or (), reading),
        faults=build_faults(document.faults or (), parallelisms(job, rescale), cluster, reading, folder),
        restart=build_restart(document.restart),
        rescale=rescale,
        instances=build_instances(
            document.instances, reading, savepoints=bool(document.actions), checkpoints=bool(document.checkpoint.interval),
            rescaled=bool(document.rescale),
            changelog=any(vertex.state is not None and vertex.state.changelog is not None for vertex in job.vertices),
        ),
        directories=build_directories(document.directories),
    )


MILLISECOND_NS = 1_000_000
SHORTEST_NS = 10 * MILLISECOND_NS
"""CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME, of intervals and timeouts."""


def _given(default: T, **values: object) -> T:
    """The default with every value that was written."""
    return replace(default, **{key: value for key, value in values.items() if value is not None})  # type: ignore[type-var]


def _checkpoint(document: doc.Document, reading: Reading) -> CheckpointOptions:
    given, here = document.checkpoint, "checkpoint"
    old = document.cluster is not None and document.cluster.profile == "1.15"
    if isinstance(given.barriers, doc.AlignedTimeout):
        if given.barriers.aligned_timeout == 0:
            reading.wrong((here, "barriers"), "an aligned-timeout of 0 is unaligned from the start: write unaligned")
        barriers = Barriers("aligned-timeout", given.barriers.aligned_timeout, reaches_output=not old)
    else:
        barriers = Barriers(given.barriers or "aligned")
    options = _given(
        CheckpointOptions(given.interval or None, barriers),
        timeout_ns=given.timeout, min_pause_ns=given.min_pause, max_concurrent=given.max_concurrent,
        tolerable_failed=given.tolerable_failed, num_retained=given.num_retained,
        subtasks_per_channel_state_file=given.subtasks_per_channel_state_file or (1 if old else None),  # FLINK-26803 shares them
        finish=given.finish, forced_aligned=None if given.forced_aligned is None else tuple(given.forced_aligned),
        operator_io=given.operator_io, abort_policy=given.abort_policy, upload_threads=given.upload_threads,
        lost_notifications=given.lost_notifications, **build_staging(given.staging, document.job, reading),
        state=build_state_options(given, document.job, reading),
    )
    for key, value in (("interval", options.interval_ns), ("timeout", options.timeout_ns)):
        if value is not None and value < SHORTEST_NS:
            few = f"is {format_duration(value)}: Flink wants {format_duration(SHORTEST_NS)} or more"
            if key == "interval" and value >= LEAST_INTERVAL_NS:  # snapshots taken one after the other by hand, as benchmarks do
                reading.warn((here, key), f"{few}; simulated as written all the same")
            else:
                reading.wrong((here, key), few)
    if options.max_concurrent > 1 and barriers.record.overtakes:
        reading.wrong((here, "max-concurrent"), f"is {options.max_concurrent}, but Flink runs {barriers} checkpoints one by one: write 1")
    if options.max_concurrent > 1 and options.min_pause_ns > 0:
        reading.warn((here, "max-concurrent"), "has no effect: with a min-pause Flink runs one checkpoint at a time")
        options = replace(options, max_concurrent=1)
    for i, (upstream, downstream) in enumerate(options.forced_aligned):
        reader = document.job.get(downstream)
        if reader is None or upstream not in (reader.input or {}):
            reading.wrong((here, "forced-aligned", i), f"there is no edge {upstream} -> {downstream} in the job")
    return options


def _run(given: doc.Run, reading: Reading) -> Run:
    run = _given(Run(given.duration), warmup_ns=given.warmup, seed=given.seed, replications=given.replications)
    if run.duration_ns == 0:
        reading.wrong(("run", "duration"), "is 0: nothing would happen")
    elif run.warmup_ns >= run.duration_ns:
        reading.wrong(("run", "warmup"), f"leaves nothing of the run: it must be shorter than {format_duration(run.duration_ns)}")
    return run


def _cluster(given: doc.Cluster, reading: Reading) -> Cluster:
    if given.slots is not None and given.placement != "spread":
        reading.wrong(("cluster", "slots"), "has no effect: only spread subtasks fill task managers slot by slot; write placement: spread")
    return _given(
        Cluster(network=_network(given, reading)),
        placement=given.placement, slots=given.slots, latency_ns=given.latency,
        nic_bytes_per_second=given.nic or None, profile=given.profile,
    )


def _network(cluster: doc.Cluster, reading: Reading) -> NetworkMemory:
    given, here = cluster.network or doc.Network(), ("cluster", "network")
    two, old = cluster.profile in (None, "2.x"), cluster.profile == "1.15"
    ignored = {path[-1] for path in CONSTANT_IN_2 if two and _from_flink(path, reading)}
    default = NetworkMemory() if given.segment_size is None else NetworkMemory(segment_bytes=given.segment_size)
    first_overdraft = 20 if two else 0 if old else 5
    network = _given(
        replace(default, starting_segment_bytes=1024 if two else default.segment_bytes, overdraft=first_overdraft, stretching=not old),
        starting_segment_bytes=given.starting_segment_size,
        exclusive_per_channel=None if "buffers-per-channel" in ignored else given.buffers_per_channel,
        floating_per_gate=None if "floating-buffers-per-gate" in ignored else given.floating_buffers_per_gate,
        max_per_channel=None if "max-buffers-per-channel" in ignored else given.max_buffers_per_channel,
        overdraft=None if "overdraft" in ignored else given.overdraft,
        buffer_timeout_ns=given.buffer_timeout,
        debloat=_debloat(given.debloat),
    )
    for path in sorted(CONSTANT_IN_2) if two else ():
        constant = {"buffers-per-channel": 2, "floating-buffers-per-gate": 8, "max-buffers-per-channel": 10, "overdraft": 20}[path[-1]]
        if path[-1] in ignored:
            reading.warn(path, f"is ignored: Flink 2.x has no such option, it is {constant} (profile: 1.20 has it)")
        elif getattr(given, path[-1].replace("-", "_")) not in (None, constant):
            reading.warn(path, f"Flink 2.x has no such option, it is {constant} there; simulated as written all the same")
    if network.segment_bytes < 4096 or network.segment_bytes & (network.segment_bytes - 1):
        reading.wrong((*here, "segment-size"), f"{network.segment_bytes} B: Flink wants a power of two, 4 KiB or more")
    if not 0 < network.starting_segment_bytes <= network.segment_bytes:
        reading.wrong((*here, "starting-segment-size"), f"must lie between 1 B and the segment size, {network.segment_bytes} B")
    if network.exclusive_per_channel == 0:  # FLINK-16641 has the sender announce its backlog then
        reading.wrong((*here, "buffers-per-channel"), "is 0: a channel that begins without a buffer is not modelled, write 1 or more")
    if 0 < network.buffer_timeout_ns < MILLISECOND_NS:
        written = format_duration(network.buffer_timeout_ns)
        reading.wrong((*here, "buffer-timeout"), f"is {written}: Flink counts milliseconds, write 1 ms or more, or 0 s")
    if network.max_per_channel == 1:
        reading.warn((*here, "max-buffers-per-channel"), "is 1: as in Flink, a task stands still while a buffer it began is not full")
    _check_debloat(network, reading)
    return network


def _check_debloat(network: NetworkMemory, reading: Reading) -> None:
    here = ("cluster", "network", "debloat")
    if (debloat := network.debloat) is None:
        return
    for key, value in (("target", debloat.target_ns), ("period", debloat.period_ns), ("min", debloat.min_bytes)):
        if value == 0:
            reading.wrong((*here, key), "must be more than 0")
    if 0 < debloat.period_ns < MILLISECOND_NS:
        reading.wrong((*here, "period"), f"is {format_duration(debloat.period_ns)}: Flink counts milliseconds, write 1 ms or more")
    if debloat.min_bytes > network.segment_bytes:
        reading.wrong((*here, "min"), f"is larger than the segment size, {network.segment_bytes} B")


def _debloat(given: doc.Debloat | str | None) -> Debloat | None:
    if isinstance(given, doc.Debloat):
        return _given(Debloat(), target_ns=given.target, period_ns=given.period, samples=given.samples, threshold_percent=given.threshold,
                      min_bytes=given.min)
    return Debloat() if given in ("on", "true") else None


def _from_flink(path: tuple[str, ...], reading: Reading) -> bool:
    return path in reading.marks and reading.marks[path].path.startswith("flink.")


def _overheads(given: doc.Overheads, environment: Overheads) -> Overheads:
    return _given(
        environment, trigger_ns=given.trigger, acknowledge_ns=given.acknowledge, complete_ns=given.complete, notify_ns=given.notify,
        first_trigger_ns=given.first_trigger, close_ns=given.close, fail_ns=given.fail, restart_ns=given.restart, deploy_ns=given.deploy,
        file_ns=given.file, start_ns=given.start, flusher_ns=given.flusher,
    )

"""`checkpoint:` -> the model, with every check that needs values."""

from __future__ import annotations

from dataclasses import replace

from sim.model.catalogs.barriers import Barriers
from sim.model.checkpoint import CheckpointOptions
from sim.scenario.checkpoint.document import Checkpoint, Deadline
from sim.scenario.grammar.options import built
from sim.scenario.job.document import Vertex
from sim.scenario.sink.builder import build_staging
from sim.scenario.sizes import LEAST_INTERVAL_NS
from sim.scenario.state.builder import build_state_options
from sim.scenario.text.problems import Reading
from sim.units import format_duration

SHORTEST_NS = 10_000_000
"""CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME, of intervals and timeouts."""


def build_checkpoint(given: Checkpoint, job: dict[str, Vertex], reading: Reading, *, profile: str | None) -> CheckpointOptions:
    """Mistakes go to `reading`; `profile`: of the cluster."""
    here, old = "checkpoint", profile == "1.15"
    barriers = _barriers(given.barriers, reading, old=old)
    options = built(
        CheckpointOptions,
        given,
        (here,),
        reading,
        barriers=barriers,
        subtasks_per_channel_state_file=given.subtasks_per_channel_state_file or (1 if old else None),  # FLINK-26803 shares them
        forced_aligned=None if given.forced_aligned is None else tuple(given.forced_aligned),
        interval_during_backlog_ns=_interval_during_backlog(given, job, reading, profile=profile),
        **_recovery(given, reading, profile=profile),
        **build_staging(given.staging, job, reading),
        state=build_state_options(given, job, reading),
    )
    if options.interruptible_timers and not any(vertex.window is not None and vertex.window.time == "event" for vertex in job.values()):
        reading.warn((here, "interruptible-timers"), "has no effect: no vertex has windows of event time")
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
        reader = job.get(downstream)
        if reader is None or upstream not in reader.upstreams.values():
            reading.wrong((here, "forced-aligned", i), f"there is no edge {upstream} -> {downstream} in the job")
    return options


def _barriers(given: str | Deadline | None, reading: Reading, *, old: bool) -> Barriers:
    """`old`: of a Flink in which the deadline does not reach barriers in outputs."""
    if given is None or isinstance(given, str):
        return Barriers(given or "aligned")
    deadlines = ((field.alias or name, getattr(given, name)) for name, field in type(given).model_fields.items())
    kind, timeout_ns = next((kind, timeout_ns) for kind, timeout_ns in deadlines if timeout_ns is not None)
    if timeout_ns == 0:
        reading.wrong(("checkpoint", "barriers"), f"an {kind} of 0 is unaligned from the start: write unaligned")
    return Barriers(kind, timeout_ns, reaches_output=not old)


def _recovery(given: Checkpoint, reading: Reading, *, profile: str | None) -> dict[str, bool]:
    """How tasks come back to their in-flight data: switches of Flink 2.3, the second with the first only."""
    on_downstream, during = given.recover_output_on_downstream == "true", given.during_recovery == "true"
    here = "checkpoint"
    if during and not on_downstream:
        reading.warn((here, "during-recovery"), "has no effect without recover-output-on-downstream: true, as in Flink 2.3")
    if (during or on_downstream) and profile in ("1.15", "1.20"):
        key = "recover-output-on-downstream" if on_downstream else "during-recovery"
        reading.warn((here, key), f"has no effect with Flink {profile}: it came with 2.3")
        on_downstream = False
    return {"recover_output_on_downstream": on_downstream, "during_recovery": during and on_downstream}


def _interval_during_backlog(given: Checkpoint, job: dict[str, Vertex], reading: Reading, *, profile: str | None) -> int | None:
    """0: none meanwhile."""
    here = ("checkpoint", "interval-during-backlog")
    interval_ns: int | None = given.interval_during_backlog
    if interval_ns is None:
        return None
    if interval_ns and interval_ns < given.interval:
        usual = format_duration(given.interval)
        reading.wrong(here, f"is {format_duration(interval_ns)}, less than the interval, {usual}: write more, or off")
    if profile == "1.15" or given.interval == 0:
        reading.warn(here, "has no effect " + ("without an interval" if given.interval == 0 else "with Flink 1.15: FLIP-309 came later"))
        return None
    if not any(vertex.source is not None and vertex.source.backlog is not None for vertex in job.values()):
        reading.warn(here, "has no effect: no source says source: {backlog: ...}")
    return interval_ns

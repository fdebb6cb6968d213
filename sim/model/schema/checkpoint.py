"""State, sinks and checkpoints: from the document to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sim.model.catalog import At, attribute_of
from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.job import SOURCES, Distribution, Input, Snapshot
from sim.model.job import Vertex as JobVertex
from sim.model.schema import job as doc
from sim.model.schema.document import MIN_INTERVAL_NS
from sim.model.schema.fields import either
from sim.model.schema.job import Checkpoint, Deadline, Vertex
from sim.model.schema.sections import Options, built
from sim.model.schema.text import DocumentPath, Reading, remembered
from sim.model.sinks import SINKS, Commit, commit_of
from sim.model.state import BACKENDS, State, StateOptions, Ttl
from sim.model.units import format_duration

# ---- `state:` and the keys about it in `checkpoint:` -> the model, with every check that needs values.


def build_state(given: doc.State | None, vertex: str, reading: Reading) -> State | None:
    """Mistakes go to `reading`."""
    if given is None:
        return None
    here: DocumentPath = ("job", vertex, "state")
    at = At(here, reading)
    return built(State, given, at, ttl=None if given.limit else _ttl(given, at))


def build_state_options(given: Options, job: Mapping[str, Vertex], reading: Reading) -> StateOptions:
    """Mistakes go to `reading`."""
    backends = {vertex.state.backend for vertex in job.values() if vertex.state is not None}
    if given.incremental == "true" and not any(
        kind.keeps_files and name in backends for name, kind in BACKENDS.items()
    ):
        kept = either([kind.name for kind in BACKENDS.values() if kind.keeps_files])
        reading.warn(
            ("checkpoint", "incremental"),
            f"has no effect: no state is kept in {kept}, and the heap is always written in full",
        )
    if given.savepoint_cpu == 1:
        reading.wrong(("checkpoint", "savepoint-cpu"), "leaves the task nothing to work with: write less than 100 %")
    return built(StateOptions, given, At(("checkpoint",), reading))


def _ttl(given: doc.State, at: At) -> Ttl | None:
    kind = BACKENDS[given.backend or next(iter(BACKENDS))]
    for key in ("ttl-checks", "ttl-filter"):
        if getattr(given, attribute_of(key)) is None:
            continue
        if not given.ttl:
            at.warn("has no effect: write ttl, how long after its last write a key leaves", key)
        elif key not in kind.sections:
            at.warn(f"has no effect: in {kind.name} expired keys leave when files are merged", key)
    return built(Ttl, given, at, after_ns=given.ttl) if given.ttl else None


# ---- `commit:` of a vertex -> the model; a global committer becomes a vertex of its own.


def build_commit(
    given: doc.Commit | str | None, connector: str, here: DocumentPath, *, has_input: bool, reading: Reading
) -> Commit | None:
    """What is not written is as the connector has it."""
    if given is None or given == "none":
        return None
    kind = SINKS.get(connector)
    usual = Commit() if kind is None else commit_of(kind)
    if given == "as-connector" and kind is None:
        reading.wrong(here, "names no connector: write connector: beside it, or commit: two-phase")
    if usual is None:
        if given != "as-connector":
            reading.wrong(
                here,
                f"'{connector}' commits nothing, its output is visible at once: leave commit out, or write as-connector",
            )
        return None
    if not has_input:
        reading.wrong(here, "a source commits nothing: commit stands in a vertex with an input")
    if isinstance(given, str):
        return usual
    if given.transaction_timeout == 0:
        reading.wrong((*here, "transaction-timeout"), "a timeout of 0 loses every transaction: write at least '1 ms'")
    commit = built(Commit, given, At(here, reading), usual)
    if commit.emits == "on-commit" and commit.committer == "global":
        reading.wrong(
            (*here, "emits"), "a global committer is no part of the vertex: only a chained one lets records go"
        )
    return commit


def build_connector(
    given: doc.Connector | str | None, here: DocumentPath, *, is_source: bool, reading: Reading
) -> dict[str, str]:
    """The fields of a vertex about its connector."""
    name, version = (given.name, given.version) if isinstance(given, doc.Connector) else (given, None)
    if name is not None and (name in SOURCES) is not is_source:
        reading.wrong(
            here,
            f"'{name}' is {'written to' if is_source else 'read'}: expected {either([*(SOURCES if is_source else SINKS)])}",
        )
    return {"connector": name or "", "connector_version": version or ""}


def build_staging(given: doc.Staging | None, job: Mapping[str, doc.Vertex], reading: Reading) -> dict[str, object]:
    """The fields of the checkpoint options; a file that never fits would wait for ever."""
    if given is None:
        return {}
    for name, vertex in job.items():
        flush = vertex.flush
        if flush is not None and (flush.bytes or 0) > given.space * (flush.files or 1):
            reading.wrong(("checkpoint", "staging", "space"), f"is less than one file of {name}")
    return {"staging_bytes": given.space, "staging_full": given.when_full}


def with_committers(vertices: tuple[JobVertex, ...], reading: Reading) -> tuple[JobVertex, ...]:
    """The vertices, and behind each with a global committer that committer: it reads committables, which take no room."""
    names, committers = {vertex.name for vertex in vertices}, list[JobVertex]()
    for vertex in vertices:
        if vertex.commit is None or vertex.commit.committer != "global":
            continue
        name = f"{vertex.name}: committer"
        if name in names:
            reading.wrong(("job", name), f"is the name of the global committer of {vertex.name}: choose another")
        behind = Input(vertex.name, "global", service=Distribution(0), record_bytes=Distribution(1))
        committers.append(replace(JobVertex(name, inputs=(behind,), snapshot=Snapshot()), committer_of=vertex.name))
    return (*vertices, *committers)


# ---- `checkpoint:` -> the model, with every check that needs values.

SHORTEST_NS = 10_000_000
"""CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME, of intervals and timeouts."""


@remembered
def build_checkpoint(
    given: Checkpoint, job: dict[str, Vertex], reading: Reading, *, profile: str | None
) -> CheckpointOptions:
    """Mistakes go to `reading`; `profile`: of the cluster."""
    here, old = "checkpoint", profile == "1.15"
    barriers = _barriers(given.barriers, reading, old=old)
    options = built(
        CheckpointOptions,
        given,
        At((here,), reading),
        barriers=barriers,
        # FLINK-26803 shares them
        subtasks_per_channel_state_file=given.subtasks_per_channel_state_file or (1 if old else None),
        forced_aligned=None if given.forced_aligned is None else tuple(given.forced_aligned),
        interval_during_backlog_ns=_interval_during_backlog(given, job, reading, profile=profile),
        **_recovery(given, reading, profile=profile),
        **build_staging(given.staging, job, reading),
        state=build_state_options(given, job, reading),
    )
    if options.interruptible_timers and not any(
        vertex.window is not None and vertex.window.time == "event" for vertex in job.values()
    ):
        reading.warn((here, "interruptible-timers"), "has no effect: no vertex has windows of event time")
    for key, value in (("interval", options.interval_ns), ("timeout", options.timeout_ns)):
        if value is not None and value < SHORTEST_NS:
            few = f"is {format_duration(value)}: Flink wants {format_duration(SHORTEST_NS)} or more"
            # snapshots taken one after the other by hand, as benchmarks do
            if key == "interval" and value >= MIN_INTERVAL_NS:
                reading.warn((here, key), f"{few}; simulated as written all the same")
            else:
                reading.wrong((here, key), few)
    if options.max_concurrent > 1 and barriers.record.overtakes:
        reading.wrong(
            (here, "max-concurrent"),
            f"is {options.max_concurrent}, but Flink runs {barriers} checkpoints one by one: write 1",
        )
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
        reading.warn(
            (here, "during-recovery"), "has no effect without recover-output-on-downstream: true, as in Flink 2.3"
        )
    if (during or on_downstream) and profile in ("1.15", "1.20"):
        key = "recover-output-on-downstream" if on_downstream else "during-recovery"
        reading.warn((here, key), f"has no effect with Flink {profile}: it came with 2.3")
        on_downstream = False
    return {"recover_output_on_downstream": on_downstream, "during_recovery": during and on_downstream}


def _interval_during_backlog(
    given: Checkpoint, job: dict[str, Vertex], reading: Reading, *, profile: str | None
) -> int | None:
    """0: none meanwhile."""
    here = ("checkpoint", "interval-during-backlog")
    interval_ns: int | None = given.interval_during_backlog
    if interval_ns is None:
        return None
    if interval_ns and interval_ns < given.interval:
        usual = format_duration(given.interval)
        reading.wrong(here, f"is {format_duration(interval_ns)}, less than the interval, {usual}: write more, or off")
    if profile == "1.15" or given.interval == 0:
        reading.warn(
            here,
            "has no effect "
            + ("without an interval" if given.interval == 0 else "with Flink 1.15: FLIP-309 came later"),
        )
        return None
    if not any(vertex.source is not None and vertex.source.backlog is not None for vertex in job.values()):
        reading.warn(here, "has no effect: no source says source: {backlog: ...}")
    return interval_ns

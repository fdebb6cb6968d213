"""The kinds of what-if: what a scenario changes of the job that was imported."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.model.checkpoint import CheckpointOptions
    from sim.model.job import Job, Vertex
    from sim.model.scenario import Scenario
    from sim.model.state import State

Kind = Literal["barriers", "network", "interval", "parallelism", "load", "storage", "backend", "failure", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of reading; `other` is what no other kind names."""
UNSEEN: frozenset[Kind] = frozenset({"backend", "failure", "other"})
"""Kinds that bring in what the imported job has never done.  Flushes of RocksDB are an example: under a changelog no checkpoint waits for
one.  What other kinds are off by says nothing of these."""
AS_IT_IS: tuple[Kind, ...] = ()
"""A scenario that changes nothing."""

_CHECKPOINT: dict[str, Kind] = {
    "barriers": "barriers", "forced_aligned": "barriers", "interruptible_timers": "barriers", "recover_output_on_downstream": "barriers",
    "during_recovery": "barriers", "subtasks_per_channel_state_file": "barriers",
    "interval_ns": "interval", "interval_during_backlog_ns": "interval", "min_pause_ns": "interval", "max_concurrent": "interval",
    "timeout_ns": "interval", "tolerable_failed": "interval", "num_retained": "interval",
    "state": "storage", "operator_io": "storage", "abort_policy": "storage", "upload_threads": "storage", "staging_bytes": "storage",
    "staging_full": "storage", "lost_notifications": "failure",
}  # fmt: skip
_CLUSTER: dict[str, Kind] = {
    "network": "network", "latency_ns": "network", "nic_bytes_per_second": "network",
    "barrier_wake_up_ns": "network",
    "placement": "parallelism", "slots": "parallelism", "cores": "parallelism", "hosts": "parallelism", "tasks_contend": "parallelism",
}  # fmt: skip
_VERTEX: dict[str, Kind] = {
    "parallelism": "parallelism", "max_parallelism": "parallelism", "source": "load", "inputs": "load", "service": "load",
    "service_factors": "load", "fan_out": "load", "async_io": "load", "window": "load", "state": "storage", "snapshot": "storage",
    "flush": "storage",
}  # fmt: skip
_OVERHEADS: dict[str, Kind] = {"file_ns": "storage", "complete_ns": "storage"}
_SCENARIO: dict[str, Kind] = {
    "storage": "storage", "instances": "storage", "directories": "storage", "faults": "failure", "restart": "failure",
    "rescale": "parallelism", "actions": "other",
}  # fmt: skip


def kinds_of(imported: Scenario, changed: Scenario) -> tuple[Kind, ...]:
    """What `changed` changes, in the order of `KINDS`.  How long, how often and with which seed it runs is no change."""
    found: set[Kind] = {
        *_differing(imported, changed, _SCENARIO),
        *_differing(imported.checkpoint, _same_backend(imported.checkpoint, changed.checkpoint), _CHECKPOINT),
        *_of_backends(imported, changed),
        *_differing(imported.cluster, changed.cluster, _CLUSTER),
        *_differing(imported.overheads, changed.overheads, _OVERHEADS),
        *_of_jobs(imported.job, changed.job),
    }
    return tuple(kind for kind in KINDS if kind in found)


def _differing(before: Any, after: Any, kinds: dict[str, Kind]) -> Iterator[Kind]:
    """The kinds of the fields that differ.  A scenario's own fields without a kind are no option of its job, as residuals."""
    is_scenario = kinds is _SCENARIO
    for field in fields(before):
        if getattr(before, field.name) != getattr(after, field.name) and (field.name in kinds or not is_scenario):
            yield kinds.get(field.name, "other")


def _of_backends(before: Scenario, after: Scenario) -> Iterator[Kind]:
    """Another backend, a changelog put on or taken off, or snapshots that are incremental where they were not."""
    theirs = {vertex.name: vertex.state for vertex in after.job.vertices}
    states = ((vertex.state, theirs.get(vertex.name)) for vertex in before.job.vertices)
    others = any(mine and other and _backend(mine) != _backend(other) for mine, other in states)
    if others or before.checkpoint.state.incremental != after.checkpoint.state.incremental:
        yield "backend"


def _backend(state: State) -> tuple[str, bool]:
    return state.backend, state.changelog is not None


def _same_backend(before: CheckpointOptions, after: CheckpointOptions) -> CheckpointOptions:
    return replace(after, state=replace(after.state, incremental=before.state.incremental))


def _same_state_backend(before: Vertex, after: Vertex) -> Vertex:
    """`after` with the backend of `before`, if they have another: what is left is a matter of storage."""
    mine, other = before.state, after.state
    if mine is None or other is None or _backend(mine) == _backend(other):
        return after
    return replace(after, state=replace(other, backend=mine.backend, changelog=mine.changelog))


def _of_jobs(before: Job, after: Job) -> Iterator[Kind]:
    if [vertex.name for vertex in before.vertices] != [vertex.name for vertex in after.vertices] or before.edges != after.edges:
        yield "other"
        return
    for mine, theirs in zip(before.vertices, after.vertices, strict=True):
        apart, theirs = mine.parallelism != theirs.parallelism, _same_state_backend(mine, theirs)
        yield from _differing(_of_all_subtasks(mine) if apart else mine, _of_all_subtasks(theirs) if apart else theirs, _VERTEX)


def _of_all_subtasks(vertex: Vertex) -> Vertex:
    """Rates and records of all subtasks together, and no weight of single ones: another parallelism alone changes none of them."""
    source = vertex.source
    if source is not None:
        rates = tuple(replace(rate, per_second=rate.per_second * vertex.emitting) for rate in source.rates)
        source = replace(source, rates=rates, total=None if source.total is None else source.total * vertex.emitting)
    return replace(vertex, source=source, inputs=tuple(replace(inlet, weights=()) for inlet in vertex.inputs))

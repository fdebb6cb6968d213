"""Changes that would shorten a critical path, with the time that they save and the scenario to simulate.

The saved time is only an estimate: after a change another path may be critical, and the rest of the path may be shorter,
too.  Only a simulation gives the duration of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sim.model.checkpoint import Barriers
from sim.model.scenario import Scenario
from sim.model.storage import Storage
from sim.results.critical_path import PathKind, PathPart

if TYPE_CHECKING:
    from sim.explain.causes import SlowPlace
    from sim.model.job import Vertex
    from sim.runtime.context import Context

NO_SETTING = {PathKind.TRIGGER, PathKind.ACKNOWLEDGEMENT, PathKind.FINALISATION, PathKind.NOTIFICATION}
"""Waits that no setting of a real job shortens: messages and work of the JobManager."""
_UNLIMITED = 10**15
"""A rate [bytes/s] at which flushes take no time."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change of a scenario, and the time by which it shortens the critical path."""

    change: str  # "without ..." or "with ..."
    saved_ns: int
    scenario: Scenario | None  # the scenario with the change; None if no setting makes it


def what_if(kind: PathKind, parts: Sequence[PathPart], slow: SlowPlace | None, context: Context) -> WhatIf | None:
    """Return the change that would avoid these parts of a simulated checkpoint, or None if there is none.

    `parts`: consecutive parts of this kind.  `slow`: slow part of storage that delayed them.
    """
    scenario, spent_ns = context.scenario, sum(part.duration_ns for part in parts)
    if slow is not None:
        saved_ns = int(spent_ns * (1 - 1 / slow.factor))
        return WhatIf(f"without the slow {'node' if 'node' in slow.place else 'stream'}", saved_ns, _healthy(scenario))
    rule = _RULES.get(kind)
    if rule is None:
        return None
    change, changed = rule
    if changed is _unaligned and scenario.checkpoint.barriers.kind == "unaligned":
        return None  # barriers are unaligned already; they cannot overtake a thread that fires timers
    vertex = context.scenario.job.vertices[context.layout.vertex[parts[0].task]] if parts[0].task >= 0 else None
    return WhatIf(change, spent_ns, changed(scenario, vertex))


def bound(kind: PathKind, spent_ns: int, *, overtakes: bool) -> WhatIf | None:
    """Return the change that would avoid a wait of a recorded checkpoint, or None if no setting does.

    It has no scenario.  `spent_ns`: duration of the wait.  `overtakes`: whether checkpoints are unaligned already.
    """
    if kind not in _RULES or kind in NO_SETTING or (overtakes and _RULES[kind][1] is _unaligned):
        return None
    return WhatIf(_RULES[kind][0], spent_ns, None)


_Change = Callable[[Scenario, "Vertex | None"], Scenario | None]


def _unaligned(scenario: Scenario, _: Vertex | None) -> Scenario | None:
    """Return the scenario with unaligned barriers."""
    return replace(scenario, checkpoint=replace(scenario.checkpoint, barriers=Barriers("unaligned"), max_concurrent=1))


def _async_operate(scenario: Scenario, _: Vertex | None) -> Scenario | None:
    """Return the scenario in which operators write files in the asynchronous part, or None if they already do."""
    return (
        None
        if scenario.checkpoint.operator_io == "async"
        else replace(scenario, checkpoint=replace(scenario.checkpoint, operator_io="async"))
    )


def _without_work(**constants: Any) -> _Change:
    """Return a change that removes snapshot work of a vertex in all phases, including CPU work for its state.

    `constants`: times of RocksDB that it sets to 0 as well.
    """

    def change(scenario: Scenario, vertex: Vertex | None) -> Scenario | None:
        if vertex is None:
            return None
        state = vertex.state
        if state is not None:
            lsm = replace(state.lsm, link_ns=0, flush_bytes_per_second=_UNLIMITED, **constants)
            state = replace(state, sync_ns=0, serialize_bytes_per_second=None, lsm=lsm)
        options = replace(scenario.checkpoint.state, savepoint_bytes_per_second=None)
        changed = replace(scenario, checkpoint=replace(scenario.checkpoint, state=options))
        snapshot = replace(vertex.snapshot, pre_barrier_ns=0, sync_ns=0, async_ns=0)
        return _with_vertex(changed, replace(vertex, snapshot=snapshot, state=state))

    return change


def _instant_commit(scenario: Scenario, vertex: Vertex | None) -> Scenario | None:
    """Return the scenario in which the commit of the vertex takes no time, or None if it does not commit."""
    if vertex is None:
        return None
    writer = scenario.job.vertex(vertex.committer_of) if vertex.committer_of else vertex
    return (
        None
        if writer.commit is None
        else _with_vertex(scenario, replace(writer, commit=replace(writer.commit, time_ns=0)))
    )


def _with_vertex(scenario: Scenario, changed: Vertex) -> Scenario:
    """Return the scenario with a changed vertex."""
    vertices = tuple(changed if vertex.name == changed.name else vertex for vertex in scenario.job.vertices)
    return replace(scenario, job=replace(scenario.job, vertices=vertices))


def _instant_storage(scenario: Scenario, _: Vertex | None) -> Scenario | None:
    """Return the scenario with storage in which writing files takes no time."""
    storage = Storage(
        metadata_ns=scenario.storage.metadata_ns, inline_threshold_bytes=scenario.storage.inline_threshold_bytes
    )
    return replace(scenario, storage=storage, overheads=replace(scenario.overheads, file_ns=0))


def _healthy(scenario: Scenario) -> Scenario | None:
    """Return the scenario without slow nodes, prefixes, streams and disks."""
    storage = scenario.storage
    media: dict[str, Any] = {
        name: None if medium is None else replace(medium, slow=None)
        for name, medium in (("dfs", storage.dfs), ("object_store", storage.object_store), ("disk", storage.disk))
    }
    return replace(scenario, storage=replace(storage, slow_probability=0.0, slow_factor=1, **media))


def _instant(field: str) -> _Change:
    """Return a change that sets an overhead to 0."""
    return lambda scenario, _: replace(scenario, overheads=replace(scenario.overheads, **{field: 0}))


def _instant_metadata(scenario: Scenario, _: Vertex | None) -> Scenario | None:
    """Return the scenario in which writing metadata and completing a checkpoint take no time."""
    return replace(
        scenario, storage=replace(scenario.storage, metadata_ns=0), overheads=replace(scenario.overheads, complete_ns=0)
    )


_RULES: dict[PathKind, tuple[str, _Change]] = {
    PathKind.TRIGGER: ("with a trigger that takes no time", _instant("trigger_ns")),
    PathKind.QUEUE: ("with unaligned barriers", _unaligned),
    PathKind.TIMEOUT: ("with unaligned barriers", _unaligned),
    PathKind.ALIGNMENT: ("with unaligned barriers", _unaligned),
    PathKind.FLUSH: ("with files written in the asynchronous part", _async_operate),
    PathKind.PRE_BARRIER: ("without the work before the barrier", _without_work()),
    PathKind.SYNC: ("without the synchronous part", _without_work(freeze_ns=0)),
    PathKind.ASYNC_QUEUE: ("without the asynchronous work", _without_work(upload_ns=0)),  # of older checkpoints
    PathKind.ASYNC_WORK: ("without the asynchronous work", _without_work(upload_ns=0)),
    PathKind.UPLOAD: ("with storage that takes no time", _instant_storage),
    PathKind.CHANNEL_STATE: ("with storage that takes no time", _instant_storage),
    PathKind.ACKNOWLEDGEMENT: ("with acknowledgements that take no time", _instant("acknowledge_ns")),
    PathKind.FINALISATION: ("with _metadata that takes no time", _instant_metadata),
    PathKind.NOTIFICATION: ("with notifications that take no time", _instant("notify_ns")),
    PathKind.COMMIT: ("with a commit that takes no time", _instant_commit),
}

"""What can be set about a job: how barriers travel, how often, how much data is in flight.  Each is a change of the scenario.

`protocols` are tried at every interval, from what changes least about a job to what changes most; `extras` are single things beside
them, tried where those do not do, or to see what they would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.model.backends import BACKENDS
from sim.model.barriers import BARRIERS, BarrierKind
from sim.sweep.file.design import Point
from sim.units import format_duration

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario

__all__ = ["NICE_NS", "Candidate", "Protocol", "candidate", "extras", "intervals", "patient", "protocols", "todays"]

_S = 1_000_000_000
INTERVALS_NS = tuple(seconds * _S for seconds in (10, 30, 60, 180, 600))
NICE_NS = tuple(seconds * _S for seconds in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600))
TIMEOUT_NS = 600 * _S
"""execution.checkpointing.timeout unless somebody says otherwise: what is tried is not cut short by less."""

_BARRIERS, _DEBLOAT = "checkpoint.barriers", "cluster.network.debloat"
SMALL_SEGMENT, FEW_FLOATING = 8192, 2


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    point: Point = field(hash=False)
    aligned: bool = True  # the barrier never overtakes data
    is_configuration: bool = True  # else it takes another version of Flink or of the job

    @property
    def barriers(self) -> str:
        """Without what is said beside them."""
        return self.name.partition(", ")[0]


def protocols() -> tuple[Protocol, ...]:
    """Every way of barriers that its record has advice try."""
    return tuple(_advised(kind, debloat) for kind in BARRIERS.values() for debloat in kind.advised)


def _advised(kind: BarrierKind, debloat: str) -> Protocol:
    name = f"{kind.name} {kind.advised_deadline}" if kind.has_deadline else kind.name
    value: Any = {kind.name: kind.advised_deadline} if kind.has_deadline else kind.name
    return Protocol(f"{name}, debloating" if debloat == "on" else name, {_BARRIERS: value, _DEBLOAT: debloat}, aligned=not kind.overtakes)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting to be tried; `point` is what differs from today's."""

    interval: str
    protocol: str
    point: Point = field(hash=False)

    @property
    def name(self) -> tuple[str, str]:
        return self.interval, self.protocol


def todays(scenario: Scenario) -> tuple[int | None, Protocol]:
    """How the job is set now: the interval [ns] (None: no checkpoints) and the protocol."""
    barriers, debloat = scenario.checkpoint.barriers, scenario.cluster.network.debloat is not None
    name = f"{barriers}, debloating" if debloat else str(barriers)
    known = [protocol for protocol in protocols() if protocol.name == name]
    own = Protocol(name, {}, aligned=not barriers.record.overtakes)
    return scenario.checkpoint.interval_ns, known[0] if known else own


def intervals(scenario: Scenario, *, recovery_ms: float | None, visible_ms: float | None) -> list[int]:
    """What is tried, in ns, ascending: a grid, today's, and what limits leave room for."""
    now_ns, _ = todays(scenario)
    found = {*INTERVALS_NS, *([now_ns] if now_ns else [])}
    for bound_ms, part in ((recovery_ms, 2), (visible_ms, 2)):
        if bound_ms is not None:
            fitting = [interval_ns for interval_ns in NICE_NS if interval_ns <= bound_ms * 1e6 / part]
            found |= {fitting[-1]} if fitting else set()
    return sorted(found)


def candidate(scenario: Scenario, interval_ns: int, protocol: Protocol) -> Candidate:
    """A setting as a change of today's; the one of today changes nothing."""
    now_ns, now = todays(scenario)
    if (interval_ns, protocol.name) == (now_ns, now.name):
        return Candidate(format_duration(interval_ns), protocol.name, {})
    change: Point = {} if interval_ns == now_ns else {"checkpoint.interval": format_duration(interval_ns)}
    network = scenario.cluster.network
    for key, value in protocol.point.items():
        if key == _DEBLOAT and (value == "on") == (network.debloat is not None):
            continue  # as it is, with the target somebody may have chosen
        if key != _BARRIERS or protocol.barriers != now.barriers:
            change[key] = value
    if scenario.checkpoint.timeout_ns < TIMEOUT_NS:
        change["checkpoint.timeout"] = format_duration(TIMEOUT_NS)
    if not protocol.aligned and scenario.checkpoint.max_concurrent > 1:
        change["checkpoint.max-concurrent"] = 1  # Flink runs unaligned ones one by one
    return Candidate(format_duration(interval_ns), protocol.name, change)


def patient(scenario: Scenario, now: Protocol) -> Protocol | None:
    """Today's protocol with a timeout that cuts nothing short; None: it has one."""
    if scenario.checkpoint.timeout_ns >= TIMEOUT_NS:
        return None
    return Protocol(f"{now.name}, timeout {format_duration(TIMEOUT_NS)}", now.point, now.aligned)


def extras(scenario: Scenario, base: Protocol) -> Iterator[Protocol]:
    """`base` with one thing more."""
    network, state = scenario.cluster.network, scenario.checkpoint.state

    def base_with(name: str, point: Point, *, is_configuration: bool = True) -> Protocol:
        return Protocol(f"{base.name}, {name}", {**base.point, **point}, base.aligned, is_configuration)

    debloating = "debloating" in base.name
    if not debloating and network.segment_bytes > SMALL_SEGMENT:
        yield base_with("segments of 8 KiB", {"cluster.network.segment-size": "8 KiB"})
    if not debloating and scenario.cluster.profile != "2.x" and network.floating_per_gate > FEW_FLOATING:
        yield base_with("2 floating buffers", {"cluster.network.floating-buffers-per-gate": FEW_FLOATING})
    backends = {vertex.state.backend for vertex in scenario.job.vertices if vertex.state is not None}
    if any(BACKENDS[backend].keeps_files for backend in backends) and not state.incremental:
        yield base_with("incremental", {"checkpoint.incremental": True})
    if backends and not state.local_recovery:
        yield base_with("local recovery", {"checkpoint.local-recovery": True})
    if scenario.checkpoint.operator_io == "pre-barrier" and any(_works_before(vertex) for vertex in scenario.job.vertices):
        yield base_with("operator files behind the barrier (FLINK-37375)", {"checkpoint.operator-io": "async"}, is_configuration=False)


def _works_before(vertex: Vertex) -> bool:
    """Whether an operator does something before it passes the barrier on."""
    return vertex.flush is not None or vertex.snapshot.pre_barrier_ns > 0

"""The settings of a job that advice can change: barriers, interval, data in flight.  Each is a change of the scenario.

`protocols` are tried at every interval, from the smallest change of a job to the largest.  `extras` are single options on top of them.
They are tried where no protocol keeps the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sim.model.catalogs.backends import BACKENDS
from sim.model.catalogs.barriers import BARRIERS, BarrierKind
from sim.sweeps.file.design import Point
from sim.units import format_duration

if TYPE_CHECKING:
    from sim.model.job import Vertex
    from sim.model.scenario import Scenario

__all__ = ["NICE_NS", "Candidate", "Protocol", "candidate", "extras", "intervals", "protocols", "todays_setting", "with_default_timeout"]

_S = 1_000_000_000
INTERVALS_NS = tuple(seconds * _S for seconds in (10, 30, 60, 180, 600))
NICE_NS = tuple(seconds * _S for seconds in (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600))
TIMEOUT_NS = 600 * _S
"""execution.checkpointing.timeout unless the job sets it: no trial has a shorter one."""

_BARRIERS, _DEBLOAT = "checkpoint.barriers", "cluster.network.debloat"
SMALL_SEGMENT, FEW_FLOATING = 8192, 2


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    point: Point = field(hash=False)
    aligned: bool = True  # the barrier never overtakes data
    is_configuration: bool = True  # False: it needs another version of Flink or of the job

    @property
    def barriers(self) -> str:
        """The way of barriers, without further options."""
        return self.name.partition(", ")[0]


def protocols() -> tuple[Protocol, ...]:
    """Every way of barriers that advice tries."""
    return tuple(_advised(kind, debloat) for kind in BARRIERS.values() for debloat in kind.advised)


def _advised(kind: BarrierKind, debloat: str) -> Protocol:
    name = f"{kind.name} {kind.advised_deadline}" if kind.has_deadline else kind.name
    value: Any = {kind.name: kind.advised_deadline} if kind.has_deadline else kind.name
    return Protocol(f"{name}, debloating" if debloat == "on" else name, {_BARRIERS: value, _DEBLOAT: debloat}, aligned=not kind.overtakes)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting to try; `point` is the change against today's."""

    interval: str
    protocol: str
    point: Point = field(hash=False)

    @property
    def name(self) -> tuple[str, str]:
        return self.interval, self.protocol


def todays_setting(scenario: Scenario) -> tuple[int | None, Protocol]:
    """Today's setting: the interval [ns] (None: no checkpoints) and the protocol."""
    barriers, debloat = scenario.checkpoint.barriers, scenario.cluster.network.debloat is not None
    name = f"{barriers}, debloating" if debloat else str(barriers)
    known = [protocol for protocol in protocols() if protocol.name == name]
    own = Protocol(name, {}, aligned=not barriers.record.overtakes)
    return scenario.checkpoint.interval_ns, known[0] if known else own


def intervals(scenario: Scenario, *, recovery_ms: float | None, visible_ms: float | None) -> list[int]:
    """The intervals to try [ns], ascending: a grid, today's, and those that the limits allow."""
    today_ns, _ = todays_setting(scenario)
    found = {*INTERVALS_NS, *([today_ns] if today_ns else [])}
    for bound_ms in (recovery_ms, visible_ms):
        if bound_ms is not None:  # a whole interval is lost, or waited for, at worst: half the limit leaves room for all else
            fitting = [interval_ns for interval_ns in NICE_NS if interval_ns <= bound_ms * 1e6 / 2]
            found |= {fitting[-1]} if fitting else set()
    return sorted(found)


def candidate(scenario: Scenario, interval_ns: int, protocol: Protocol) -> Candidate:
    """A setting as a change of today's setting; today's own changes nothing."""
    today_ns, todays = todays_setting(scenario)
    if (interval_ns, protocol.name) == (today_ns, todays.name):
        return Candidate(format_duration(interval_ns), protocol.name, {})
    change: Point = {} if interval_ns == today_ns else {"checkpoint.interval": format_duration(interval_ns)}
    network = scenario.cluster.network
    for key, value in protocol.point.items():
        if key == _DEBLOAT and (value == "on") == (network.debloat is not None):
            continue  # as it is, with the user's own target
        if key != _BARRIERS or protocol.barriers != todays.barriers:
            change[key] = value
    if scenario.checkpoint.timeout_ns < TIMEOUT_NS:
        change["checkpoint.timeout"] = format_duration(TIMEOUT_NS)
    if not protocol.aligned and scenario.checkpoint.max_concurrent > 1:
        change["checkpoint.max-concurrent"] = 1  # Flink runs unaligned checkpoints one at a time
    return Candidate(format_duration(interval_ns), protocol.name, change)


def with_default_timeout(scenario: Scenario, now: Protocol) -> Protocol | None:
    """Today's protocol with a longer timeout; None: its timeout is long enough."""
    if scenario.checkpoint.timeout_ns >= TIMEOUT_NS:
        return None
    return Protocol(f"{now.name}, timeout {format_duration(TIMEOUT_NS)}", now.point, now.aligned)


def extras(scenario: Scenario, base: Protocol) -> Iterator[Protocol]:
    """`base` with one further option each."""
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
    """Whether an operator works before it forwards the barrier."""
    return vertex.flush is not None or vertex.snapshot.pre_barrier_ns > 0

"""What the benchmarks run: chains of all-to-all stages, from three tasks to 4 x 256, and what an engine reports of a run.

The sink is the bottleneck at 32 KiB per millisecond (about 30 MB/s per task), stages between need 0.6 of that, sources
0.1; all service times are exponential.  Records are small (1000 B, 33 to a buffer) or fill a buffer each.  Every task
has a host of its own, so every channel is remote.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sim.model.job import Distribution
from sim.model.randomness import quantile_table
from sim.plane.interface import EdgeSpec, PlaneSpec, RateSegment, Ship, SourceSpec, VertexSpec

__all__ = ["SIZES", "Outcome", "Snapshot", "Workload", "chain", "with_total", "workload"]

SEGMENT = 32768
SINK_NS = 1_000_000  # per segment
SECOND = 1_000_000_000

# stages x parallelism -> simulated seconds with small records, with records of a buffer each
SIZES: dict[tuple[int, int], tuple[float, float]] = {
    (3, 1): (4.0, 60.0),
    (3, 4): (2.0, 20.0),
    (4, 16): (0.8, 5.0),
    (4, 64): (0.5, 2.0),
}


@dataclass(frozen=True)
class Workload:
    """One run: the plane's specification, its length and when checkpoints begin."""

    name: str
    spec: PlaneSpec
    until_ns: int
    interval_ns: int = 0  # a checkpoint begins at each multiple, unless one is under way; 0: none
    unaligned: bool = False


@dataclass(frozen=True)
class Snapshot:
    """One task's part in one checkpoint."""

    number: int
    task: int
    first_ns: int  # first barrier processed
    last_ns: int  # last barrier processed
    bytes_in: int = 0  # captured in flight
    bytes_out: int = 0


@dataclass
class Outcome:
    """What every engine must agree on, by task."""

    served: list[int]
    bytes_in: list[int]
    bytes_out: list[int]  # written to output buffers
    hops: list[int]  # data buffers consumed
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Records served by all tasks."""
        return sum(self.served)

    @property
    def buffers(self) -> int:
        """Data buffers consumed by all tasks."""
        return sum(self.hops)


def service(mean_ns: float) -> tuple[int, ...]:
    return quantile_table(Distribution(round(mean_ns), "exponential"), 1024)


def chain(
    stages: int,
    parallelism: int,
    *,
    record_bytes: int = 1000,
    load: float | None = 0.7,
    total: int = -1,
    seed: int = 1,
    **plane: Any,
) -> PlaneSpec:
    """``stages`` vertices of equal parallelism, connected all-to-all by hash; ``load`` is relative to the sink, None: unlimited."""
    sink_ns = SINK_NS * record_bytes / SEGMENT
    segments = () if load is None else (RateSegment(0, 0, round(load * 1000), round(sink_ns * 1000)),)
    share = [0.1] + [0.6] * (stages - 2) + [1.0]
    source = SourceSpec(segments, total)
    vertices = tuple(
        VertexSpec(f"v{i}", parallelism, (service(sink_ns * share[i]),), source if i == 0 else None)
        for i in range(stages)
    )
    edges = tuple(EdgeSpec(f"e{i}", i, i + 1, Ship.HASH, (record_bytes,)) for i in range(stages - 1))
    return PlaneSpec(vertices, edges, tuple(range(stages * parallelism)), seed=seed, **plane)


def workload(
    stages: int,
    parallelism: int,
    *,
    load: float | None = 0.7,
    latency_ns: int = 0,
    unaligned: bool = False,
    big_records: bool = False,
    scale: float = 1.0,
) -> Workload:
    """A named workload of the standard sizes, with one checkpoint in the middle; ``scale`` stretches the simulated time."""
    until = round(SIZES[stages, parallelism][big_records] * scale * SECOND)
    spec = chain(stages, parallelism, record_bytes=SEGMENT if big_records else 1000, load=load, latency_ns=latency_ns)
    name = f"{stages}x{parallelism} {'32 KiB' if big_records else '1000 B'} load {load or 'max'}"
    name += f"{' 0.1 ms' if latency_ns else ''}{' unaligned' if unaligned else ''}"
    return Workload(name, spec, until, until * 3 // 5, unaligned)


def with_total(work: Workload, total: int, until_ns: int) -> Workload:
    """The same with bounded sources and time enough to drain."""
    source, *rest = work.spec.vertices
    assert source.source is not None
    bounded = replace(source, source=replace(source.source, total=total))
    return replace(work, spec=replace(work.spec, vertices=(bounded, *rest)), until_ns=until_ns)

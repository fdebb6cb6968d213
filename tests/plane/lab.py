"""Tiny hand-made worlds: a buffer of 100 bytes, records of 100 bytes, 10 ns of service unless a test says otherwise."""

from dataclasses import replace
from typing import Any

from sim.plane.interface import DataPlane, Notice, NoticeKind, ThreadState
from sim.plane.spec import EdgeSpec, Law, PlaneSpec, RateSegment, Ship, SourceSpec, VertexSpec

FOREVER = 10**12


def source(
    name: str = "a", parallelism: int = 1, *, service: int | Law = 10, total: int = -1, every: int | None = None
) -> VertexSpec:
    """Records as fast as they are served, or one `every` ns beginning at 0."""
    segments = () if every is None else (RateSegment(0, 0, 1, every),)
    return VertexSpec(name, parallelism, (law_of(service),), SourceSpec(segments, total))


def vertex(name: str = "b", parallelism: int = 1, *, service: tuple[int | Law, ...] = (10,)) -> VertexSpec:
    return VertexSpec(name, parallelism, tuple(law_of(s) for s in service))


def edge(up: int = 0, down: int = 1, ship: Ship = Ship.FORWARD, size: int | Law = 100, **options: Any) -> EdgeSpec:
    return EdgeSpec(f"{up}-{down}", up, down, ship, law_of(size), **options)


def law_of(value: int | Law) -> Law:
    return (value,) if isinstance(value, int) else value


def world(
    vertices: list[VertexSpec], edges: list[EdgeSpec], hosts: tuple[int, ...] | None = None, **options: Any
) -> PlaneSpec:
    """Every task on a host of its own unless told otherwise; no latency, no flush timer, plenty of buffers."""
    tasks = sum(v.parallelism for v in vertices)
    spec = PlaneSpec(
        tuple(vertices),
        tuple(edges),
        tuple(range(tasks)) if hosts is None else hosts,
        segment_bytes=100,
        starting_buffer_bytes=100,
        exclusive=2,
        floating=8,
        max_per_channel=10,
        overdraft=2,
        buffer_timeout_ns=-1,
    )
    return replace(spec, **options)


def pipe(
    *, total: int = -1, size: int | Law = 100, service: int = 10, local: bool = False, **options: Any
) -> PlaneSpec:
    """Task 0 writes to task 1 over channel 0."""
    return world(
        [source(total=total), vertex(service=(service,))], [edge(size=size)], (0, 0) if local else (0, 1), **options
    )


def run(plane: DataPlane, until: int) -> list[Notice]:
    """Advance through all notices; EXHAUSTED is left out, bounded sources are everywhere in these tests."""
    notices = []
    while (notice := plane.advance(until)).kind != NoticeKind.QUIET:
        if notice.kind != NoticeKind.EXHAUSTED:
            notices.append(notice)
    return notices


def next_notice(plane: DataPlane) -> Notice:
    """The next one that is not EXHAUSTED."""
    while (notice := plane.advance(FOREVER)).kind == NoticeKind.EXHAUSTED:
        pass
    return notice


def task(plane: DataPlane, t: int, *columns: str) -> Any:
    return pick(plane.tasks()[t], columns)


def channel(plane: DataPlane, c: int, *columns: str) -> Any:
    return pick(plane.channels()[c], columns)


def column(table: Any, name: str) -> list[int]:
    return [int(x) for x in table[name]]


def pick(row: Any, columns: tuple[str, ...]) -> Any:
    """One column as an int, several as a tuple."""
    values = tuple(int(row[name]) for name in columns)
    return values[0] if len(values) == 1 else values


def state(plane: DataPlane, t: int) -> ThreadState:
    return ThreadState(task(plane, t, "state"))


def pool(plane: DataPlane, p: int = 0) -> int:
    """Segments in use of partition p."""
    return int(plane.partitions()[p]["used"])


def idle_floating(plane: DataPlane, g: int = 0) -> int:
    return int(plane.gates()[g]["idle_floating"])

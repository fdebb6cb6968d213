"""Tiny hand-made worlds: a buffer of 100 bytes, records of 100 bytes, 10 ns of service unless a test says otherwise."""

from dataclasses import replace

from sim.plane.interface import EdgeSpec, NoticeKind, PlaneSpec, RateSegment, Ship, SourceSpec, ThreadState, VertexSpec

FOREVER = 10**12


def source(name="a", parallelism=1, *, service=10, total=-1, every=None, **options):
    """Records as fast as they are served, or one `every` ns beginning at 0."""
    segments = () if every is None else (RateSegment(0, 0, 1, every),)
    return VertexSpec(name, parallelism, (law_of(service),), SourceSpec(segments, total, **options))


def vertex(name="b", parallelism=1, *, service=(10,)):
    return VertexSpec(name, parallelism, tuple(law_of(s) for s in service))


def edge(up=0, down=1, ship=Ship.FORWARD, size=100, **options):
    return EdgeSpec(f"{up}-{down}", up, down, ship, law_of(size), **options)


def law_of(value):
    return (value,) if isinstance(value, int) else value


def world(vertices, edges, hosts=None, **options):
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


def pipe(*, total=-1, size=100, service=10, local=False, **options):
    """Task 0 writes to task 1 over channel 0."""
    return world(
        [source(total=total), vertex(service=(service,))], [edge(size=size)], (0, 0) if local else (0, 1), **options
    )


def run(plane, until):
    """Advance through all notices; EXHAUSTED is left out, bounded sources are everywhere in these tests."""
    notices = []
    while (notice := plane.advance(until)).kind != NoticeKind.REACHED_TIME:
        if notice.kind != NoticeKind.EXHAUSTED:
            notices.append(notice)
    return notices


def next_notice(plane):
    """The next one that is not EXHAUSTED."""
    while (notice := plane.advance(FOREVER)).kind == NoticeKind.EXHAUSTED:
        pass
    return notice


def task(plane, t, *columns):
    return pick(plane.tasks()[t], columns)


def channel(plane, c, *columns):
    return pick(plane.channels()[c], columns)


def column(table, name):
    return [int(x) for x in table[name]]


def pick(row, columns):
    """One column as an int, several as a tuple."""
    values = tuple(int(row[name]) for name in columns)
    return values[0] if len(values) == 1 else values


def state(plane, t):
    return ThreadState(task(plane, t, "state"))


def pool(plane, p=0):
    """Segments in use of partition p."""
    return int(plane.partitions()[p]["used"])


def idle_floating(plane, g=0):
    return int(plane.gates()[g]["idle_floating"])


def begin_again(plane, positions, tasks=None):
    """Start and release at once."""
    plane.start(positions)
    for t in positions if tasks is None else tasks:
        plane.release(t)

"""The kernel behind the seam: what is refused, what grows, its pools, and records served ahead of their time."""

import os
import pickle
import platform
from dataclasses import replace

import numpy as np
import pytest

from sim.plane import assembly, build, compiled_kernel
from sim.plane.assembly import assign, runs_ahead, select_field
from sim.plane.interface import (
    EdgeSpec,
    Marker,
    NoticeKind,
    PlaneSpec,
    RateSegment,
    Ship,
    SourceSpec,
    ThreadState,
    Trait,
    VertexSpec,
    Wait,
    create_layout,
)
from sim.plane.kernel import MARKER_ROOM
from sim.plane.text.basics import scaled
from tests.oracle import oracle
from tests.places import ROOT
from tests.plane.difference import differences
from tests.plane.lab import edge, run, source, vertex, world
from tests.processes import run_python

# The kernel behind the seam: what is refused, what grows, and how it runs without a compiler.


ENGINES = ("interpreted", "compiled")


def pipe(total=-1, **options):
    vertices = (VertexSpec("source", 1, ((10,),), SourceSpec(total=total)), VertexSpec("sink", 1, ((10,),)))
    return PlaneSpec(vertices, (EdgeSpec("edge", 0, 1, Ship.FORWARD, (100,)),), hosts=(0, 1), **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_time_has_an_end_and_no_way_back(engine):
    """Keys of events pack a time and a rank into 63 bits; a horizon beyond them is refused, as is the past."""
    plane = build(pipe(total=0, buffer_timeout_ns=-1), engine)
    bits = 63 - 3  # six leaves: two tasks, two lines, two timers

    assert plane.advance(2**bits - 2).kind == NoticeKind.EXHAUSTED
    assert plane.advance(2**bits - 2).kind == NoticeKind.REACHED_TIME
    with pytest.raises(ValueError, match="last possible time"):
        plane.advance(2**bits)
    with pytest.raises(ValueError, match="now is"):
        plane.advance(5)


@pytest.mark.parametrize("engine", ENGINES)
def test_markers_without_number(engine):
    """Markers have no bound of their own: the pool grows and what is queued stays queued."""
    plane = build(pipe(total=0, latency_ns=1000), engine)
    count = 2 * MARKER_ROOM + 10
    plane.hold(0)
    for number in range(1, count + 1):
        plane.forward(0, Marker(number))
    arrived = []
    while (notice := plane.advance(10_000)).kind != NoticeKind.REACHED_TIME:
        arrived.append(notice.number)
    plane.check()

    assert list(range(1, count + 1)) == arrived


@pytest.mark.parametrize("engine", ENGINES)
def test_verbs_at_the_wrong_moment_are_refused(engine):
    """A task in service cannot be held, one that is not held not released; numbers are positive; a task writes its own edges only."""
    plane = build(pipe(), engine)
    plane.advance(15)

    assert plane.tasks()["state"][0] == ThreadState.BUSY
    with pytest.raises(ValueError, match="in service"):
        plane.hold(0)
    with pytest.raises(ValueError, match="not held"):
        plane.release(0)
    with pytest.raises(ValueError, match="positive"):
        plane.forward(0, Marker(0))
    with pytest.raises(ValueError, match="positive"):
        plane.capture(1, 0)
    with pytest.raises(ValueError, match="does not write edge 0"):
        plane.forward(1, Marker(1), edge=0)
    with pytest.raises(ValueError, match="scale"):
        plane.scale(0, 0, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lost_credit_is_noticed(engine):
    """The conservation check fails when something is lost."""
    plane = build(pipe(), engine)
    plane.advance(1000)
    plane.check()
    channel = plane._state.channels[0]
    if engine == "compiled":
        channel["credit"] -= 1
    else:
        channel.credit -= 1

    with pytest.raises(AssertionError, match="channel 0 has credits for"):
        plane.check()


@pytest.mark.parametrize("engine", ENGINES)
def test_records_without_bytes_are_missed(engine):
    """Forced past the door they never reach their channel: the check counts what was made against what is written."""
    spec = pipe(total=5)
    object.__setattr__(spec.edges[0], "record_bytes", (0,))
    plane = build(spec, engine)
    plane.advance(1000)

    with pytest.raises(AssertionError, match="partition 0 made 5 copies that no channel counts"):
        plane.check()


@pytest.mark.parametrize("field", ["records_in", "records_out"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_lost_record_is_noticed(engine, field):
    """A record nobody served, one nobody wrote, while others lie in the channel."""
    spec = pipe(total=20, exclusive=1)
    plane = build(replace(spec, vertices=(spec.vertices[0], replace(spec.vertices[1], service=((500,),)))), engine)
    while plane.advance(1000).kind != NoticeKind.REACHED_TIME:
        pass
    plane.check()
    assign(plane._state.channels, field, [0], int(select_field(plane._state.channels, field, [0])[0]) + 1)

    with pytest.raises(AssertionError, match=r"channel 0|copies|edge"):
        plane.check()


@pytest.mark.parametrize("sizes", [(0,), (0, 100), (100, -1)])
def test_a_record_without_bytes_is_refused(sizes):
    """Nothing in its stream would show that it passed."""
    with pytest.raises(ValueError, match=r"edge edge: .* every record has at least 1 B"):
        EdgeSpec("edge", 0, 1, Ship.FORWARD, sizes)


def test_an_unknown_engine_is_named():
    with pytest.raises(ValueError, match="unknown engine 'gpu'"):
        build(pipe(), "gpu")


PROGRAM_WITHOUT_COMPILER = """
import pickle, sys, warnings
from sim.plane import build, warm
from sim.plane.interface import EdgeSpec, PlaneSpec, SourceSpec, VertexSpec
with open(sys.argv[1], "rb") as file, warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warm(pickle.load(file))
    plane = build(
        PlaneSpec(
            (VertexSpec("a", 1, ((10,),), SourceSpec()), VertexSpec("b", 1, ((10,),))), (EdgeSpec("e", 0, 1, 0, (100,)),), hosts=(0, 1)
        )
    )
plane.advance(1000)
print(plane.backend, plane.channels()["written"][0], *(str(warning.message) for warning in caught))
"""


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_process_without_a_compiler(tmp_path, is_sent):
    """With the code of another process, e.g. that of a Spark driver: as fast as there.  Else one warning, then the same results, slower."""
    if is_sent and (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("object files are mapped without LLVM on Linux on x86-64 only")
    (tmp_path / "llvmlite.py").write_text("raise ImportError('no compiler here')\n")
    (tmp_path / "kernel").write_bytes(pickle.dumps(compiled_kernel() if is_sent else None))
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "CKPTSIM_CACHE_DIR": str(tmp_path / "none")}

    done = run_python("-c", PROGRAM_WITHOUT_COMPILER, tmp_path / "kernel", check=True, env=environment)

    warning = "the data plane runs interpreted and is much slower: llvmlite cannot be imported: no compiler here"
    assert done.stdout == ("compiled 9900\n" if is_sent else f"interpreted 9900 {warning}\n")


@pytest.mark.parametrize(
    ("a", "b", "c"), [(0, 5, 3), (7, 5, 3), (2**40, 10**9, 10**8), (2**60, 2**60, 1), (12345, 2**32, 99)]
)
def test_products_beyond_64_bits_are_exact(a, b, c):
    """Long division, as far as anybody asks."""
    assert min(a * b // c, 2**31 - 1) == scaled(a, b, c)


# The pool of buffers, markers and messages: what is not in use is in it.


def free_elements(world):
    """How many elements were given back."""
    count, e = 0, world.g.free
    while e >= 0:
        count, e = count + 1, world.elements[e].next
    return count


@pytest.mark.parametrize("local", [False, True])
def test_a_start_gives_every_element_back(local):
    """Buffers and markers in sender's queues, on lines and in receive queues, messages, watches: all are in the pool again."""
    spec = world(
        [source(), vertex(parallelism=2), vertex("c", service=(1000,))],
        [edge(ship=Ship.BROADCAST), edge(1, 2, Ship.GLOBAL)],
        (0, 0, 0, 0) if local else (0, 1, 2, 3),
        latency_ns=25,
    )
    plane = build(spec, "interpreted")
    tasks = range(4)
    beginning = {t: plane.position(t) for t in tasks}
    for _ in range(3):
        run(plane, plane.now + 300)
        plane.forward(0, Marker(1, Trait.ANNOUNCED))
        plane.forward(1, Marker(1))
        run(plane, plane.now + 30)
        plane.forward(1, Marker(2, Trait.PRIORITY))
        plane.forward(0, Marker(3, Trait.BLOCKING))
        run(plane, plane.now + 27)
        plane.halt(tasks)
        rows = plane._state

        assert rows.g.markers > 0
        assert free_elements(rows) < rows.g.fresh - 8

        plane.start(beginning)

        assert (0, rows.g.fresh) == (rows.g.markers, free_elements(rows))

        for t in tasks:
            plane.release(t)


# Records served ahead of their time: who looks, looks at this moment.
#
# Ten records share a buffer.  Each test compares with the reference, which serves one record after the other.
# Tables are read at the end only, for reading them ends what is ahead; digests say when everything happened.


UNTIL = 4000


def small_records(*, local=False, service=7, **options):
    """Source, map and sink, two subtasks each, records of 9 to 11 bytes in buffers of 100."""
    vertices = [source("a", 2, every=11), vertex("b", 2, service=((7, 12),)), vertex("c", 2, service=(service,))]
    edges = [edge(0, 1, Ship.HASH, size=(9, 10, 11)), edge(1, 2, Ship.REBALANCE, size=(9, 11), fan_out=(2, 3))]
    return world(vertices, edges, (0,) * 6 if local else None, digests=True, **options)


def compared(spec, act=lambda plane: []):
    """What the kernel does otherwise than the reference; `act` runs a plane and answers."""
    twins = build(spec, oracle), build(spec, "interpreted")
    answers = [[*act(plane), *run(plane, UNTIL)] for plane in twins]
    return list(differences(*answers, *twins))


def test_looks_see_nothing_that_is_ahead():
    plane, reference = (build(small_records(), engine) for engine in ("interpreted", oracle))
    seen, expected = (
        [plane.sample_served(1 + 21 * i, 7, 3)[0].tolist() for i in range(60)] for plane in (plane, reference)
    )

    assert expected == seen


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("options", [{}, {"latency_ns": 13}, {"exclusive": 2, "floating": 0, "latency_ns": 60}])
def test_flushes_find_what_is_written_by_now(local, options):
    """The timer's slices, those that wait for credit, and those that a local reader polls later."""
    assert compared(small_records(local=local, buffer_timeout_ns=33, **options)) == []


@pytest.mark.parametrize("traits", [Trait.PRIORITY, Trait.ANNOUNCED, Trait(0)])
@pytest.mark.parametrize("local", [False, True])
def test_markers_meet_the_record_in_service(traits, local):
    """A marker closes the open buffer where it is now; one with priority does not wait for more than this record."""

    def act(plane):
        for number, until in enumerate(range(50, 2000, 61), 1):
            yield from run(plane, until)
            for task in (0, 1):
                yield plane.forward(task, Marker(number, traits))
            yield plane.convert_output(0, number)
            plane.capture(2, number)
            yield plane.captured(2)

    assert compared(small_records(local=local), act) == []


def test_verbs_stop_and_scale_a_task_where_it_is_now():
    def act(plane):
        for task in range(6):
            yield from run(plane, 153 + 100 * task)
            plane.interrupt(task)
            yield from run(plane, 201 + 100 * task)
            plane.scale(task, 3, 2)
            yield [np.asarray(value).tolist() for value in (*plane.position(task), *plane.counted(task))]

    assert compared(small_records(), act) == []


@pytest.mark.parametrize("waits", [Wait.MAILBOX, Wait.POLL])
def test_sources_go_through_idle_times_and_changes_of_rate(waits):
    segments = (RateSegment(0, 5, 3, 20), RateSegment(15, 150, 1, 40), RateSegment(40, 1200, 2, 5))
    spec = PlaneSpec(
        (VertexSpec("a", 1, ((3, 9),), SourceSpec(segments, total=97, waits=waits)), vertex(service=((5, 6),))),
        (EdgeSpec("e", 0, 1, Ship.FORWARD, (10,)),),
        hosts=(0, 1),
        segment_bytes=100,
        starting_buffer_bytes=100,
        buffer_timeout_ns=-1,
        digests=True,
    )

    def act(plane):
        for until in range(0, 2500, 7):
            yield from run(plane, until)
            if until % 5 == 0:
                yield [row.tolist() for row in plane.tasks()]

    assert compared(spec, act) == []


def ahead(*vertices, edges, **options):
    """Which tasks may run ahead."""
    spec = world(list(vertices), list(edges), **options)
    return runs_ahead(spec, create_layout(spec))


@pytest.mark.parametrize(("buffer_bytes", "far"), [(100, True), (40, False)])
def test_where_channels_come_from_memory_few_records_are_served_one_by_one(buffer_bytes, far, monkeypatch):
    """A sink runs ahead through ten records of a buffer, not through four; either way nothing else changes."""
    monkeypatch.setattr(assembly, "FIT_INTO_CACHE", 0)
    spec = world(
        [source(every=10), vertex()],
        [edge(size=10)],
        segment_bytes=100,
        starting_buffer_bytes=buffer_bytes,
        digests=True,
    )
    most = 0

    def act(plane):
        nonlocal most
        for until in range(0, 1000, 7):
            yield from run(plane, until)
            if hasattr(plane, "_state"):
                most = max(most, plane._state.tasks[1].ahead)

    assert compared(spec, act) == []
    assert far == (most > 0)

"""The kernel behind the seam: what is refused, what grows, and how it runs without a compiler."""

import os
from dataclasses import replace

import pytest

from sim.plane import build
from sim.plane.assembly import assign, select_field
from sim.plane.interface import Marker, NoticeKind, ThreadState
from sim.plane.kernel import MARKER_ROOM
from sim.plane.spec import EdgeSpec, PlaneSpec, Ship, SourceSpec, VertexSpec
from sim.plane.text.basics import scaled
from tests.processes import run_python

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
    assert plane.advance(2**bits - 2).kind == NoticeKind.QUIET
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
    while (notice := plane.advance(10_000)).kind != NoticeKind.QUIET:
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
    while plane.advance(1000).kind != NoticeKind.QUIET:
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


def test_without_a_compiler_the_text_is_interpreted(tmp_path):
    """One warning, then the same results, slower."""
    (tmp_path / "llvmlite.py").write_text("raise ImportError('no compiler here')\n")
    program = """
import warnings
from sim.plane import build, warm
from sim.plane.spec import EdgeSpec, PlaneSpec, SourceSpec, VertexSpec
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warm()
    plane = build(
        PlaneSpec(
            (VertexSpec("a", 1, ((10,),), SourceSpec()), VertexSpec("b", 1, ((10,),))), (EdgeSpec("e", 0, 1, 0, (100,)),), hosts=(0, 1)
        )
    )
plane.advance(1000)
print(plane.backend, plane.channels()["written"][0], len(caught), caught[0].message)
"""
    done = run_python("-c", program, check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})

    assert (
        done.stdout
        == "interpreted 9900 1 the data plane runs interpreted and is much slower: llvmlite cannot be imported: no compiler here\n"
    )


@pytest.mark.parametrize(
    ("a", "b", "c"), [(0, 5, 3), (7, 5, 3), (2**40, 10**9, 10**8), (2**60, 2**60, 1), (12345, 2**32, 99)]
)
def test_products_beyond_64_bits_are_exact(a, b, c):
    """Long division, as far as anybody asks."""
    assert min(a * b // c, 2**31 - 1) == scaled(a, b, c)

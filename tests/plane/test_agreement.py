"""One behaviour, three engines: reference, interpreted kernel and compiled kernel, compared after every advance of generated worlds.

The reference and the kernel were written from the same prose by different hands, so each shows the errors of the other.
Interpreter and compiler run the same text.  A difference between them is the compiler's fault, or an integer beyond 64
bits.
"""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.model.cluster import Debloating
from sim.plane import assembly, build
from sim.plane.assembly import column
from sim.plane.spec import EdgeSpec, PlaneSpec, RateSegment, Ship, SourceSpec, VertexSpec
from tests.oracle import ReferencePlane, oracle
from tests.plane.difference import differences, first_difference, run_freely
from tests.plane.test_worlds import owed, served
from tests.plane.worlds import EXAMPLES, SHAPES, drive, scripts, worlds

ENGINES = ("interpreted", "compiled")


def story(spec, script):
    """Where the engines part from the reference, to be read; empty: nowhere."""

    def drive_to(plane, until):
        return drive(plane, spec, replace(script, until=until))

    make = {engine: partial(build, spec, engine) for engine in (oracle, *ENGINES)}
    found = {engine: first_difference(make[oracle], make[engine], script.until, drive_to) for engine in ENGINES}
    return "\n".join(f"{engine}: {difference}" for engine, difference in found.items() if difference)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_three_engines_agree(shape, data):
    """Equal notices, answers, digests and tables after every advance.

    Credits, buffers, segments and bytes of the reference add up at every notice, those of the others at the end; nobody
    serves a record that was not sent to it.  The reference knows its records by name, the others do not: that changes
    nothing.
    """
    spec, script = data.draw(worlds(shape)), data.draw(scripts())
    reference = ReferencePlane(spec, identities=True)
    expected = drive(reference, spec, script, after=reference.check)
    for v, vertex in enumerate(spec.vertices):
        if vertex.source is None:
            assert served(reference, spec, v) <= owed(reference, spec, v)
    for engine in ENGINES:
        plane = build(spec, engine)
        actual = drive(plane, spec, script)
        plane.check()

        assert expected == actual, story(spec, script)


def shuffle(parallelism, **options):
    """Source, map and sink, all-to-all, random sizes, services and routes."""
    vertices = (
        VertexSpec(
            "source",
            parallelism,
            ((400, 900),),
            SourceSpec((RateSegment(0, 0, 1, 800), RateSegment(300, 250_000, 3, 1_700))),
        ),
        VertexSpec("map", parallelism, ((100, 300, 800),)),
        VertexSpec("sink", parallelism, ((600, 650, 700),)),
    )
    edges = (EdgeSpec("in", 0, 1, Ship.HASH, (90, 100, 330)), EdgeSpec("out", 1, 2, Ship.REBALANCE, (80,)))
    hosts = tuple(i % 5 for i in range(3 * parallelism))
    return PlaneSpec(
        vertices, edges, hosts, seed=7, segment_bytes=1024, starting_buffer_bytes=1024, digests=True, **options
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_fetched_ahead_changes_nothing(engine, monkeypatch):
    """Channels of a job beyond the processor's cache are asked for before a record is written; asking chooses no channel."""
    reference = build(shuffle(4), oracle)
    monkeypatch.setattr(assembly, "FIT_INTO_CACHE", 0)
    plane = build(shuffle(4), engine)

    assert int(column(plane._state.g, "fetches")[0]) == 1
    assert list(differences(run_freely(reference, 1_000_000), run_freely(plane, 1_000_000), reference, plane)) == []


def test_engines_agree_on_a_longer_run():
    """Thousands of records through pools, credits, a NIC, flushes and debloating."""
    spec = shuffle(
        6,
        latency_ns=2_000,
        nic=(1, 2),
        buffer_timeout_ns=40_000,
        debloating=Debloating(period_ns=90_000, target_ns=150_000, min_bytes=64),
    )
    reference, *others = (build(spec, engine) for engine in (oracle, *ENGINES))
    output = run_freely(reference, 1_000_000)

    for plane in others:
        assert list(differences(output, run_freely(plane, 1_000_000), reference, plane)) == []


def pipe(*segments):
    source = VertexSpec("source", 1, ((100,),), SourceSpec((RateSegment(0, 0, 1, 800), *segments)))
    return PlaneSpec(
        (source, VertexSpec("sink", 1, ((100,),))), (EdgeSpec("edge", 0, 1, Ship.FORWARD, (100,)),), hosts=(0, 1)
    )


def test_the_first_difference_is_found_and_told():
    """Two sources that part when record 5 is due, at 4000 ns: before the events of that instant they are equal."""
    make = partial(build, pipe(), "interpreted"), partial(build, pipe(RateSegment(5, 9_000, 1, 800)), "interpreted")
    found = first_difference(*make, until=1_000_000)

    assert found is not None
    assert found.time == 4_001
    assert "the engines part at 4001 ns:\n  tasks[0].state: expected 1, actual 0" in str(found)
    assert first_difference(*make, until=4_000) is None

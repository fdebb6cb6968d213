"""Generated worlds: engines agree after every advance, through halts and starts; nothing is lost, and they end."""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.model.cluster import Debloating
from sim.plane import assembly, build
from sim.plane.assembly import column
from sim.plane.interface import EdgeSpec, PlaneSpec, RateSegment, Ship, SourceSpec, VertexSpec, Wait, create_layout
from tests.oracle import ReferencePlane, oracle
from tests.plane.difference import differences, first_difference, run_freely
from tests.plane.failing import FailingScript, Fault, cutting_scripts, drive_failing, failing_scripts, parting, recover
from tests.plane.worlds import EXAMPLES, SHAPES, drive, scripts, worlds

# Generated worlds that are bounded: nothing is lost, nothing is served twice, and they end.  `test_agreement` has the others.


shapes = pytest.mark.parametrize("shape", SHAPES)
few_examples = settings(
    max_examples=13,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def emitted(plane, spec, edge):
    """What the writers of an edge owe its readers: copies of every record they served (O5)."""
    plan, row = create_layout(spec), spec.edges[edge]
    num, den = row.fan_out
    records: Counter = Counter()
    for task, vertex in enumerate(plan.vertex):
        if vertex == row.upstream:
            writes = spec.vertices[row.downstream].parallelism if row.ship == Ship.BROADCAST else 1
            for k, record in enumerate(plane.served_records(task)):
                records[record] += ((k + 1) * num // den - k * num // den) * writes
    return records


def served(plane, spec, vertex):
    plan = create_layout(spec)
    return Counter(record for task, v in enumerate(plan.vertex) if v == vertex for record in plane.served_records(task))


def owed(plane, spec, vertex):
    records: Counter = Counter()
    for edge, row in enumerate(spec.edges):
        if row.downstream == vertex:
            records += emitted(plane, spec, edge)
    return records


def assert_all_served_once(plane, spec):
    """Every record of each source, and every copy of it."""
    plan = create_layout(spec)
    for task, v in enumerate(plan.vertex):
        log = spec.vertices[v].log(plan.subtask[task])
        if log is not None:
            assert [(task, k) for k in range(log.total)] == plane.served_records(task)
    for v, vertex in enumerate(spec.vertices):
        if vertex.source is None:
            assert owed(plane, spec, v) == served(plane, spec, v)


@shapes
@few_examples
@given(data=st.data())
def test_bounded_worlds_end_with_every_record_served(shape, data):
    """Whatever the script did: every source record has been served, and every copy of it exactly once."""
    spec, script = data.draw(worlds(shape, live=True)), data.draw(scripts())
    plane = ReferencePlane(spec, identities=True)
    drive(plane, spec, script, after=plane.check, to_the_end=True)
    assert_all_served_once(plane, spec)


# One behaviour, three engines: reference, interpreted kernel and compiled kernel, compared after every advance of generated worlds.
#
# The reference and the kernel were written from the same prose by different hands, so each shows the errors of the other.
# Interpreter and compiler run the same text.  A difference between them is the compiler's fault, or an integer beyond 64
# bits.


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


# Generated failures: engines agree through halts and starts, and nothing is lost but what the positions leave out.


few_failures = settings(max_examples=EXAMPLES * 2 // 3, deadline=None, suppress_health_check=list(HealthCheck))


@shapes
@few_failures
@given(data=st.data())
def test_engines_agree_through_failures(shape, data):
    """Equal notices, positions, digests and tables after every advance.

    Credits, buffers, segments and bytes add up after every halt, start and advance; those of the compiled kernel at the
    end.
    """
    spec, script = data.draw(worlds(shape)), data.draw(failing_scripts())
    reference = ReferencePlane(spec, identities=True)
    expected = drive_failing(reference, spec, script, after=reference.check)
    for engine in ("interpreted", "compiled"):
        plane = build(spec, engine)
        actual = drive_failing(plane, spec, script, after=plane.check if engine == "interpreted" else lambda: None)
        plane.check()

        assert expected == actual, parting(spec, script, engine)


@shapes
@few_failures
@given(data=st.data())
def test_a_job_restored_at_a_cut_serves_every_record_once(shape, data):
    """Whatever failed when: at the end every source record has been served, every copy exactly once, and every task has recovered."""
    spec, script = data.draw(worlds(shape, live=True)), data.draw(cutting_scripts())
    plane = ReferencePlane(spec, identities=True)
    driver = recover(plane, spec, script, after=plane.check)

    assert dict.fromkeys(driver.tasks, 1) == driver.recovered
    assert_all_served_once(plane, spec)


LOCKED = PlaneSpec(
    (
        VertexSpec("v0", 1, ((0,),), SourceSpec((), waits=Wait.LOCK)),
        VertexSpec("v1", 3, ((0,), (0,), (0,))),
    ),
    (
        EdgeSpec("0-1", 0, 1, Ship.REBALANCE, (1,)),
        EdgeSpec("0-1", 0, 1, Ship.REBALANCE, (2,)),
        EdgeSpec("0-1", 0, 1, Ship.REBALANCE, (2, 66), fan_out=(3, 1)),
    ),
    hosts=(0, 0, 0, 1),
    latency_ns=60,
    segment_bytes=100,
    starting_buffer_bytes=100,
    seed=0,
    overdraft=0,
    exclusive=1,
    floating=1,
    max_per_channel=1,
    buffer_timeout_ns=0,
    digests=True,
)


def test_the_flush_of_a_record_takes_recovered_output_along():
    """O6: with a buffer timeout of 0 any record's flush is one of all channels, those with recovered output too."""
    script = FailingScript(37, 2000, faults=(Fault(at=8, tasks=(0,), down_ns=0, old_ns=0, share=(0, 1), stagger_ns=0),))

    assert parting(LOCKED, script, "interpreted") == ""

"""The SimPy baselines simulate what the plane simulates: a race between models that do different work says nothing."""

from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.cpp import available, cpp_plane
from benchmarks.draws import choices, values
from benchmarks.driver import drive, outcome
from benchmarks.simpy_idiomatic import IdiomaticModel
from benchmarks.simpy_lean import LeanModel
from benchmarks.workloads import SECOND, Outcome, Workload, chain, with_total, workload
from sim.model.randomness import draw, stream
from sim.plane import build
from tests.oracle import ReferencePlane

BASELINES = [pytest.param(IdiomaticModel, id="idiomatic"), pytest.param(LeanModel, id="lean")]
LATENCY_NS = 100_000


@cache
def on_the_plane(work: Workload) -> Outcome:
    """Both baselines are held to it; its engines are held to each other elsewhere."""
    plane = build(work.spec)
    return outcome(plane, drive(plane, work))


def instants(done: Outcome) -> list[tuple[int, int, int, int]]:
    return sorted((row.number, row.task, row.first_ns, row.last_ns) for row in done.snapshots)


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize("latency_ns", [0, LATENCY_NS])
@pytest.mark.parametrize("record_bytes", [1000, 32768])
def test_bounded_sources_are_served_to_the_last_record(model, record_bytes, latency_ns, unaligned):
    """Every task serves the same records and takes the same bytes, under load, with checkpoints on the way."""
    spec = chain(3, 2, record_bytes=record_bytes, load=1.3, latency_ns=latency_ns)
    work = with_total(Workload("bounded", spec, 0, SECOND // 20, unaligned), 400, until_ns=SECOND)
    expected, actual = on_the_plane(work), model(work).run()

    assert expected.served == actual.served
    assert expected.bytes_in == actual.bytes_in
    assert actual.records == 2400
    assert len(expected.snapshots) == len(actual.snapshots) > 0


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("latency_ns", [0, LATENCY_NS])
@pytest.mark.parametrize("big_records", [False, True])
@pytest.mark.parametrize("load", [0.7, 1.3])
def test_without_checkpoints_everything_is_equal(model, load, big_records, latency_ns):
    """Records, bytes and hops of every task agree at any moment of an open-ended run, saturated or not."""
    work = workload(3, 4, load=load, big_records=big_records, latency_ns=latency_ns, scale=0.05)
    expected, actual = on_the_plane(work := replace(work, interval_ns=0)), model(work).run()

    assert (expected.served, expected.bytes_in, expected.hops) == (actual.served, actual.bytes_in, actual.hops)


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("latency_ns", [0, LATENCY_NS])
@pytest.mark.parametrize("record_bytes", [1000, 32768])
def test_without_ties_everything_is_equal(model, record_bytes, latency_ns):
    """A chain of single tasks leaves no order to choose: hops and every alignment agree to the nanosecond."""
    spec = chain(3, 1, record_bytes=record_bytes, load=1.3, latency_ns=latency_ns)
    work = Workload("single", spec, SECOND // 3, SECOND // 20)
    expected, actual = on_the_plane(work), model(work).run()

    assert (expected.served, expected.bytes_in, expected.hops) == (actual.served, actual.bytes_in, actual.hops)
    assert instants(expected) == instants(actual) != []


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("unaligned", [False, True])
@pytest.mark.parametrize("big_records", [False, True])
def test_with_checkpoints_only_ties_differ(model, unaligned, big_records):
    """Channels resumed at one instant share floating buffers in another order: totals of a saturated run agree to half a percent."""
    work = workload(3, 4, load=1.3, unaligned=unaligned, big_records=big_records, scale=0.05)
    expected, actual = on_the_plane(work), model(work).run()

    assert actual.records == pytest.approx(expected.records, rel=0.005)
    assert actual.buffers == pytest.approx(expected.buffers, rel=0.005, abs=5)
    assert sum(actual.bytes_in) == pytest.approx(sum(expected.bytes_in), rel=0.005)


@given(
    sizes=st.tuples(st.integers(2, 4), st.integers(1, 3)),
    record_bytes=st.lists(st.integers(1, 3000), min_size=1, max_size=4).map(tuple),
    buffers=st.fixed_dictionaries(
        {
            "exclusive": st.integers(1, 2),
            "floating": st.integers(0, 3),
            "max_per_channel": st.integers(1, 4),
            "overdraft": st.integers(0, 2),
        }
    ),
    latency_ns=st.sampled_from([0, LATENCY_NS]),
    load=st.sampled_from([0.5, 2.0, None]),
    unaligned=st.booleans(),
    seed=st.integers(0, 9),
)
def test_any_small_world_drains_alike(sizes, record_bytes, buffers, latency_ns, load, unaligned, seed):
    """Records of any size against segments of 1000 B, pools that run dry, no overdraft: the same records and bytes arrive.

    Where the buffers are too few for a record, all writers wait for each other in the end; who has come how far then,
    ties decide.
    """
    spec = chain(
        *sizes, load=load, latency_ns=latency_ns, seed=seed, segment_bytes=1000, starting_buffer_bytes=1000, **buffers
    )
    spec = replace(spec, edges=tuple(replace(edge, record_bytes=record_bytes) for edge in spec.edges))
    work = with_total(Workload("drained", spec, 0, SECOND // 500, unaligned), 40, until_ns=SECOND)
    expected = on_the_plane(work)
    assume(work.spec.vertices[0].parallelism * 40 == sum(expected.served[: work.spec.vertices[0].parallelism]))
    for model in (IdiomaticModel, LeanModel):
        actual = model(work).run()

        assert expected.served == actual.served
        assert expected.bytes_in == actual.bytes_in


@pytest.mark.parametrize("model", BASELINES)
@pytest.mark.parametrize("overdraft", [0, 1, 5])
def test_a_writer_stops_where_the_pool_ends(model, overdraft):
    """Against a slow sink a source of large records gets exactly as far as pool and overdraft allow."""
    spec = chain(
        2, 1, record_bytes=25_000, load=None, segment_bytes=1000, starting_buffer_bytes=1000, overdraft=overdraft
    )
    slow = replace(spec.vertices[1], service=((SECOND,),))
    work = Workload("stuck", replace(spec, vertices=(spec.vertices[0], slow)), SECOND // 2)
    expected, actual = on_the_plane(work), model(work).run()

    assert (expected.served, expected.bytes_out) == (actual.served, actual.bytes_out)


@pytest.mark.parametrize("model", BASELINES)
def test_captured_buffers_hold_the_sender_back(model):
    """Unaligned checkpoints, far from any tie: every instant and every captured byte agrees."""
    spec = chain(3, 2, record_bytes=32768, load=1.3, latency_ns=LATENCY_NS, floating=4, seed=3)
    work = Workload("captured", spec, SECOND // 2, SECOND // 50, unaligned=True)
    expected, actual = on_the_plane(work), model(work).run()

    assert set(expected.snapshots) == set(actual.snapshots)
    assert sum(row.bytes_in for row in actual.snapshots) > 0


def test_draws_are_those_of_the_model():
    """Blocks of draws are the same numbers as one draw at a time, beyond the first block."""
    key, table = stream(7, "service", "map", 3), (5, 9, 11, 40, 100)

    assert [table[draw(key, i) * len(table) >> 32] for i in range(1000)] == list(islice(values(table, key), 1000))
    assert [draw(key, i) * 6 >> 32 for i in range(1000)] == list(islice(choices(6, key), 1000))


@pytest.mark.skipif(not available(), reason="there is no C++ compiler")
def test_the_printed_kernel_is_the_kernel():
    """C++ from the kernel's own text leaves the tables that the reference leaves."""
    work = workload(3, 4, load=1.3, latency_ns=LATENCY_NS, unaligned=True, scale=0.05)
    plane, expected = cpp_plane(work.spec), ReferencePlane(work.spec)
    snapshots = drive(plane, work)

    assert drive(expected, work) == snapshots
    assert expected.tasks().tolist() == plane.tasks().tolist()
    assert expected.channels().tolist() == plane.channels().tolist()

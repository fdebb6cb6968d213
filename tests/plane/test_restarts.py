"""Generated failures: engines agree through halts and starts, and nothing is lost but what the positions leave out."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.plane import build
from sim.plane.spec import EdgeSpec, PlaneSpec, Ship, SourceSpec, VertexSpec, Wait
from tests.oracle import ReferencePlane
from tests.plane.failing import FailingScript, Fault, cutting_scripts, drive_failing, failing_scripts, parting, recover
from tests.plane.test_worlds import assert_all_served_once
from tests.plane.worlds import EXAMPLES, SHAPES, worlds

shapes = pytest.mark.parametrize("shape", SHAPES)
few_examples = settings(max_examples=EXAMPLES * 2 // 3, deadline=None, suppress_health_check=list(HealthCheck))


@shapes
@few_examples
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
@few_examples
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

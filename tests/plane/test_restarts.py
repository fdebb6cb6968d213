"""Generated failures: engines agree through halts and starts, and nothing is lost but what the positions leave out."""

from hypothesis import HealthCheck, given, settings

from sim.plane import build
from sim.plane.reference import ReferencePlane
from tests.plane.failing import drive_failing, failing_scripts, parting
from tests.plane.worlds import worlds

many = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(spec=worlds(), script=failing_scripts())
def test_engines_agree_through_failures(spec, script):
    """Equal notices, positions, digests and tables after every advance, and everything accounted for."""
    expected = drive_failing(build(spec, "reference"), spec, script)
    for engine in ("interpreted", "compiled"):
        plane = build(spec, engine)
        actual = drive_failing(plane, spec, script, after=plane.check if engine == "interpreted" else lambda: None)
        plane.check()

        assert expected == actual, parting(spec, script, engine)


@many
@given(spec=worlds(), script=failing_scripts())
def test_conservation_holds_through_failures(spec, script):
    """Credits, buffers, segments and bytes add up after every halt, start and advance."""
    plane = ReferencePlane(spec, identities=True)
    drive_failing(plane, spec, script, after=plane.check)

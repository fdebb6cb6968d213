"""Generated worlds that are bounded: nothing is lost, nothing is served twice, and they end.  `test_agreement` has the others."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.plane.spec import Ship, layout
from tests.oracle import ReferencePlane
from tests.plane.worlds import SHAPES, drive, scripts, worlds

shapes = pytest.mark.parametrize("shape", SHAPES)
few_examples = settings(
    max_examples=13,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def emitted(plane, spec, edge):
    """What the writers of an edge owe its readers: copies of every record they served (O5)."""
    plan, row = layout(spec), spec.edges[edge]
    num, den = row.fan_out
    records: Counter = Counter()
    for task, vertex in enumerate(plan.vertex):
        if vertex == row.upstream:
            writes = spec.vertices[row.downstream].parallelism if row.ship == Ship.BROADCAST else 1
            for k, record in enumerate(plane.served_records(task)):
                records[record] += ((k + 1) * num // den - k * num // den) * writes
    return records


def served(plane, spec, vertex):
    plan = layout(spec)
    return Counter(record for task, v in enumerate(plan.vertex) if v == vertex for record in plane.served_records(task))


def owed(plane, spec, vertex):
    records: Counter = Counter()
    for edge, row in enumerate(spec.edges):
        if row.downstream == vertex:
            records += emitted(plane, spec, edge)
    return records


def assert_all_served_once(plane, spec):
    """Every record of each source, and every copy of it."""
    plan = layout(spec)
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

"""Checkpoints during recovery (FLIP-547) and captured output that its readers recover: what a failure costs with and without."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sim.model.faults import Kill, Restart
from sim.model.job import Job, Rate, Source
from sim.plane.interface import Position
from sim.plane.spec import layout
from sim.runtime.context import TaskSnapshot
from sim.runtime.jobmanager.restore import on_downstream
from sim.runtime.lowering import plane_spec
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, fault_at, scenario, started

FIXED = Restart("fixed-delay", delay_ns=100 * MS)
OFF: dict[str, bool] = {}
DOWNSTREAM = {"recover_output_on_downstream": True}
BOTH = {"recover_output_on_downstream": True, "during_recovery": True}


def ended(kind, options, *kills_ms, sink_ns=20 * MS, placement="isolated", seconds=20):
    """A bounded job whose sink is slow, to its end: 2 x 100 records/s for 3 s and a sink of 2 x 50/s."""
    log = Source((Rate(0, Fraction(100)), Rate(3 * SECOND, Fraction(0))))
    job = chain(2, sink_ns=sink_ns)
    job = Job(tuple(vertex if vertex.source is None else replace(vertex, source=log) for vertex in job.vertices))
    base = scenario(job, kind, seconds=seconds, interval_ms=400, **options)
    faults = tuple(fault_at(Kill("stage0", 0), ms) for ms in kills_ms)
    cluster = replace(base.cluster, placement=placement)
    instance = started(replace(base, cluster=cluster, restart=FIXED, faults=faults))
    instance.env.run(until=instance.env.timeout(seconds * SECOND))
    instance.plane.check()
    return instance


def test_tasks_run_as_soon_as_their_in_flight_data_is_read():
    """Not when it is processed: there are some 20 records of 20 ms in front of each sink."""
    slow, quick = (ended(UNALIGNED, options, 2000).job.recovery.stats[1] for options in (OFF, BOTH))

    assert slow.running_ns - slow.deployed_ns > 150 * MS
    assert quick.running_ns - quick.deployed_ns < 20 * MS


@pytest.mark.parametrize(
    ("kind", "options", "placement"),
    [
        (ALIGNED, BOTH, "single"),
        (UNALIGNED, BOTH, "isolated"),
        (UNALIGNED, DOWNSTREAM, "single"),
    ],
)
def test_a_run_with_failures_ends_where_one_without_does(kind, options, placement):
    """Whatever is recovered where and captured again: every byte is read, and none twice."""
    calm, hit = (ended(kind, options, *kills, placement=placement) for kills in ((), (1500, 2100, 2300, 4400)))

    assert len(hit.job.recovery.stats) >= 3
    assert hit.violations() == ()
    assert calm.plane.served().tolist() == hit.plane.served().tolist()
    for column in ("written", "consumed", "records_in", "records_out"):
        assert calm.plane.channels(column)[column].tolist() == hit.plane.channels(column)[column].tolist()


# ---------------------------------------------------------------------------------------------- captured output


def part(served=0, *, captured=(), written=(), overtaken=(), **fields):
    none, out = np.zeros(len(captured), np.int64), np.array(written, np.int64)
    position = Position(
        served,
        none,
        none,
        np.array(captured, np.int64),
        out,
        none if not written else out,
        np.array(overtaken, np.int64),
    )
    return TaskSnapshot(1, position, **fields)


PLAN = layout(plane_spec(scenario(chain(1, stages=0))))
"""One source, one sink, one channel."""


def test_captured_output_becomes_input_of_its_reader():
    moved = on_downstream({0: part(7, written=[700], overtaken=[300]), 1: part(captured=[250])}, PLAN)

    assert (moved[0].position.overtaken.tolist(), moved[1].position.captured.tolist()) == ([0], [550])
    assert (moved[0].in_flight_bytes, moved[1].in_flight_bytes) == (0, 550)


def test_what_came_with_an_acknowledgement_is_still_not_in_a_file():
    """The writer's bytes lie in its acknowledgement, the reader's own in a file."""
    moved = on_downstream(
        {0: part(7, written=[700], overtaken=[300], inlined_bytes=300), 1: part(captured=[250])}, PLAN
    )

    assert (moved[0].inlined_bytes, moved[1].inlined_bytes) == (0, 300)
    assert moved[1].in_flight_bytes - moved[1].inlined_bytes == 250

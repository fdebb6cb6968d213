"""Records served ahead of their time: who looks, looks at this moment.

Ten records share a buffer.  Each test compares with the reference, which serves one record after the other.
Tables are read at the end only, for reading them ends what is ahead; digests say when everything happened.
"""

import numpy as np
import pytest

from sim.plane import assembly, build
from sim.plane.assembly import runs_ahead
from sim.plane.interface import Marker, Trait
from sim.plane.spec import EdgeSpec, PlaneSpec, RateSegment, Ship, SourceSpec, VertexSpec, Wait, layout
from tests.oracle import oracle
from tests.plane.difference import differences
from tests.plane.lab import edge, run, source, vertex, world

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
    return runs_ahead(spec, layout(spec))


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

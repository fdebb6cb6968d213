"""Laws at their extremes: whatever a size or a time is drawn from, every record arrives, alike on every engine."""

import pytest

from sim.model.job import Distribution, Input, Job, Source, Vertex
from tests.laws.small_jobs import AT_LEAST_ONCE, UNALIGNED, run, scenario, with_options
from tests.oracle import ENGINES

RECORDS = 200  # of each source subtask
SIZES = [  # bytes
    Distribution(1),
    Distribution(1, "exponential"),
    Distribution(40, "exponential"),
    Distribution(1, "uniform"),
    Distribution(600, "uniform"),
    Distribution(1, "lognormal", 100),
    Distribution(300, "lognormal", 100),
    Distribution(1, "lognormal", 0.001),
    Distribution(1, "erlang", 1),
    Distribution(50, "erlang", 1),
    Distribution(2, "erlang", 0.01),
]
TIMES = [  # ns
    Distribution(0),
    Distribution(1),
    Distribution(0, "exponential"),
    Distribution(1, "exponential"),
    Distribution(1, "uniform"),
    Distribution(900_000, "lognormal", 100),
    Distribution(2, "lognormal", 100),
    Distribution(1, "shifted-exponential", 0.001),
    Distribution(900_000, "shifted-exponential", 1),
    Distribution(3, "erlang", 1),
]

SIZE, TIME = Distribution(100), Distribution(100_000)


def name(law):
    return f"{law.kind} {law.mean} {law.cv}"


def bounded(*, size=SIZE, service=TIME):
    """Two sources, a stage that reads by key, a sink that reads everything."""
    return Job(
        (
            Vertex("source", 2, source=Source(total=RECORDS), service=service),
            Vertex("stage", 2, inputs=(Input("source", "hash", service=service, record_bytes=size),)),
            Vertex("sink", 1, inputs=(Input("stage", "rebalance", service=service, record_bytes=size),)),
        )
    )


def arrived(job, engine, kind=UNALIGNED):
    """Records served by the sources, the stages and the sink; and everything the tables show."""
    world = run(with_options(scenario(job, kind, seconds=20), timeout_ns=10**10), engine)
    rows = world.plane.tasks()
    return [int(rows["served"][part].sum()) for part in (slice(0, 2), slice(2, 4), slice(4, 5))], [
        list(world.journal),
        rows.tolist(),
        world.plane.channels().tolist(),
    ]


@pytest.mark.parametrize("size", SIZES, ids=name)
def test_records_of_every_size_arrive(size):
    """A record whose drawn size rounds to nothing has one byte; a huge one passes segment by segment."""
    seen = [arrived(bounded(size=size), engine) for engine in ENGINES]

    assert [[2 * RECORDS] * 3] * len(ENGINES) == [served for served, _ in seen]
    assert seen[0][1] == seen[1][1] == seen[2][1]


@pytest.mark.parametrize("service", TIMES, ids=name)
def test_records_of_every_service_time_arrive(service):
    """A service time that rounds to nothing is one nanosecond."""
    seen = [arrived(bounded(service=service), engine, AT_LEAST_ONCE) for engine in ENGINES]

    assert [[2 * RECORDS] * 3] * len(ENGINES) == [served for served, _ in seen]
    assert seen[0][1] == seen[1][1] == seen[2][1]

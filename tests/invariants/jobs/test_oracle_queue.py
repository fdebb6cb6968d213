"""An exact oracle of the data plane: a source, K places and a sink are the queue M/M/1/K (Kleinrock, Queueing Systems I, 3.6).

Every record fills a buffer.  The source's service is exponential: while its output is available, records come as a
Poisson stream.  While it is not, none come, and memory of the service under way there is none.  So the source is
back-pressured exactly while K records are in the system.  K counts the places of its pool that one channel may fill, of
the receiver, and the sink's hands.
"""

from statistics import mean

import pytest

from sim.model.job import Distribution
from sim.model.randomness import quantile_table
from sim.plane import build
from sim.plane.interface import EdgeSpec, NoticeKind, PlaneSpec, Ship, SourceSpec, VertexSpec

SECOND = 1_000_000_000
RECORD = 512  # bytes: a segment
SERVICE_NS = 1_000_000


def ran(rho, seed, *, exclusive, floating, max_per_channel, local, seconds):
    """(share of time the source is back-pressured, the sink idles, records per second)."""
    every_ns = round(SERVICE_NS / rho)
    arrivals, services = (quantile_table(Distribution(mean_ns, "exponential")) for mean_ns in (every_ns, SERVICE_NS))
    plane = build(
        PlaneSpec(
            vertices=(VertexSpec("source", 1, (arrivals,), source=SourceSpec()), VertexSpec("sink", 1, (services,))),
            edges=(EdgeSpec("edge", 0, 1, Ship.FORWARD, (RECORD,)),),
            hosts=(0, 0) if local else (0, 1),
            seed=seed,
            segment_bytes=RECORD,
            starting_buffer_bytes=RECORD,
            exclusive=exclusive,
            floating=floating,
            max_per_channel=max_per_channel,
            overdraft=0,
            buffer_timeout_ns=-1,
        ),
        "compiled",
    )
    horizon = seconds * SECOND
    while plane.advance(horizon).kind != NoticeKind.REACHED_TIME:
        pass
    source, sink = plane.tasks()
    return source["soft_ns"] / horizon, sink["idle_ns"] / horizon, sink["served"] / seconds


def probability(n, rho, places):
    """P(n customers) in M/M/1/K."""
    return rho**n / sum(rho**k for k in range(places + 1))


@pytest.mark.parametrize("rho", [0.5, 0.9, 1.0, 1.4])
@pytest.mark.parametrize(
    ("memory", "places"),
    [
        ({"exclusive": 1, "floating": 0, "max_per_channel": 10, "local": True}, 1 + 1),  # the pool and the sink's hands
        ({"exclusive": 2, "floating": 3, "max_per_channel": 4, "local": True}, 4 + 1),  # a channel's share of the pool
        ({"exclusive": 1, "floating": 0, "max_per_channel": 10, "local": False}, 1 + 1 + 1),  # ... and the receiver's
        ({"exclusive": 2, "floating": 1, "max_per_channel": 10, "local": False}, 3 + 3 + 1),
    ],
    ids=["K2-local", "K5-local", "K3", "K7"],
)
def test_the_source_is_blocked_as_in_mm1k(rho, memory, places):
    """Blocking, idleness and throughput within 1 % of the formulas (of blocking: or within 0.0005), means over 8 seeds."""
    runs = [ran(rho, seed, seconds=500, **memory) for seed in range(1, 9)]
    blocked, idle, rate = (mean(column) for column in zip(*runs, strict=True))

    assert probability(places, rho, places) == pytest.approx(blocked, rel=0.01, abs=0.0005)
    assert probability(0, rho, places) == pytest.approx(idle, rel=0.01)
    assert rho * 1000 * (1 - probability(places, rho, places)) == pytest.approx(rate, rel=0.01)

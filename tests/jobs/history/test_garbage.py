"""Which garbage collections are told."""

import pytest

from sim.jobs.history.history import Garbage, garbage_text, sum_collections
from sim.jobs.source.rest_answers import GarbageCollector


def collectors(**times):
    return [GarbageCollector(name=name, count=10, time=time) for name, time in times.items()]


def test_pauses_alone_count():
    """Flink adds up all of them as "All"; cycles of ZGC run beside the threads."""
    assert Garbage(20, 70, 10, 50) == sum_collections(
        collectors(All=70, G1_Young_Generation=20, G1_Old_Generation=50, G1_Concurrent_GC=900)
    )
    assert Garbage(10, 3, 0, 0) == sum_collections(collectors(ZGC_Cycles=5000, ZGC_Pauses=3))
    assert Garbage(0, 0, 0, 0) == sum_collections([])


@pytest.mark.parametrize(
    ("young_ms", "full_ms", "age_ms", "listed"),
    [
        (400, 0, 10_000, False),
        (600, 0, 10_000, True),
        (600, 0, 0, False),
        (0, 999, 0, False),
        (0, 1000, 10_000_000, True),
    ],
)
def test_much_is_told(young_ms, full_ms, age_ms, listed):
    """A twentieth of the time, or a second of full collections."""
    found = sum_collections(collectors(G1_Young_Generation=young_ms, G1_Old_Generation=full_ms))

    assert listed == ("tm-1 has spent" in garbage_text({"tm-1": found}, age_ms))

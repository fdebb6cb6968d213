"""Which garbage collections are told."""

import pytest

from sim.jobs.history.explanation import answer, answer_text, plain
from sim.jobs.history.history import Garbage, ThreadShares, garbage_text, sum_collections
from sim.jobs.source.rest_answers import GarbageCollector
from tests.jobs.history.conftest import acknowledged, history, point


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


# ---- Subtasks that need longer for a record are named first, from the same answers as everything else.


def made(own_us=1658, others_us=574, busy=0.8, records=50_000, slow=(2, 3)):
    """Twelve checkpoints of a source and two sinks; the second sink is slow, and so are checkpoints early in the history."""
    points = tuple(
        point(k, took, [acknowledged(0, 10, 1)], [acknowledged(0, 50, 10), acknowledged(1, took, took - 40)])
        for k in range(2, 20)
        for took in [900 if k in slow else 200]
    )
    sinks = [("sink", 0), ("sink", 1)]
    return history(
        *points,
        served=dict.fromkeys(sinks, records),
        threads={
            sinks[0]: ThreadShares(0.3, 0.0, others_us * records / 1000),
            sinks[1]: ThreadShares(busy, 0.0, own_us * records / 1000),
        },
        task_managers={("src", 0): "tm-0", sinks[0]: "tm-0", sinks[1]: "tm-1"},
    )


def test_code_that_is_not_compiled_is_no_reason_beside_a_slow_subtask():
    """Two early ones are slow: without a slow subtask that is what cold code does."""
    slow, alike = (" ".join(answer_text(answer(made(own_us))).split()) for own_us in (1658, 574))

    assert "code may not be compiled yet" in alike
    assert "not be compiled" not in slow


def test_machines_read_it_too():
    (row,) = plain(answer(made()))["slow_subtasks"]

    assert row == {"subtask": ("sink", 1), "us_per_record": 1658, "others_us_per_record": 574}

"""Residuals of a history in a run: each is in the part of the checkpoint where it was observed, and nothing else changes."""

from dataclasses import replace

import pytest

from sim.model.randomness import Residual, Residuals
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import MS, chain, scenario

LONG_MS = 250
COLUMNS = {
    "scheduling": ("source", "start_delay"),
    "sync": ("sink", "sync_duration"),
    "async": ("sink", "async_duration"),
    "acknowledgement": ("sink", None),
}


def run(*residuals, history=1, **options):
    """From a history of one checkpoint every simulated one draws the same, so that runs differ by the residuals alone."""
    quick = scenario(chain(2, sink_ns=MS // 10), seconds=6, interval_ms=1000)
    timed = replace(quick, checkpoint=replace(quick.checkpoint, **options))
    return simulate(replace(timed, residuals=Residuals(history, residuals)))


def median_of(result, vertex, column):
    return result.subtasks[result.subtasks["vertex"] == vertex][column].median()


@pytest.mark.parametrize("part", COLUMNS)
def test_a_residual_is_in_its_part_and_in_the_whole(part):
    vertex, column = COLUMNS[part]
    without, long = run(), run(Residual(vertex, part, ((LONG_MS * MS,),)))

    assert (
        pytest.approx(
            long.checkpoints["end_to_end_duration"].median() - without.checkpoints["end_to_end_duration"].median(),
            abs=2,
        )
        == LONG_MS
    )
    if column is not None:
        assert pytest.approx(median_of(long, vertex, column) - median_of(without, vertex, column), abs=2) == LONG_MS
    others = [name for name in ("sync_duration", "async_duration") if name != column]
    assert [median_of(without, "sink", name) for name in others] == [median_of(long, "sink", name) for name in others]


def test_one_subtask_of_a_vertex_may_be_late_alone():
    result = run(Residual("sink", "async", ((0,), (LONG_MS * MS,))))
    rows = result.subtasks[result.subtasks["vertex"] == "sink"]
    first, second = (rows[rows["index"] == index]["async_duration"].max() for index in (0, 1))

    assert first < LONG_MS <= second


def test_a_call_that_is_late_is_not_overtaken_by_the_next():
    """Three checkpoints at a time, every other call is late by more than an interval."""
    late = Residual("source", "scheduling", ((1300 * MS, 0),))
    result = run(late, history=2, interval_ns=500 * MS, max_concurrent=3)
    called = [row.checkpoint for row in result.journal if row.happening is Happening.TRIGGER_RECEIVED and row.task == 0]

    assert len(called) > 5
    assert sorted(called) == called


def test_a_checkpoint_that_is_given_up_before_its_call_arrives_begins_nowhere():
    """Flink's tasks remember what was aborted, and the next one is as good as ever."""
    late = Residual("source", "scheduling", ((700 * MS,),))
    result = run(late, timeout_ns=300 * MS, tolerable_failed=100)

    assert {"CHECKPOINT_EXPIRED"} == set(result.checkpoints["failure_message"])
    assert not [row for row in result.journal if row.happening is Happening.ACKNOWLEDGED]

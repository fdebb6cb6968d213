"""Subtasks that need longer for a record are named first, from the same answers as everything else."""

import pytest

from sim.jobs.history.explanation import answer, answer_text, plain
from sim.jobs.history.history import ThreadShares, slow_subtasks, slow_subtasks_text
from tests.jobs.history.conftest import acknowledged, history, point


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


def test_the_slow_subtask_comes_before_what_slow_checkpoints_share():
    text = " ".join(answer_text(answer(made())).split())
    named = "Slow subtasks: sink[1] (task manager tm-1) needs 1,658 us per record, the other subtasks 574 us (median), and is busy 80 %"

    assert named in text
    assert text.index(named) < text.index("What goes with slow ones")
    assert "sink[1] is busy 80 % of its time, needs 1,658 us per record" in text


def test_code_that_is_not_compiled_is_no_reason_beside_a_slow_subtask():
    """Two early ones are slow: without a slow subtask that is what cold code does."""
    slow, alike = (" ".join(answer_text(answer(made(own_us))).split()) for own_us in (1658, 574))

    assert "code may not be compiled yet" in alike
    assert "not be compiled" not in slow


@pytest.mark.parametrize(
    "changed",
    [{"own_us": 800}, {"busy": 0.2}, {"records": 900}],
    ids=["waking up costs a third", "hardly busy", "few records"],
)
def test_what_is_no_measurement_is_not_named(changed):
    assert slow_subtasks(made(**changed)) == []
    assert slow_subtasks_text(made(**changed)) == ""


def test_machines_read_it_too():
    (row,) = plain(answer(made()))["slow_subtasks"]

    assert row == {"subtask": ("sink", 1), "us_per_record": 1658, "others_us_per_record": 574}


def test_recorded_answers_have_the_times(recorded):
    """In one process everything took four times as long; the same jobs elsewhere have no such subtask."""
    assert {("map", 0), ("sink-writer", 0)} == {
        slow.subtask for slow in slow_subtasks(recorded("planted-afresh/storm.zip"))
    }
    assert slow_subtasks(recorded("users-jobs/J4-pressed-aligned-r1.zip")) == []

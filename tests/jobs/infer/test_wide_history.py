"""A history of many subtasks is read in few passes: what is true of a vertex is asked once for all of them."""

from collections import Counter
from pathlib import Path

from sim.jobs.infer import options
from sim.jobs.infer.cores import works_before_barrier
from sim.jobs.infer.file_history import acknowledged, history
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.saved import read_saved

J3 = Path(__file__).parents[2] / "data" / "users-jobs" / "J3-rocksdb-aligned.zip"


def test_whether_a_vertex_works_before_the_barrier_is_asked_once_for_its_pauses_and_once_for_its_busy_time(monkeypatch):
    questions, answer = Counter(), works_before_barrier

    def count(job, vertex):
        questions[vertex] += 1
        return answer(job, vertex)

    monkeypatch.setattr(options, "works_before_barrier", count)
    document = infer_scenario(read_saved(J3)).document

    assert set(document["job"]) == set(questions)
    assert max(questions.values()) <= 2


def test_a_subtask_has_the_checkpoints_that_it_acknowledged():
    def point(number, *statuses):
        subtasks = tuple(
            RecordedSubtask(index=i, status=status, state_size=10 * number + i) for i, status in enumerate(statuses)
        )
        return RecordedCheckpoint(
            id=number,
            status="COMPLETED",
            trigger_timestamp=1000 * number,
            tasks={"map": RecordedTask(subtasks=subtasks)},
        )

    own = acknowledged([point(1, "completed", "completed"), point(2, "pending_or_failed", "completed")], "map")

    assert {index: [(row.checkpoint, row.full_bytes) for row in history(rows)] for index, rows in own.items()} == {
        0: [(1, 10)],
        1: [(1, 11), (2, 21)],
    }
    assert acknowledged([point(1, "completed")], "sink") == {}

"""A set of tasks is a set, however many there are."""

from sim.protocol.checkpoint_requests import TaskSet


def test_a_set_of_tasks_has_what_was_put_into_it():
    tasks = TaskSet()
    for task in (3, 0, 200, 3):
        tasks = tasks.with_task(task)

    assert list(tasks) == [0, 3, 200]
    assert len(tasks) == 3
    assert [task in tasks for task in (0, 1, 200, 5000)] == [True, False, True, False]
    assert len(TaskSet()) == 0
    assert {0, 3, 200} == frozenset(tasks)


def test_a_set_with_one_more_leaves_the_other_as_it_was():
    before = TaskSet().with_task(7)
    assert [list(before), list(before.with_task(8))] == [[7], [7, 8]]


def test_it_is_small():
    """A frozenset of 30,000 tasks takes two megabytes; a checkpoint makes one per acknowledgement."""
    tasks = TaskSet()
    for task in range(30_000):
        tasks = tasks.with_task(task)

    assert tasks.bits.__sizeof__() < 5_000

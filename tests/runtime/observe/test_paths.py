"""The table of critical paths: every checkpoint that is over has one, without a gap."""

from sim.runtime.sampling import groups


def test_groups_are_runs_of_subtasks_of_a_task_manager():
    assert groups([0, 1, 0, 1, 0], size=2) == [0, 1, 0, 1, 2]

"""Restarts in a row that lead nowhere are told from others."""

import pytest

from sim.protocol.recovery import MIN_RESTARTS, Restarted, RestartLoop, find_restart_loop

ALIKE = [Restarted(10 * i, 3, is_caused_by_job=True) for i in range(1, MIN_RESTARTS + 3)]


def test_restarts_that_are_all_alike():
    assert RestartLoop(MIN_RESTARTS + 2, 3) == find_restart_loop(ALIKE, 0)


@pytest.mark.parametrize("progress", [20, 25])
def test_what_was_before_the_last_progress_does_not_count(progress):
    assert RestartLoop(MIN_RESTARTS, 3) == find_restart_loop(ALIKE, progress)


def test_progress_in_between_ends_the_row():
    assert None is find_restart_loop(ALIKE, 30)


@pytest.mark.parametrize("other", [Restarted(45, 2, is_caused_by_job=True), Restarted(45, 3, is_caused_by_job=False)])
def test_another_checkpoint_or_a_fault_of_others_ends_the_row(other):
    assert None is find_restart_loop(sorted([*ALIKE, other]), 0)


def test_no_restart():
    assert None is find_restart_loop([], 0)

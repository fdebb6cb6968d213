"""Answers of sweeps held to known truths: a small version of what `python -m benchmarks.coverage` prints."""

import numpy as np
import pytest

from benchmarks.coverage import COVERED, NULL, Study, covered, main, winners

FEW = 100
ROOM = 2.6 * np.sqrt(0.05 * 0.95 / FEW)
"""So far a share of 95 % may be off by chance, in one of a hundred tests."""


@pytest.mark.parametrize("kind", ["mean", "paired difference", "restricted mean", "set"])
def test_intervals_hold_the_truth_as_often_as_they_say(kind):
    _, check, study = next(of for of in COVERED if of[0] == kind)

    assert covered(check, study, FEW, seed=1) >= 0.95 - ROOM


@pytest.mark.parametrize("study", NULL[:2], ids=lambda study: study.name)
def test_of_equal_settings_none_wins(study):
    """More often than in 5 % of studies; bootstrap named a winner in 28 % of those with five windows, and in 12 % of those with ten."""
    named, _ = winners(study, 1000, seed=1)

    assert named <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / 1000)


def test_settings_that_differ_are_told_apart():
    named, left_out = winners(Study("far apart", 2, 10, apart=10), 50, seed=1)

    assert named == left_out == 1.0


def test_it_prints_a_line_per_kind(capsys):
    assert main(["--studies", "2", "--null-studies", "2"]) == 0
    assert len(COVERED) + len(NULL) + 3 == len(capsys.readouterr().out.splitlines())

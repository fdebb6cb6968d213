"""Populations that statistics of a run are computed over.

Each column of numbers names its population, so a planned rescale never changes what a failure is said to cost, and a savepoint never
changes the percentiles of checkpoints.  `tests/analysis/strategies/test_populations.py` holds every column to its population.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["PLANNED_RESTARTS", "Population"]

PLANNED_RESTARTS = ("rescale", "instance")
"""Kinds of restarts (column `kind` of `recoveries`) that no failure caused: a rescale, and a job that begins from a snapshot."""


class Population(StrEnum):
    """The rows that a statistic is computed over, in words."""

    CHECKPOINTS = "periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    COMPLETED = "completed periodic and final checkpoints triggered after the warm-up, without first uploads and savepoints"
    FIRST_UPLOADS = "first uploads"
    FAILURES = "restarts caused by a failure"
    PLANNED = "planned restarts: rescales, and jobs that begin from a snapshot"
    RESTARTS = "all restarts"
    COMMITS = "commits whose checkpoint was triggered after the warm-up"
    AFTER_WARMUP = "the run after the warm-up"
    RUN = "the whole run"

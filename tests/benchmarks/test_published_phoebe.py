"""Phoebe's savepoints: barriers behind full channels, longer with more of them, and how far from the published durations."""

from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.published.phoebe import (
    FITTED,
    SERVICE_NS,
    by_parallelism,
    fit_ns,
    overloaded,
    predicted,
    savepoint_s,
    scenario,
    shares,
)


def test_a_savepoint_of_a_job_that_keeps_up_is_short():
    """At half of what the busiest subtask can serve nothing waits; with a backlog barriers wait behind it."""
    busiest = max(shares(4, 1)) * 4
    keeps_up = scenario(4, 1, rate=Fraction(10**9, SERVICE_NS) / busiest / 2)

    assert savepoint_s(keeps_up) < 1
    assert savepoint_s(scenario(4, 1)) > 10


def test_it_grows_with_the_parallelism():
    """Each upstream subtask keeps a constant number of buffers for each channel: twice the subtasks, twice the queue."""
    small, large = (savepoint_s(scenario(parallelism, 1, 1_000_000)) for parallelism in (4, 8))

    assert 1.4 < large / small < 3


def test_it_scales_with_the_service_time():
    """Which is why durations at one parallelism fit it; a checkpoint that happens to be under way adds to it, so none is here.

    To a tenth: how full which channel is when it is asked for is chance.
    """

    def alone(service_ns):
        made = scenario(4, 1, service_ns)
        return savepoint_s(replace(made, checkpoint=replace(made.checkpoint, interval_ns=None)))

    assert pytest.approx(alone(9_000_000) / alone(3_000_000), rel=0.15) == 3


def test_everybody_has_campaigns():
    drawn = shares(17, 3)

    assert sum(drawn) == 1
    assert min(drawn) > 0
    assert drawn != shares(17, 4)


@pytest.mark.slow
def test_durations_by_parallelism():
    """One parallelism fits the service time; median and p90 of all are within a quarter, groups of three and more within 60 %."""
    rows = overloaded()

    assert fit_ns(rows) == SERVICE_NS
    rows = predicted(rows)
    table = by_parallelism(rows)
    measured = table[table.savepoints >= 3]

    assert len(rows) == 49
    assert [abs(rows.predicted.quantile(q) / rows.seconds.quantile(q) - 1) < 0.25 for q in (0.5, 0.9)] == [True, True]
    assert measured.error.abs().max() < 0.60
    assert measured.error.abs().median() < 0.25
    assert rows.seconds.corr(rows.predicted, "spearman") > 0.5
    assert FITTED in table.index

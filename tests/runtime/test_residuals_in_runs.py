"""Residuals of a history in a run: each is in the part of the checkpoint where it was observed, and nothing else changes."""

from dataclasses import replace

from sim.model.randomness import Residual, Residuals
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import MS, chain, scenario, with_options


def run(*residuals, history=1, **options):
    """From a history of one checkpoint every simulated one draws the same, so that runs differ by the residuals alone."""
    quick = scenario(chain(2, sink_ns=MS // 10), seconds=6, interval_ms=1000)
    timed = with_options(quick, **options)
    return simulate(replace(timed, residuals=Residuals(history, residuals)))


def test_a_call_that_is_late_is_not_overtaken_by_the_next():
    """Three checkpoints at a time, every other call is late by more than an interval."""
    late = Residual("source", "scheduling", ((1300 * MS, 0),))
    result = run(late, history=2, interval_ns=500 * MS, max_concurrent=3)
    called = [
        row.checkpoint for row in result.journal if row.event_type is EventType.TRIGGER_RECEIVED and row.task == 0
    ]

    assert len(called) > 5
    assert sorted(called) == called

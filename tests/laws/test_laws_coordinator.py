"""Laws 18-23 on whole runs: what the journal and the statistics of a simulated job say about its coordinator."""

from dataclasses import replace

import pytest

from sim.results.journal import Happening
from tests.laws.small_jobs import (
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    rows,
    run,
    scenario,
    with_options,
)


def busy(**options):
    """Checkpoints that take longer than their interval: the sink works 3 ms per record, with queues in front."""
    interval_ms = options.pop("interval_ms", 100)
    return with_options(scenario(chain(sink_ns=3 * MS), seconds=3, interval_ms=interval_ms), **options)


def quiet(seconds, **options):
    """Checkpoints of a few ms every 100 ms."""
    return with_options(scenario(chain(1, rate=10, sink_ns=MS), seconds=seconds, interval_ms=100), **options)


# ---------------------------------------------------------------------------------------------- 19, 20: when they are triggered


@pytest.mark.parametrize("seconds", [0.5, 1.95, 3.333])
def test_law_20_short_checkpoints_keep_the_grid(seconds):
    """With durations below the interval: floor((H - phase) / I) + 1 triggers, each on its point."""
    world = run(quiet(seconds))
    horizon, phase, interval = int(seconds * SECOND), 10 * MS, 100 * MS

    assert [phase + k * interval for k in range((horizon - phase) // interval + 1)] == [
        row.trigger_ns for row in world.stats.values()
    ]


@pytest.mark.parametrize("pause_ms", [1, 70])
def test_law_20_long_checkpoints_follow_each_other(pause_ms):
    """With durations above the interval the cycle is duration + pause, to the ns."""
    world = run(busy(min_pause_ns=pause_ms * MS))
    done = [row for row in world.stats.values() if row.status == "COMPLETED"]

    assert len(done) >= 5
    assert all(row.completed_ns - row.trigger_ns > 100 * MS for row in done)
    assert [row.completed_ns + pause_ms * MS for row in done[:-1]] == [row.trigger_ns for row in done[1:]]


def test_law_20_piled_up_requests_run_back_to_back():
    """Without a pause the next one begins in the moment the last one is complete."""
    done = [row for row in run(busy()).stats.values() if row.status == "COMPLETED"]

    assert len(done) >= 5
    assert [row.completed_ns for row in done[:-1]] == [row.trigger_ns for row in done[1:]]


# ---------------------------------------------------------------------------------------------- 22, 23: acknowledgements, what is kept


def late(**options):
    """Acknowledgements that take 200 ms to arrive, for checkpoints that have 100: they come after the abort."""
    base = scenario(chain(), UNALIGNED, seconds=2, interval_ms=300)
    return with_options(
        replace(base, overheads=replace(base.overheads, acknowledge_ns=200 * MS)), timeout_ns=100 * MS, **options
    )


def test_law_22_no_acknowledgement_is_accepted_after_an_abort():
    """They arrive and change nothing: the checkpoint stays failed, with nobody's acknowledgement."""
    world = run(late())
    aborted = {row.checkpoint: row.time_ns for row in rows(world, Happening.ABORTED)}
    after = [row for row in rows(world, Happening.ACKNOWLEDGED) if row.time_ns > aborted.get(row.checkpoint, 10**18)]

    assert len(after) >= len(world.tasks), "the law is not vacuous"
    for number in aborted:
        row = world.stats[number]
        assert (row.status, row.acknowledged, row.latest_ack_ns) == ("FAILED", 0, -1)
    assert set() == completed(world)


def test_the_runs_of_these_laws_are_what_they_say():
    """Long checkpoints are long and short ones short, else the laws about them are about nothing."""
    slow, short = run(busy()), run(quiet(1))

    assert all(slow.stats[n].completed_ns - slow.stats[n].trigger_ns > 100 * MS for n in completed(slow))
    assert all(short.stats[n].completed_ns - short.stats[n].trigger_ns < 100 * MS for n in completed(short))

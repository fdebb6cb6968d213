"""Laws 18-23 on whole runs: what the journal and the statistics of a simulated job say about its coordinator."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.options import FailureReason
from sim.results.journal import Happening
from tests.laws.small_jobs import (
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    quick,
    rows,
    run,
    scenario,
    scenarios,
    with_options,
)

COUNTED_NAMES = {reason.name for reason in FailureReason if reason.counts}


def ended_ns(row):
    """When a checkpoint gave back its place; None while it is under way."""
    return {"COMPLETED": row.completed_ns, "FAILED": row.failed_ns}.get(row.status)


def busy(**options):
    """Checkpoints that take longer than their interval: the sink works 3 ms per record, with queues in front."""
    interval_ms = options.pop("interval_ms", 100)
    return with_options(scenario(chain(sink_ns=3 * MS), seconds=3, interval_ms=interval_ms), **options)


def quiet(seconds, **options):
    """Checkpoints of a few ms every 100 ms."""
    return with_options(scenario(chain(1, rate=10, sink_ns=MS), seconds=seconds, interval_ms=100), **options)


# ---------------------------------------------------------------------------------------------- 18: ids and slots


def pending_at_triggers(world):
    """How many earlier checkpoints still held a place when each was decided on."""
    for number, row in world.stats.items():
        earlier = [world.stats[n] for n in world.stats if n < number]
        yield sum(ended_ns(end) is None or ended_ns(end) > row.trigger_ns for end in earlier)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_law_18_all_places_are_used(limit):
    """The law is not vacuous: with checkpoints longer than the interval the limit is met."""
    assert limit - 1 == max(pending_at_triggers(run(busy(max_concurrent=limit))))


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


# ---------------------------------------------------------------------------------------------- 21: failures


def first_too_many(world, tolerable):
    """When distinct counted failures since the last success exceed what is tolerated, told from the journal alone."""
    failing, last_success = set(), 0
    for row in rows(world, Happening.ABORTED, Happening.COMPLETED):
        if row.happening is Happening.COMPLETED:
            failing, last_success = set(), max(last_success, row.checkpoint)
        elif row.detail in COUNTED_NAMES and row.checkpoint > last_success:
            failing.add(row.checkpoint)
        if len(failing) > tolerable:
            return row.time_ns
    return None


@quick
@given(scenarios(), st.integers(0, 2))
def test_law_21_the_job_fails_at_the_first_failure_too_many(world_of, tolerable):
    world = run(with_options(world_of, tolerable_failed=tolerable, timeout_ns=60 * MS))
    failed = [row.time_ns for row in rows(world, Happening.JOB_FAILED)]

    assert first_too_many(world, tolerable) == (failed[0] if failed else None)


@pytest.mark.parametrize("tolerable", [0, 1, 3])
def test_law_21_failures_in_a_row_are_counted(tolerable):
    """Every checkpoint expires: the job fails with the one after the last tolerated."""
    world = run(busy(tolerable_failed=tolerable, timeout_ns=50 * MS))

    assert tolerable + 1 == rows(world, Happening.ABORTED).index(_cause(world)) + 1


def _cause(world):
    end = rows(world, Happening.JOB_FAILED)[0]
    return next(row for row in rows(world, Happening.ABORTED) if row.time_ns == end.time_ns)


def test_law_21_a_success_forgives():
    """Some expire, some complete: never two failures in a row, so a job that tolerates one goes on."""
    base = scenario(chain(1, rate=30, sink_ns=MS), seconds=6, interval_ms=100)
    unlucky = replace(base, storage=replace(base.storage, slow_probability=0.1, slow_factor=100))
    statuses = [row.status for row in run(with_options(unlucky, timeout_ns=60 * MS)).stats.values()]
    longest = max(len(run_of) for run_of in "".join("x" if status == "FAILED" else " " for status in statuses).split())
    tolerating = run(with_options(unlucky, timeout_ns=60 * MS, tolerable_failed=longest))

    assert statuses.count("FAILED") > longest, "with successes in between"
    assert rows(tolerating, Happening.JOB_FAILED) == []
    assert (
        rows(run(with_options(unlucky, timeout_ns=60 * MS, tolerable_failed=longest - 1)), Happening.JOB_FAILED) != []
    )


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


@quick
@given(scenarios())
def test_law_22_acknowledgements_count_up_to_the_abort(world_of):
    """What a failed checkpoint says it has are those that came before its failure."""
    world = run(with_options(world_of, timeout_ns=60 * MS))
    for row in world.stats.values():
        if row.status == "FAILED":
            story = world.journal.story(row.number)
            end = next(i for i, entry in enumerate(story) if entry.happening is Happening.ABORTED)

            assert row.acknowledged == sum(entry.happening is Happening.ACKNOWLEDGED for entry in story[:end])
            assert row.latest_ack_ns <= row.failed_ns


def test_the_runs_of_these_laws_are_what_they_say():
    """Long checkpoints are long and short ones short, else the laws about them are about nothing."""
    slow, short = run(busy()), run(quiet(1))

    assert all(slow.stats[n].completed_ns - slow.stats[n].trigger_ns > 100 * MS for n in completed(slow))
    assert all(short.stats[n].completed_ns - short.stats[n].trigger_ns < 100 * MS for n in completed(short))

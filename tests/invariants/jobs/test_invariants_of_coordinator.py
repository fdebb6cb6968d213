"""Invariants 18 to 23, 82 and 83 on whole runs: the coordinator of a job, and jobs without a JobManager."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Fault, JobManagerDown, Kill, Restart, TaskManagerLost, When
from sim.model.scenario import Action
from sim.protocol.coordinator import Coordinator
from sim.protocol.messages import LeaderElected, LeaderLost
from sim.results.journal import EventType
from tests.invariants.jobs.small_jobs import (
    MS,
    SECOND,
    UNALIGNED,
    chain,
    completed,
    fault_at,
    quick,
    rows,
    run,
    scenario,
    scenarios,
    started,
    with_options,
)

# Invariants 18-23 on whole runs: what the journal and the statistics of a simulated job say about its coordinator.


def busy(**options):
    """Checkpoints that take longer than their interval: the sink works 3 ms per record, with queues in front."""
    interval_ms = options.pop("interval_ms", 100)
    return with_options(scenario(chain(sink_ns=3 * MS), seconds=3, interval_ms=interval_ms), **options)


def quiet(seconds, **options):
    """Checkpoints of a few ms every 100 ms."""
    return with_options(scenario(chain(1, rate=10, sink_ns=MS), seconds=seconds, interval_ms=100), **options)


# ---------------------------------------------------------------------------------------------- 19, 20: when they are triggered


@pytest.mark.parametrize("seconds", [0.5, 1.95, 3.333])
def test_invariant_20_short_checkpoints_keep_the_grid(seconds):
    """With durations below the interval: floor((H - phase) / I) + 1 triggers, each on its point."""
    world = run(quiet(seconds))
    horizon, phase, interval = int(seconds * SECOND), 10 * MS, 100 * MS

    assert [phase + k * interval for k in range((horizon - phase) // interval + 1)] == [
        row.trigger_ns for row in world.stats.values()
    ]


@pytest.mark.parametrize("pause_ms", [1, 70])
def test_invariant_20_long_checkpoints_follow_each_other(pause_ms):
    """With durations above the interval the cycle is duration + pause, to the ns."""
    world = run(busy(min_pause_ns=pause_ms * MS))
    done = [row for row in world.stats.values() if row.status == "COMPLETED"]

    assert len(done) >= 5
    assert all(row.completed_ns - row.trigger_ns > 100 * MS for row in done)
    assert [row.completed_ns + pause_ms * MS for row in done[:-1]] == [row.trigger_ns for row in done[1:]]


def test_invariant_20_piled_up_requests_run_back_to_back():
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


def test_invariant_22_no_acknowledgement_is_accepted_after_an_abort():
    """They arrive and change nothing: the checkpoint stays failed, with nobody's acknowledgement."""
    world = run(late())
    aborted = {row.checkpoint: row.time_ns for row in rows(world, EventType.ABORTED)}
    after = [row for row in rows(world, EventType.ACKNOWLEDGED) if row.time_ns > aborted.get(row.checkpoint, 10**18)]

    assert len(after) >= len(world.tasks), "the invariant is not vacuous"
    for number in aborted:
        row = world.stats[number]
        assert (row.status, row.acknowledged, row.latest_ack_ns) == ("FAILED", 0, -1)
    assert set() == completed(world)


# Invariants 82 and 83: nothing that only a JobManager can do happens without one, and each counts only what it has seen itself.


HEARTBEAT = 700 * MS


@st.composite
def outages(draw, base):
    """One or two outages, shorter and longer than a heartbeat, perhaps on top of each other; other faults, savepoints, a stop."""
    downs = draw(st.lists(st.tuples(st.integers(300, 2500), st.sampled_from([50, 400, 900])), min_size=1, max_size=2))
    faults = [fault_at(JobManagerDown(down * MS), at) for at, down in downs]
    other = draw(st.sampled_from([None, Kill(), TaskManagerLost()]))
    faults += [] if other is None else [fault_at(other, draw(st.integers(300, 2800)))]
    actions = [Action(at * MS, "native") for at in draw(st.lists(st.integers(300, 2800), max_size=2))]
    if draw(st.booleans()):
        actions.append(Action(draw(st.integers(300, 2800)) * MS, "canonical", "no-drain"))
    restart = Restart("fixed-delay", delay_ns=50 * MS, attempts=2, heartbeat_timeout_ns=HEARTBEAT)
    return replace(
        base, faults=tuple(faults), restart=restart, actions=tuple(sorted(actions, key=lambda row: row.at_ns))
    )


@quick
@given(st.data())
def test_invariant_82_nothing_happens_that_needs_a_job_manager(data):
    """The run watches itself; the journal is looked through here as well, and tasks stand still behind their heartbeat."""
    instance = started(data.draw(outages(data.draw(scenarios()))))
    instance.env.run(until=instance.env.timeout(3 * SECOND) | instance.outcome.failed | instance.outcome.finished)
    absent_since = None
    for row in instance.journal:
        if row.event_type in (EventType.JOB_MANAGER_LOST, EventType.JOB_MANAGER_ELECTED):
            absent_since = row.time_ns if row.event_type is EventType.JOB_MANAGER_LOST else None
        elif absent_since is not None and row.time_ns > absent_since:
            assert row.event_type not in (
                EventType.TRIGGERED,
                EventType.ACKNOWLEDGED,
                EventType.COMPLETED,
                EventType.JOB_RESTORED,
            )
            if row.time_ns > absent_since + HEARTBEAT:
                assert row.event_type not in (EventType.SNAPSHOT_BEGUN, EventType.END_OF_DATA)

    assert instance.violations() == ()


@quick
@given(st.integers(1000, 2000), st.integers(1, 3))
def test_invariant_83_a_job_manager_counts_what_it_has_seen(at_ms, attempts):
    """As many kills before as after: with another JobManager in between the job goes on, without one it fails."""
    kills = tuple(
        Fault(Kill("sink", 0), When((n * 500 * MS + begin,)))
        for begin in (0, at_ms * MS + 2 * SECOND)
        for n in range(1, attempts + 1)
    )
    base = replace(
        scenario(chain(1, rate=100), seconds=8),
        restart=Restart("fixed-delay", delay_ns=10 * MS, attempts=attempts),
        faults=kills,
    )
    between = fault_at(JobManagerDown(100 * MS), at_ms + 900)

    assert run(base).job_status == "FAILED: killed"
    with_another = run(replace(base, faults=(*kills, between)))
    assert (with_another.job_status, with_another.violations()) == ("RUNNING", ())


def lost_for_a_second(job, **options):
    base = scenario(job, seconds=4, **options)
    return run(replace(base, faults=(fault_at(JobManagerDown(SECOND), 1500),)))


def test_invariant_82_is_broken_by_a_coordinator_that_nobody_misses(monkeypatch):
    """It goes on as if it were there."""
    here = Coordinator.on
    monkeypatch.setattr(
        Coordinator,
        "on",
        lambda self, event: (self, ()) if isinstance(event, LeaderLost | LeaderElected) else here(self, event),
    )
    found = lost_for_a_second(chain(1, rate=100)).violations()

    assert found
    assert {"without a JobManager none of its actions happens"} == {row.invariant for row in found}

"""Laws 82 and 83: nothing that only a JobManager can do happens without one, and each counts only what it has seen itself."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Fault, JobManagerDown, Kill, Restart, TaskManagerLost, When
from sim.model.scenario import Action
from sim.protocol.coordinator import Coordinator
from sim.protocol.coordinator_messages import LeaderElected, LeaderLost
from sim.results.journal import Happening
from tests.laws.small_jobs import MS, SECOND, chain, fault_at, quick, run, scenario, scenarios, started

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
def test_law_82_nothing_happens_that_needs_a_job_manager(data):
    """The run watches itself; the journal is looked through here as well, and tasks stand still behind their heartbeat."""
    instance = started(data.draw(outages(data.draw(scenarios()))))
    instance.env.run(until=instance.env.timeout(3 * SECOND) | instance.outcome.failed | instance.outcome.finished)
    absent_since = None
    for row in instance.journal:
        if row.happening in (Happening.JOB_MANAGER_LOST, Happening.JOB_MANAGER_ELECTED):
            absent_since = row.time_ns if row.happening is Happening.JOB_MANAGER_LOST else None
        elif absent_since is not None and row.time_ns > absent_since:
            assert row.happening not in (
                Happening.TRIGGERED,
                Happening.ACKNOWLEDGED,
                Happening.COMPLETED,
                Happening.JOB_RESTORED,
            )
            if row.time_ns > absent_since + HEARTBEAT:
                assert row.happening not in (Happening.SNAPSHOT_BEGUN, Happening.END_OF_DATA)

    assert instance.violations() == ()


@quick
@given(st.integers(1000, 2000), st.integers(1, 3))
def test_law_83_a_job_manager_counts_what_it_has_seen(at_ms, attempts):
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


def test_law_82_is_broken_by_a_coordinator_that_nobody_misses(monkeypatch):
    """It goes on as if it were there."""
    here = Coordinator.on
    monkeypatch.setattr(
        Coordinator,
        "on",
        lambda self, event: (self, ()) if isinstance(event, LeaderLost | LeaderElected) else here(self, event),
    )
    found = lost_for_a_second(chain(1, rate=100)).violations()

    assert found
    assert {"without a JobManager none of its actions happens"} == {row.law for row in found}

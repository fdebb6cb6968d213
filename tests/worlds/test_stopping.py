"""A job that has made the savepoint it stops with does not go back behind it: its output is visible, and no checkpoint holds it.

Unless its JobManager is lost: a stop is not remembered, and a savepoint is no checkpoint to recover from
(CheckpointCoordinator
#completePendingCheckpoint adds none to the CompletedCheckpointStore).
"""

from dataclasses import replace

import pytest

from sim.model.faults import Fault, JobManagerDown, Kill, Restart, When
from sim.model.job import Distribution, Job
from sim.model.scenario import Action
from sim.model.sinks import Commit, Flush
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import MS, SECOND, chain, fault_at, scenario
from tests.oracle import oracle


def base():
    """350 records per source, about three seconds of work, checkpoints every 450 ms; the sink writes files and commits them.

    Failures cost tens of milliseconds.
    """
    vertices = chain(2, sink_ns=8 * MS, rate=150).vertices
    vertices = tuple(replace(v, source=replace(v.source, total=350)) if v.source is not None else v for v in vertices)
    sink = replace(vertices[-1], commit=Commit(time_ns=MS), flush=Flush(bytes=20_000, files=2))
    world = scenario(Job((*vertices[:-1], sink)), interval_ms=450)
    restart = Restart(
        "fixed-delay",
        delay_ns=30 * MS,
        heartbeat_timeout_ns=200 * MS,
        heartbeat_interval_ns=40 * MS,
        connection_reset_ns=20 * MS,
        replacement=Distribution(20 * MS),
    )
    return replace(
        world,
        run=replace(world.run, duration_ns=20 * SECOND),
        restart=restart,
        overheads=replace(world.overheads, fail_ns=5 * MS, restart_ns=2 * MS, deploy_ns=5 * MS),
    )


@pytest.mark.parametrize("how", ["drain", "no-drain"])
def test_a_job_that_fails_while_it_stops_is_not_restarted(how):
    """StopWithSavepointStoppingException is a NonRecoverableError: whoever stops the job goes on from the savepoint."""
    stopping = replace(base(), actions=(Action(1000 * MS, stop=how),))
    sound = simulate(stopping)
    done = max(row.time_ns for row in sound.journal if row.event_type is EventType.COMPLETED)
    failing = replace(stopping, faults=(Fault(Kill("sink", 0), When((done + 2 * MS,))),))
    run = simulate(failing)

    assert sound.job_status == "FINISHED"
    assert run.job_status.startswith("FAILED: stopped with a savepoint, then failed")
    assert len(run.recoveries) == 0
    assert run.violations == ()


def test_a_failure_before_the_savepoint_is_complete_restarts_the_job():
    """Nothing is visible yet: the job goes on from its latest checkpoint, and stops no more."""
    failing = replace(base(), actions=(Action(1000 * MS, stop="drain"),), faults=(fault_at(Kill("sink", 0), 1002),))
    run = simulate(failing)

    assert (run.job_status, len(run.recoveries)) == ("FINISHED", 1)
    assert run.violations == ()


ENGINES = (oracle, "compiled")
STOPS = ("drain", "no-drain")


def last(run, event_type):
    return max(row.time_ns for row in run.journal if row.event_type is event_type)


def stopped(how, *faults, base=base):
    return replace(base(), actions=(Action(1000 * MS, stop=how),), faults=faults)


def without_commits():
    """The sink emits at once."""
    world = base()
    vertices = tuple(replace(vertex, commit=None) for vertex in world.job.vertices)
    return replace(world, job=replace(world.job, vertices=vertices))


def lost(at_ns, down_ns=100 * MS):
    return Fault(JobManagerDown(down_ns), When((at_ns,)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", STOPS)
def test_a_stop_is_forgotten_with_the_job_manager(how, engine):
    """Lost before the savepoint is complete, the job goes on to the end of its data: nothing was visible."""
    world = stopped(how)
    end = last(simulate(world), EventType.COMPLETED)
    alone, run = simulate(base()), simulate(stopped(how, lost(end - 2 * MS)), engine=engine)

    assert (run.job_status, len(run.recoveries), run.violations) == ("FINISHED", 1, ())
    assert list(run.checkpoints.query("checkpoint_type == 'SYNC_SAVEPOINT'")["failure_message"]) == [
        "CHECKPOINT_COORDINATOR_SUSPEND"
    ]
    assert alone.commits["records"].sum() == run.commits["records"].sum()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("base", [base, without_commits])
def test_a_job_manager_lost_behind_the_savepoint_of_a_stop(how, engine, base):
    """The next one goes back behind the savepoint, and on to the end of the data.  What the stop made visible comes again: in this
    order Flink commits twice, and a law says so."""
    sound = simulate(stopped(how, base=base))
    done, end = last(sound, EventType.COMPLETED), last(sound, EventType.JOB_FINISHED)
    for at_ns in (done + 1, end - 1):
        run = simulate(stopped(how, lost(at_ns), base=base), engine=engine)
        facts = {violation.fact.partition(" ")[2] for violation in run.violations}

        assert (run.job_status, len(run.recoveries)) == ("FINISHED", 1)
        assert run.recoveries["restored_checkpoint"].iloc[0] < max(
            run.checkpoints.query("checkpoint_type == 'SYNC_SAVEPOINT'")["id"]
        )
        assert ({"records are committed twice"} if base is not without_commits else set()) == facts


@pytest.mark.parametrize("engine", ENGINES)
def test_a_failure_under_the_next_job_manager_restarts_the_job(engine):
    """It does not know that the job was to stop."""
    done = last(simulate(stopped("drain", base=without_commits)), EventType.COMPLETED)
    kill = Fault(Kill("sink", 0), When((done + 800 * MS,)))
    run = simulate(stopped("drain", lost(done + MS), kill, base=without_commits), engine=engine)

    assert (run.job_status, len(run.recoveries), run.violations) == ("FINISHED", 2, ())


def test_a_job_that_has_finished_is_not_restarted():
    """The JobManager's loss comes too late."""
    end = last(simulate(stopped("drain")), EventType.JOB_FINISHED)
    run = simulate(stopped("drain", lost(end + 1)))

    assert (run.job_status, len(run.recoveries), run.violations) == ("FINISHED", 0, ())

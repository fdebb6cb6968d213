"""Rescaling: the job goes on with another parallelism from a checkpoint or a savepoint, and serves every record once."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.faults import Kill, Rescale, Restart
from sim.model.job import Job, Rate, Source
from sim.model.scenario import Action
from sim.runtime.result import segments
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import ALIGNED, MS, SECOND, chain, fault_at, scenario

LOG = Source((Rate(0, Fraction(100)),), 500)  # 5 s of records
LARGER = (("stage0", 3), ("sink", 4))


def rescaling(kind, *, savepoint=False, faults=(), log=LOG, actions=()):
    """At 3 s, while a slow sink keeps the queues full."""
    job = chain(2, sink_ns=12 * MS, rate=100)
    job = Job(tuple(replace(vertex, source=log) if vertex.source else vertex for vertex in job.vertices))
    base = replace(
        scenario(job, kind, seconds=24, interval_ms=400),
        restart=Restart("fixed-delay", delay_ns=300 * MS),
        faults=faults,
        rescale=(Rescale(3 * SECOND, LARGER, savepoint=savepoint),),
        actions=actions,
    )
    return simulate(base)


def begun(result):
    return result.recoveries[result.recoveries["kind"] == "rescale"].iloc[0]


def test_an_action_at_the_moment_of_a_rescale_is_one_of_the_new_job():
    actions = tuple(Action(at_s * SECOND) for at_s in (2, 3, 4))
    parts = segments(
        replace(scenario(chain(2), ALIGNED, seconds=9), actions=actions, rescale=(Rescale(3 * SECOND, LARGER),))
    )

    assert [[action.at_ns // SECOND for action in segment.scenario.actions] for segment in parts] == [[2], [3, 4]]


KILLED_WHILE_STOPPING = (fault_at(Kill("sink", 1), 3200),)
SAVEPOINT_BEFORE = (Action(1 * SECOND),)


def test_a_stop_that_fails_is_requested_again():
    """A kill aborts its savepoint.  The job restarts, runs on, and is rescaled from the next one: not from an older savepoint."""
    log = Source((Rate(0, Fraction(100)),), 1500)
    result = rescaling(ALIGNED, savepoint=True, faults=KILLED_WHILE_STOPPING, actions=SAVEPOINT_BEFORE, log=log)
    stops = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"]

    assert result.violations == ()
    assert result.job_status == "FINISHED"
    assert stops["status"].tolist() == ["FAILED", "COMPLETED"]
    assert [int(trigger) for trigger in stops["trigger_timestamp"]] == [3000, 13_000]
    assert begun(result)["restored_checkpoint"] == stops["id"].iloc[1]


def test_a_job_whose_stop_failed_and_that_ends_by_itself_is_not_rescaled():
    """An older savepoint is no place to begin from: what came after it has been committed."""
    result = rescaling(ALIGNED, savepoint=True, faults=KILLED_WHILE_STOPPING, actions=SAVEPOINT_BEFORE)

    assert result.job_status == "FINISHED"
    assert result.recoveries["kind"].tolist() == ["task"]


@pytest.mark.parametrize(("seconds", "stopped"), [(3.1, False), (6, True)])
def test_a_rescale_that_never_comes_is_told(seconds, stopped):
    """Full queues keep the barrier of its savepoint, and the run is over; with time left the job is rescaled."""
    base = scenario(chain(2, rate=100, sink_ns=12 * MS), ALIGNED, seconds=seconds, interval_ms=400)
    result = simulate(replace(base, rescale=(Rescale(3 * SECOND, (("sink", 3),), savepoint=True),)))
    status = (
        "FAILED: job 1 cannot begin: the savepoint of 3 s that job 0 stops with was not complete at the end of the run"
    )

    assert ("RUNNING" if stopped else status) == result.job_status

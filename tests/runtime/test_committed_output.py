"""What the outside world knows: transactions by their writers' names, files by theirs; and that it outlives a job."""

from dataclasses import replace

import pytest
import simpy

from sim.model.faults import FailedCommits, Fault, Rescale, Restart, When
from sim.model.job import Job
from sim.model.sinks import Commit
from sim.model.storage import Storage
from sim.protocol.commit import Committable
from sim.runtime.context import CommittedOutput
from sim.runtime.simulate import simulate
from sim.storage.filesystem import CheckpointStorage
from tests.laws.small_jobs import MS, chain, scenario

NAMES = [("map", 0), ("sink", 0), ("sink", 1)]


def committed(names=NAMES):
    return CommittedOutput(CheckpointStorage(simpy.Environment(), Storage(), seed=1), names)


def committable(writer, epoch, opened_ns=0):
    return Committable(writer, epoch, ((0, 7 * epoch),), opened_ns, 100)


def test_a_rescaled_job_commits_nothing_twice():
    """The stage before the sink gets another subtask: the sink commits again what the checkpoint held, and it is known."""
    job = chain(2, rate=200)
    sink = replace(job.vertices[-1], commit=Commit())
    base = scenario(Job((*job.vertices[:-1], sink)), interval_ms=300)
    rescaled = replace(base, rescale=(Rescale(1000 * MS, (("stage0", 3),)),), restart=Restart("fixed-delay", 100 * MS))
    result = simulate(rescaled, engine="compiled")
    read = result.tasks[result.tasks["vertex"] == "sink"]["numRecordsIn"].sum()

    assert result.violations == ()
    assert result.commits["again"].any()
    assert result.commits.loc[result.commits["again"], "records"].sum() == 0
    assert result.commits["records"].sum() <= read


@pytest.mark.parametrize("committing", [Commit(), Commit(time_ns=20 * MS)])
def test_a_commit_that_fails_again_after_each_restart_fails_the_restored_task(committing):
    """A restored task commits at once what its checkpoint holds, before its thread begins; the catalog refuses commits for a second."""
    job = chain(2, rate=200)
    sink = replace(job.vertices[-1], commit=committing)
    base = scenario(Job((*job.vertices[:-1], sink)), interval_ms=300)
    fault = Fault(FailedCommits("sink", lasts_ns=1000 * MS), When((800 * MS,)))
    result = simulate(replace(base, faults=(fault,), restart=Restart("fixed-delay", 100 * MS)), engine="compiled")

    assert result.violations == ()
    assert (result.recoveries["cause"] == "a commit failed").sum() > 2
    assert not result.commits["lost_records"].any()
    assert result.commits["commit_timestamp"].max() > 1800


def test_output_whose_commit_failed_becomes_visible_with_the_commit_after_the_restart():
    """A catalog refuses commits for a while: what the restored task commits was not visible before, and is no repetition."""
    job = chain(2, rate=200)
    sink = replace(job.vertices[-1], commit=Commit())
    base = scenario(Job((*job.vertices[:-1], sink)), interval_ms=300)
    failing = Fault(FailedCommits("sink", lasts_ns=300 * MS), When((800 * MS,)))
    plain, failed = (
        simulate(replace(base, faults=faults, restart=Restart("fixed-delay", 100 * MS))) for faults in ((), (failing,))
    )
    waited_ms = [result.commits["visible_latency"].max() for result in (plain, failed)]

    assert not failed.commits.loc[failed.commits["again"], "records"].any()
    assert failed.recoveries["cause"].eq("a commit failed").any()
    assert waited_ms[1] > waited_ms[0] + 100

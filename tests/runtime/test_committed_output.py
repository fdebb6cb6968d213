"""What the outside world knows of transactions, and what a checkpoint holds of them: nothing is committed twice."""

from dataclasses import replace

import pytest

from sim.model.faults import FailedCommits, Rescale, Restart
from sim.model.job import Job
from sim.model.sinks import Commit
from sim.runtime.context import Uncommitted
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import MS, chain, fault_at, scenario

# What the outside world knows of transactions: nothing is committed twice, by a job that was rescaled or whose commits fail.


def run(committing=Commit(), **changes):  # noqa: B008  # frozen
    job = chain(2, rate=200)
    sink = replace(job.vertices[-1], commit=committing)
    base = scenario(Job((*job.vertices[:-1], sink)), interval_ms=300)
    return simulate(replace(base, restart=Restart("fixed-delay", 100 * MS), **changes))


def refused(lasts_ns):
    """A catalog refuses commits for a while."""
    return (fault_at(FailedCommits("sink", lasts_ns=lasts_ns), 800),)


def test_a_rescaled_job_commits_nothing_twice():
    """The stage before the sink gets another subtask: the sink commits again what the checkpoint held, and it is known."""
    result = run(rescale=(Rescale(1000 * MS, (("stage0", 3),)),))
    read = result.tasks[result.tasks["vertex"] == "sink"]["numRecordsIn"].sum()

    assert result.violations == ()
    assert result.commits["again"].any()
    assert result.commits.loc[result.commits["again"], "records"].sum() == 0
    assert result.commits["records"].sum() <= read


@pytest.mark.parametrize("committing", [Commit(), Commit(time_ns=20 * MS)])
def test_a_commit_that_fails_again_after_each_restart_fails_the_restored_task(committing):
    """A restored task commits at once what its checkpoint holds, before its thread begins."""
    result = run(committing, faults=refused(1000 * MS))

    assert result.violations == ()
    assert (result.recoveries["cause"] == "a commit failed").sum() > 2
    assert not result.commits["lost_records"].any()
    assert result.commits["commit_timestamp"].max() > 1800


def test_output_whose_commit_failed_becomes_visible_with_the_commit_after_the_restart():
    """What the restored task commits was not visible before, and is no repetition."""
    plain, failed = run(), run(faults=refused(300 * MS))
    waited_ms = [result.commits["visible_latency"].max() for result in (plain, failed)]

    assert not failed.commits.loc[failed.commits["again"], "records"].any()
    assert failed.recoveries["cause"].eq("a commit failed").any()
    assert waited_ms[1] > waited_ms[0] + 100


# What a checkpoint holds of each task: its transactions.


def test_the_same_tasks_keep_their_numbers():
    """What is in flight goes on growing: it is the same list."""
    names = (("sink", 0), ("sink", 1))
    kept = Uncommitted(3, (), [])
    assert kept is kept.renumbered(names, list(names))

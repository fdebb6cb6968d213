"""What the outside world knows: transactions by their writers' names, files by theirs; and that it outlives a job."""

from dataclasses import replace

import simpy

from sim.model.faults import Rescale, Restart
from sim.model.job import Job
from sim.model.sinks import Commit
from sim.model.storage import Storage
from sim.protocol.commit import Committable
from sim.runtime.context import CommittedOutput, Uncommitted
from sim.runtime.simulate import simulate
from sim.storage.filesystem import CheckpointStorage
from tests.laws.small_jobs import MS, chain, scenario

NAMES = [("map", 0), ("sink", 0), ("sink", 1)]
RENUMBERED = [("map", 0), ("map", 1), ("sink", 0), ("sink", 1)]


def committed(names=NAMES):
    return CommittedOutput(CheckpointStorage(simpy.Environment(), Storage(), seed=1), names)


def committable(writer, epoch, opened_ns=0):
    return Committable(writer, epoch, ((0, 7 * epoch),), opened_ns, 100)


def test_a_transaction_is_visible_once():
    """Writer, epoch and opening name it: begun again after a failure it is another one."""
    world = committed()
    world.commit([committable(1, 3)], 1)

    assert world.has(committable(1, 3))
    assert not any(world.has(other) for other in (committable(2, 3), committable(1, 4), committable(1, 3, opened_ns=5)))
    assert world.covered == {1: [21]}


def test_a_file_is_missing_unless_it_is_durable_and_not_deleted():
    world = committed()
    files = world.storage.files
    for name in ("whole", "half", "gone"):
        stored = files.create((name,), 0, 0, disk=False)
        world.stored((name,), stored.id)
        if name != "half":
            files.close(stored, 1)
        if name == "gone":
            files.delete(stored.id, 2)

    assert [world.missing([(name,)]) for name in ("whole", "half", "gone", "never")] == [0, 1, 1, 1]


def test_the_next_instance_knows_what_was_committed():
    """It goes on counting where the last one ended."""
    before, after = committed(), committed()
    before.commit([committable(1, 3)], 1)
    after.continue_from(before, 3, {1: [25], 2: [4]})

    assert after.has(committable(1, 3))
    assert after.covered_before == {1: [21]}


def test_other_numbers_of_tasks_mean_the_same_writers():
    """Rescaled: sink[0] was task 1 and is task 2; records count anew, what was committed before is left out of the account."""
    before, after = committed(), committed(RENUMBERED)
    before.commit([committable(1, 3)], 1)
    after.continue_from(before, 3, {2: [25], 3: [4]})
    carried = Uncommitted(3, (committable(1, 3), committable(2, 3))).renumbered(NAMES, RENUMBERED)
    after.commit(carried.committables, 1)

    assert [entry.writer for entry in carried.committables] == [2, 3]
    assert all(after.has(entry) for entry in carried.committables)
    assert {2: [25], 3: [4]} == after.covered_before == after.covered
    after.commit([committable(2, 4)], 2)
    assert after.covered == {2: [28], 3: [4]}


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

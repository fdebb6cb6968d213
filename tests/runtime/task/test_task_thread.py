"""A task's thread and its asynchronous one: mails between records, announced barriers, cancelled work."""

from dataclasses import replace

import pytest

from sim.model.checkpoint import Barriers
from sim.model.job import Distribution, Input, Job, Snapshot, Vertex
from sim.runtime.task.thread import AsyncThread, TaskThread
from tests.invariants.jobs.small_jobs import MS, network, run, scenario, source
from tests.runtime.fakes import FakePlane, clock
from tests.scenarios import run_scenario

# A task's thread: mails run between records, in order, and wait while the thread works for the control plane.


@pytest.fixture
def plane():
    return FakePlane()


@pytest.fixture
def thread(plane):
    return TaskThread(plane, task=3)


def test_mails_wait_while_the_thread_is_occupied(thread, plane):
    """A mail that keeps the thread keeps the mails behind it waiting; they ask again when it is free."""
    story = []
    thread.post(thread.occupy)
    thread.post(lambda: story.append("waited"))
    thread.at_safe_point()
    thread.at_safe_point()

    assert story == []
    assert plane.verbs[-1] == ("hold", 3)
    thread.vacate()
    assert plane.verbs[-2:] == [("release", 3), ("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["waited"]


def test_an_operator_that_waits_lets_notifications_through(thread, plane):
    """MailboxExecutor#yield: mails of the task itself, barriers among them, wait in their order until the last late output is written."""
    story = []
    thread.begin_yield()
    for n, notifies in enumerate((False, True, False, True)):
        thread.post(lambda n=n: story.append(n), notifies=notifies)
    thread.at_safe_point()

    assert story == [1, 3]
    assert plane.verbs == [("wait_for_late", 3), ("interrupt", 3), ("interrupt", 3)], "nobody asks for what cannot run"
    thread.end_yield()
    assert plane.verbs[-1] == ("interrupt", 3)
    thread.at_safe_point()
    assert story == [1, 3, 0, 2]


def test_mails_wait_until_what_was_let_go_is_written(thread, plane):
    """The outputs may block the thread: the mails behind wait for the safe point after them."""
    story = []
    thread.post(lambda: (story.append("commit"), thread.release_late_outputs(7)))
    thread.post(lambda: story.append("next"))
    thread.at_safe_point()

    assert story == ["commit"]
    assert plane.verbs[-2:] == [("release_late_outputs", 3, 7), ("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["commit", "next"]


def test_a_thread_that_takes_mails_only_goes_back_to_them(thread, plane):
    """Its data has ended: it writes what is let go, be it nothing, serves no record, and its mails go on."""
    story = []
    thread.serve_mails_only()
    thread.post(lambda: (story.append("timer"), thread.release_late_outputs(7)))
    thread.post(lambda: story.append("next"))

    assert story == ["timer"]
    assert plane.verbs[:4] == [("hold", 3), ("release_late_outputs", 3, 7), ("release", 3), ("report_written", 3)]
    assert thread.written()
    assert plane.verbs[-1] == ("hold", 3)
    assert story == ["timer", "next"]


# A task's one asynchronous thread: cancelled work stops.


def test_work_cancelled_in_the_moment_its_turn_comes_goes_no_further():
    """Two snapshots are aborted at once; what the second one waits for is there already, so nothing would hold it up."""
    env, story = clock(), []
    thread, there = AsyncThread(env), env.event().succeed()

    def first():
        story.append("1 begins")
        yield env.timeout(10)
        story.append("1 goes on")

    def second():
        yield there
        story.append("2 goes on")

    thread.queue(1, first(), lambda: story.append("1 done"))
    env.call_in(1, lambda: thread.queue(2, second(), lambda: story.append("2 done")))
    env.call_in(5, lambda: (thread.leave(1), thread.leave(2)))
    env.run(until=1000)

    assert story == ["1 begins"]


# A barrier that is announced to a task whose thread is at work for a snapshot waits until that is over.


def reads(upstream, service_ns, record_bytes):
    return Input(upstream, "hash", service=Distribution(service_ns), record_bytes=Distribution(record_bytes))


def test_an_announced_barrier_does_not_take_a_snapshot_from_under_the_thread():
    """Checkpoints expire while their synchronous phase goes on, and the next barrier is announced meanwhile: it cancels nothing before."""
    readers = Vertex(
        "d",
        parallelism=2,
        inputs=(reads("a", 100_000, 40), reads("c", 9 * MS, 300)),
        snapshot=Snapshot(sync_ns=60 * MS),
    )
    middle = Vertex("c", inputs=(replace(reads("a", 100_000, 40), ship="rescale"),))
    job = Job((source("a"), middle, readers))
    base = scenario(job, Barriers("aligned-timeout", 30 * MS), seconds=2, interval_ms=120, timeout_ns=150 * MS)
    world = run(
        replace(base, cluster=replace(base.cluster, network=replace(network, buffer_timeout_ns=-1))), "compiled"
    )

    assert len(world.stats) >= 10


# A task is late for the first barrier of a checkpoint by `cluster: barrier-wake-up`, and serves nothing meanwhile.


JOB = """\
job:
  a: {source: {rate: 2k/s, record: 1 kB}, parallelism: 2}
  b: {input: {a: rebalance}, parallelism: 2, service: 100 us}
  c: {input: {b: hash}, parallelism: 2, service: 900 us}
checkpoint: {interval: 1 s, barriers: unaligned}
cluster: {placement: spread}
run: {duration: 20 s}
"""


def ran(*changes, engine="compiled"):
    return run_scenario(JOB, overrides=changes, engine=engine)


def delays(result):
    """Median time [ms] from the trigger to the first barrier, by vertex."""
    return result.subtasks[result.subtasks["id"] > 1].groupby("vertex")["start_delay"].median()


@pytest.mark.parametrize(("barriers", "at_c"), [("unaligned", 20.0), ("aligned", 10.0), ("at-least-once", 10.0)])
def test_each_exchange_adds_its_lateness(barriers, at_c):
    """10 ms at b, 20 ms at c, unless c has records to work off while b is late; sources are triggered and wait for nothing."""
    late = delays(ran(f"checkpoint.barriers={barriers}", "cluster.barrier-wake-up=10 ms")) - delays(
        ran(f"checkpoint.barriers={barriers}")
    )

    assert {"a": 0.0, "b": 10.0, "c": at_c} == pytest.approx(late.to_dict(), abs=1.5)


def test_a_barrier_that_is_converted_is_late_as_well():
    """c is full: its barriers wait behind data up to the timeout, and overtake it then."""
    full = ("checkpoint.barriers={aligned-timeout: 200 ms}", "job.c.service=1200 us")
    late = delays(ran(*full, "cluster.barrier-wake-up=50 ms")) - delays(ran(*full))

    assert 40 <= late["c"] <= 120

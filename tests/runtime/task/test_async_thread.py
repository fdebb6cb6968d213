"""A task's one asynchronous thread: cancelled work stops."""

from sim.runtime.task.thread import AsyncThread
from tests.runtime.fakes import clock


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

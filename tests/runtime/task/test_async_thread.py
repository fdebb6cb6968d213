"""A task's one asynchronous thread: snapshots take turns, each keeps the thread until it leaves, cancelled work stops."""

import pytest

from sim.runtime.task.thread import AsyncThread
from tests.runtime.fakes import clock


class Shop:
    """A thread and the story of its work: (what, time)."""

    def __init__(self):
        self.env = clock()
        self.thread = AsyncThread(self.env)
        self.story = []

    def note(self, what):
        self.story.append((what, self.env.now))

    def work(self, name, *costs):
        self.note(f"{name} begins")
        for cost in costs:
            yield self.env.timeout(cost)
            self.note(f"{name} after {cost}")

    def queue(self, at, checkpoint, *costs, stays=0):
        """Work that leaves the thread `stays` after it is done."""
        leave = lambda: self.env.call_in(stays, lambda: self.thread.leave(checkpoint))  # noqa: E731
        done = lambda: (self.note(f"{checkpoint} done"), leave())  # noqa: E731
        self.env.call_in(at, lambda: self.thread.queue(checkpoint, self.work(checkpoint, *costs), done))

    def run(self):
        self.env.run(until=1000)
        return self.story


@pytest.fixture
def shop():
    return Shop()


def test_work_cancelled_in_the_moment_its_turn_comes_goes_no_further(shop):
    """Two snapshots are aborted at once; what the second one waits for is there already, so nothing would hold it up."""
    there = shop.env.event().succeed()
    shop.queue(0, 1, 10)

    def waiting():
        yield there
        shop.note("2 goes on")

    shop.env.call_in(1, lambda: shop.thread.queue(2, waiting(), lambda: shop.note("2 done")))
    shop.env.call_in(5, lambda: (shop.thread.leave(1), shop.thread.leave(2)))

    assert shop.run() == [("1 begins", 0)]

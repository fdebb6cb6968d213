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


def test_one_piece_after_the_other(shop):
    shop.queue(0, 1, 10, 20)

    assert shop.run() == [("1 begins", 0), ("1 after 10", 10), ("1 after 20", 30), ("1 done", 30)]


def test_one_snapshot_after_the_other(shop):
    """The second one waits, and begins when the first one leaves: not before."""
    shop.queue(0, 1, 10, stays=5)
    shop.queue(2, 2, 3)

    assert shop.run() == [
        ("1 begins", 0),
        ("1 after 10", 10),
        ("1 done", 10),
        ("2 begins", 15),
        ("2 after 3", 18),
        ("2 done", 18),
    ]


def test_work_without_time_is_done_at_once(shop):
    """Nothing to write: finished in the same turn, and it still keeps the thread until it leaves."""
    shop.queue(4, 1, stays=7)
    shop.queue(5, 2)

    assert shop.run() == [("1 begins", 4), ("1 done", 4), ("2 begins", 11), ("2 done", 11)]


def test_cancelled_work_stops_where_it_is(shop):
    """It is never done; the next one has the thread at once."""
    shop.queue(0, 1, 10, 20)
    shop.queue(1, 2, 3)
    shop.env.call_in(15, lambda: shop.thread.leave(1))

    assert shop.run() == [("1 begins", 0), ("1 after 10", 10), ("2 begins", 15), ("2 after 3", 18), ("2 done", 18)]


def test_cancelled_work_that_waits_never_begins(shop):
    shop.queue(0, 1, 10)
    shop.queue(1, 2, 3)
    shop.queue(2, 3, 4)
    shop.env.call_in(5, lambda: shop.thread.leave(2))

    assert [what for what, _ in shop.run()] == ["1 begins", "1 after 10", "1 done", "3 begins", "3 after 4", "3 done"]


def test_work_cancelled_in_the_moment_it_begins_never_ends(shop):
    """Two things at one time: the abort is heard right after the sync phase."""
    shop.queue(5, 1, 10)
    shop.env.call_in(5, lambda: shop.thread.leave(1))

    assert shop.run() == [("1 begins", 5)]


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


def test_leaving_twice_or_without_a_turn_is_nothing(shop):
    """An acknowledged snapshot may be cancelled afterwards."""
    shop.queue(0, 1, 10)
    for at in (0, 20, 30):
        shop.env.call_in(at, lambda: shop.thread.leave(9))

    assert shop.run()[-1] == ("1 done", 10)

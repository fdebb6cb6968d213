"""Work that nobody waits for: it goes on in the turns of what it awaits, and hears of failures."""

from __future__ import annotations

import simpy

from sim.storage.requests import run_detached


def test_work_goes_on_in_the_turns_of_what_it_awaits():
    env = simpy.Environment()
    story = []
    over = env.event().succeed("known")
    env.run()

    def work():
        yield env.timeout(3)
        story.append(("waited", env.now))
        story.append(((yield over), env.now))
        yield env.timeout(2)
        story.append(("done", env.now))

    under_way = work()
    run_detached(under_way, next(under_way))
    env.run()

    assert story == [("waited", 3), ("known", 3), ("done", 5)]


def test_what_is_awaited_first_may_be_over_already():
    env = simpy.Environment()
    over = env.event().succeed("known")
    env.run()
    story = []

    def work():
        story.append((yield over))

    under_way = work()
    run_detached(under_way, next(under_way))

    assert story == ["known"]


def test_broken_off_work_hears_of_it_where_it_waits():
    """It may still wait for something; broken off again when it is over, nothing happens."""
    env = simpy.Environment()
    story = []

    def work():
        try:
            yield env.timeout(10)
        except simpy.Interrupt:
            yield env.timeout(1)
            story.append(("cleaned up", env.now))

    under_way = work()
    carried = run_detached(under_way, next(under_way))
    env.run(until=3)
    carried.break_off()
    env.run()
    carried.break_off()

    assert story == [("cleaned up", 4)]

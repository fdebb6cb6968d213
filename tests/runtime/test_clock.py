"""One clock for two planes: control before data at the same time, a notice suspends the data, integers only."""

from functools import partial

import pytest
import simpy

from sim.plane.interface import NoticeKind
from sim.runtime.clock import END_OF_TIME_NS, TwoPlaneEnvironment
from sim.storage.requests import schedule_urgent_callback
from tests.oracle import ReferencePlane
from tests.plane.lab import pipe
from tests.runtime.fakes import FakePlane, clock, notice


def test_control_runs_before_data_at_the_same_time():
    """Data of 5 is over before control of 10 runs; data of 10 follows it."""
    story = []
    env = clock(notice(5), notice(10), on_notice=lambda seen: story.append(("data", seen.time)))
    env.call_in(10, lambda: story.append(("control", env.now)))
    env.run(until=20)

    assert story == [("data", 5), ("control", 10), ("data", 10)]


def test_a_notice_suspends_the_data_until_control_is_done():
    """What a notice brings about, and what that brings about at the same time, comes before the next data event of that time."""
    story = []

    def control(n):
        story.append(f"control {n} at {env.now}")
        if n < 3:
            env.timeout(0).callbacks.append(lambda _: control(n + 1))

    def on_notice(seen):
        story.append(f"data of task {seen.task} at {env.now}")
        if seen.task == 0:
            env.timeout(0).callbacks.append(lambda _: control(1))

    env = clock(notice(5, task=0), notice(5, task=1), on_notice=on_notice)
    env.run(until=20)

    assert story == ["data of task 0 at 5", "control 1 at 5", "control 2 at 5", "control 3 at 5", "data of task 1 at 5"]


def test_something_sooner_may_be_scheduled_by_a_notice():
    """The data plane is not sent further than the event its own notice asked for."""
    story = []
    env = clock(
        notice(5),
        notice(9),
        on_notice=lambda seen: seen.time == 5 and env.call_in(3, lambda: story.append(env.plane.now)),
    )
    env.call_in(100, lambda: None)
    env.run(until=100)

    assert story == [8]


def test_time_of_a_notice_is_the_clock_s():
    """A handler reads the notice's own time, not that of the event the plane was on its way to."""
    times = []
    env = clock(notice(7), on_notice=lambda _: times.append((env.now, type(env.now))))
    env.run(until=50)

    assert [(7, int)] == times
    assert env.now == 50


@pytest.mark.parametrize("delay", [1.5, 2.0, float("inf")])
def test_a_float_delay_is_refused(delay):
    """Even a whole one: where floats get in, engines stop agreeing."""
    with pytest.raises(TypeError, match=r"integer number of nanoseconds, not (1\.5|2\.0|inf)"):
        clock().timeout(delay)


def test_nothing_scheduled_is_a_finite_number():
    """Without a control event the plane runs to its next notice; it is never told to advance to infinity."""
    env = clock(notice(10**15))
    env.on_notice = lambda _: end.succeed()
    end = env.event()
    env.run(until=end)

    assert env.now == 10**15
    assert env.plane.advances[0] == END_OF_TIME_NS
    assert {int} == {type(until) for until in env.plane.advances}


def test_a_world_without_events_ends():
    """No control event and no notice: the run is over, not endless."""
    with pytest.raises(simpy.core.EmptySchedule):
        clock().step()


def test_a_call_in_no_time_is_made_at_once():
    """In the same turn, before anything else of that time; later ones in the order of their times."""
    env, story = clock(), []
    env.call_in(5, lambda: story.append(("later", env.now)))
    env.call_in(
        2, lambda: (env.call_in(0, lambda: story.append(("at once", env.now))), story.append(("after", env.now)))
    )
    env.run(until=10)

    assert story == [("at once", 2), ("after", 2), ("later", 5)]


@pytest.mark.parametrize("delay", [0, 10])
def test_many_calls_at_a_time_come_as_if_each_had_its_own_event(delay):
    """What one of them brings about comes before the next; whoever does nothing is passed over."""

    def story(call_all):
        entries, env = [], clock()

        def acts(name):
            entries.append(name)
            env.process(urgent(name)) if name in "bd" else None
            return name in "bd"

        def urgent(name):
            entries.append(f"after {name}")
            yield env.timeout(0)
            entries.append(f"last of {name}")

        env.call_in(delay, lambda: entries.append("before"))
        call_all(env, [partial(acts, name) for name in "abcde"])
        env.call_in(delay, lambda: entries.append("behind"))
        env.run(until=20)
        return entries

    assert story(lambda env, actions: [env.call_in(delay, action) for action in actions]) == story(
        lambda env, actions: env.call_each_in(delay, actions)
    )


def test_a_call_that_is_next_comes_before_all_others_of_its_time():
    env, story = clock(), []
    env.call_in(5, lambda: (schedule_urgent_callback(env, lambda: story.append("next")), story.append("this turn")))
    env.call_in(5, lambda: story.append("in its turn"))
    env.run(until=20)

    assert story == ["this turn", "next", "in its turn"]


def test_those_who_do_nothing_share_an_event():
    env, steps = clock(), []
    env.call_each_in(10, [lambda: False] * 50)
    while env.peek() <= END_OF_TIME_NS:
        env.step()
        steps.append(env.now)

    assert steps == [10]


def test_a_real_plane_keeps_the_time():
    """Every advance stops at the control event; the plane's time is the clock's."""
    seen, kinds = [], []
    env = TwoPlaneEnvironment(ReferencePlane(pipe(total=3)), lambda notice: kinds.append((notice.kind, notice.time)))
    for at in (1, 10, 25, 25):
        env.call_in(at, lambda: seen.append((env.now, env.plane.now)))
    env.run(until=100)

    assert seen == [(1, 1), (10, 10), (25, 25), (25, 25)]
    assert kinds == [(NoticeKind.EXHAUSTED, 30)]


def test_the_plane_catches_up_before_each_event():
    """Once per event: control costs the plane nothing but a question."""
    env = TwoPlaneEnvironment(plane := FakePlane(), lambda _: None)
    for at in (3, 3, 8):
        env.call_in(at, lambda: None)
    env.run(until=env.timeout(9))

    assert plane.advances == [3, 3, 8, 9]


def test_a_repetition_stands_where_a_process_would():
    """Events of one instant come in the order in which they were scheduled, and a period is scheduled when the one before it is over."""
    story = []
    env = clock()

    def process():
        while True:
            yield env.timeout(10)
            story.append((env.now, "process"))

    env.call_in(20, lambda: story.append((env.now, "earlier")))
    env.call_every(10, lambda: story.append((env.now, "repetition")))
    env.process(process())
    env.call_in(15, lambda: env.call_in(5, lambda: story.append((env.now, "later"))))
    env.run(until=25)

    assert story == [
        (10, "repetition"),
        (10, "process"),
        (20, "earlier"),
        (20, "repetition"),
        (20, "process"),
        (20, "later"),
    ]


def test_looks_stand_where_a_repetition_would():
    """Several at once up to the next event, those of its instant in the order in which they were scheduled, and none across a notice."""
    story, heard = [], []

    def run(repeat):
        heard.clear()
        env = TwoPlaneEnvironment(
            plane := ReferencePlane(pipe(total=20)), lambda seen: heard.append(("notice", seen.time))
        )
        repeat(env, plane)
        env.call_in(35, lambda: env.call_in(5, lambda: heard.append((env.now, "later"))))
        env.call_in(20, lambda: heard.append((env.now, "earlier")))
        env.call_in(63, lambda: plane.interrupt(0))
        env.run(until=145)
        return list(heard)

    def one_by_one(env, plane):
        env.call_every(10, lambda: heard.append((env.now, plane.served().tolist())))

    def together(env, plane):
        def look(times, rows):
            story.append(len(times))
            heard.extend(zip(times, rows.tolist(), strict=True))

        env.look_every(10, look, lambda: 3)

    assert run(one_by_one) == run(together)
    assert max(story) == 3
    assert sum(story) == 14

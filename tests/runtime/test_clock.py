"""One clock for two planes, and the loop of a host: control before data at the same time, events in the order they come."""

import pytest

from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.host_loop import HostLoop
from tests.oracle import ReferencePlane
from tests.plane.lab import pipe
from tests.runtime.fakes import clock

# One clock for two planes: control before data at the same time, a notice suspends the data, integers only.


@pytest.mark.parametrize("delay", [1.5, 2.0, float("inf")])
def test_a_float_delay_is_refused(delay):
    """Even a whole one: where floats get in, engines stop agreeing."""
    with pytest.raises(TypeError, match=r"integer number of nanoseconds, not (1\.5|2\.0|inf)"):
        clock().timeout(delay)


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
        def look():
            heard.append((env.now, plane.served().tolist()))
            env.call_in(10, look)

        env.call_in(10, look)

    def together(env, plane):
        def look(times, rows):
            story.append(len(times))
            heard.extend(zip(times, rows.tolist(), strict=True))

        env.poll_every(10, look, lambda: 3)

    assert run(one_by_one) == run(together)
    assert max(story) == 3
    assert sum(story) == 14


# The loop of a host: events in the order they come, commands in the order of their machine.


def counting(seen, event):
    """A machine that remembers its events; each number asks for itself twice."""
    return (*seen, event), (f"{event}a", f"{event}b")


def test_nothing_is_carried_out_when_all_is_over():
    """Neither the commands that are left nor the events that wait; what comes later is heard elsewhere."""
    done, late = [], []

    def carry_out(command):
        done.append(command)
        loop.dispatch(2)
        loop.is_over = True

    loop = HostLoop((), counting, carry_out, late.append)
    loop.dispatch(1)
    loop.dispatch(3)

    assert (done, late) == (["1a"], [3])
    assert loop.machine == (1,)

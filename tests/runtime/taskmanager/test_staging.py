"""Room for files that are not uploaded yet: who finds none waits for it in turn, or gives up."""

import pytest
import simpy

from sim.runtime.task_manager import StagingSpace
from sim.storage.ledger import DiskFull


def reserve(space, size, log):
    yield from space.reserve(size)
    log.append((space.env.now, size))


@pytest.mark.parametrize(("waits", "first", "second"), [(False, 60, 50), (True, 0, 101)])
def test_no_room_at_all_is_an_error(waits, first, second):
    """When it must not wait, or would wait for ever."""
    space = StagingSpace(simpy.Environment(), 100, waits=waits)
    list(space.reserve(first))

    with pytest.raises(DiskFull):
        list(space.reserve(second))


@pytest.mark.parametrize("granted", [False, True])
def test_whoever_gives_up_waiting_leaves_the_line(granted):
    """The room goes to the next, also if it was granted in the instant the waiting one is stopped."""
    env, log = simpy.Environment(), []
    space = StagingSpace(env, 100)
    list(space.reserve(60))
    gone = env.process(reserve(space, 90, log))
    env.process(reserve(space, 40, log))
    env.run()
    gone.defused = True
    gone.interrupt()
    if granted:
        space.release(60)
    env.run()

    assert log == [(0, 40)]
    assert (40 if granted else 100) == space.used_bytes

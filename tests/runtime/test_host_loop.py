"""The loop of a host: events in the order they come, commands in the order of their machine."""

from sim.runtime.host_loop import HostLoop


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

"""The loop: work items, then the next event, up to a notice or a time (E1-E3)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.ahead import catch_up_all
from sim.plane.kernel.text.channels.messages import reverse_line_event
from sim.plane.kernel.text.channels.sending import forward_line_event, send
from sim.plane.kernel.text.names import FIRING, NEVER
from sim.plane.kernel.text.task.late import end_firing
from sim.plane.kernel.text.task.thread import end_service, turn
from sim.plane.kernel.text.timers import debloat_event, flush_event
from sim.plane.kernel.text.tree import set_leaf
from sim.plane.kernel.text.work import wake


def advance(w: PlaneState, until: int) -> int:
    """Work items, then data events before `until`, up to the first step that leaves notices pending (E3); returns how many."""
    g = w.g
    while g.now < until and g.noted == 0:
        if g.work_n > 0:
            item = w.ring[g.work_head]
            g.work_head = (g.work_head + 1) & g.work_mask
            g.work_n -= 1
        else:
            item = next_event(w, until)
        if item >= g.tasks:
            send(w, item - g.tasks)
        elif item >= 0:
            turn(w, item)
    return g.noted


def look(w: PlaneState, first: int, every: int, times: int) -> int:
    """Advance to `first` and further, as many `times`, and note the records served by each task; up to a notice.  Returns the looks."""
    g = w.g
    for n in range(times):
        if advance(w, first + n * every) > 0:
            return n
        catch_up_all(w)
        at = g.looks + n * g.tasks
        for t in range(g.tasks):
            w.words[at + t] = w.tasks[t].served
    return times


def next_event(w: PlaneState, until: int) -> int:
    """The next event happens, or it is `until` (E1).  Returns the work it leaves at the head of the list, -1: that is on the list, or none.

    The leaf of a task is left as it is for a moment: most often its next service overwrites it.
    """
    g = w.g
    if g.stale >= 0:
        set_leaf(w, g.stale, NEVER)
        g.stale = -1
    key = w.tree[1]
    time = key >> g.shift
    if time >= until:
        g.now = until
        g.reached = until << g.shift
        return -1
    g.now = time
    if key > g.reached:
        g.reached = key
    rank = key - (time << g.shift)
    if rank < g.tasks:
        g.stale = rank
        serving = w.tasks[rank].serving
        if serving == 1:
            end_service(w, rank)
            if g.work_n == 0:
                return rank
        elif serving == FIRING:
            end_firing(w, rank)
        wake(w, rank)
    elif rank == g.tasks:
        reverse_line_event(w)
    elif rank == g.flush_rank:
        flush_event(w)
    elif rank == g.debloat_rank:
        debloat_event(w)
    else:
        forward_line_event(w, rank - g.tasks)
    return -1
